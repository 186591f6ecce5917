"""Limits of datasets whose samples are large: fewer users, nodes or the like, not fewer samples."""

from __future__ import annotations

from dataclasses import replace

import pytest

import graphbench
from graphbench.catalog.names import catalog
from graphbench.core.errors import CardError
from graphbench.data.build.limits import apply_limit
from graphbench.domains.algoreas import generators


@pytest.fixture
def large(make_card, monkeypatch):
    """A dataset of one graph per split, whose nodes a limit replaces."""
    changed = {**generators.GENERATORS, "mst": replace(generators.GENERATORS["mst"], limited="nodes")}
    monkeypatch.setattr(generators, "GENERATORS", changed)
    card = make_card()
    splits = {
        name: spec.model_copy(update={"count": 1, "parameters": {**spec.parameters, "nodes": nodes}})
        for (name, spec), nodes in zip(card.splits.items(), (40, 40, 60), strict=True)
    }
    card = card.model_copy(update={"splits": splits, "ood": {}})
    monkeypatch.setitem(catalog().cards, card.id, card)
    return card


def test_a_limit_replaces_the_parameter_where_it_is_smaller(large):
    card, rest = apply_limit(large, 50)
    assert rest is None
    assert [spec.parameters["nodes"] for spec in card.splits.values()] == [40, 40, 50]
    assert card.measured is None and card.fingerprint(1) != large.fingerprint(1)
    card, rest = apply_limit(large, {"train": 9})
    assert [spec.parameters["nodes"] for spec in card.splits.values()] == [9, 40, 60] and rest is None


def test_a_limit_that_changes_nothing_leaves_the_card(large):
    for limit in (None, 100, {}):
        assert apply_limit(large, limit)[0] is large


def test_other_datasets_keep_their_limit():
    card = graphbench.card("mst_easy")
    assert apply_limit(card, 5) == (card, 5) and apply_limit(card, {"val": 5}) == (card, {"val": 5})


def test_the_loader_builds_smaller_graphs_beside_the_full_ones(large, tmp_path):
    full = graphbench.Loader(large.id, root=tmp_path, workers=1).load()
    small = graphbench.Loader(large.id, root=tmp_path, workers=1, limit=12).load()
    assert [own[0].num_nodes for own in (full.train, full.val, full.test)] == [40, 40, 60]
    assert [own[0].num_nodes for own in (small.train, small.val, small.test)] == [12, 12, 12]
    assert full.train.path.parent != small.train.path.parent
    assert full.train.data_fingerprint != small.train.data_fingerprint
    assert "train=1, val=1, test=1" in repr(small)
    again = graphbench.Loader(large.id, root=tmp_path, workers=1, limit={"test": 12}).load()
    assert again.test[0].num_nodes == 12 and again.train[0].num_nodes == 40


def test_a_limit_below_what_the_generator_takes_is_refused(tmp_path):
    with pytest.raises(CardError, match="users = 20 is refused"):
        graphbench.Loader("social/sim_quotes", root=tmp_path, limit=20).load()
