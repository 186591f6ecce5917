"""Sums over arcs, and their gradients, against loops and copies."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from graphbench.models.arcs import Arcs, arc_sums
from graphbench.models.graphs import Layout


def ends_of(arcs: int, sources: int, targets: int) -> torch.Tensor:
    return torch.stack([torch.randint(sources, (arcs,)), torch.randint(targets, (arcs,))])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (8,), (5, 4)])
@pytest.mark.parametrize("arcs", [0, 30])
def test_sums_between_two_sets_are_those_of_a_loop(dtype: torch.dtype, shape: tuple[int, ...], arcs: int) -> None:
    values = torch.randint(-4, 5, (5, *shape)).to(dtype)
    ends = ends_of(arcs, 5, 7)
    expected = torch.zeros(7, *shape, dtype=dtype)
    for u, v in ends.t().tolist():
        expected[v] += values[u]
    assert torch.equal(arc_sums(values, Arcs(ends, 5, 7)), expected)


@pytest.mark.parametrize("width", [3, 16])
def test_gradients_are_those_of_copied_rows(width: int) -> None:
    ends = ends_of(60, 9, 6)
    values = torch.randn(9, width, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(6, width, dtype=torch.float64)
    copied = torch.zeros(6, width, dtype=torch.float64).index_add(0, ends[1], values[ends[0]])
    (expected,) = torch.autograd.grad((copied * weights).sum(), values)
    (found,) = torch.autograd.grad((arc_sums(values, Arcs(ends, 9, 6)) * weights).sum(), values)
    torch.testing.assert_close(found, expected)
    torch.autograd.gradcheck(lambda v: arc_sums(v, Arcs(ends, 9, 6)), values)


def test_reversed_arcs_point_back() -> None:
    ends = ends_of(40, 5, 7)
    arcs, values = Arcs(ends, 5, 7), torch.randn(7, 10)
    found = arc_sums(values, arcs.reversed)
    torch.testing.assert_close(found, torch.zeros(5, 10).index_add(0, ends[0], values[ends[1]]))
    assert arcs.reversed.arriving is arcs.leaving and arcs.reversed.leaving is arcs.arriving


def test_arcs_into_every_target_are_listed_in_order() -> None:
    ends = ends_of(30, 5, 7)
    rows, offsets = Arcs(ends, 5, 7).incoming
    for target in range(7):
        listed = rows[offsets[target] : offsets[target + 1]].tolist()
        assert listed == [arc for arc, head in enumerate(ends[1].tolist()) if head == target]


def test_arcs_in_both_directions_are_sorted_once() -> None:
    once = ends_of(25, 8, 8)
    ends = torch.cat([once, once.flip(0)], dim=1)
    arcs, values = Arcs(ends, 8, 8, symmetric=True), torch.randn(8, 12, requires_grad=True)
    (found,) = torch.autograd.grad((arc_sums(values, arcs) * torch.arange(8.0)[:, None]).sum(), values)
    assert arcs.leaving is arcs.arriving
    expected = torch.zeros(8).index_add(0, ends[0], ends[1].float())
    torch.testing.assert_close(found, expected[:, None].expand(8, 12))


def test_the_number_of_threads_does_not_change_sums() -> None:
    arcs, values = Arcs(ends_of(50_000, 300, 200), 300, 200), torch.randn(300, 64)
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(arc_sums(values, arcs))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*found)


def test_a_batch_keeps_its_layout_until_its_arcs_change() -> None:
    ends = ends_of(12, 5, 5)
    both_ways = torch.stack([ends, ends.flip(0)], dim=2).flatten(1)
    batch = Data(edge_index=both_ways, num_nodes=5)
    first = Layout.of(batch, directed=True)
    assert Layout.of(batch, directed=True) is first and Layout.of(batch, directed=False) is not first
    assert "layout" not in str(batch) and set(batch.keys()) == {"edge_index", "num_nodes"}
    batch.edge_index = ends_of(12, 5, 5)
    assert Layout.of(batch, directed=True).edge_index is batch.edge_index
