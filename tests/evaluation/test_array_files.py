"""Files of predictions that NumPy did not write are refused with the way to write them."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphbench.core.errors import EvaluationError
from graphbench.evaluation.array_files import read_arrays


def test_arrays_come_by_name(tmp_path: Path) -> None:
    values = np.arange(6.0).reshape(3, 2)
    np.save(tmp_path / "one.npy", values)
    np.savez(tmp_path / "two.npz", reach=values, parent=values[:, 0])
    assert np.array_equal(read_arrays(tmp_path / "one.npy")["y_pred"], values)
    assert set(read_arrays(tmp_path / "two.npz")) == {"reach", "parent"}


@pytest.mark.parametrize("name", ["p.pt", "p.npy", "p.npz"])
@pytest.mark.parametrize("content", [torch.ones(3), {"y_pred": torch.ones(3)}, [1, 2]])
@pytest.mark.parametrize("old", [False, True])
def test_files_of_torch_save(tmp_path: Path, name: str, content: Any, old: bool) -> None:
    torch.save(content, tmp_path / name, _use_new_zipfile_serialization=not old)
    with pytest.raises(EvaluationError, match=r"torch\.save.*numpy\.save"):
        read_arrays(tmp_path / name)


def test_other_files(tmp_path: Path) -> None:
    path = tmp_path / "p.npy"
    for content, words in (
        (b"", "empty file"),
        (b"1,2,3\n", "is no array file; write numbers with numpy.save"),
        (pickle.dumps([1]), "was written with torch.save or pickle"),
        (b"PK\x03\x04 and no more", "is damaged"),
        (b"\x93NUMPY\x01\x00", "is damaged"),
    ):
        path.write_bytes(content)
        with pytest.raises(EvaluationError, match=words):
            read_arrays(path)
    np.save(path, np.array([None, 1]), allow_pickle=True)
    with pytest.raises(EvaluationError, match="holds Python objects"):
        read_arrays(path)
    np.save(path, np.array(3))
    with pytest.raises(EvaluationError, match="single value 3"):
        read_arrays(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "words")
    with pytest.raises(EvaluationError, match=r"entry 'notes\.txt'"):
        read_arrays(path)
    with pytest.raises(EvaluationError, match="cannot be read"):
        read_arrays(tmp_path)
