"""Scores of generated circuits, against plain Python, and every way in which a circuit can be wrong."""

import math

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from graphbench.core.errors import CircuitError, EvaluationError
from graphbench.data.components.domain import find
from graphbench.domains.chip_design.aig import Aig, Circuits
from graphbench.domains.chip_design.checks import python_values
from graphbench.domains.chip_design.generators import TableParameters, draw_tables
from graphbench.domains.chip_design.graph_kernels import FAULTS
from graphbench.domains.chip_design.graphs import circuits_as_samples
from graphbench.domains.chip_design.scoring import and_ratio, score_circuits
from graphbench.domains.chip_design.shannon import circuits_of_tables
from graphbench.domains.chip_design.submissions import REASONS, Submission
from graphbench.domains.chip_design.truth_tables import to_words
from graphbench.tasks.generate.evaluator import answers_of

SHAPES = ((6, 1), (6, 2), (5, 2), (7, 1))


def submission_of_graphs(graphs):
    return Submission.of(answers_of(graphs, find("verifier", "chip_design.circuits")))


def functions(count, shapes=SHAPES):
    parameters = TableParameters(shapes=shapes)
    index = np.arange(count)
    inputs, outputs, words, _ = draw_tables(parameters, np.uint64(5), index, 0 * index)
    return inputs, outputs, words


def with_extra(aig, dead, duplicates):
    """Add ANDs that no output needs, and copies of the first AND."""
    rows = [[2, 5]] * min(dead, 1) + [[2 * (1 + aig.num_inputs + aig.num_ands), 4]] * (dead > 1)
    rows += [aig.fanins[0].tolist()] * duplicates
    return Aig(aig.num_inputs, np.concatenate([aig.fanins, np.array(rows, np.int32).reshape(-1, 2)]), aig.outputs)


def test_scores_are_those_of_the_equation():
    inputs, outputs, words = functions(40)
    circuits = list(circuits_of_tables(inputs, outputs, words))
    reference = np.array([aig.num_ands - i % 7 for i, aig in enumerate(circuits)])
    given = [with_extra(aig, i % 3, i % 2) for i, aig in enumerate(circuits)]
    for i in (3, 17, 30):
        given[i] = Aig(given[i].num_inputs, given[i].fanins, given[i].outputs ^ 1)
    scores = score_circuits(Submission.of(given), inputs, outputs, words, reference)
    ratios = [
        0 if i in (3, 17, 30) else r / aig.num_ands for i, (r, aig) in enumerate(zip(reference, given, strict=True))
    ]
    assert np.allclose(scores.ratios, ratios) and math.isclose(scores.score, 100 * sum(ratios) / 40)
    shapes = [SHAPES[i % 4] for i in range(40)]
    for shape in SHAPES:
        own = [r for r, s in zip(ratios, shapes, strict=True) if s == shape]
        assert math.isclose(scores.by_shape()[shape], 100 * sum(own) / len(own))
    right = [i for i in range(40) if i not in (3, 17, 30)]
    metrics = scores.metrics()
    assert metrics["valid"] == 1 and math.isclose(metrics["correct"], 37 / 40)
    assert math.isclose(metrics["mean_ands"], np.mean([given[i].num_ands for i in right]))
    depths = [python_values(a.num_inputs, a.fanins.tolist(), a.outputs.tolist())[1] for a in given]
    assert math.isclose(metrics["mean_depth"], np.mean([depths[i] for i in right]))
    assert scores.dead.tolist() == [i % 3 + i % 2 for i in range(40)]  # a copy that nothing reads is dead, too
    assert scores.failures == {"the circuit computes another function": 3}


def test_functions_without_ands():
    reference, generated = np.array([0, 0, 0, 1, 5, 4]), np.array([0, 1, 9, 0, 0, 8])
    assert and_ratio(reference, generated).tolist() == [1, 1 / 2, 1 / 10, 2, 6, 1 / 2]
    for r in range(4):  # fewer ANDs always score higher
        ratios = and_ratio(np.full(9, r), np.arange(9))
        assert (np.diff(ratios) < 0).all()
    constant = Aig(6, np.empty((0, 2), np.int32), np.array([1]))
    table = to_words(np.ones((1, 64), bool)).ravel()
    scores = score_circuits(Submission.of([constant]), np.array([6]), np.array([1]), table, np.array([0]))
    assert scores.score == 100 and scores.metrics()["mean_ands"] == 0


def graph(gates, arcs, inverted=None):
    edges = torch.tensor(arcs, dtype=torch.long).reshape(-1, 2).T
    return Data(edge_index=edges, gate=torch.tensor(gates), inverted=torch.tensor(inverted or [0] * len(arcs)))


AND2 = ([0, 0, 1, 2], [[0, 2], [1, 2], [2, 3]])  # the table of two inputs that is 1 where both are
WRONG = {
    1: graph([0, 0, 5, 2], AND2[1]),
    2: graph(AND2[0], [[0, 2], [1, 2], [2, 4]]),
    3: graph(*AND2, [0, 0, 2]),
    4: graph(AND2[0], [[0, 2], [1, 2], [2, 3], [2, 0]]),
    5: graph([0, 0, 1, 2, 2], [[0, 2], [1, 2], [2, 3], [3, 4]]),
    6: graph(AND2[0], [[0, 2], [2, 3]]),
    7: graph(AND2[0], [[0, 2], [1, 2]]),
    8: graph([0, 0, 1, 1, 2], [[0, 2], [3, 2], [1, 3], [2, 3], [3, 4]]),
    9: graph([0, 0, 0, 1, 2], [[0, 3], [1, 3], [3, 4]]),
    10: graph([0, 0, 1, 2, 2], [[0, 2], [1, 2], [2, 3], [2, 4]]),
    11: graph(*AND2, [0, 1, 0]),
    12: Data(edge_index=torch.zeros(3, 3, dtype=torch.long), gate=torch.zeros(3)),
    13: None,
}


def test_every_way_to_be_wrong_is_counted_and_none_raises():
    assert sorted(WRONG) == list(range(1, len(REASONS)))
    given = [graph(*AND2), *WRONG.values(), graph([0, 2, 1, 0], [[0, 2], [3, 2], [2, 1]])]
    count = len(given)
    tables = np.full(count, 8, np.uint64)
    sizes = np.full(count, 2), np.full(count, 1)
    scores = score_circuits(submission_of_graphs(given), *sizes, tables, np.ones(count, int))
    assert scores.reasons.tolist() == [0, *WRONG, 0]
    assert scores.ratios.tolist() == [1] + [0] * len(WRONG) + [1]
    assert scores.failures == {REASONS[k]: 1 for k in WRONG}
    assert math.isclose(scores.metrics()["valid"], 3 / count) and math.isclose(scores.metrics()["correct"], 2 / count)
    assert math.isclose(scores.score, 200 / count)


def test_a_submission_without_any_circuit():
    given = Submission.of([None, b"nonsense"])
    scores = score_circuits(given, np.array([2, 2]), np.array([1, 1]), np.array([8, 8], np.uint64), np.array([1, 1]))
    assert scores.score == 0 and math.isnan(scores.metrics()["mean_ands"])
    assert "begins with 'nonsense'" in given.details[1]


def networkx_fault(gates, arcs, bits):
    """Return whether a graph is well formed, with networkx."""
    if any(g not in (0, 1, 2, 3) for g in gates) or any(not 0 <= v < len(gates) for arc in arcs for v in arc):
        return False
    g = nx.MultiDiGraph()
    g.add_nodes_from(range(len(gates)))
    g.add_edges_from(arcs)
    wanted = {0: 0, 1: 2, 2: 1, 3: 0}
    return (
        all(b in (0, 1) for b in bits)
        and all(g.in_degree(v) == wanted[gates[v]] for v in g)
        and all(g.out_degree(v) == 0 for v in g if gates[v] == 2)
        and nx.is_directed_acyclic_graph(g)
    )


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_faults_are_those_that_networkx_finds(data):
    seed = data.draw(st.integers(0, 10**6))
    rng = np.random.default_rng(seed)
    aig = Aig(
        3, np.array([[int(rng.integers(0, 2 * (4 + k))) for _ in range(2)] for k in range(6)]), rng.integers(0, 20, 2)
    )
    samples = circuits_as_samples(Circuits.of([aig]))
    gates, arcs = samples.values["gate"].tolist(), samples.edges.tolist()
    bits = samples.values["inverted"].tolist()
    for _ in range(data.draw(st.integers(0, 2))):
        place = data.draw(st.integers(0, len(arcs) - 1))
        change = data.draw(st.sampled_from(["source", "target", "bit", "gate", "drop"]))
        if change == "bit":
            bits[place] = data.draw(st.integers(-1, 2))
        elif change == "gate":
            gates[data.draw(st.integers(0, len(gates) - 1))] = data.draw(st.integers(-1, 4))
        elif change == "drop":
            del arcs[place], bits[place]
        else:
            arcs[place][change == "target"] = data.draw(st.integers(-1, len(gates)))
    read = submission_of_graphs([graph(gates, arcs, bits)])
    assert (read.faults[0] == 0) == networkx_fault(gates, arcs, bits), FAULTS[read.faults[0]]


def test_graphs_with_one_hot_nodes():
    plain = graph(*AND2)
    x = torch.nn.functional.one_hot(plain.gate, 4).float()
    for wide in (x, x[:, :3], x.long()):
        for attr in (plain.inverted, plain.inverted[:, None].float()):
            read = submission_of_graphs([Data(x=wide, edge_index=plain.edge_index, edge_attr=attr)])
            assert read.faults[0] == 0 and read.circuits[0].fanins.tolist() == [[2, 4]]
    soft = Data(x=x + 0.1, edge_index=plain.edge_index, edge_attr=plain.inverted)
    assert REASONS[submission_of_graphs([soft]).faults[0]] == FAULTS[1]
    for broken in (
        Data(x=x[:, :2], edge_index=plain.edge_index, edge_attr=plain.inverted),
        Data(x=x, edge_index=plain.edge_index),
        Data(x=x, edge_attr=plain.inverted),
        Data(x=x, edge_index=plain.edge_index.float(), edge_attr=plain.inverted),
        Data(x=x, edge_index=plain.edge_index, edge_attr=plain.inverted[:2]),
        Data(x=x, edge_index=plain.edge_index, edge_attr=["a"] * 3),
    ):
        assert REASONS[submission_of_graphs([broken]).faults[0]] == "the file or graph cannot be read"
    nan = Data(x=x, edge_index=plain.edge_index, edge_attr=torch.full((3,), math.nan))
    assert REASONS[submission_of_graphs([nan]).faults[0]] == FAULTS[3]


def test_circuits_of_all_forms_together():
    inputs, outputs, words = functions(7)
    circuits = circuits_of_tables(inputs, outputs, words)
    given = [
        circuits[0],
        circuits[1].to_aiger(),
        circuits[2].to_data(),
        circuits[3].to_aiger(ascii=True),
        7,
        circuits[5].to_aiger()[:-2],
        None,
    ]
    read = submission_of_graphs(given)
    scores = score_circuits(read, inputs, outputs, words, circuits.num_ands)
    assert scores.ratios.tolist() == [1, 1, 1, 1, 0, 0, 0]
    assert "7 is no circuit" in read.details[4] and "cut short" in read.details[5] and len(read.details) == 2


def test_flat_arrays_are_those_of_the_circuits():
    inputs, outputs, words = functions(6)
    circuits = circuits_of_tables(inputs, outputs, words)
    arrays = Submission.of([*list(circuits)[:3], b"nonsense", *list(circuits)[4:]]).arrays()
    scores = score_circuits(Submission.of(arrays), inputs, outputs, words, circuits.num_ands)
    assert scores.ratios.tolist() == [1, 1, 1, 0, 1, 1] and scores.failures == {"there is no circuit": 1}
    with pytest.raises(CircuitError, match="the circuits are a float"):
        Submission.of(3.5)
    with pytest.raises(CircuitError, match="lack 'num_edges'"):
        Submission.of({"num_nodes": arrays["num_nodes"]})


def test_wrong_numbers_of_circuits():
    inputs, outputs, words = functions(3)
    circuits = circuits_of_tables(inputs, outputs, words)
    whole = Submission.of(circuits)
    for submission, reference in (
        (Submission.of(list(circuits)[:2]), circuits.num_ands),
        (whole, circuits.num_ands[:2]),
    ):
        with pytest.raises(EvaluationError, match="3 functions"):
            score_circuits(submission, inputs, outputs, words, reference)
    with pytest.raises(EvaluationError, match="function 1 has no reference"):
        score_circuits(whole, inputs, outputs, words, np.array([5, -1, 5]))
    with pytest.raises(EvaluationError, match="at least one"):
        score_circuits(Submission.of([]), inputs[:0], outputs[:0], words[:0], np.empty(0, int))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"edges": np.zeros((2, 2), int)}, "shapes"),
        ({"edges": np.zeros((3, 2))}, "edges is float64"),
        ({"gates": np.array(["a"] * 4)}, "give numbers"),
        ({"num_nodes": np.array([-4])}, "shapes"),
        ({"num_nodes": np.array([2**62] * 4 + [4]), "num_edges": np.array([3, 0, 0, 0, 0])}, "at most 2,147,483,647"),
    ],
)
def test_wrong_arrays_are_refused(change, words):
    arrays = {
        "num_nodes": np.array([4]),
        "num_edges": np.array([3]),
        "edges": np.array(AND2[1]),
        "gates": np.array(AND2[0]),
        "inverted": np.zeros(3),
    }
    assert Submission.of_graphs(**arrays).faults.tolist() == [0]
    with pytest.raises(CircuitError, match=words):
        Submission.of_graphs(**{**arrays, **change})
