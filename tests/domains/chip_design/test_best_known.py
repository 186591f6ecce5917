"""The smallest circuits known: that they compute their functions, and what the score relative to them is."""

import numpy as np
import pytest

import graphbench
from graphbench.core.errors import CircuitError
from graphbench.data.build.generation import draw_samples
from graphbench.domains.chip_design import verifiers
from graphbench.domains.chip_design.best_known import BestKnown, best_known
from graphbench.domains.chip_design.graphs import circuits_of
from graphbench.domains.chip_design.truth_tables import from_text


@pytest.fixture
def drawn():
    samples = draw_samples(graphbench.card("chip_design/aig").graphs, "test", np.arange(4))
    return samples.values["table"].strings(), list(circuits_of(samples))


def longer(circuit):
    """Return a circuit with an AND more, of its first output with itself."""
    literal = circuit.outputs[0]
    fanins = np.concatenate([circuit.fanins, [[literal, literal]]])
    return type(circuit)(circuit.num_inputs, fanins, [2 * (circuit.num_inputs + len(fanins)), *circuit.outputs[1:]])


def test_every_stored_circuit_computes_its_truth_table():
    stored = best_known().circuits
    assert len(stored) > 1000
    for table, circuit in stored.items():
        assert np.array_equal(circuit.simulate(), from_text(table))
        assert circuit.num_dead == circuit.num_duplicates == 0


@pytest.mark.thorough
def test_the_first_functions_of_the_scored_splits_are_known():
    card = graphbench.card("chip_design/aig")
    for split in ("val", "test", *card.ood):
        samples = draw_samples(card.graphs, split, np.arange(256))
        known = best_known().num_ands(samples.values["table"].strings())
        assert (known <= circuits_of(samples).num_ands).all(), split


@pytest.mark.thorough
def test_smaller_circuits_alone_replace_others(drawn, tmp_path):
    tables, circuits = drawn
    best = BestKnown({}).improved(tables[:3], [longer(circuit) for circuit in circuits[:3]])
    best = best.improved(tables[:2], circuits[:2]).improved(tables[:1], [longer(circuits[0])])
    ands = [circuit.num_ands for circuit in circuits]
    expected = [ands[0], ands[1], ands[2] + 1, np.nan]
    np.testing.assert_array_equal(best.num_ands(tables), expected)
    best.write(tmp_path / "best.npz")
    np.testing.assert_array_equal(BestKnown.read(tmp_path / "best.npz").num_ands(tables), expected)
    with pytest.raises(CircuitError, match="circuit 1 does not compute the truth table"):
        best.improved(tables[:2], [circuits[0], circuits[2]])


def test_the_score_counts_functions_with_a_known_circuit(drawn, monkeypatch):
    tables, circuits = drawn
    known = BestKnown(dict(zip(tables[:3], circuits[:3], strict=True)))
    monkeypatch.setattr(verifiers, "best_known", lambda: known)
    fields = {"table": tables, "reference_ands": np.array([circuit.num_ands for circuit in circuits])}
    answers = [circuits[0], longer(circuits[1]), None, circuits[3]]
    score = graphbench.Evaluator("chip_design/aig").evaluate(fields, answers)
    ands = circuits[1].num_ands
    assert score["of_best"] == pytest.approx(100 * (1 + ands / (ands + 1) + 0) / 3)
    monkeypatch.setattr(verifiers, "best_known", lambda: BestKnown({}))
    assert "of_best" in graphbench.Evaluator("chip_design/aig").evaluate(fields, answers).undefined
