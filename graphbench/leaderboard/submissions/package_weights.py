"""Whether the weights of an entry are those of a model that this package already has."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from graphbench.core.errors import ResultError


def refuse_package_weights(dataset: str, weights: Path, model: str) -> None:
    """Refuse weights that equal the weights of a model of the package in half precision, under another name.

    Args:
        dataset: Address of the dataset.
        weights: File of the entry's weights.
        model: Name of the entry's model.

    Raises:
        ResultError: If the weights are those of a model of the package; the message names it.
    """
    from graphbench.training.weights.files import rows

    tensors = _tensors(weights)
    for address, file in rows(dataset):
        if address == dataset and file.path.stem != model and tensors == _tensors(file.path):
            raise ResultError(
                f"the weights are those of {file.path.stem}, a model of this package; give the entry its name, or "
                "weights of your own"
            )


def _tensors(path: Path) -> list[tuple[tuple[int, ...], bytes]]:
    """Return shape and numbers, as half precision keeps them, of every tensor of a file, whatever their names."""
    from safetensors.numpy import load_file

    arrays = (array for array in load_file(path).values() if array.dtype.kind == "f")
    return sorted((array.shape, array.astype(np.float16).tobytes()) for array in arrays)
