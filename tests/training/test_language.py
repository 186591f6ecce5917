"""Training of the text baseline: what is learned, what is scored, and continuing after an interruption."""

import logging
import os
import signal

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from graphbench.domains.clrs_text import Prompt, render
from graphbench.errors import CheckpointError, ConfigError, TrainingError
from graphbench.evaluation.language import evaluate_language_model, size_scores
from graphbench.models.language import PAD, TextGenerator, TextModelConfig, decode
from graphbench.training import language
from graphbench.training.language import Corpus, TextTrainingConfig, load_text_baseline, train_text_baseline

TINY = TextModelConfig(layers=2, hidden=64, heads=4, context=160)


def some_prompts(count=6):
    random = np.random.RandomState(0)
    made = []
    for index in range(count):
        keys = np.round(random.rand(4 + index % 2), 2)
        made.append(Prompt(*render("minimum", [keys]), "minimum", len(keys), 0, index, True))
    return made


@pytest.mark.parametrize(
    ("changes", "steps"), [({}, 250), ({"randomised_positions": 400}, 600), ({"positions": "learned"}, 250)]
)
def test_a_handful_of_prompts_is_learned_by_heart(changes, steps, tmp_path):
    made = some_prompts()
    training = TextTrainingConfig(steps=steps, batch_size=6, lr=3e-3, warmup=20, weight_decay=0.0)
    result = train_text_baseline(made, tmp_path / "run", TINY.model_copy(update=changes), training, device="cpu")
    assert result.losses[0][1] > 1.0 > 0.05 > result.losses[-1][1]
    for model in (result.model, load_text_baseline(tmp_path / "run", "cpu")):
        answers = evaluate_language_model(TextGenerator(model), made, tmp_path / f"{id(model)}.jsonl", batch_size=4)
        assert [answer.output for answer in answers] == [prompt.reference.rstrip("\n") for prompt in made]
        assert [score.mean for score in size_scores(answers)] == [1.0, 1.0]


def test_the_loss_is_on_the_references_alone():
    made = some_prompts(count=5)
    corpus = Corpus.of(made, 160)
    tokens, targets = corpus.batch(np.array([3, 0]))
    assert tokens.shape == targets.shape
    for row, prompt in zip(range(2), (made[3], made[0]), strict=True):
        text = prompt.prompt + prompt.reference
        assert decode(tokens[row].numpy().astype(np.uint8)) == text[: tokens.shape[1]]
        scored = targets[row] != -100
        assert decode(targets[row][scored].numpy().astype(np.uint8)) == prompt.reference
        assert int(scored.nonzero()[0]) == len(prompt.prompt) - 1
        assert (tokens[row, len(text) :] == PAD).all()


def test_an_epoch_has_every_prompt_once_and_texts_of_similar_length_together():
    random = np.random.RandomState(0)
    made = [Prompt("q" * random.randint(1, 90), "a\n\n", "minimum", 4, 0, i, True) for i in range(150)]
    corpus = Corpus.of(made, 160)
    batches = corpus.batches(16, 7, 0)
    assert sorted(np.concatenate(batches).tolist()) == list(range(150))
    assert sorted(map(len, batches)) == [6, *[16] * 9]
    lengths = np.diff(corpus.ptr)
    assert max(np.ptp(lengths[batch]) for batch in batches) < 30
    again, other = corpus.batches(16, 7, 0), corpus.batches(16, 7, 1)
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))
    assert any(len(a) != len(b) or (a != b).any() for a, b in zip(batches, other, strict=True))


@pytest.mark.parametrize("stop_at", [1, 7])
def test_an_interrupted_run_ends_with_the_same_bits(stop_at, tmp_path, monkeypatch):
    made = some_prompts(count=5)
    model = TINY.model_copy(update={"randomised_positions": 300, "dropout": 0.1})
    training = TextTrainingConfig(steps=12, batch_size=2, warmup=2)
    whole = train_text_baseline(made, tmp_path / "whole", model, training, device="cpu")
    own = language._Run._update

    def interrupted(run, *batch):
        if run.step == stop_at:
            raise KeyboardInterrupt
        return own(run, *batch)

    monkeypatch.setattr(language._Run, "_update", interrupted)
    every_step = training.model_copy(update={"checkpoint_every": 1})
    with pytest.raises(KeyboardInterrupt):
        train_text_baseline(made, tmp_path / "run", model, every_step, device="cpu")
    monkeypatch.setattr(language._Run, "_update", own)
    before = torch.random.get_rng_state()
    continued = train_text_baseline(made, tmp_path / "run", model, training, device="cpu")
    assert torch.equal(before, torch.random.get_rng_state())
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, continued.model.state_dict()[name]), name
    assert continued.losses == whole.losses and len(whole.losses) == 12


def test_a_stop_request_saves_before_it_ends(tmp_path, monkeypatch):
    own = language._Run._update

    def signalled(run, *batch):
        if run.step == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return own(run, *batch)

    monkeypatch.setattr(language._Run, "_update", signalled)
    training = TextTrainingConfig(steps=12, batch_size=2, warmup=2)
    with pytest.raises(KeyboardInterrupt):
        train_text_baseline(some_prompts(), tmp_path / "run", TINY, training, device="cpu")
    _, facts = language.load_tensors(tmp_path / "run" / "checkpoint.safetensors")
    assert facts["step"] == 4


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    training = TextTrainingConfig(steps=3, batch_size=2, warmup=0)
    first = train_text_baseline(some_prompts(), tmp_path, TINY, training, device="cpu")
    assert train_text_baseline(some_prompts(), tmp_path, TINY, training, device="cpu").losses == first.losses
    with pytest.raises(CheckpointError, match="belongs to a run with another configuration"):
        train_text_baseline(some_prompts(count=7), tmp_path, TINY, training, device="cpu")
    train_text_baseline(some_prompts(count=7), tmp_path, TINY, training, device="cpu", resume=False)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"config\.json is damaged"):
        load_text_baseline(tmp_path)
    with pytest.raises(CheckpointError, match="no run folder"):
        load_text_baseline(tmp_path / "absent")


def test_prompts_that_do_not_fit_are_told(tmp_path, caplog):
    made = some_prompts(count=6)
    shortest = min(len(prompt.prompt + prompt.reference) for prompt in made)
    with caplog.at_level(logging.WARNING):
        corpus = Corpus.of(made, shortest)
    left_out = 6 - len(corpus.prompts)
    assert 0 < left_out < 6
    assert f"{left_out} of 6 prompts are longer than context={shortest}" in caplog.text
    with pytest.raises(ConfigError, match="no prompt of 6 fits into context=10"):
        Corpus.of(made, 10)


def test_a_diverging_run_is_told(tmp_path):
    training = TextTrainingConfig(steps=40, batch_size=4, lr=1e30, warmup=0, gradient_clip=None)
    with pytest.raises(TrainingError, match="training loss is nan"):
        train_text_baseline(some_prompts(), tmp_path, TINY, training, device="cpu")


def test_impossible_settings_are_refused():
    with pytest.raises(ValidationError, match="warmup 200 leaves nothing of 100 steps"):
        TextTrainingConfig(steps=100)
