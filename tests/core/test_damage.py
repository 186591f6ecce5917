"""Errors of damaged files, lines and compressed streams with limits, casts, and YAML whose aliases multiply."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.casting import overflow_fault, overflowing
from graphbench.core.damage import FileFault, damage_named, fault_of, limited_bytes, limited_lines
from graphbench.core.errors import EvaluationError, StoreError
from graphbench.core.packed import LEAST_UNPACKED, open_packed
from graphbench.core.yaml_text import YamlFault, loaded_yaml


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (zipfile.BadZipFile("no\narchive"), "is damaged"),
        (RuntimeError("File 'a' is encrypted, password required"), "is encrypted"),
        (MemoryError(), "memory"),
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (RecursionError("maximum"), "nested"),
        (FileFault("has a long line"), "has a long line"),
    ],
)
def test_any_error_becomes_one_line_that_names_the_file(error, words):
    with pytest.raises(EvaluationError, match=words) as caught, damage_named("a.npz", EvaluationError):
        raise error
    assert "a.npz" in str(caught.value) and "\n" not in str(caught.value) and fault_of(error) in str(caught.value)


def test_errors_of_the_package_and_interrupts_stay_what_they_are():
    with pytest.raises(StoreError, match=r"^own$"), damage_named("a", EvaluationError):
        raise StoreError("own")
    with pytest.raises(KeyboardInterrupt), damage_named("a", EvaluationError):
        raise KeyboardInterrupt


@given(text=st.text(alphabet="ab\n\r", max_size=60), most=st.integers(1, 8))
def test_lines_are_those_of_the_file_or_too_long(text, most):
    lines = list(io.StringIO(text, newline="\n"))
    if all(len(line) <= most for line in lines):
        assert list(limited_lines(io.StringIO(text, newline="\n"), most)) == lines
    else:
        with pytest.raises(FileFault):
            list(limited_lines(io.StringIO(text, newline="\n"), most))


def test_no_more_is_read_than_allowed(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert limited_bytes(tmp_path / "a", 10) == b"x" * 10
    with pytest.raises(FileFault, match="9 bytes"):
        limited_bytes(tmp_path / "a", 9)


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@settings(max_examples=60, deadline=None)
@given(parts=st.lists(st.binary(max_size=300), min_size=1, max_size=3), ending=st.sampled_from(sorted(PACKERS)))
def test_streams_give_what_was_packed(tmp_path_factory, parts, ending):
    path = tmp_path_factory.mktemp("p") / f"a{ending}"
    path.write_bytes(b"".join(map(PACKERS[ending], parts)))
    with open_packed(path) as file:
        assert file.read() == b"".join(parts)


@pytest.mark.parametrize("ending", sorted(PACKERS))
def test_streams_end_where_they_are_too_large(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    path.write_bytes(PACKERS[ending](bytes(LEAST_UNPACKED + 1)))
    with open_packed(path, growth=1) as file, pytest.raises(FileFault, match="unpacks to more"):
        while file.read(1 << 20):
            continue
    with open_packed(path, growth=LEAST_UNPACKED) as file:
        assert sum(len(part) for part in iter(lambda: file.read(1 << 20), b"")) == LEAST_UNPACKED + 1


def test_aliases_are_read_until_they_multiply():
    assert loaded_yaml("a: &x [1, 2]\nb: *x\nc: {<<: &y {k: 1}, m: *y}") == {
        "a": [1, 2],
        "b": [1, 2],
        "c": {"k": 1, "m": {"k": 1}},
    }
    few = "a: &x [1, 2, 3]\nb: [*x, *x]\n"
    assert loaded_yaml(few, repeated=8) == {"a": [1, 2, 3], "b": [[1, 2, 3]] * 2}
    with pytest.raises(YamlFault) as caught:
        loaded_yaml(few, repeated=7)
    assert caught.value.line == 2
    with pytest.raises(YamlFault, match="stands for a value that holds it"):
        loaded_yaml("a: &x [*x]")
    nested = "a: &a [[[[1]]]]\nb: [[[*a]]]"
    assert loaded_yaml(nested, levels=8)["b"] == [[[[[[[1]]]]]]]
    with pytest.raises(YamlFault, match="nested too deeply"):
        loaded_yaml(nested, levels=7)
    with pytest.raises(YamlFault):
        loaded_yaml(f"a: &x {'w' * 6400}\nb: *x", repeated=100)


@pytest.mark.parametrize("text", ["!!int ''", "!!timestamp x", "2001-99-99", "!!bool 7", "!!float x", "9" * 5000, "{"])
def test_values_that_do_not_fit_are_faults_of_the_text(text):
    with pytest.raises(YamlFault, match="not valid YAML"):
        loaded_yaml(text)


@given(
    values=st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=6),
    dtype=st.sampled_from([np.float16, np.float32, np.float64, np.int64]),
)
def test_what_overflows_is_what_a_cast_makes_infinite(values, dtype):
    array = np.array(values)
    if np.dtype(dtype).kind == "f":
        with np.errstate(over="ignore"):
            expected = np.isfinite(array) & np.isinf(array.astype(dtype))
    else:
        expected = np.zeros(len(array), bool)
    assert np.array_equal(overflowing(array, dtype), expected)
    fault = overflow_fault(array, dtype)
    assert (fault is None) == (not expected.any())
    if fault is not None:
        first = int(np.flatnonzero(expected)[0])
        assert repr(values[first]) in fault and f"row {first}" in fault
