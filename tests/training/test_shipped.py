"""The configurations and datasets that ship with the package, as users run them."""

from __future__ import annotations

import pytest

import graphbench
from graphbench.catalog.resources import ANY_DOMAIN
from graphbench.core.errors import ConfigError
from graphbench.models.registry import architecture
from graphbench.tasks.registry import task_of
from graphbench.training.config import list_configs, load_config, models_for
from graphbench.training.evaluate import evaluate_run, write_run_predictions
from graphbench.training.run import checked_tasks

NAMES = list_configs()


@pytest.mark.parametrize("name", NAMES)
def test_every_configuration_is_valid_for_every_dataset_of_its_domain(name):
    domain, model = name.split("/")
    cards = [] if domain == ANY_DOMAIN else [graphbench.card(dataset) for dataset in graphbench.list_datasets(domain)]
    for dataset, family in [(card.id, card.family) for card in cards] or [("mine/any", "any")]:
        config = load_config(dataset, model, family=family)
        has_steps = architecture(config.kind).has_steps
        assert config.reference_steps == (config.training.steps if has_steps else 0)
        assert config.is_small == model.endswith("_small")


SERVED = (
    "algoreas/flow_easy",
    "algoreas/max_clique_easy",
    "algoreas/mst_easy",
    "chip_design/aig",
    "circuits/converters_5:both",
    "circuits/design_5",
    "clrs/bfs",
    "clrs_text/minimum",
    "clutrr/gen_23",
    "co/rb_small:coloring",
    "co/rb_small:mis",
    "co/rb_small:mis_size",
    "sat/pairs_sr:assignment",
    "sat/pairs_sr:status",
    "sat/small:kissat@vcg",
    "sat/small:select",
    "social/sim_links_quotes_small",
    "social/sim_quotes",
    "weather/sim_t21",
)


@pytest.mark.parametrize("dataset", SERVED)
def test_the_models_for_a_dataset_are_those_that_can_be_built_for_it(dataset):
    card = graphbench.card(dataset)
    can = []
    for name in (name.split("/")[1] for name in list_configs(card.domain)):
        try:
            checked_tasks(load_config(card.address, name, family=card.family), {card.address: card})
        except ConfigError:
            continue
        can.append(name)
    models = models_for(card)
    assert sorted(models) == can and can
    assert load_config(card.address).model_name == models[0]


def test_published_settings_reach_the_run():
    config = load_config("algoreas/mst_easy", "gin", family="mst")
    assert (config.training.lr, config.training.steps, config.training.warmup) == (3e-4, 11880, 1000)
    assert (config.model.positional.type, config.model.positional.k, config.model.hidden) == ("lpe", 32, 384)


@pytest.mark.parametrize("model", ["gin_small", "gt_small"])
def test_a_name_is_enough_to_train_and_evaluate(tmp_path, model):
    small = ["model.hidden=16", "model.layers=1", "model.heads=2", "training.batch_size=16"]
    result = graphbench.train(
        "mst_easy", model, steps=4, limit=32, root=tmp_path, output=tmp_path / "run", overrides=small, workers=1,
        evaluate=("val", "test"),
    )  # fmt: skip
    assert result.record.dataset == "algoreas/mst_easy"
    assert result.record.budget.small
    found = evaluate_run(tmp_path / "run", ("val", "test"), root=tmp_path, limit=32)
    assert found == result.scores
    (path,) = write_run_predictions(tmp_path / "run", tmp_path / "out", "test", root=tmp_path, limit=32)
    test = graphbench.Loader("mst_easy", root=tmp_path, limit=32).load(())["test"]
    assert task_of(test.card).score_file(path, test) == {"test": result.scores["test"]}
