"""Files of torch.save against torch itself; whatever would run code is refused."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.errors import StoreError
from graphbench.data.sources.torch_files import read_torch_file

DTYPES = [torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def saved(value, tmp_path, name="a.pt"):
    torch.save(value, tmp_path / name)
    return tmp_path / name


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1000),
    dtype=st.sampled_from(DTYPES),
    shape=st.lists(st.integers(0, 5), max_size=3),
    skip=st.integers(0, 3),
    turned=st.booleans(),
)
def test_tensors_are_those_of_torch(tmp_path_factory, seed, dtype, shape, skip, turned):
    whole = torch.randint(0, 100, (*shape, 7), generator=torch.Generator().manual_seed(seed)).to(dtype)
    tensor = whole[..., skip:]
    tensor = tensor.transpose(0, -1) if turned else tensor
    found = read_torch_file(saved(tensor, tmp_path_factory.mktemp("t")))
    assert found.shape == tuple(tensor.shape) and np.array_equal(found, tensor.numpy())
    assert found.dtype == tensor.numpy().dtype


def test_other_types_and_collections(tmp_path):
    values = torch.tensor([1.5, -2.25, 3e38]).to(torch.bfloat16)
    value = {
        "b": values,
        "m": torch.tensor([True, False]),
        "s": torch.tensor(3),
        "ids": {"12", "7"},
        "rows": [(1, 2.5, None, True), ()],
        "state": OrderedDict(w=torch.arange(6).reshape(2, 3)),
        "big": 2**40,
    }
    found = read_torch_file(saved(value, tmp_path))
    assert np.array_equal(found["b"], values.float().numpy()) and found["b"].dtype == np.float32
    assert found["m"].tolist() == [True, False] and found["s"].shape == () and found["s"] == 3
    assert found["ids"] == {"12", "7"} and found["rows"] == value["rows"] and found["big"] == 2**40
    assert np.array_equal(found["state"]["w"], value["state"]["w"].numpy())


def test_tensors_share_a_storage(tmp_path):
    whole = torch.arange(10)
    first, second = read_torch_file(saved([whole[:3], whole[5:]], tmp_path))
    assert first.tolist() == [0, 1, 2] and second.tolist() == [5, 6, 7, 8, 9]


def test_a_mapped_file_may_be_larger_than_memory(tmp_path):
    """One tensor of 1 TB of zeros, in a sparse file that takes no room on the disk."""
    numbers = 1 << 38
    path = saved({"x": torch.zeros(1)}, tmp_path)
    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("data.pkl"))
        instructions = archive.read(name)
    one, many = b"K\x01", b"\x8a\x06" + numbers.to_bytes(6, "little")
    for behind in (b"tq\x07Q", b"\x85q\x08"):  # the numbers of the storage, the size of the tensor
        assert instructions.count(one + behind) == 1
        instructions = instructions.replace(one + behind, many + behind)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, instructions)
        with archive.open(name.replace("data.pkl", "data/0"), "w", force_zip64=True) as entry:
            archive.fp.seek(4 * numbers, os.SEEK_CUR)
            entry._file_size = 4 * numbers
    found = read_torch_file(path, mapped=True)["x"]
    assert found.shape == (numbers,) and found[0] == found[-1] == 0.0


class Evil:
    def __reduce__(self):
        return os.system, ("touch pwned",)


def with_instructions(tmp_path, instructions):
    path = tmp_path / "evil.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", instructions)
    return path


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_code_is_never_run(tmp_path, monkeypatch, protocol):
    monkeypatch.chdir(tmp_path)
    path = with_instructions(tmp_path, pickle.dumps({"a": Evil()}, protocol))
    with pytest.raises(StoreError, match=r"is not read: it (holds an object of|.*instruction)"):
        read_torch_file(path)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("value", [io.BytesIO(b"x"), np.arange(3), torch.nn.Linear(2, 2)])
def test_objects_are_refused_by_name(tmp_path, value):
    with pytest.raises(StoreError, match="it holds an object of"):
        read_torch_file(saved(value, tmp_path))


def test_damaged_files_are_named(tmp_path):
    path = saved(torch.arange(100), tmp_path)
    content = path.read_bytes()
    for end in (0, 10, len(content) // 2, len(content) - 30):
        path.write_bytes(content[:end])
        with pytest.raises(StoreError, match=r"a\.pt is damaged"):
            read_torch_file(path)
    with pytest.raises(StoreError, match="cannot be read"):
        read_torch_file(tmp_path / "none.pt")
    torch.save(torch.arange(3), path, _use_new_zipfile_serialization=False)
    with pytest.raises(StoreError, match=r"a\.pt is damaged"):
        read_torch_file(path)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@settings(max_examples=200, deadline=None)
@given(place=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_changed_instructions_give_data_or_an_error(tmp_path_factory, place, byte):
    """No change of a byte makes the reader crash, or read numbers beyond a storage."""
    folder = tmp_path_factory.mktemp("t")
    path = saved({"x": torch.arange(6.0).reshape(2, 3), "ids": {"5"}}, folder)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = next(name for name in parts if name.endswith("data.pkl"))
    changed = bytearray(parts[name])
    changed[place % len(changed)] = byte
    with zipfile.ZipFile(path, "w") as archive:
        for part, content in parts.items():
            archive.writestr(part, bytes(changed) if part == name else content)
    try:
        read_torch_file(path)
    except StoreError as error:
        assert str(path) in str(error)
