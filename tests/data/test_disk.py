"""Full disks, read-only folders and files in the way: clear errors, nothing half-written."""

import errno
import gc
import os
import shutil
import subprocess
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphbench.catalog.cards import Card
from graphbench.core import files as core_files
from graphbench.core.errors import StoreError
from graphbench.core.files import atomic_path, write_json
from graphbench.data.build import generation
from graphbench.data.build.generation import ensure_split
from graphbench.data.store.files import ArrayFile, write_arrays

MakeCard = Callable[..., Card]
Usage = namedtuple("Usage", ["total", "used", "free"])


@pytest.fixture
def card(make_card: MakeCard) -> Card:
    return make_card(200)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if mount is None or subprocess.run([mount, *options], capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a file system is not allowed here")
    yield folder
    gc.collect()  # arrays mapped from files there, kept by the traceback of an expected error
    subprocess.run(["umount", str(folder)], check=True)


def assert_says_full(error: StoreError, root: Path) -> None:
    message = str(error)
    assert str(root) in message
    assert "the disk is full" in message
    assert "MB free" in message
    assert "choose another --root" in message


def test_too_little_space_is_reported_before_anything_is_drawn(
    make_card: MakeCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 10**9 - 65_000_000, 65_000_000))
    ensure_split(make_card(200), "train", tmp_path / "enough", workers=1)
    monkeypatch.setattr(generation, "build_shard", lambda *a: pytest.fail("drawn"))
    with pytest.raises(StoreError, match=r"disk space.*64 MB.*65 MB") as caught:
        ensure_split(make_card(100_000), "train", tmp_path / "root", workers=1)
    assert "free space, choose another --root, or ask for fewer samples with --limit" in str(caught.value)


def test_estimate_of_space_is_near_the_truth(
    make_card: MakeCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(generation, "require_space", lambda folder, needed: asked.append(needed))
    path = ensure_split(make_card(3000), "train", tmp_path, workers=1)
    assert 1.0 < asked[0] / path.stat().st_size < 4.0


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        OSError("Can't write data (file write failed: errno = 28, error message = 'No space left on device')"),
    ],
)
def test_full_disk_while_writing(
    card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, leftovers: Callable[[Path], list[str]]
) -> None:
    written = iter(range(20))
    real = ArrayFile.write

    def write_until_full(self: ArrayFile, *arguments: Any) -> None:
        if next(written, None) is None:
            raise error
        real(self, *arguments)

    monkeypatch.setattr(ArrayFile, "write", write_until_full)
    with pytest.raises(StoreError) as caught:
        ensure_split(card, "train", tmp_path, workers=1, shard_size=20)
    assert_says_full(caught.value, tmp_path)
    assert not list(tmp_path.rglob("train.h5"))
    assert not list(tmp_path.rglob("*.tmp"))
    monkeypatch.undo()
    ensure_split(card, "train", tmp_path, workers=1, shard_size=20)
    assert leftovers(tmp_path) == []


def test_disk_that_is_really_full(
    make_card: MakeCard,
    small_disk: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    facts_of: Callable[[Path], dict[str, Any]],
) -> None:
    card = make_card(6000)
    with pytest.raises(StoreError, match="too little disk space"):
        ensure_split(card, "train", small_disk, workers=1)
    monkeypatch.setattr(generation, "require_space", lambda folder, needed: None)
    with pytest.raises(StoreError) as caught:
        ensure_split(card, "train", small_disk, workers=1, shard_size=1000)
    assert_says_full(caught.value, small_disk)
    assert not list(small_disk.rglob("train*.h5"))
    assert not list(small_disk.rglob("*.tmp"))
    subprocess.run(["mount", "-o", "remount,size=16m", str(small_disk)], check=True)
    found = facts_of(ensure_split(card, "train", small_disk, workers=1, shard_size=1000))
    assert found == facts_of(ensure_split(card, "train", tmp_path / "clean", workers=1))


def test_read_only_disk_can_be_read_but_not_written(
    card: Card, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_files, "_SPARE_BYTES", 0)
    path = ensure_split(card, "train", small_disk, workers=1)
    (path.parent / ".build-train").mkdir()
    (path.parent / ".train.h5.checked").unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert ensure_split(card, "train", small_disk, workers=1) == path
    assert ensure_split(card, "train", small_disk, 10, workers=1) == path
    with pytest.raises(StoreError, match=r"read-only.*--root.*GRAPHBENCH_ROOT"):
        ensure_split(card, "val", small_disk, workers=1)


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_folder_that_cannot_be_made(card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(self: Path, *arguments: Any, **options: Any) -> None:
        raise OSError(code, os.strerror(code), str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StoreError, match=r"read-only.*--root") as caught:
        ensure_split(card, "train", tmp_path / "root", workers=1)
    assert str(tmp_path / "root") in str(caught.value)


def test_file_where_a_folder_must_be(card: Card, tmp_path: Path) -> None:
    (tmp_path / "root").write_text("a file")
    with pytest.raises(StoreError, match="a file lies where a folder should be") as caught:
        ensure_split(card, "train", tmp_path / "root", workers=1)
    assert str(tmp_path / "root") in str(caught.value)
    assert "choose another --root" in str(caught.value)
    assert (tmp_path / "root").read_text() == "a file"


def test_atomic_path_leaves_the_old_file_when_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.json"
    write_json(path, {"a": 1})
    before = path.read_text()
    with pytest.raises(ZeroDivisionError), atomic_path(path) as aside:
        aside.write_text("half")
        raise ZeroDivisionError
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert path.read_text() == before
    assert [file.name for file in path.parent.iterdir()] == ["file.json"]


def test_atomic_path_flushes_before_it_renames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: events.append(f"flush {name(descriptor)}"))
    real = Path.replace
    monkeypatch.setattr(Path, "replace", lambda self, to: (events.append("rename"), real(self, to))[1])
    write_arrays(tmp_path / "a.h5", {"a": np.arange(3)})
    assert events[0].startswith("flush .a.h5.")
    assert events[1:] == ["rename", f"flush {tmp_path.name}"]


def name(descriptor: int) -> str:
    return Path(f"/proc/self/fd/{descriptor}").readlink().name
