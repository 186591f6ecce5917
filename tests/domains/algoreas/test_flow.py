import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_flow

from graphbench.domains.algoreas.flow import CAPACITY_STEP, label_shard, max_flow


def smallest_cut(num_nodes, edges, capacity, source, sink):
    """Return the least capacity over all sets that hold the source and not the sink."""
    others = [node for node in range(num_nodes) if node not in (source, sink)]
    cuts = []
    for size in range(len(others) + 1):
        for chosen in itertools.combinations(others, size):
            side = np.zeros(num_nodes, bool)
            side[[source, *chosen]] = True
            leaves, enters = side[edges[:, 0]] & ~side[edges[:, 1]], side[edges[:, 1]] & ~side[edges[:, 0]]
            cuts.append(int(capacity[leaves, 0].sum() + capacity[enters, 1].sum()))
    return min(cuts)


def scipy_flow(num_nodes, edges, capacity, source, sink):
    """Return SciPy's exact integer flow; it computes in int32."""
    arcs = np.concatenate([edges, edges[:, ::-1]])
    values = np.concatenate([capacity[:, 0], capacity[:, 1]]).astype(np.int32)
    matrix = coo_array((values, arcs.T.astype(np.int32)), shape=(num_nodes, num_nodes)).tocsr()
    return maximum_flow(matrix, source, sink).flow_value


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 7), st.floats(0, 1), st.integers(0, 10**6), st.sampled_from([1, 4, 2**24]))
def test_value_is_the_smallest_cut(random_edges, num_nodes, p, seed, largest):
    rng = np.random.default_rng(seed)
    edges = random_edges(num_nodes, p, seed)
    capacity = rng.integers(0, largest + 1, (len(edges), 2))
    source, sink = rng.choice(num_nodes, 2, replace=False).tolist()
    value = max_flow(num_nodes, edges, capacity, source, sink)
    assert value == smallest_cut(num_nodes, edges, capacity, source, sink)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 60), st.floats(0, 1), st.integers(0, 10**6), st.sampled_from([1, 3, 10**6]))
def test_value_is_that_of_scipy(random_edges, num_nodes, p, seed, largest):
    rng = np.random.default_rng(seed)
    edges = random_edges(num_nodes, p, seed)
    capacity = rng.integers(0, largest + 1, (len(edges), 2))
    source, sink = rng.choice(num_nodes, 2, replace=False).tolist()
    value = max_flow(num_nodes, edges, capacity, source, sink)
    assert value == scipy_flow(num_nodes, edges, capacity, source, sink)


@pytest.mark.parametrize(("num_nodes", "count"), [(16, 200), (128, 6), (512, 1)])
def test_value_is_that_of_networkx_and_scipy(shard, num_nodes, count):
    task = shard(num_nodes, count)
    capacity, source, sink, value = label_shard(*task)
    dtypes = [array.dtype for array in (capacity, source, sink, value)]
    assert dtypes == [np.float32, np.int32, np.int32, np.float32]
    for graph, (rows, edges) in enumerate(task.graphs()):
        own, ends = capacity[rows], (int(source[graph]), int(sink[graph]))
        steps = (own / CAPACITY_STEP).astype(np.int64)
        assert (steps * CAPACITY_STEP == own).all()
        assert value[graph] == np.float32(scipy_flow(num_nodes, edges, steps, *ends) * CAPACITY_STEP)
        if num_nodes <= 128:
            network = nx.DiGraph()
            for (u, v), (there, back) in zip(edges.tolist(), own.tolist(), strict=True):
                network.add_edge(u, v, capacity=there)
                network.add_edge(v, u, capacity=back)
            assert value[graph] == pytest.approx(nx.maximum_flow_value(network, *ends), rel=1e-6)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 30), st.floats(0, 1), st.integers(0, 10**6))
def test_value_does_not_change_with_node_ids(random_edges, num_nodes, p, seed):
    rng = np.random.default_rng(seed)
    edges = random_edges(num_nodes, p, seed)
    capacity = rng.integers(0, 1000, (len(edges), 2))
    source, sink = rng.choice(num_nodes, 2, replace=False).tolist()
    new_id = rng.permutation(num_nodes)
    moved = new_id[edges].astype(np.int32)
    turned = moved[:, 0] > moved[:, 1]
    moved[turned] = moved[turned][:, ::-1]
    moved_capacity = capacity.copy()
    moved_capacity[turned] = capacity[turned][:, ::-1]
    order = np.lexsort((moved[:, 1], moved[:, 0]))
    value = max_flow(num_nodes, moved[order], moved_capacity[order], new_id[source], new_id[sink])
    assert value == max_flow(num_nodes, edges, capacity, source, sink)


def test_directions_have_their_own_capacity():
    edge, capacity = np.array([[0, 1]], np.int32), np.array([[5, 2]])
    assert max_flow(2, edge, capacity, 0, 1) == 5
    assert max_flow(2, edge, capacity, 1, 0) == 2


def test_later_paths_may_send_flow_back():
    # The shortest path 0-1-2-3 must give up its middle arc to 0-1-6-7-3 and 0-4-5-2-3.
    arcs = {(0, 1): 1, (1, 2): 1, (2, 3): 1, (0, 4): 1, (4, 5): 1, (5, 2): 1, (1, 6): 1, (6, 7): 1, (7, 3): 1}
    edges = sorted({tuple(sorted(arc)) for arc in arcs})
    capacity = np.array([[arcs.get((u, v), 0), arcs.get((v, u), 0)] for u, v in edges])
    assert max_flow(8, np.array(edges, np.int32), capacity, 0, 3) == 2


def test_without_a_path_nothing_flows():
    edges = np.array([[0, 1], [2, 3]], np.int32)
    assert max_flow(4, edges, np.full((2, 2), 7), 0, 3) == 0
    assert max_flow(2, np.empty((0, 2), np.int32), np.empty((0, 2), np.int64), 0, 1) == 0


def test_errors(shard):
    with pytest.raises(ValueError, match="same node"):
        max_flow(2, np.array([[0, 1]], np.int32), np.ones((1, 2), np.int64), 1, 1)
    single = shard(16, 1)._replace(num_nodes=1, edge_ptr=np.zeros(2, int), edges=np.empty((0, 2), np.int32))
    with pytest.raises(ValueError, match="at least 2 nodes"):
        label_shard(*single)


def test_draws_are_uniform(shard):
    capacity, source, sink, _ = label_shard(*shard(16, 4000))
    assert capacity.min() > 0 and capacity.max() < 3
    for direction in range(2):
        assert stats.kstest(capacity[:, direction], stats.uniform(0, 3).cdf).pvalue > 1e-4
    pairs = np.bincount(source * 16 + sink, minlength=256).reshape(16, 16)
    assert (pairs.diagonal() == 0).all()
    assert stats.chisquare(pairs[~np.eye(16, dtype=bool)]).pvalue > 1e-4


def test_labels_do_not_depend_on_the_shard_but_on_the_attempt(shard):
    whole = label_shard(*shard(16, 20))
    parts = [label_shard(*shard(16, count, first)) for first, count in ((0, 7), (7, 13))]
    for array, *pieces in zip(whole, *parts, strict=True):
        np.testing.assert_array_equal(array, np.concatenate(pieces))
    task = shard(16, 20)
    again = label_shard(*task._replace(attempts=task.attempts + 1))
    assert all((a != b).any() for a, b in zip(whole, again, strict=True))
