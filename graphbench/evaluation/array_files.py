"""Arrays of predictions, read from files of NumPy."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from graphbench.core.damage import damage_named
from graphbench.core.errors import EvaluationError
from graphbench.core.untrusted import open_regular
from graphbench.evaluation.array_headers import require_declared_sizes

_NUMPY_STARTS = (b"\x93NUMPY", b"PK")  # .npy, and .npz, which is a ZIP file
_PICKLE_START = b"\x80"  # of files of pickle.dump, and of torch.save before PyTorch 1.6
LEAST_ARRAY_BYTES = 1 << 26
"""Bytes of arrays that are read from a file of any size."""

MOST_GROWTH = 100
"""Largest ratio of the unpacked to the packed size of a file, where the sizes of its arrays are not prescribed."""

_INSTEAD = "write the numbers with numpy.save(file, predictions.numpy())"


def most_unpacked(path: Path) -> int:
    """Return the most bytes of arrays that a file of its size can plausibly unpack to."""
    return LEAST_ARRAY_BYTES + MOST_GROWTH * (path.stat().st_size if path.is_file() else 0)


def read_arrays(path: Path, most_bytes: int | None = None, *, numbers: Collection[str] = ()) -> dict[str, NDArray[Any]]:
    """Return the arrays of a ``.npz`` file, or the array of a ``.npy`` file under the name ``y_pred``.

    Args:
        path: The file.
        most_bytes: Most bytes of all arrays together; None for the limit of :func:`most_unpacked`. The declared size
            is compared before anything is loaded, as a small file can unpack to any size.
        numbers: Names of arrays that may hold a single value.

    Raises:
        EvaluationError: If the file cannot be read, is damaged, encrypted or too large, or holds something else: a
            file of ``torch.save`` or ``pickle``, no numbers, or a single value.
    """
    _require_numpy_file(path)
    require_declared_sizes(path, most_unpacked(path) if most_bytes is None else most_bytes)
    with damage_named(path, EvaluationError, "write the predictions again with numpy.save"):
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            arrays = {"y_pred": loaded}
        else:
            with loaded:
                arrays = {name: loaded[name] for name in loaded.files}
    for name, array in arrays.items():
        if array.ndim == 0 and name not in numbers:
            raise EvaluationError(f"{path} holds the single value {array}; save one row per item")
    return arrays


def _require_numpy_file(path: Path) -> None:
    if not path.exists():
        raise EvaluationError(f"cannot read predictions from {path}: the file does not exist")
    with damage_named(path, EvaluationError, "write the predictions again with numpy.save"):
        with open_regular(path) as file:
            start = file.read(max(map(len, _NUMPY_STARTS)))
        by_torch = start.startswith(_PICKLE_START) or (start.startswith(b"PK") and _is_of_torch(path))
    if not start:
        raise EvaluationError(f"the predictions {path} are an empty file; write them with numpy.save")
    if by_torch:
        raise EvaluationError(f"{path} was written with torch.save or pickle, which is never unpickled; {_INSTEAD}")
    if not start.startswith(_NUMPY_STARTS):
        raise EvaluationError(
            f"{path} is no array file; write numbers with numpy.save (.npy, .npz), texts and names of classes into a "
            ".txt or .jsonl file, one per line"
        )


def _is_of_torch(path: Path) -> bool:
    """Return whether ``torch.save`` wrote a ZIP file: it has a pickled ``data.pkl``."""
    with ZipFile(path) as archive:
        return any(name.endswith("data.pkl") for name in archive.namelist())
