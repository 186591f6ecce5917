"""Estimators on features of graphs: the same folders, records and scores as models that are trained in steps."""

from __future__ import annotations

import logging
import shutil

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("skops")

from graphbench.core.errors import CheckpointError, ConfigError
from graphbench.records.files import read_record
from graphbench.training.evaluate import evaluate_run, load_run
from graphbench.training.learners.tabular import TabularLearner
from graphbench.training.run import train

FOREST = "model: {kind: tabular, processor: random_forest, hops: 1, options: {n_estimators: 10}}\n"


@pytest.fixture
def forest(tmp_path):
    path = tmp_path / "forest.yaml"
    path.write_text(FOREST)
    return path


def run(data, model, output, **changes):
    return train(data=data, model=model, output=output, device="cpu", progress=False, **changes)


@pytest.mark.parametrize(("output", "metric"), [("heavy", "f1"), ("total", "mae")])
def test_a_run_leaves_a_record_without_steps_and_is_scored_again_alike(make_toys, forest, tmp_path, output, metric):
    data = make_toys(output)
    result = run(data, forest, tmp_path / "run")
    assert sorted(path.name for path in result.path.glob("[!.]*")) == [
        "config.json",
        "data.json",
        "estimators.json",
        "estimators.skops",
        "fingerprint.json",
        "record.json",
    ]
    record = read_record(result.path / "record.json")
    assert record == result.record
    assert (record.steps, record.batch_size, record.parameters, record.best_step) == (None, None, None, None)
    assert record.curves == {f"val_{metric}": [(0, result.scores["val"].primary)]}
    assert record.budget.label.startswith("70 training graphs") and record.notes.startswith("fitted on ")
    assert min(record.latency_ms, record.latency_ms_batched, record.throughput_graphs_per_s) > 0
    assert evaluate_run(result.path, ("val", "test", "n12"), data=data, device="cpu") == result.scores
    if output == "heavy":
        assert result.scores["test"].primary > 0.9
    batch = next(iter(data.test.batches(5)))
    again, fitted = load_run(result.path, data.card)(batch)[output], result.model(batch)[output]
    assert again.equal(fitted)


def test_a_finished_run_is_not_fitted_again_unless_it_is_started_anew(toys, forest, tmp_path, monkeypatch):
    first = run(toys, forest, tmp_path, evaluate="test")
    with monkeypatch.context() as patch:
        patch.setattr("graphbench.models.tabular.model.TabularModel.fit", None)
        again = run(toys, forest, tmp_path, evaluate="n12")
        assert again.record.scores.keys() == {"test", "n12"} and again.record.started == first.record.started
        with pytest.raises(TypeError):
            run(toys, forest, tmp_path, resume=False)
    anew = run(toys, forest, tmp_path, evaluate="test", resume=False)
    assert anew.scores == first.scores


def test_the_seed_decides_the_estimators(toys, forest, tmp_path):
    first, same, other = (
        run(toys, forest, tmp_path / name, seed=seed, evaluate="test") for name, seed in (("a", 0), ("b", 0), ("c", 1))
    )
    assert first.scores == same.scores
    batch = next(iter(toys.test.batches(24)))
    assert not first.model(batch)["heavy"].equal(other.model(batch)["heavy"])


def test_estimators_of_another_run_or_none_are_refused(toys, forest, tmp_path):
    first, second = (run(toys, forest, tmp_path / str(seed), seed=seed, evaluate="test") for seed in (0, 1))
    for name in TabularLearner.files:
        shutil.copy(second.path / name, first.path / name)
    refused = pytest.raises(CheckpointError, match=r"estimators\.skops belongs to another run")
    with refused:
        run(toys, forest, first.path)
    with refused:
        evaluate_run(first.path, "test", data=toys, device="cpu")
    (second.path / "estimators.skops").unlink()
    missing = pytest.raises(CheckpointError, match=r"estimators\.skops is missing.*train")
    with missing:
        evaluate_run(second.path, "test", data=toys, device="cpu")
    with missing:
        load_run(second.path, toys.card)
    (second.path / "estimators.skops").write_bytes(b"PK")
    with pytest.raises(CheckpointError, match=r"estimators\.skops is damaged"):
        load_run(second.path, toys.card)


def test_settings_of_training_in_steps_are_refused(toys, forest, tmp_path):
    for changes, key in (({"steps": 5}, "steps"), ({"overrides": ["training.lr=0.1"]}, "lr")):
        with pytest.raises(ConfigError, match=rf"forest is fitted without steps.*training\.{key}"):
            run(toys, forest, tmp_path / "run", **changes)
    assert run(toys, forest, tmp_path / "run", seed=3, evaluate=None).record.seed == 3


def test_no_estimate_and_no_steps_are_told(toys, forest, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    train(data=toys, model=forest, output=tmp_path, device="cpu", evaluate=None)
    assert f"fitting forest on toys/heavy; output {tmp_path}" in caplog.text
    assert "of training ahead" not in caplog.text
