"""Story models: words, entities, padding, queries and learning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from graphbench.catalog.features import parse_features
from graphbench.core.errors import ConfigError
from graphbench.models.build import StoryModelConfig, build_model
from graphbench.models.losses import loss
from graphbench.models.story.base import query_states
from graphbench.models.story.model import completed
from graphbench.models.story.relation_network import cut_into_sentences, ordered_pairs
from graphbench.models.story.vocabulary import PAD, UNKNOWN, Vocabulary, words_of

from .conftest import assert_near_under_autocast
from .kinship import CLASSES, FEATURES, SPEC, batch_of, puzzles, story_model

_QUICK = ("lstm_one_way", "relation_network")  # models that learn in seconds
MODELS: dict[str, dict[str, Any]] = {
    "bilstm_mean": {},
    "bilstm_attention": {"reading": "attention"},
    "lstm_one_way": {"bidirectional": False, "layers": 1},
    "bag_of_words": {"layers": 0},
    "relation_network": {"encoder": "relation_network"},
    "mac": {"encoder": "mac"},
    "mac_unshared": {"encoder": "mac", "mac": {"share_question": False, "iterations": 3}},
}
READING = [name for name in MODELS if name != "bag_of_words"]
EXACT: dict[str, float] = {"atol": 1e-6, "rtol": 1e-5}


def told(samples: list[dict[str, Any]], change: Any) -> list[dict[str, Any]]:
    """Return puzzles with changed texts."""
    return [{**s, "tokens": change(s["tokens"])} for s in samples]


@pytest.mark.parametrize("name", MODELS)
def test_every_weight_matters(name: str) -> None:
    batch = batch_of(puzzles(6))
    model = story_model(batch, entities="learned", dropout=0.0, **MODELS[name])
    output = model(batch)["answer"]
    assert output.shape == (6, CLASSES)
    assert output.dtype == torch.float32
    (output * torch.randn_like(output)).sum().backward()
    dead = {n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0}
    assert not dead


@pytest.mark.parametrize("name", MODELS)
def test_a_story_is_read_alike_alone_and_in_a_batch(name: str) -> None:
    samples = puzzles(6, facts=(2, 9))
    batch = batch_of(samples)
    model = story_model(batch, **MODELS[name]).eval()
    together = model(batch)["answer"]
    alone = torch.cat([model(batch_of([sample]))["answer"] for sample in samples])
    torch.testing.assert_close(together, alone, **EXACT)
    backwards = model(batch_of(samples[::-1]))["answer"].flip(0)
    torch.testing.assert_close(backwards, together, **EXACT)
    assert together.std(0).max() > 1e-4


@pytest.mark.parametrize("name", MODELS)
def test_the_graph_and_the_order_of_its_people_are_not_read(name: str) -> None:
    samples = puzzles(4)
    model = story_model(batch_of(samples), **MODELS[name]).eval()
    other = []
    for s in samples:
        order = np.random.default_rng(0).permutation(len(s["entity"]))
        nodes = {key: s[key][order] for key in ("asker", "asked", "entity")}
        other.append({**s, **nodes, "edges": s["edges"][:, ::-1], "relation": s["relation"][::-1]})
    torch.testing.assert_close(model(batch_of(other))["answer"], model(batch_of(samples))["answer"], **EXACT)


@pytest.mark.parametrize("name", MODELS)
def test_renaming_people_is_permuting_their_vectors(name: str) -> None:
    samples, order = puzzles(4), torch.randperm(32)
    model = story_model(batch_of(samples), **MODELS[name]).eval()
    before = model(batch_of(samples))["answer"]
    numbers = order.tolist()

    def rename(text: str) -> str:
        return " ".join(f"@ent{numbers[int(t[4:])]}" if t.startswith("@ent") else t for t in text.split())

    renamed = batch_of([{**s, "entity": order.numpy()[s["entity"]]} for s in told(samples, rename)])
    assert not torch.allclose(model(renamed)["answer"], before, atol=1e-4)
    vectors = model.encoder.words.embedding.entities.vectors
    vectors[order] = vectors.clone()
    torch.testing.assert_close(model(renamed)["answer"], before, **EXACT)


@pytest.mark.parametrize("name", READING)
def test_the_question_and_its_direction_matter(name: str) -> None:
    samples = puzzles(4)
    model = story_model(batch_of(samples), **MODELS[name]).eval()
    swapped = [{**s, "asker": s["asked"], "asked": s["asker"]} for s in samples]
    assert not torch.allclose(model(batch_of(samples))["answer"], model(batch_of(swapped))["answer"], atol=1e-5)


def test_the_order_of_sentences_does_not_matter_to_a_relation_network() -> None:
    samples = puzzles(4, facts=(4, 4))
    model = story_model(batch_of(samples), encoder="relation_network").eval()

    def turn(text: str) -> str:
        return " . ".join(text.removesuffix(" .").split(" . ")[::-1]) + " ."

    turned = told(samples, turn)
    assert turned[0]["tokens"] != samples[0]["tokens"]
    torch.testing.assert_close(model(batch_of(turned))["answer"], model(batch_of(samples))["answer"], **EXACT)


def test_fixed_entities_are_buffers_and_learned_ones_weights() -> None:
    batch = batch_of(puzzles(8))
    for policy, learned in (("fixed", False), ("learned", True), ("random", False)):
        model = story_model(batch, entities=policy)
        table = model.encoder.words.embedding.entities
        before = table.vectors.detach().clone()
        optimizer = torch.optim.Adam(model.parameters())
        loss(model(batch), batch, FEATURES).backward()
        optimizer.step()
        assert torch.equal(table.vectors, before) is not learned
        assert "encoder.words.embedding.entities.vectors" in model.state_dict()


def test_random_entities_are_new_in_every_step_of_training_alone() -> None:
    batch = batch_of(puzzles(4))
    model = story_model(batch, entities="random")
    assert not torch.equal(model(batch)["answer"], model(batch)["answer"])
    model.eval()
    assert torch.equal(model(batch)["answer"], model(batch)["answer"])
    fixed = story_model(batch, entities="fixed")
    assert torch.equal(fixed(batch)["answer"], fixed(batch)["answer"])


def test_dropout_is_of_training_alone() -> None:
    batch = batch_of(puzzles(4))
    for settings in ({"dropout": 0.3}, {"encoder": "mac"}):
        model = story_model(batch, **settings)
        assert not torch.equal(model(batch)["answer"], model(batch)["answer"])
        model.eval()
        assert torch.equal(model(batch)["answer"], model(batch)["answer"])


@pytest.mark.parametrize(
    "name", [name if name in _QUICK else pytest.param(name, marks=pytest.mark.slow) for name in READING]
)
@pytest.mark.thorough
def test_32_stories_are_learned(name: str) -> None:
    batch = batch_of(puzzles(32))
    model = story_model(batch, **{"hidden": 32, "embedding": 32, "decoder_hidden": 64, **MODELS[name]})
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(150):
        optimizer.zero_grad()
        current = loss(model(batch), batch, FEATURES)
        current.backward()
        optimizer.step()
        if current < 0.02:
            break
    assert torch.equal(model.eval()(batch)["answer"].argmax(1), batch.answer)


@pytest.mark.parametrize("name", MODELS)
def test_saved_weights_bring_a_model_back(name: str) -> None:
    batch = batch_of(puzzles(5))
    model = story_model(batch, **MODELS[name]).eval()
    again = build_model(StoryModelConfig.model_validate_json(model.config.model_dump_json()), FEATURES, directed=True)
    assert not torch.equal(again.eval()(batch)["answer"], model(batch)["answer"])
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(batch)["answer"], model(batch)["answer"])


def test_a_single_puzzle_needs_no_batch() -> None:
    batch = batch_of(puzzles(2))
    model = story_model(batch).eval()
    torch.testing.assert_close(model(batch[0])["answer"], model(batch)["answer"][:1], **EXACT)


def test_outputs_are_float32_under_autocast() -> None:
    batch = batch_of(puzzles(4))
    for name in MODELS:
        assert_near_under_autocast(story_model(batch, **MODELS[name]).eval(), batch, "answer")


# Words


def test_the_vocabulary_is_made_of_the_words_of_training() -> None:
    samples = puzzles(6)
    words = words_of([s["tokens"] for s in samples])
    assert words == tuple(sorted({t for s in samples for t in s["tokens"].split() if not t.startswith("@ent")}))
    config = completed(StoryModelConfig(text="tokens"), FEATURES, [batch_of(samples[:3]), batch_of(samples[3:])])
    assert config.vocabulary == words
    assert (config.text, config.entity) == ("tokens", "entity")
    assert completed(config, FEATURES, []) == config
    assert completed(StoryModelConfig(text="tokens", encoder="frozen"), FEATURES, []).vocabulary == ()


def test_tokens_are_numbered() -> None:
    vocabulary = Vocabulary((".", "a", "son"), 4)
    assert vocabulary.ids("@ent0 a son @ent3 daughter .").tolist() == [5, 3, 4, 8, UNKNOWN, 2]
    padded = vocabulary.padded(["a", "a son ."], torch.device("cpu"))
    assert padded.ids.tolist() == [[3, PAD, PAD], [3, 4, 2]]
    assert padded.lengths.tolist() == [1, 3]
    assert padded.mask.tolist() == [[True, False, False], [True] * 3]
    assert vocabulary.sentence_ends() == [2]


def test_all_unknown_words_are_alike() -> None:
    samples = puzzles(3)
    model = story_model(batch_of(samples)).eval()
    new = [
        batch_of(told(samples, lambda text, word=word: text.replace("called", word))) for word in ("dubbed", "hight")
    ]
    assert torch.equal(model(new[0])["answer"], model(new[1])["answer"])
    assert not torch.equal(model(new[0])["answer"], model(batch_of(samples))["answer"])


@pytest.mark.parametrize(("words", "message"), [(("a", "a"), "distinct"), (("@ent3",), "@ent3")])
def test_malformed_vocabularies(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_model(StoryModelConfig(text="tokens", vocabulary=words), FEATURES, directed=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("@ent", "ent"), "story 0.*queried entities"),
        (lambda text: "", "empty"),
        (lambda text: text + " @ent32", "@ent32, but the data have 32"),
    ],
)
@pytest.mark.parametrize("name", MODELS)
def test_stories_that_cannot_be_read(name: str, change: Any, message: str) -> None:
    samples = puzzles(2)
    model = story_model(batch_of(samples), **MODELS[name])
    with pytest.raises(ConfigError, match=message):
        model(batch_of(told(samples, change)))


# Parts


def test_the_query_is_the_mean_of_the_states_where_it_is_named() -> None:
    states = torch.arange(12.0).view(1, 6, 2)
    mentions = torch.tensor([[[1, 0, 0, 0, 0, 1], [0, 1, 0, 0, 0, 0]]]).bool()
    assert query_states(states, mentions).tolist() == [[[5.0, 6.0], [2.0, 3.0]]]


def test_who_is_not_named_has_no_state() -> None:
    states = torch.arange(6.0).view(1, 3, 2).requires_grad_()
    found = query_states(states, torch.tensor([[[0, 0, 0], [0, 1, 1]]]).bool())
    assert found.tolist() == [[[0.0, 0.0], [3.0, 4.0]]]
    found.sum().backward()
    assert states.grad is not None and bool(states.grad.isfinite().all())
    with pytest.raises(ConfigError, match="story 1 of the batch names none of"):
        query_states(states.expand(2, 3, 2), torch.tensor([[[0, 0, 1]] * 2, [[0, 0, 0]] * 2]).bool())


@pytest.mark.parametrize("name", MODELS)
def test_stories_that_name_one_of_those_asked_about_are_read(name: str) -> None:
    samples = puzzles(3)
    model = story_model(batch_of(samples), **MODELS[name]).eval()
    batch = batch_of(samples)
    asked = model._query(batch)[0, 0]
    lacking = batch_of([samples[0] | {"tokens": samples[0]["tokens"].replace(f"@ent{asked} ", "somebody ")}])
    assert bool(model(lacking)["answer"].isfinite().all())


def test_sentences_end_at_their_marks_or_with_the_story() -> None:
    vocabulary = Vocabulary((".", "?", "a", "b"), 1)
    whole = vocabulary.padded(["a b . a", "b ?", ". a b b"], torch.device("cpu"))
    found = cut_into_sentences(whole, vocabulary.sentence_ends())
    assert found.story.tolist() == [0, 0, 1, 2, 2]
    assert found.tokens.lengths.tolist() == [3, 1, 2, 1, 3]
    assert found.tokens.ids.tolist() == [[4, 5, 2], [4, 0, 0], [5, 3, 0], [2, 0, 0], [4, 5, 5]]
    assert torch.equal(found.tokens.ids[tuple(found.places)], whole.ids[whole.mask])
    without = cut_into_sentences(whole, [])
    assert torch.equal(without.tokens.ids, whole.ids)


def test_pairs_are_ordered_and_stay_within_a_story() -> None:
    owner = torch.tensor([0, 0, 2, 2, 2])
    first, second = ordered_pairs(owner, 4)
    expected = [(i, j) for i in range(5) for j in range(5) if owner[i] == owner[j]]
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == expected


def test_a_relation_network_is_the_sum_over_pairs_written_out() -> None:
    story = "@ent1 has a w2 . it is @ent5 . @ent1 called @ent5"
    samples = told(puzzles(1, facts=(2, 2)), lambda _: story)
    samples[0]["entity"] = np.where(samples[0]["asker"], 1, np.where(samples[0]["asked"], 5, 7))
    batch = batch_of(samples)
    encoder = story_model(batch, encoder="relation_network").eval().encoder
    read = []
    for sentence in ("@ent1 has a w2 .", "it is @ent5 .", "@ent1 called @ent5"):
        padded = encoder.words.vocabulary.padded([sentence], torch.device("cpu"))
        read.append(encoder.words.reader(encoder.words.embedding(padded.ids), padded.lengths)[0])
    objects = [states.mean(0) for states in read]
    query = torch.cat([(read[0][0] + read[2][0]) / 2, (read[1][2] + read[2][2]) / 2])
    weight = torch.cat([encoder.first.weight, encoder.second.weight, encoder.asked.weight], dim=1)
    pairs = [weight @ torch.cat([a, b, query]) + encoder.first.bias for a in objects for b in objects]
    expected = encoder.total(torch.stack([encoder.pair(pair) for pair in pairs]).sum(0))
    torch.testing.assert_close(encoder(batch.tokens, torch.tensor([[1, 5]]))[0], expected, **EXACT)


# What does not fit


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tokens": None}, "'tokens'.*set model.text"),
        ({"entity": None}, "no input 'entity'"),
        ({"asker": None, "asked": None}, "mask_one"),
        ({"answer": ["output", "graph", "scalar"]}, "predict classes of graphs"),
        ({"answer": ["output", "node", "categorical(3)"]}, "predict classes of graphs"),
    ],
)
def test_data_that_are_no_stories(change: dict[str, Any], message: str) -> None:
    spec = {name: words for name, words in {**SPEC, **change}.items() if words is not None}
    with pytest.raises(ConfigError, match=message):
        build_model(
            StoryModelConfig(text="tokens", entity="entity", vocabulary=("a",)), parse_features(spec), directed=True
        )


def test_the_inputs_are_chosen_by_type_where_there_is_one_of_each() -> None:
    spec = {name: words for name, words in SPEC.items() if name != "story"}
    assert build_model(StoryModelConfig(vocabulary=("a",)), parse_features(spec), directed=True).text.name == "tokens"
    with pytest.raises(ConfigError, match=r"2 inputs.*set model.text"):
        build_model(StoryModelConfig(vocabulary=("a",)), FEATURES, directed=True)


def test_another_text_can_be_read() -> None:
    samples = [{**s, "story": s["tokens"]} for s in puzzles(3)]
    batch = batch_of(samples)
    torch.manual_seed(0)
    one = story_model(batch, text="story").eval()
    torch.manual_seed(0)
    assert torch.equal(one(batch)["answer"], story_model(batch).eval()(batch)["answer"])


def test_a_model_without_words_is_refused() -> None:
    with pytest.raises(ConfigError, match="no vocabulary"):
        build_model(StoryModelConfig(text="tokens"), FEATURES, directed=True)


def test_a_batch_without_stories_is_refused() -> None:
    batch = batch_of(puzzles(2))
    model = story_model(batch)
    del batch.tokens
    with pytest.raises(ConfigError, match="'tokens'"):
        model(batch)


@pytest.mark.parametrize(
    "settings", [{"encoder": "rnn"}, {"entities": "unk"}, {"mac": {"iterations": 0}}, {"relation": {"pair": []}}]
)
def test_malformed_configurations(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(settings))):
        StoryModelConfig.model_validate(settings)
