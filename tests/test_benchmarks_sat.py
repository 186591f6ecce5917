"""The peers of the SAT benchmark mean what the package means, and its summaries are right."""

from __future__ import annotations

import hashlib
import importlib
import math
import operator
import random
import sys
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.domains.sat import Cnf, graph
from graphbench.domains.sat.hash_functions import encode_hash

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
peers = importlib.import_module("benchmarks.sat_peers")
hashes = importlib.import_module("benchmarks.sat_peer_hashes")
runs = importlib.import_module("benchmarks.sat_runs")
sat = importlib.import_module("benchmarks.sat")

ABC = b"abc" + b"\x80" + bytes(52) + (24).to_bytes(8, "big")  # the block of the message "abc"
ABC_MD4 = b"abc" + b"\x80" + bytes(52) + (24).to_bytes(8, "little")
DIGESTS = {
    "md4": "a448017aaf21d8525fc10ae87aa6729d",  # RFC 1320
    "sha1": hashlib.sha1(b"abc").hexdigest(),
    "sha256": hashlib.sha256(b"abc").hexdigest(),
}
ROUNDS = {"md4": 48, "sha1": 80, "sha256": 64}


def bits_of(block: bytes) -> list[bool]:
    return np.unpackbits(np.frombuffer(block, np.uint8)).astype(bool).tolist()


def hex_of(bits) -> str:
    return np.packbits(np.array(bits, bool)).tobytes().hex()


@pytest.mark.parametrize("name", DIGESTS)
def test_the_hash_of_a_constant_message_is_a_constant(name):
    message = bits_of(ABC_MD4 if name == "md4" else ABC)
    encoder, digest = hashes.encode(name, ROUNDS[name], message, [True] * 512)
    assert encoder.clauses == [] and {abs(bit) for bit in digest} == {hashes.TRUE}
    assert hex_of([bit > 0 for bit in digest]) == DIGESTS[name]


@pytest.mark.parametrize("name", DIGESTS)
def test_the_clauses_of_a_hash_propagate_a_message_to_its_digest(name):
    solver_module = pytest.importorskip("pysat.solvers")
    message = bits_of(ABC_MD4 if name == "md4" else ABC)
    encoder, digest = hashes.encode(name, ROUNDS[name], [False] * 512, [False] * 512)
    inputs = [i + 1 if value else -(i + 1) for i, value in enumerate(message)]
    with solver_module.Solver("minisat22", bootstrap_with=encoder.clauses) as solver:
        consistent, implied = solver.propagate(assumptions=inputs)
    assert consistent
    known = {*implied, *inputs, hashes.TRUE}
    assert all((bit in known) != (-bit in known) for bit in digest)
    assert hex_of([bit in known for bit in digest]) == DIGESTS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", DIGESTS)
@pytest.mark.parametrize("rounds", [16, 17, 18, 19, 30])
def test_fewer_rounds_give_the_digest_of_the_package(name, rounds):
    rng = random.Random(rounds)
    message = [rng.random() < 0.5 for _ in range(512)]
    known = [rng.random() < 0.7 for _ in range(512)]
    encoder, digest = hashes.encode(name, rounds, message, known)
    ours = encode_hash(name, rounds, np.array(message), np.array(known))
    assert [encoder.value(bit) for bit in digest] == ours.digest_bits.tolist()
    assert Cnf.from_clauses(encoder.clauses, len(encoder.values) - 1).is_satisfied_by(np.array(encoder.values[1:]))
    size = sum(map(len, encoder.clauses))
    assert 0.7 < size / len(ours.formula.literals) < 1.5


def test_formulas_by_community_attachment_have_the_same_statistics():
    parameters = {"variables": (300, 300), "communities": (12, 12), "ratio": (4.0, 4.0), "modularity": (0.5, 0.5)}
    drawn = {
        "peer": [peers.community(random.Random(i), **parameters) for i in range(30)],
        "ours": [
            (300, list(runs.drawn({"family": "community", **parameters}, i).clauses())) for i in range(30)
        ],
    }  # fmt: skip
    found = {}
    for side, formulas in drawn.items():
        clauses = [clause for _, own in formulas for clause in own]
        assert {len(own) for _, own in formulas} == {1200}
        assert all(len({abs(x) for x in c}) == 3 and c == sorted(c, key=abs) for c in clauses)
        inside = mean(len({(abs(x) - 1) // 25 for x in c}) == 1 for c in clauses)
        apart = mean(len({(abs(x) - 1) // 25 for x in c}) == 3 for c in clauses)
        assert inside + apart == pytest.approx(1)
        negative = mean(x < 0 for c in clauses for x in c)
        found[side] = (inside, negative, mean(abs(x) for c in clauses for x in c))
    expected = (0.5 + 1 / 12, 0.5, 150.5)
    for own in found.values():  # 36,000 clauses: five standard errors
        assert abs(own[0] - expected[0]) < 5 * math.sqrt(0.25 / 36_000)
        assert abs(own[1] - expected[1]) < 5 * math.sqrt(0.25 / 108_000)
        assert abs(own[2] - expected[2]) < 5 * 87 / math.sqrt(108_000)


@pytest.mark.slow
def test_random_circuits_have_the_same_sizes():
    parameters = {"inputs": (50, 50), "references": (1, 1), "clause_length": (4, 4), "clause_ratio": (0.5, 0.5)}
    theirs = [peers.fuzz(random.Random(i), **parameters) for i in range(100)]
    ours = [runs.drawn({"family": "fuzz", **parameters}, i) for i in range(100)]
    logs = [
        np.log([n for n, _ in theirs]),
        np.log([cnf.num_variables for cnf in ours]),
    ]
    spread = math.hypot(*(own.std() / math.sqrt(len(own)) for own in logs))
    assert abs(logs[0].mean() - logs[1].mean()) < 4 * spread
    ratios = [np.array([len(clauses) / n for n, clauses in theirs])]
    ratios.append(np.array([cnf.num_clauses / cnf.num_variables for cnf in ours]))
    spread = math.hypot(*(own.std() / math.sqrt(len(own)) for own in ratios))
    assert abs(ratios[0].mean() - ratios[1].mean()) < 4 * spread
    for n, clauses in theirs:
        assert abs(sum(len(c) == 4 for c in clauses) - 0.5 * n) <= 0.5
        assert sorted({abs(x) for c in clauses for x in c}) == list(range(1, n + 1))


def test_a_circuit_of_the_peer_says_what_its_gates_say():
    gates = {"and": operator.and_, "or": operator.or_, "xor": operator.ne, "iff": operator.eq}
    for name, gate in gates.items():
        for bits in range(8):
            a, b, g = (bool(bits >> i & 1) for i in range(3))
            holds = all(any((a, b, g)[abs(x) - 1] == (x > 0) for x in c) for c in peers._tseitin(name, 3, 1, 2))
            assert holds == (g == gate(a, b))


def test_renaming_keeps_the_models():
    clauses = [[1, -2], [2, 3, -4], [-1, 4], [3]]
    counts = set()
    for seed in range(6):
        n, found = peers.renamed(random.Random(seed), (4, clauses), flip=seed % 2 == 1)
        models = [m for m in np.ndindex(2, 2, 2, 2) if Cnf.from_clauses(found, n).is_satisfied_by(np.array(m, bool))]
        counts.add(len(models))
        assert sorted(map(len, found)) == [1, 2, 2, 3]
    original = [m for m in np.ndindex(2, 2, 2, 2) if Cnf.from_clauses(clauses, 4).is_satisfied_by(np.array(m, bool))]
    assert counts == {len(original)}


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_the_peers_graphs_have_the_edges_of_the_package(data):
    n = data.draw(st.integers(1, 7))
    variables = st.lists(st.integers(1, n), min_size=1, max_size=4, unique=True)
    clauses = [
        [v * data.draw(st.sampled_from([1, -1])) for v in data.draw(variables)]
        for _ in range(data.draw(st.integers(0, 8)))
    ]
    for kind in sat.KINDS:
        ours = graph(Cnf.from_clauses(clauses, n), kind)
        edges = set(map(tuple, ours.edges.tolist()))
        found = peers.networkx_graph((n, clauses), kind)
        assert found.number_of_nodes() == ours.num_nodes
        assert {(min(edge), max(edge)) for edge in found.edges} == edges
        plain = peers.pyg_graph((n, clauses), kind)
        assert plain.num_nodes == ours.num_nodes
        both = [tuple(edge) for edge in plain.edge_index.t().tolist()]
        assert len(both) == len(set(both)) and set(both) == edges | {(b, a) for a, b in edges}


def test_the_peers_closed_gap():
    # single best: the second algorithm, 8 + 1 + 6 = 15; virtual best: 2 + 1 + 6 = 9; chosen: 2 + 4 + 6 + overhead 1
    assert peers.closed_gap([[2, 8], [4, 1], [9, 6]], [0, 0, 1], [3, 2], [0.5, 0.5, 0]) == pytest.approx(2 / 6)


def test_the_fit_of_modelled_time():
    rng = np.random.default_rng(3)
    modelled = 10 ** rng.uniform(-1, 1, 4000)
    noise = rng.normal(0, 0.05, 4000)
    found = sat.calibration(list(zip(modelled, modelled * 1.5 * 10**noise, strict=True)))
    assert found["residual"] == pytest.approx(0.05, rel=0.05)
    assert found["factor"] == pytest.approx(1.5, rel=0.01)
    assert found["r2"] == pytest.approx(1 - 0.05**2 / (4 / 12 + 0.05**2), abs=0.001)
    assert sat.calibration([(1.0, 1.0)] * 2) is None


def test_the_formulas_whose_runs_are_repeated_are_of_both_statuses():
    pytest.importorskip("pysat")
    found = runs.run_outcomes(len(runs.MIXED), 1, 0.02)
    assert len(found) == len(runs.MIXED) * len(sat.SOLVERS)
    assert {"sat", "unsat"} <= {status for status, _ in found}
