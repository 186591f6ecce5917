"""Symbolic links in a folder of datasets: a user's are followed, others are neither written through nor emptied."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from graphbench.catalog.cards import Card
from graphbench.core.errors import StoreError
from graphbench.core.files import atomic_path, file_lock, open_no_link, remove_work_folder, replace_text, write_text
from graphbench.data.build.generation import ensure_split
from graphbench.data.sources.downloads import Download, fetch
from graphbench.data.store.layout import Manifest, dataset_folder, work_folder

STRANGER = 12345  # a user id
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")


@pytest.fixture
def card(make_card: Callable[..., Card]) -> Card:
    return make_card(40)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder elsewhere with files named like those that the package removes."""
    folder = tmp_path / "victim"
    folder.mkdir()
    for name in ("precious.txt", "000000000-000000010.h5", ".x.h5.1-ab.tmp", "lock"):
        (folder / name).write_text("precious")
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def link_of_a_stranger(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.parent.chmod(0o1777)
    link.symlink_to(target)
    os.lchown(link, STRANGER, STRANGER)


def test_a_stamp_replaces_a_link_and_leaves_its_target(card: Card, tmp_path: Path, victim: Path) -> None:
    path = ensure_split(card, "train", tmp_path / "root", workers=1)
    stamp = path.parent / ".train.h5.checked"
    stamp.unlink()
    stamp.symlink_to(victim / "precious.txt")
    before = contents(victim)
    Manifest(path.parent).check("train.h5", full=True)
    assert contents(victim) == before
    assert stamp.is_file() and not stamp.is_symlink()


@pytest.mark.parametrize("shard_size", [10, None])
def test_a_build_folder_that_is_a_link_is_refused(
    card: Card, tmp_path: Path, victim: Path, shard_size: int | None
) -> None:
    link = work_folder(dataset_folder(card.graphs, tmp_path / "root"), "train")
    link.parent.mkdir(parents=True)
    link.symlink_to(victim)
    before = contents(victim)
    with pytest.raises(StoreError, match=r"\.build-train is a symbolic link"):
        ensure_split(card, "train", tmp_path / "root", workers=1, shard_size=shard_size)
    assert contents(victim) == before
    link.unlink()
    assert ensure_split(card, "train", tmp_path / "root", workers=1, shard_size=shard_size).is_file()


def test_a_dataset_is_read_beside_a_link_in_the_place_of_its_build_folder(
    card: Card, tmp_path: Path, victim: Path
) -> None:
    path = ensure_split(card, "train", tmp_path / "root", workers=1)
    work_folder(path.parent, "train").symlink_to(victim)
    before = contents(victim)
    assert ensure_split(card, "train", tmp_path / "root", workers=1) == path
    assert contents(victim) == before


@pytest.mark.parametrize("name", [".train.lock", ".manifest.lock"])
def test_a_lock_that_is_a_link_is_refused(card: Card, tmp_path: Path, victim: Path, name: str) -> None:
    folder = dataset_folder(card.graphs, tmp_path / "root")
    folder.mkdir(parents=True)
    (folder / name).symlink_to(victim / "lock")
    with pytest.raises(StoreError, match=name):
        ensure_split(card, "train", tmp_path / "root", workers=1)
    assert contents(victim)["lock"] == "precious"


def test_files_in_the_place_of_links_are_replaced(card: Card, tmp_path: Path, victim: Path) -> None:
    folder = dataset_folder(card.graphs, tmp_path / "root")
    folder.mkdir(parents=True)
    (folder / "train.h5").symlink_to(victim / "precious.txt")
    before = contents(victim)
    assert not ensure_split(card, "train", tmp_path / "root", workers=1).is_symlink()
    assert contents(victim) == before


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_links_of_the_user_are_followed(card: Card, tmp_path: Path, depth: int) -> None:
    """The root itself, and the folders of a domain, a dataset and a version."""
    root = tmp_path / "root"
    link = [*reversed(dataset_folder(card.graphs, root).relative_to(tmp_path).parents)][1:][depth:][:1]
    place = tmp_path / link[0] if link else dataset_folder(card.graphs, root)
    place.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "elsewhere").mkdir()
    place.symlink_to(tmp_path / "elsewhere")
    path = ensure_split(card, "train", root, workers=1)
    assert path.resolve().is_relative_to(tmp_path / "elsewhere")
    assert ensure_split(card, "train", root, workers=1) == path


@as_root
def test_a_link_of_another_user_in_a_folder_for_everybody_is_not_written_through(card: Card, tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = root / card.domain
    link_of_a_stranger(link, elsewhere)
    with pytest.raises(StoreError, match=f"{link} is a symbolic link to {elsewhere}"):
        ensure_split(card, "train", root, workers=1)
    assert not any(elsewhere.iterdir())
    os.lchown(link, 0, 0)
    path = ensure_split(card, "train", root, workers=1)
    os.lchown(link, STRANGER, STRANGER)
    assert ensure_split(card, "train", root, workers=1) == path, "what is there may be read"


@as_root
def test_a_link_behind_a_link_is_looked_at(tmp_path: Path) -> None:
    link_of_a_stranger(tmp_path / "scratch" / "theirs", tmp_path / "victim")
    (tmp_path / "victim").mkdir()
    (tmp_path / "mine").symlink_to(tmp_path / "scratch" / "theirs")
    with pytest.raises(StoreError, match="theirs"), atomic_path(tmp_path / "mine" / "file"):
        pytest.fail("written")
    (tmp_path / "scratch").chmod(0o775)
    write_text(tmp_path / "mine" / "file", "in a folder of a group its members may link")
    assert (tmp_path / "victim" / "file").is_file()


def test_what_the_package_opens_locks_and_removes_is_no_link(tmp_path: Path, victim: Path) -> None:
    before = contents(victim)
    (tmp_path / "file").symlink_to(victim / "precious.txt")
    (tmp_path / "folder").symlink_to(victim)
    for use in (lambda path: open_no_link(path, "ab"), lambda path: open_no_link(path, "wb"), file_lock):
        with pytest.raises(StoreError, match=r"file is a symbolic link"):
            use(tmp_path / "file")
    remove_work_folder(tmp_path / "folder")
    assert contents(victim) == before and (tmp_path / "folder").is_symlink()
    replace_text(tmp_path / "file", "new")
    assert contents(victim) == before and (tmp_path / "file").read_text() == "new"
    remove_work_folder(tmp_path / "nothing")
    with open_no_link(tmp_path / "file", "ab") as file:
        file.write(b"er")
    assert (tmp_path / "file").read_text() == "newer"


def test_a_download_into_a_link_is_refused(tmp_path: Path, victim: Path) -> None:
    (victim / "content").mkdir()
    (victim / "content" / "precious.txt").write_text("precious")
    download = Download("http://localhost:1/file.txt", 4, "0" * 64)
    folder = tmp_path / "root" / ".downloads"
    folder.mkdir(parents=True)
    from graphbench.data.sources.downloads import download_folder

    target = download_folder("toys.files", [download], tmp_path / "root")
    target.with_name(f".{target.name}.part").symlink_to(victim)
    with pytest.raises(StoreError, match=r"\.part is a symbolic link"):
        fetch("toys.files", [download], tmp_path / "root", progress=False)
    assert (victim / "content" / "precious.txt").read_text() == "precious"
