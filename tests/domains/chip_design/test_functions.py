"""Truth tables and their circuits: pure functions, right families, right circuits; against NumPy and plain Python."""

import itertools

import numpy as np
import pytest
from pydantic import ValidationError

from graphbench.core.errors import CircuitError
from graphbench.data.arrays.samples import Samples
from graphbench.domains.chip_design.aig import Aig, Circuits, equivalent
from graphbench.domains.chip_design.functions import FAMILIES, draw_arithmetic
from graphbench.domains.chip_design.generators import GENERATORS, TableParameters, draw_tables
from graphbench.domains.chip_design.graph_kernels import FAULTS, circuits_of_graphs
from graphbench.domains.chip_design.graphs import (
    circuits_as_samples,
    circuits_of,
    decoded,
    encoded,
    tables_of,
    tables_of_texts,
)
from graphbench.domains.chip_design.shannon import circuits_of_tables
from graphbench.domains.chip_design.truth_tables import from_text, to_bits, to_text, to_words

KEY = np.uint64(7)
SHAPES = [[6, 1], [6, 2], [7, 1], [7, 2], [8, 1], [8, 2]]
FUNCTIONS = GENERATORS["functions"]


def drawn(count, **parameters):
    own = TableParameters.model_validate({"shapes": SHAPES, **parameters})
    return own, FUNCTIONS.generate(own, KEY, np.arange(count), np.zeros(count, np.int64))


def bits_of(samples):
    return [from_text(text) for text in samples.values["table"].strings()]


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"ones": [0.0, 0.1]},
        {"ones": [1.0, 1.0]},
        {"families": list(FAMILIES)},
        {"shapes": [[2, 1], [3, 5], [9, 1], [6, 4]]},
    ],
)
def test_every_circuit_computes_its_table(parameters):
    own, samples = drawn(48, **parameters)
    assert FUNCTIONS.check(own, samples) == []
    for bits, aig in zip(bits_of(samples), circuits_of(samples), strict=True):
        assert equivalent(aig, bits)
        assert aig.num_dead == aig.num_duplicates == 0


def test_the_check_finds_wrong_circuits():
    own, samples = drawn(4)
    for name in ("inverted", "gate"):
        for place in (0, 60, -1):
            values = {key: value.copy() if key == name else value for key, value in samples.values.items()}
            values[name][place] ^= 1
            wrong = Samples(samples.num_nodes, samples.num_edges, samples.edges, values)
            assert len(FUNCTIONS.check(own, wrong)) == 1


def test_a_sample_depends_on_its_index_alone():
    for parameters in ({}, {"ones": [0.1, 0.4]}, {"families": list(FAMILIES)}):
        own, samples = drawn(30, **parameters)
        chosen = np.array([29, 3, 3, 17])
        some = FUNCTIONS.generate(own, KEY, chosen, np.zeros(4, np.int64))
        again = FUNCTIONS.generate(own, KEY, chosen, np.ones(4, np.int64))
        texts = samples.values["table"].strings()
        assert some.values["table"].strings() == [texts[i] for i in chosen]
        assert again.values["table"].strings() != [texts[i] for i in chosen]
        assert [len(t) for t in again.values["table"].strings()] == [len(texts[i]) for i in chosen]


def test_shares_and_bits():
    own, samples = drawn(3000)
    bits = bits_of(samples)
    shapes = [(len(b), b.shape[1]) for b in bits]
    assert shapes[:6] == [(m, 1 << n) for n, m in SHAPES] and all(shapes.count(s) == 500 for s in shapes[:6])
    ones = np.concatenate([b.ravel() for b in bits])
    assert abs(ones.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(ones))
    first = np.stack([b[0, :64] for b in bits])  # no column is biased, and neighbours are independent
    assert abs(first.mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(3000)
    assert abs((first[:, 1:] == first[:, :-1]).mean(axis=0) - 0.5).max() < 5 * 0.5 / np.sqrt(3000)
    _, few = drawn(300, ones=[0.05, 0.2])
    shares = np.array([b.mean() for b in bits_of(few)])
    assert abs(shares.mean() - 0.125) < 0.02 and shares.min() < 0.09 and shares.max() > 0.16
    statistics = FUNCTIONS.statistics(own, few)
    assert np.allclose(statistics["ones"], shares)
    assert statistics["inputs"].tolist() == [n for n, _ in SHAPES] * 50


def of_family(family, n, count=60, m=2):
    numbers = np.array([FAMILIES.index(family)])
    sizes = np.full(count, n), np.full(count, m)
    words, drawn_family = draw_arithmetic(KEY, np.arange(count), np.zeros(count, np.int64), *sizes, numbers)
    assert (drawn_family == numbers[0]).all()
    return to_bits(words.reshape(count * m, -1), n).reshape(count, m, 1 << n)


def natural_outputs(family, n):
    """Return the outputs of a family as bool arrays over all assignments, written with Python's numbers."""
    half = n // 2
    columns = []
    for y in range(1 << n):
        bits = [y >> i & 1 for i in range(n)]
        a = sum(b << i for i, b in enumerate(bits[:half]))
        b = sum(b << i for i, b in enumerate(bits[half : 2 * half]))
        carry = bits[-1] if n % 2 else 0
        if family == "adder":
            columns.append([(a + b + carry) >> k & 1 for k in range(half + 1)])
        elif family == "comparator":
            columns.append([a < b + carry, a == b + carry, a > b + carry])
        elif family == "multiplexer":
            select = {4: 1, 5: 1, 6: 2, 7: 2, 8: 2}[n]
            data = bits[select:]
            chosen = sum(b << i for i, b in enumerate(bits[:select]))
            columns.append([data[(chosen + k) % len(data)] for k in range(len(data))])
        else:
            columns.append([y * y >> k & 1 for k in range(2, 2 * n)])
    return np.array(columns, bool).T


@pytest.mark.parametrize("family", ["adder", "comparator", "multiplexer", "squarer"])
@pytest.mark.parametrize("n", [4, 5])
def test_arithmetic_functions_are_of_their_family(family, n):
    """Undo every permutation and inversion of the inputs: one of them gives two natural outputs, maybe inverted."""
    natural = {}
    for k, row in enumerate(natural_outputs(family, n)):
        natural.setdefault(row.tobytes(), set()).add(k)
        natural.setdefault((~row).tobytes(), set()).add(k)
    x = np.arange(1 << n)
    places = []
    for order in itertools.permutations(range(n)):
        moved = sum((x >> i & 1) << order[i] for i in range(n))
        places += [moved ^ flips for flips in range(1 << n)]
    index = np.stack(places)
    for functions in of_family(family, n):
        rows = functions[:, index]  # [2, transforms, columns]
        pairs = zip(rows[0], rows[1], strict=True)
        assert any(left.tobytes() in natural and right.tobytes() in natural for left, right in pairs)


@pytest.mark.parametrize("n", [6, 7])
def test_parities_and_majorities(n):
    x = np.arange(1 << n)
    signs = np.array([[1 - 2 * ((x & s).astype(int)[i].bit_count() & 1) for i in range(1 << n)] for s in range(1 << n)])
    for function in of_family("parity", n).reshape(-1, 1 << n):
        spectrum = signs @ (1 - 2 * function.astype(int))  # Walsh-Hadamard: of a parity one coefficient is not 0
        (found,) = np.flatnonzero(spectrum)
        assert int(found).bit_count() >= 3
    for function in of_family("majority", n).reshape(-1, 1 << n):
        values = 1 - 2 * function.astype(int)
        slopes = [int((values * signs[1 << i]).sum()) for i in range(n)]
        used = [i for i in range(n) if slopes[i]]
        assert len(used) % 2 == 1 and len(used) >= 3 and len({abs(s) for s in slopes if s}) == 1
        votes = sum(np.sign(slopes[i]) * signs[1 << i] for i in used)
        assert np.array_equal(np.sign(votes), values)  # no output inversion: a majority is self-dual


def test_cascades_differ_and_use_their_inputs():
    functions = of_family("cascade", 6, count=200, m=1)[:, 0]
    assert len({f.tobytes() for f in functions}) > 150
    x = np.arange(64)
    used = np.array([[(f != f[x ^ (1 << i)]).any() for i in range(6)] for f in functions])
    assert used.any(axis=0).all() and (used.sum(axis=1) >= 4).mean() > 0.5


def test_circuits_of_small_functions_by_hand():
    tables = {
        "8": (2, 1),  # and
        "e": (2, 1),  # or
        "6": (2, 3),  # exclusive or
        "0": (2, 0),
        "f": (2, 0),
        "c": (2, 0),  # input 1
        "3": (2, 0),  # its inversion
        "6 9": (2, 3),  # an output and its inversion
        "e8": (3, 5),  # majority: x2 ? x0 or x1 : x0 and x1
        "ca": (3, 3),  # multiplexer
        "96": (3, 6),  # parity
    }
    for text, (n, ands) in tables.items():
        inputs, outputs, words = tables_of_texts([text])
        assert inputs.tolist() == [n]
        aig = circuits_of_tables(inputs, outputs, words)[0]
        assert equivalent(aig, from_text(text)), text
        assert aig.num_ands == ands, text


def test_functions_without_inputs_and_with_one():
    words = np.array([0, 1, 0, 1, 2, 3], np.uint64)
    inputs = np.array([0, 0, 1, 1, 1, 1])
    run = circuits_of_tables(inputs, np.ones(6, np.int64), words)
    assert [int(w) for w in run.simulate()] == words.tolist() and run.outputs.tolist() == [0, 1, 0, 3, 2, 1]


def test_tables_of_texts():
    rng = np.random.default_rng(0)
    shapes = [(n, m) for n in range(2, 10) for m in (1, 2, 4)]
    tables = [rng.random((m, 1 << n)) < 0.5 for n, m in shapes]
    inputs, outputs, words = tables_of_texts([to_text(table) for table in tables])
    assert list(zip(inputs.tolist(), outputs.tolist(), strict=True)) == shapes
    assert np.array_equal(words, np.concatenate([to_words(table).ravel() for table in tables]))
    for wrong in ("", "g", "80 8", "8  8", "8 ", " 8", "888", "8A", "8\n8"):
        with pytest.raises(CircuitError, match="text 1"):
            tables_of_texts(["8", wrong])


def random_aig(n, ands, m, seed):
    rng = np.random.default_rng(seed)
    fanins = [[int(rng.integers(0, 2 * (1 + n + k))) for _ in range(2)] for k in range(ands)]
    return Aig(n, np.array(fanins, np.int64).reshape(-1, 2), rng.integers(0, 2 * (1 + n + ands), m))


def test_graphs_hold_circuits_in_any_order_of_nodes_and_arcs():
    rng = np.random.default_rng(1)
    aigs = [random_aig(n, ands, m, n + ands) for n, ands, m in itertools.product((1, 4), (0, 3, 30), (1, 3))]
    samples = circuits_as_samples(Circuits.of(aigs))
    assert all(np.array_equal(a.simulate(), b.simulate()) for a, b in zip(aigs, circuits_of(samples), strict=True))
    assert [a.num_ands for a in aigs] == circuits_of(samples).num_ands.tolist()
    for i, aig in enumerate(aigs):
        nodes, arcs = int(samples.num_nodes[i]), int(samples.num_edges[i])
        gates = samples.values["gate"][samples.node_ptr[i] :][:nodes]
        edges = samples.edges[samples.edge_ptr[i] :][:arcs]
        inverted = samples.values["inverted"][samples.edge_ptr[i] :][:arcs]
        new = np.empty(nodes, int)
        ports = np.flatnonzero((gates == 0) | (gates == 2))  # inputs and outputs keep their order
        places = rng.permutation(nodes)
        new[ports] = np.sort(places[: len(ports)])
        new[np.setdiff1d(np.arange(nodes), ports)] = places[len(ports) :]
        mixed, order = np.empty_like(gates), rng.permutation(arcs)
        mixed[new] = gates
        values = {"gate": mixed, "inverted": inverted[order]}
        (found,) = circuits_of(Samples(np.array([nodes]), np.array([arcs]), new[edges][order], values))
        assert np.array_equal(found.simulate(), aig.simulate()) and found.num_ands == aig.num_ands


FAULTY = {
    "neither input": ([0, 7, 2], [[0, 2]], [0]),
    "names a node": ([0, 2], [[5, 1]], [0]),
    "inversion bit": ([0, 2], [[0, 1]], [2]),
    "an input or a constant is driven": ([0, 0, 2], [[0, 1], [0, 2]], [0, 0]),
    "an output drives": ([0, 2, 2], [[0, 1], [1, 2]], [0, 0]),
    "two fan-ins": ([0, 1, 2], [[0, 1], [1, 2]], [0, 0]),
    "one driver": ([0, 2, 2], [[0, 1]], [0]),
    "loop": ([0, 1, 1, 2], [[0, 1], [2, 1], [0, 2], [1, 2], [1, 3]], [0] * 5),
}


@pytest.mark.parametrize("words", FAULTY)
def test_faults_of_graphs(words):
    gates, edges, inverted = (np.array(part) for part in FAULTY[words])
    good = circuits_as_samples(Circuits.of([random_aig(3, 5, 1, 0)]))
    run = (
        np.concatenate([good.node_ptr, good.num_nodes + len(gates), good.num_nodes * 2 + len(gates)]),
        np.concatenate([good.edge_ptr, good.num_edges + len(edges), good.num_edges * 2 + len(edges)]),
        np.concatenate([good.edges, edges, good.edges]),
        np.concatenate([good.values["gate"], gates, good.values["gate"]]),
        np.concatenate([good.values["inverted"], inverted, good.values["inverted"]]),
    )
    fault, inputs, and_ptr, _, output_ptr, _ = circuits_of_graphs(*run)
    assert [bool(f) for f in fault] == [False, True, False] and words in FAULTS[fault[1]]
    assert inputs.tolist() == [3, 0, 3] and np.diff(and_ptr).tolist() == [5, 0, 5]
    assert np.diff(output_ptr).tolist() == [1, 0, 1]
    with pytest.raises(CircuitError, match=f"graph 0 is no circuit.*{words}"):
        circuits_of(
            Samples(np.array([len(gates)]), np.array([len(edges)]), edges, {"gate": gates, "inverted": inverted})
        )


def test_circuits_as_text():
    aig = random_aig(5, 30, 2, 1)
    again = decoded(encoded(aig))
    assert np.array_equal(again.simulate(), aig.simulate()) and again.num_ands == aig.num_ands
    for wrong in ("", "abc", encoded(aig)[:-8], "\u0663"):
        with pytest.raises(CircuitError):
            decoded(wrong)


def test_a_circuit_as_pyg_graph():
    pytest.importorskip("torch_geometric")
    aig = Aig(2, np.array([[3, 4]]), np.array([7, 1]))
    data = aig.to_data()
    assert data.gate.tolist() == [0, 0, 1, 2, 2, 3] and data.num_nodes == 6
    assert data.edge_index.tolist() == [[0, 1, 2, 5], [2, 2, 3, 4]]
    assert data.inverted.tolist() == [1, 0, 1, 1]
    assert data.x.argmax(dim=1).tolist() == data.gate.tolist() and data.edge_attr.flatten().tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"shapes": []}, "shapes"),
        ({"shapes": [[1, 1]]}, "shapes"),
        ({"shapes": [[13, 1]]}, "shapes"),
        ({"shapes": [[6, 0]]}, "shapes"),
        ({"ones": [0.5, 0.2]}, "empty"),
        ({"ones": [0.5, 1.2]}, "ones"),
        ({"families": ["divider"]}, "no family 'divider'"),
        ({"families": ["adder"], "ones": [0, 1]}, "both given"),
        ({"families": ["adder"], "shapes": [[2, 1]]}, "3 inputs"),
        ({"inputs": 6}, "inputs"),
    ],
)
def test_wrong_parameters_are_refused(parameters, words):
    with pytest.raises(ValidationError, match=words):
        TableParameters.model_validate({"shapes": SHAPES, **parameters})


def test_tables_of_samples_are_those_drawn():
    own = TableParameters.model_validate({"shapes": SHAPES})
    index = np.arange(12)
    inputs, outputs, words, families = draw_tables(own, KEY, index, 0 * index)
    found = tables_of(FUNCTIONS.generate(own, KEY, index, 0 * index))
    assert all(np.array_equal(a, b) for a, b in zip(found, (inputs, outputs, words), strict=True))
    assert not families.any()
