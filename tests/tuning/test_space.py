"""Search spaces: what they hold, what they refuse and how it is said."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from ConfigSpace import (
    BetaIntegerHyperparameter,
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    EqualsCondition,
    ForbiddenEqualsClause,
    ForbiddenLessThanRelation,
    NormalFloatHyperparameter,
    NotEqualsCondition,
    OrConjunction,
    UniformFloatHyperparameter,
)

from graphbench.core.errors import ConfigError
from graphbench.training.config import load_config
from graphbench.tuning.space import defaults_from, describe, space_from, to_plain

LR = {"type": "float", "range": [1e-6, 0.1], "log": True}
FULL: dict[str, Any] = {
    "lr": LR,
    "layers": {"type": "int", "range": [1, 10]},
    "width": {"type": "int", "range": [10, 50], "quantum": 10},
    "share": {"type": "float", "range": [0, 0.5], "quantum": 0.1, "default": 0.3},
    "mixed": {"type": "categorical", "choices": ["a", 1, 2.5, None, [1, 2]], "default": None},
    "rate": {"type": "ordinal", "sequence": [0, 1e-3, 1]},
    "bias": {"type": "categorical", "choices": [True, False]},
    "fixed": {"type": "constant", "value": [1, 2]},
}
CONDITIONS = [
    {"child": "layers", "parent": "mixed", "values": ["a", None]},
    {"child": "width", "parent": "layers", "greater_than": 3},
    {"child": "width", "parent": "layers", "less_than": 8},
]
FORBIDDEN = [{"bias": False, "rate": [0, 1]}, {"mixed": [1, 2]}]


@pytest.fixture
def full() -> ConfigurationSpace:
    space = space_from(FULL, CONDITIONS, FORBIDDEN)
    space.seed(0)
    return space


def test_samples_obey_ranges_conditions_and_forbidden_combinations(full: ConfigurationSpace) -> None:
    samples = [to_plain(configuration) for configuration in full.sample_configuration(300)]
    for sample in samples:
        assert 1e-6 <= sample["lr"] <= 0.1
        assert ("layers" in sample) == (sample["mixed"] in ("a", None))
        assert ("width" in sample) == ("layers" in sample and 3 < sample["layers"] < 8)
        assert sample["bias"] or sample["rate"] == 1e-3
        assert sample["mixed"] != [1, 2]
        assert sample["fixed"] == [1, 2]
    assert {sample["width"] for sample in samples if "width" in sample} == {10, 20, 30, 40, 50}
    assert {sample["share"] for sample in samples} == {0.0, 0.1, 0.2, 0.3, 0.4, 0.5}
    assert {sample["layers"] for sample in samples if "layers" in sample} == set(range(1, 11))
    assert sum(sample["lr"] < 3e-4 for sample in samples) > 100, "a logarithmic range is sampled on its scale"


def test_values_come_back_plain_and_as_they_were_written(full: ConfigurationSpace) -> None:
    seen: dict[str, set[type]] = {}
    for configuration in full.sample_configuration(200):
        sample = to_plain(configuration)
        assert json.loads(json.dumps(sample)) == sample
        for name, value in sample.items():
            seen.setdefault(name, set()).add(type(value))
    assert seen["mixed"] == {str, int, float, type(None)}
    assert seen["rate"] == {int, float}
    assert (seen["bias"], seen["layers"], seen["width"], seen["lr"]) == ({bool}, {int}, {int}, {float})
    assert list(to_plain(full.get_default_configuration())) == list(full)


def test_a_configuration_can_be_made_again_from_its_plain_values(full: ConfigurationSpace) -> None:
    for configuration in full.sample_configuration(100):
        again = Configuration(full, values=json.loads(json.dumps(to_plain(configuration))))
        assert again == configuration
        assert to_plain(again) == to_plain(configuration)


def test_defaults_are_the_given_ones_or_the_middle(full: ConfigurationSpace) -> None:
    default = to_plain(full.get_default_configuration())
    assert (default["share"], default["mixed"], default["rate"], default["bias"]) == (0.3, None, 0, True)
    assert default["width"] == 30
    assert default["lr"] == pytest.approx(10**-3.5)


def test_a_ready_space_passes_through() -> None:
    ready = ConfigurationSpace({"a": (0, 3)})
    assert space_from(ready) is ready


def test_a_description_is_the_written_form_and_reads_back(full: ConfigurationSpace) -> None:
    described = describe(full)
    assert json.loads(json.dumps(described)) == described
    assert described["space"]["lr"] == {**LR, "default": pytest.approx(10**-3.5)}
    assert described["space"]["mixed"] == FULL["mixed"]
    assert described["space"]["fixed"] == FULL["fixed"]
    assert described["conditions"] == CONDITIONS
    assert described["forbidden"] == FORBIDDEN
    again = space_from(described)
    assert again == full
    assert describe(again) == described


def test_a_description_does_not_depend_on_the_order_of_writing(full: ConfigurationSpace) -> None:
    turned = dict(reversed(FULL.items()))
    assert describe(space_from(turned, CONDITIONS[::-1], FORBIDDEN[::-1])) == describe(full)
    assert list(space_from(turned)) == list(space_from(FULL)), "SMAC sees the order of the names"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("lr", {"range": [1e-6, 0.2]}),
        ("lr", {"log": False}),
        ("lr", {"default": 0.01}),
        ("layers", {"range": [1, 11]}),
        ("rate", {"sequence": [0, 1, 1e-3]}),
        ("bias", {"default": False}),
        ("fixed", {"value": [2, 1]}),
    ],
)
def test_any_change_is_another_space(name: str, change: dict[str, Any]) -> None:
    assert describe(space_from({**FULL, name: {**FULL[name], **change}})) != describe(space_from(FULL))


def test_conditions_and_forbidden_combinations_are_part_of_the_identity(full: ConfigurationSpace) -> None:
    assert describe(space_from(FULL, CONDITIONS[:2], FORBIDDEN)) != describe(full)
    assert describe(space_from(FULL, CONDITIONS, FORBIDDEN[:1])) != describe(full)


def test_a_description_is_the_same_in_every_process(full: ConfigurationSpace) -> None:
    script = (
        "import json, sys; from graphbench.tuning.space import describe, space_from;"
        "print(json.dumps(describe(space_from(**json.loads(sys.argv[1])))))"
    )
    given = json.dumps({"hyperparameters": FULL, "conditions": CONDITIONS, "forbidden": FORBIDDEN})
    done = subprocess.run([sys.executable, "-c", script, given], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == json.dumps(describe(full))


def test_ready_spaces_with_other_parts_have_a_description_too() -> None:
    space = ConfigurationSpace()
    weighted = CategoricalHyperparameter("c", ["a", "b"], weights=[0.2, 0.8])
    space.add([weighted, NormalFloatHyperparameter("n", mu=0, sigma=1, lower=-3, upper=3)])
    space.add(
        [BetaIntegerHyperparameter("i", alpha=2, beta=2, lower=0, upper=9), UniformFloatHyperparameter("m", 0, 1)]
    )
    space.add([UniformFloatHyperparameter("k", 0, 1), UniformFloatHyperparameter("x", 0, 1)])
    space.add(
        OrConjunction(EqualsCondition(space["x"], space["c"], "a"), NotEqualsCondition(space["x"], space["i"], 0))
    )
    space.add([ForbiddenLessThanRelation(space["k"], space["m"]), ForbiddenEqualsClause(space["i"], 1)])
    described = describe(space)
    assert json.loads(json.dumps(described)) == described
    assert described["space"]["c"]["weights"] == [0.2, 0.8]
    assert described["space"]["n"]["type"] == "normal_float"
    assert described["conditions"][0]["type"] == "OR"
    assert {"i": 1} in described["forbidden"]
    plain = [to_plain(configuration) for configuration in space.sample_configuration(20)]
    assert {type(sample["i"]) for sample in plain} == {int} and {type(sample["n"]) for sample in plain} == {float}


def test_values_that_json_cannot_hold_are_refused() -> None:
    space = ConfigurationSpace()
    space.add(CategoricalHyperparameter("activation", [len, max]))
    with pytest.raises(ConfigError, match=r"value <built-in function len>.*JSON"):
        describe(space)
    with pytest.raises(ConfigError, match="activation: the value <built-in"):
        to_plain(space.get_default_configuration())


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"type": "flaot", "range": [0, 1]},
            r"lr.*'flaot'.*'float'",
        ),
        ({"type": "bool"}, r"lr.*'bool'.*'categorical'"),
        ({"range": [0, 1]}, "lr: the key 'type' is missing"),
        ({"type": "float"}, r"space: lr: the key 'range' is missing"),
        ([0, 1], r"space: lr: \[0, 1\].*\{type: float, range: \[0, 0\.5\]\}"),
        (
            {"type": "float", "range": [0, 1], "lgo": True},
            r"lr\.lgo.*'log'",
        ),
        ({"type": "float", "range": 3}, r"lr\.range: 3 .*\[lower, upper\]"),
        ({"type": "float", "range": [0, 1, 2]}, r"lr\.range: \[0, 1, 2\].*\[lower, upper\]"),
        ({"type": "float", "range": [0, "1"]}, r"lr\.range\[1\]: '1'.*finite"),
        ({"type": "float", "range": [0, True]}, r"lr\.range\[1\]: True.*finite"),
        ({"type": "float", "range": [0, float("inf")]}, r"lr\.range\[1\]: inf.*finite"),
        (
            {"type": "int", "range": [0, 1.5]},
            r"lr\.range\[1\]: 1\.5.*round",
        ),
        (
            {"type": "float", "range": [1, 0]},
            r"lr\.range: \[1, 0\].*1\.0 is above.*0\.0.*swap",
        ),
        (
            {"type": "int", "range": [2, 2]},
            r"lr\.range: \[2, 2\].*2.*\{type: constant, value: 2\}",
        ),
        (
            {"type": "float", "range": [0, 1], "log": True},
            r"lr\.log: True.*above 0",
        ),
        (
            {"type": "float", "range": [0, 1], "log": "yes"},
            r"lr\.log: 'yes'.*boolean",
        ),
        (
            {"type": "float", "range": [1e-14, 1], "log": True},
            r"lr\.log: True.*1e-14 is too fine",
        ),
        ({"type": "float", "range": [0, 1e-12]}, r"\[0, 1e-12\].*too fine"),
        (
            {"type": "float", "range": [0, 1], "default": 2},
            r"lr\.default: 2 .*outside \[0\.0, 1\.0\]",
        ),
        (
            {"type": "int", "range": [0, 10], "quantum": 3},
            r"lr\.quantum: 3 .*0 to 10.*\[0, 9\]",
        ),
        (
            {"type": "float", "range": [0, 0.5], "quantum": 2},
            r"lr\.quantum: 2 .*0\.0 to 0\.5.*\[0\.0, 2\.0\]",
        ),
        (
            {"type": "int", "range": [0, 5000], "quantum": 1},
            r"lr\.quantum: 1 .*5000 steps.*1000",
        ),
        (
            {"type": "int", "range": [0, 9], "quantum": 3, "default": 4},
            r"lr\.default: 4 .*steps of 3.*3",
        ),
        (
            {"type": "int", "range": [1, 9], "quantum": 2, "log": True},
            r"lr\.quantum: 2 .*logarithmic",
        ),
        ({"type": "int", "range": [0, 9], "quantum": -3}, r"lr\.quantum: -3.*above 0"),
        (
            {"type": "categorical", "choices": "ab"},
            r"lr\.choices: 'ab'.*list",
        ),
        (
            {"type": "categorical", "choices": ["a"]},
            r"lr\.choices: \['a'\].*constant",
        ),
        (
            {"type": "categorical", "choices": ["a", "b", "a"]},
            r"lr\.choices.*'a' is listed twice",
        ),
        (
            {"type": "categorical", "choices": [True, 1]},
            r"lr\.choices.*1 is listed twice.*true equals 1",
        ),
        (
            {"type": "categorical", "choices": ["a", len]},
            r"lr\.choices\[1\]: the value <built-in function len>.*JSON",
        ),
        (
            {"type": "ordinal", "sequence": ["low", "high"], "default": "hihg"},
            r"lr\.default: 'hihg'.*'high'",
        ),
        (
            {"type": "ordinal", "sequence": [0, 1], "default": False},
            r"lr\.default: False.*none of the values",
        ),
        ({"type": "ordinal", "choices": [0, 1]}, r"lr\.choices: unknown key.*type"),
        (
            {"type": "constant", "value": float("nan")},
            r"lr\.value: the value nan.*JSON",
        ),
    ],
)
def test_mistakes_of_hyperparameters_are_named(spec: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        space_from({"lr": spec})


@pytest.mark.parametrize("written", [{}, [], None, "lr"])
def test_a_space_is_a_mapping(written: Any) -> None:
    with pytest.raises(ConfigError, match=r"^space: .*expected a mapping"):
        space_from(written)


def test_names_are_text() -> None:
    with pytest.raises(ConfigError, match="must be text, got 3"):
        space_from({3: LR})  # type: ignore[dict-item]


BASE = {
    "kind": {"type": "categorical", "choices": ["none", "rwse", "lpe"]},
    "k": {"type": "int", "range": [1, 9]},
    "n": {"type": "int", "range": [1, 9]},
}


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        (
            [{"child": "k", "parent": "kin", "values": ["lpe"]}],
            r"conditions\[0\]\.parent: 'kin'.*'kind'",
        ),
        (
            [{"child": "kk", "parent": "kind", "values": ["lpe"]}],
            r"conditions\[0\]\.child: 'kk'",
        ),
        ([{"parent": "kind", "values": ["lpe"]}], r"conditions\[0\]: the key 'child'"),
        (
            [{"child": "k", "parent": "kind"}],
            r"conditions\[0\].*values, greater_than, less_than",
        ),
        ([{"child": "k", "parent": "n", "greater_than": 2, "less_than": 5}], r"got greater_than, less_than"),
        (
            [{"child": "k", "parent": "kind", "value": "lpe"}],
            r"conditions\[0\]\.value.*'values'",
        ),
        (
            [{"child": "k", "parent": "kind", "values": "lpe"}],
            r"\.values: 'lpe'.*list",
        ),
        (
            [{"child": "k", "parent": "kind", "values": ["lep"]}],
            r"'lep' is no value of kind.*'lpe'",
        ),
        ([{"child": "k", "parent": "n", "greater_than": 20}], r"20 .*n, whose range is \[1, 9\]"),
        ([{"child": "k", "parent": "n", "greater_than": True}], r"True is no value of n"),
        (
            [{"child": "k", "parent": "kind", "less_than": "lpe"}],
            "kind have no order",
        ),
        (
            [{"child": "k", "parent": "k", "greater_than": 2}],
            r"conditions\[0\]\.parent.*k -> k",
        ),
        (
            [
                {"child": "k", "parent": "n", "greater_than": 2},
                {"child": "n", "parent": "kind", "values": ["lpe"]},
                {"child": "kind", "parent": "k", "greater_than": 2},
            ],
            r"conditions\[2\]\.parent.*kind -> k -> n -> kind",
        ),
        ({"child": "k"}, r"conditions: \{'child': 'k'\}.*list"),
        (["k"], r"conditions\[0\]: 'k'.*keys"),
    ],
)
def test_mistakes_of_conditions_are_named(conditions: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        space_from(BASE, conditions)


@pytest.mark.parametrize(
    ("forbidden", "message"),
    [
        ([{"kid": "lpe"}], r"space: forbidden\[0\]\.kid: 'kid'.*'kind'"),
        ([{"kind": "lep"}], r"forbidden\[0\]\.kind: 'lep' is no value of kind"),
        ([{"kind": ["lpe", "lep"]}], r"forbidden\[0\]\.kind: 'lep' is no value of kind"),
        ([{"kind": []}], r"forbidden\[0\]\.kind: expected a value"),
        ([{"k": 3}, {"kind": "none"}], r"forbidden\[1\]: \{'kind': 'none'\}.*defaults"),
        ([{}], r"forbidden\[0\]: \{\}.*at least 1 item"),
        ("kind", r"forbidden: 'kind'.*list"),
    ],
)
def test_mistakes_of_forbidden_combinations_are_named(forbidden: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        space_from(BASE, (), forbidden)


def test_a_baselines_values_become_defaults_where_they_lie_inside() -> None:
    config = load_config("algoreas/mst_easy", "gin", family="mst")
    space = space_from(
        {
            "training.lr": LR,
            "training.warmup": {"type": "int", "range": [10, 500]},
            "model.positional.type": {"type": "categorical", "choices": ["none", "lpe"]},
            "model.positional.k": {"type": "int", "range": [2, 64]},
            "training.betas": {"type": "categorical", "choices": [[0.8, 0.9], [0.9, 0.999]]},
            "model.pooling": {"type": "constant", "value": "sum"},
            "mine": {"type": "int", "range": [1, 3]},
        },
        [{"child": "model.positional.k", "parent": "model.positional.type", "values": ["lpe"]}],
    )
    changed = defaults_from(config, space)
    assert to_plain(changed.get_default_configuration()) == {
        "training.lr": 3e-4,
        "training.warmup": 255,  # the baseline's 1000 lies outside
        "model.positional.type": "lpe",
        "model.positional.k": 32,
        "training.betas": [0.9, 0.999],
        "model.pooling": "sum",
        "mine": 2,
    }
    assert to_plain(space.get_default_configuration())["model.positional.type"] == "none", "the given space stays"
    before, after = describe(space), describe(changed)
    assert before["conditions"] == after["conditions"]
    for name, entry in before["space"].items():
        assert {**entry, "default": 0} == {**after["space"][name], "default": 0}


def test_a_baseline_that_its_space_forbids_is_told() -> None:
    config = load_config("algoreas/mst_easy", "gin", family="mst")
    space = space_from(
        {"model.positional.type": {"type": "categorical", "choices": ["none", "lpe"]}},
        forbidden=[{"model.positional.type": "lpe"}],
    )
    with pytest.raises(ConfigError, match="values of gin are forbidden"):
        defaults_from(config, space)


def test_numbers_that_configspace_cannot_hold_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"space: ConfigSpace refuses it: .*; choose smaller numbers"):
        space_from({"n": {"type": "int", "range": [0, 2**70]}})
    with pytest.raises(ConfigError, match=r"x\.range\[1\]: 1000.* is refused: expected a number that fits a float"):
        space_from({"x": {"type": "float", "range": [0, 10**400]}})
