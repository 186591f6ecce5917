"""The small transformer over characters: tokens, positions, causality, and generation with a cache."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from graphbench.catalog.features import parse_features
from graphbench.data.batches.text_batch import TextBatch
from graphbench.models.language import (
    PAD,
    VOCABULARY,
    TextGenerator,
    TextModel,
    TextModelConfig,
    UnreadableText,
    decode,
    draw_positions,
    encode,
)
from graphbench.models.losses import text_loss_weights, text_losses

SMALL = {"layers": 2, "hidden": 32, "heads": 2, "context": 128}
RANDOM = {"randomised_positions": 500}
KINDS = [{}, {"positions": "learned"}, RANDOM, {"positions": "learned", **RANDOM}]
TEXTS = ["bfs:\ns: 3", "minimum:\nkey: [0.5 0.25 0.125]\nmin:\n", "a"]


def make_model(**changes):
    torch.manual_seed(0)
    model = TextModel(TextModelConfig(**{**SMALL, **changes})).eval()
    with torch.no_grad():  # larger weights than at the start of training, so that each character matters
        for parameter in model.parameters():
            parameter.mul_(5.0)
    return model


def test_tokens_stand_for_characters():
    text = "\n" + "".join(chr(code) for code in range(32, 127))
    tokens = encode(text)
    assert sorted(tokens.tolist()) == list(range(1, VOCABULARY))
    assert decode(tokens) == text
    assert decode(np.array([PAD, *encode("a\nb"), PAD], np.uint8)) == "a\nb"
    assert len(encode("")) == 0
    for letter in ("\t", "é", "\x7f", "😀"):
        with pytest.raises(UnreadableText, match="is not in the vocabulary"):
            encode(f"ab{letter}c")


@pytest.mark.parametrize("kind", KINDS)
def test_no_character_sees_a_later_one(kind):
    model = make_model(**kind)
    tokens = torch.from_numpy(encode(TEXTS[1]).astype(np.int64))[None]
    positions = model.text_positions(1, tokens.shape[1])
    changed = tokens.clone()
    changed[0, 20] = 5
    with torch.inference_mode():
        before, after = model.logits(tokens, positions), model.logits(changed, positions)
    assert before.shape == (1, tokens.shape[1], VOCABULARY)
    torch.testing.assert_close(before[:, :20], after[:, :20])
    assert (before[:, 20:] - after[:, 20:]).abs().max() > 0.1


def greedy(model, text, count, room):
    """Complete a text by reading all of it again for every character."""
    tokens = encode(text).astype(np.int64)
    positions = model.text_positions(1, len(tokens) + room, torch.Generator().manual_seed(0))
    for _ in range(count):
        with torch.inference_mode():
            logits = model.logits(torch.from_numpy(tokens)[None], positions[:, : len(tokens)])[0, -1]
        tokens = np.append(tokens, int(logits[1:].argmax()) + 1)
    return decode(tokens[-count:].astype(np.uint8))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_generation_with_a_cache_is_greedy(kind, text):
    model = make_model(**kind)
    assert TextGenerator(model)([text], 30) == [greedy(model, text, 30, 30).split("\n\n")[0]]


@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_batch_is_completed_as_its_texts_are(kind):
    model = make_model(**kind)
    together = TextGenerator(model)(TEXTS, 30)
    assert len(set(together)) == 3
    assert together == [TextGenerator(model)([text], 30)[0] for text in TEXTS]


def test_generation_stops_behind_an_empty_line(monkeypatch):
    model = make_model()
    script = iter("12\n3\n\n456")
    calls = []

    def scripted(tokens, positions, mask=None, cache=None):
        calls.append(tokens.shape[1])
        cache.used += tokens.shape[1]
        logits = torch.zeros(*tokens.shape, VOCABULARY)
        logits[..., int(encode(next(script))[0])] = 1.0
        return logits

    monkeypatch.setattr(model, "logits", scripted)
    assert TextGenerator(model)(["abc\n"], 50) == ["12\n3"]
    assert calls == [4, 1, 1, 1, 1, 1]


def test_rotary_positions_are_relative_and_learned_ones_are_not():
    tokens = torch.from_numpy(encode(TEXTS[1]).astype(np.int64))[None]
    positions = torch.arange(tokens.shape[1])[None]
    for kind, same in (("rope", True), ("learned", False)):
        model = make_model(positions=kind)
        with torch.inference_mode():
            difference = (model.logits(tokens, positions) - model.logits(tokens, positions + 40)).abs().max()
        assert bool(difference < 1e-3) is same
    with torch.inference_mode():
        rope = make_model()
        assert (rope.logits(tokens, positions) - rope.logits(tokens, positions * 3)).abs().max() > 0.1


def test_random_positions_ascend_in_a_larger_range():
    found = draw_positions(200, 20, 10_000, torch.Generator().manual_seed(1))
    assert found.shape == (200, 20)
    assert (found.diff(dim=1) > 0).all() and found.min() >= 0 and found.max() < 10_000
    assert len({tuple(row) for row in found.tolist()}) == 200
    assert 4_000 < found.float().mean() < 6_000
    assert torch.equal(found, draw_positions(200, 20, 10_000, torch.Generator().manual_seed(1)))
    assert draw_positions(3, 5, 5).tolist() == [[0, 1, 2, 3, 4]] * 3


def test_positions_are_in_order_unless_drawn():
    assert make_model().text_positions(2, 4).tolist() == [[0, 1, 2, 3]] * 2
    assert make_model().text_positions(1, 1000).shape == (1, 1000)  # rotary positions have no bound
    drawn = make_model(**RANDOM).text_positions(2, 4)
    assert drawn.tolist() != [[0, 1, 2, 3]] * 2


def test_positions_in_training_are_the_beginnings_of_longer_texts():
    assert make_model().training_positions(2, 4).tolist() == [[0, 1, 2, 3]] * 2
    model = make_model(**RANDOM)  # 500 positions for up to 128 characters
    torch.manual_seed(0)
    last = torch.stack([model.training_positions(8, 64)[:, -1].float().mean() for _ in range(200)])
    assert 220 < last.min() < 300 and 450 < last.max() <= 500
    assert model.training_positions(2, 128).shape == (2, 128)


def test_texts_longer_than_the_known_positions_are_refused():
    for kind, bound in (({"positions": "learned"}, 128), (RANDOM, 500)):
        generate = TextGenerator(make_model(**kind))
        assert len(generate(["x" * (bound - 1)], 40)[0]) <= 1
        with pytest.raises(UnreadableText, match=f"{bound + 1} characters.*{bound}"):
            generate(["x" * bound], 40)


def test_impossible_architectures_are_refused():
    with pytest.raises(ValidationError, match=r"hidden=30.*2 \* heads=8"):
        TextModelConfig(hidden=30, heads=4)
    with pytest.raises(ValidationError, match="randomised_positions=100 is below context=2048"):
        TextModelConfig(randomised_positions=100)
    with pytest.raises(ValidationError):
        TextModelConfig(depth=3)


FEATURES = parse_features({"prompt": ["input", "graph", "text"], "answer": ["output", "graph", "text"]})


def batch_of(prompts, references):
    return TextBatch(prompts, references, [4] * len(prompts))


def test_tokens_and_targets_of_a_batch():
    batch = make_model().prepare(batch_of(["ab\n", "c"], ["de\n\n", "f"]))
    assert batch.tokens.shape == batch.targets.shape == (2, 6) and batch.positions is None
    for row, (prompt, reference) in enumerate(zip(batch.prompts, batch.references, strict=True)):
        scored = batch.targets[row] != -100
        assert decode(batch.tokens[row].numpy().astype(np.uint8)) == (prompt + reference)[:6]
        assert decode(batch.targets[row][scored].numpy().astype(np.uint8)) == reference
        assert int(scored.nonzero()[0]) == len(prompt) - 1
    with pytest.raises(UnreadableText, match="is not in the vocabulary"):
        make_model().prepare(batch_of(["ä"], ["b"]))


def test_the_loss_is_the_mean_over_the_characters_of_all_references():
    model = make_model()
    batch = batch_of(TEXTS, [" 12\n\n", "0.125", "xyz"])
    whole = model.prepare(batch)
    (loss,) = text_losses(model(whole), whole, FEATURES).values()
    expected = []
    for prompt, reference in zip(batch.prompts, batch.references, strict=True):
        tokens = torch.from_numpy(encode(prompt + reference).astype(np.int64))
        shares = model.logits(tokens[None], model.text_positions(1, len(tokens)))[0].log_softmax(-1)
        expected += [-shares[i - 1, tokens[i]].item() for i in range(len(prompt), len(tokens))]
    assert loss.item() == pytest.approx(sum(expected) / len(expected), rel=1e-5)
    parts = [model.prepare(batch_of(batch.prompts[s], batch.references[s])) for s in (slice(0, 1), slice(1, 3))]
    weights = [float(text_loss_weights(part, FEATURES)["answer"]) for part in parts]
    assert sum(weights) == len(expected)
    together = sum(
        w * text_losses(model(part), part, FEATURES)["answer"] for w, part in zip(weights, parts, strict=True)
    )
    assert together.item() / sum(weights) == pytest.approx(loss.item(), rel=1e-5)


def test_positions_of_a_batch_come_from_the_generator_or_are_drawn_in_training():
    model, batch = make_model(**RANDOM), batch_of(TEXTS, ["1"] * 3)
    first, second = (model.prepare(batch, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first.positions, second.positions)
    assert torch.equal(model(first), model(second))
    unset = model.prepare(batch, training=True)
    torch.manual_seed(3)
    drawn = model(unset)
    torch.manual_seed(3)
    assert torch.equal(drawn, model.logits(unset.tokens, model.training_positions(*unset.tokens.shape)))


def test_a_batch_leaves_room_for_every_reference():
    batch = batch_of(["q" * 10, "q" * 60, "q" * 70], ["r" * 85, "r" * 20, "r" * 20])
    bounded = make_model(context=100, positions="learned")
    assert list(bounded.answered_together(batch)) == [[0], [1, 2]]
    free = make_model(context=100)
    assert list(free.answered_together(batch)) == [[0, 1, 2]]
    huge = batch_of(["q" * 20_000] * 3, ["a"] * 3)
    assert list(make_model().answered_together(huge)) == [[0], [1], [2]]


def test_answers_come_in_the_order_of_the_prompts_and_too_long_ones_are_not_read(monkeypatch):
    asked = []

    def complete(self, prompts, characters):
        asked.append((list(prompts), characters))
        return [prompt.upper() for prompt in prompts]

    monkeypatch.setattr(TextGenerator, "__call__", complete)
    model = make_model(context=20, positions="learned").train()
    found = model.predict(batch_of(["bbbb", "a", "c" * 20, "dd"], ["123", "1", "1", "12"]))
    assert found == ["BBBB", "A", "", "DD"] and model.training
    assert asked == [(["a", "dd", "bbbb"], 70)]
