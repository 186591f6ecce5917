"""Models that write structures freely, and the spelling of circuits."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from graphbench.catalog.features import parse_features
from graphbench.core.errors import CircuitError, ConfigError
from graphbench.domains.chip_design.aig import Aig, equivalent
from graphbench.domains.chip_design.construction import build_greedily
from graphbench.domains.chip_design.graphs import encoded
from graphbench.domains.chip_design.tokenizers import TOKENIZERS
from graphbench.domains.chip_design.truth_tables import from_text, to_text
from graphbench.models.base import TaskFeatures
from graphbench.models.builder.config import SpellerModelConfig
from graphbench.models.builder.speller import _generator
from graphbench.models.registry import build_task_model

FEATURES = {"table": ["input", "graph", "text"], "reference": ["output", "graph", "text"]}
TOKENIZER = TOKENIZERS["literals"]


def model_of(features=FEATURES, **options):
    torch.manual_seed(0)
    settings = {"layers": 2, "hidden": 32, "heads": 2, **options}
    config = SpellerModelConfig(tokenizer="chip_design.literals", **settings)
    return build_task_model(config, {"chip_design/aig": TaskFeatures(parse_features(features))})


def batch_of(shapes, seed=0, ones=0.1):
    rng = np.random.default_rng(seed)
    tables = [rng.random((m, 1 << n)) < ones for n, m in shapes]
    circuits = build_greedily(tables)
    return SimpleNamespace(table=[to_text(t) for t in tables], reference=[encoded(c) for c in circuits])


def test_a_spelling_is_read_back_as_the_circuit():
    batch = batch_of([(6, 1), (7, 2), (3, 1)], ones=0.5)
    for text, reference in zip(batch.table, batch.reference, strict=True):
        tokens = TOKENIZER.tokens(reference).tolist()
        circuit = TOKENIZER.structure(text, tokens)
        assert encoded(circuit) == reference and equivalent(circuit, from_text(text))
        assert TOKENIZER.complete(text, tokens) and not TOKENIZER.complete(text, tokens[:-1])
        assert min(tokens) > 0 and max(tokens) < TOKENIZER.vocabulary and len(tokens) <= TOKENIZER.longest


def test_what_is_no_spelling_is_no_circuit():
    text = "00ff00ff00ff00ff"
    assert TOKENIZER.structure(text, [4, 6, 1, 16]) is not None
    for wrong in ([4, 6], [4, 1, 16], [4, 6, 8, 1, 4], [16, 6, 1, 4], [4, 6, 1, 18], [4, 6, 1]):
        assert TOKENIZER.structure(text, wrong) is None, wrong
    long = Aig(2, np.array([[2, 4]] * 1022), np.array([6]))
    with pytest.raises(CircuitError, match=r"1,022 ANDs.*1,023"):
        TOKENIZER.tokens(encoded(long))


def test_goals_are_the_columns_of_the_table():
    text = to_text(np.random.default_rng(0).random((2, 128)) < 0.5)
    table = np.where(from_text(text), 1, -1)
    assert (TOKENIZER.goals(text) == table.reshape(4, 64)).all()


def test_the_loss_is_that_of_one_token_after_the_other():
    batch = batch_of([(6, 1), (7, 1)])
    model = model_of()
    loss = model(batch)["loss"]
    for value, text, reference in zip(loss, batch.table, batch.reference, strict=True):
        tokens, terms = TOKENIZER.tokens(reference).tolist(), []
        for place, token in enumerate(tokens):
            logits, _ = model._read([text], torch.tensor([[0, *tokens[:place]]]))
            terms.append(-float(torch.log_softmax(logits[0, -1], 0)[token].detach()))
        assert value.item() == pytest.approx(np.mean(terms), rel=1e-4)


@pytest.mark.thorough
def test_written_together_or_alone_the_tokens_are_those_of_the_whole_sequence():
    batch = batch_of([(6, 1), (3, 1), (7, 2), (5, 1)])
    model = model_of(temperature=1.0).eval()
    together = model.write(batch.table)
    assert len({len(tokens) for tokens in together}) > 1  # sequences end at different times
    for text, tokens in zip(batch.table, together, strict=True):
        assert model.write([text]) == [tokens]
        with torch.inference_mode():
            logits, _ = model._read([text], torch.tensor([[0, *tokens[:-1]]]))
        values, generator = logits[0].double().numpy(), _generator(text)
        values += np.stack([generator.gumbel(size=values.shape[1]) for _ in tokens])
        values[:, 0] = -np.inf
        assert values.argmax(-1).tolist() == tokens


@pytest.mark.slow
def test_it_learns_to_write_circuits_which_nothing_else_keeps_right():
    batch = batch_of([(6, 1), (7, 1), (6, 2)], ones=0.03)
    model = model_of()
    wrong = model.predict(batch)["answers"]
    assert not any(aig is not None and equivalent(aig, from_text(t)) for aig, t in zip(wrong, batch.table, strict=True))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(150):
        loss = model(batch)["loss"].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    found = model.predict(batch)["answers"]
    assert [encoded(aig) for aig in found] == batch.reference
    alone = [model.write([text])[0] for text in batch.table]
    assert alone == model.write(batch.table)


def test_gradients_reach_all_parameters():
    model = model_of()
    model(batch_of([(6, 1), (7, 1)]))["loss"].mean().backward()
    assert all(bool(parameter.grad.abs().sum() > 0) for parameter in model.parameters())


def test_drawn_tokens_are_repeatable_and_end(monkeypatch):
    model, batch = model_of(temperature=1.0), batch_of([(6, 1), (6, 1)])
    model.tokenizer = SimpleNamespace(**{**vars(TOKENIZER), "longest": 20})
    first = model.write(batch.table)
    assert first == model.write(batch.table) and first[0] != first[1]
    assert all(0 not in tokens and len(tokens) <= 20 for tokens in first)


def test_a_task_without_structures_is_refused():
    with pytest.raises(ConfigError, match=r"'reference' of graphs.*\(there: none\)"):
        model_of({"table": FEATURES["table"]})
