"""Models that generate structures by choices: right with any weights, repeatable, and better once they have learned."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from graphbench.catalog.features import parse_features
from graphbench.core.errors import CardError, ConfigError
from graphbench.domains.chip_design.aig import equivalent
from graphbench.domains.chip_design.truth_tables import from_text, to_text
from graphbench.models.base import TaskFeatures
from graphbench.models.builder.config import BuilderModelConfig
from graphbench.models.registry import build_task_model

TASK = TaskFeatures(parse_features({"table": ["input", "graph", "text"]}))
SHAPES = ((5, 1), (6, 1), (7, 2), (8, 1))


def texts_of(seed, shapes=SHAPES, ones=0.5):
    rng = np.random.default_rng(seed)
    return [to_text(rng.random((m, 1 << n)) < ones) for n, m in shapes]


def model_of(seed=0, **options):
    torch.manual_seed(seed)
    settings = {"layers": 1, "hidden": 16, "heads": 2, "samples": 3, **options}
    config = BuilderModelConfig(environment="chip_design.circuits", **settings)
    return build_task_model(config, {"chip_design/aig": TASK})


def batch_of(texts):
    return SimpleNamespace(table=list(texts))


def aiger(circuits):
    return [circuit.to_aiger() for circuit in circuits]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("considered", "temperature"), [(0, 0.0), (0, 1.0), (3, 2.0)])
def test_circuits_of_random_weights_compute_their_tables(seed, considered, temperature):
    model = model_of(seed, considered=considered, temperature=temperature)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    texts = texts_of(seed) + texts_of(seed, ((9, 1), (6, 3)), 0.05) + ["0" * 16, "f" * 32 + " " + "0" * 32]
    found = model.predict(batch_of(texts))["answers"]
    assert all(equivalent(circuit, from_text(text)) for circuit, text in zip(found, texts, strict=True))


def test_what_a_table_gets_depends_on_it_alone():
    model, texts = model_of(), texts_of(1)
    together = aiger(model.generate(texts))
    assert together == aiger(model.generate(texts))
    assert together == [aiger(model.generate([text]))[0] for text in texts]
    assert together[::-1] == aiger(model.generate(texts[::-1]))


def test_more_samples_are_never_worse_and_the_first_choices_are_the_likeliest():
    model, texts = model_of(), texts_of(2, ((6, 1), (7, 1)))
    sizes = [[aig.num_ands for aig in model.generate(texts, samples=k)] for k in (1, 3, 9)]
    assert all(a >= b >= c for a, b, c in zip(*sizes, strict=True)) and sum(sizes[0]) > sum(sizes[2])
    cold = model_of(temperature=0.0)
    assert aiger(cold.generate(texts, samples=1)) == aiger(model.generate(texts, samples=1))


def test_lessons_are_remembered_and_the_same_in_any_batch():
    model, texts = model_of(), texts_of(3)
    first = model.lessons(texts)
    assert all(a is b for a, b in zip(first, model.lessons(texts), strict=True))
    for own, text in zip(first, texts, strict=True):
        (other,) = model_of(remembered=0).lessons([text])
        for name in ("goal", "bits", "numbers", "costs"):
            assert (getattr(own, name) == getattr(other, name)).all()
    constant = model.lessons(["0" * 16])[0]
    assert len(constant.costs) == 0


def test_the_loss_is_the_cross_entropy_of_the_choices():
    model, texts = model_of(sharpness=0.7), [*texts_of(4, ((6, 1), (6, 2))), "0" * 16]
    loss = model(batch_of(texts))["loss"]
    for value, own in zip(loss[:2], model.lessons(texts), strict=False):
        terms = []
        for goal, bits, numbers, costs in zip(own.goal, own.bits, own.numbers, own.costs, strict=True):
            there = np.isfinite(costs)
            parts = (goal[None], bits[None][:, there], numbers[None][:, there], np.ones((1, there.sum()), bool))
            logits = model.chooser(*map(torch.from_numpy, parts))[0]  # without the missing options
            weights = np.exp(-0.7 * costs[there])
            terms.append(
                -float((torch.from_numpy(weights / weights.sum()) * torch.log_softmax(logits, 0).detach()).sum())
            )
        assert value.item() == pytest.approx(np.mean(terms), rel=1e-4)
    assert float(loss[2]) == 0.0


def test_gradients_reach_all_parameters():
    model = model_of(layers=2)
    model(batch_of(texts_of(5)))["loss"].mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and bool(parameter.grad.abs().sum() > 0), name


@pytest.mark.thorough
def test_it_learns_to_choose_and_its_circuits_become_smaller():
    texts = texts_of(6, ((8, 1),) * 8)
    model = model_of(hidden=32, sharpness=2.0)
    before = sum(aig.num_ands for aig in model.generate(texts, samples=1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(40):
        loss = model(batch_of(texts))["loss"].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0] - 0.3
    assert sum(aig.num_ands for aig in model.generate(texts, samples=1)) < 0.97 * before


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="hidden=16 is not divisible by heads=3"):
        model_of(heads=3)
    with pytest.raises(CardError, match=r"'chip_design\.circuit' does not exist"):
        build_task_model(BuilderModelConfig(environment="chip_design.circuit"), {"chip_design/aig": TASK})
    other = TaskFeatures(parse_features({"story": ["input", "graph", "text"]}))
    with pytest.raises(ConfigError, match=r"'table' of graphs.*story"):
        build_task_model(BuilderModelConfig(environment="chip_design.circuits"), {"clutrr/gen": other})
    with pytest.raises(ConfigError, match="the batch has no 'table'"):
        model_of().predict(SimpleNamespace())
