"""Models that build solutions step by step: their steps are feasible, and what they return is what they built."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from graphbench.catalog.features import Feature
from graphbench.core.errors import ConfigError
from graphbench.models.base import Decoded, TaskFeatures
from graphbench.models.registry import build_task_model
from graphbench.models.stepwise.colourings import Colourings
from graphbench.models.stepwise.config import StepwiseModelConfig
from graphbench.models.stepwise.cuts import Cuts
from graphbench.models.stepwise.partial import CERTAIN
from graphbench.models.stepwise.problems import PARTIAL_SOLUTIONS
from graphbench.models.stepwise.residual import Residual, gumbel_numbers, nearest_nodes, ranks_within, uniform_numbers
from graphbench.models.stepwise.sets import IndependentSets
from graphbench.models.surrogates import surrogate_of
from graphbench.tasks.solve.evaluator import decode

TASKS = {
    "mis": (Feature.parse("mis", ("output", "node", "mask")), "independent_set"),
    "vertex_cover": (Feature.parse("vertex_cover", ("output", "node", "mask")), "vertex_cover"),
    "max_clique": (Feature.parse("max_clique", ("output", "node", "mask")), "clique"),
    "max_cut": (Feature.parse("max_cut", ("output", "node", "mask")), "max_cut"),
    "coloring": (Feature.parse("coloring", ("output", "node", "categorical(16)")), "coloring"),
}
SMALLER = ("coloring", "vertex_cover")  # problems where smaller solutions are better
TINY = {
    "hidden": 16,
    "layers": 2,
    "dropout": 0.0,
    "degrees": True,
    "positional": {"type": "none"},
    "input_network": False,
    "rounds": 4,
}


def data_of(graph: nx.Graph) -> Data:
    edges = torch.tensor([(u, v, v, u) for u, v in sorted(graph.edges)], dtype=torch.long).reshape(-1, 2, 2)
    return Data(edge_index=edges.reshape(-1, 2).t().contiguous(), num_nodes=len(graph))


def graphs(count: int = 6, nodes: int = 14, p: float = 0.3) -> list[Data]:
    return [data_of(nx.gnp_random_graph(nodes + seed, p, seed=seed)) for seed in range(count)]


def model_of(problem: str, **changes):
    torch.manual_seed(0)
    config = StepwiseModelConfig(**{**TINY, **changes})
    return build_task_model(config, {"co/x": TaskFeatures((TASKS[problem][0],), options={"problem": f"co.{problem}"})})


def solved(model, batch: Batch):
    name = model.output.name
    return decode(name, batch, model.eval().predict(model.prepare(batch))[name].numpy())


@pytest.fixture(params=TASKS)
def problem(request) -> str:
    return request.param


def test_a_residual_is_the_induced_subgraph():
    graph = nx.gnp_random_graph(20, 0.3, seed=1)
    data = data_of(graph)
    whole = Residual.whole(data.edge_index, torch.zeros(20, dtype=torch.long), 1)
    kept = torch.rand(20) < 0.6
    part = whole.narrowed(kept)
    nodes = kept.nonzero().squeeze(1).tolist()
    assert part.nodes.tolist() == nodes and part.ptr.tolist() == [0, len(nodes)]
    pairs = {tuple(sorted((nodes[u], nodes[v]))) for u, v in part.edge_index.t().tolist()}
    assert pairs == {tuple(sorted(edge)) for edge in graph.subgraph(nodes).edges}
    assert torch.equal(part.edge_index[:, ::2], part.edge_index[:, 1::2].flip(0))


def test_ranks_count_within_graphs():
    graph = torch.tensor([0, 0, 0, 2, 2, 2, 2])
    keys = torch.tensor([1.0, 3.0, 3.0, -1.0, 5.0, 0.0, 5.0])
    assert ranks_within(keys, graph, 3).tolist() == [2, 0, 1, 3, 0, 2, 1]


def test_a_region_is_what_is_nearest_to_its_centre():
    several = [
        nx.gnp_random_graph(20, 0.15, seed=1),
        nx.cycle_graph(9),
        nx.disjoint_union(nx.path_graph(4), nx.path_graph(3)),
    ]
    batch = Batch.from_data_list([data_of(graph) for graph in several])
    draw = np.random.default_rng(0)
    first = torch.tensor(draw.random(batch.num_nodes), dtype=torch.float32)
    lengths = torch.tensor(draw.random(batch.num_nodes) + 0.1, dtype=torch.float32)
    shares = torch.tensor([0.31, 0.5, 0.9])
    region = nearest_nodes(batch.edge_index, batch.batch, first, lengths, shares)
    for number, graph in enumerate(several):
        start, end = batch.ptr[number], batch.ptr[number + 1]
        of_node, wanted = lengths[start:end].tolist(), math.ceil(float(shares[number]) * len(graph))
        centre = int(first[start:end].argmax())
        distances = nx.single_source_dijkstra_path_length(
            graph, centre, weight=lambda u, v, _, of_node=of_node: of_node[v]
        )
        unreached = sorted(set(graph) - set(distances), key=lambda node: -first[start + node])
        order = sorted(distances, key=distances.get) + unreached
        assert set(region[start:end].nonzero().flatten().tolist()) == set(order[:wanted])


def test_random_numbers_depend_on_their_arguments_alone():
    seeds = torch.arange(20_000)
    numbers = uniform_numbers(seeds, 3, torch.arange(20_000) % 7)
    assert torch.equal(numbers[5:9], uniform_numbers(seeds[5:9], 3, torch.arange(20_000)[5:9] % 7))
    assert numbers.min() > 0 and numbers.max() < 1
    assert not torch.equal(numbers, uniform_numbers(seeds, 4, torch.arange(20_000) % 7))
    assert abs(float(numbers.mean()) - 0.5) < 0.01 and abs(float(numbers.std()) - 12**-0.5) < 0.01
    assert abs(float(gumbel_numbers(seeds).mean()) - 0.5772) < 0.03


@pytest.mark.parametrize("rounds_left", [1, 3])
def test_every_step_decides_a_node_of_every_graph_and_stays_feasible(problem, rounds_left):
    batch = Batch.from_data_list(graphs())
    partial = PARTIAL_SOLUTIONS[TASKS[problem][1]](batch.edge_index, batch.batch, 6, 16)
    tails, heads = batch.edge_index
    left = partial.undecided()
    while len(left):
        partial.inputs(left)
        before = torch.bincount(left.graph, minlength=6)
        partial.decide(left, torch.randn(len(left)), rounds_left)
        left = partial.undecided()
        after = torch.bincount(left.graph, minlength=6)
        assert (after[before > 0] < before[before > 0]).all()
        state = partial.state
        if problem in ("mis", "vertex_cover"):
            assert not ((state[tails] == 1) & (state[heads] == 1)).any()
            blocked = torch.zeros_like(state).index_add(0, heads, (state[tails] == 1).long()) > 0
            assert torch.equal(state == 0, blocked)
        elif problem == "max_clique":
            members = torch.bincount(batch.batch[state == 1], minlength=6)[batch.batch]
            beside = torch.zeros_like(state).index_add(0, heads, (state[tails] == 1).long())
            assert torch.equal(state == 1, (state == 1) & (beside == members - 1))
            assert torch.equal(state == 0, (state != 1) & (beside < members))
        elif problem == "coloring":
            assert not ((state[tails] == state[heads]) & (state[tails] >= 0)).any()
    assert torch.equal(partial.values().sign(), torch.tensor([-1 if problem in SMALLER else 1] * 6))


def test_values_are_the_objectives_of_what_was_decided(problem):
    batch = Batch.from_data_list(graphs())
    model = model_of(problem, copies=3, repairs=2, temperature=1.0)
    scores = model.eval().predict(model.prepare(batch))
    solutions = decode(problem, batch, scores[problem].numpy())
    partial = model._started(batch)
    partial.state = torch.from_numpy(solutions.nodes).long() ^ (problem == "vertex_cover")
    assert partial.values().abs().tolist() == solutions.values.tolist()
    if problem in ("mis", "vertex_cover", "max_clique"):  # the decoder has nothing to add or to leave out
        assert (scores[problem] > 0).sum() == solutions.values.sum()
    elif problem == "max_cut":
        assert ((scores[problem] > 0).long() == partial.state).all()
    else:
        assert (scores[problem].argmax(1).bincount() > 0).sum() <= solutions.values.max()


@pytest.mark.parametrize("parts", ["scattered", "regions", "alternating"])
def test_more_repairs_and_copies_are_never_worse(problem, parts):
    batch = Batch.from_data_list(graphs(8, 30, 0.25))
    few, more, copied = (
        solved(model_of(problem, temperature=1.0, repair_parts=parts, **changes), batch).values
        for changes in ({}, {"repairs": 12}, {"repairs": 12, "copies": 4})
    )
    sign = -1 if problem in SMALLER else 1
    assert (sign * more >= sign * few).all() and (sign * copied >= sign * more).all()
    assert (sign * copied > sign * few).any()


@pytest.mark.parametrize("parts", ["scattered", "alternating"])
def test_a_graph_has_the_same_solution_alone_and_in_a_batch(problem, parts):
    listed = graphs()
    model = model_of(problem, copies=2, repairs=3, repair_parts=parts, temperature=1.0)
    together = solved(model, Batch.from_data_list(listed)).per_graph()
    for data, solution in zip(listed, together, strict=True):
        np.testing.assert_array_equal(solved(model, Batch.from_data_list([data])).nodes, solution)


@pytest.mark.parametrize("changes", [{}, {"repairs": 2, "copies": 2}])
def test_graphs_without_edges_and_of_one_node_are_solved(problem, changes):
    listed = [data_of(nx.empty_graph(5)), data_of(nx.empty_graph(1)), data_of(nx.complete_graph(4))]
    values = solved(model_of(problem, **changes), Batch.from_data_list(listed)).values.tolist()
    expected = {
        "mis": [5, 1, 1],
        "vertex_cover": [0, 0, 3],
        "max_clique": [1, 1, 4],
        "max_cut": [0, 0, 4],
        "coloring": [1, 1, 4],
    }
    assert values == expected[problem]


def test_training_returns_a_loss_for_every_round_with_fixed_decisions(problem):
    batch = Batch.from_data_list(graphs(nodes=40))
    model = model_of(problem, unrolled=3).train()
    outputs = model(batch)
    assert isinstance(outputs, Decoded) and len(outputs.earlier) == 2
    loss = surrogate_of(TASKS[problem][1], {})
    states = [*outputs.earlier, outputs]
    fixed = [int((state[problem].abs() >= CERTAIN).sum()) for state in states]
    assert fixed == sorted(fixed) and fixed[0] < fixed[-1]
    sum(loss(state[problem], batch) for state in states).backward()
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in model.network.decoders.parameters())


def test_revised_rounds_of_training_take_a_part_of_the_solution_back(problem):
    batch = Batch.from_data_list(graphs())
    torch.manual_seed(0)
    outputs = model_of(problem, unrolled=20, revised=3).train()(batch)
    open_nodes = [int((state[problem].abs() < CERTAIN).sum()) for state in [*outputs.earlier, outputs]]
    falling = open_nodes[:-3]
    assert falling == sorted(falling, reverse=True)
    assert any(later > earlier for earlier, later in zip(open_nodes[-4:], open_nodes[-3:], strict=False))


def test_scores_of_cuts_change_their_sign_with_the_sides():
    batch = Batch.from_data_list(graphs())
    model = model_of("max_cut").eval()
    started, mirrored = model._started(batch), model._started(batch)
    sides = torch.where(torch.rand(batch.num_nodes) < 0.5, torch.randint(0, 2, (batch.num_nodes,)), -1)
    started.state, mirrored.state = sides, torch.where(sides >= 0, 1 - sides, sides)
    one = model._scores(started, started.undecided())
    other = model._scores(mirrored, mirrored.undecided())
    torch.testing.assert_close(one, -other, rtol=0, atol=1e-6)
    assert one.abs().max() > 0


def test_of_neighbours_in_a_cut_the_more_certain_one_decides_before_the_last_round():
    data = data_of(nx.path_graph(5))  # the first decision is side 0 for node 1
    for rounds_left, expected in ((2, [0, 0, 1, -1, 1]), (1, [0, 0, 1, 1, 1])):
        cuts = Cuts(data.edge_index, torch.zeros(5, dtype=torch.long), 1)
        assert cuts.state.tolist() == [-1, 0, -1, -1, -1]
        cuts.decide(cuts.undecided(), torch.tensor([-1.0, 3.0, 1.0, 2.0]), rounds_left)
        assert cuts.state.tolist() == expected


def pairs_of(colourings):
    """Return the pairs that may be decided and those that exclude each other, found node by node."""
    graph = nx.Graph(colourings.edge_index.T.tolist())
    graph.add_nodes_from(range(len(colourings.graph)))
    state = colourings.state.tolist()
    pairs = [
        (v, c)
        for v in range(len(state))
        for c in range(colourings.limit[colourings.graph[v]])
        if state[v] < 0 and all(state[u] != c for u in graph[v])
    ]
    return pairs, {frozenset((a, b)) for a in pairs for b in pairs if a[1] == b[1] and graph.has_edge(a[0], b[0])}


def pairs_and_arcs(left):
    pairs = list(zip(left.nodes.tolist(), left.option.tolist(), strict=True))
    return pairs, [(pairs[a], pairs[b]) for a, b in left.edge_index.T.tolist()]


def random_colourings(seed):
    torch.manual_seed(seed)
    batch = Batch.from_data_list([data_of(nx.gnp_random_graph(n, 0.3, seed=n + seed)) for n in (7, 12, 20)])
    colourings = Colourings(batch.edge_index, batch.batch, 3, 8)
    colourings.vary()
    return colourings


@pytest.mark.parametrize("seed", range(5))
def test_what_remains_of_a_colouring_are_the_pairs_without_conflict(seed):
    colourings = random_colourings(seed)
    left = colourings.undecided()
    for _ in range(100):
        pairs, excluded = pairs_of(colourings)
        found, arcs = pairs_and_arcs(left)
        assert found == pairs
        assert {frozenset(arc) for arc in arcs} == excluded and len(arcs) == 2 * len(excluded)
        assert arcs[1::2] == [(b, a) for a, b in arcs[::2]]
        if not pairs:
            break
        colourings.decide(left, torch.randn(len(left)), 1)
        left = colourings.remaining(left)
    assert not pairs
    tails, heads = colourings.edge_index
    same = colourings.state[tails] == colourings.state[heads]
    assert not bool((same & (colourings.state[tails] >= 0)).any())
    assert bool((colourings.state < colourings.limit[colourings.graph]).all())


@pytest.mark.parametrize("seed", range(5))
def test_the_first_colouring_takes_nodes_by_falling_degree(seed):
    graph = nx.gnp_random_graph(30, 0.3, seed=seed)
    data = data_of(graph)
    colourings = Colourings(data.edge_index, torch.zeros(30, dtype=torch.long), 1, 8)
    expected = nx.greedy_color(graph, "largest_first")
    assert colourings.answers().tolist() == [expected[v] for v in range(30)]
    assert colourings.values().tolist() == [-1 - max(expected.values())]


def test_a_complete_colouring_loses_its_rarest_colour():
    batch = Batch.from_data_list([data_of(nx.path_graph(7)), data_of(nx.star_graph(4))])
    colourings = Colourings(batch.edge_index, batch.batch, 2, 8)
    assert colourings.limit.tolist() == [1, 1] and colourings.values().tolist() == [-2, -2]
    colourings.state = torch.tensor([1, 2, 0, 1, 0, 1, 0, 1, 0, 0, 0, -1])
    colourings.limit = torch.tensor([3, 2])
    colourings.whole = torch.tensor([3, 0, 1, 0, 1, 0, 2, 0, 1, 1, 1, 1])
    before = colourings.merits()
    assert colourings.answers().tolist() == [1, 2, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1]
    colourings.take_back(torch.zeros(12, dtype=torch.bool))
    assert colourings.limit.tolist() == [2, 2]
    assert colourings.state.tolist() == [1, -1, 0, 1, 0, 1, 0, 1, 0, 0, 0, -1]
    assert colourings.whole.tolist() == [1, 2, 0, 1, 0, 1, 0, 0, 1, 1, 1, 1]
    after = colourings.merits()
    assert after[0] > before[0] and after[1] == before[1]


def test_of_nodes_with_one_colour_the_one_with_fewest_rivals_takes_it():
    data = data_of(nx.path_graph(3))
    colourings = Colourings(data.edge_index, torch.zeros(3, dtype=torch.long), 1, 8)
    colourings.state, colourings.limit = torch.full((3,), -1), torch.tensor([1])
    colourings.decide(colourings.undecided(), torch.zeros(3), 1)
    assert colourings.state.tolist() == [0, -1, 0]


def test_a_repair_of_a_colouring_takes_more_back_beside_nodes_without_colour():
    data = data_of(nx.path_graph(4))
    colourings = Colourings(data.edge_index, torch.zeros(4, dtype=torch.long), 1, 8)
    colourings.state = torch.tensor([-1, 0, 1, 0])
    torch.testing.assert_close(colourings.shares_kept(torch.tensor([0.75])), torch.tensor([0.875, 0.5, 0.875, 0.875]))


def test_graphs_that_leave_nothing_to_decide_can_be_trained_on():
    batch = Batch.from_data_list([data_of(nx.complete_graph(2)), data_of(nx.empty_graph(1))])
    outputs = model_of("coloring").train()(batch)
    loss = surrogate_of("coloring", {})(outputs["coloring"], batch)
    loss.backward()
    assert torch.isfinite(loss)


def test_a_teacher_reveals_a_part_of_the_labels(problem):
    batch = Batch.from_data_list(graphs())
    solution = decode(problem, batch, torch.randn(batch.num_nodes).numpy()).nodes
    batch[problem] = torch.from_numpy(solution)
    model = model_of(problem, teacher="labels").train()
    scores = model(batch)[problem].detach()
    if problem == "coloring":
        decided = scores.amax(1) >= CERTAIN
        assert torch.equal(scores.argmax(1)[decided], batch.coloring.long()[decided])
    elif problem != "max_cut":
        decided = scores.abs() >= CERTAIN
        assert torch.equal((scores > 0)[decided], batch[problem][decided] > 0)
    else:  # a cut and its mirror image are the same
        decided = scores.abs() >= CERTAIN
        agree = ((scores > 0) == (batch.max_cut > 0))[decided]
        shares = [agree[batch.batch[decided] == g].float().mean().item() for g in range(6)]
        assert set(shares) <= {0.0, 1.0}
    assert 6 < int(decided.sum()) < batch.num_nodes


def test_a_teacher_without_labels_is_an_error():
    with pytest.raises(ConfigError, match="training data have no mis"):
        model_of("mis", teacher="labels").train()(Batch.from_data_list(graphs()))


def test_other_tasks_are_refused():
    feature = Feature.parse("cost", ("output", "graph", "scalar"))
    with pytest.raises(ConfigError, match="the task names none"):
        build_task_model(StepwiseModelConfig(**TINY), {"x": TaskFeatures((feature,))})
    weighted = (Feature.parse("w", ("input", "node", "scalar")), TASKS["mis"][0])
    with pytest.raises(ConfigError, match="the task has the inputs w"):
        build_task_model(StepwiseModelConfig(**TINY), {"x": TaskFeatures(weighted, options={"problem": "co.mis"})})


def test_cuts_begin_with_the_node_of_the_highest_degree():
    data = data_of(nx.star_graph(5))
    cuts = Cuts(data.edge_index, torch.zeros(6, dtype=torch.long), 1)
    assert cuts.state.tolist() == [0, -1, -1, -1, -1, -1]
    left = cuts.undecided()
    assert torch.allclose(cuts.inputs(left)["pull"], torch.tensor([[np.log(2.0), 0.0, 2**-0.5]] * 5).float())


def test_members_that_leave_free_their_neighbours():
    data = data_of(nx.path_graph(5))
    sets = IndependentSets(data.edge_index, torch.zeros(5, dtype=torch.long), 1)
    sets.reveal(torch.tensor([1, 0, 1, 0, 1]), torch.ones(5, dtype=torch.bool))
    assert sets.state.tolist() == [1, 0, 1, 0, 1]
    sets.take_back(torch.tensor([False, False, True, False, False]))
    assert sets.state.tolist() == [1, 0, -1, 0, 1]


def test_graphs_without_edges_are_no_obstacle_to_training(problem):
    """Such graphs may leave nothing to decide, so that nothing can be standardised."""
    batch = Batch.from_data_list([data_of(nx.empty_graph(nodes)) for nodes in (1, 3)])
    model = model_of(problem)
    model.fit_normalisation(batch)
    loss = surrogate_of(TASKS[problem][1], {})(model.train()(batch)[model.output.name], batch)
    assert torch.isfinite(loss).all()
    solved(model, batch)
