"""The training loop: updates, validation, early stopping and checkpoints of one run."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from graphbench.core.errors import CheckpointError, GraphBenchError
from graphbench.data.batches.batching import on_device
from graphbench.models.base import TaskModel
from graphbench.models.operations import counted_operations
from graphbench.records.machine import processor_seconds
from graphbench.records.memory import MemoryPeak
from graphbench.training import checkpoint
from graphbench.training.augmentation import augmentations_of, augmented
from graphbench.training.checkpoint import BestValidation, TrainingState
from graphbench.training.context import RunContext, TaskRun, Watch
from graphbench.training.device_use import shares_device
from graphbench.training.failures import is_out_of_memory, not_finite, out_of_memory
from graphbench.training.folders import RESTART, stated_settings
from graphbench.training.interrupts import StopRequest
from graphbench.training.neighbours import NeighbourBatches
from graphbench.training.scoring import (
    autocast,
    chosen_precision,
    finish_work,
    matrix_products,
    score_split,
    validation_loss,
)
from graphbench.training.settings import MixtureSchedule, TrainingConfig, learning_rate_factor, mixture_weights

logger = logging.getLogger(__name__)

CHECKPOINT = "checkpoint.safetensors"
BEST = "best.safetensors"
_SEED_STRIDE = 2**32
_COUNTED_UPDATES = 3  # whose operations are counted; batches differ in size
_MASK64 = 2**64 - 1
_LESS_MEMORY = (
    "raise training.accumulate (same result, less memory), lower training.batch_size, or take a smaller model "
    "(models of all pairs of nodes need memory in proportion to batch size * nodes^2 * model.hidden)"
)


class TrainingLoop:
    """One run in memory.

    Args:
        context: The run; several datasets are trained on as ``training.mixture`` says.
        model: The model, on ``context.world.device``.
    """

    def __init__(self, context: RunContext, model: TaskModel) -> None:
        self.config, self.runs, self.world = context.config, context.runs, context.world
        self.folder, self.fingerprint = context.folder, context.fingerprint
        self.settings, self.model = self.config.training, model
        self.validates = all(len(run.val) for run in self.runs.values())
        largest = max(len(run.val) for run in self.runs.values()) if self.validates else 0
        self.interval = self.settings.validation_interval(largest)
        self.val_metric, self.higher_is_better = _selection(self.runs)
        sizes = {id_: run.train_size for id_, run in self.runs.items()}
        self.weights = mixture_weights(self.settings.mixture, sizes)
        self.precision = chosen_precision(self.settings.precision, self.world.device)
        self.optimizer = make_optimizer(model, self.settings)
        self.state = TrainingState()
        self.best: BestValidation | None = None
        self.saved_step: int | None = None
        self._augmentations = augmentations_of(self.settings.augment, {id_: run.card for id_, run in self.runs.items()})
        self._forward: Any = torch.compile(model, dynamic=True) if self.settings.compile is True else model
        self._pending: list[Tensor] = []
        self._single: dict[str, tuple[Any, Any]] = {}
        sampling = self.settings.neighbours
        self._neighbours = {
            id_: NeighbourBatches(run.train, sampling) for id_, run in self.runs.items() if sampling is not None
        }
        self._timer_started = 0.0
        self._untimed = True
        self.validation_seconds: float | None = None
        self._memory = MemoryPeak(self.world.device)

    def resume(self) -> bool:
        """Continue from the folder's checkpoint if there is one, and return whether there was.

        Raises:
            CheckpointError: If the checkpoint is damaged or belongs to another run, or its best weights are missing.
        """
        path = self.folder / CHECKPOINT
        if not path.is_file():
            return False
        tensors, facts = checkpoint.load_tensors(path)
        checkpoint.require_fingerprint(facts, self.fingerprint, path, self.config)
        checkpoint.restore_training(self.model, self.optimizer, tensors)
        self.state = TrainingState.from_facts(facts["state"])
        self.saved_step = self.state.step
        best = self.folder / BEST
        if self.state.val_curve and not best.is_file():
            raise CheckpointError(
                f"{best} is missing: the weights that {len(self.state.val_curve)} validations selected are gone; "
                f"put the file back, or train with {RESTART} to start again"
            )
        if best.is_file():
            _, facts = checkpoint.load_tensors(best)
            checkpoint.require_fingerprint(facts, self.fingerprint, best, self.config)
            self.best = BestValidation(**facts["best"])
        return True

    def run(self, watch: Watch) -> None:
        """Train until the budget or the patience is exhausted, or a stop is requested.

        A stop request is answered between two updates: the run writes a checkpoint and ends as the signal asks.

        Raises:
            TrainingError: If the loss or a weight is not finite, or the device's memory is too small.
        """
        settings, state, first = self.settings, self.state, self.state.step
        earlier, began = state.wall_seconds, time.perf_counter()
        earlier_cpu, cpu_began = state.cpu_seconds, processor_seconds()
        watch.bar.update(state.step)
        batches = self._batches()
        self.model.train()
        self._start_timer()
        while state.step < settings.steps and not self.patience_is_exhausted():
            with self._memory_checked():
                self._pending.append(self._update(*next(batches)))
            state.step += 1
            watch.bar.update(1)
            last = state.step == settings.steps or state.step in settings.eval_at
            validates = self.validates and (last or state.step % self.interval == 0)
            saves = last or state.step % (settings.checkpoint_every or self.interval) == 0
            stops = self._stop_requested(watch.stop)
            if self._untimed or validates or saves or stops or state.step % settings.log_interval == 0:
                self._collect_losses(watch, last)
            if validates:
                self._validate(watch)
            if validates or saves or stops:
                state.wall_seconds = earlier + time.perf_counter() - began
                spent = torch.tensor(processor_seconds() - cpu_began, dtype=torch.float64, device=self.world.device)
                state.cpu_seconds = None if earlier_cpu is None else earlier_cpu + float(self.world.sum(spent))
                state.threads = torch.get_num_threads()
                if saves or stops:
                    self._save()
                self._start_timer()
            if stops:
                watch.stop.end()
        if watch.recorded and state.step > first and (per_update := self.operations_per_update()) is not None:
            state.operations = per_update * state.step
        self._save()

    def patience_is_exhausted(self) -> bool:
        """Return whether the last ``patience`` validations brought no improvement."""
        if self.settings.patience is None or self.best is None:
            return False
        reached = min(step for step, score in self.state.val_curve if score == self.best.score)
        return sum(step > reached for step, _ in self.state.val_curve) >= self.settings.patience

    def restore_best(self) -> None:
        """Load the best weights into the model; without a validation, the last ones stay.

        Raises:
            CheckpointError: If the weights are damaged, or another run has written them.
        """
        if self.best is not None:
            path = self.folder / BEST
            tensors, facts = checkpoint.load_tensors(path)
            checkpoint.require_fingerprint(facts, self.fingerprint, path, self.config)
            checkpoint.load_model(self.model, tensors)

    def seconds_per_update(self) -> float:
        """Return the time of an update on the first batch, measured without changing weights or random numbers."""
        seconds = []
        with self._memory_checked():
            task_id, parts = next(self._batches())
            self.model.train()
            for _ in range(2):  # the first one compiles and warms up
                started = time.perf_counter()
                self.world.seed_step(self.settings.seed, self.state.step)
                float(self._backward(task_id, parts))
                seconds.append(time.perf_counter() - started)
                self.optimizer.zero_grad(set_to_none=True)
        return seconds[-1]

    def operations_per_update(self) -> float | None:
        """Return the floating-point operations of an update, of all processes, as the mean over a few updates.

        Weights do not change. Models that torch compiles are not counted, nor models whose plain form needs more memory
        than there is: then the function returns None.
        """
        if self.settings.compile is True:
            return None
        try:
            return self._operations()
        except (GraphBenchError, MemoryError, RuntimeError) as error:
            logger.warning("the operations of an update are not counted: %s", error)
            return None
        finally:
            self.optimizer.zero_grad(set_to_none=True)

    def _operations(self) -> float:
        counted, batches = [], self._batches()
        self.model.train()
        for step in range(min(max(_COUNTED_UPDATES, len(self.runs)), self.settings.steps)):
            task_id, parts = next(batches)
            self.world.seed_step(self.settings.seed, step)
            with self._memory_checked(), counted_operations() as operations:
                self._backward(task_id, parts)
            counted.append(operations.count)
        return self.world.size * sum(counted) / len(counted)

    def _batches(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Yield (dataset, this process's micro-batches) of every batch from the current step on, for ever."""
        settings, world = self.settings, self.world
        parts = world.size * settings.accumulate
        schedule = MixtureSchedule(self.weights, self.state.step)
        sources = {
            id_: [
                self._share(id_, schedule.counts[id_], (number, parts))
                for number in range(world.rank, parts, world.size)
            ]
            for id_ in self.runs
        }
        while True:
            id_ = schedule.take()
            yield id_, tuple(batch for batch in map(next, sources[id_]) if batch is not None)

    def _share(self, id_: str, start: int, share: tuple[int, int]) -> Iterator[Any]:
        """Yield the shares of a dataset's batches from number ``start`` on, as the model sees them."""
        run, settings = self.runs[id_], self.settings
        if settings.neighbours is None:
            batches = run.task.batches(run.train, settings.batch_size, seed=settings.seed, start=start, share=share)
        else:
            batches = self._neighbours[id_].batches(settings.seed, start, share)
        for number, batch in enumerate(batches, start):
            drawn = ((settings.seed * _SEED_STRIDE + number) * share[1] + share[0]) & _MASK64
            generator = torch.Generator().manual_seed(drawn)
            if batch is None:
                yield None
                continue
            changed = augmented(batch, self._augmentations, generator)
            yield self.model.prepare(changed, id_, generator, training=True)

    @contextmanager
    def _memory_checked(self) -> Iterator[None]:
        """Within the block, name the settings to lower where a batch does not fit into the memory.

        Raises:
            TrainingError: If there is too little memory.
        """
        try:
            yield
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            samples = next(iter(self.runs.values())).task.samples
            at_once = self.settings.batch_size // self.settings.accumulate
            raise out_of_memory("training", at_once, samples, _LESS_MEMORY) from error

    def _update(self, id_: str, parts: Sequence[Any]) -> Tensor:
        """Do one optimizer update and return this process's part of the batch's loss."""
        settings, world = self.settings, self.world
        world.seed_step(settings.seed, self.state.step)
        factor = learning_rate_factor(self.state.step, settings.horizon, settings.warmup, settings.schedule)
        for group in self.optimizer.param_groups:
            group["lr"] = settings.lr * factor
        total = self._backward(id_, parts)
        world.sum_gradients(self.model.parameters())
        if settings.gradient_clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), settings.gradient_clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total

    def _backward(self, id_: str, parts: Sequence[Any]) -> Tensor:
        """Add the gradients of this process's micro-batches, and return its part of the batch's loss.

        A micro-batch counts by its share of the terms of the whole batch. A model's penalty has no terms to count, so
        it is averaged over the micro-batches.
        """
        task, device = self.runs[id_].task, self.world.device
        whole = len(parts) == self.world.size == 1
        shares = [{}] if whole else self._shares(id_, [task.loss_weights(part) for part in parts])
        even = 1 / max(len(parts) * self.world.size, 1)
        total = torch.zeros((), device=device)
        for part, share in zip(parts, shares, strict=True):
            with matrix_products(self.precision):
                losses = self._losses(id_, self._on_device(id_, part))
                if not whole:
                    losses = {name: loss * share.get(name, even) for name, loss in losses.items()}
                loss = weighted_sum(losses, task.card.task.weights)
                loss.backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        return total

    def _on_device(self, id_: str, part: Any) -> Any:
        """Return a batch on the device; the batch of a single graph that comes again is copied there once."""
        if self.runs[id_].train_size > 1:
            return on_device(part, self.world.device)
        earlier, moved = self._single.get(id_, (None, None))
        if earlier is not part:
            moved = on_device(part, self.world.device)
            self._single[id_] = (part, moved)
        return moved

    def _shares(self, id_: str, counts: Sequence[Mapping[str, Any]]) -> list[dict[str, Tensor]]:
        """Return output -> share of its terms that each of this process's parts of a batch has.

        A process without a part of the batch takes part in the sum with zeros.
        """
        names = list(counts[0]) if counts else self._loss_names(id_)
        device = self.world.device
        numbers = [[torch.as_tensor(c[name], dtype=torch.float64) for name in names] for c in counts]
        rows = [torch.stack(row) for row in numbers]
        local_counts = torch.stack(rows) if rows else torch.zeros(0, len(names), dtype=torch.float64)
        local_counts = local_counts.to(device)
        shares = local_counts / self.world.sum(local_counts.sum(0)).clamp(min=1e-12)
        return [dict(zip(names, row.float().unbind(), strict=True)) for row in shares]

    def _loss_names(self, id_: str) -> list[str]:
        """Return the names of a dataset's losses, read from its first sample."""
        run = self.runs[id_]
        batch = next(iter(run.task.validation_batches(run.train[:1], 1)))
        return list(run.task.loss_weights(self.model.prepare(batch, id_, training=True)))

    def _losses(self, id_: str, batch: Any) -> dict[str, Tensor]:
        with autocast(self.world.device, self.precision):
            outputs = self._forward(batch, id_)
        task = self.runs[id_].task
        states = [outputs, *getattr(outputs, "earlier", ())]
        of_states = [task.losses(state, batch) for state in states]
        if len(of_states) == 1:
            return of_states[0]
        return {name: torch.stack([losses[name] for losses in of_states]).mean(0) for name in of_states[0]}

    def _stop_requested(self, stop: StopRequest) -> bool:
        """Return whether any process was asked to stop; several processes check at the same steps."""
        if self.world.size > 1 and self.state.step % self.settings.log_interval:
            return False
        return self.world.any(stop.received)

    def _collect_losses(self, watch: Watch, last: bool) -> None:
        """Read the losses back from the device, stop at one that is not finite, and extend the curve."""
        state = self.state
        values = self.world.sum(torch.stack(self._pending)).tolist()
        finish_work(self.world.device)
        state.shared_device |= shares_device(self.world.device)
        self._count_time(len(values))
        self._pending.clear()
        for number, value in enumerate(values, state.step - len(values) + 1):
            if not abs(value) < float("inf"):
                raise not_finite("the training loss", value, number, self.saved_step)
        state.unlogged += values
        if last or state.step % self.settings.log_interval == 0:
            mean = sum(state.unlogged) / len(state.unlogged)
            state.train_loss.append((state.step, mean))
            state.unlogged.clear()
            watch.board.add_scalar("train/loss", mean, state.step)
            watch.board.add_scalar("train/lr", self.optimizer.param_groups[0]["lr"], state.step)
            watch.bar.update(0, loss=mean)

    def _validate(self, watch: Watch) -> None:
        state, metric = self.state, self.val_metric
        self._require_finite_weights()
        began = time.perf_counter()
        score = float(self.world.from_leader(self._validation_score() if self.world.leads else 0.0))
        self.validation_seconds = time.perf_counter() - began
        state.val_curve.append((state.step, score))
        watch.board.add_scalar(f"val/{metric}", score, state.step)
        watch.bar.update(0, **{f"val_{metric}": score})
        if self.world.leads:
            split, steps = self.settings.val_split, self.settings.steps
            logger.info("step %d of %d: %s %s %.4g", state.step, steps, split, metric, score)
        sign = 1 if self.higher_is_better else -1
        gain = 1.0 if self.best is None else sign * (score - self.best.score)
        if gain > 0 or (gain == 0 and self.settings.prefer_later):
            self.best = BestValidation(state.step, score)
            if self.world.leads:
                weights = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
                facts = {**self._run_facts(), "best": asdict(self.best)}
                checkpoint.save_tensors(self.folder / BEST, weights, facts)

    def _validation_score(self) -> float:
        """Return the quantity that selects models; of several datasets the mean over them, see :func:`_selection`."""
        scores = {}
        for id_, run in self.runs.items():
            if run.task.selection[0] == "loss":
                options = (self.settings, self.world.device, self.precision)
                scores[id_] = validation_loss(self.model, id_, run, *options)
            else:
                split = score_split(
                    self.model,
                    run.task,
                    run.val,
                    task_id=id_,
                    batch_size=self.settings.eval_batch_size,
                    device=self.world.device,
                    precision=self.precision,
                    selecting=True,
                )
                scores[id_] = split[run.val.split].primary
        if len(scores) == 1:
            return next(iter(scores.values()))
        skills = []
        for id_, score in scores.items():
            if not self.runs[id_].task.selection[1]:
                first = self.state.first_errors.setdefault(id_, score)
                score = 1.0 - score / first if first else 0.0
            skills.append(score)
        return sum(skills) / len(skills)

    def _save(self) -> None:
        state = self.state
        if self.saved_step == state.step:
            return
        self._require_finite_weights()
        state.peak_memory_bytes = max(state.peak_memory_bytes, self._memory.bytes)
        if self.world.leads:
            facts = {**self._run_facts(), "state": asdict(state)}
            tensors = checkpoint.training_tensors(self.model, self.optimizer)
            checkpoint.save_tensors(self.folder / CHECKPOINT, tensors, facts)
        self.saved_step = state.step

    def _run_facts(self) -> dict[str, Any]:
        """Return the facts of the run that are stored with the weights."""
        return {"fingerprint": self.fingerprint, checkpoint.RUN: stated_settings(self.config)}

    def _require_finite_weights(self) -> None:
        norms = torch.stack([parameter.detach().norm() for parameter in self.model.parameters()])
        if not bool(norms.isfinite().all()):
            raise not_finite("a weight", float("nan"), self.state.step, self.saved_step)

    def _start_timer(self) -> None:
        self._timer_started = time.perf_counter()

    def _count_time(self, updates: int) -> None:
        """Add the time since the last look; a process's first update is left out, it compiles and warms up."""
        now = time.perf_counter()
        if not self._untimed:
            sizes = [run.task.per_update(run.train, self.settings.batch_size) for run in self.runs.values()]
            self.state.timed_seconds += now - self._timer_started
            self.state.timed_graphs += updates * sum(sizes) // len(sizes)
        self._untimed = False
        self._timer_started = now


def weighted_sum(losses: Mapping[str, Tensor], weights: Mapping[str, float]) -> Tensor:
    """Return the sum of losses, each times its weight where the card gives one."""
    total = torch.zeros((), device=next(iter(losses.values())).device)
    for name, loss in losses.items():
        total = total + (loss * weights[name] if weights.get(name, 1.0) != 1.0 else loss)
    return total


def _selection(runs: Mapping[str, TaskRun]) -> tuple[str, bool]:
    """Return the name of the selection metric, and whether higher is better.

    Of one dataset it is the selection metric of the task. Of several it is ``score``, the mean of the selection metrics
    over the datasets; errors and losses count as ``1 - error / error of the run's first validation``, so that they have
    a common scale with metrics for which higher is better.
    """
    if len(runs) == 1:
        return next(iter(runs.values())).task.selection
    return "score", True


def make_optimizer(model: nn.Module, settings: TrainingConfig) -> torch.optim.AdamW:
    """Return AdamW (Loshchilov and Hutter, 2019) with weight decay on tensors of two or more dimensions only."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, fused=True)
