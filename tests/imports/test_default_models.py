"""Configurations and search spaces for any domain, on a dataset of one's own."""

from __future__ import annotations

import pytest

import graphbench
from graphbench.catalog.resources import ANY_DOMAIN
from graphbench.training.config import default_model, list_configs, load_config
from graphbench.tuning.method import DatasetMethod
from graphbench.tuning.space import to_plain
from graphbench.tuning.space_file import list_spaces, load_tuning_file

MODELS = [name.split("/")[1] for name in list_configs(ANY_DOMAIN)]


@pytest.fixture
def toy(molecules):
    return graphbench.from_pyg("mine/toy", molecules).name


def test_every_configuration_has_a_space_and_one_is_the_default():
    assert [name.split("/")[1] for name in list_spaces(ANY_DOMAIN)] == MODELS
    assert default_model("mine") == "gin_small"
    assert load_config("mine/toy", "pairs").model.processor == "pairs"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.thorough
def test_every_configuration_learns_and_every_space_gives_valid_runs(toy, model, tmp_path):
    file = load_tuning_file(model, "mine")
    assert (file.domain, file.model, file.trials >= 50) == ("mine", model, True)
    method, space = DatasetMethod(toy, model, budgets=file.budgets), file.configuration_space()
    space.seed(0)
    for number, configuration in enumerate([space.get_default_configuration(), *space.sample_configuration(8)]):
        method.run_config(to_plain(configuration), budget=file.budgets[number % len(file.budgets)])
    steps = 2 if file.fidelity == "steps" else None
    result = graphbench.train(toy, model, steps=steps, output=tmp_path / "run", evaluate=["test"], progress=False)
    assert 0 <= result.scores["test"]["f1"] <= 1
