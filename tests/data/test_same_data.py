"""Data are those that a card names, and those that their manifest records, when they are opened and when they count."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import graphbench
from graphbench.catalog.names import card as shipped
from graphbench.core.errors import ChecksumMismatch, StoreError
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.build.generation import ensure_split
from graphbench.data.store import layout
from graphbench.data.store.layout import Manifest, dataset_folder
from graphbench.leaderboard.submissions.data import CanonicalData
from graphbench.loader import Splits
from graphbench.records.record import RunRecord

ID = "algoreas/bridges_easy"
LABELLED = "co/rb_small:mis"


def load(root: Path, name: str = ID, **options: Any) -> Splits:
    options = {"limit": 6, "workers": 1, "progress": False, **options}
    return graphbench.Loader(name, root=root, **options).load("test")


def flip_last_byte(path: Path) -> None:
    """Change one byte in place, and put the time of modification back."""
    stat = path.stat()
    with path.open("r+b") as stream:
        stream.seek(-1, os.SEEK_END)
        byte = stream.read(1)[0]
        stream.seek(-1, os.SEEK_END)
        stream.write(bytes([byte ^ 1]))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_mtime_ns == stat.st_mtime_ns


def in_another_process() -> None:
    """Forget what this process knows of files."""
    layout._CHECKED.clear()


@pytest.mark.parametrize("forget", [False, True])
def test_a_file_that_was_changed_in_place_is_not_opened(tmp_path: Path, forget: bool) -> None:
    flip_last_byte(load(tmp_path).test.path)
    if forget:
        in_another_process()
    with pytest.raises(ChecksumMismatch, match=r"test-first6\.h5 was changed or damaged"):
        load(tmp_path)


CHOICES: dict[str, Callable[[Splits], GraphDataset]] = {
    "whole": lambda splits: splits.test,
    "first": lambda splits: splits.test[:3],
    "selected": lambda splits: splits.test[[4, 1]],
    "none": lambda splits: splits.test[:0],
}


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("when", ["before", "after"])
def test_data_that_were_changed_have_no_hash(tmp_path: Path, choice: str, when: str) -> None:
    chosen = CHOICES[choice](load(tmp_path))
    if when == "after":
        _ = chosen.content_hash
    flip_last_byte(chosen.path)
    with pytest.raises(ChecksumMismatch, match=str(chosen.path)):
        _ = chosen.content_hash
    with pytest.raises(ChecksumMismatch, match=str(chosen.path)):
        RunRecord.from_scores({"test": chosen}, {"test": {"f1": 0.5}}, model="own")


def test_results_of_pre_transform_have_no_hash_either(tmp_path: Path) -> None:
    kept = load(tmp_path, pre_transform=lambda data: data, pre_filter=lambda data: True).test
    flip_last_byte(kept.path)
    with pytest.raises(ChecksumMismatch, match=str(kept.path)):
        _ = kept.content_hash


@pytest.mark.parametrize("name", ["clrs/bfs", LABELLED])
def test_every_file_behind_a_split_is_compared(tmp_path: Path, name: str) -> None:
    split = load(tmp_path, name, limit=2).test
    first = split.content_hash
    for path in (split.path, *split.label_paths):
        good = path.read_bytes()
        flip_last_byte(path)
        with pytest.raises(ChecksumMismatch, match=str(path)):
            _ = split.content_hash
        path.write_bytes(good)
        assert split.content_hash == first


def test_a_hash_that_the_manifest_claims_is_compared_with_the_content(tmp_path: Path) -> None:
    split = load(tmp_path).test
    manifest = Manifest(split.path.parent)
    content = manifest.read()
    content["files"][split.path.name]["content"] = "0" * 64
    manifest.path.write_text(json.dumps(content))
    with pytest.raises(ChecksumMismatch, match="instead of 000000000000"):
        _ = load(tmp_path).test.content_hash


def test_a_file_is_read_once_while_it_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split = load(tmp_path).test
    _ = split.content_hash
    read: list[Path] = []
    monkeypatch.setattr(layout, "file_sha256", lambda path: read.append(path) or "")
    _ = load(tmp_path).test.content_hash
    in_another_process()
    _ = load(tmp_path).test.content_hash
    assert read == []
    os.utime(split.path)
    with pytest.raises(ChecksumMismatch):
        load(tmp_path)
    assert read == [split.path]


def test_a_link_in_place_of_the_stamp_is_not_followed(tmp_path: Path) -> None:
    split = load(tmp_path / "root").test
    stamp, precious = split.path.parent / f".{split.path.name}.checked", tmp_path / "precious.txt"
    precious.write_text(stamp.read_text())
    stamp.unlink()
    stamp.symlink_to(precious)
    before = precious.read_text()
    in_another_process()
    os.utime(split.path)
    _ = load(tmp_path / "root").test.content_hash
    assert precious.read_text() == before and not stamp.is_symlink()


@pytest.mark.parametrize(
    ("other", "seed", "said"),
    [(ID, 3, "data_seed 3, not 0"), ("algoreas/mst_easy", 0, "id 'algoreas/mst_easy', not 'algoreas/bridges_easy'")],
    ids=["draw", "dataset"],
)
def test_the_folder_of_other_data_under_the_expected_name_is_refused(
    tmp_path: Path, other: str, seed: int, said: str
) -> None:
    taken = load(tmp_path / "other", other, data_seed=seed).test.path.parent
    card = shipped(ID)
    home = dataset_folder(card, tmp_path / "root")
    home.parent.mkdir(parents=True)
    shutil.copytree(taken, home)
    with pytest.raises(StoreError, match=f"{home}.*{ID}.*{said}.*move"):
        load(tmp_path / "root")
    with pytest.raises(StoreError, match=said):
        GraphDataset(card, "test", home / "test-first6.h5")
    with pytest.raises(StoreError, match=said):
        CanonicalData(tmp_path / "root").hash_of(card, "test", 6)
    with pytest.raises(StoreError, match=said):  # nothing is added to it
        ensure_split(card, "val", tmp_path / "root", 4, workers=1)
    shutil.rmtree(home)
    assert len(load(tmp_path / "root").test) == 6


def test_the_canonical_folder_in_the_place_of_a_draw_is_refused(tmp_path: Path) -> None:
    taken = load(tmp_path).test.path.parent
    shutil.copytree(taken, taken.with_name(f"{taken.name}-draw2"))
    with pytest.raises(StoreError, match="data_seed 0, not 2"):
        load(tmp_path, data_seed=2)


def test_labels_of_another_draw_are_refused(tmp_path: Path) -> None:
    canonical, drawn = (load(tmp_path, LABELLED, limit=2, data_seed=seed).test for seed in (0, 2))
    mine, others = canonical.label_paths[0].parent, drawn.label_paths[0].parent
    assert "data_seed" not in Manifest(mine).read() and Manifest(others).read()["data_seed"] == 2
    shutil.rmtree(mine)
    shutil.copytree(others, mine)
    with pytest.raises(StoreError, match=f"{mine} holds other data.*data_seed 2, not 0"):
        load(tmp_path, LABELLED, limit=2)


def test_a_manifest_without_these_keys_loads(tmp_path: Path) -> None:
    split = load(tmp_path).test
    manifest = Manifest(split.path.parent)
    content = {key: value for key, value in manifest.read().items() if key in ("format", "files")}
    manifest.path.write_text(json.dumps(content))
    assert load(tmp_path).test.content_hash == split.content_hash


def test_the_check_of_a_submission_compares_the_files(tmp_path: Path) -> None:
    split, data = load(tmp_path).test, CanonicalData(tmp_path)
    found = data.hash_of(split.card, "test", 6)
    assert found is not None and found[0] == split.content_hash
    flip_last_byte(split.path)
    for count in (6, 3):
        with pytest.raises(ChecksumMismatch, match=str(split.path)):
            data.hash_of(split.card, "test", count)
