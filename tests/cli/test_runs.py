"""Training as the command line asks for it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from graphbench.cli.runs import train_seeds
from graphbench.core.errors import CardError, ConfigError
from graphbench.evaluation import results
from graphbench.training import trainer

OPTIONS = {"limit": None, "eval_limit": None, "root": None, "workers": None}


@pytest.fixture
def calls(monkeypatch):
    """What training and saving of records were called with; neither is done."""
    found = SimpleNamespace(trained=[], saved=[])

    def train(dataset, model, *, seed, output, **_):
        found.trained.append((seed, output))
        return SimpleNamespace(record=f"record of seed {seed}")

    monkeypatch.setattr(trainer, "train", train)
    monkeypatch.setattr(results, "save_record", lambda record, folder: found.saved.append((record, folder)))
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


def test_every_seed_is_trained_on_every_draw(calls, tmp_path, monkeypatch):
    draws = []
    monkeypatch.setattr("graphbench.loader.Loader.load", lambda loader, _: draws.append(loader._cards))
    options = {"output": tmp_path, "records": None, **OPTIONS}
    train_seeds("mst_easy", "gin", seeds=[1, 2], data_seeds=[0, 3, 0], **options)
    assert calls.trained == [(seed, tmp_path / f"seed{seed}-draw{k}") for k in (0, 3) for seed in (1, 2)]
    assert [card.data_seed for cards in draws for card in cards.values()] == [0, 3]
    train_seeds("mst_easy", "gin", seeds=None, data_seeds=[1, 2], **options)
    assert calls.trained[-2:] == [(None, tmp_path / "draw1"), (None, tmp_path / "draw2")]
    train_seeds("mst_easy", "gin", seeds=[7], data_seeds=[4], **options)
    assert calls.trained[-1] == (7, tmp_path)
    with pytest.raises(ConfigError, match="2 data seeds are given for the group clrs30; train them one by one"):
        train_seeds("clrs30", "mpnn", seeds=None, data_seeds=[1, 2], **options)


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
    with pytest.raises(ConfigError, match="published files stand for one dataset, not for the group clrs30; name one"):
        train_seeds("clrs30", "mpnn", **options)
    with pytest.raises(CardError, match="published files of algoreas are not read; only those of clutrr are"):
        train_seeds("mst_easy", "gin", **options)
    assert calls.trained == []
