import hashlib
import json
import logging
import math
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, Float
from ConfigSpace.hyperparameters import NormalFloatHyperparameter
from smac.intensifier.hyperband_utils import determine_HB

from graphbench.tuning.budgets import bracket_sizes, ladder
from graphbench.tuning.search import make_search
from graphbench.tuning.settings import Method
from graphbench.tuning.space import to_plain
from graphbench.tuning.trial import Status, Trial

from .runs import RUNGS, conditional_space, finished, run_search, smooth_cost

METHODS: tuple[Method, ...] = ("smac", "hyperband", "random")
HALVING: tuple[Method, ...] = ("smac", "hyperband")


def _search(method: Method, seed: int = 0, space: ConfigurationSpace | None = None, rungs: tuple[int, ...] = RUNGS):  # type: ignore[no-untyped-def]
    return make_search(method, space or conditional_space(), rungs, 3, seed)


def test_brackets_are_those_of_the_hyperband_paper() -> None:
    """Algorithm 1 of Li et al. 2018 for R = 81, eta = 3."""
    assert bracket_sizes(5, 3) == [[81, 27, 9, 3, 1], [34, 11, 3, 1], [15, 5, 1], [8, 2], [5]]


@pytest.mark.parametrize("eta", [2, 3, 4])
@pytest.mark.parametrize("rungs", [1, 2, 3, 4, 5])
def test_brackets_are_smacs_where_its_logarithms_are_right(rungs: int, eta: int) -> None:
    smallest = 0.999  # below the exact budget, so that rounding down does not lose a rung
    theirs = determine_HB(smallest, eta ** (rungs - 1), eta)["n_configs_in_stage"]
    ours = bracket_sizes(rungs, eta)
    assert len(theirs) == len(ours)
    for bracket, sizes in enumerate(ours):
        off_by_rounding = [(a, b) for a, b in zip(theirs[bracket], sizes, strict=True) if a != b]
        assert all(b - a == 1 for a, b in off_by_rounding), (theirs[bracket], sizes)


@pytest.mark.parametrize("method", METHODS)
def test_the_default_is_the_first_trial_and_reaches_the_largest_budget_however_bad(method: Method) -> None:
    space = conditional_space()
    default = to_plain(space.get_default_configuration())
    trials = run_search(
        _search(method, space=space),
        45,
        lambda config, budget: 1e3 if config == default else smooth_cost(config, budget),
    )
    assert trials[0].config == default and trials[0].config_id == 0
    budgets = [trial.budget for trial in trials if trial.config == default]
    assert budgets == ([27] if method == "random" else [1, 3, 9, 27])


@pytest.mark.parametrize("method", HALVING)
@pytest.mark.thorough
def test_one_round_has_the_trials_of_the_table_and_the_default(method: Method) -> None:
    trials = run_search(_search(method), 75)
    sizes = bracket_sizes(4, 3)
    round_one = [trial for trial in trials if trial.config_id < sum(counts[0] for counts in sizes)]
    wanted: Counter[int] = Counter()
    for bracket, counts in enumerate(sizes):
        wanted.update(dict(zip(RUNGS[bracket:], counts, strict=True)))
    counted = Counter(trial.budget for trial in round_one)
    extra = counted - wanted
    assert not wanted - counted
    assert set(extra) <= {3, 9, 27} and max(extra.values(), default=0) <= 1
    assert len(round_one) < len(trials)


@pytest.mark.parametrize("method", HALVING[1:])
@pytest.mark.parametrize("coarse", [False, True], ids=["distinct", "ties"])
def test_the_best_of_every_rung_are_promoted_of_equal_ones_those_better_below(method: Method, coarse: bool) -> None:
    def cost(config: Any, budget: int) -> float:
        found = smooth_cost(config, budget)
        return round(found * 0.7) if coarse else found

    trials = run_search(_search(method, seed=3), 72, cost)
    promotions = 0
    for sizes, start, group in _brackets(trials):
        order = sorted(group)
        for stage in range(len(sizes) - 1):
            here = {t.config_id: t.cost for t in trials if t.config_id in group and t.budget == RUNGS[start + stage]}
            order = sorted((config_id for config_id in order if config_id in here), key=here.__getitem__)
            best = order[: sizes[stage + 1]]
            above = {t.config_id for t in trials if t.config_id in group and t.budget == RUNGS[start + stage + 1]}
            assert above == set(best) | ({0} & here.keys())
            promotions += len(above)
    assert promotions > 15


def _brackets(trials: list[Trial]) -> list[tuple[list[int], int, set[int]]]:
    """Return sizes, first rung and configurations of each bracket of the first round."""
    found, first = [], 0
    for start, sizes in enumerate(bracket_sizes(4, 3)):
        found.append((sizes, start, set(range(first, first + sizes[0]))))
        first += sizes[0]
    assert {t.config_id for t in trials} >= set(range(first))
    return found


@pytest.mark.parametrize("method", HALVING)
def test_failed_configurations_are_never_promoted(method: Method) -> None:
    trials = run_search(
        _search(method), 60, lambda config, budget: math.nan if config["act"] == "relu" else smooth_cost(config, budget)
    )
    failed = {trial.config_id for trial in trials if not trial.succeeded}
    assert 0 in failed and len(failed) > 8
    assert all(Counter(t.config_id for t in trials)[config_id] == 1 for config_id in failed)


@pytest.mark.thorough
def test_a_search_in_which_everything_fails_goes_on_with_new_configurations() -> None:
    trials = run_search(_search("smac"), 50, lambda config, budget: math.nan)
    assert len(trials) == 50
    assert len({trial.config_id for trial in trials}) == 50


def test_an_early_failure_costs_as_much_as_the_worst_success_that_follows() -> None:
    search = _search("smac")
    asked = [search.ask() for _ in range(4)]
    assert all(asked)
    search.tell(finished(asked[0], None, Status.RAISED))
    search.tell(finished(asked[1], 7.0))
    search.tell(finished(asked[2], 5.0))
    search.tell(finished(asked[3], None, Status.TIMEOUT))
    assert _told(search) == [7.0, 7.0, 5.0, 7.0]


def _told(search: Any) -> list[float]:
    return [value.cost for value in search._smac.runhistory.values()]


def test_with_several_trials_in_flight_promoted_configurations_go_first() -> None:
    search = _search("hyperband")
    lanes, trials, running, late = 8, [], [], 0
    for _ in range(130):
        while len(running) < lanes:
            asked = search.ask()
            assert asked is not None
            waiting = _promotable_now(trials, running, asked)
            late += bool(waiting) and asked.config_id not in waiting
            running.append(asked)
        ended = running.pop(0)
        trials.append(finished(ended, smooth_cost(ended.config, ended.budget)))
        search.tell(trials[-1])
    pairs = [(t.config_id, t.budget) for t in [*trials, *running]]
    assert len(set(pairs)) == len(pairs)
    assert late == 0
    assert Counter(t.budget for t in trials)[27] >= 5


def _promotable_now(trials: list[Trial], running: list[Any], asked: Any) -> set[int]:
    """Return configurations of the first bracket that have earned a larger budget and do not have it yet."""
    found = set()
    sizes = bracket_sizes(4, 3)[0]
    group: set[int] = set(range(sizes[0]))
    for stage, count in enumerate(sizes[1:]):
        here = sorted((t.cost, t.config_id) for t in trials if t.config_id in group and t.budget == RUNGS[stage])
        if len(here) < len(group):
            return found
        group = {config_id for _, config_id in here[:count]} | {0}
        started = {t.config_id for t in [*trials, *running] if t.budget == RUNGS[stage + 1]}
        found |= group - started
    return found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lanes", [1, 4])
def test_a_small_space_is_used_up_and_its_best_reaches_the_largest_budget(method: Method, lanes: int) -> None:
    space = ConfigurationSpace()
    space.add([Categorical("a", [1, 2, 3, 4]), Categorical("b", ["x", "y", "z"])])
    trials = run_search(
        _search(method, space=space), 500, lambda config, budget: config["a"] + ord(config["b"]) + 1 / budget, lanes
    )
    configs = {json.dumps(trial.config, sort_keys=True) for trial in trials}
    assert len(configs) == 12 == len({trial.config_id for trial in trials})
    assert len({(trial.config_id, trial.budget) for trial in trials}) == len(trials)
    best = min((trial for trial in trials if trial.budget == 27), key=lambda trial: trial.cost)
    assert best.config == {"a": 1, "b": "x"}


def test_random_search_trains_different_configurations_to_the_largest_budget() -> None:
    trials = run_search(_search("random"), 50)
    assert {trial.budget for trial in trials} == {27}
    assert [trial.config_id for trial in trials] == list(range(50))
    assert run_search(_search("random"), 50) == trials
    assert run_search(_search("random", seed=1), 50)[1:] != trials[1:]


_SCRIPT = """
import hashlib, json, sys
sys.path.insert(0, {folder!r})
from tuning.runs import RUNGS, conditional_space, run_search
from graphbench.tuning.search import make_search
trials = run_search(make_search("smac", conditional_space(), RUNGS, 3, 5), 60)
print(hashlib.sha256(json.dumps([trial.to_json() for trial in trials]).encode()).hexdigest())
"""


@pytest.mark.slow  # the frozen search of tests/parity is the quick check
def test_the_same_seed_gives_the_same_trials_in_every_process() -> None:
    """Python's hashes of strings differ between processes, and so do orders of sets."""
    script = _SCRIPT.format(folder=str(Path(__file__).parents[1]))
    here = hashlib.sha256(
        json.dumps([trial.to_json() for trial in run_search(_search("smac", seed=5), 60)]).encode()
    ).hexdigest()
    for salt in ("1", "2"):
        answer = subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": salt}, capture_output=True, text=True
        )
        assert answer.stdout.strip() == here, answer.stderr


@pytest.mark.parametrize("method", METHODS)
def test_another_seed_gives_other_trials(method: Method) -> None:
    first, second = (run_search(_search(method, seed=seed), 10) for seed in (0, 1))
    assert first[0].config == second[0].config
    assert all(a.config != b.config for a, b in zip(first[1:], second[1:], strict=True))
    assert {trial.seed for trial in second} == {1}


@pytest.mark.slow
def test_the_model_finds_better_configurations_than_chance() -> None:
    means = defaultdict(list)
    for method in HALVING:
        for seed in range(2):
            trials = run_search(_search(method, seed), 90)
            late = [smooth_cost(t.config, 27) for t in trials if t.config_id >= 39]
            means[method].append(np.mean(late))
    assert np.mean(means["smac"]) < 0.7 * np.mean(means["hyperband"])


@pytest.mark.slow
def test_asking_and_telling_takes_little_time() -> None:
    search = _search("smac")
    started = time.process_time()
    run_search(search, 100)
    assert (time.process_time() - started) / 100 < 0.5


@pytest.mark.parametrize("method", METHODS)
def test_a_search_is_silent_writes_nothing_and_leaves_the_space_alone(
    method: Method,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    caplog.set_level(logging.INFO)
    space = conditional_space()
    space.seed(7)
    drawn = [to_plain(config) for config in space.sample_configuration(5)]
    space.seed(7)
    run_search(_search(method, space=space), 45)
    assert [to_plain(config) for config in space.sample_configuration(5)] == drawn
    assert not caplog.records
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_one_rung_is_plain_model_based_search() -> None:
    trials = run_search(_search("smac", rungs=(10,)), 25)
    assert {trial.budget for trial in trials} == {10}
    assert len({trial.config_id for trial in trials}) == 25


@pytest.mark.parametrize(("smallest", "largest", "eta"), [(1, 243, 3), (100, 2500, 5), (7, 100, 3)])
def test_budgets_are_whole_steps_and_no_rung_is_lost(smallest: int, largest: int, eta: int) -> None:
    rungs = ladder(smallest, largest, eta)
    search = make_search("hyperband", conditional_space(), rungs, eta, 0)
    first = sum(bracket_sizes(len(rungs), eta)[0])
    trials = run_search(search, first + len(rungs))
    assert sorted({trial.budget for trial in trials}) == rungs
    assert all(type(trial.budget) is int for trial in trials)


@pytest.mark.parametrize("method", METHODS)
def test_a_new_search_that_is_told_of_trials_goes_on_without_repeating_them(method: Method) -> None:
    old = run_search(_search(method, seed=0), 45)
    search = _search(method, seed=1)
    for trial in old:
        search.adopt(trial)  # type: ignore[arg-type]  # it has all attributes of a question
    for trial in old:
        search.tell(trial)
    assert search.promotable() >= ({trial.config_id for trial in old} if method != "random" else set())
    new = []
    for _ in range(20):
        asked = search.ask()
        assert asked is not None
        new.append(finished(asked, smooth_cost(asked.config, asked.budget)))
        search.tell(new[-1])
    assert [trial.number for trial in new] == list(range(45, 65))
    known = {(json.dumps(trial.config, sort_keys=True), trial.budget) for trial in old}
    assert not known & {(json.dumps(trial.config, sort_keys=True), trial.budget) for trial in new}
    by_config = {json.dumps(trial.config, sort_keys=True): trial.config_id for trial in old}
    for trial in new:
        assert by_config.setdefault(json.dumps(trial.config, sort_keys=True), trial.config_id) == trial.config_id
    assert len(set(by_config.values())) == len(by_config)


def test_promotable_configurations_are_all_that_are_ever_trained_further() -> None:
    for lanes in (1, 5):
        search = _search("hyperband")
        running, dropped = [], set()
        for _ in range(100):
            while len(running) < lanes and (asked := search.ask()) is not None:
                assert asked.config_id not in dropped
                running.append(asked)
            ended = running.pop(0)
            search.tell(finished(ended, smooth_cost(ended.config, ended.budget)))
            kept = search.promotable() | {asked.config_id for asked in running}
            dropped |= set(range(max(a.config_id for a in [*running, ended]) + 1)) - kept
        assert len(dropped) > 20


def test_a_space_that_smac_cannot_search_is_a_clear_error_and_random_search_can() -> None:
    from ConfigSpace import EqualsCondition

    from graphbench.core.errors import ConfigError

    space = ConfigurationSpace()
    space.add(
        [
            Categorical("opt", ["adam", "sgd"]),
            NormalFloatHyperparameter("momentum", mu=0.5, sigma=0.1, lower=0, upper=1),
        ]
    )
    space.add(Float("lr", (0.1, 1)))
    space.add(EqualsCondition(space["momentum"], space["opt"], "sgd"))
    with pytest.raises(ConfigError, match="method=random"):
        _search("smac", space=space)
    assert len(run_search(_search("random", space=space), 5, lambda config, budget: config["lr"])) == 5
