"""Rollouts of forecasts: what a model is given at every step, and the scores of every lead time."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from graphbench.catalog.names import catalog
from graphbench.core.errors import CardError, ResultError
from graphbench.data.build.generation import draw_samples
from graphbench.domains.weather import CHANNELS, LEVELS
from graphbench.domains.weather.times import clock
from graphbench.loader import Loader
from graphbench.records.record import RunRecord, is_deterministic
from graphbench.reports.ood import ood_splits, split_nodes
from graphbench.tasks.forecast import weather_scores
from graphbench.tasks.forecast.rollouts import RolloutOptions, rollout_starts
from graphbench.tasks.registry import task_of
from graphbench.training.evaluate import evaluate_splits
from graphbench.training.scoring import score_split
from graphbench.verification.measuring import measure

POINTS, NODES, STEPS = 512, 512 + 162, 3
CPU = torch.device("cpu")


@pytest.fixture
def data(load):
    """Return splits of nine, four and four states, where rollouts of the training split have three steps."""
    options = {"latitudes": 16, "rollout": {"splits": ["train"], "steps": STEPS, "every": 2}}
    return load(task={"type": "forecast", "options": options})


def test_starts_leave_room_for_all_steps_and_stay_within_runs(data):
    samples = data.train.samples
    runs = np.array([0] * 9 + [1] * 4 + [2] * 8)
    many = type(samples)(np.ones(21, np.int64), np.zeros(21, np.int64), samples.edges, {"run": runs})
    chosen = rollout_starts(many, data.card.series, RolloutOptions(steps=STEPS, every=2))
    expected = [s for s in range(21) if s + 2 * STEPS < 21 and runs[s + 2 * STEPS] == runs[s]]
    begins = {0: 0, 1: 9, 2: 13}
    assert chosen.tolist() == [s for s in expected if (s - begins[int(runs[s])]) % 2 == 0] == [0, 2, 13]


def test_every_step_sees_the_forecast_of_the_one_before(task, data, states):
    seen = []

    def model(batch):
        seen.append(batch)
        return 0.01 * batch.state.reshape(-1, NODES, 83)[:, :POINTS] + batch.clock.sum(1)[:, None, None]

    model.gives_predictions = True
    further = task.further_batches(data.train, 8)
    (rollout,) = further.batches
    answers = task.predict(model, rollout)
    before, hours = states(data.train), data.train.samples.values["time"]
    assert further.samples == rollout.num_graphs == 2  # the third state has no room for six more
    for which, start in enumerate((0, 2)):
        state = before[start]
        for step in range(STEPS):
            times = float(hours[start]) + 12 * step
            given = seen[step]
            np.testing.assert_allclose(given.clock[which], clock(times), atol=1e-6)
            assert given.time[which] == times
            rows = given.state.reshape(-1, NODES, 83)[which]
            np.testing.assert_allclose(rows[:POINTS], state, rtol=1e-4, atol=1e-3)
            torch.testing.assert_close(rows[POINTS:], seen[0].state.reshape(-1, NODES, 83)[which, POINTS:])
            x = given.x.reshape(-1, NODES, given.x.shape[1])[which]
            torch.testing.assert_close(x[:, :83], rows)
            state = state + 0.01 * state + clock(times).sum()
            np.testing.assert_allclose(answers[which, step], state - before[start], rtol=1e-3, atol=1e-2)
    assert seen[1].edge_index is seen[0].edge_index
    torch.testing.assert_close(rollout.batch.state, data.train.make_batch(np.array([0, 2])).state)


def test_scores_of_lead_times_are_those_of_weather_scores(task, data, states):
    def damped(batch):
        return (-0.02 * batch.state).reshape(-1, NODES, 83)[:, :POINTS]

    scores = score_split(damped, task, data.train, device=CPU)
    assert [name for name in scores if name != "train"] == ["train_h12", "train_h24", "train_h36"]
    before = states(data.train)
    begins = np.array([0, 2])
    usual = before.mean(axis=0)
    for step in (1, 2, 3):
        truth, forecast = before[begins + 2 * step], before[begins] * 0.98**step
        expected = weather_scores(*(_by_variable(a) for a in (truth, forecast, np.broadcast_to(usual, truth.shape))))
        score = scores[f"train_h{12 * step}"]
        assert score["mse_2m_temperature"] == pytest.approx(expected["mse"]["2m_temperature"], rel=1e-3)
        assert score["mse_geopotential"] == pytest.approx(expected["mse"]["geopotential"].mean(), rel=1e-3)
        assert score["acc_2m_temperature"] == pytest.approx(expected["acc"]["2m_temperature"], rel=1e-3)
        assert score.graphs == 2


def _by_variable(array):
    cube = array.reshape(len(array), 32, 16, 83)
    levels = [CHANNELS.index(f"geopotential_{n}") for n in LEVELS]
    return {"2m_temperature": cube[..., 0], "geopotential": np.stack([cube[..., c] for c in levels], axis=1)}


def test_the_first_step_is_the_forecast_that_is_trained(task, data):
    def model(batch):
        return torch.ones(batch.num_graphs, POINTS, 83)

    chosen = data.train.index_select([0, 2])
    scores = score_split(model, task, chosen, device=CPU)
    assert scores["train_h12"]["mse"] == pytest.approx(scores["train"]["mse"], rel=1e-5)


def test_models_are_selected_without_rollouts(task, data):
    def model(batch):
        return torch.zeros(batch.num_graphs, POINTS, 83)

    assert list(score_split(model, task, data.train, device=CPU, selecting=True)) == ["train"]
    assert list(evaluate_splits(model, {"val": data.val}, device=CPU)) == ["val"]


def test_forecasts_that_diverge_have_scores_up_to_then(task, data, caplog):
    def model(batch):
        return torch.full((batch.num_graphs, POINTS, 83), 1e38) + batch.state[0, 0] * 1e30

    found = score_split(lambda b: model(b).clamp(max=3e38) if len(b) else None, task, data.train, device=CPU)
    assert "train" in found and "train_h36" not in found
    assert "not finite from" in caplog.text


def test_a_split_without_room_says_so(small, tmp_path, monkeypatch, caplog):
    options = {"latitudes": 16, "rollout": {"steps": 20}}
    card = small(task={"type": "forecast", "options": options})
    monkeypatch.setitem(catalog().cards, card.id, card)
    data = Loader(card.id, root=tmp_path / "root", progress=False, workers=1).load()
    task = task_of(card)
    assert task.further_batches(data.test, 4).samples == 0
    assert "test has no run of 20 steps" in caplog.text


def test_measured_floors_have_lead_times(small, tmp_path, monkeypatch):
    card = small(
        task={"type": "forecast", "options": {"latitudes": 16, "rollout": {"steps": 2, "every": 1}}},
        splits={n: {"count": 6, "parameters": {"first": f}} for n, f in (("train", 0), ("val", 6), ("test", 11))},
    )
    monkeypatch.setitem(catalog().cards, card.id, card)
    Loader(card.id, root=tmp_path, progress=False, workers=1).load("train")
    found = measure(card, progress=False, root=tmp_path)
    assert set(found.floor) == {"val", "test", "test_h12", "test_h24"}
    assert found.scored_samples == {"val": 6, "test": 6, "test_h12": 2, "test_h24": 2}
    test = draw_samples(card, "test", np.arange(6))
    rows = task_of(card)._at(test, np.arange(6)).astype(np.float64)
    lag = ((rows[4:] - rows[:2]) ** 2).mean(axis=(0, 1))[0]
    assert found.floor["test_h24"]["persistence"]["mse_2m_temperature"] == pytest.approx(lag, rel=1e-3)


def test_rollout_options_are_checked(small):
    with pytest.raises(CardError, match=r"rollout\.steps"):
        task_of(small(task={"type": "forecast", "options": {"latitudes": 16, "rollout": {"steps": 1}}}))
    with pytest.raises(CardError, match=r"task\.options\.clock"):
        task_of(small(task={"type": "forecast", "options": {"latitudes": 16, "clock": "nothing"}}))


def test_reports_show_lead_times_in_order(data):
    card = data.card
    runs = SimpleNamespace(scores={"test": {}, "test_h240": {}, "test_h24": {}, "val": {}})
    assert ood_splits(card, [runs]) == ["test", "test_h24", "test_h240"]
    assert [split_nodes(card, name) for name in ("test", "test_h24")] == [12.0, 24.0]


def test_records_count_the_forecasts_of_every_lead_time(task, data):
    def still(batch):
        return torch.zeros(batch.num_graphs, POINTS, 83)

    scores = score_split(still, task, data.train, device=CPU)
    record = RunRecord.from_scores({"train": data.train}, scores, model="still", deterministic=True)
    assert record.scores.keys() == scores.keys() and is_deterministic(record)
    assert record.graphs_scored == {"train": 9, "train_h12": 2, "train_h24": 2, "train_h36": 2}
    with pytest.raises(ResultError, match="was measured on train"):
        RunRecord.from_scores({"test": data.test}, {"test": scores["train"]}, model="still")
    few = score_split(still, task, data.train.index_select([0, 2]), device=CPU)
    with pytest.raises(ResultError, match="sample 1 was not scored"):
        RunRecord.from_scores({"train": data.train}, {"train": few["train"]}, model="still")
