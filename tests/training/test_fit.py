"""Training without scoring, and validations at the steps where a run may stop."""

from __future__ import annotations

import pytest
import torch

from graphbench.core.errors import ConfigError
from graphbench.loader import Splits
from graphbench.training import checkpoint
from graphbench.training.config import fingerprint, load_config
from graphbench.training.run import fit, train


def weights(path):
    return checkpoint.load_tensors(path)[0]


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


@pytest.fixture
def config(tiny):
    """Return a function that gives the configuration of a run of 24 steps that may stop earlier."""

    def make(steps=24, **changes):
        changes = {"training.schedule_steps": 24, "training.eval_at": [4, 11], **changes}
        return load_config("toys/heavy", tiny, family="toy", steps=steps, overrides=changes)

    return make


@pytest.fixture
def only_own(make_toys):
    """The toy dataset; opening any split but train and val is an error."""
    toys = make_toys("heavy")

    def open_split(name):
        assert name in ("train", "val"), f"{name} was opened"
        return toys[name]

    return Splits(toys.card, open_split)


@pytest.mark.parametrize("changes", [{}, {"training.prefer_later": True}])
def test_fit_ends_with_the_weights_and_validations_of_train(only_own, toys, config, tiny, tmp_path, changes):
    found = fit(config(**changes), only_own, tmp_path / "fit", device="cpu")
    overrides = {"training.eval_at": [4, 11], "training.schedule_steps": 24, **changes}
    whole = train(data=toys, model=tiny, output=tmp_path / "train", overrides=overrides, evaluate="val", device="cpu")
    for name in ("checkpoint.safetensors", "best.safetensors"):
        assert same(weights(tmp_path / "fit" / name), weights(tmp_path / "train" / name))
    assert [tuple(point) for point in whole.record.curves["val_f1"]] == list(found.summary.curve)
    assert [step for step, _ in found.summary.curve] == [4, 6, 11, 12, 18, 24]
    assert found.best() == (whole.record.best_step, whole.scores["val"].primary)
    summary = found.summary
    assert (summary.metric, summary.higher_is_better, summary.started_at, summary.steps) == ("f1", True, 0, 24)
    assert same(found.model.state_dict(), whole.model.state_dict()) and not found.model.training
    left = {path.name for path in (tmp_path / "fit").iterdir()}
    assert {
        "best.safetensors",
        "checkpoint.safetensors",
        "config.json",
        "data.json",
    } <= left and "record.json" not in left


def test_a_run_in_three_stages_is_that_of_one(only_own, config, tmp_path):
    whole = fit(config(), only_own, tmp_path / "whole", device="cpu")
    starts = []
    for steps in (4, 11, 24):
        staged = fit(config(steps), only_own, tmp_path / "staged", device="cpu")
        starts.append(staged.summary.started_at)
        assert staged.summary.curve == tuple(point for point in whole.summary.curve if point[0] <= steps)
        assert staged.best() == whole.best(steps)
    assert starts == [0, 4, 11]
    for name in ("checkpoint.safetensors", "best.safetensors"):
        assert same(weights(tmp_path / "whole" / name), weights(tmp_path / "staged" / name))
    facts = [checkpoint.load_tensors(tmp_path / name / "checkpoint.safetensors")[1] for name in ("whole", "staged")]
    assert facts[0]["state"]["train_loss"] == facts[1]["state"]["train_loss"]


def test_without_further_validations_the_stages_differ_and_records_stay_as_they_were(only_own, config, tmp_path):
    plain = {"training.eval_at": []}
    assert "eval_at" not in config(**plain).to_dict()["training"]
    assert config().to_dict()["training"]["eval_at"] == [4, 11]
    assert fingerprint(config(**plain), "data") != fingerprint(config(), "data")
    assert "training.eval_at" not in config().overridden
    whole = fit(config(**plain), only_own, tmp_path / "whole", device="cpu")
    fit(config(11, **plain), only_own, tmp_path / "staged", device="cpu")
    staged = fit(config(**plain), only_own, tmp_path / "staged", device="cpu")
    assert {step for step, _ in staged.summary.curve} - {step for step, _ in whole.summary.curve} == {11}


def test_fit_starts_anew_where_it_is_told_to(only_own, config, tmp_path):
    first = fit(config(11), only_own, tmp_path, device="cpu")
    again = fit(config(11), only_own, tmp_path, device="cpu")
    anew = fit(config(11), only_own, tmp_path, device="cpu", resume=False)
    assert [found.summary.started_at for found in (first, again, anew)] == [0, 11, 0]
    assert first.summary.curve == again.summary.curve == anew.summary.curve


def test_of_equal_validations_the_best_is_the_first_or_the_last(only_own, config, tmp_path, monkeypatch):
    monkeypatch.setattr("graphbench.training.loop.TrainingLoop._validation_score", lambda self: 0.5)
    assert fit(config(), only_own, tmp_path / "first", device="cpu").best() == (4, 0.5)
    later = fit(config(**{"training.prefer_later": True}), only_own, tmp_path / "last", device="cpu")
    assert (later.best(), later.best(17)) == ((24, 0.5), (12, 0.5))


def test_fit_refuses_to_select_on_a_test_split(only_own, config, tmp_path):
    with pytest.raises(ConfigError, match=r"training.val_split=test is refused"):
        fit(config(**{"training.val_split": "test"}), only_own, tmp_path)
