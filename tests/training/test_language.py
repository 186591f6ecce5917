"""Training of text models: what is learned, what is scored, what is selected on, and continuing after a stop."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch

import graphbench
from graphbench.core.errors import ConfigError, TrainingError
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.build.generation import ensure_split
from graphbench.domains.clrs_text import exact_match
from graphbench.loader import Splits
from graphbench.models.language import PAD, TextGenerator, TextModel, decode, encode
from graphbench.models.language_config import TextModelConfig
from graphbench.records.files import read_record
from graphbench.tasks.registry import task_of
from graphbench.tasks.text.language import evaluate_language_model
from graphbench.tasks.text.prompts import Corpus, Prompts
from graphbench.training import checkpoint
from graphbench.training.config import load_config
from graphbench.training.distributed import World
from graphbench.training.evaluate import evaluate_run, evaluate_splits, load_run, write_run_predictions
from graphbench.training.learners.torch_learner import TorchLearner
from graphbench.training.run import checked_tasks, make_context, train

COUNTS = {"train": 6, "val": 4, "test": 7}
TINY = """
model: {kind: text, layers: 2, hidden: 64, heads: 4, context: 160}
training: {steps: 12, batch_size: 6, lr: 3.0e-3, weight_decay: 0.0, warmup: 2, gradient_clip: 1.0, eval_every: 4}
"""


def short_texts(root, counts=COUNTS, sizes=(4, 5)):
    """Return prompts of ``minimum`` with two decimals, so that they are short."""
    own = graphbench.card("clrs_text/minimum")
    splits = {
        name: spec.model_copy(
            update={"count": counts[name], "parameters": {"sizes": sizes, "seeds": [seed], "decimals": 2}}
        )
        for seed, (name, spec) in enumerate(own.splits.items())
    }
    card = own.model_copy(update={"splits": splits, "measured": None})

    def open_split(name):
        return GraphDataset(card, name, ensure_split(card, name, root, None, workers=1))

    return Splits(card, open_split)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("texts")


@pytest.fixture
def texts(root):
    return short_texts(root)


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


def loop_of(texts, tiny, folder, **overrides):
    config = load_config("clrs_text/minimum", tiny, overrides=overrides)
    torch.manual_seed(0)
    tasks, data = checked_tasks(config, {texts.card.address: texts.card}), {texts.card.address: texts}
    return TorchLearner(make_context(config, tasks, data, folder, World(0, 1, torch.device("cpu")))).loop


def prompts_of(split):
    return Prompts.of(split, "prompt", "reference")


def weights(folder, file="checkpoint"):
    return checkpoint.load_tensors(folder / f"{file}.safetensors")[0]


@pytest.mark.parametrize(
    ("changes", "steps"),
    [
        ({}, 250),
        pytest.param({"randomised_positions": 400}, 600, marks=pytest.mark.slow),
        ({"positions": "learned"}, 250),
    ],
)
@pytest.mark.thorough
def test_a_handful_of_prompts_is_learned_by_heart(changes, steps, texts, tiny, tmp_path):
    texts._opened["val"] = texts.train  # what is selected on is what is learned
    overrides = {f"model.{key}": value for key, value in changes.items()}
    options = {"model": tiny, "steps": steps, "output": tmp_path / "run", "evaluate": ("train", "test")}
    result = train(data=texts, overrides=overrides, **options)
    losses = result.record.curves["train_loss"]
    assert losses[0][1] > 1.0 > 0.05 > losses[-1][1]
    assert {name: score.primary for name, score in result.scores.items() if name.startswith("train")} == {
        "train": 1.0,
        "train_n4": 1.0,
        "train_n5": 1.0,
    }
    samples = prompts_of(texts.train)
    answers = evaluate_language_model(
        TextGenerator(load_run(result.path)), texts.train, tmp_path / "answers.jsonl", batch_size=4
    )
    assert [answer.output for answer in answers] == [reference.rstrip("\n") for reference in samples.references]


@pytest.mark.thorough
def test_final_answers_are_learned_without_their_traces(texts, tiny, tmp_path):
    texts._opened["val"] = texts.train
    overrides = {"training.task.answers": "final"}
    result = train(data=texts, overrides=overrides, model=tiny, steps=250, output=tmp_path / "run", evaluate=("train",))
    assert result.scores["train"].primary == 1.0
    assert result.record.config["training"]["task"] == {"answers": "final"}
    samples = prompts_of(texts.train)
    assert any("|" in reference for reference in samples.references)
    model = TextGenerator(load_run(result.path))
    answers = evaluate_language_model(model, texts.train, tmp_path / "answers.jsonl", batch_size=4)
    assert [answer.output for answer in answers] == [
        reference.rpartition("|")[2].strip() for reference in samples.references
    ]


def test_an_unknown_kind_of_answer_is_refused(texts, tiny, tmp_path):
    with pytest.raises(ConfigError, match="answers"):
        train(data=texts, overrides={"training.task.answers": "short"}, model=tiny, steps=1, output=tmp_path / "run")


def test_a_run_leaves_a_record_with_a_score_for_every_size(texts, tiny, tmp_path):
    result = train(data=texts, model=tiny, output=tmp_path / "run")
    assert sorted(p.name for p in result.path.glob("[!.]*")) == [
        "best.safetensors",
        "checkpoint.safetensors",
        "config.json",
        "data.json",
        "fingerprint.json",
        "record.json",
    ]
    record = read_record(result.path / "record.json")
    assert record == result.record
    assert list(record.scores) == ["val", "val_n4", "val_n5", "test", "test_n4", "test_n5"]
    assert record.graphs_scored == {"val": 4, "val_n4": 2, "val_n5": 2, "test": 7, "test_n4": 4, "test_n5": 3}
    assert record.data_hashes.keys() == {"train", "val", "test"}
    assert record.budget.label.startswith("12 steps of 6 prompts")
    curve = record.curves["val_loss"]
    assert [step for step, _ in curve] == [4, 8, 12]
    assert (record.best_step, min(loss for _, loss in curve)) in curve
    assert min(record.throughput_graphs_per_s, record.latency_ms, record.latency_ms_batched) > 0
    assert not result.model.training
    again = evaluate_run(result.path, ("test",), data=texts)
    assert {name: score.to_dict() for name, score in again.items()} == {
        name: record.scores[name] for name in ("test", "test_n4", "test_n5")
    }


def test_scores_of_sizes_are_replaced_with_those_of_their_split(texts, tiny, tmp_path):
    train(data=texts, model=tiny, output=tmp_path / "run", evaluate=("val", "test"))
    texts._opened["test"] = texts.test[0:1]
    record = train(data=texts, model=tiny, output=tmp_path / "run", evaluate="test").record
    assert list(record.scores) == ["val", "val_n4", "val_n5", "test", "test_n4"]
    assert record.graphs_scored == {"val": 4, "val_n4": 2, "val_n5": 2, "test": 1, "test_n4": 1}
    assert record.notes == "prompts scored: test 1 of 7"


@pytest.mark.thorough
def test_a_stopped_run_goes_on_with_the_same_bits(texts, tiny, tmp_path):
    overrides = {
        "model.randomised_positions": 300,
        "model.dropout": 0.1,
        "training.batch_size": 4,
        "training.schedule_steps": 12,
        "training.log_every": 1,
    }
    options = {"data": texts, "model": tiny, "overrides": overrides, "evaluate": None}
    whole = train(output=tmp_path / "whole", **options)
    for steps in (5, 12):
        parts = train(output=tmp_path / "parts", steps=steps, **options)
    for name, value in weights(tmp_path / "whole").items():
        assert torch.equal(weights(tmp_path / "parts")[name], value), name
    assert parts.record.curves["train_loss"] == whole.record.curves["train_loss"]
    seen = dict(parts.record.curves["val_loss"])  # the stop adds a validation
    assert {step: seen[step] for step, _ in whole.record.curves["val_loss"]} == dict(whole.record.curves["val_loss"])


def test_parts_of_a_batch_add_up_to_it(texts, tiny, tmp_path):
    ends = []
    for parts in (1, 4):
        train(data=texts, model=tiny, overrides={"training.accumulate": parts}, output=tmp_path / str(parts), steps=3,
              evaluate=None)  # fmt: skip
        ends.append(weights(tmp_path / str(parts)))
    for name, value in ends[0].items():
        if name.startswith("model."):
            torch.testing.assert_close(ends[1][name], value, rtol=1e-3, atol=1e-5)


def test_the_loss_is_on_the_references_alone(texts):
    samples = prompts_of(texts.train)
    model = TextModel(TextModelConfig(layers=1, hidden=8, heads=1, context=160))
    batch = model.prepare(Corpus.of(samples, 160).prompts.take(np.array([3, 0])))
    tokens, targets = batch.tokens, batch.targets
    assert tokens.shape == targets.shape
    for row, number in enumerate((3, 0)):
        prompt, reference = samples.prompts[number], samples.references[number]
        assert decode(tokens[row].numpy().astype(np.uint8)) == (prompt + reference)[: tokens.shape[1]]
        scored = targets[row] != -100
        assert decode(targets[row][scored].numpy().astype(np.uint8)) == reference
        assert int(scored.nonzero()[0]) == len(prompt) - 1
        assert (tokens[row, len(prompt + reference) :] == PAD).all()


@pytest.mark.parametrize("kind", [{}, {"model.randomised_positions": 300}])
def test_the_validation_loss_is_the_mean_over_all_characters(kind, texts, tiny, tmp_path):
    loop = loop_of(texts, tiny, tmp_path, **kind, **{"training.batch_size": 3})
    before = torch.random.get_rng_state()
    found = loop._validation_score()
    assert found == loop._validation_score() and torch.equal(before, torch.random.get_rng_state())
    assert loop.model.training
    if kind:
        return
    samples, losses = prompts_of(texts.val), []
    with torch.inference_mode():
        for prompt, reference in zip(samples.prompts, samples.references, strict=True):
            tokens = torch.from_numpy(encode(prompt + reference).astype(np.int64))
            shares = loop.model.logits(tokens[None], loop.model.text_positions(1, len(tokens)))[0].log_softmax(-1)
            places = range(len(prompt), len(tokens))
            losses += [-float(shares[place - 1, tokens[place]]) for place in places]
    assert found == pytest.approx(sum(losses) / len(losses), rel=1e-5)


def test_prompts_that_do_not_fit_are_told(texts, tiny, tmp_path, caplog):
    samples = prompts_of(texts.train)
    shortest = min(len(p + r) for p, r in zip(samples.prompts, samples.references, strict=True))
    with caplog.at_level(logging.WARNING):
        corpus = Corpus.of(samples, shortest)
    assert 0 < corpus.left_out < 6 and len(corpus) == 6 - corpus.left_out
    assert f"{corpus.left_out} of 6 prompts are longer than context={shortest}" in caplog.text
    with pytest.raises(ConfigError, match="no prompt of 6 fits into context=10"):
        Corpus.of(samples, 10)


def test_prompts_beyond_the_models_positions_count_as_wrong(root, tiny, tmp_path, caplog):
    texts = short_texts(root / "larger", {"train": 6, "val": 4, "test": 6}, sizes=(4, 5, 20))
    overrides = {"model.context": 120, "model.positions": "learned"}
    with caplog.at_level(logging.WARNING):
        record = train(data=texts, model=tiny, overrides=overrides, output=tmp_path / "run", evaluate="test").record
    assert (
        "2 of 6 prompts of test have more characters than the model has positions (120), and count as wrong"
        in caplog.text
    )
    assert record.scores["test_n20"] == {"exact_match": 0.0} and record.graphs_scored["test"] == 6
    assert "2 training prompts are longer than the context, and left out" in record.notes
    assert "prompts longer than the model's positions, counted as wrong: 2 of test" in record.notes


def test_latencies_are_of_few_prompts_that_the_model_can_read(texts, tiny, tmp_path, monkeypatch):
    task = task_of(texts.card)
    samples = prompts_of(texts.val)
    longest = int(samples.lengths.max())
    model = TextModel(TextModelConfig(layers=1, hidden=8, heads=1, context=longest - 1, positions="learned"))
    kept = prompts_of(task.timed(texts.val, model))
    assert kept.prompts == [p for p, n in zip(samples.prompts, samples.lengths, strict=True) if n < longest]
    assert len(task.timed(texts.val, TextModel(TextModelConfig(layers=1, hidden=8, heads=1, context=160)))) == 4
    assert task.timing == (5, 16, 1)


def test_answers_come_in_the_order_of_the_prompts_whatever_the_batches(texts, monkeypatch):
    samples = prompts_of(texts.test)
    known = dict(zip(samples.prompts, samples.references, strict=True))
    calls = []

    def complete(self, prompts, characters):
        calls.append(len(prompts))
        return [known[prompt] for prompt in prompts]

    monkeypatch.setattr(TextGenerator, "__call__", complete)
    model = TextModel(TextModelConfig(layers=1, hidden=8, heads=1, context=160))
    for most, batches in ((256, [7]), (3, [3, 3, 1])):
        scores = evaluate_splits(model, {"test": texts.test}, "auto" if most == 256 else most, "cpu")
        assert {name: score.primary for name, score in scores.items()} == {"test": 1.0, "test_n4": 1.0, "test_n5": 1.0}
        assert calls == batches
        calls.clear()
    assert model.training


def test_bfloat16_scores_a_run(texts, tiny, tmp_path):
    result = train(
        data=texts, model=tiny, steps=4, output=tmp_path, evaluate="test", overrides={"training.precision": "bf16"}
    )
    assert 0 <= result.scores["test"].primary <= 1


def test_models_and_data_must_fit(texts, tiny, tmp_path):
    graphs = tmp_path / "graphs.yaml"
    graphs.write_text("model: {processor: gin}\ntraining: {steps: 5}\n")
    with pytest.raises(ConfigError, match="clrs_text/minimum: output feature 'reference' is a text"):
        train(data=texts, model=graphs, output=tmp_path / "a")
    with pytest.raises(ConfigError, match="algoreas/mst_easy: models of kind text"):
        train("mst_easy", tiny, limit=20, root=tmp_path, workers=1, output=tmp_path / "b")


def test_several_processes_are_refused(texts, tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ConfigError, match="one process, not 2"):
        train(data=texts, model=tiny, output=tmp_path)


def test_a_diverging_run_is_told(texts, tiny, tmp_path):
    overrides = {"training.lr": 1e30, "training.gradient_clip": None, "training.warmup": 0}
    with pytest.raises(TrainingError, match="the training loss is nan"):
        train(data=texts, model=tiny, output=tmp_path, overrides=overrides, steps=40)


def test_a_name_is_enough_to_train_and_evaluate(tmp_path):
    small = ["model.hidden=16", "model.layers=1", "training.batch_size=4"]
    result = graphbench.train(
        "clrs_text/minimum", "transformer_small", steps=2, limit=12, root=tmp_path, output=tmp_path / "run",
        overrides=small, workers=1, evaluate=("val", "test"),
    )  # fmt: skip
    assert (result.record.dataset, result.record.model) == ("clrs_text/minimum", "transformer_small")
    assert result.record.budget.small
    assert evaluate_run(tmp_path / "run", ("val", "test"), root=tmp_path, limit=12) == result.scores
    samples = prompts_of(graphbench.Loader("clrs_text/minimum", root=tmp_path, limit=12).load()["test"])
    outputs = TextGenerator(result.model)(samples.prompts, 200)
    assert result.scores["test"].primary == np.mean(list(map(exact_match, outputs, samples.references)))
    (path,) = write_run_predictions(tmp_path / "run", tmp_path / "out", "test", root=tmp_path, limit=12)
    test = graphbench.Loader("clrs_text/minimum", root=tmp_path, limit=12).load(())["test"]
    scores = task_of(test.card).score_file(path, test)
    assert scores == {name: score for name, score in result.scores.items() if name.startswith("test")}
