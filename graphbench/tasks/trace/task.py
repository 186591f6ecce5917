"""Algorithms that show their steps: a model predicts hints and outputs from step to step (CLRS-30)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from graphbench.core.errors import CardError, EvaluationError
from graphbench.core.validation import StrictModel
from graphbench.evaluation.array_files import read_arrays
from graphbench.evaluation.evaluator import BaseEvaluator
from graphbench.tasks.base import OptionsType, Task
from graphbench.tasks.files import SAME_LIMIT, most_array_bytes, rows_of_output, write_arrays
from graphbench.tasks.trace.evaluator import TraceEvaluator, trivial_outputs

if TYPE_CHECKING:
    from torch import Tensor

    from graphbench.data.arrays.samples import Samples
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.loader import Splits

_READING_BATCH = 256


class TraceOptions(StrictModel):
    """The options of a ``trace`` task on a card, see ``graphbench.data.batches.trajectory_inputs``.

    Attributes:
        positions: Scalar input of nodes that random positions may replace.
        constant_hints: Hint -> name of the input that may replace it.
    """

    positions: str | None = None
    constant_hints: dict[str, str] = Field(default_factory=dict)


class TraceTask(Task):
    """Predict the hints of every step of an algorithm, and its outputs."""

    type: ClassVar[str] = "trace"
    options_type: ClassVar[OptionsType] = TraceOptions
    options: TraceOptions
    endings: ClassVar[tuple[str, ...]] = (".npz", ".npy")
    samples: ClassVar[str] = "trajectories"
    validation_seed: ClassVar[int] = 20_221_025

    def check_card(self) -> None:
        """Refuse a card without hints, and outputs of several values per item, which no decoder of trajectories has."""
        super().check_card()
        if not self.card.hints:
            raise CardError(f"{self.card.path} ({self.card.address}): a trace task needs at least one hint")
        wide = [f for f in self.card.outputs if f.width > 1]
        if wide:
            raise CardError(
                f"{self.card.path} ({self.card.address}): the output {wide[0].name!r} of a trace task is a "
                f"{wide[0].type_name}; make each column one output of the type scalar"
            )

    # ------------------------------------------------------------------------------------------------ splits

    def protocol(self, train_split: str) -> str | None:
        """Return the card's protocol, or the one that a training split is named after (``train_multi_size``)."""
        return train_split.removeprefix("train").lstrip("_") or self.card.protocol

    def is_stored(self, split: str) -> bool:
        """Return whether a split lies in a file: training data of several sizes are drawn while training."""
        return not (split.startswith("train_") and self.card.split(split).parameters.get("lengths"))

    def open(self, data: Splits, split: str, seed: int) -> Any:
        """Return a stored split, or an endless stream of samples."""
        if self.is_stored(split):
            return data[split]
        from graphbench.tasks.trace.stream import TrajectoryStream

        return TrajectoryStream(data.card, split, seed)

    def data_mark(self, train: Any, val: GraphDataset) -> str:
        """Return the text that distinguishes the data of a run from other data."""
        if self.is_stored(train.split):
            return f"{self.card.address} {train.content_hash} {val.content_hash}"
        return f"{self.card.address} {train.split} {self.card.fingerprint(0)} {val.content_hash}"

    # ------------------------------------------------------------------------------------------------ batches

    def per_update(self, train: Any, size: int) -> int:
        """Return how many samples one update trains on."""
        return size

    def batches(
        self, train: Any, size: int, *, seed: int, start: int = 0, share: tuple[int, int] = (0, 1)
    ) -> Iterator[Any]:
        """Yield training batches without end: of a stored split epoch after epoch, or of a stream."""
        if self.is_stored(train.split):
            yield from super().batches(train, size, seed=seed, start=start, share=share)
        else:
            yield from train.batches(size, start, share)

    def normalisation_batches(self, train: Any) -> Iterable[Any]:
        """Return nothing: these models take no statistics from training data."""
        return ()

    def normalisation_batch(self, train: Any) -> Any:
        """Return nothing: these models take no statistics from training data."""
        return None

    # ------------------------------------------------------------------------------------------------ training

    def losses(self, outputs: Any, batch: Any) -> dict[str, Tensor]:
        """Return the mean loss of every output and hint; see ``graphbench.models.losses.trace_losses``."""
        from graphbench.models.losses import trace_losses

        return trace_losses(outputs, batch, self.card.features)

    def loss_weights(self, batch: Any) -> dict[str, Any]:
        """Return the number of positions behind the loss of every output and hint."""
        from graphbench.models.losses import trace_loss_weights

        return trace_loss_weights(batch, self.card.features)

    # ------------------------------------------------------------------------------------------------ scores

    def predictions(self, outputs: Mapping[str, Tensor], batch: Any) -> Mapping[str, Tensor]:
        """Return the outputs, which the model has decided on: masks as probabilities, classes and nodes by number."""
        return outputs

    def evaluator(self, *, scores: str | None = None, expected_graphs: int | None = None) -> BaseEvaluator:
        """Return an evaluator over all outputs."""
        metrics, card = self.card.metrics, self.card
        options: dict[str, Any] = {"scores": scores, "expected_graphs": expected_graphs}
        return TraceEvaluator(card.outputs, metrics.primary, metrics.also, weights=card.task.weights, **options)

    def floors(self, train: Samples, samples: Samples) -> dict[str, dict[str, float]]:
        """Return the scores of predictors that know nothing of an algorithm; none where sizes differ."""
        from graphbench.data.batches.trajectory_batch import shaped_values

        if len(np.unique(samples.num_nodes)) > 1:
            return {}
        truth = shaped_values(samples, self.card.outputs)
        predicted: dict[str, dict[str, NDArray[Any]]] = {}
        for feature in self.card.outputs:
            targets = train.values[feature.name]
            scored = targets[targets != -1]
            rate = float(np.bincount(scored).argmax() if feature.kind == "categorical" else scored.mean())
            for name, values in trivial_outputs(feature, rate, truth[feature.name]).items():
                predicted.setdefault(name, {})[feature.name] = values
        return {name: self.evaluator().evaluate(truth, outputs).to_dict() for name, outputs in predicted.items()}

    # ------------------------------------------------------------------------------------------------ files

    def describe_rows(self) -> str:
        """Return a description of the arrays of outputs."""
        names = ", ".join(feature.name for feature in self.card.outputs)
        return f"an array per output ({names}), with a value per item, sample after sample"

    def read_predictions(self, path: Path, split: GraphDataset, scores: str | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield (batch, outputs) from a file with an array per output.

        An array has the form ``[B, ...]`` of a ``TrajectoryBatch``, or is flat, sample after sample; splits of several
        sizes need the flat form.
        """
        names = [feature.name for feature in self.card.outputs]
        nodes = split.samples.num_nodes.astype(np.int64)
        pairs = int((nodes**2).sum())  # which have rows where edges are complete
        most_bytes = most_array_bytes(split, items=len(split) + int(nodes.sum()) + pairs)
        arrays = rows_of_output(read_arrays(path, most_bytes), names, path)
        taken, sample = dict.fromkeys(names, 0), 0
        alike = len(np.unique(np.diff(split.flat.node_ptr))) == 1
        for batch in split.batches(_READING_BATCH if alike else 1):
            shapes = {name: tuple(batch.outputs[name].shape) for name in names}
            outputs = {name: _part(arrays[name], shapes[name], sample, taken[name]) for name in names}
            for name, part in outputs.items():
                if part is None:
                    self._refuse(name, arrays[name], split, path)
            yield batch, outputs
            sample += batch.num_graphs
            taken = {name: taken[name] + int(np.prod(shapes[name])) for name in names}
        for name, count in taken.items():
            if count != arrays[name].size:
                self._refuse(name, arrays[name], split, path)

    def _refuse(self, name: str, values: NDArray[Any], split: GraphDataset, path: Path) -> NoReturn:
        raise EvaluationError(
            f"{path} has {values.size:,} values of {name!r}, which do not fit the {len(split):,} samples of "
            f"{self.card.address} {split.split}; predict every item of every sample, and {SAME_LIMIT}"
        )

    def write_predictions(self, path: Path, predictions: Iterable[Mapping[str, Any]]) -> Path:
        """Write a flat array per output to a ``.npz`` file, sample after sample."""
        parts: dict[str, list[Any]] = {f.name: [] for f in self.card.outputs}
        for batch in predictions:
            for name, values in parts.items():
                values.append(np.asarray(batch[name]).reshape(-1))
        return write_arrays(path, {name: np.concatenate(values) for name, values in parts.items()})


def _part(values: NDArray[Any], shape: tuple[int, ...], sample: int, taken: int) -> NDArray[Any] | None:
    """Return the predictions of a batch whose output has a shape; None where the values end before."""
    if values.ndim > 1:
        return values[sample : sample + shape[0]] if sample + shape[0] <= len(values) else None
    part = values[taken : taken + int(np.prod(shape))]
    return part.reshape(shape) if part.size == np.prod(shape) else None
