import math

import numpy as np
import pytest

from graphbench.tuning.parameters import read_parameters
from graphbench.tuning.report.importance import FEWEST_TRIALS, importance
from graphbench.tuning.trial import Status, Trial

SPACE = {
    "strong": {"type": "float", "range": [1e-4, 1e-1], "log": True, "default": 1e-3},
    "weak": {"type": "categorical", "choices": ["a", "b", "c"], "default": "a"},
    "none": {"type": "int", "range": [1, 20], "log": False, "default": 5},
    "fixed": {"type": "constant", "value": 7},
}


def drawn(parameters, rng):
    """Return a configuration drawn evenly on the scale of each parameter."""
    config = {}
    for parameter in parameters:
        code = float(parameter.codes_at(rng.random(1))[0])
        config[parameter.name] = (
            parameter.values[int(code)] if parameter.values else math.exp(code) if parameter.log else code
        )
    return config


def trials_of(parameters, cost, count, budgets=(100,), seed=0):
    """Return trials of random configurations, one per budget each."""
    rng = np.random.default_rng(seed)
    trials = []
    for number in range(count):
        config = drawn(parameters, rng)
        for budget in budgets:
            value = cost(config, budget, rng)
            trials.append(
                Trial(len(trials), number, config, budget, 0, 0, Status.SUCCESS, float(value), 1.0, budget, "")
            )
    return trials


def known_cost(config, budget, rng):
    """Return a cost with known shares of variance: strong 1/3, weak 1/24 (of three values), noise aside."""
    level = (math.log10(config["strong"]) + 4) / 3
    return 2 * level + 0.25 * "abc".index(config["weak"]) + rng.normal() * 0.02


@pytest.fixture(scope="module")
def parameters():
    return read_parameters(SPACE, [])


@pytest.fixture(scope="module")
def known(parameters):
    return importance(parameters, trials_of(parameters, known_cost, 150))


def test_shares_of_a_known_function(known):
    strong, weak = 4 / 12, 0.25**2 * 2 / 3
    expected = {"strong": strong / (strong + weak), "weak": weak / (strong + weak), "none": 0.0}
    assert [effect.name for effect in known.effects] == ["strong", "weak", "none"]
    for effect in known.effects:
        assert effect.alone == pytest.approx(expected[effect.name], abs=0.06)
        assert effect.total == pytest.approx(expected[effect.name], abs=0.06)
    assert known.r2 > 0.9 and known.trusted
    assert (known.trials, known.configurations, known.budget, known.at_budget) == (150, 150, 100, 150)


@pytest.mark.thorough
def test_an_interaction_has_a_total_effect_and_none_alone():
    space = {name: {"type": "categorical", "choices": [0, 1], "default": 0} for name in ("x", "y", "z")}
    parameters = read_parameters(space, [])
    found = importance(parameters, trials_of(parameters, lambda c, b, r: c["x"] != c["y"], 80))
    effects = {effect.name: effect for effect in found.effects}
    for name in ("x", "y"):
        assert effects[name].alone < 0.1 and effects[name].total > 0.9
    assert effects["z"].total < 0.05


@pytest.mark.thorough
def test_effects_are_those_at_the_largest_budget(parameters):
    def cost(config, budget, rng):
        return "abc".index(config["weak"]) if budget == 10 else config["none"] / 20

    found = importance(parameters, trials_of(parameters, cost, 60, budgets=(10, 100)))
    assert found.effects[0].name == "none" and found.effects[0].total > 0.9
    assert found.budget == 100 and (found.trials, found.at_budget) == (120, 60)


@pytest.mark.thorough
def test_inactive_parameters_count_as_their_default():
    space = {
        "kind": {"type": "categorical", "choices": ["on", "off"], "default": "off"},
        "amount": {"type": "float", "range": [0.0, 1.0], "log": False, "default": 0.5},
    }
    conditions = [{"child": "amount", "parent": "kind", "values": ["on"]}]
    parameters = read_parameters({"space": space, "conditions": conditions, "forbidden": []}, [])
    rng = np.random.default_rng(0)
    configs = [{"kind": "on", "amount": rng.random()} if rng.random() < 0.5 else {"kind": "off"} for _ in range(100)]
    trials = [
        Trial(i, i, config, 9, 0, 0, Status.SUCCESS, config.get("amount", 0.5), 1.0, 9, "")
        for i, config in enumerate(configs)
    ]
    effects = {effect.name: effect for effect in importance(parameters, trials).effects}
    # cost: 1/2 with off, even on [0, 1] with on; the mean is 1/2 either way. amount is active in half of the space:
    # alone var(amount / 2) = 1/48 of var = 1/24, and with the interaction everything.
    assert effects["amount"].alone == pytest.approx(0.5, abs=0.1)
    assert effects["amount"].total == pytest.approx(1.0, abs=0.1)
    assert effects["kind"].alone < 0.05


@pytest.mark.thorough
def test_noise_is_not_trusted(parameters):
    found = importance(parameters, trials_of(parameters, lambda c, b, r: r.normal(), 40))
    assert found.effects and not found.trusted and found.r2 < 0.2


@pytest.mark.thorough
def test_configurations_seen_at_other_budgets_are_no_proof():
    """Noise that a configuration keeps over its budgets must not look predictable."""
    parameters = read_parameters(SPACE, [])
    noise = np.random.default_rng(1).normal(size=1000)

    def cost(config, budget, rng):
        return noise[int(config["strong"] * 1e4)] + 100 / budget

    found = importance(parameters, trials_of(parameters, cost, 40, budgets=(10, 100)))
    assert found.r2 < 0.3


@pytest.mark.thorough
def test_one_exploded_cost_does_not_hide_the_others(parameters):
    trials = trials_of(parameters, known_cost, 60)
    trials[7] = Trial(7, 7, trials[7].config, 100, 0, 0, Status.SUCCESS, 1e9, 1.0, 100, "")
    found = importance(parameters, trials)
    assert found.capped == 1
    assert found.effects[0].name == "strong" and found.effects[0].total > 0.6


@pytest.mark.thorough
def test_failed_trials_are_left_out(parameters, known):
    trials = trials_of(parameters, known_cost, 150)
    config = {"strong": 0.1, "weak": "c", "none": 20, "fixed": 7}
    failed = [Trial(200 + i, 200 + i, config, 900, 0, 0, Status.TIMEOUT, 99.0, 1.0, 3, "", "slow") for i in range(30)]
    assert importance(parameters, trials + failed) == known


@pytest.mark.slow
def test_the_same_history_gives_the_same_numbers(parameters):
    trials = trials_of(parameters, known_cost, 25)
    assert importance(parameters, trials) == importance(parameters, trials)
    assert importance(parameters, trials) != importance(parameters, trials, seed=1)


def test_refusals(parameters):
    few = importance(parameters, trials_of(parameters, known_cost, FEWEST_TRIALS - 1))
    assert few.effects == () and few.r2 is None and not few.trusted
    assert few.refusal == "too few trials: 19 successful of 19 configurations; importance needs 20 of 10"
    repeated = importance(parameters, trials_of(parameters, known_cost, 5, budgets=(1, 3, 9, 27, 81)))
    assert repeated.refusal.startswith("too few trials: 25 successful of 5 configurations")
    assert importance(parameters, []).refusal.startswith("too few trials: 0")
    same = importance(parameters, trials_of(parameters, lambda c, b, r: 0.5, 30))
    assert same.refusal == "costs do not differ"
    within = importance(parameters, trials_of(parameters, lambda c, b, r: 1 / b, 20, budgets=(10, 100)))
    assert within.refusal == "costs do not differ" and within.effects == ()
    rounding = importance(parameters, trials_of(parameters, lambda c, b, r: 0.3 + 1e-16 * r.integers(2), 30))
    assert rounding.refusal == "costs do not differ"
    constant = read_parameters({"fixed": SPACE["fixed"]}, [])
    assert importance(constant, trials_of(constant, known_cost, 0)).refusal == "no parameter of the space can vary"
