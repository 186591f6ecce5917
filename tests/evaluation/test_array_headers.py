"""Sizes that files of arrays declare: right ones are found, false ones are refused before anything is loaded."""

from __future__ import annotations

import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from graphbench.core.errors import EvaluationError
from graphbench.evaluation import array_headers
from graphbench.evaluation.array_headers import MOST_ARRAYS, require_declared_sizes

MOST = 2**30


def header(shape, kind="<f4"):
    """Return the header of an array, as numpy.save writes it."""
    text = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (63 - (len(text) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@pytest.mark.parametrize("kind", ["float32", "float16", "int64", "bool", "uint8", "complex64", "U7", "S3"])
@pytest.mark.parametrize("shape", [(0,), (3,), (4, 5), (2, 3, 4)])
def test_sizes_of_what_numpy_writes_are_those_of_the_arrays(tmp_path, kind, shape):
    array = np.zeros(shape, kind)
    np.save(tmp_path / "a.npy", array)
    assert require_declared_sizes(tmp_path / "a.npy", MOST) == array.nbytes
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "a.npz", a=array, b=array.T)
        loaded = np.load(tmp_path / "a.npz")
        assert loaded["a"].nbytes + loaded["b"].nbytes <= require_declared_sizes(tmp_path / "a.npz", MOST)


def refused(path, most=MOST):
    """Return why a file is refused; little memory may be taken for it."""
    tracemalloc.start()
    with pytest.raises(EvaluationError) as error:
        require_declared_sizes(path, most)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 2**20
    return str(error.value)


def test_a_header_of_petabytes_is_refused(tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(header((10**12, 1000)) + b"\0" * 64)
    assert "holds 4,000,000,000,000,000 bytes of arrays, more than the 1,073,741,824 that are read" in refused(path)
    path.write_bytes(header((10**40,)) + b"\0" * 64)
    assert "bytes of arrays" in refused(path)
    path.write_bytes(header((2**20,)) + b"\0" * 64)
    assert "says that it holds [1048576] float32, which are 4,194,304 bytes, but has 64" in refused(path)
    path.write_bytes(header((4,)) + b"\0" * 64)
    assert "which are 16 bytes, but has 64" in refused(path)
    path.write_bytes(header((-4, -4)) + b"\0" * 64)
    assert "has the shape [-4, -4]" in refused(path)


def test_a_bomb_in_a_zip_file_is_refused_by_what_it_declares(tmp_path):
    path = tmp_path / "a.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("y_pred.npy", "w", force_zip64=True) as file,
    ):
        file.write(header((2**28,)))
        for _ in range(64):
            file.write(bytes(2**20))
    assert path.stat().st_size < 2**18
    assert "holds 67,108,992 bytes of arrays, more than the 1,048,576" in refused(path, 2**20)
    assert "which are 1,073,741,824 bytes, but has 67,108,864" in refused(path, 2**31)


def test_a_zip_file_that_declares_too_little_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, y_pred=np.zeros(1000))
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = struct.pack("<I", 200)  # the size in the list of entries
    path.write_bytes(content)
    assert "Bad CRC-32 for file 'y_pred.npy'" in refused(path)


def test_too_many_other_and_equal_entries_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, **{f"a{i}": np.zeros(1) for i in range(MOST_ARRAYS + 1)})
    assert "has 257 entries" in refused(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../evil.sh", "rm -rf /")
    assert "has the entry '../../evil.sh', which is no array" in refused(path)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "w") as archive:
        for _ in range(2):
            archive.writestr("y_pred.npy", header((1,)) + b"\0" * 4)
    assert "has two entries 'y_pred.npy'" in refused(path)


def test_objects_and_records_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], object), allow_pickle=True)
    assert "holds Python objects, which are never unpickled" in refused(tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", y_pred=np.array([print], object))
    assert "holds Python objects, which are never unpickled" in refused(tmp_path / "a.npz")
    np.save(tmp_path / "a.npy", np.zeros(2, [("a", "f4"), ("b", "i4")]))
    assert "holds records" in refused(tmp_path / "a.npy")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        b"\x93NUMPY",
        b"\x93NUMPY\x09\x00" + b"\0" * 40,
        b"\x93NUMPY\x01\x00\xff\xff{",
        header((2,)).replace(b"(2,)", b"(2+2j,)") + b"\0" * 8,
        header((2,)).replace(b"'shape'", b"'other'") + b"\0" * 8,
        header((2,)).replace(b"<f4", b"<zz") + b"\0" * 8,
        header((2,)).replace(b"(2,)", b"__import__('os').system('true')") + b"\0" * 8,
        pickle.dumps([1, 2]),
        b"version https://git-lfs.github.com/spec/v1\n",
    ],
)
@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_what_is_no_array_file_is_refused(tmp_path, content, name):
    (tmp_path / name).write_bytes(content)
    assert str(tmp_path / name) in refused(tmp_path / name)


def test_a_zip_file_under_the_name_of_an_array_is_checked_as_one(tmp_path):
    np.savez(tmp_path / "a.npz", y_pred=np.zeros(2**10))
    (tmp_path / "a.npz").rename(tmp_path / "a.npy")
    assert "bytes of arrays, more than the 1,024" in refused(tmp_path / "a.npy", 1024)


def test_a_list_of_entries_is_not_read_before_its_length_is_known(tmp_path, monkeypatch):
    """Numbers in the last record alone are enough to be refused; a comment behind it hides nothing."""
    path = tmp_path / "a.npz"
    np.savez(path, y_pred=np.zeros(3))
    content = path.read_bytes()
    end = content.rindex(b"PK\x05\x06")
    monkeypatch.setattr(array_headers, "ZipFile", None)  # which would read the list
    for entries, size, comment in [(300, 100, b""), (1, 2**30, b""), (300, 100, b"PK and more")]:
        last = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, entries, entries, size, 0, len(comment)) + comment
        path.write_bytes(content[:end] + last)
        assert f"at most {MOST_ARRAYS} arrays are read" in refused(path)
    large = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 10**6, 10**6, 100, 0)
    path.write_bytes(content[:end] + large + struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1) + content[end:])
    assert "has 1,000,000 entries" in refused(path)
