"""Training, resuming and evaluating on puzzles about people, from names of configurations to scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import yaml

from graphbench.catalog.resources import baselines_dir
from graphbench.core.errors import CheckpointError, ConfigError
from graphbench.loader import Splits
from graphbench.models.build import build_model, count_parameters
from graphbench.models.story.model import completed
from graphbench.training.config import load_config
from graphbench.training.evaluate import evaluate_run, load_run
from graphbench.training.run import train

from .kinship import FEATURES, batch_of, make_splits, puzzles

TINY = """
model: {kind: story, text: tokens, encoder: %s, embedding: 8, hidden: 8, layers: 1, decoder_hidden: 16}
training: {steps: 6, batch_size: 16, lr: 1.0e-2, weight_decay: 0.0, eval_every: 3}
"""
GRAPH = ("gat", "gat_small", "gin", "gt")
STORY = ("bilstm_mean", "bilstm_attention", "bilstm_small", "relation_network", "mac")
PRETRAINED = ("bert_mlp", "bert_lstm")


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Splits:
    return make_splits(tmp_path_factory.mktemp("kinship"))


def tiny(folder: Path, encoder: str = "lstm") -> Path:
    path = folder / f"{encoder}.yaml"
    path.write_text(TINY % encoder)
    return path


@pytest.mark.parametrize("encoder", ["lstm", "relation_network", "mac"])
@pytest.mark.thorough
def test_a_run_can_be_evaluated_from_its_folder(toys: Splits, tmp_path: Path, encoder: str) -> None:
    result = train(data=toys, model=tiny(tmp_path, encoder), output=tmp_path / "run", evaluate=("val", "test"))
    assert evaluate_run(tmp_path / "run", ("val", "test"), data=toys) == result.scores
    words = json.loads((tmp_path / "run" / "config.json").read_text())["model"]["vocabulary"]
    assert {"w0", "w3", "."} <= set(words)
    assert not {"w4", "w5"} & set(words)  # of the test split alone
    model = load_run(tmp_path / "run", toys.card)
    batch = next(iter(toys.test.batches(10)))
    torch.testing.assert_close(model(batch)["answer"], result.model(batch)["answer"])


@pytest.mark.thorough
def test_an_interrupted_run_ends_with_the_same_bits(toys: Splits, tmp_path: Path) -> None:
    path, longer = tiny(tmp_path), ["training.schedule_steps=6"]
    whole = train(data=toys, model=path, output=tmp_path / "whole", evaluate=(), overrides=longer)
    train(data=toys, model=path, output=tmp_path / "parts", evaluate=(), steps=3, overrides=longer)
    parts = train(data=toys, model=path, output=tmp_path / "parts", evaluate=(), overrides=longer)
    assert parts.record.curves == whole.record.curves
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, parts.model.state_dict()[name])


def test_a_run_with_other_words_is_not_continued(toys: Splits, tmp_path: Path) -> None:
    path = tiny(tmp_path)
    train(data=toys, model=path, output=tmp_path / "run", evaluate=(), steps=2)
    with pytest.raises(CheckpointError, match=r"another run.*model.vocabulary .*\['a', 'has', 'called'\]"):
        own = {"model.vocabulary": ["a", "has", "called"]}
        train(data=toys, model=path, output=tmp_path / "run", evaluate=(), steps=2, overrides=own)


def test_a_graph_model_trains_on_data_with_texts(toys: Splits, tmp_path: Path) -> None:
    path = tmp_path / "graphs.yaml"
    path.write_text(yaml.safe_dump({
        "model": {"processor": "gat", "layers": 2, "hidden": 16, "readout": "query", "inverse_edges": True},
        "training": {"steps": 4, "batch_size": 16},
    }))  # fmt: skip
    result = train(data=toys, model=path, output=tmp_path / "run", evaluate="test")
    assert evaluate_run(tmp_path / "run", "test", data=toys) == result.scores


def test_keys_that_story_models_do_not_have(toys: Splits, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown key 'model.hiden'.*'model.hidden'"):
        train(data=toys, model=tiny(tmp_path), output=tmp_path / "run", overrides=["model.hiden=4"])


@pytest.mark.parametrize("name", [*GRAPH, *STORY, *PRETRAINED])
def test_shipped_configurations(name: str) -> None:
    path = baselines_dir() / "clutrr" / f"{name}.yaml"
    config = load_config("clutrr/gen_23", name)
    assert config.is_small is name.endswith("_small")
    assert path.read_text().startswith("# ")
    if name in PRETRAINED:
        with pytest.raises(ConfigError, match=r"model\.frozen\.path"):
            build_model(config.model, FEATURES, directed=True)
        return
    batch = batch_of(puzzles(4))
    own = completed(config.model, FEATURES, [batch]) if name in STORY else config.model
    model = build_model(own, FEATURES, directed=True)
    assert model(batch)["answer"].shape == (4, 22)


def test_the_papers_widths_reach_the_models() -> None:
    batch = batch_of(puzzles(4))

    def model(name: str) -> torch.nn.Module:
        config = load_config("clutrr/gen_23", name).model
        own = completed(config, FEATURES, [batch]) if name in STORY else config
        return build_model(own, FEATURES, directed=True)

    lstm = model("bilstm_mean")
    words, query = len(lstm.config.vocabulary) + 2, 3 * 200
    gates = 2 * 4 * 100 * (100 + 100 + 2) + 2 * 4 * 100 * (200 + 100 + 2)
    assert count_parameters(lstm) == words * 100 + gates + (query + 1) * 200 + 201 * 22
    gat = model("gat").processor
    assert (gat.rounds, [layer.heads for layer in gat.layers], gat.edges.weight.shape) == (3, [3, 1], (20, 100))
    assert model("mac").encoder.iterations == 6
    relation = model("relation_network").encoder
    layers = (relation.first, *relation.pair, *relation.total)
    widths = [layer.out_features for layer in layers if isinstance(layer, torch.nn.Linear)]
    assert widths == [64, 64, 64, 64, 256, 64]
