"""Compiled functions of pairs and triples of nodes: the values and gradients of the same formulas in torch."""

import pytest
import torch
from torch import nn

from graphbench.models.trajectory.fused import PairSum, pair_scores, received, triple_scores, triplet_scores


def leaf(*shape):
    return torch.randn(*shape, requires_grad=True)


def pair_sum(samples, nodes, features, width, *, learned=True):
    columns = torch.randn(samples, nodes, nodes, features, requires_grad=learned)
    return PairSum(columns, leaf(features, width), leaf(samples, nodes, width), leaf(samples, nodes, width))


def written_out(total):
    return total.columns @ total.weights + total.tails.unsqueeze(2) + total.heads.unsqueeze(1)


def assert_same_with_gradients(found, expected, sources):
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    weights = torch.randn_like(expected)
    ours = torch.autograd.grad((found * weights).sum(), sources)
    theirs = torch.autograd.grad((expected * weights).sum(), sources)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)


def layers(width):
    return nn.Linear(width, width), nn.Linear(width, width)


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize(("samples", "nodes", "features", "width"), [(3, 5, 4, 32), (1, 1, 1, 16), (2, 7, 2, 48)])
@pytest.mark.parametrize("masked", [False, True])
def test_received_messages(samples, nodes, features, width, masked, learned):
    torch.manual_seed(nodes + masked)
    total, (inner, outer) = pair_sum(samples, nodes, features, width, learned=learned), layers(width)
    present = torch.rand(samples, nodes, nodes) < 0.5
    present = present | torch.eye(nodes, dtype=torch.bool) if masked else torch.ones_like(present)
    messages = outer(torch.relu(inner(torch.relu(written_out(total)))))
    expected = messages.masked_fill(~present.unsqueeze(-1), -torch.inf).max(1).values
    sources = [*(total if learned else total[1:]), *inner.parameters(), *outer.parameters()]
    assert_same_with_gradients(received(total, inner, outer, present if masked else None), expected, sources)


def test_received_messages_without_gradients_are_the_same():
    total, (inner, outer) = pair_sum(2, 6, 3, 16), layers(16)
    with torch.no_grad():
        alone = received(total, inner, outer, None)
    assert torch.equal(alone, received(total, inner, outer, None))


def test_a_node_that_receives_nothing_has_the_lowest_value_and_no_gradient():
    total, (inner, outer) = pair_sum(1, 3, 2, 16), layers(16)
    present = torch.eye(3, dtype=torch.bool).unsqueeze(0).clone()
    present[0, 1, 1] = False
    found = received(total, inner, outer, present)
    assert (found[0, 1] == -torch.inf).all()
    found[0, 1].sum().backward()
    assert all((tensor.grad == 0).all() for tensor in total)


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize("with_rows", [False, True])
@pytest.mark.parametrize(("samples", "nodes", "features", "width"), [(3, 5, 4, 32), (1, 1, 1, 16)])
def test_pair_scores(samples, nodes, features, width, with_rows, learned):
    total, last = pair_sum(samples, nodes, features, width, learned=learned), leaf(width)
    rows = leaf(samples, nodes, nodes, width) if with_rows else None
    expected = torch.relu(written_out(total) + (rows if with_rows else 0)) @ last
    sources = [*(total if learned else total[1:]), last, *([rows] if with_rows else [])]
    assert_same_with_gradients(pair_scores(total, last, rows), expected, sources)


@pytest.mark.parametrize(("samples", "nodes", "width"), [(3, 5, 32), (1, 1, 16)])
def test_triple_scores(samples, nodes, width):
    sources, targets, last = leaf(samples, nodes, nodes, width), leaf(samples, nodes, width), leaf(width)
    expected = torch.relu(targets[:, None, None] - sources.unsqueeze(3)) @ last
    assert_same_with_gradients(triple_scores(sources, targets, last), expected, [sources, targets, last])


@pytest.mark.parametrize(("samples", "nodes", "width"), [(3, 5, 32), (1, 1, 16)])
def test_triplet_scores(samples, nodes, width):
    ends, firsts, seconds = (leaf(samples, nodes, nodes, width) for _ in range(3))
    last = leaf(width)
    expected = torch.empty(samples, nodes, nodes, nodes)
    for i in range(nodes):
        for j in range(nodes):
            for k in range(nodes):
                expected[:, i, j, k] = torch.relu(ends[:, i, j] + firsts[:, i, k] + seconds[:, j, k]) @ last
    assert_same_with_gradients(triplet_scores(ends, firsts, seconds, last), expected, [ends, firsts, seconds, last])
