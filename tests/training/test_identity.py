"""A run is used again only while everything that its scores depend on is what it was; what changed is named."""

from __future__ import annotations

import importlib
import json
import logging
import sys
from dataclasses import replace

import pytest
import torch
from pydantic import BaseModel

from graphbench.catalog.cards import Metrics
from graphbench.catalog.sections import TaskSpec
from graphbench.core.errors import CheckpointError, ConfigError
from graphbench.loader import Splits
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors import Processed, Processor
from graphbench.records.files import read_record
from graphbench.training import evaluate as evaluation
from graphbench.training import loop
from graphbench.training.evaluate import evaluate_run
from graphbench.training.identity import IDENTITY, read_identity
from graphbench.training.run import train

from .conftest import make_splits


def with_card(splits: Splits, **changes) -> Splits:
    """Return a dataset whose card says something else about the same files."""
    card = splits.card.model_copy(update=changes)

    def open_split(name):
        split = splits._open(name)
        split.card = card
        return split

    return Splits(card, open_split)


@pytest.fixture
def make_toys_again(toy_folder):
    return lambda **changes: with_card(make_splits(toy_folder), **changes)


@pytest.fixture
def no_training(monkeypatch):
    """Training fails from now on."""

    def refuse(*_):
        raise AssertionError("trained again")

    def forbid():
        monkeypatch.setattr(loop.TrainingLoop, "_update", refuse)

    return forbid


def content_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


OF_CARDS = {
    "metric": ({"metrics": Metrics(primary="accuracy", also=("f1",))}, r"card metrics\.primary f1 -> accuracy"),
    "also": ({"metrics": Metrics(primary="f1")}, r"card metrics\.also \['accuracy'\] -> \[\]"),
    "weights": ({"task": TaskSpec(weights={"heavy": 2.0})}, r"card task\.weights.* -> 2\.0"),
    "protocol": ({"protocol": "other"}, "card protocol nothing -> other"),
}


@pytest.mark.parametrize("change", OF_CARDS)
def test_a_run_is_not_continued_under_another_card(make_toys_again, tiny, tmp_path, change):
    changes, words = OF_CARDS[change]
    train(data=make_toys_again(), model=tiny, steps=6, output=tmp_path / "run", evaluate="val")
    before = content_of(tmp_path / "run")
    with pytest.raises(CheckpointError, match=f"another run.*{words}.*resume=False"):
        train(data=make_toys_again(**changes), model=tiny, steps=6, output=tmp_path / "run", evaluate="val")
    assert content_of(tmp_path / "run") == before


def test_a_run_that_starts_again_has_curves_of_the_new_metric(make_toys_again, tiny, tmp_path):
    train(data=make_toys_again(), model=tiny, steps=6, output=tmp_path / "run", evaluate="val")
    other = make_toys_again(metrics=Metrics(primary="accuracy"))
    again = train(data=other, model=tiny, steps=6, output=tmp_path / "run", evaluate="val", resume=False)
    fresh = train(data=other, model=tiny, steps=6, output=tmp_path / "fresh", evaluate="val")
    assert again.record.curves == fresh.record.curves and "val_accuracy" in again.record.curves


def test_texts_of_a_card_and_the_version_of_the_package_do_not_count(make_toys_again, tiny, tmp_path, no_training):
    first = train(data=make_toys_again(), model=tiny, steps=6, output=tmp_path / "run", evaluate="val")
    path = tmp_path / "run" / IDENTITY
    path.write_text(json.dumps({**json.loads(path.read_text()), "graphbench_version": "0.0.1"}))
    no_training()
    features = tuple(replace(f, meaning="another text; no unit") for f in make_toys_again().card.features)
    texts = {"title": "Another", "summary": "Words", "description": "More", "licence": "MIT"}
    other = make_toys_again(**texts, features=features, graph_features=features)
    again = train(data=other, model=tiny, steps=6, output=tmp_path / "run", evaluate="test")
    assert again.record.curves == first.record.curves
    assert again.record.scores.keys() == {"val", "test"}


def test_a_killed_run_continues_and_a_setting_without_influence_may_change(toys, tiny, tmp_path, no_training):
    train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate="val")
    no_training()
    train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate="val", overrides={"training.log_every": 3})
    assert json.loads((tmp_path / "config.json").read_text())["training"]["log_every"] == 3
    assert evaluate_run(tmp_path, "val", data=toys)["val"].primary >= 0


@pytest.mark.parametrize(
    ("section", "key", "value", "words"),
    [
        ("model", "activation", "relu", r"config\.json model\.activation gelu -> relu"),
        ("training", "task", {"decoding": {"restarts": 3}}, r"config\.json training\.task.*3"),
        ("model", "dropout", 0.5, r"config\.json model\.dropout 0\.1 -> 0\.5"),
    ],
)
def test_a_configuration_that_was_edited_is_refused_everywhere(toys, tiny, tmp_path, section, key, value, words):
    train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate="val")
    path = tmp_path / "config.json"
    content = json.loads(path.read_text())
    content[section][key] = value
    path.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=f"edited since.*{words}.*put the values back"):
        evaluate_run(tmp_path, "val", data=toys)
    with pytest.raises(ConfigError, match=words):
        evaluation.load_run(tmp_path, toys.card)
    with pytest.raises(CheckpointError, match=words):
        train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate="val")


def test_a_finished_run_is_not_scored_by_other_metrics(make_toys_again, tiny, tmp_path, monkeypatch, caplog):
    toys = make_toys_again()
    train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate="val")
    other = make_toys_again(metrics=Metrics(primary="accuracy"))
    monkeypatch.setattr(evaluation, "card_of_run", lambda folder, dataset: other.card)
    with pytest.raises(ConfigError, match=r"metrics\.primary f1 -> accuracy.*data="):
        evaluate_run(tmp_path, "val")
    with pytest.raises(ConfigError, match=r"metrics\.primary f1 -> accuracy"):
        evaluation.write_run_predictions(tmp_path, tmp_path / "predictions", "val")
    assert not (tmp_path / "predictions").exists()
    with caplog.at_level(logging.WARNING):
        assert evaluate_run(tmp_path, "val", data=other)["val"].primary_name == "accuracy"
    assert "metrics.primary f1 -> accuracy" in caplog.text


def test_a_run_of_an_older_version_loads_and_says_what_could_not_be_checked(
    make_toys_again, tiny, tmp_path, caplog, no_training
):
    toys = make_toys_again()
    first = train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate="val")
    (tmp_path / IDENTITY).unlink()
    no_training()
    for use in (lambda: evaluate_run(tmp_path, "val", data=toys), lambda: evaluate_run(tmp_path, "val", data=toys)):
        caplog.clear()
        assert use()["val"] == first.scores["val"]
        assert [r.message for r in caplog.records if "could not be checked" in r.message] == [caplog.messages[0]]
    other = make_toys_again(metrics=Metrics(primary="accuracy"))
    with pytest.raises(CheckpointError, match="metric of validation f1 -> accuracy"):
        train(data=other, model=tiny, steps=6, output=tmp_path, evaluate="val")
    assert not (tmp_path / IDENTITY).exists()
    caplog.clear()
    again = train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate="val")
    assert again.record.curves == first.record.curves
    assert not read_identity(tmp_path).from_start and caplog.text.count("could not be checked") == 1
    with pytest.raises(CheckpointError, match=r"metrics\.primary"):  # from now on the card is known
        train(data=other, model=tiny, steps=6, output=tmp_path, evaluate="val")


def test_a_damaged_fingerprint_is_an_error(toys, tiny, tmp_path):
    train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate="val")
    (tmp_path / IDENTITY).write_text("{")
    with pytest.raises(CheckpointError, match=IDENTITY):
        evaluate_run(tmp_path, "val", data=toys)
    with pytest.raises(CheckpointError, match=IDENTITY):
        train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate="val")


class Width(BaseModel):
    width: int = 3


class WiderWidth(BaseModel):
    width: int = 4


OPTIONS = [Width]


@register_processor("identity_test_options")
class WithOptions(Processor):
    """It passes its input on; the default of its option is not in the configuration."""

    def __init__(self, config, context):
        super().__init__(config, context)
        self.options = OPTIONS[0]()
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, state):
        return Processed(state.nodes * self.scale)


def test_defaults_of_options_count(toys, tmp_path, monkeypatch):
    config = tmp_path / "own.yaml"
    config.write_text("model: {processor: identity_test_options, hidden: 8}\ntraining: {batch_size: 16, steps: 2}\n")
    train(data=toys, model=config, output=tmp_path / "run", evaluate="val")
    train(data=toys, model=config, output=tmp_path / "run", evaluate="val")
    monkeypatch.setattr(sys.modules[__name__], "OPTIONS", [WiderWidth])
    with pytest.raises(CheckpointError, match=r"option processor\.width 3 -> 4"):
        train(data=toys, model=config, output=tmp_path / "run", evaluate="val")


def test_defaults_of_estimators_count(make_toys, tmp_path, monkeypatch):
    from sklearn.ensemble import RandomForestClassifier

    config = tmp_path / "own.yaml"
    config.write_text("model: {kind: tabular, processor: random_forest, options: {n_estimators: 3}}\n")
    toys = make_toys("heavy")
    train(data=toys, model=config, output=tmp_path / "run", evaluate="val")
    train(data=toys, model=config, output=tmp_path / "run", evaluate="val")
    found = RandomForestClassifier.get_params
    monkeypatch.setattr(RandomForestClassifier, "get_params", lambda self: {**found(self), "max_features": "log2"})
    with pytest.raises(CheckpointError, match=r"random_forest\.classes\.max_features sqrt -> log2"):
        train(data=toys, model=config, output=tmp_path / "run", evaluate="val")


NET = """
from graphbench.models.processor_registry import register_processor
from graphbench.models.processors import Processed, Processor
import torch
from own_code_helper import FACTOR


@register_processor("identity_test_own")
class Own(Processor):
    def __init__(self, config, context):
        super().__init__(config, context)
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, state):
        return Processed(state.nodes * self.scale * FACTOR)
"""


@pytest.fixture
def own_code(tmp_path, monkeypatch):
    """Write and import a module with a processor, and one with a constant that it imports."""
    home = tmp_path / "code"
    home.mkdir()
    monkeypatch.syspath_prepend(str(home))

    def load(factor, extra=""):
        (home / "own_code_net.py").write_text(NET)
        (home / "own_code_helper.py").write_text(f"FACTOR = {factor}\n")
        (home / "own_code_unrelated.py").write_text(extra)
        for name in ("own_code_net", "own_code_helper", "own_code_unrelated"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        importlib.import_module("own_code_unrelated")
        return importlib.import_module("own_code_net")

    yield load
    for name in ("own_code_net", "own_code_helper", "own_code_unrelated"):
        sys.modules.pop(name, None)


def test_the_code_of_a_registered_model_counts_with_what_it_imports(toys, tmp_path, own_code, no_training, caplog):
    config = tmp_path / "own.yaml"
    config.write_text("model: {processor: identity_test_own, hidden: 8}\ntraining: {batch_size: 16, steps: 2}\n")
    own_code(1.0)
    train(data=toys, model=config, output=tmp_path / "run", evaluate="val")
    assert read_identity(tmp_path / "run").code.keys() == {"own_code_net.py", "own_code_helper.py"}
    own_code(1.0, extra="# another module of the user")
    no_training()
    train(data=toys, model=config, output=tmp_path / "run", evaluate="val")
    own_code(2.0)
    with pytest.raises(CheckpointError, match=r"module own_code_helper\.py changed"):
        train(data=toys, model=config, output=tmp_path / "run", evaluate="val")
    with caplog.at_level(logging.WARNING):
        evaluate_run(tmp_path / "run", "val", data=toys)
    assert "module own_code_helper.py changed" in caplog.text


def test_transforms_count(toy_folder, tiny, tmp_path):
    class Scaled:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, data):
            data.weight = data.weight * self.factor
            return data

    def with_transform(transform):
        splits = make_splits(toy_folder)

        def open_split(name):
            split = splits._open(name)
            split.transform = transform
            return split

        return Splits(splits.card, open_split)

    train(data=with_transform(Scaled(1.0)), model=tiny, steps=2, output=tmp_path, evaluate="val")
    train(data=with_transform(Scaled(1.0)), model=tiny, steps=2, output=tmp_path, evaluate="val")
    with pytest.raises(CheckpointError, match=r"transform of train\.factor 1\.0 -> 2\.0"):
        train(data=with_transform(Scaled(2.0)), model=tiny, steps=2, output=tmp_path, evaluate="val")


def test_an_earlier_record_is_that_of_the_folder(toys, tiny, tmp_path):
    train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate="val")
    train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate="test")
    assert read_record(tmp_path / "record.json").scores.keys() == {"val", "test"}


def test_code_that_is_imported_within_a_function_counts(toys, tmp_path, own_code, no_training):
    config = tmp_path / "own.yaml"
    config.write_text("model: {processor: identity_test_own, hidden: 8}\ntraining: {batch_size: 16, steps: 2}\n")
    home = tmp_path / "code"
    lazy = NET.replace("from own_code_helper import FACTOR\n", "").replace(
        "        return Processed", "        from own_code_late import FACTOR\n\n        return Processed"
    )
    for factor in (1.0, -2.0):
        (home / "own_code_late.py").write_text(f"FACTOR = {factor}\n")
        own_code(factor)
        (home / "own_code_net.py").write_text(lazy)
        for name in ("own_code_net", "own_code_late"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        importlib.import_module("own_code_net")
        if factor == 1.0:
            train(data=toys, model=config, output=tmp_path / "run", evaluate="val")
            assert "own_code_late.py" in read_identity(tmp_path / "run").code
    no_training()
    with pytest.raises(CheckpointError, match=r"module own_code_late\.py changed"):
        train(data=toys, model=config, output=tmp_path / "run", evaluate="val")
    sys.modules.pop("own_code_late", None)
