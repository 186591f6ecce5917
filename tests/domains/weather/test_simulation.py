"""The generator of simulated states, with a stand-in for the model; the model itself in the long checks."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import graphbench
from graphbench.core.errors import CardError, MissingDependency
from graphbench.data.arrays.quantisation import unpacked
from graphbench.data.build.generation import draw_samples, ensure_split
from graphbench.data.components.checks import CheckFailed, CheckSkipped
from graphbench.data.components.domain import topology_of
from graphbench.data.store.layout import dataset_folder
from graphbench.domains.weather import generators
from graphbench.domains.weather.checks import check_states
from graphbench.domains.weather.generators import GENERATORS, states_as_samples
from graphbench.domains.weather.simulation import Run, simulate
from graphbench.domains.weather.times import hours_since_epoch
from graphbench.verification.measuring import describe
from graphbench.verification.verify import _SplitChecks

GENERATOR = GENERATORS["simulation"]


@pytest.fixture
def runs(monkeypatch):
    """Replace the model by states that name their run and time; return the runs that are simulated."""
    asked = []

    def stand_in(run, count, latitudes, longitudes):
        asked.append((run, count))
        states = np.zeros((count, latitudes * longitudes, 83), np.float32)
        states[..., 0] = run.seed % 1000
        states[..., 1] = np.arange(count)[:, None]
        return states

    monkeypatch.setattr(generators, "simulate", stand_in)
    monkeypatch.setattr(generators, "_KEPT", {})
    return asked


def parameters(**changes):
    own = {"truncation": 21, "days": 2, "first": "2001-12-30", "stride": 3, "latitudes": 4, "longitudes": 8}
    return GENERATOR.parameters.model_validate({**own, **changes})


def draw(indices, key=7, **changes):
    chosen = np.array(indices)
    return GENERATOR.generate(parameters(**changes), np.uint64(key), chosen, np.zeros_like(chosen))


def test_states_of_a_run_follow_each_other_and_runs_follow_runs(runs):
    samples = draw(range(20))
    state = samples.values["state"].reshape(20, 32, 83)
    assert state[:, 0, 1].tolist() == [*range(8), *range(8), *range(4)]
    assert samples.values["run"].tolist() == [0] * 8 + [1] * 8 + [2] * 4
    starts = hours_since_epoch(np.array(["2001-12-30", "2002-01-02", "2002-01-05"], "datetime64[h]"))
    expected = np.concatenate([start + 6 * np.arange(8) for start in starts])[:20]
    assert samples.values["time"].tolist() == expected.tolist()
    assert len(np.unique(state[:, 0, 0])) == 3  # every run has a seed of its own
    assert {run.start for run, _ in runs} == {"2001-12-30", "2002-01-02", "2002-01-05"}
    assert (samples.num_nodes == 32).all() and not samples.num_edges.any()


def test_a_state_does_not_depend_on_the_others_that_are_drawn(runs):
    whole = draw(range(20)).values["state"].reshape(20, 32, 83)
    for chosen in ([13], [19, 2, 9], [3, 3]):
        np.testing.assert_array_equal(draw(chosen).values["state"].reshape(-1, 32, 83), whole[chosen])


def test_splits_and_draws_have_other_seeds(runs):
    seeds = {draw([0], key=key).values["state"][0, 0] for key in range(20)}
    assert len(seeds) > 15


def test_runs_are_simulated_once_while_they_are_kept(runs):
    draw(range(8))
    draw([2, 5])
    draw([9])
    assert len(runs) == 2
    assert all((count - 1) % 20 == 0 for _, count in runs)  # to the end of a chunk of five days


def checks_of(card, folder):
    """Return the checks of a validation split that is stored with other bits than on the card."""
    ensure_split(card.graphs, "val", root=folder, workers=1, progress=False)
    return _SplitChecks(card, "val", dataset_folder(card, folder), 1, topology_of(card))


def with_split(card, **parameters):
    spec = card.splits["val"]
    changed = spec.model_copy(update={"parameters": {**spec.parameters, **parameters}})
    return card.model_copy(update={"splits": {**card.splits, "val": changed}})


def test_a_file_of_another_machine_is_not_compared_with_the_card(runs, tmp_path):
    checks = checks_of(graphbench.card("weather/sim_t21"), tmp_path)
    with pytest.raises(CheckSkipped, match="other bits than on the card"):
        checks.first_samples()
    assert "regenerated and equal" in checks.stored_file()
    with pytest.raises(CheckSkipped, match="one run"):
        checks.statistics()


@pytest.mark.parametrize(("difference", "passes"), [(2.0, True), (4.0, False)])
def test_on_another_machine_the_states_of_a_run_count_once(runs, tmp_path, difference, passes):
    card = with_split(graphbench.card("weather/sim_t21"), days=1)
    checks = checks_of(card, tmp_path)
    states = unpacked(card.graph_schema, checks.stored_or_drawn[0])
    mean, _ = describe(checks.generator, checks.parameters, states, checks.shared)["t2m"]
    known = {"val": {"t2m": (mean + difference, 1.0)}}  # 5 runs: 5 errors are 3.2, of 20 states 1.6
    card = card.model_copy(update={"measured": card.measured.model_copy(update={"statistics": known})})
    if passes:
        assert "t2m" in checks_of(card, tmp_path).statistics()
    else:
        with pytest.raises(CheckFailed, match="t2m"):
            checks_of(card, tmp_path).statistics()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"truncation": 20}, "truncation"),
        ({"spin_up": 7}, "spin_up"),
        ({"first": "yesterday"}, "first"),
        ({"day": 3}, "did you mean 'days'"),
    ],
)
def test_wrong_parameters_are_refused(changes, message):
    card = graphbench.card("weather/sim_t21")
    specs = {
        name: spec.model_copy(update={"parameters": {**spec.parameters, **changes}})
        for name, spec in card.splits.items()
    }
    with pytest.raises(CardError, match=message):
        GENERATOR.parse(card.model_copy(update={"splits": specs}), "train")


def test_without_the_simulator_there_is_one_clear_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "jcm", None)
    monkeypatch.setitem(sys.modules, "jcm.model", None)
    monkeypatch.setattr(generators, "_KEPT", {})
    card = graphbench.card("weather/sim_t21")
    with pytest.raises(MissingDependency, match=r"graphbench\[weather\].*source='official'"):
        draw_samples(card.graphs, "val", [0])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_model_is_deterministic_and_obeys_the_laws():
    pytest.importorskip("jcm")
    run = Run(21, 5, "2001-03-01", 10)
    states = simulate(run, 25, 16, 32)
    np.testing.assert_array_equal(simulate(run, 3, 16, 32), states[:3])
    assert not np.array_equal(simulate(Run(21, 6, "2001-03-01", 10), 1, 16, 32), states[:1])
    hours = hours_since_epoch(np.datetime64("2001-03-01T00", "h")) + 6 * np.arange(25)
    samples = states_as_samples(states, hours, np.zeros(25, np.int64))
    problems = [text for text in check_states(samples, 16) if "geopotential_50 " not in text]
    assert problems == []  # after ten days the stratosphere is still warmer, and so higher, than the real one
