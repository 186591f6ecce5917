"""Topologies against networkx: canonical form, rules of valid converters, random draws, and graphs and back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.errors import ArgumentError
from graphbench.core.rng import seed
from graphbench.domains.circuits.checks import broken_rules, same_circuit
from graphbench.domains.circuits.devices import TYPES, Circuit, net_names, read_devices
from graphbench.domains.circuits.drawing import draw_topologies, draw_topology
from graphbench.domains.circuits.graphs import KINDS, circuit_of, devices_to_sample, sample_to_devices
from graphbench.domains.circuits.topology import (
    FORBIDDEN,
    REDUNDANT,
    UNCONNECTED,
    VALID,
    canonical_form,
    topology_number,
    verdict,
)

NETS = ("GND", "VIN", "VOUT", "a", "b", "c")


@st.composite
def circuits(draw, most=6):
    count = draw(st.integers(1, most))
    devices = []
    for _ in range(count):
        first, second = draw(st.permutations(NETS))[:2]
        devices.append((draw(st.sampled_from(TYPES)), first, second))
    return devices


def drawn(count, devices=5, low=0.0, high=1.0, key=1):
    indices = np.arange(count)
    types, nets, num_nets, _ = draw_topologies(np.uint64(key), indices, np.zeros_like(indices), devices, low, high)
    return [Circuit(t, n, net_names(int(m))) for t, n, m in zip(types, nets, num_nets, strict=True)]


def canonical(devices):
    circuit = read_devices(devices)
    types, nets = canonical_form(circuit.types, circuit.nets, circuit.num_nets)
    return Circuit(types, nets, net_names(circuit.num_nets))


@settings(max_examples=150, deadline=None)
@given(circuits(), st.data())
def test_the_canonical_form_is_the_same_for_renamed_reordered_and_turned_devices(devices, data):
    fresh = dict(zip(NETS[3:], data.draw(st.permutations(["p", "q", "r"])), strict=True))
    turned = data.draw(st.lists(st.booleans(), min_size=len(devices), max_size=len(devices)))
    other = [
        (kind, fresh.get(b if turn else a, b if turn else a), fresh.get(a if turn else b, a if turn else b))
        for (kind, a, b), turn in zip(devices, turned, strict=True)
    ]
    other = data.draw(st.permutations(other))
    assert canonical(devices).devices == canonical(other).devices


@settings(max_examples=150, deadline=None)
@given(circuits(4), circuits(4))
def test_equal_canonical_forms_are_isomorphic_circuits_and_only_those(first, second):
    one, two = canonical(first), canonical(second)
    assert same_circuit(one, read_devices(first))
    assert (one.devices == two.devices) == same_circuit(read_devices(first), read_devices(second))


def test_symmetric_branches_have_one_canonical_form():
    rng = np.random.default_rng(0)
    branches = [("C", "VIN", f"m{i}") for i in range(5)] + [("L", f"m{i}", "VOUT") for i in range(5)]
    forms = {tuple(canonical([branches[i] for i in rng.permutation(10)]).devices) for _ in range(20)}
    assert len(forms) == 1


@settings(max_examples=300, deadline=None)
@given(circuits())
def test_the_verdict_agrees_with_the_enumeration_of_paths_by_networkx(devices):
    circuit = read_devices(devices)
    assert (verdict(circuit.types, circuit.nets, circuit.num_nets) == VALID) == (not broken_rules(circuit))


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ([("Sa", "VIN", "x"), ("Sb", "x", "GND"), ("L", "x", "VOUT")], VALID),
        ([("L", "VIN", "VOUT"), ("C", "VOUT", "GND")], FORBIDDEN),
        ([("Sa", "VIN", "x"), ("Sa", "x", "GND"), ("L", "x", "VOUT")], FORBIDDEN),
        ([("Sa", "VIN", "x"), ("Sa", "x", "y"), ("Sa", "y", "GND"), ("C", "y", "VOUT")], FORBIDDEN),
        ([("Sa", "VIN", "x"), ("Sb", "x", "GND")], UNCONNECTED),
        ([("Sa", "VIN", "VOUT"), ("C", "VOUT", "GND"), ("L", "VOUT", "x")], REDUNDANT),
        ([("Sa", "VIN", "VOUT"), ("C", "VOUT", "GND"), ("L", "VOUT", "x"), ("C", "x", "VOUT")], REDUNDANT),
    ],
)
def test_the_rules_on_known_circuits(devices, expected):
    circuit = read_devices(devices)
    assert verdict(circuit.types, circuit.nets, circuit.num_nets) == expected


def test_drawn_circuits_are_valid_canonical_and_depend_on_their_index_alone():
    found = drawn(60)
    assert not any(broken_rules(circuit) for circuit in found)
    assert all(canonical(circuit.devices).devices == circuit.devices for circuit in found)
    indices = np.array([31, 7])
    types, nets, _, _ = draw_topologies(np.uint64(1), indices, np.zeros_like(indices), 5, 0.0, 1.0)
    for row, index in enumerate(indices):
        assert (types[row] == found[index].types).all() and (nets[row] == found[index].nets).all()
    assert len({tuple(circuit.devices) for circuit in found}) > 40


def test_ranges_of_topology_numbers_hold_disjoint_topologies():
    low, high = ({tuple(c.devices) for c in drawn(80, 3, *share)} for share in ((0.0, 0.5), (0.5, 1.0)))
    assert low and high and not low & high
    numbers = [topology_number(c.types, c.nets) for c in drawn(400)]
    assert abs(np.mean(numbers) - 0.5) < 0.06


def test_types_are_uniform_and_ports_are_never_joined_before_selection():
    counts = np.zeros(4)
    for index in range(500):
        types, nets, num_nets = draw_topology(seed(np.uint64(5), index, 0, 0), 5)
        counts += np.bincount(types, minlength=4)
        assert num_nets >= 3 and nets.max() < num_nets
    assert np.abs(counts / counts.sum() - 0.25).max() < 0.03


def test_five_devices_give_the_means_of_table_2():
    seen = {}
    for circuit in drawn(30_000):
        seen.setdefault(tuple(circuit.devices), 3 + 5 + circuit.num_nets)
    assert abs(np.mean(list(seen.values())) - 13.0) < 0.3  # grows to 13.0 with the number of different topologies
    sample = devices_to_sample(next(iter(seen)), duty=0.5)
    assert 2 * sample.num_edges[0] == 30


@settings(max_examples=100, deadline=None)
@given(circuits())
def test_devices_survive_the_way_to_a_graph_and_back(devices):
    from types import SimpleNamespace

    sample = devices_to_sample(devices, duty=0.3, load=50)
    back = sample_to_devices(sample)
    assert same_circuit(read_devices(back), read_devices(devices))
    assert canonical(back).devices == canonical(devices).devices
    both = np.concatenate([sample.edges, sample.edges[:, ::-1]]).T
    rng = np.random.default_rng(0)
    order = rng.permutation(int(sample.num_nodes[0]))  # nodes in any order, as after a transform
    kind = np.empty_like(sample.values["kind"])
    kind[order] = sample.values["kind"]
    data = SimpleNamespace(kind=kind, edge_index=order[both])
    assert same_circuit(read_devices(sample_to_devices(data)), read_devices(devices))


def test_features_of_a_graph():
    sample = devices_to_sample([("Sa", "VIN", "x"), ("Sb", "x", "GND"), ("L", "x", "VOUT")], duty=0.3, load=1000)
    words = [KINDS[kind] for kind in sample.values["kind"]]
    assert words == ["GND", "VIN", "VOUT", "Sa", "Sb", "L", *["net"] * 4]
    assert sample.values["conducting"].tolist() == [0, 0, 0, 0.3, 0.7, 0, 0, 0, 0, 0]
    assert sample.values["elements"][0].tolist() == [1, 0, 0, 0, 0, 0, 0, 0]
    assert [(u, v) for u, v in sample.edges.tolist()] == sorted((u, v) for u, v in sample.edges.tolist())
    assert sample.values["link"].tolist() == [1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0]


def test_a_graph_that_is_no_circuit_is_refused():
    from types import SimpleNamespace

    with pytest.raises(ArgumentError, match="no kind"):
        sample_to_devices(SimpleNamespace(edge_index=np.zeros((2, 0))))
    sample = devices_to_sample([("Sa", "VIN", "VOUT"), ("C", "VOUT", "GND")], duty=0.5)
    both = np.concatenate([sample.edges, sample.edges[:, ::-1]])
    with pytest.raises(ArgumentError, match="is joined to 1 nets"):
        sample_to_devices(SimpleNamespace(kind=sample.values["kind"], edge_index=both[(both != 6).all(axis=1)].T))


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ([], "1 to 64 devices, got 0"),
        ([("R", "VIN", "GND")], "device 0 has the type 'R'"),
        ([("L", "VIN")], "give \\(type, net, net\\)"),
        (["L VIN x"], "give \\(type, net, net\\)"),
        ([("L", "VIN", 3)], "give \\(type, net, net\\)"),
        ([("L", "VIN", "VIN")], "on the net 'VIN'"),
    ],
)
def test_malformed_devices_are_refused(devices, message):
    with pytest.raises(ArgumentError, match=message):
        read_devices(devices)


def test_a_circuit_is_read_back_from_drawn_samples():
    circuit = drawn(1)[0]
    sample = devices_to_sample(circuit.devices, duty=0.5)
    assert circuit_of(sample).devices == circuit.devices
