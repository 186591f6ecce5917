"""The datasets of converters: splits, labels, features, and the reader of the reference project's files."""

import json

import numpy as np
import pytest

import graphbench
from graphbench.core.errors import CardError, StoreError
from graphbench.data.build.generation import draw_samples
from graphbench.domains.circuits import read_simulated_circuits, sample_to_devices, steady_state
from graphbench.domains.circuits.converter_generator import ConverterParameters
from graphbench.domains.circuits.generators import GENERATORS
from graphbench.domains.circuits.graphs import circuit_of, operation_of
from graphbench.domains.circuits.labellers import LABELLERS
from graphbench.domains.circuits.topology import topology_number

LABELS = ("ratio", "efficiency", "settling", "status", "singular")


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    return graphbench.Loader("circuits/converters_5", root=tmp_path_factory.mktemp("root"), limit=150, workers=1).load()


def test_a_sample_has_the_steady_state_of_its_devices(splits):
    for split in (splits.train, splits.test, splits.ood["k7"], splits.ood["load"]):
        for data in (split[i] for i in range(20)):
            devices = sample_to_devices(data)
            duty, load = (float(f"{float(value):.6g}") for value in data.operation.flatten()[[0, 2]])
            found = steady_state(devices, duty=duty, load=load)
            assert float(data.ratio) == pytest.approx(found.ratio, rel=1e-5, abs=1e-8)
            assert float(data.efficiency) == pytest.approx(found.efficiency, rel=1e-5, abs=1e-8)
            assert float(data.duty) == pytest.approx(duty)
            assert data.num_edges == 2 * (2 * len(devices) + 5)


def test_a_batch_has_two_outputs_and_the_inputs_of_the_card(splits):
    batch = next(iter(splits.train.batches(32)))
    assert batch.ratio.shape == (32,) and batch.efficiency.shape == (32,)
    assert batch.kind.shape == batch.conducting.shape == (batch.num_nodes,) and batch.elements.shape == (32, 8)
    assert set(batch.duty.unique().tolist()) <= {float(np.float32(d)) for d in (0.1, 0.3, 0.5, 0.7, 0.9)}


def test_no_two_splits_share_a_topology_and_no_two_samples_are_the_same(splits):
    seen = {}
    for name, split in (("train", splits.train), ("val", splits.val), ("test", splits.test)):
        seen[name] = [(tuple(sample_to_devices(split[i])), float(split[i].duty)) for i in range(150)]
        assert len(set(seen[name])) == 150
    topologies = {name: {devices for devices, _ in own} for name, own in seen.items()}
    assert not topologies["train"] & topologies["val"] and not topologies["train"] & topologies["test"]
    assert not topologies["val"] & topologies["test"]


def test_the_evaluator_scores_both_outputs_by_equation_2(splits):
    evaluator = graphbench.Evaluator("circuits/converters_5")
    batch = next(iter(splits.test.batches(150)))
    truth = {name: batch[name].numpy() for name in ("ratio", "efficiency")}
    guess = {name: 0.5 * values for name, values in truth.items()}
    score = evaluator.evaluate(truth, guess)
    expected = {
        name: float(np.sum((values / 2) ** 2) / np.sum((values - values.mean()) ** 2)) for name, values in truth.items()
    }
    assert score["rse_ratio"] == pytest.approx(expected["ratio"], rel=1e-5)
    assert score["rse_efficiency"] == pytest.approx(expected["efficiency"], rel=1e-5)
    assert score["rse"] == pytest.approx(np.mean(list(expected.values())), rel=1e-5)


@pytest.fixture(scope="module")
def drawn():
    card = graphbench.card("circuits/converters_5")
    return card, draw_samples(card, "test", range(40))


def test_checks_pass_and_find_what_is_wrong(drawn):
    card, samples = drawn
    generator, labeller = GENERATORS["converters"], LABELLERS["steady_state"]
    parameters = generator.parse(card, "test")
    assert generator.check(parameters, samples) == []
    assert not generator.hold_outs(parameters, samples)["topologies"][1]
    other = parameters.model_copy(update={"devices": 6, "duties": (0.25,), "topologies": (0.0, 0.1)})
    assert len(generator.check(other, samples)) == 80
    assert len(generator.hold_outs(other, samples)["topologies"][1]) == 40
    converting = np.flatnonzero(np.abs(samples.values["ratio"]) > 0.1)
    for i in converting[:5]:
        one = samples.part(card.stored_schema, i, i + 1)
        values = {name: one.values[name][0] for name in LABELS}
        assert labeller.check(one, values) == []
        assert "the ratio is" in labeller.check(one, {**values, "ratio": values["ratio"] * 1.01})[0]
        assert "the efficiency is" in labeller.check(one, {**values, "efficiency": values["efficiency"] + 0.01})[0]
        assert "status" in labeller.check(one, {**values, "status": 5})[0]


def test_topologies_of_a_sample_have_the_numbers_of_its_split(drawn):
    _, samples = drawn
    for i in range(40):
        circuit = circuit_of(samples, i)
        assert 0.8 <= topology_number(circuit.types, circuit.nets) < 1.0
        assert operation_of(samples, i).vin == 100.0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"devices": 1, "duties": [0.5]}, "devices"),
        ({"devices": 5, "duties": []}, "duties"),
        ({"devices": 5, "duties": [1.0]}, "duties"),
        ({"devices": 5, "duties": [0.5], "topologies": [0.5, 0.5]}, "is empty"),
        ({"devices": 5, "duties": [0.5], "load": 3}, "load"),
    ],
)
def test_wrong_parameters_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        ConverterParameters.model_validate(values)


def test_cards_of_all_sizes_are_whole():
    counts = {"5": (51_100, 7_300, 14_600), "7": (9_800, 1_400, 2_800), "10": (4_200, 600, 1_200)}
    for size, expected in counts.items():
        card = graphbench.card(f"circuits/converters_{size}")
        assert tuple(card.splits[split].count for split in ("train", "val", "test")) == expected
        for split in card.all_splits:
            devices = GENERATORS["converters"].parse(card, split).devices
            assert devices == int(split[1:]) if split.startswith("k") else devices == int(size)
    with pytest.raises(CardError):
        graphbench.card("circuits/converters_5").split("k9")


def test_files_of_the_reference_project_are_read(tmp_path):
    circuit = {
        "netlist": [["Sa0", "N-L0-Sa0-Sb0", "IN"], ["Sb0", "0", "N-L0-Sa0-Sb0"], ["L0", "OUT", "N-L0-Sa0-Sb0"]],
        "duty_cycle": 0.5, "rout": 50, "cout": 10, "freq": 1, "vout": 49.0, "eff": 0.97, "valid": 0,
    }  # fmt: skip
    path = tmp_path / "circuits.json"
    path.write_text(json.dumps({"key": circuit}))
    (found,) = read_simulated_circuits(path)
    assert found.devices[2] == ("L", "VOUT", "N-L0-Sa0-Sb0") and found.output_capacitance == pytest.approx(1e-5)
    state = steady_state(found.devices, duty=found.duty, load=found.load, output_capacitance=found.output_capacitance)
    assert state.ratio == pytest.approx(found.ratio, abs=0.005)
    path.write_text(json.dumps({"key": {**circuit, "netlist": [["R0", "IN", "OUT"]]}}))
    with pytest.raises(StoreError, match="circuit 0 is malformed: ValueError device 'R0'"):
        read_simulated_circuits(path)
    path.write_text("[")
    with pytest.raises(StoreError, match="cannot be read as JSON"):
        read_simulated_circuits(path)
