"""Files on disk: what is written, how it is mapped, and what happens when it was damaged."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from graphbench.catalog.cards import Card
from graphbench.core.errors import ChecksumMismatch, StoreError
from graphbench.core.files import default_root
from graphbench.core.ragged import smallest_integer
from graphbench.data.arrays.hashing import samples_hash
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.build.generation import ensure_split
from graphbench.data.store.files import map_arrays, write_arrays
from graphbench.data.store.layout import Manifest, find_file
from graphbench.data.store.shards import stored_samples

MakeCard = Callable[..., Card]


@pytest.fixture
def card(make_card: MakeCard) -> Card:
    return make_card(30)


@pytest.fixture
def built(card: Card, tmp_path: Path) -> Path:
    """The file of a finished split."""
    return ensure_split(card, "train", tmp_path / "root", workers=1)


def flip_byte(path: Path, position: int) -> None:
    """Change one byte in place, and put the time of modification back."""
    stat = path.stat()
    with path.open("r+b") as stream:
        stream.seek(position)
        byte = stream.read(1)[0]
        stream.seek(position)
        stream.write(bytes([byte ^ 1]))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_arrays_are_contiguous_in_the_smallest_types(built: Path) -> None:
    with h5py.File(built) as file:
        assert {name: d.dtype.name for name, d in file.items()} == {
            "node_ptr": "int32",
            "edge_ptr": "int32",
            "edges": "uint8",
            "weight": "float32",
            "in_tree": "uint8",
            "model": "uint8",
        }
        for dataset in file.values():
            assert dataset.chunks is None
            assert dataset.compression is None
            assert dataset.id.get_offset() is not None
        assert dict(file.attrs)["id"] == "algoreas/toy"
        assert file["node_ptr"][0] == file["edge_ptr"][0] == 0
        assert file["node_ptr"][-1] == 30 * 8
        assert len(file["edges"]) == len(file["weight"]) == file["edge_ptr"][-1]


@pytest.mark.parametrize(("nodes", "expected"), [(256, "uint8"), (257, "uint16")])
def test_node_ids_take_the_smallest_safe_type(make_card: MakeCard, tmp_path: Path, nodes: int, expected: str) -> None:
    path = ensure_split(make_card(2, {"nodes": nodes, "models": {"er": {"p": 0.02}}}), "train", tmp_path, workers=1)
    edges = map_arrays(path)["edges"]
    assert edges.dtype == expected
    assert edges.max() == nodes - 1


@pytest.mark.parametrize(
    ("largest", "expected"),
    [
        (0, "uint8"),
        (255, "uint8"),
        (256, "uint16"),
        (65_535, "uint16"),
        (65_536, "int32"),
        (2**31 - 1, "int32"),
        (2**31, "int64"),
    ],
)
def test_smallest_integer(largest: int, expected: str) -> None:
    dtype = smallest_integer(largest)
    assert dtype == expected
    assert np.array([largest]).astype(dtype)[0] == largest


def test_arrays_are_mapped_and_writing_never_reaches_the_disk(card: Card, built: Path) -> None:
    before = built.read_bytes()
    arrays = map_arrays(built)
    for array in arrays.values():
        assert isinstance(array, np.memmap)
        array[...] = 1
        array.flush()
    dataset = GraphDataset(card, "train", built)
    dataset[0].weight[:] = -1
    for batch in (*dataset.batches(7), *dataset.batches(7, shuffle=True)):
        batch.weight[:] = -1
        batch.in_tree[:] = 9
    stored_samples(card.graph_schema, built).values["weight"][:] = -1
    assert built.read_bytes() == before
    assert (GraphDataset(card, "train", built)[0].weight > 0).all()


def test_gathered_values_are_copies(card: Card, built: Path) -> None:
    dataset = GraphDataset(card, "train", built)
    for first in (next(iter(dataset.batches(30))), dataset[0]):
        first.weight[:] = -1
        first.edge_attr[:] = -1
        first.edge_index[:] = 0
    again = next(iter(dataset.batches(30)))
    assert (again.weight > 0).all()
    assert (again.edge_attr > 0).all()
    assert again.edge_index.max() == 30 * 8 - 1


def test_empty_arrays_are_kept(tmp_path: Path) -> None:
    write_arrays(tmp_path / "a.h5", {"none": np.empty((0, 2), np.uint8), "some": np.arange(3)})
    arrays = map_arrays(tmp_path / "a.h5")
    assert arrays["none"].shape == (0, 2)
    assert arrays["none"].dtype == np.uint8
    assert arrays["some"].tolist() == [0, 1, 2]


def test_content_hash_sees_names_types_shapes_and_values() -> None:
    base = {"a": np.arange(4, dtype=np.int32), "b": np.zeros(2)}
    others = [
        {"a": base["a"], "c": base["b"]},
        {"a": base["a"].astype(np.int64), "b": base["b"]},
        {"a": base["a"].reshape(2, 2), "b": base["b"]},
        {"a": base["a"][::-1], "b": base["b"]},
        {"a": base["a"]},
    ]
    hashes = {samples_hash(arrays) for arrays in (base, *others)}
    assert len(hashes) == 6
    assert samples_hash({"b": base["b"], "a": base["a"].astype(">i4").astype("<i4")}) == samples_hash(base)


def test_changed_byte_is_found_when_the_file_was_never_checked(card: Card, built: Path, tmp_path: Path) -> None:
    flip_byte(built, built.stat().st_size - 5)
    (built.parent / ".train.h5.checked").unlink()
    with pytest.raises(ChecksumMismatch) as caught:
        ensure_split(card, "train", tmp_path / "root", workers=1)
    message = str(caught.value)
    assert str(built) in message
    assert "changed or damaged" in message
    assert "delete this file and it will be rebuilt" in message


def test_changed_file_is_found_at_the_next_load(card: Card, built: Path, tmp_path: Path) -> None:
    flip_byte(built, built.stat().st_size - 5)
    os.utime(built)
    with pytest.raises(ChecksumMismatch):
        ensure_split(card, "train", tmp_path / "root", workers=1)


def test_full_check_looks_at_every_byte(built: Path) -> None:
    manifest = Manifest(built.parent)
    manifest.check("train.h5", full=True)
    manifest.check("train.h5")
    flip_byte(built, built.stat().st_size // 2)
    with pytest.raises(ChecksumMismatch):
        manifest.check("train.h5", full=True)


def test_remedy_of_a_damaged_file_works(card: Card, built: Path, tmp_path: Path) -> None:
    good = built.read_bytes()
    built.write_bytes(good[:-50])
    with pytest.raises(ChecksumMismatch):
        ensure_split(card, "train", tmp_path / "root", workers=1)
    built.unlink()
    assert ensure_split(card, "train", tmp_path / "root", workers=1).read_bytes() == good
    other = ensure_split(card, "val", tmp_path / "root", workers=1)
    assert other.parent == built.parent
    Manifest(built.parent).check("train.h5", full=True)


def test_checked_file_is_not_read_again(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphbench.core.files.file_sha256", lambda path: pytest.fail("read again"))
    Manifest(built.parent).check("train.h5")


def test_missing_file_is_rebuilt(card: Card, built: Path, tmp_path: Path) -> None:
    good = built.read_bytes()
    built.unlink()
    assert Manifest(built.parent).entry("train.h5") is None
    with pytest.raises(StoreError, match="not recorded"):
        Manifest(built.parent).check("train.h5")
    assert ensure_split(card, "train", tmp_path / "root", workers=1).read_bytes() == good


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "{}", '{"format": 1}', '{"format": 1, "files": []}', '{"format": 1, "files": {"a": 3}}'],
)
def test_damaged_manifest(card: Card, built: Path, tmp_path: Path, text: str) -> None:
    (built.parent / "manifest.json").write_text(text)
    assert_manifest_is_damaged(card, tmp_path / "root", built.parent)


def test_manifest_that_is_nested_too_deeply(card: Card, built: Path, tmp_path: Path) -> None:
    (built.parent / "manifest.json").write_text('{"format": 1, "files": ' + "[" * 100_000 + "]" * 100_000 + "}")
    assert_manifest_is_damaged(card, tmp_path / "root", built.parent)


def test_a_folder_that_may_not_be_entered(
    card: Card, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.stat

    def stat(path: Path, **options: Any) -> Any:
        if path.parent == built.parent:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, **options)

    monkeypatch.setattr(Path, "stat", stat)
    for look in (lambda: Manifest(built.parent).read(), lambda: find_file("train", 1, built.parent)):
        with pytest.raises(StoreError, match=r"not readable.*--root"):
            look()


def test_a_file_where_a_folder_should_be_holds_nothing(card: Card, tmp_path: Path) -> None:
    (tmp_path / "algoreas").write_text("")
    assert Manifest(tmp_path / "algoreas" / "toy" / "v1").read()["files"] == {}
    assert find_file("train", 1, tmp_path / "algoreas" / "toy") is None


def test_manifest_that_is_not_text(card: Card, built: Path, tmp_path: Path) -> None:
    (built.parent / "manifest.json").write_bytes(b'{"format": 1, "files": {"\xff": {}}}')
    assert_manifest_is_damaged(card, tmp_path / "root", built.parent)


@pytest.mark.parametrize("key", ["count", "split", "content", "bytes", "sha256"])
def test_manifest_with_an_incomplete_entry(card: Card, built: Path, tmp_path: Path, key: str) -> None:
    path = built.parent / "manifest.json"
    content = json.loads(path.read_text())
    for wrong in ({}, {key: None}, {key: [1]}):
        facts = {name: value for name, value in content["files"]["train.h5"].items() if name != key}
        path.write_text(json.dumps({**content, "files": {"train.h5": {**facts, **wrong}}}))
        assert_manifest_is_damaged(card, tmp_path / "root", built.parent)


def assert_manifest_is_damaged(card: Card, root: Path, folder: Path) -> None:
    with pytest.raises(StoreError) as caught:
        ensure_split(card, "train", root, workers=1)
    assert "manifest.json is damaged" in str(caught.value)
    assert f"delete {folder} and it will be rebuilt" in str(caught.value)


def test_manifest_of_a_newer_format(card: Card, built: Path, tmp_path: Path) -> None:
    path = built.parent / "manifest.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "format": 99}))
    with pytest.raises(StoreError, match=r"manifest\.json.*99.*update"):
        ensure_split(card, "train", tmp_path / "root", workers=1)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.unlink(), "cannot read"),
        (lambda path: path.write_bytes(b""), "cannot read"),
        (lambda path: path.write_bytes(b"not a table"), "cannot read"),
        (lambda path: path.write_bytes(path.read_bytes()[:200]), "cannot read"),
        (lambda path: path.write_bytes(path.read_bytes()[:-200]), "cannot read"),
        (lambda path: zero_second_half(path), "cannot read"),
        (lambda path: set_format(path, 99), "newer than this version reads (1); update graphbench"),
        (lambda path: set_format(path, 0), "store format 0"),
        (lambda path: set_format(path, "one"), "store format one"),
        (lambda path: add_chunked(path), "not contiguous"),
        (lambda path: add_group(path), "cannot read"),
    ],
)
def test_files_that_cannot_be_mapped(built: Path, spoil: Callable[[Path], Any], words: str) -> None:
    spoil(built)
    with pytest.raises(StoreError) as caught:
        map_arrays(built)
    assert words in str(caught.value)
    assert str(built) in str(caught.value)
    assert "delete it" in str(caught.value) or "update" in str(caught.value)


def zero_second_half(path: Path) -> None:
    content = path.read_bytes()
    half = 600  # the file's own header stays, those of its arrays do not
    path.write_bytes(content[:half] + bytes(len(content) - half))


def set_format(path: Path, value: object) -> None:
    with h5py.File(path, "r+") as file:
        file.attrs["format"] = value


def add_chunked(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.create_dataset("chunked", data=np.arange(100), chunks=(10,))


def add_group(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file.create_group("folder")


def test_file_of_another_card(make_card: MakeCard, card: Card, built: Path) -> None:
    features = {"length": ["input", "edge", "scalar"], "in_tree": ["output", "edge", "mask"]}
    other = make_card(30, features=features)
    with pytest.raises(StoreError, match=r"lacks the arrays length; delete it"):
        GraphDataset(other, "train", built)


def test_default_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHBENCH_ROOT", str(tmp_path))
    assert default_root() == tmp_path
    monkeypatch.setenv("GRAPHBENCH_ROOT", "~/here")
    assert default_root() == Path.home() / "here"
    monkeypatch.delenv("GRAPHBENCH_ROOT")
    assert default_root().name == "graphbench"
