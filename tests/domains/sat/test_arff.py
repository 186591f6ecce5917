"""The reader and writer of ARFF tables, beside SciPy's."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import scipy.io.arff
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.errors import StoreError
from graphbench.domains.sat.arff import NOMINAL, STRING, Attribute, read_arff, write_arff

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=8)
NUMBERS = st.one_of(st.none(), st.floats(allow_nan=False))


@settings(deadline=None, max_examples=80)
@given(st.lists(st.tuples(TEXTS, NUMBERS, st.sampled_from(["ok", "it's", "a b", "?", None])), max_size=6), TEXTS)
def test_a_written_table_is_read_back(tmp_path_factory, rows, relation):
    path = tmp_path_factory.mktemp("arff") / "table.arff"
    attributes = [
        Attribute("the name", STRING),
        Attribute("x%y"),
        Attribute("state", NOMINAL, ("ok", "it's", "a b", "?")),
    ]
    write_arff(path, relation, attributes, rows)
    found = read_arff(path)
    assert found.relation == relation and list(found.attributes) == attributes
    assert [tuple(row) for row in found.rows] == rows


def test_scipy_reads_a_written_table(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20, 3)) * 10.0 ** rng.integers(-8, 8, (20, 3))
    attributes = [*(Attribute(f"f {i}") for i in range(3)), Attribute("state", NOMINAL, ("good", "bad"))]
    states = ["good" if row[0] > 0 else "bad" for row in values]
    write_arff(
        tmp_path / "t.arff", "a table", attributes, [(*r.tolist(), s) for r, s in zip(values, states, strict=True)]
    )
    data, meta = scipy.io.arff.loadarff(tmp_path / "t.arff")
    assert meta.names() == ["f 0", "f 1", "f 2", "state"]
    np.testing.assert_array_equal(np.stack([data[f"f {i}"] for i in range(3)], axis=1), values)
    assert [word.decode() for word in data["state"]] == states


@pytest.mark.parametrize(
    "path", sorted((Path(scipy.io.arff.__file__).parent / "tests" / "data").glob("*.arff")), ids=lambda path: path.name
)
def test_the_examples_of_scipy_have_the_values_that_it_reads(path):
    try:
        data, meta = scipy.io.arff.loadarff(path)
    except Exception:
        pytest.skip("SciPy does not read this example")
    kinds = {name: meta[name][0] for name in meta.names()}
    if {"date", "relational"} & set(kinds.values()):
        with pytest.raises(StoreError, match="read are NUMERIC"):
            read_arff(path)
        return
    found = read_arff(path)
    assert [a.name for a in found.attributes] == [name.strip("'\"") for name in meta.names()]
    for name in meta.names():
        own = name.strip("'\"")
        if kinds[name] == "numeric":
            np.testing.assert_array_equal(found.numbers(own), data[name])
        else:
            column = found.column_number(own)
            words = ["?" if row[column] is None else row[column] for row in found.rows]
            assert words == [word.decode().strip("'\"") for word in data[name]]


def test_variations_of_real_files(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text(
        "% a comment\n@relation 'R 1'\n@attribute\tinstance_id\tSTRING\n@ATTRIBUTE runtime real\n"
        "@Attribute 'run status' { ok , 'time out',memout }\n@ATTRIBUTE n integer\n@ATTRIBUTE s{a,b}\n"
        "@data\n\n%x\n'a, b\\'s' , 1e-3, ok ,7, A\n"
        "\"i\\\\2\",?,'time out',-inf,b\r\ni%3, NaN ,?,?,?\n"
    )
    found = read_arff(path)
    assert found.relation == "R 1" and found.names == ("instance_id", "runtime", "run status", "n", "s")
    assert found.rows[0] == ("a, b's", 0.001, "ok", 7.0, "a")
    assert found.rows[1] == ("i\\2", None, "time out", -math.inf, "b")
    assert found.rows[2][0] == "i%3" and math.isnan(found.rows[2][1]) and found.rows[2][2:] == (None, None, None)
    assert found.texts("INSTANCE_ID") == ["a, b's", "i\\2", "i%3"] and found.lines == (11, 12, 13)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("@relation r\n@attribute a numeric\n@data\n1,2\n", "line 4.*2 values.*1 attr"),
        ("@relation r\n@attribute a numeric\n@data\nx\n", "line 4: a is 'x', which is no number"),
        ("@relation r\n@attribute a {p,q}\n@data\nr\n", "line 4: a is 'r'"),
        ("@relation r\n@attribute a {p,q\n@data\n", "line 2: the values of 'a' do not end"),
        ("@relation r\n@attribute a date\n@data\n", "line 2: the type of 'a' is 'date'"),
        ("@relation r\n@attribute a\n@data\n", "line 2: the type of 'a' is ''"),
        ("@relation r\n@attribute\n@data\n", "line 2: a name is missing"),
        ("@relation r\n@attribute a string\n@data\n{0 x}\n", "line 4: the row is sparse"),
        ("@relation r\n@attribute a string\n@data\n'x\n", "line 4: the quote ' of .* is not closed"),
        ("@relation r\n@attribute a string\n@attribute b string\n@data\n'x' y,z\n", "line 5: 'y' follows a quoted"),
        ("@relation r\n@attribute a string\n@attribute b string\n@data\nx,\n", "line 5: the value of b is empty"),
        ("@relation r\n@attribute a string\n@attribute a string\n@data\n", "the attribute 'a' twice"),
        ("@relation r\n@data\n", "has no attribute; give"),
        ("@relation r\n@attribute a string\n", "has no @DATA"),
        ("a,b\n1,2\n", "line 1: 'a,b' where @RELATION"),
        ("", "has no @DATA"),
    ],
)
def test_a_bad_table_is_one_clear_error(tmp_path, content, message):
    path = tmp_path / "bad.arff"
    path.write_text(content)
    with pytest.raises(StoreError, match=message) as caught:
        read_arff(path)
    assert "bad.arff" in str(caught.value) and "\n" not in str(caught.value)


def test_names_that_differ_in_case_alone_are_told_apart(tmp_path):
    write_arff(tmp_path / "t.arff", "r", [Attribute("vars"), Attribute("Vars"), Attribute("Time")], [(1.0, 2.0, 3.0)])
    found = read_arff(tmp_path / "t.arff")
    assert [found.numbers(name) for name in ("vars", "Vars", "VARS", "time")] == [[1.0], [2.0], [1.0], [3.0]]


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "b.arff").write_bytes(bytes(range(256)))
    with pytest.raises(StoreError, match=r"b\.arff"):
        read_arff(tmp_path / "b.arff")
    with pytest.raises(StoreError, match=r"c\.arff cannot be read: No such file"):
        read_arff(tmp_path / "c.arff")
