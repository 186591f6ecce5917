"""The six cards of combinatorial optimisation, their generators and their labellers."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest

import graphbench
from graphbench.catalog.names import catalog, list_datasets
from graphbench.data.arrays.samples import Samples
from graphbench.data.build.generation import draw_samples
from graphbench.data.components.domain import find
from graphbench.domains.co.labellers import LABELLERS
from graphbench.domains.co.problems import PROBLEMS
from graphbench.domains.co.solving import SOLVERS
from graphbench.verification import check_card

IDS = [f"co/{family}_{size}" for family in ("rb", "er", "ba") for size in ("small", "large")]
SOLVED = ("mis", "max_cut", "coloring", "vertex_cover", "max_clique")
NAMES = ("mis_size", "max_cut_size", "chromatic_number", *SOLVED)

# GraphBench, Table 11
TABLE_11 = {
    "co/rb_small": {"nodes": [200, 300], "clique_size": [5, 12], "cliques": [20, 25], "tightness": [0.3, 1.0]},
    "co/rb_large": {"nodes": [800, 1200], "clique_size": [20, 25], "cliques": [40, 55], "tightness": [0.3, 1.0]},
    "co/er_small": {"nodes": [200, 300], "p": 0.15},
    "co/er_large": {"nodes": [700, 800], "p": 0.15},
    "co/ba_small": {"nodes": [200, 300], "m": 2},
    "co/ba_large": {"nodes": [700, 800], "m": 2},
}


def test_there_are_six_datasets_of_eight_tasks() -> None:
    assert sorted(list_datasets("co")) == sorted(IDS)
    assert list_datasets("co/rb_small:*") == [f"co/rb_small:{name}" for name in NAMES]
    assert graphbench.card("co_rb_small").address == graphbench.card("rb_small").address == "co/rb_small:mis_size"
    assert list_datasets("co_small:mis") == [f"co/{family}_small:mis" for family in ("ba", "er", "rb")]


@pytest.mark.parametrize("id_", IDS)
def test_graphs_are_those_of_table_11(id_: str) -> None:
    card = catalog().cards[id_]
    assert {name: spec.count for name, spec in card.splits.items()} == {"train": 35_000, "val": 7_500, "test": 7_500}
    assert all(spec.parameters == TABLE_11[id_] for spec in card.splits.values())
    assert card.inputs == () and not card.directed
    assert card.nodes("train") == pytest.approx(sum(TABLE_11[id_]["nodes"]) / 2, rel=0.05)  # the measured mean
    check_card(card)
    if card.variant == "small":
        assert {name: (spec.count, spec.parameters) for name, spec in card.ood.items() if name != "forced"} == {
            "large": (1000, TABLE_11[id_.replace("small", "large")])
        }


@pytest.mark.parametrize("id_", ["co/rb_small", "co/rb_large"])
def test_a_split_of_model_rb_plants_a_solution(id_: str) -> None:
    card = catalog().cards[id_]
    assert card.ood["forced"].parameters == {**TABLE_11[id_], "planted": True}
    assert card.ood["forced"].count == 1000


@pytest.mark.parametrize("name", NAMES)
def test_outputs_and_metrics_of_the_tasks(name: str) -> None:
    card = graphbench.card(f"co/er_small:{name}")
    words = {f.name: (f.location.value, f.type_name) for f in card.outputs}
    expected = {
        "mis_size": ({"mis_value": ("graph", "scalar")}, "mae"),
        "max_cut_size": ({"max_cut_value": ("graph", "scalar")}, "mae"),
        "chromatic_number": ({"coloring_value": ("graph", "scalar")}, "mae"),
        "mis": ({"mis": ("node", "mask")}, "set_size"),
        "max_cut": ({"max_cut": ("node", "mask")}, "cut_size"),
        "coloring": ({"coloring": ("node", "categorical(64)")}, "num_colors"),
        "vertex_cover": ({"vertex_cover": ("node", "mask")}, "cover_size"),
        "max_clique": ({"max_clique": ("node", "mask")}, "clique_size"),
    }
    assert (words, card.metrics.primary) == expected[name]
    assert card.task.type == ("predict" if name.endswith(("size", "number")) else "solve")
    problem = card.labellers[0].removeprefix("co.")
    assert {f"{problem}_{fact}" for fact in ("value", "bound", "proved", "failed")} <= {f.name for f in card.features}


@pytest.mark.parametrize("id_", IDS)
def test_drawn_graphs_pass_the_checks_and_damaged_ones_do_not(id_: str) -> None:
    card = catalog().cards[id_].graphs
    generator = find("generator", card.generator)
    parameters = generator.parse(card, "train")
    samples = draw_samples(card, "train", range(4))
    assert generator.check is not None
    assert generator.check(parameters, samples) == []
    ptr = samples.edge_ptr

    def damaged(edges: np.ndarray, counts: np.ndarray = samples.num_edges) -> list[str]:
        assert generator.check is not None
        return generator.check(parameters, Samples(samples.num_nodes, counts, edges))

    reverse = samples.edges.copy()
    reverse[ptr[1]] = reverse[ptr[1], ::-1]
    repeated = samples.edges.copy()
    repeated[ptr[1]] = repeated[ptr[1] + 1]
    for edges in (reverse, repeated):
        (problem,) = damaged(edges)
        assert problem.startswith("graph 1:")
    half = int(samples.num_edges[2]) // 8
    thinned = np.delete(samples.edges, slice(ptr[2], ptr[2] + half), axis=0)
    counts = samples.num_edges - half * (np.arange(4) == 2)
    (problem,) = damaged(thinned, counts)
    assert problem.startswith("graph 2:")
    wrong = Samples(samples.num_nodes + 5000, samples.num_edges, samples.edges)
    assert len(generator.check(parameters, wrong)) == 4


@pytest.mark.parametrize(
    "problem", [pytest.param(name, marks=pytest.mark.thorough) if name == "max_cut" else name for name in SOLVED]
)
def test_labels_pass_their_check_and_damaged_ones_do_not(problem: str) -> None:
    card = graphbench.card(f"co/ba_small:{problem}")
    labeller = find("labeller", card.labellers[0])
    one = draw_samples(card, "val", [1])
    graph = one.part(card.graph_schema, 0, 1)
    values = {f.name: one.values[f.name] if f.location == "node" else one.values[f.name][0] for f in card.features}
    assert values[labeller.failed] == 0
    assert labeller.check(graph, values) == []
    changes = {
        problem: np.zeros_like(values[problem]),
        f"{problem}_value": values[f"{problem}_value"] + 1,
        f"{problem}_proved": 1 - values[f"{problem}_proved"],
        f"{problem}_bound": values[f"{problem}_value"] + (-1 if PROBLEMS[problem].maximise else 1),
    }
    for name, wrong in changes.items():
        assert labeller.check(graph, {**values, name: wrong}), name


@pytest.mark.thorough
def test_labels_are_what_the_solver_finds(drawn: Callable[..., list[tuple[int, np.ndarray]]]) -> None:
    for name in SOLVED:
        labeller = LABELLERS[name]
        for n, edges in drawn("ba_small", 2):
            graph = Samples(np.array([n]), np.array([len(edges)]), edges.astype(np.uint16))
            values = labeller.label(labeller.effort(), 5, graph)
            solved = SOLVERS[name].solve(n, edges, seed=5)
            np.testing.assert_array_equal(values[name], solved.solution)
            assert (values[f"{name}_value"], values[f"{name}_bound"]) == (solved.value, solved.bound)
            assert values[f"{name}_proved"] == int(solved.proved)
            assert labeller.check(graph, values) == []


def test_simple_rules_are_no_better_than_labels() -> None:
    for problem in SOLVED:
        card = graphbench.card(f"co/er_small:{problem}")
        samples = draw_samples(card, "val", range(3))
        value = samples.values[f"{problem}_value"]
        sign = 1 if PROBLEMS[problem].maximise else -1
        for found in find("labeller", card.labellers[0]).baselines(samples).values():
            assert (sign * found <= sign * value).all()


def test_statistics_leave_out_graphs_without_a_label() -> None:
    card = graphbench.card("co/ba_small:mis")
    samples = draw_samples(card, "val", range(3))
    known = find("labeller", card.labellers[0]).statistics(samples)
    assert known["mean_mis_value"].tolist() == samples.values["mis_value"].tolist()
    assert known["value_to_bound"].tolist() == [1.0, 1.0, 1.0] == known["proved"].tolist()
    failed = {**samples.values, "mis_failed": np.array([0, 1, 0]), "mis_value": np.array([100, -1, 100])}
    found = find("labeller", card.labellers[0]).statistics(
        Samples(samples.num_nodes, samples.num_edges, samples.edges, failed)
    )
    assert all(np.isnan(values).tolist() == [False, True, False] for values in found.values())


def test_a_sample_is_a_networkx_graph(tmp_path) -> None:
    from torch_geometric.utils import to_networkx

    dataset = graphbench.Loader("co/ba_small:max_cut", root=tmp_path, limit=2, workers=1).load("val").val
    graph = to_networkx(dataset[0], node_attrs=["max_cut"], to_undirected=True)
    assert nx.is_connected(graph) and nx.number_of_selfloops(graph) == 0
    assert graph.number_of_edges() == 2 * (graph.number_of_nodes() - 2)
    side = {v for v, s in graph.nodes(data="max_cut") if s}
    assert nx.cut_size(graph, side) == dataset[0].max_cut_value.item()
