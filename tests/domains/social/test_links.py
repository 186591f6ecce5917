"""New interactions of the simulated network: the checks see every fault, and the cards ask for what they say."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

import graphbench
from graphbench.data.arrays.samples import Samples
from graphbench.domains.social.generators import GENERATORS, LinkParameters

PARAMETERS = LinkParameters(
    users=1500, seed=3, kind="replies", seen_until=date(2023, 12, 11), predicted_until=date(2024, 1, 22)
)


@pytest.fixture(scope="module")
def sample():
    return GENERATORS["simulated_links"].generate(PARAMETERS, np.uint64(0), np.arange(1), np.zeros(1, np.int64))


def test_links_are_new_pairs_of_nodes_and_sets_of_the_history_confirm_them(sample):
    hidden = sample.values["link"] == 1
    pairs = [tuple(pair) for pair in sample.edges.tolist()]
    assert hidden.sum() > 500 and pairs == sorted(set(pairs))
    assert GENERATORS["simulated_links"].check(PARAMETERS, sample) == []


def test_the_check_sees_a_link_that_is_missing_and_an_edge_that_is_hidden(sample):
    for value in (0, 1):
        mask = sample.values["link"].copy()
        mask[np.flatnonzero(mask == value)[0]] = 1 - value
        wrong = Samples(sample.num_nodes, sample.num_edges, sample.edges, {**sample.values, "link": mask})
        assert len(GENERATORS["simulated_links"].check(PARAMETERS, wrong)) == 2


def test_the_smallest_network_trains_and_scores(tmp_path):
    result = graphbench.train(
        "social/sim_links_quotes", "graphconv_small", limit=1500, steps=3, root=tmp_path, output=tmp_path / "run",
        evaluate=["test"], progress=False,
    )  # fmt: skip
    assert 0 < result.record.scores["test"]["mrr"] < 1
    card = graphbench.card("social/sim_links_replies_small")
    assert card.floor["test"]["adamic_adar"]["mrr"] > 3 * card.floor["test"]["random"]["mrr"]
