"""The training loop: updates, validation, early stopping and checkpoints of one run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from graphbench.catalog.cards import Card
from graphbench.core.progress import Progress
from graphbench.models.losses import loss_of
from graphbench.training import checkpoint
from graphbench.training.config import RunConfig
from graphbench.training.distributed import World
from graphbench.training.evaluate import evaluate_model
from graphbench.training.failures import not_finite, out_of_memory
from graphbench.training.interrupts import StopRequest
from graphbench.training.items import loss_items
from graphbench.training.recording import Board, peak_memory_bytes
from graphbench.training.schedule import learning_rate_factor
from graphbench.training.scoring import autocast
from graphbench.training.settings import TrainingConfig

if TYPE_CHECKING:
    from graphbench.data.dataset import GraphDataset
    from graphbench.loader import Splits

logger = logging.getLogger(__name__)

CHECKPOINT = "checkpoint.safetensors"
BEST = "best.safetensors"


@dataclass
class RunState:
    """Where a run stands; together with weights and optimizer state it is all that a resumed run needs.

    Attributes:
        step: Finished updates. The data order is a function of it.
        train_loss: Points (step, mean loss since the point before).
        val_curve: Points (step, primary metric on the validation split).
        unlogged: Losses of the updates behind the last point of ``train_loss``.
        started: Start of the run, ISO 8601, UTC.
        wall_seconds: Time in the loop so far, validation and checkpoints included.
        timed_seconds: Time of updates alone, without the first update of each process.
        timed_graphs: Graphs trained on in that time.
        peak_memory_bytes: Largest memory use seen.
    """

    step: int = 0
    train_loss: list[tuple[int, float]] = field(default_factory=list)
    val_curve: list[tuple[int, float]] = field(default_factory=list)
    unlogged: list[float] = field(default_factory=list)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    wall_seconds: float = 0.0
    timed_seconds: float = 0.0
    timed_graphs: int = 0
    peak_memory_bytes: int = 0

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> RunState:
        """Return the state a checkpoint holds."""
        state = cls(**facts)
        state.train_loss = [(int(step), float(value)) for step, value in state.train_loss]
        state.val_curve = [(int(step), float(value)) for step, value in state.val_curve]
        return state


@dataclass(frozen=True)
class Best:
    """The validation that the run's best weights come from."""

    step: int
    score: float


class TrainingLoop:
    """One run in memory.

    Args:
        config: The run's configuration.
        card: The dataset's card.
        train: Training split.
        val: Validation split; None or empty to keep the last weights as the best.
        model: The model, on ``world.device``.
        world: The processes that train together.
        folder: Where checkpoints go.
        fingerprint: What a checkpoint must share with this run.
        higher_is_better: Direction of what models are selected by: the card's primary metric.
    """

    def __init__(
        self,
        config: RunConfig,
        card: Card,
        train: GraphDataset,
        val: GraphDataset | None,
        model: nn.Module,
        world: World,
        folder: Path,
        fingerprint: str,
        higher_is_better: bool,
    ) -> None:
        self.config = config
        self.settings: TrainingConfig = config.training
        self.card = card
        self.train = train
        self.val = val if val is not None and len(val) else None
        self.interval = self.settings.validation_interval(len(self.val) if self.val is not None else 0)
        self.model = model
        self.world = world
        self.folder = folder
        self.fingerprint = fingerprint
        self.higher_is_better = higher_is_better
        self.val_metric = card.metrics.primary
        self._batch_loss = loss_of(card, self.settings.surrogate)
        self.precision = chosen_precision(self.settings.precision, world.device)
        self.optimizer = make_optimizer(model, self.settings)
        self.state = RunState()
        self.best: Best | None = None
        self.saved_step: int | None = None
        self._forward: Callable[[Any], dict[str, Tensor]] = (
            torch.compile(model, dynamic=True) if self.settings.compile is True else model
        )
        self._pending: list[Tensor] = []
        self._timer_started = 0.0
        self._untimed = True

    def resume(self) -> bool:
        """Continue from the folder's checkpoint if there is one, and return whether there was.

        Raises:
            CheckpointError: If the checkpoint is damaged or belongs to another run.
        """
        path = self.folder / CHECKPOINT
        if not path.is_file():
            return False
        tensors, facts = checkpoint.load_tensors(path)
        checkpoint.require_fingerprint(facts, self.fingerprint, path)
        checkpoint.restore_training(self.model, self.optimizer, tensors)
        self.state = RunState.from_facts(facts["state"])
        self.saved_step = self.state.step
        best = self.folder / BEST
        if best.is_file():
            _, facts = checkpoint.load_tensors(best)
            checkpoint.require_fingerprint(facts, self.fingerprint, best)
            self.best = Best(**facts["best"])
        return True

    def run(self, bar: Progress, board: Board, stop: StopRequest) -> None:
        """Train until the budget is spent, the patience is, or a stop is requested.

        A stop request is answered between two updates: the run writes a checkpoint and ends as the signal asks.

        Raises:
            TrainingError: If the loss or a weight is not finite, or the device's memory is too small.
        """
        settings, state = self.settings, self.state
        earlier, began = state.wall_seconds, time.perf_counter()
        bar.update(state.step)
        batches = self._batches()
        self.model.train()
        self._start_timer()
        while state.step < settings.steps and not self.patience_is_spent():
            self._pending.append(self._update(next(batches)))
            state.step += 1
            bar.update(1)
            last = state.step == settings.steps or state.step in settings.eval_at
            validates = self.val is not None and (last or state.step % self.interval == 0)
            saves = last or state.step % (settings.checkpoint_every or self.interval) == 0
            stops = self._stop_requested(stop)
            if self._untimed or validates or saves or stops or state.step % settings.log_interval == 0:
                self._collect_losses(bar, board, last)
            if validates:
                self._validate(bar, board)
            if validates or saves or stops:
                state.wall_seconds = earlier + time.perf_counter() - began
                if saves or stops:
                    self._save()
                self._start_timer()
            if stops:
                stop.end()
        self._save()

    def patience_is_spent(self) -> bool:
        """Return whether the last ``patience`` validations brought no improvement."""
        if self.settings.patience is None or self.best is None:
            return False
        reached = min(step for step, score in self.state.val_curve if score == self.best.score)
        return sum(step > reached for step, _ in self.state.val_curve) >= self.settings.patience

    def restore_best(self) -> None:
        """Put the best weights into the model; the last ones stay where nothing was validated."""
        if self.best is not None:
            tensors, _ = checkpoint.load_tensors(self.folder / BEST)
            checkpoint.load_model(self.model, tensors)

    def notes(self, data: Splits, scored: Sequence[str]) -> list[str]:
        """Return what a reader of the scores of some splits must know, in sentences; nothing of graphs."""
        return []

    def _batches(self) -> Iterator[tuple[Any, ...]]:
        """Yield this process's micro-batches of every batch from the current step on, for ever."""
        settings, world, count = self.settings, self.world, len(self.train)
        size, parts = settings.batch_size, self.world.size * settings.accumulate
        epoch, start = divmod(self.state.step, max(1, count // size))
        while True:
            plans = [
                self.train.batches(
                    size,
                    shuffle=True,
                    seed=settings.seed,
                    epoch=epoch,
                    drop_last=count >= size,
                    start=start,
                    share=(number, parts),
                )
                for number in range(world.rank, parts, world.size)
            ]
            yield from zip(*plans, strict=True)
            epoch, start = epoch + 1, 0

    def _update(self, parts: Sequence[Any]) -> Tensor:
        """Do one optimizer update and return this process's part of the batch's loss."""
        settings, world = self.settings, self.world
        world.seed_step(settings.seed, self.state.step)
        factor = learning_rate_factor(self.state.step, settings.horizon, settings.warmup, settings.schedule)
        for group in self.optimizer.param_groups:
            group["lr"] = settings.lr * factor
        try:
            total = self._backward(parts)
        except torch.OutOfMemoryError as error:
            remedy = "raise training.accumulate (same result, less memory) or lower training.batch_size"
            raise out_of_memory("training", settings.batch_size // settings.accumulate, remedy) from error
        world.sum_gradients(self.model.parameters())
        if settings.gradient_clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), settings.gradient_clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return total

    def _backward(self, parts: Sequence[Any]) -> Tensor:
        """Add the gradients of this process's micro-batches, weighted by their share of the whole batch's items."""
        features, device = self.card.features, self.world.device
        if len(parts) == self.world.size == 1:
            batch = parts[0].to(device)
            total = self._batch_loss(self._outputs(batch), batch, features)
            total.backward()  # type: ignore[no-untyped-call]
            return total.detach()
        counts = torch.tensor(
            [[loss_items(part, f, self.card.task.type) for f in self.card.outputs] for part in parts], device=device
        )
        weights = counts / self.world.sum(counts.sum(0))
        total = torch.zeros((), device=device)
        for part, part_weights in zip(parts, weights, strict=True):
            batch = part.to(device)
            outputs = self._outputs(batch)
            losses = [self._batch_loss(outputs, batch, [feature]) for feature in self.card.outputs]
            share = (torch.stack(losses) * part_weights).sum()
            share.backward()
            total += share.detach()
        return total

    def _outputs(self, batch: Any) -> dict[str, Tensor]:
        with autocast(self.world.device, self.precision):
            outputs = self._forward(batch)
        return {name: value.float() for name, value in outputs.items()}

    def _stop_requested(self, stop: StopRequest) -> bool:
        """Return whether any process was asked to stop; several processes look at the same steps."""
        if self.world.size > 1 and self.state.step % self.settings.log_interval:
            return False
        return self.world.any(stop.received)

    def _collect_losses(self, bar: Progress, board: Board, last: bool) -> None:
        """Read the losses back from the device, stop at one that is not finite, and extend the curve."""
        state = self.state
        values = self.world.sum(torch.stack(self._pending)).tolist()
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
            board.add_scalar("train/loss", mean, state.step)
            board.add_scalar("train/lr", self.optimizer.param_groups[0]["lr"], state.step)
            bar.update(0, loss=mean)

    def _validate(self, bar: Progress, board: Board) -> None:
        state, metric = self.state, self.val_metric
        self._require_finite_weights()
        score = float(self.world.from_leader(self._validation_score() if self.world.leads else 0.0))
        state.val_curve.append((state.step, score))
        board.add_scalar(f"val/{metric}", score, state.step)
        bar.update(0, **{f"val_{metric}": score})
        if self.world.leads:
            split, steps = self.settings.val_split, self.settings.steps
            logger.info("step %d of %d: %s %s %.4g", state.step, steps, split, metric, score)
        sign = 1 if self.higher_is_better else -1
        gain = 1.0 if self.best is None else sign * (score - self.best.score)
        if gain > 0 or (gain == 0 and self.settings.prefer_later):
            self.best = Best(state.step, score)
            if self.world.leads:
                weights = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
                facts = {"fingerprint": self.fingerprint, "best": asdict(self.best)}
                checkpoint.save_tensors(self.folder / BEST, weights, facts)

    def _validation_score(self) -> float:
        """Return the primary metric on the validation split."""
        assert self.val is not None
        size, device = self.settings.eval_batch_size, self.world.device
        decoding = self.settings.decoding
        return evaluate_model(self.model, self.val, size, device, self.precision, decoding=decoding).primary

    def _graphs_per_update(self) -> int:
        """Return how many graphs an update trains on."""
        return min(self.settings.batch_size, len(self.train))

    def _save(self) -> None:
        state = self.state
        if self.saved_step == state.step:
            return
        self._require_finite_weights()
        state.peak_memory_bytes = max(state.peak_memory_bytes, peak_memory_bytes(self.world.device))
        if self.world.leads:
            facts = {"fingerprint": self.fingerprint, "state": asdict(state)}
            tensors = checkpoint.training_tensors(self.model, self.optimizer)
            checkpoint.save_tensors(self.folder / CHECKPOINT, tensors, facts)
        self.saved_step = state.step

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
            self.state.timed_seconds += now - self._timer_started
            self.state.timed_graphs += updates * self._graphs_per_update()
        self._untimed = False
        self._timer_started = now


def make_optimizer(model: nn.Module, settings: TrainingConfig) -> torch.optim.AdamW:
    """Return AdamW (Loshchilov and Hutter, 2019) with weight decay on tensors of two or more dimensions only."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, fused=True)


def chosen_precision(precision: Literal["auto", "fp32", "bf16"], device: torch.device) -> Literal["fp32", "bf16"]:
    """Return the precision ``auto`` stands for: bf16 on CUDA devices that support it, else fp32.

    On CPUs bfloat16 autocast is an order of magnitude slower than fp32.
    """
    if precision != "auto":
        return precision
    return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"
