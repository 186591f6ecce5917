"""Training as the command line asks for it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from graphbench.cli.runs import train_seeds
from graphbench.core.errors import ArgumentError, ConfigError
from graphbench.records import files as record_files

OPTIONS = {"limit": None, "eval_limit": None, "root": None, "workers": None}


@pytest.fixture
def calls(monkeypatch):
    """What training and saving of records were called with; neither is done."""
    found = SimpleNamespace(trained=[], draws=[], saved=[])

    def train(dataset, model, *, seed, output, data_seed, **_):
        found.trained.append((seed, output))
        found.draws.append(data_seed)
        result = SimpleNamespace(record=f"record of seed {seed}")
        return (
            result if isinstance(dataset, str) and dataset == "mst_easy" else {"clrs/bfs": result, "clrs/dfs": result}
        )

    monkeypatch.setattr("graphbench.training.run.train", train)
    monkeypatch.setattr(record_files, "save_record", lambda record, folder: found.saved.append((record, folder)))
    return found


@pytest.mark.parametrize("seeds", [None, []])
def test_no_seed_means_the_configurations_own(calls, tmp_path, seeds):
    train_seeds("mst_easy", "gin", seeds=seeds, output=tmp_path, records=None, **OPTIONS)
    assert calls.trained == [(None, tmp_path)]


def test_every_seed_is_trained_once_in_a_folder_of_its_own(calls, tmp_path):
    train_seeds("mst_easy", "gin", seeds=[3, 1, 3], output=tmp_path, records=None, **OPTIONS)
    assert calls.trained == [(3, tmp_path / "seed3"), (1, tmp_path / "seed1")]
    train_seeds("mst_easy", "gin", seeds=[5, 5], output=tmp_path, records=None, **OPTIONS)
    assert calls.trained[-1] == (5, tmp_path)


def test_every_seed_is_trained_on_every_draw(calls, tmp_path):
    options = {"output": tmp_path, "records": None, **OPTIONS}
    train_seeds("mst_easy", "gin", seeds=[1, 2], data_seeds=[0, 3, 0], **options)
    assert calls.trained == [(seed, tmp_path / f"seed{seed}-draw{k}") for k in (0, 3) for seed in (1, 2)]
    assert calls.draws == [0, 0, 3, 3]
    train_seeds("mst_easy", "gin", seeds=None, data_seeds=[1, 2], **options)
    assert calls.trained[-2:] == [(None, tmp_path / "draw1"), (None, tmp_path / "draw2")]
    train_seeds("mst_easy", "gin", seeds=[7], data_seeds=[4], **options)
    assert calls.trained[-1] == (7, tmp_path)


def test_seeds_and_draws_of_a_group_have_folders_of_their_own_too(calls, tmp_path):
    options = {"output": tmp_path, "records": tmp_path / "records", **OPTIONS}
    results = train_seeds("clrs30", "mpnn", seeds=[5, 6], data_seeds=[1, 2], **options)
    assert calls.trained == [(seed, tmp_path / f"seed{seed}-draw{k}") for k in (1, 2) for seed in (5, 6)]
    assert calls.draws == [1, 1, 2, 2]
    assert len(results) == len(calls.saved) == 8  # a record of each dataset


@pytest.mark.parametrize(("rank", "saves"), [(None, 1), ("0", 1), ("1", 0)])
def test_process_0_alone_saves_records(calls, tmp_path, monkeypatch, rank, saves):
    if rank is None:
        monkeypatch.delenv("RANK", raising=False)
    else:
        monkeypatch.setenv("RANK", rank)
    train_seeds("mst_easy", "gin", seeds=[2], output=None, records=tmp_path, **OPTIONS)
    assert calls.saved == [("record of seed 2", tmp_path)] * saves


def test_published_files_stand_for_one_dataset(calls, tmp_path):
    options = {"seeds": None, "output": tmp_path, "records": None, "source": "official", "folder": tmp_path, **OPTIONS}
    with pytest.raises(ConfigError, match=r"group clrs30.*name one"):
        train_seeds("clrs30", "mpnn", **options)
    with pytest.raises(ConfigError, match="not for 2 datasets; name one"):
        train_seeds(["clrs/bfs", "clrs/dfs"], "mpnn", **options)
    with pytest.raises(ArgumentError, match=r"source='official'.*algoreas/mst_easy"):
        train_seeds("mst_easy", "gin", **options)
    assert calls.trained == []
