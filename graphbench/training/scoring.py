"""Scores of a model on a split, streamed batch by batch, and how long predictions take."""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import nn

from graphbench.core.errors import ConfigError, EvaluationError
from graphbench.core.progress import progress_bar
from graphbench.data.batches.batching import on_device
from graphbench.evaluation.metrics.bootstrap import replicate_seed
from graphbench.models.base import TaskModel, largest_batch
from graphbench.tasks.base import FurtherBatches, Task, named_scores
from graphbench.training.failures import is_out_of_memory, out_of_memory

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.evaluation.score import Score
    from graphbench.training.context import TaskRun
    from graphbench.training.settings import TrainingConfig

logger = logging.getLogger(__name__)

Precision = Literal["fp32", "tf32", "bf16"]
BatchSize = int | Literal["auto"]


def chosen_precision(precision: Literal["auto", "fp32", "tf32", "bf16"], device: torch.device) -> Precision:
    """Return the precision ``auto`` stands for: bf16 on CUDA devices that support it, else fp32.

    On a CPU bfloat16 autocast is faster for wide models alone, and only with AVX512-BF16 or AMX; elsewhere it is an
    order of magnitude slower (``python -m benchmarks.precision``). ``auto`` takes it on no CPU, so that the same run
    has the same precision on every processor.

    Raises:
        ConfigError: If TF32 is asked for on a CPU, which has no such numbers.
    """
    if precision == "tf32" and device.type != "cuda":
        raise ConfigError(f"training.precision is tf32, which {device} does not have; set it to fp32, bf16 or auto")
    if precision != "auto":
        return precision
    return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"


def autocast(device: torch.device, precision: Precision) -> AbstractContextManager[Any]:
    """Return the context a model runs in: bfloat16 autocast, matrix products in TF32, or none."""
    return torch.autocast(device.type, torch.bfloat16) if precision == "bf16" else matrix_products(precision)


@contextmanager
def matrix_products(precision: Precision) -> Iterator[None]:
    """Within the block, let a GPU multiply float32 matrices in TF32 if the precision is TF32, backward passes too."""
    if precision != "tf32":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def evaluating(model: nn.Module | Callable[..., Any]) -> Iterator[None]:
    """Put a model into evaluation mode for the block, and back into the mode it was in; a function has no modes."""
    module = model if isinstance(model, nn.Module) else nn.Module()
    was_training = module.training
    module.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        module.train(was_training)


@dataclass(frozen=True)
class ModelOnDevice:
    """A model as a function of a batch on the CPU, see :class:`~graphbench.tasks.base.BoundModel`.

    Attributes:
        model: The model, on ``device``.
        task_id: Name that the model has for the dataset.
        device: Where to compute.
        precision: ``bf16`` runs the model under autocast, ``tf32`` multiplies matrices with shorter factors.
        generator: Draws inputs that are random; None for the global generator.
    """

    model: Any
    task_id: str
    device: torch.device
    precision: Precision = "fp32"
    generator: torch.Generator | None = None

    @property
    def gives_predictions(self) -> bool:
        """Whether the model is no ``TaskModel``: then it returns predictions."""
        return not isinstance(self.model, TaskModel)

    def __call__(self, batch: Any) -> Any:
        """Return the outputs of a ``TaskModel`` for a batch, or the predictions of another model."""
        if self.gives_predictions:
            with autocast(self.device, self.precision):
                return self.model(on_device(batch, self.device))
        seen = on_device(self.model.prepare(batch, self.task_id, self.generator), self.device)
        with autocast(self.device, self.precision):
            return self.model.predict(seen, self.task_id)


def score_split(
    model: Any,
    task: Task,
    dataset: GraphDataset,
    *,
    name: str | None = None,
    task_id: str | None = None,
    batch_size: BatchSize = "auto",
    device: torch.device,
    precision: Precision = "fp32",
    progress: bool | None = False,
    selecting: bool = False,
    scores: str | None = None,
) -> dict[str, Score]:
    """Return the score of a model on one split, and the scores of its separately reported parts, by name.

    Predictions are scored batch by batch and dropped; scores cover the whole split and are never averages over batches.

    Args:
        model: The model, on ``device``; it is put back into the mode (training or evaluation) it was in. One that is no
            ``TaskModel`` is called with each batch, and returns predictions.
        task: The task of the dataset.
        dataset: The split.
        name: Name of the split in the answer; None for the split's name.
        task_id: Name the model has for the dataset; None for its address.
        batch_size: Samples at once; ``auto`` fits it to the model and the largest samples. A GPU that runs out of
            memory gets half as many, down to one.
        device: Where to compute.
        precision: ``bf16`` runs the model under autocast, ``tf32`` multiplies matrices with shorter factors.
        progress: Show a progress bar; None shows it in a terminal.
        selecting: Whether models are selected on the split: inputs that are random in training are drawn then, the
            same ones every time.
        scores: Scale of floating-point predictions of a model that is no ``TaskModel``; None for the task's default.

    Raises:
        EvaluationError: If the split is empty or a prediction is not finite.
        TrainingError: If a single sample does not fit into the device's memory.
    """
    if len(dataset) == 0:
        raise EvaluationError(f"the split {dataset.split!r} of {dataset.card.address} is empty; raise limit")
    task.require_labels(dataset)
    task.follow(model)
    id_ = task_id if task_id is not None else dataset.card.address
    size = largest_batch(model, dataset) if batch_size == "auto" else batch_size

    def score() -> dict[str, Score]:
        evaluator = task.evaluator(scores=scores)
        if not selecting:
            evaluator.draw_replicates(replicate_seed(task.card.address, dataset.split))
        generator = torch.Generator().manual_seed(task.validation_seed) if selecting else None
        bound = ModelOnDevice(model, id_, device, precision, generator)
        label = f"scoring {name or dataset.split}"
        further = FurtherBatches(0, ()) if selecting else task.further_batches(dataset, size)
        with progress_bar(len(dataset) + further.samples, label, task.samples, progress) as bar, evaluating(model):
            for batch in chain(task.scoring_batches(dataset, size, model), further.batches):
                started = time.perf_counter()
                predictions = task.predict(bound, batch)
                finish_work(device)
                task.score(evaluator, batch, predictions, time.perf_counter() - started)
                bar.update(batch.num_graphs)
        return named_scores(name or dataset.split, evaluator)

    while True:
        try:
            return score()
        except (MemoryError, RuntimeError) as error:
            size = smaller_batch(error, size, device)


def smaller_batch(error: Exception, size: int, device: torch.device) -> int:
    """Return half a batch size after an error, if the device ran out of memory; raise the error otherwise.

    Raises:
        TrainingError: If a single sample does not fit into the memory.
    """
    if not is_out_of_memory(error):
        raise error
    if size == 1:
        raise out_of_memory("evaluating", 1, "samples", "use a smaller model or device='cpu'") from error
    torch.cuda.empty_cache()
    logger.warning("out of memory on %s; evaluating %d samples at once", device, size // 2)
    return size // 2


def validation_loss(
    model: Any, id_: str, run: TaskRun, settings: TrainingConfig, device: torch.device, precision: Precision
) -> float:
    """Return the mean loss over all terms of the validation split."""
    task, size = run.task, max(1, settings.batch_size // settings.accumulate)
    generator = torch.Generator().manual_seed(task.validation_seed)
    totals: dict[str, float] = {}
    counts: dict[str, float] = {}
    with evaluating(model), torch.no_grad():
        for batch in task.validation_batches(run.val, size):
            seen = on_device(model.prepare(batch, id_, generator), device)
            with autocast(device, precision):
                outputs = model(seen, id_)
            for name, loss in task.losses(outputs, seen).items():
                count = float(task.loss_weights(seen)[name])
                totals[name] = totals.get(name, 0.0) + float(loss) * count
                counts[name] = counts.get(name, 0.0) + count
    weights = task.card.task.weights
    return sum(weights.get(name, 1.0) * total / counts[name] for name, total in totals.items())


def finish_work(device: torch.device) -> None:
    """Return when a device has done all work that was given to it; a CPU has."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


_ENOUGH_SECONDS = 30.0
"""Predictions are not timed again after this time, since slow predictions vary little."""


def latencies_ms(
    model: Any, run: TaskRun, id_: str, device: torch.device, precision: Precision = "fp32"
) -> tuple[float, float]:
    """Return median milliseconds to predict one sample alone, and one within a batch.

    The samples are the first ones of the validation split (of the training split where that is empty); the task says
    how many; a measurement that has taken half a minute is not repeated. A prediction is timed until it is complete:
    positional encodings, the model, all steps of a rollout or a text, decoding, and the way into memory are part of the
    time. Fetching the samples is not.

    Args:
        model: The model, on ``device``.
        run: The dataset.
        id_: Name that the model has for the dataset.
        device: Where to compute.
        precision: ``bf16`` runs the model under autocast, ``tf32`` multiplies matrices with shorter factors.
    """
    task = run.task
    alone, together, repeats = task.timing
    split = task.timed(run.val if len(run.val) else run.train, model)
    size = min(together, len(split), model.largest_batch(split))

    bound = ModelOnDevice(model, id_, device, precision)

    def seconds(batch: Any) -> float:
        finish_work(device)  # includes earlier work
        started = time.perf_counter()
        with evaluating(model):
            task.completed(task.predict(bound, batch), batch)
        finish_work(device)
        return time.perf_counter() - started

    def median(batches: Iterable[Any]) -> float:
        taken: list[float] = []
        for batch in batches:
            taken.append(seconds(batch))
            if sum(taken) > _ENOUGH_SECONDS:
                break
        return statistics.median(taken)

    single = median(task.scoring_batches(split[: min(alone, len(split))], 1))
    (batch,) = task.scoring_batches(split[:size], size)
    return 1e3 * single, 1e3 * median([batch] * repeats) / int(batch.num_graphs)
