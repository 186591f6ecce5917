"""A name goes in, splits come out."""

import copy
import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from graphbench.core.errors import ArgumentError, CardError, GenerationError, UnknownDataset
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.build import generation
from graphbench.loader import Loader, Splits

# The listing of the paper, as printed in the documentation; then what the documentation promises about it.
# There is no `if __name__ == "__main__"` guard, on purpose: 40000 graphs are three shards, built by two processes.
LISTING = """
import sys
import graphbench
from graphbench.core.processes import local

started = []
real = local.WorkerProcess.__init__
local.WorkerProcess.__init__ = lambda *arguments: (started.append(1), real(*arguments))[1]
pre_filter = pre_transform = transform = None

loader = graphbench.Loader("algoreas/mst_easy", pre_filter, pre_transform, transform, root=sys.argv[1],
                           limit={"train": 40_000, "val": 50, "test": 50}, workers=2)
splits = loader.load()
data = splits.train[0]
batches = splits.train.batches(256, shuffle=True, seed=0)

from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

assert type(data) is Data and data.num_nodes == 16
assert sum(batch.num_graphs for batch in batches) == 40_000
assert next(iter(DataLoader(splits.train, batch_size=32))).num_graphs == 32
assert (len(splits.train), len(splits.val), len(splits.test)) == (40_000, 50, 50)
assert splits.card.id == "algoreas/mst_easy" and list(splits.ood) == ["n192", "n256", "n384", "n512"]
print("processes", len(started), "batches", len(list(batches)))
"""


@pytest.mark.slow
def test_listing_runs_as_a_script_without_a_main_guard(
    tmp_path: Path,
    run_script: Callable[..., subprocess.Popen[str]],
    output_of: Callable[[subprocess.Popen[str]], str],
) -> None:
    assert output_of(run_script(LISTING, tmp_path / "root")) == "processes 2 batches 157\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("root")


def load(name: Any, root: Path, *arguments: Any, limit: Any = 20, **options: Any) -> Any:
    return Loader(name, *arguments, root=root, limit=limit, workers=1, **options).load()


def test_splits_by_attribute_and_by_name(root: Path) -> None:
    splits = load("mst_easy", root)
    assert type(splits) is Splits
    assert type(splits.train) is GraphDataset
    assert [len(split) for split in (splits.train, splits.val, splits.test)] == [20, 20, 20]
    assert splits["val"] is splits.val
    assert [splits.train[0].num_nodes, splits.test[0].num_nodes] == [16, 128]
    assert list(splits) == ["train", "val", "test", "n192", "n256", "n384", "n512", "val_large", "sparse"]
    assert len(splits) == 9
    assert repr(splits).startswith("Splits(algoreas/mst_easy: train=20, val=20, test=20")
    assert isinstance(next(iter(splits.train.batches(4))), Batch)


def test_repr_tells_the_sizes_there_will_be(root: Path) -> None:
    assert repr(Loader("mst_easy", root=root).load(())).startswith("Splits(algoreas/mst_easy: train=1000000, val=10000")
    splits = Loader("mst_easy", root=root, limit={"train": 30, "val": 99_999}, workers=1).load(())
    assert repr(splits).startswith("Splits(algoreas/mst_easy: train=30, val=10000, test=10000")
    kept = Loader("mst_easy", lambda data: False, root=root, limit=20, workers=1).load("val")
    assert "train=20, val=0, test=20" in repr(kept)


def test_splits_can_be_pickled(root: Path) -> None:
    splits = pickle.loads(pickle.dumps(load("mst_easy", root)))
    assert torch.equal(splits.train[3].weight, load("mst_easy", root).train[3].weight)
    assert len(pickle.loads(pickle.dumps(Loader("mst_easy", root=root, limit=5, workers=1).load(())))["val"]) == 5


def test_unknown_splits(root: Path) -> None:
    splits = load("mst_easy", root)
    with pytest.raises(CardError, match=r"'valid'.*train, val, test, n192"):
        splits["valid"]
    with pytest.raises(CardError, match="no ood split 'train'; it has n192, n256"):
        splits.ood["train"]
    assert splits.ood.get("train") is None
    assert splits.ood.get("n999", "none") == "none"
    with pytest.raises(CardError, match="it has none"):
        load("flow_easy", root).ood["n192"]
    with pytest.raises(CardError, match="no split 'tset'"):
        Loader("mst_easy", root=root, limit=2).load(["tset"])


def test_splits_away_from_training_are_items(root: Path) -> None:
    splits = Loader("algoreas/mst_easy", root=root, limit=2, workers=1).load(())
    with pytest.raises(AttributeError, match=r"splits\['n256'\] or splits\.ood\['n256'\]$"):
        splits.n256  # noqa: B018
    with pytest.raises(AttributeError, match=r"'tests'.*train, val, test, n192"):
        splits.tests  # noqa: B018
    assert not hasattr(splits, "n192") and hasattr(splits, "train")
    assert pickle.loads(pickle.dumps(splits)).card == splits.card
    assert copy.copy(splits).card is splits.card


def test_ood_splits_are_built_when_asked_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    real = generation.SplitBuilder.build
    monkeypatch.setattr(
        generation.SplitBuilder, "build", lambda self, *a: (built.append(self.split), real(self, *a))[1]
    )
    splits = load("algoreas/bridges_hard", root, limit=3)
    assert built == ["train", "val", "test"]
    assert "n192" in splits.ood
    assert "train" not in splits.ood
    assert len(splits.ood) == 4
    assert built == ["train", "val", "test"]
    assert splits.ood["n192"][0].num_nodes == 192
    assert splits.ood["n192"] is splits["n192"]
    assert built == ["train", "val", "test", "n192"]


def test_only_the_splits_named_are_built(tmp_path: Path) -> None:
    loader = Loader("mst_easy", root=tmp_path, limit=3, workers=1)
    loader.load(())
    assert not list(tmp_path.rglob("*.h5"))
    loader.load(["val"])
    assert [path.name for path in tmp_path.rglob("*.h5")] == ["val-first3.h5"]
    with pytest.raises(CardError, match="no split 'tset'"):
        loader.load(["test", "tset"])
    assert len(list(tmp_path.rglob("*.h5"))) == 1


@pytest.mark.parametrize(
    ("splits", "built"),
    [
        ("train", ["train"]),
        ("ood", ["n192", "n256", "n384", "n512"]),
        (["test", "ood"], ["n192", "n256", "n384", "n512", "test"]),
        ("additional", ["long_cycles", "val_large"]),
        ("all", ["long_cycles", "n192", "n256", "n384", "n512", "test", "train", "val", "val_large"]),
    ],
)
def test_one_split_and_groups_of_splits_may_be_named(tmp_path: Path, splits: Any, built: list[str]) -> None:
    loaded = Loader("bridges_easy", root=tmp_path, limit=2, workers=1).load(splits)
    names = sorted(loaded.card.stored_name(name) for name in built)
    assert sorted(path.name for path in tmp_path.rglob("*.h5")) == [f"{name}-first2.h5" for name in names]
    assert len(loaded[built[0]]) == 2


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        (["mst_easy"], ["algoreas/mst_easy"]),
        (["mst_easy", "bridges_easy", "algoreas/mst_easy"], ["algoreas/mst_easy", "algoreas/bridges_easy"]),
        ("algoreas/mst_eas?", ["algoreas/mst_easy"]),
        ("algoreas/mst_*", ["algoreas/mst_easy", "algoreas/mst_medium", "algoreas/mst_hard"]),
    ],
)
def test_several_names_give_a_mapping(root: Path, name: Any, ids: list[str]) -> None:
    loaded = load(name, root, limit=3)
    assert list(loaded) == ids
    assert {id_: splits.card.id for id_, splits in loaded.items()} == dict(zip(ids, ids, strict=True))


def test_unknown_name_suggests(root: Path) -> None:
    with pytest.raises(UnknownDataset, match=r"unknown dataset 'algoreas/mst_esay'.*'algoreas/mst_easy'"):
        Loader("algoreas/mst_esay", root=root)


def test_limits_may_be_numpy_integers(root: Path) -> None:
    assert len(load("mst_easy", root, limit=np.int64(4)).train) == 4
    assert len(Loader("mst_easy", root=root, limit={"train": np.uint8(3)}, workers=1).load("train").train) == 3


def test_limits_per_split(root: Path) -> None:
    splits = load("mst_easy", root, limit={"train": 30, "val": 4, "test": 2})
    assert [len(split) for split in (splits.train, splits.val, splits.test)] == [30, 4, 2]
    assert len(load("mst_easy", root, limit={"train": 5, "val": 5, "test": 5}).train) == 5


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"limit": 0}, ValueError, "limit must be at least 1, got 0"),
        ({"limit": {"train": 5, "val": -1}}, ValueError, "limit must be at least 1, got -1"),
        ({"limit": "10"}, TypeError, "limit.*'10'.*None"),
        ({"limit": 1.5}, TypeError, "limit must be a whole number, got 1.5"),
        ({"limit": 0}, ArgumentError, "limit must be at least 1, got 0"),
        ({"limit": "10"}, ArgumentError, "limit must be a whole number"),
        ({"limit": True}, ArgumentError, "limit must be a whole number, got True"),
        ({"limit": {"train": True}}, ArgumentError, "limit must be a whole number, got True"),
        ({"limit": {"train": None}}, TypeError, "got None; leave 'train' out"),
        ({"workers": 0}, GenerationError, "workers must be at least 1, got 0"),
        ({"workers": True}, ArgumentError, "workers must be a whole number, got True"),
        ({"workers": "2"}, TypeError, "workers.*'2'.*None"),
        ({"limit": {"trian": 5}}, CardError, "limit.*'trian'.*algoreas/mst_easy"),
    ],
)
def test_bad_numbers_are_told_before_any_work(
    root: Path, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Loader("mst_easy", root=root, **options)


@pytest.mark.parametrize("bad", ["a\0b", "\ud800", 5, b"bytes", "~nobody-of-this-name/data"])
def test_roots_that_are_no_paths(bad: Any) -> None:
    with pytest.raises(ArgumentError, match="root"):
        Loader("mst_easy", root=bad)


def test_splits_become_a_dictionary(root: Path) -> None:
    splits = Loader("mst_easy", root=root, limit=2, workers=1).load(())
    assert list(splits.keys()) == list(splits)
    assert dict(splits) == {name: splits[name] for name in splits}


def test_filter_and_transforms_in_the_order_of_the_paper(root: Path) -> None:
    def dense(data: Data) -> bool:
        return bool(data.num_edges > 60)

    def halve(data: Data) -> Data:
        data.weight = data.weight / 2
        return data

    def negate(data: Data) -> Data:
        data.weight = -data.weight
        return data

    plain = load("mst_easy", root).train
    changed = load("mst_easy", root, dense, halve, negate).train
    kept = [data for data in plain if dense(data)]
    assert 0 < len(kept) < 20
    assert len(changed) == len(kept)
    assert all(torch.equal(a.weight, -b.weight / 2) for a, b in zip(changed, kept, strict=True))


def test_root_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHBENCH_ROOT", str(tmp_path / "here"))
    splits = Loader("mst_easy", limit=2, workers=1).load(["train"])
    assert splits.train.path.is_relative_to(tmp_path / "here" / "algoreas" / "mst_easy")
    assert Loader("mst_easy", root="~/there").root == Path.home() / "there"


def test_small_and_large_limits_agree(root: Path, tmp_path: Path) -> None:
    large, small = load("mst_easy", root, limit=20).train, load("mst_easy", tmp_path, limit=7).train
    assert torch.equal(next(iter(small.batches(7))).weight, next(iter(large.batches(7))).weight)


def test_a_task_is_loaded_by_its_address(tmp_path: Path) -> None:
    splits = Loader("ba_small:chromatic_number", root=tmp_path, limit=2, workers=1).load("val")
    assert splits.card.address == "co/ba_small:chromatic_number"
    assert repr(splits) == "Splits(co/ba_small:chromatic_number: train=2, val=2, test=2, large=2)"
    assert splits.val.y.tolist() == splits.val.coloring_value.tolist()
    assert sorted(path.parent.name.split("-")[0] for path in tmp_path.rglob("*.h5")) == ["labels", "v1"]
    several = Loader(["co/ba_small", "co/ba_small:mis", "mst_easy"], root=tmp_path, limit=2, workers=1).load(())
    assert list(several) == ["co/ba_small", "co/ba_small:mis", "algoreas/mst_easy"]
    assert several["co/ba_small"].card.task_name == "mis_size"
    with pytest.raises(UnknownDataset, match="did you mean 'co/ba_small:max_cut'"):
        Loader("co/ba_small:maxcut")
