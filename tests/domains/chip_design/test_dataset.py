"""The dataset chip_design/aig: labels of ABC, in batches and alone, and the representation of reference circuits."""

import base64

import numpy as np
import pytest

import graphbench
from graphbench.core.errors import CircuitError, MissingDependency, SolverError
from graphbench.data.build.generation import draw_samples
from graphbench.data.build.labelling import label_samples
from graphbench.data.components.domain import find
from graphbench.domains.chip_design import Aig, equivalent, synthesis, synthesise
from graphbench.domains.chip_design.graphs import circuits_of, decoded, encoded
from graphbench.domains.chip_design.truth_tables import from_text

LABELLER = find("labeller", "chip_design.reference")


def installed():
    try:
        return synthesis.find_abc().tool == "pyosys 0.70"
    except MissingDependency:
        return False


needs_abc = pytest.mark.skipif(not installed(), reason="pyosys 0.70 is not installed")


def card():
    return graphbench.card("chip_design/aig")


def graphs(count, split="train"):
    return draw_samples(card().graphs, split, np.arange(count))


def test_splits_have_the_sizes_of_the_paper_and_shapes():
    own = card()
    assert [own.split(name).count for name in ("train", "val", "test")] == [960_000, 120_000, 120_000]
    shapes = {
        "train": {(6, 1), (6, 2), (7, 1), (7, 2), (8, 1), (8, 2)},
        "n5": {(5, 1), (5, 2)},
        "n9": {(9, 1), (9, 2)},
        "m4": {(6, 4), (7, 4), (8, 4)},
    }
    for split, expected in shapes.items():
        tables = [from_text(text) for text in graphs(12, split).values["table"].strings()]
        assert {(table.shape[1].bit_length() - 1, len(table)) for table in tables} == expected
    assert graphs(60, "arithmetic").values["family"].min() > 0 and not graphs(12).values["family"].any()
    ones = np.mean([from_text(text).mean() for text in graphs(60, "sparse").values["table"].strings()])
    assert 0.05 < ones < 0.09


@needs_abc
def test_labels_are_the_reference_circuits():
    drawn = graphs(7)
    (labeller,) = card().labellers
    labels = label_samples(card(), labeller, "train", np.arange(7), drawn)
    assert not labels.values["reference_failed"].any() and "failed" not in labels.facts
    tables = [from_text(text) for text in drawn.values["table"].strings()]
    circuits = [decoded(text) for text in labels.values["reference"].strings()]
    for table, aig, again in zip(tables, circuits, synthesise(tables), strict=True):
        assert equivalent(aig, table) and aig.to_aiger() == again.to_aiger()
    assert labels.values["reference_ands"].tolist() == [aig.num_ands for aig in circuits]
    assert labels.values["reference_depth"].tolist() == [aig.depth for aig in circuits]
    chosen = np.array([5, 2])
    some = label_samples(card(), labeller, "train", chosen, drawn, chosen)
    assert some.values["reference"].strings() == [labels.values["reference"].strings()[i] for i in chosen]


@needs_abc
def test_a_dataset_on_disk_and_its_view(tmp_path):
    splits = graphbench.Loader("chip_design/aig", root=tmp_path, limit=6).load()
    representation = graphbench.Loader("chip_design/aig:ands@reference", root=tmp_path, limit=4).load()
    for i in range(4):
        plain, data = splits.test[i], representation.test[i]
        aig = decoded(plain.reference)
        table = from_text(plain.table)
        assert equivalent(aig, table) and data.table == plain.table and data.reference == plain.reference
        assert plain.y == plain.reference and float(plain.reference_ands) == aig.num_ands == int((data.gate == 1).sum())
        assert int((plain.gate == 1).sum()) == circuits_of(graphs(4, "test")).num_ands[i]
        for name in ("edge_index", "gate", "inverted"):
            assert data[name].tolist() == aig.to_data()[name].tolist()
    batch = next(iter(splits.test.batches(4)))
    assert batch.reference == [splits.test[i].reference for i in range(4)]


@needs_abc
def test_a_table_without_a_circuit_does_not_cost_others_theirs(monkeypatch):
    real = synthesis.run_together

    def fail_on_second(executable, commands, jobs, guards):
        return [
            circuit if i != 1 else "ABC crashed" for i, circuit in enumerate(real(executable, commands, jobs, guards))
        ]

    monkeypatch.setattr(synthesis, "run_together", fail_on_second)
    (labeller,) = card().labellers
    labels = label_samples(card(), labeller, "n5", np.arange(4), graphs(4, "n5"))
    assert labels.values["reference_failed"].tolist() == [0, 1, 0, 0]
    assert labels.facts["failed"] == {"1": "RuntimeError: ABC crashed"}
    assert labels.values["reference"].strings()[1] == "" and labels.values["reference_ands"].tolist()[1] == -1


def test_another_abc_is_refused(monkeypatch):
    monkeypatch.setattr(synthesis, "_find_abc", lambda named: synthesis.Abc("/bin/abc", "abc 0123456789ab"))
    (labeller,) = card().labellers
    with pytest.raises(SolverError, match=r"pyosys 0.70.*abc 0123456789ab.*pyosys==0.70.*tool: abc 0123456789ab"):
        label_samples(card(), labeller, "n5", np.arange(2), graphs(2, "n5"))


def test_the_check_of_labels():
    drawn = graphs(3, "n5")
    own = circuits_of(drawn)
    for i, aig in enumerate(own):
        graph = drawn.part(card().graphs, i, i + 1)
        label = {"reference": encoded(aig), "reference_ands": aig.num_ands, "reference_depth": aig.depth}
        assert LABELLER.check(graph, label) == []
        assert "ANDs and" in LABELLER.check(graph, {**label, "reference_ands": aig.num_ands + 1})[0]
        assert "ANDs and" in LABELLER.check(graph, {**label, "reference_depth": aig.depth - 1})[0]
        wrong = Aig(aig.num_inputs, aig.fanins, aig.outputs ^ 1)
        assert "does not compute" in LABELLER.check(graph, {**label, "reference": encoded(wrong)})[0]
        other = encoded(own[(i + 1) % 3])
        assert "does not compute" in LABELLER.check(graph, {**label, "reference": other})[0]
        assert "base 64" in LABELLER.check(graph, {**label, "reference": "?"})[0]
        cut = base64.b64encode(aig.to_aiger()[:-1]).decode()
        assert "cut short" in LABELLER.check(graph, {**label, "reference": cut})[0]


def test_the_view_needs_labels():
    representation = find("representation", "chip_design.reference")
    with pytest.raises(CircuitError, match="labels"):
        representation.derive(graphs(2, "n5"))
