"""Whether the weights of an entry are those of a model that this package already has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import ResultError


def require_own_weights(dataset: str, weights: Path | None, model: str) -> None:
    """Refuse weights that equal those of a model of the package in half precision, under another name.

    Args:
        dataset: Address of the dataset.
        weights: File of the entry's weights; None where it has none.
        model: Name of the entry's model.

    Raises:
        ResultError: If the weights are those of a model of the package; the message names it.
    """
    from graphbench.training.weights.files import rows

    if weights is None:
        return
    given = _numbers(weights)
    for address, file in rows(dataset):
        if address == dataset and file.path.stem != model and _equal(given, _numbers(file.path)):
            raise ResultError(
                f"the weights are those of {file.path.stem}, a model of this package; give the entry its name, or "
                "weights of your own"
            )


def _numbers(path: Path) -> dict[str, NDArray[Any]]:
    """Return the tensors of a file of weights as the numbers that half precision keeps."""
    from safetensors.numpy import load_file

    return {name: array.astype(np.float16) for name, array in load_file(path).items() if array.dtype.kind == "f"}


def _equal(one: dict[str, NDArray[Any]], other: dict[str, NDArray[Any]]) -> bool:
    if sorted(array.shape for array in one.values()) != sorted(array.shape for array in other.values()):
        return False
    return sorted(array.tobytes() for array in one.values()) == sorted(array.tobytes() for array in other.values())
