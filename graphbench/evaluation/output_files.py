"""Score what a file holds of the outputs of an algorithm, for one split."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import EvaluationError
from graphbench.evaluation.evaluator import Evaluator, Score

if TYPE_CHECKING:
    from graphbench.data.dataset import GraphDataset

_AT_ONCE = 256


def score_outputs(dataset: GraphDataset, found: Mapping[str, NDArray[Any]], scores: str, path: Path) -> Score:
    """Return the score of the outputs of all samples of a split.

    Args:
        dataset: The split.
        found: Output name -> ``[B, ...]`` as a ``TrajectoryBatch`` has them, or flat, sample after sample; the only
            output may be named ``y_pred``. Splits of several sizes need the flat form.
        scores: What floating-point predictions of masks are.
        path: Where they come from, for messages.

    Raises:
        EvaluationError: If an output is missing, has not one value per item of the split, or a value is not allowed.
    """
    names = [feature.name for feature in dataset.card.outputs]
    arrays = _by_output(found, names, path)
    evaluator = Evaluator(dataset.card, scores=scores, expected_graphs=len(dataset))
    taken, sample = dict.fromkeys(names, 0), 0
    alike = len(np.unique(np.diff(dataset.flat.node_ptr))) == 1
    for batch in dataset.batches(_AT_ONCE if alike else 1):
        shapes = {name: tuple(batch.outputs[name].shape) for name in names}
        predicted = {}
        for name in names:
            part = _part(arrays[name], shapes[name], sample, taken[name])
            predicted[name] = _refuse(name, arrays[name], dataset, path) if part is None else part
        evaluator.update(batch.outputs, predicted)
        sample += batch.num_graphs
        taken = {name: taken[name] + int(np.prod(shapes[name])) for name in names}
    for name, count in taken.items():
        if count != arrays[name].size:
            _refuse(name, arrays[name], dataset, path)
    return evaluator.compute()


def _refuse(name: str, values: NDArray[Any], dataset: GraphDataset, path: Path) -> NoReturn:
    raise EvaluationError(
        f"{path} has {values.size:,} values of {name!r}, which are not those of the {len(dataset):,} samples of "
        f"{dataset.card.address} {dataset.split}; predict every item of every sample (--limit N scores the first N)"
    )


def _part(values: NDArray[Any], shape: tuple[int, ...], sample: int, taken: int) -> NDArray[Any] | None:
    """Return the predictions of a batch whose output has a shape; None where the values end before."""
    if values.ndim > 1:
        return values[sample : sample + shape[0]] if sample + shape[0] <= len(values) else None
    part = values[taken : taken + int(np.prod(shape))]
    return part.reshape(shape) if part.size == np.prod(shape) else None


def _by_output(found: Mapping[str, NDArray[Any]], names: list[str], path: Path) -> dict[str, NDArray[Any]]:
    if len(names) == 1 and names[0] not in found and "y_pred" in found:
        return {names[0]: found["y_pred"]}
    missing = [name for name in names if name not in found]
    if missing:
        raise EvaluationError(
            f"{path} has no array {', '.join(map(repr, missing))}, only {', '.join(map(repr, found)) or 'nothing'}; "
            f"save one array per output: numpy.savez(file, {', '.join(f'{name}=...' for name in names)})"
        )
    return {name: found[name] for name in names}
