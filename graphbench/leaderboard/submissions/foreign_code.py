"""The scores of an author's code, which runs in a closed process and sees batches without labels."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.damage import damage_named
from graphbench.core.errors import ResultError
from graphbench.core.files import file_sha256
from graphbench.core.processes.isolated import IsolationLimits, run_isolated
from graphbench.leaderboard.submissions.predictions import most_array_bytes, require_readable
from graphbench.verification import answer

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.evaluation.score import Score
    from graphbench.tasks.base import Task

_BATCH = 64


def scores_of_code(
    code: Path,
    weights: Path | None,
    splits: Mapping[str, GraphDataset],
    scores: str | None,
    *,
    hidden: Sequence[Path],
    limits: IsolationLimits,
    scramble: bool = False,
) -> dict[str, tuple[Score, str]]:
    """Return name -> the score of an author's code on a split, and the hash of its predictions.

    Args:
        code: Folder of the code, with ``model.py``.
        weights: File of the weights; None where there are none.
        splits: Name -> split, all of one dataset.
        scores: Kind of floating-point predictions; None for the default of the task.
        hidden: Folders of data, which the code must not see.
        limits: Limits of the closed process.
        scramble: Give the code weights whose numbers are shuffled.

    Raises:
        GraphBenchError: If no closed process can be started, or the code or its predictions are refused.
    """
    from graphbench.tasks.registry import task_of

    tasks = {name: task_of(split.card) for name, split in splits.items()}
    with tempfile.TemporaryDirectory(prefix="graphbench-sealed-") as scratch:
        inputs, written = Path(scratch, "inputs"), Path(scratch, "out")
        inputs.mkdir()
        written.mkdir()
        for name, split in splits.items():
            _write_inputs(split, tasks[name].file_batches(split, _BATCH), inputs / f"{name}.pt")
        readable = {answer.INPUTS: inputs, answer.CODE: code}
        if weights is not None:
            readable[answer.WEIGHTS] = _scrambled(weights, Path(scratch)) if scramble else weights
        address = next(iter(splits.values())).card.address
        run_isolated(answer.MODULE, [address], readable, written, hidden=hidden, limits=limits)
        return {name: _scored(tasks[name], written, name, split, scores) for name, split in splits.items()}


def _scored(task: Task, folder: Path, name: str, split: GraphDataset, stated: str | None) -> tuple[Score, str]:
    """Return the score of a file that the child has written, and the hash of the file."""
    predictions_file = task.find_predictions(folder, name)
    if predictions_file is None or predictions_file.is_symlink():
        raise ResultError("the code ended without predictions")
    require_readable(predictions_file, len(split), most_array_bytes(split))
    return task.score_file(predictions_file, split, stated)[split.split], file_sha256(predictions_file)


def _write_inputs(split: GraphDataset, batches: Any, path: Path) -> None:
    """Write the batches of a split without labels.

    Raises:
        ResultError: If the task's batches are no batches of graphs.
    """
    import torch

    from graphbench.data.batches.inputs_only import fields_without_labels

    kept = []
    for batch in batches:
        fields = fields_without_labels(batch, split.card)
        if fields is None:
            raise ResultError(
                f"batches of {split.card.address} are no PyG batches, and only these are given to an author's code; "
                "models of this package are verified on all datasets"
            )
        kept.append(fields)
    torch.save(kept, path)


def _scrambled(weights: Path, scratch: Path) -> Path:
    """Write the weights with the numbers of every tensor in a random order, the same one each time."""
    from safetensors.numpy import load_file, save_file

    random = np.random.default_rng(0)
    tensors = {name: _shuffled(array, random) for name, array in load_file(weights).items()}
    path = scratch / "scrambled.safetensors"
    save_file(tensors, path, _metadata_of(weights))
    return path


def _shuffled(array: NDArray[Any], random: np.random.Generator) -> NDArray[Any]:
    """Return the numbers of an array in another order than before, where they are not all equal."""
    shuffled = random.permuted(array.ravel())
    for _ in range(shuffled.size):
        if not np.array_equal(shuffled, array.ravel()):
            break
        shuffled = np.roll(shuffled, 1)
    return shuffled.reshape(array.shape)


def numbers_in(weights: Path) -> int:
    """Return how many numbers the tensors of a file of weights hold.

    Raises:
        StoreError: If the file is damaged.
    """
    from safetensors import safe_open

    with damage_named(weights, remedy="write it again"), safe_open(weights, framework="numpy") as file:
        return sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118 (no mapping)


def _metadata_of(weights: Path) -> dict[str, str] | None:
    from safetensors import safe_open

    with safe_open(weights, framework="numpy") as file:
        return file.metadata() or None
