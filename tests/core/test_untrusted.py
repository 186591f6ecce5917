"""Text and JSON of strangers: what is shown, what is refused, and that ordinary JSON is read as json reads it."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphbench.core.untrusted import MOST_LEVELS, limited_text, shown, strict_json, text_fault, texts_fault

PRINTED = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=20)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | PRINTED,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(PRINTED, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
@settings(max_examples=100, deadline=None)
def test_ordinary_json_is_read_as_json_reads_it(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("json") / "value.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    assert strict_json(path, 10**6) == json.loads(path.read_text())


@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_what_is_shown_has_no_character_that_a_terminal_obeys(text):
    found = shown(text)
    assert found.isprintable()
    assert found == text or not text.isprintable()


def test_escapes_and_turned_writing_are_shown_as_escapes():
    assert shown("\x1b[31mred\x07") == "\\x1b[31mred\\x07"
    assert shown("a\u202eb\ud800") == "a\\u202eb\\ud800"
    assert shown("Müller <b> [link=x]") == "Müller <b> [link=x]"
    assert shown("x" * 50, 10) == "x" * 7 + "..."


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"a": "\xff"}', "not UTF-8: invalid start byte at byte 7"),
        (b'{"a": NaN}', "the value NaN"),
        (b'{"a": [-Infinity]}', "the value -Infinity"),
        (b'{"a": 1e999}', "the number 1e999, which is too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "a number of 5,000 digits"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "the key 'c' appears twice"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" * 60 + b"]" * 60, f"nested more than {MOST_LEVELS} deep"),
        (b'{"a": "\\u001b[2J"}', "the character \\x1b, which cannot be printed"),
        (b'{"\\u202e": 1}', "the character \\u202e"),
        (b'["' + b"a" * 5000 + b'"]', "a text of 5,000 characters"),
        (b'{"a": 1} x', "Extra data"),
        (b"", "Expecting value"),
    ],
)
def test_json_beyond_the_standard_is_refused(tmp_path, content, fault):
    path = tmp_path / "value.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"\S") as refused:
        strict_json(path, 10**6)
    assert fault in str(refused.value)
    assert str(refused.value).isprintable()


def test_no_more_than_the_limit_is_read(tmp_path):
    path = tmp_path / "value.json"
    path.write_text("[" + "1," * 100 + "1]")
    with pytest.raises(ValueError, match="larger than 50 bytes"):
        strict_json(path, 50)
    assert limited_text(path, path.stat().st_size) == path.read_text()


def test_a_key_twice_among_very_many_is_found_at_once(tmp_path):
    path = tmp_path / "value.json"
    path.write_text("{" + "".join(f'"{number}": 0, ' for number in range(200_000)) + '"199999": 1}')
    started = time.process_time()
    with pytest.raises(ValueError, match="the key '199999' appears twice"):
        strict_json(path, 10**7)
    assert time.process_time() - started < 10


def test_texts_of_several_lines_are_no_fault_inside_values():
    assert text_fault("a\nb") is not None and text_fault("a\nb", lines=True) is None
    assert texts_fault({"a": ["b\n\tc"]}) is None
    assert "character \\r" in (texts_fault({"a": ["b\rc"]}) or "")
