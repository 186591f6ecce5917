"""Epistemic models: compositions along shortest walks against brute force, equivariance, gradients, bad settings."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from graphbench.catalog.features import parse_features
from graphbench.core.errors import ArgumentError, ConfigError
from graphbench.models.base import TaskFeatures
from graphbench.models.epistemic.beliefs import Composition, combined, scores, unknown_beliefs
from graphbench.models.epistemic.config import EpistemicModelConfig
from graphbench.models.epistemic.model import EpistemicModel
from graphbench.models.epistemic.walks import Walks, shortest_walks
from graphbench.models.registry import build_task_model

from .kinship import CLASSES, FEATURES, SPEC, batch_of, puzzles

NAMES = {"relation": "relation", "source": "asker", "target": "asked"}
VARIANTS = [
    {"passes": passes, "pooling": pooling, "facets": facets, "tied": facets == 1}
    for (passes, pooling), facets in zip(
        product(("ends", "pairs"), ("votes", "product", "minimum")), (1, 2, 1, 2, 1, 2), strict=True
    )
]


def model_of(features: Any = FEATURES, *, directed: bool = True, **settings: Any) -> EpistemicModel:
    torch.manual_seed(0)
    config = EpistemicModelConfig.model_validate({**NAMES, "symbols": 5, "doubt": 0.0, **settings})
    model = build_task_model(config, {"toy": TaskFeatures(features, directed=directed)})
    assert isinstance(model, EpistemicModel)
    torch.nn.init.normal_(model.composition.weight, std=0.3)
    return model.eval()


def noisy(samples: list[dict[str, Any]], seed: int = 0) -> list[dict[str, Any]]:
    """Puzzles with further arcs at random, so that there are several walks, cycles, and parallel arcs."""
    rng, changed = np.random.default_rng(seed), []
    for sample in samples:
        extra = np.array([rng.choice(len(sample["entity"]), 2, replace=False) for _ in range(4)])
        relation = np.concatenate([sample["relation"], rng.integers(0, 4, 4)])
        changed.append({**sample, "edges": np.concatenate([sample["edges"], extra]), "relation": relation})
    return changed


def random_graphs(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 9, 6)
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    arcs = [rng.integers(0, n, (2, int(rng.integers(0, 3 * n)))) + first for n, first in zip(sizes, ptr, strict=False)]
    ends = np.array([rng.choice(n, 2, replace=False) for n in sizes])
    return np.concatenate(arcs, axis=1), ptr, ends[:, 0] + ptr[:-1], ends[:, 1] + ptr[:-1]


def named_pairs(walks: Walks, arcs: np.ndarray) -> dict[int, tuple[int, int]]:
    """The nodes of every numbered pair, followed from the arcs through the compositions."""
    names = {int(p): (int(arcs[0, a]), int(arcs[1, a])) for a, p in zip(walks.arcs, walks.arc_pairs, strict=True)}
    first = np.cumsum([0, *walks.pairs])
    level = np.repeat(np.arange(len(walks.compositions)), walks.compositions)
    for left, right, place, at in zip(walks.left, walks.right, walks.composed, level, strict=True):
        (u, w), (x, v) = names[int(left)], names[int(right)]
        assert w == x
        assert names.setdefault(int(first[at] + place), (u, v)) == (u, v)
    return names


@pytest.mark.parametrize("seed", range(8))
def test_pairs_and_compositions_are_those_on_the_shortest_walks(seed: int) -> None:
    arcs, ptr, sources, targets = random_graphs(seed)
    walks = shortest_walks(arcs, ptr, sources, targets, ends=False)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(int(ptr[-1])))
    graph.add_edges_from(arcs.T.tolist())
    expected: set[tuple[int, int, int]] = set()
    steps: set[tuple[int, int]] = set()
    for s, t, answer in zip(sources.tolist(), targets.tolist(), walks.answers.tolist(), strict=True):
        reached = nx.has_path(graph, s, t)
        assert (answer >= 0) == reached
        for path in nx.all_shortest_paths(graph, s, t) if reached else ():
            steps |= set(pairwise(path))
            places = product(range(len(path)), repeat=3)
            expected |= {(path[a], path[b], path[c]) for a, b, c in places if a < b < c}
    names = named_pairs(walks, arcs)
    found = [(*names[int(a)], names[int(b)][1]) for a, b in zip(walks.left, walks.right, strict=True)]
    assert sorted(found) == sorted(expected)
    assert {(int(u), int(v)) for u, v in arcs[:, walks.arcs].T} == steps
    for s, t, answer in zip(sources.tolist(), targets.tolist(), walks.answers.tolist(), strict=True):
        assert answer < 0 or names[answer] == (s, t)


@pytest.mark.parametrize("seed", range(8))
def test_passes_from_the_ends_extend_by_one_arc_and_meet_at_every_node(seed: int) -> None:
    arcs, ptr, sources, targets = random_graphs(seed)
    whole = shortest_walks(arcs, ptr, sources, targets, ends=False)
    ends = shortest_walks(arcs, ptr, sources, targets, ends=True)
    steps = {(int(u), int(v)) for u, v in arcs[:, ends.arcs].T}
    names, ends_names = named_pairs(whole, arcs), named_pairs(ends, arcs)
    starts, stops = set(sources.tolist()), set(targets.tolist())

    def wanted(u: int, w: int, v: int) -> bool:
        forward, backward = u in starts and (w, v) in steps, v in stops and (u, w) in steps
        return (u in starts and v in stops) or forward or backward

    triples = {(*names[int(a)], names[int(b)][1]) for a, b in zip(whole.left, whole.right, strict=True)}
    found = [(*ends_names[int(a)], ends_names[int(b)][1]) for a, b in zip(ends.left, ends.right, strict=True)]
    assert sorted(found) == sorted(triple for triple in triples if wanted(*triple))


def test_a_composition_is_the_bilinear_form_of_its_table() -> None:
    config = EpistemicModelConfig(symbols=3, facets=2, doubt=1.0)
    torch.manual_seed(0)
    composition = Composition(config)
    torch.nn.init.normal_(composition.weight)
    table = composition.table().detach()
    torch.testing.assert_close(table.sum(2), torch.ones(2, 9))
    left, right = (torch.softmax(torch.randn(4, 2, 4), 2) for _ in range(2))
    made = composition(left, right, table)
    for t, f, k in product(range(4), range(2), range(3)):
        terms = (left[t, f, i] * right[t, f, j] * table[f, 3 * i + j, k] for i in range(3) for j in range(3))
        assert float(made[t, f, k]) == pytest.approx(float(sum(terms)), rel=1e-4)
    torch.testing.assert_close(made.sum(2), torch.ones(4, 2))
    nothing = unknown_beliefs(4, left)
    torch.testing.assert_close(composition(left, nothing, table), nothing, atol=2e-6, rtol=0)


def test_in_the_beginning_a_composition_is_mostly_unknown() -> None:
    table = Composition(EpistemicModelConfig(symbols=16, doubt=3.0)).table().detach()
    assert float(table[..., -1].min()) > 0.9


def test_beliefs_are_combined_as_dempsters_rule_says() -> None:
    """Independent: masses of all intersections of focal sets, written out."""
    first, second = (torch.softmax(torch.randn(1, 1, 4, generator=torch.Generator().manual_seed(s)), 2) for s in (0, 1))
    sets = [{0}, {1}, {2}, {0, 1, 2}]
    masses = [0.0] * 4
    for (i, a), (j, b) in product(enumerate(sets), repeat=2):
        if a & b:
            masses[sets.index(a & b)] += float(first[0, 0, i] * second[0, 0, j])
    expected = torch.tensor(masses) / sum(masses)
    together = combined(torch.cat([first, second]), torch.zeros(2, dtype=torch.int64), 1, "product")
    torch.testing.assert_close(together[0, 0], expected)


@pytest.mark.parametrize("pooling", ["votes", "product", "minimum"])
def test_combined_beliefs_are_distributions_and_the_unknown_adds_nothing(pooling: str) -> None:
    beliefs = torch.softmax(torch.randn(5, 2, 4, generator=torch.Generator().manual_seed(0)), 2)
    index = torch.tensor([2, 0, 2, 1, 2])
    together = combined(beliefs, index, 3, pooling)
    torch.testing.assert_close(together.sum(2), torch.ones(3, 2))
    torch.testing.assert_close(together[:2], beliefs[[1, 3]])
    more = combined(torch.cat([beliefs, unknown_beliefs(1, beliefs)]), torch.cat([index, index[:1]]), 3, pooling)
    torch.testing.assert_close(more, together)


def test_votes_go_to_the_majority_where_an_intersection_is_empty() -> None:
    one, other = torch.tensor([0.98, 0.01, 0.01]), torch.tensor([0.01, 0.98, 0.01])
    beliefs = torch.stack([one, one, other]).unsqueeze(1)
    together = combined(beliefs, torch.zeros(3, dtype=torch.int64), 1, "votes")[0, 0]
    assert float(together[0]) == pytest.approx(1.97 / 2.97, rel=1e-3)


def test_scores_are_cross_entropies() -> None:
    beliefs, prototypes = torch.tensor([[[0.5, 0.3, 0.2]]]), torch.tensor([[[0.9, 0.1]], [[0.2, 0.8]]])
    expected = [[0.9 * np.log(0.6) + 0.1 * np.log(0.4), 0.2 * np.log(0.6) + 0.8 * np.log(0.4)]]
    torch.testing.assert_close(scores(beliefs, prototypes), torch.tensor(expected, dtype=torch.float32))


@pytest.mark.parametrize("settings", VARIANTS)
def test_puzzles_are_answered_alike_alone_and_in_a_batch(settings: dict[str, Any]) -> None:
    model, samples = model_of(**settings), noisy(puzzles(6, facts=(1, 5)))
    batch = batch_of(samples)
    together = model(model.prepare(batch))["answer"]
    assert together.shape == (6, CLASSES)
    torch.testing.assert_close(model(batch)["answer"], together)
    alone = torch.cat([model(batch_of([sample]))["answer"] for sample in samples])
    torch.testing.assert_close(alone, together, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("settings", VARIANTS)
def test_numbers_of_people_and_the_order_of_facts_do_not_matter(settings: dict[str, Any]) -> None:
    model, samples = model_of(**settings), noisy(puzzles(5, facts=(2, 5), seed=1))
    rng, renumbered = np.random.default_rng(0), []
    for sample in samples:
        place, order = rng.permutation(len(sample["entity"])), rng.permutation(len(sample["edges"]))
        old = place.argsort()
        marks = {name: sample[name][old] for name in ("asker", "asked", "entity")}
        facts = {"edges": place[sample["edges"]][order], "relation": sample["relation"][order]}
        renumbered.append({**sample, **marks, **facts})
    raw, other = (model(batch_of(part))["answer"] for part in (samples, renumbered))
    torch.testing.assert_close(other, raw, rtol=1e-4, atol=1e-5)


def test_facts_off_the_shortest_walks_do_not_matter() -> None:
    model, samples = model_of(), puzzles(4, facts=(3, 3))
    longer = []
    for sample in samples:
        people = len(sample["entity"])
        hanging = np.array([[int(sample["edges"][0, 0]), people], [people, people + 1]])
        marks = {name: np.append(sample[name], [0, 0]) for name in ("asker", "asked")}
        entity = np.append(sample["entity"], [sample["entity"][0]] * 2)
        edges, relation = np.concatenate([sample["edges"], hanging]), np.append(sample["relation"], [1, 2])
        longer.append({**sample, **marks, "entity": entity, "edges": edges, "relation": relation})
    torch.testing.assert_close(model(batch_of(longer))["answer"], model(batch_of(samples))["answer"])


def test_without_a_walk_no_class_is_preferred_by_a_belief() -> None:
    (sample,) = puzzles(1, facts=(2, 2))
    back = {**sample, "edges": sample["edges"][:, ::-1]}
    model = model_of()
    raw = model(batch_of([back, sample]))["answer"]
    torch.testing.assert_close(raw[0], raw[:1, :1].expand(1, CLASSES)[0])
    torch.testing.assert_close(raw[1:], model(batch_of([sample]))["answer"])


@pytest.mark.parametrize("settings", VARIANTS)
def test_every_weight_receives_a_gradient(settings: dict[str, Any]) -> None:
    model, batch = model_of(**settings).train(), batch_of(puzzles(8, facts=(2, 4)))
    loss: Any = torch.nn.functional.cross_entropy(model(batch)["answer"], batch.answer.long())
    loss.backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and bool(weight.grad.isfinite().all()), name
        assert float(weight.grad.abs().max()) > 0.0, name


def test_the_gradient_of_a_composition_is_right() -> None:
    composition = Composition(EpistemicModelConfig(symbols=2, facets=2)).double()
    torch.manual_seed(0)
    left, right = (torch.softmax(torch.randn(3, 2, 3, dtype=torch.float64), 2).requires_grad_() for _ in range(2))
    index = torch.tensor([0, 1, 0])

    def made(a: torch.Tensor, b: torch.Tensor, pooling: str) -> torch.Tensor:
        return combined(composition(a, b, composition.table()), index, 2, pooling)

    for pooling in ("votes", "product", "minimum"):
        assert torch.autograd.gradcheck(lambda a, b, pooling=pooling: made(a, b, pooling), (left, right))


def test_wrong_settings_and_data_are_refused() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"relation": "role"}, "model.relation is 'role'.*: relation"),
        ({"source": "entity"}, "model.source is 'entity'.*: asker, asked"),
        ({"target": ""}, "model.target is ''"),
    ]
    for settings, message in wrong:
        with pytest.raises(ConfigError, match=message):
            model_of(**settings)
    with pytest.raises(ConfigError, match="undirected"):
        model_of(directed=False)
    with pytest.raises(ConfigError, match=r"answer.*has 30 classes"):
        model_of(parse_features({**SPEC, "answer": ["output", "graph", "categorical(30)"]}), tied=True)
    with pytest.raises(ConfigError, match=r"one class of graphs.*answer \(graph scalar"):
        model_of(parse_features({**SPEC, "answer": ["output", "graph", "scalar"]}))
    (sample,) = puzzles(1)
    both = {**sample, "asker": sample["asker"] | sample["asked"]}
    with pytest.raises(ArgumentError, match="'asker' marks 2 nodes in 1 graphs"):
        model_of()(batch_of([both]))
