"""Circuits and hash functions as clauses, against plain evaluations of them."""

import hashlib
import itertools
import math
import random
import struct
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy import stats

from graphbench.core.errors import GenerationError
from graphbench.core.rng import seed
from graphbench.domains.sat.circuits import circuit_clauses, draw_circuit, draw_fuzz
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.hash_functions import ROUNDS, clauses_of_rows, encode_hash
from graphbench.domains.sat.hash_gates import (
    TRUE,
    choice,
    constant_word,
    empty_builder,
    majority,
    new_variable,
    odd_of_three,
    sum_words,
)
from graphbench.domains.sat.instances import FuzzParameters, draw_formula
from graphbench.domains.sat.preimages import draw_preimage

KEY = np.uint64(11)


def propagate(formula, literals):
    """Return the variables' values that follow by unit propagation, as a dict; None after a conflict."""
    clauses = list(formula.clauses())
    at = defaultdict(list)
    for j, clause in enumerate(clauses):
        for x in clause:
            at[-x].append(j)
    open_literals = [len(clause) for clause in clauses]
    queue = [clause[0] for clause in clauses if len(clause) == 1] + list(literals)
    value = {}
    while queue:
        x = queue.pop()
        if abs(x) in value:
            if value[abs(x)] != (x > 0):
                return None
            continue
        value[abs(x)] = x > 0
        for j in at[x]:
            open_literals[j] -= 1
            if open_literals[j] == 0:
                return None
            if open_literals[j] == 1:
                queue += [
                    y
                    for y in clauses[j]
                    if abs(y) not in value and not any(value.get(abs(z)) == (z > 0) for z in clauses[j])
                ]
    return value


# --- circuits ---------------------------------------------------------------------------------------------------------

OPERATORS = [
    lambda a, b, c: a and b,
    lambda a, b, c: a or b,
    lambda a, b, c: a != b,
    lambda a, b, c: a == b,
    lambda a, b, c: b if a else c,
]


def circuit(index, inputs=(3, 6), references=(1, 2), most=10_000, ite=True):
    return draw_circuit(seed(KEY, index, 0, 0), inputs, references, most, ite)


def evaluate(values, kinds, operands):
    """Return the values of all nodes, those of the inputs first."""
    values = list(values)
    for kind, row in zip(kinds.tolist(), operands.tolist(), strict=True):
        given = [values[abs(x) - 1] == (x > 0) if x else None for x in row]
        values.append(OPERATORS[kind](*given))
    return values


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("signs", list(itertools.product([1, -1], repeat=3)))
def test_clauses_of_a_gate_say_that_it_has_its_value(kind, signs):
    row = np.array([[signs[0] * 3, signs[1] * 1, signs[2] * 2 if kind == 4 else 0]], np.int32)
    kinds = np.array([kind], np.int8)
    n, literals, ptr = circuit_clauses(3, kinds, row, 0, 3)
    assert literals[ptr[-2] :].tolist() == [4]
    gate = Cnf(n, literals[: ptr[-2]], ptr[:-1])
    for values in itertools.product([False, True], repeat=4):
        assert gate.is_satisfied_by(np.array(values)) == (list(values) == evaluate(values[:3], kinds, row))


@pytest.mark.parametrize("index", range(25))
def test_models_of_the_clauses_are_the_evaluations_of_the_circuit(index):
    v, kinds, operands = circuit(index)
    formula = Cnf(*circuit_clauses(v, kinds, operands, 0, 3))
    gates = Cnf(formula.num_variables, formula.literals[:-1], formula.ptr[:-1])
    for inputs in itertools.product([False, True], repeat=v):
        expected = evaluate(inputs, kinds, operands)
        literals = [i + 1 if holds else -i - 1 for i, holds in enumerate(inputs)]
        found = propagate(gates, literals)
        assert found is not None
        assert [found[x + 1] for x in range(formula.num_variables)] == expected
        assert gates.is_satisfied_by(np.array(expected))
        assert formula.is_satisfied_by(np.array(expected)) == expected[-1]


@pytest.mark.parametrize("ite", [False, True])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_circuit_grows_until_every_input_is_an_operand_often_enough(times, ite):
    for index in range(20):
        v, kinds, operands = circuit(index, (20, 30), (times, times), 100_000, ite)
        assert 20 <= v <= 30
        assert set(kinds.tolist()) <= set(range(5 if ite else 4))
        assert ((operands[:, 2] != 0) == (kinds == 4)).all()
        references = Counter()
        complete = None
        for gate, row in enumerate(operands.tolist()):
            nodes = [abs(x) for x in row if x]
            assert len(set(nodes)) == len(nodes)
            assert max(nodes) < v + 1 + gate
            if complete is None:
                references.update(nodes)
                if all(references[i] >= times for i in range(1, v + 1)):
                    complete = gate + 1
        assert complete is not None
        roots = {node for node in range(v + 1, v + 1 + complete) if not references[node]}
        joined = Counter(abs(x) for row in operands[complete:].tolist() for x in row if x)
        joins = set(range(v + 1 + complete, v + 1 + len(kinds)))
        assert len(joins) == len(roots) - 1
        assert set(joined) == (roots | joins) - {v + len(kinds)} or not joins
        assert set(joined.values()) <= {1}
        depth = dict.fromkeys(roots, 0)
        for node in sorted(joins):
            depth[node] = 1 + max(depth[abs(x)] for x in operands[node - v - 1].tolist() if x)
        assert depth[v + len(kinds)] == math.ceil(math.log2(len(roots)))


def grown_gates(inputs, times, rng):
    """Return how many gates a circuit has before its roots are joined, and how many roots, from the definition."""
    count = [0] * inputs
    while min(count[:inputs]) < times:
        for node in rng.sample(range(len(count)), 2):
            count[node] += 1
        count.append(0)
    return len(count) - inputs, sum(c == 0 for c in count)


@pytest.mark.parametrize(("inputs", "times"), [(12, 1), (8, 3)])
def test_sizes_of_circuits_are_those_of_the_definition(inputs, times):
    rng = random.Random(2)
    theirs = [gates + roots - 1 for gates, roots in (grown_gates(inputs, times, rng) for _ in range(1500))]
    ours = [len(circuit(i, (inputs, inputs), (times, times), ite=False)[1]) for i in range(1500)]
    assert stats.ks_2samp(ours, theirs).pvalue > 1e-3


def test_operators_and_negations_are_uniform():
    drawn = [circuit(i, (20, 20)) for i in range(100)]
    grown = np.concatenate([kinds for _, kinds, _ in drawn])
    binary = np.bincount(grown, minlength=5)[:4]
    assert stats.chisquare(binary).pvalue > 1e-3
    signs = np.concatenate([operands[operands != 0] > 0 for _, _, operands in drawn])
    assert stats.binomtest(int(signs.sum()), len(signs)).pvalue > 1e-3


def test_circuits_with_too_many_gates_are_drawn_again():
    free = [circuit(i, (12, 12), (1, 1), ite=False) for i in range(2000)]
    limit = 24
    capped = [circuit(i, (12, 12), (1, 1), most=limit, ite=False) for i in range(1000)]

    def grown(drawn):
        v, _, operands = drawn
        left = set(range(1, v + 1))
        for gate, row in enumerate(np.abs(operands).tolist()):
            left -= set(row)
            if not left:
                return gate + 1
        raise AssertionError

    sizes = [grown(c) for c in free]
    assert max(sizes) > limit
    kept = [s for s in sizes if s <= limit]
    assert max(map(grown, capped)) <= limit
    assert stats.ks_2samp([grown(c) for c in capped], kept).pvalue > 1e-3


def test_an_impossible_limit_of_gates_is_an_error():
    parameters = FuzzParameters(
        inputs=(50, 150), references=(5, 5), clause_length=(3, 3), clause_ratio=(1, 1), most_gates=100
    )
    with pytest.raises(GenerationError, match=r"100 gates.*most_gates"):
        draw_formula(parameters, KEY, 0, 0)


def test_random_clauses_follow_those_of_the_circuit():
    lengths = Counter()
    used = Counter()
    for index in range(60):
        v, kinds, operands = circuit(index, (10, 10), (1, 1))
        _, first, starts = circuit_clauses(v, kinds, operands, 0, 3)
        n, literals, ptr = draw_fuzz(KEY, index, 0, (10, 10), (1, 1), (3, 5), (2.0, 3.0), 10_000, True)
        assert n == v + len(kinds)
        np.testing.assert_array_equal(literals[: len(first)], first)
        np.testing.assert_array_equal(ptr[: len(starts)], starts)
        added = list(Cnf(n, literals, ptr).clauses())[len(starts) - 1 :]
        assert round(2 * n) <= len(added) <= round(3 * n)
        (length,) = {len(clause) for clause in added}
        assert all(len({abs(x) for x in clause}) == length for clause in added)
        lengths[length] += 1
        used.update(math.floor(10 * (abs(x) - 1) / n) for clause in added for x in clause if n % 10 == 0)
    assert set(lengths) == {3, 4, 5}
    assert stats.chisquare(list(used.values())).pvalue > 1e-3


# --- gates of hash functions ------------------------------------------------------------------------------------------


@njit
def one_gate(kind, x, y, z, given):
    b = empty_builder(19, 20)
    for i in range(3):
        new_variable(b, given[i])
    if kind == 0:
        g = odd_of_three(b, x, y, z)
    elif kind == 1:
        g = majority(b, x, y, z)
    else:
        g = choice(b, x, y, z)
    return g, b


GATES = [lambda x, y, z: x ^ y ^ z, lambda x, y, z: x + y + z >= 2, lambda x, y, z: y if x else z]


@pytest.mark.parametrize("kind", range(3))
@pytest.mark.thorough
def test_gates_have_their_values_for_all_operands(kind):
    bits = [1, -1, 2, -2, 3, -3, TRUE, -TRUE]
    for operands in itertools.product(bits, repeat=3):
        for inputs in itertools.product([False, True], repeat=3):
            g, b = one_gate(kind, *operands, np.array(inputs))
            n, m = b.sizes.tolist()
            formula = Cnf(n, *clauses_of_rows(b.clauses[:m]))
            truth = {1: inputs[0], 2: inputs[1], 3: inputs[2], TRUE: True}
            expected = GATES[kind](*(truth[abs(x)] == (x > 0) for x in operands))
            models = [
                rest
                for rest in itertools.product([False, True], repeat=n - 3)
                if formula.is_satisfied_by(np.array([*inputs, *rest]))
            ]
            assert models == [tuple(b.values[4 : n + 1].tolist())]
            model = {**truth, **dict(enumerate(b.values[: n + 1].tolist()))}
            assert (model[abs(g)] == (g > 0)) == expected
        assert formula.num_clauses == formula.canonical().num_clauses
        assert len(formula.literals) == len(formula.canonical().literals)


@njit
def one_sum(words, constant, values):
    b = empty_builder(999, 4000)
    for i in range(len(values)):
        new_variable(b, values[i])
    return sum_words(b, words[0], words[1], words[2], words[3], constant_word(constant)), b


def as_bits(number):
    return [bool(number >> i & 1) for i in range(32)]


NUMBERS = st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 2**31, 2**32 - 1])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(NUMBERS, min_size=2, max_size=2), st.lists(st.integers(-2, 3), min_size=4, max_size=4), NUMBERS, NUMBERS
)
def test_sums_of_words(numbers, kinds, folded, constant):
    """An operand is one of two words of variables (0, 1), the complement of one (-1, -2), or a constant (2, 3)."""
    words, total = np.empty((4, 32), np.int64), constant
    for row, kind in enumerate(kinds):
        if kind >= 2:
            words[row] = [TRUE if bit else -TRUE for bit in as_bits(folded)]
            total += folded
        else:
            which = kind if kind >= 0 else -1 - kind
            words[row] = np.arange(1 + 32 * which, 33 + 32 * which) * (1 if kind >= 0 else -1)
            total += numbers[which] if kind >= 0 else 2**32 - 1 - numbers[which]
    inputs = np.array(as_bits(numbers[0]) + as_bits(numbers[1]))
    result, b = one_sum(words, constant, inputs)
    n, m = b.sizes.tolist()
    formula = Cnf(n, *clauses_of_rows(b.clauses[:m]))
    value = propagate(formula, [i + 1 if bit else -i - 1 for i, bit in enumerate(inputs)])
    assert value is not None
    assert len(value) == n
    assert [value.get(abs(x), True) == (x > 0) for x in result.tolist()] == as_bits(total % 2**32)
    assert len(formula.literals) == len(formula.canonical().literals)


# --- hash functions ---------------------------------------------------------------------------------------------------


def rotl(x, s):
    return (x << s | x >> (32 - s)) & 0xFFFFFFFF


def md4(block, steps):
    """RFC 1320, section 3.4, as written there: the registers take turns."""
    x = struct.unpack("<16I", block)
    start = [0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476]
    a, b, c, d = start
    registers = {"a": a, "b": b, "c": c, "d": d}
    orders = [list(range(16)), [4 * i % 16 + i // 4 for i in range(16)], [int(f"{i:04b}"[::-1], 2) for i in range(16)]]
    for step in range(steps):
        part, i = divmod(step, 16)
        p, q, r, s = ["abcd", "dabc", "cdab", "bcda"][i % 4]
        y, z, w = registers[q], registers[r], registers[s]
        f = [(y & z) | (~y & w), (y & z) | (y & w) | (z & w), y ^ z ^ w][part]
        k = [0, math.isqrt(2 << 60), math.isqrt(3 << 60)][part]
        shift = [(3, 7, 11, 19), (3, 5, 9, 13), (3, 9, 11, 15)][part][i % 4]
        registers[p] = rotl((registers[p] + f + x[orders[part][i]] + k) % 2**32, shift)
    return struct.pack("<4I", *((registers[n] + v) % 2**32 for n, v in zip("abcd", start, strict=True)))


def sha1(block, steps):
    """FIPS 180-4, section 6.1.2."""
    w = list(struct.unpack(">16I", block))
    for t in range(16, steps):
        w.append(rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1))
    start = [0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0]
    a, b, c, d, e = start
    for t in range(steps):
        f = [(b & c) ^ (~b & d), b ^ c ^ d, (b & c) ^ (b & d) ^ (c & d), b ^ c ^ d][t // 20]
        k = math.isqrt([2, 3, 5, 10][t // 20] << 60)
        a, b, c, d, e = (rotl(a, 5) + f + e + k + w[t]) % 2**32, a, rotl(b, 30), c, d
    return struct.pack(">5I", *((x + y) % 2**32 for x, y in zip(start, (a, b, c, d, e), strict=True)))


def sha256(block, steps):
    """FIPS 180-4, section 6.2.2."""
    primes = [p for p in range(2, 312) if all(p % q for q in range(2, p))]
    constants = [int(p ** (1 / 3) % 1 * 2**32) for p in primes]
    start = [int(p**0.5 % 1 * 2**32) for p in primes[:8]]
    w = list(struct.unpack(">16I", block))
    for t in range(16, steps):
        s0 = rotl(w[t - 15], 25) ^ rotl(w[t - 15], 14) ^ w[t - 15] >> 3
        s1 = rotl(w[t - 2], 15) ^ rotl(w[t - 2], 13) ^ w[t - 2] >> 10
        w.append((s1 + w[t - 7] + s0 + w[t - 16]) % 2**32)
    a, b, c, d, e, f, g, h = start
    for t in range(steps):
        t1 = h + (rotl(e, 26) ^ rotl(e, 21) ^ rotl(e, 7)) + ((e & f) ^ (~e & g)) + constants[t] + w[t]
        t2 = (rotl(a, 30) ^ rotl(a, 19) ^ rotl(a, 10)) + ((a & b) ^ (a & c) ^ (b & c))
        a, b, c, d, e, f, g, h = (t1 + t2) % 2**32, a, b, c, (d + t1) % 2**32, e, f, g
    return struct.pack(">8I", *((x + y) % 2**32 for x, y in zip(start, (a, b, c, d, e, f, g, h), strict=True)))


REFERENCES = {"md4": md4, "sha1": sha1, "sha256": sha256}
RFC_1320 = {  # section A.5
    b"": "31d6cfe0d16ae931b73c59d7e0c089c0",
    b"a": "bde52cb31de33e46245e05fbdbd6fb24",
    b"abc": "a448017aaf21d8525fc10ae87aa6729d",
    b"message digest": "d9130a8164549fe818874806e1c7014b",
    b"abcdefghijklmnopqrstuvwxyz": "d79e1c308aa5bbcdeea8ed63df412da9",
}


def bits_of(data):
    return np.unpackbits(np.frombuffer(data, np.uint8)).astype(bool)


def padded(name, text):
    length = (8 * len(text)).to_bytes(8, "little" if name == "md4" else "big")
    return text + b"\x80" + bytes(55 - len(text)) + length


def digest_by_propagation(encoding, message):
    """Return the digest that follows from the clauses and a message by unit propagation; every variable must follow."""
    literals = [int(x) if bit else -int(x) for x, bit in zip(encoding.message, message, strict=True) if abs(x) < TRUE]
    value = propagate(encoding.formula, literals)
    assert value is not None
    assert len(value) == encoding.formula.num_variables
    value[TRUE] = True
    bits = [value[abs(x)] == (x > 0) for x in encoding.digest.tolist()]
    return np.packbits(bits).tobytes()


def true_digest(name, text):
    return RFC_1320[text] if name == "md4" else hashlib.new(name, text, usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("name", ROUNDS)
@pytest.mark.thorough
def test_unit_propagation_computes_the_digest_of_abc(name):
    encoding = encode_hash(name, ROUNDS[name])
    digest = digest_by_propagation(encoding, bits_of(padded(name, b"abc")))
    assert digest.hex() == true_digest(name, b"abc")


@pytest.mark.parametrize("name", ROUNDS)
def test_digests_of_full_functions(name):
    for text in RFC_1320:
        block = padded(name, text)
        encoding = encode_hash(name, ROUNDS[name], bits_of(block))
        assert np.packbits(encoding.digest_bits).tobytes().hex() == true_digest(name, text)
        assert REFERENCES[name](block, ROUNDS[name]).hex() == true_digest(name, text)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(ROUNDS)), st.data(), st.binary(min_size=64, max_size=64), st.integers(0, 2**32))
def test_digests_after_any_number_of_rounds(name, data, block, source):
    rounds = data.draw(st.integers(1, ROUNDS[name]))
    known = np.random.default_rng(source).random(512) < data.draw(st.sampled_from([0, 0.5, 1]))
    encoding = encode_hash(name, rounds, bits_of(block), known)
    assert np.packbits(encoding.digest_bits).tobytes() == REFERENCES[name](block, rounds)
    assert encoding.formula.is_satisfied_by(encoding.model)
    truth = np.append(encoding.model, True)
    for literals, bits in ((encoding.message, bits_of(block)), (encoding.digest, encoding.digest_bits)):
        values = truth[np.where(np.abs(literals) == TRUE, len(truth), np.abs(literals)) - 1] == (literals > 0)
        np.testing.assert_array_equal(values, bits)
    assert (np.abs(encoding.message[known]) == TRUE).all()
    np.testing.assert_array_equal(encoding.message[~known], np.arange(1, 1 + (~known).sum()))
    assert len(encoding.formula.canonical().literals) == len(encoding.formula.literals)


@pytest.mark.parametrize("name", ROUNDS)
@pytest.mark.parametrize("rounds", [1, 17, 23])
def test_unit_propagation_computes_digests_of_fewer_rounds(name, rounds):
    rng = np.random.default_rng(rounds)
    block = rng.bytes(64)
    known = rng.random(512) < 0.5
    other = np.where(known, bits_of(block), rng.random(512) < 0.5)  # the free bits of the message are not built in
    encoding = encode_hash(name, rounds, bits_of(block), known)
    assert digest_by_propagation(encoding, other) == REFERENCES[name](np.packbits(other).tobytes(), rounds)


@pytest.mark.parametrize("rounds", [0, 49])
def test_a_number_of_rounds_that_a_function_does_not_have_is_refused(rounds):
    with pytest.raises(ValueError, match=f"md4 with {rounds} rounds; give 1 to 48"):
        encode_hash("md4", rounds)


def test_a_known_message_leaves_no_variable():
    block = bytes(range(64))
    encoding = encode_hash("sha256", 20, bits_of(block), np.ones(512, bool))
    assert encoding.formula.num_variables == encoding.formula.num_clauses == 0
    assert (np.abs(encoding.digest) == TRUE).all()


@pytest.mark.parametrize("name", ROUNDS)
def test_full_functions_fit_into_the_arrays(name):
    """The room for clauses is 8192 and for variables 1200 per round, and once more."""
    for rounds in range(1, ROUNDS[name] + 1):
        formula = encode_hash(name, rounds).formula
        assert formula.num_clauses < 8192 * (rounds + 1)
        assert len(formula.literals) < 4 * 8192 * (rounds + 1)
        assert formula.num_variables < 512 + 1200 * (rounds + 1)


def test_preimages_ask_for_the_digest_of_their_message():
    drawn = Counter()
    for index in range(60):
        attack = draw_preimage(KEY, index, 0, ("md4", "sha1", "sha256"), (16, 30), (100, 384))
        encoding = encode_hash(attack.name, attack.rounds, attack.message, attack.known_bits)
        digest = bits_of(REFERENCES[attack.name](np.packbits(attack.message).tobytes(), attack.rounds))
        units = [int(x if bit else -x) for x, bit in zip(encoding.digest, digest, strict=True)]
        np.testing.assert_array_equal(attack.formula.literals, [*encoding.formula.literals, *units])
        np.testing.assert_array_equal(attack.formula.lengths, [*encoding.formula.lengths, *[1] * len(units)])
        assert attack.formula.is_satisfied_by(encoding.model)
        assert 16 <= attack.rounds <= 30
        assert 100 <= attack.known_bits.sum() <= 384
        drawn[attack.name] += 1
    assert min(drawn.values()) > 10
    assert len(drawn) == 3


def test_constant_bits_of_a_digest_are_no_clauses():
    attack = draw_preimage(KEY, 0, 0, ("md4",), (1, 1), (0, 0))
    assert attack.formula.num_clauses == attack.encoding.formula.num_clauses + 32


def test_known_bits_are_drawn_uniformly():
    counts = np.zeros(512, np.int64)
    ones = 0
    for index in range(400):
        attack = draw_preimage(KEY, index, 0, ("md4",), (1, 1), (128, 128))
        assert attack.known_bits.sum() == 128
        counts += attack.known_bits
        ones += int(attack.message.sum())
    assert stats.chisquare(counts).pvalue > 1e-3
    assert stats.binomtest(ones, 400 * 512).pvalue > 1e-3


@pytest.mark.parametrize(("name", "free"), [("md4", 16), ("sha1", 12), ("sha256", 10)])
def test_solutions_are_messages_with_the_digest(name, free):
    solvers = pytest.importorskip("pysat.solvers")
    rng = np.random.default_rng(7)
    block = rng.bytes(64)
    known = np.ones(512, bool)
    known[rng.choice(512, free, replace=False)] = False
    encoding = encode_hash(name, 20, bits_of(block), known)
    digest = bits_of(REFERENCES[name](block, 20))
    literals = [int(x if bit else -x) for x, bit in zip(encoding.digest, digest, strict=True) if abs(x) < TRUE]
    with solvers.Cadical153(bootstrap_with=list(encoding.formula.clauses())) as solver:
        assert solver.solve(assumptions=literals)
        model = [False] + [x > 0 for x in solver.get_model()]
    message = [bool(x > 0) if abs(x) == TRUE else model[x] for x in encoding.message.tolist()]
    assert REFERENCES[name](np.packbits(message).tobytes(), 20) == np.packbits(digest).tobytes()
