"""The verifier of circuits on the dataset: forms of answers, parts, reference programs."""

import base64

import numpy as np
import pytest
from torch_geometric.data import Batch

import graphbench
from graphbench.core.errors import CircuitError, MissingDependency
from graphbench.data.build.generation import draw_samples
from graphbench.data.components.domain import find
from graphbench.domains.chip_design import synthesis
from graphbench.domains.chip_design.graphs import circuits_of, decoded
from graphbench.domains.chip_design.truth_tables import from_text
from graphbench.domains.chip_design.verifiers import PROGRAMS, circuits_by
from graphbench.tasks.registry import task_of


def card():
    return graphbench.card("chip_design/aig")


def drawn(count):
    samples = draw_samples(card().graphs, "test", np.arange(count))
    circuits = circuits_of(samples)
    fields = {"table": samples.values["table"].strings(), "reference_ands": circuits.num_ands + np.arange(count) % 5}
    return samples, circuits, fields


def test_the_dataset_asks_for_circuits_first():
    own = card()
    assert own.address == "chip_design/aig:generate" and own.task.type == "generate"
    assert [f.name for f in own.outputs] == ["reference"] and own.metrics.primary == "quality"


def test_circuits_of_every_form_score_the_same():
    _, circuits, fields = drawn(12)
    evaluator = graphbench.Evaluator("chip_design/aig")
    ratios = [(a + i % 5) / a for i, a in enumerate(circuits.num_ands.tolist())]
    graphs = [circuit.to_data() for circuit in circuits]
    one_hot = [graph.clone() for graph in graphs]
    for graph in one_hot:
        del graph.gate, graph.inverted
    forms = [
        circuits,
        list(circuits),
        graphs,
        one_hot,
        Batch.from_data_list(graphs),
        [circuit.to_aiger() for circuit in circuits],
        [circuit.to_aiger(ascii=True) for circuit in circuits],
        [circuit.to_aiger(ascii=True).decode() for circuit in circuits],
        [base64.b64encode(circuit.to_aiger()).decode() for circuit in circuits],  # as labels have it
        find("verifier", "chip_design.circuits").arrays(circuits),
    ]
    for answers in forms:
        score = evaluator.evaluate(fields, answers)
        assert score.primary == pytest.approx(100 * np.mean(ratios)) and score["correct"] == 1 and not score.failures
    evaluator.update(fields, circuits)
    parts = evaluator.groups()
    assert list(parts) == ["n6m1", "n6m2", "n7m1", "n7m2", "n8m1", "n8m2"]
    for place, part in enumerate(parts.values()):  # shapes follow each other
        assert part.primary == pytest.approx(50 * (ratios[place] + ratios[place + 6])) and part.graphs == 2


def test_wrong_circuits_are_counted(caplog):
    _, circuits, fields = drawn(6)
    answers = [circuits[0], circuits[0], circuits[2].to_aiger()[:-2], None, circuits[4], 3]
    score = graphbench.Evaluator("chip_design/aig").evaluate(fields, answers)
    assert score["valid"] == 2 / 6 and score["mean_ands"] == pytest.approx(circuits.num_ands[[0, 4]].mean())
    assert score.failures == {
        "the file or graph cannot be read": 2,
        "the number of outputs differs from the truth table": 1,
        "there is no circuit": 1,
    }
    assert "answer 2 cannot be read and is worth 0" in caplog.text and "1 more" in caplog.text
    nothing = graphbench.Evaluator("chip_design/aig").evaluate(fields, [None] * 6)
    assert nothing.primary == 0 and "mean_ands" in nothing.undefined
    with pytest.raises(CircuitError, match="no truth table"):
        graphbench.Evaluator("chip_design/aig").evaluate({**fields, "table": ["xyz"] * 6}, [None] * 6)


def test_reference_programs_and_parts():
    try:
        if synthesis.find_abc().tool != "pyosys 0.70":
            pytest.skip("pyosys 0.70 is not installed")
    except MissingDependency:
        pytest.skip("ABC is not installed")
    samples = draw_samples(card(), "test", np.arange(6))
    task = task_of(card())
    found, floors = task.solvers(samples), task.floors(samples, samples)
    assert tuple(found) == PROGRAMS and found["reference"]["quality"] == 100
    assert all(scores["correct"] == 1 for scores in (*found.values(), *floors.values()))
    assert found["shannon_deepsyn"]["mean_ands"] <= floors["shannon"]["mean_ands"]
    texts, references = (samples.values[name].strings() for name in ("table", "reference"))
    counts = [len(circuit.fanins) for circuit in circuits_by("resyn", texts, references)]
    expected = np.mean([decoded(text).num_ands / count for text, count in zip(references, counts, strict=True)])
    assert found["resyn"]["quality"] == pytest.approx(100 * expected)
    for text, circuit in zip(texts, circuits_by("shannon_reference", texts, references), strict=True):
        assert np.array_equal(circuit.simulate(), from_text(text))
    assert {name: rows.tolist() for name, rows in task.parts(samples).items()} == {
        name: [i] for i, name in enumerate(["n6m1", "n6m2", "n7m1", "n7m2", "n8m1", "n8m2"])
    }
