"""Settings of a tuning run: what they accept, what they refuse, and the budgets they make."""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ConfigSpace import ConfigurationSpace
from smac.intensifier.successive_halving import SuccessiveHalving

from graphbench.core.errors import ConfigError
from graphbench.tuning.budgets import ladder
from graphbench.tuning.settings import OptimizationArgs
from graphbench.tuning.space_file import load_tuning_file

SPACE = {"lr": {"type": "float", "range": [1e-6, 0.1], "log": True}}
GIVEN: dict[str, Any] = {"space": SPACE, "min_budget": 10, "max_budget": 100, "output": "runs/tune"}


def smac_budgets(smallest: int, largest: int, eta: int) -> list[float]:
    powers = SuccessiveHalving._get_max_iterations(eta, largest, smallest)
    budgets: list[float] = SuccessiveHalving._compute_configs_and_budgets_for_stages(eta, largest, powers)[0]
    return budgets


@pytest.mark.parametrize("eta", [2, 3, 4, 5, 10])
def test_the_ladder_is_smacs_in_whole_steps(eta: int) -> None:
    sizes = [1, 2, 3, 7, 10, 27, 100, 370, 440, 729, 1000, 1157, 2314, 10000, 11880, 31250, 62500, 100000]
    for smallest in sizes:
        for largest in (size for size in sizes if size >= smallest):
            ours, theirs = ladder(smallest, largest, eta), smac_budgets(smallest, largest, eta)
            if len(ours) == len(theirs) + 1:  # their rounding error, at exact powers alone
                assert largest == smallest * eta ** len(theirs)
                ours = ours[1:]
            assert ours == [math.floor(budget + 0.5) for budget in theirs], (smallest, largest)


@pytest.mark.parametrize(
    ("smallest", "largest", "eta", "budgets"),
    [
        (27, 729, 3, [27, 81, 243, 729]),
        (440, 11880, 3, [440, 1320, 3960, 11880]),
        (370, 10000, 3, [370, 1111, 3333, 10000]),
        (1, 243, 3, [1, 3, 9, 27, 81, 243]),
        (1, 1000, 10, [1, 10, 100, 1000]),
        (2, 5, 2, [3, 5]),
        (100, 250, 3, [250]),
        (7, 7, 3, [7]),
    ],
)
def test_ladders(smallest: int, largest: int, eta: int, budgets: list[int]) -> None:
    assert ladder(smallest, largest, eta) == budgets
    assert all(type(budget) is int for budget in ladder(smallest, largest, eta))


def test_smac_loses_the_smallest_budget_that_the_ladder_keeps() -> None:
    assert [round(budget) for budget in smac_budgets(1, 243, 3)] == [3, 9, 27, 81, 243]


def test_ladders_rise_and_keep_to_the_limits() -> None:
    for smallest in range(1, 12):
        for largest in range(smallest, 300):
            for eta in (2, 3, 5):
                budgets = ladder(smallest, largest, eta)
                assert budgets == sorted(set(budgets)) and budgets[-1] == largest
                assert smallest <= budgets[0] and (largest < smallest * eta or budgets[0] < smallest * eta + 0.5)


@pytest.mark.parametrize("given", [(0, 10, 3), (10, 9, 3), (1, 10, 1)])
def test_impossible_ladders_are_refused(given: tuple[int, int, int]) -> None:
    with pytest.raises(ConfigError, match=f"{given[0]} to {given[1]} by factors of {given[2]}"):
        ladder(*given)


@dataclass
class AsDataclass:
    min_budget: int = 10
    max_budget: int = 100
    output: Path = Path("runs/tune")
    space: dict[str, Any] = field(default_factory=lambda: SPACE)


@pytest.mark.parametrize(
    "settings",
    [GIVEN, AsDataclass(), SimpleNamespace(**GIVEN), argparse.Namespace(**GIVEN), OptimizationArgs.of(GIVEN)],
    ids=lambda settings: type(settings).__name__,
)
def test_settings_come_in_many_forms(settings: Any) -> None:
    args = OptimizationArgs.of(settings)
    assert isinstance(args.space, ConfigurationSpace) and list(args.space) == ["lr"]
    assert (args.min_budget, args.max_budget, args.output) == (10, 100, Path("runs/tune"))
    assert (args.trials, args.eta, args.seed, args.workers, args.method) == (100, 3, 0, 1, "smac")
    assert args.walltime_limit is args.cluster is args.trial_limit is args.memory_limit is args.worst_cost is None
    assert args.space_file is None
    assert args.budgets == [11, 33, 100]


def test_settings_cannot_be_changed_afterwards() -> None:
    args = OptimizationArgs.of(GIVEN)
    with pytest.raises(ValueError, match="frozen"):
        args.trials = 3  # type: ignore[misc]


def test_a_ready_space_is_kept_and_a_whole_one_has_conditions() -> None:
    ready = ConfigurationSpace({"a": (0, 3)})
    assert OptimizationArgs.of({**GIVEN, "space": ready}).space is ready
    spaces = {"a": {"type": "int", "range": [0, 3]}, "b": {"type": "int", "range": [0, 3]}}
    whole = {"space": spaces, "conditions": [{"child": "b", "parent": "a", "greater_than": 1}]}
    assert list(OptimizationArgs.of({**GIVEN, "space": whole}).space.conditional_hyperparameters) == ["b"]


def test_a_file_gives_what_is_not_given() -> None:
    file = load_tuning_file("algoreas/gin_small")
    args = OptimizationArgs.of({"space": "algoreas/gin_small", "output": "x"})
    assert args.space == file.configuration_space()
    assert (args.min_budget, args.max_budget, args.eta, args.trials) == (22, 729, 2, 110)
    assert args.space_file == "hpo/algoreas/gin_small.yaml"
    own = OptimizationArgs.of({"space": "algoreas/gin_small", "output": "x", "trials": 7, "eta": 2, "min_budget": 30})
    assert (own.trials, own.eta, own.budgets) == (7, 2, [46, 91, 182, 365, 729])
    short = OptimizationArgs.of({"space": "algoreas/gin_small", "output": "x", "max_budget": 81})
    assert short.budgets == [3, 5, 10, 20, 41, 81]
    assert (short.space["training.warmup"].lower, short.space["training.warmup"].upper) == (1, 16)


def test_a_path_is_a_space_too(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "title: mine\nspace: {lr: {type: float, range: [1e-6, 0.1], log: true}}\nbudget: {min: 1, max: 9}\n"
    )
    for given in (path, str(path)):
        args = OptimizationArgs.of({"space": given, "output": tmp_path})
        assert (list(args.space), args.budgets, args.space_file) == (["lr"], [1, 3, 9], str(path))
        assert args.space["lr"].lower == 1e-6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trails": 3}, r"'trails'.*'trials'\? \(keys: space, min_budget"),
        ({"min_budget": 0}, r"min_budget = 0 .*greater than or equal to 1"),
        ({"min_budget": 0.5}, r"min_budget = 0\.5.*valid integer"),
        ({"min_budget": True}, r"min_budget = True.*number"),
        ({"max_budget": 9}, r"max_budget 9 is below min_budget 10.*swap"),
        ({"eta": 1}, r"eta = 1 .*greater than or equal to 2"),
        ({"trials": 0}, r"trials = 0 is refused"),
        ({"workers": 0}, r"workers = 0 is refused"),
        ({"seed": -1}, r"seed = -1 is refused"),
        ({"walltime_limit": 0}, r"walltime_limit = 0.*greater than 0"),
        ({"trial_limit": float("nan")}, r"trial_limit = nan is refused"),
        ({"memory_limit": -1}, r"memory_limit = -1 is refused"),
        ({"worst_cost": float("inf")}, r"worst_cost = inf is refused: .*finite"),
        ({"method": "bohb"}, r"method = 'bohb'.*'smac', 'hyperband' or 'random'"),
        ({"cluster": "here"}, r"cluster = 'here'.*tcp://host:8786"),
        ({"cluster": 5}, r"cluster = 5.*address"),
        (
            {"cluster": "tcp://a:1", "workers": 2},
            "workers 2 and cluster 'tcp://a:1' exclude",
        ),
        (
            {"space": {"lr": {"type": "float", "range": [1, 0]}}},
            r"^optimization_args: space: lr\.range: \[1, 0\]",
        ),
        ({"space": None}, r"space: None is refused.*mapping"),
        ({"space": "algoreas/gni"}, r"space 'algoreas/gni'.*'algoreas/gin'"),
        ({"space": "missing.yaml"}, r"'missing\.yaml' does not exist"),
    ],
)
def test_mistakes_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        OptimizationArgs.of({**GIVEN, **change})


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        OptimizationArgs.of({"space": SPACE, "eta": 1, "wrokers": 2})
    for part in ("'min_budget' is missing", "'max_budget' is missing", "'output' is missing", "eta = 1", "'wrokers'"):
        assert part in str(caught.value)


@pytest.mark.parametrize("settings", [None, 3, "algoreas/gin", ["space"], AsDataclass])
def test_other_things_are_no_settings(settings: Any) -> None:
    with pytest.raises(ConfigError, match="optimization_args: expected a mapping"):
        OptimizationArgs.of(settings)


def test_a_client_is_a_cluster() -> None:
    client = SimpleNamespace(submit=lambda: None)
    assert OptimizationArgs.of({**GIVEN, "cluster": client}).cluster is client
    assert OptimizationArgs.of({**GIVEN, "cluster": "tcp://10.0.0.1:8786"}).cluster == "tcp://10.0.0.1:8786"


def test_the_settings_load_no_search_library() -> None:
    script = (
        "import sys, graphbench.tuning.settings, graphbench.tuning.space, graphbench.tuning.space_file as files;"
        "files.load_tuning_file('algoreas/gin');"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"ConfigSpace", "smac", "torch", "sklearn", "dask", "distributed"} & set(done.stdout.split())
