"""AIGER files: by hand, round trips, hostile ones, and what ABC reads and writes."""

import subprocess
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.errors import CircuitError, MissingDependency
from graphbench.domains.chip_design import Aig

HALF_ADDER = b"""aag 7 2 0 2 3
2
4
6
12
6 13 15
12 2 4
14 3 5
i0 x
i1 y
o0 s
o1 c
c
half adder
"""  # the example of the AIGER report: its ANDs are not in order


def random_aig(n, ands, m, seed):
    rng = np.random.default_rng(seed)
    fanins = [[int(rng.integers(0, 2 * (1 + n + k))) for _ in range(2)] for k in range(ands)]
    return Aig(n, np.array(fanins, np.int64).reshape(-1, 2), rng.integers(0, 2 * (1 + n + ands), m))


def test_the_half_adder_of_the_report():
    aig = Aig.from_aiger(HALF_ADDER)
    assert aig.simulate().astype(int).tolist() == [[0, 1, 1, 0], [0, 0, 0, 1]]
    assert (aig.num_ands, aig.depth) == (3, 2)
    binary = b"aig 5 2 0 2 3\n10\n6\n\x02\x02\x03\x02\x01\x02"  # the same circuit of the report, binary
    again = Aig.from_aiger(binary)
    assert again.fanins.tolist() == [[4, 2], [5, 3], [9, 7]] and again.outputs.tolist() == [10, 6]
    assert np.array_equal(again.simulate(), aig.simulate())
    assert again.to_aiger() == binary


@pytest.mark.parametrize(
    ("data", "table"),
    [
        (b"aag 0 0 0 1 0\n0\n", [[0]]),
        (b"aag 0 0 0 1 0\n1\n", [[1]]),
        (b"aag 1 1 0 2 0\n2\n2\n3\n", [[0, 1], [1, 0]]),
        (b"aag 3 2 0 1 1\n2\n4\n6\n6 2 4\n", [[0, 0, 0, 1]]),
        (b"aag 3 2 0 1 1\n6\n4\n2\n2 6 5\n", [[0, 1, 0, 0]]),  # any even literals may be inputs, in the order given
        (b"aag 9 1 0 1 1\n4\n18\n18 4 1\n", [[0, 1]]),  # unused numbers
        (b"aig 1 1 0 1 0\n3\n", [[1, 0]]),
        (b"aig 1 1 0 1 0 0 0 0 0\n3\nc\nanything \xff", [[1, 0]]),
    ],
)
def test_files_by_hand(data, table):
    assert Aig.from_aiger(data).simulate().astype(int).tolist() == table


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 7), st.integers(0, 300), st.integers(1, 4), st.integers(0, 10**6), st.booleans())
def test_files_hold_the_circuit(n, ands, m, seed, is_ascii):
    aig = random_aig(n, ands, m, seed)
    data = aig.to_aiger(ascii=is_ascii)
    again = Aig.from_aiger(data)
    assert again.num_inputs == n and np.array_equal(again.outputs, aig.outputs)
    assert np.array_equal(again.fanins, -np.sort(-aig.fanins, axis=1))
    assert again.to_aiger(ascii=is_ascii) == data


def test_a_file(tmp_path):
    (tmp_path / "a.aag").write_bytes(HALF_ADDER)
    assert Aig.from_aiger(tmp_path / "a.aag").num_ands == Aig.from_aiger(str(tmp_path / "a.aag")).num_ands == 3
    for missing in (tmp_path / "b.aag", tmp_path):
        with pytest.raises(CircuitError, match="cannot be read"):
            Aig.from_aiger(missing)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "begins with"),
        (b"p cnf 1 1\n", "begins with 'p cnf"),
        (b"aag 1 1 0 1\n", "begins with"),
        (b"aag 01 1 0 0 0\n2\n", "begins with"),
        (b"aag -1 1 0 0 0\n", "begins with"),
        (b"aag 1 1 1 0 0\n2\n4 2\n", "1 latches"),
        (b"aag 1 1 0 0 0 1\n2\n2\n", "1 properties"),
        (b"aag 1 2 0 0 0\n2\n4\n", "largest variable is 1"),
        (b"aig 4 2 0 1 1\n6\n\x02\x02", "largest variable is 4"),
        (b"aag 99999999 0 0 0 99999999\n", "cut short"),
        (b"aig 99999999 0 0 0 99999999\n", "cut short"),
        (b"aig 999999999999 999999999999 0 0 0\n", "at most"),
        (b"aag 3 2 0 99999999999 1\n2\n4\n6\n6 2 4\n", "cut short"),
        (b"aag 3 2 0 1 1\n2\n4\n6\n6 2 4", "cut short: line 5"),
        (b"aag 3 2 0 1 1\n2\n4\n6\n6 2  4\n", "line 5"),
        (b"aag 3 2 0 1 1\n2\n4\n6\n6 2 -4\n", "line 5"),
        (b"aag 3 2 0 1 1\n2\n4\n6\n6 2 8\n", "literal 8"),
        (b"aag 3 2 0 1 1\n2\n5\n6\n6 2 4\n", "defines the literal 5"),
        (b"aag 3 2 0 1 1\n2\n2\n6\n6 2 2\n", "variable 1 twice"),
        (b"aag 4 2 0 1 1\n2\n4\n6\n6 2 8\n", "literal 8, whose variable"),
        (b"aag 3 1 0 1 2\n2\n6\n4 2 6\n6 2 4\n", "loop: 2 ANDs"),
        (b"aag 2 1 0 1 1\n2\n4\n4 4 2\n", "loop"),
        (b"aag 3 2 0 1 1\n2\n4\n6\n6 2 4\ni2 z\n", "continues with 'i2 z'"),
        (b"aag 3 2 0 1 1\n2\n4\n6\n6 2 4\nhello\n", "continues with 'hello'"),
        (b"aig 3 2 0 1 1\n6\n\x02\x02\x00", "symbol table"),
        (b"aig 3 2 0 1 1\n8\n\x02\x02", "literal 8"),
        (b"aig 3 2 0 1 1\n6\n\x00\x02", "not before"),
        (b"aig 3 2 0 1 1\n6\n\x07\x02", "not before"),
        (b"aig 3 2 0 1 1\n6\n\x02\x05", "not before"),
        (b"aig 3 2 0 1 1\n6\n\x82\x80", "cut short at AND 0 of 1"),
        (b"aig 3 2 0 1 1\n6\n\x82\x80\x80\x80\x80\x80\x00", "more than 5 bytes"),
    ],
)
def test_hostile_files_end_in_one_line(data, words):
    tracemalloc.start()
    try:
        with pytest.raises(CircuitError, match=words) as found:
            Aig.from_aiger(data)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert "\n" not in str(found.value)


@settings(max_examples=150, deadline=None)
@given(st.booleans(), st.integers(0, 10**6), st.data())
def test_damaged_files_are_read_or_refused(is_ascii, seed, data):
    content = bytearray(random_aig(3, 20, 2, seed).to_aiger(ascii=is_ascii))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]
    try:
        aig = Aig.from_aiger(bytes(content))
    except CircuitError:
        return
    again = Aig.from_aiger(aig.to_aiger())
    assert (again.num_inputs, again.num_outputs, again.num_ands) == (aig.num_inputs, aig.num_outputs, aig.num_ands)
    assert aig.num_inputs > 12 or np.array_equal(again.simulate(), aig.simulate())


def test_deep_circuits_are_put_in_order():
    ands = 50_000  # a chain, written from its end
    rows = "".join(f"{2 * v} {2 * (v - 1)} 3\n" for v in range(ands + 1, 1, -1))
    aig = Aig.from_aiger(f"aag {ands + 1} 1 0 1 {ands}\n2\n{2 * ands + 2}\n{rows}".encode())
    assert aig.depth == ands and aig.simulate().astype(int).tolist() == [[0, 0]]


def test_what_abc_writes_and_reads(tmp_path):
    synthesis = pytest.importorskip("graphbench.domains.chip_design.synthesis")
    try:
        abc = synthesis.find_abc().executable
    except MissingDependency:
        pytest.skip("ABC is not installed")
    for seed in range(6):
        aig = random_aig(5, 40, 2, seed)
        (tmp_path / "own.aig").write_bytes(aig.to_aiger())
        commands = "read_aiger own.aig; strash; write_aiger abc.aig; write_aiger -s named.aig; cec -n own.aig abc.aig"
        found = subprocess.run([abc, "-s", "-c", commands], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "Networks are equivalent" in found.stdout
        for name in ("abc.aig", "named.aig"):
            again = Aig.from_aiger(tmp_path / name)
            assert np.array_equal(again.simulate(), aig.simulate())
            assert again.num_ands == aig.hashed().num_ands


def test_texts_may_have_windows_line_ends_and_binary_files_may_not():
    windows = Aig.from_aiger(HALF_ADDER.replace(b"\n", b"\r\n"))
    assert np.array_equal(windows.simulate(), Aig.from_aiger(HALF_ADDER).simulate())
    binary = Aig.from_aiger(HALF_ADDER).to_aiger()
    with pytest.raises(CircuitError, match="Windows line ends"):
        Aig.from_aiger(binary.replace(b"\n", b"\r\n"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (HALF_ADDER[: HALF_ADDER.index(b"\ni0")], "line 8 should hold an AND, and '14 3 5'"),
        (b"aag 3 2 0 1 1", "ends within its first line"),
    ],
)
def test_a_last_line_without_its_end_is_named(data, message):
    with pytest.raises(CircuitError, match=message):
        Aig.from_aiger(data)


def test_a_circuit_without_outputs_has_an_empty_table():
    assert Aig.from_aiger(b"aag 2 2 0 0 0\n2\n4\n").simulate().shape == (0, 4)
