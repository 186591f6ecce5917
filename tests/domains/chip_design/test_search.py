"""Circuits by search without a model."""

import numpy as np
import pytest

from graphbench.domains.chip_design.construction import Constructions, build_greedily
from graphbench.domains.chip_design.environments import _key
from graphbench.domains.chip_design.search import circuits_by_search
from graphbench.domains.chip_design.truth_tables import from_text, to_text


def tables(count, inputs=6, outputs=2):
    rng = np.random.default_rng(7)
    return [rng.random((outputs, 1 << inputs)) < 0.5 for _ in range(count)]


def texts_of(drawn):
    return [to_text(table) for table in drawn]


def test_circuits_compute_their_tables_alone_and_together():
    texts = texts_of([*tables(3), *tables(2, inputs=7, outputs=1)])
    together = circuits_by_search(texts, variants=range(3))
    for text, circuit in zip(texts, together, strict=True):
        assert np.array_equal(circuit.simulate(), from_text(text))
        (alone,) = circuits_by_search([text], variants=range(3))
        assert np.array_equal(alone.fanins, circuit.fanins) and np.array_equal(alone.outputs, circuit.outputs)


def test_every_choice_takes_the_candidate_that_is_cheapest_when_it_is_played_out():
    drawn = tables(4)
    keys = np.array([_key(text, 0) for text in texts_of(drawn)], np.uint64)
    building = Constructions(drawn, keys=keys)  # one circuit after the other
    while building.advance():
        which, literals, _, _ = building.candidates()
        for b, row in zip(which.tolist(), literals, strict=True):
            costs = dict(zip(row.tolist(), building.play_outs(np.array([b]), row[None], rounds=1)[0], strict=True))
            costs.pop(0, None)  # the places without a candidate
            building.choose(np.array([b]), np.array([min(costs, key=costs.get)]))
    assert [c.num_ands for c in building.circuits()] == [c.num_ands for c in circuits_by_search(texts_of(drawn))]


def test_the_smallest_of_several_variants_is_the_answer():
    texts = texts_of(tables(5))
    single = np.array([[c.num_ands for c in circuits_by_search(texts, variants=[v])] for v in range(4)])
    assert [c.num_ands for c in circuits_by_search(texts, variants=range(4))] == single.min(0).tolist()
    assert len({tuple(row) for row in single.tolist()}) > 1
    greedy = build_greedily([from_text(text) for text in texts])
    assert single.min(0).sum() < sum(c.num_ands for c in greedy)


def test_no_variants_and_no_tables():
    with pytest.raises(ValueError, match="at least one number"):
        circuits_by_search(texts_of(tables(1)), variants=())
    assert circuits_by_search([]) == []
