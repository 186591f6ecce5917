"""JSON files: written whole, read with clear errors."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from graphbench.core.errors import ResultError, StoreError
from graphbench.core.files import parse_json, read_json, write_json


def test_what_is_written_is_read(tmp_path: Path) -> None:
    value = {"b": [1, 2.5, None, "é"], "a": {"x": True}}
    write_json(tmp_path / "new" / "a.json", value)
    assert read_json(tmp_path / "new" / "a.json") == value
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.json"]


def test_keys_are_sorted_unless_their_order_says_something(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 1, "a": 2})
    assert list(read_json(tmp_path / "a.json")) == ["a", "b"]
    write_json(tmp_path / "a.json", {"b": 1, "a": 2}, sort_keys=False)
    assert list(read_json(tmp_path / "a.json")) == ["b", "a"]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_json_does_not_have_is_refused_and_leaves_the_file(tmp_path: Path, value: float) -> None:
    write_json(tmp_path / "a.json", {"a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"a": value})
    assert read_json(tmp_path / "a.json") == {"a": 1}


@pytest.mark.parametrize("content", [b"{", b"", b"\xff\xfe", b"[" * 100_000])
def test_damaged_files_are_told_with_file_and_remedy(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(ResultError, match=r"a\.json.*; run it again$"):
        read_json(path, ResultError, "run it again")


def test_missing_files_and_folders_are_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"a\.json.*restore"):
        read_json(tmp_path / "a.json")
    with pytest.raises(StoreError, match="cannot read"):
        read_json(tmp_path)


def test_text_is_parsed_with_the_same_words() -> None:
    assert parse_json(b'{"a": 1}', "here") == {"a": 1}
    with pytest.raises(StoreError, match=r"^here is not valid JSON: "):
        parse_json("{", "here")
