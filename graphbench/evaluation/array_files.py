"""Arrays of predictions, read from files of NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import EvaluationError

_NUMPY_STARTS = (b"\x93NUMPY", b"PK")  # .npy, and .npz, which is a ZIP file
_PICKLE_START = b"\x80"  # of files of pickle.dump, and of torch.save before PyTorch 1.6
_INSTEAD = "write the numbers with numpy.save(file, predictions.numpy())"


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the arrays of a ``.npz`` file, or that of a ``.npy`` file under the name ``y_pred``.

    Raises:
        EvaluationError: If the file cannot be read or holds something else: what ``torch.save`` or ``pickle`` wrote, no
            numbers, or a single value.
    """
    _require_numpy_file(path)
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            arrays = {"y_pred": loaded}
        else:
            with loaded:
                arrays = {name: loaded[name] for name in loaded.files}
    except (OSError, ValueError, EOFError, BadZipFile, NotImplementedError, MemoryError) as error:
        reason = "it holds Python objects, not numbers" if "pickle" in str(error) else error
        raise EvaluationError(f"cannot read predictions from {path}: {reason}; write them with numpy.save") from error
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise EvaluationError(f"{path}: its entry {name!r} is no array; write the file with numpy.savez")
        if array.ndim == 0:
            raise EvaluationError(f"{path} holds the single value {array}; save one row per item")
    return arrays


def _require_numpy_file(path: Path) -> None:
    try:
        with path.open("rb") as file:
            start = file.read(max(map(len, _NUMPY_STARTS)))
        by_torch = start.startswith(_PICKLE_START) or (start.startswith(b"PK") and _is_of_torch(path))
    except FileNotFoundError:
        raise EvaluationError(f"cannot read predictions from {path}: the file does not exist") from None
    except (OSError, ValueError, BadZipFile) as error:
        raise EvaluationError(f"cannot read predictions from {path}: {error}; write them with numpy.save") from error
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
    """Return whether a ZIP file is what ``torch.save`` writes: it has a pickled ``data.pkl``."""
    with ZipFile(path) as archive:
        return any(name.endswith("data.pkl") for name in archive.namelist())
