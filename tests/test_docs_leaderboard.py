"""The leaderboard page of the documentation."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "_ext"))

import pytest

from graphbench.leaderboard import RULES, leaderboard_of
from graphbench.records.files import load_records

pytest.importorskip("sphinx", reason="pip install '.[docs]'")
import leaderboard_page

DOCS = Path(__file__).resolve().parents[1] / "docs"


def test_the_page_has_every_ranked_score_and_all_rules():
    found = leaderboard_of(load_records("algoreas/*"))
    text = leaderboard_page.page_text(found)
    mains = [board for board in found.boards if board.split == "test" and board.main]
    assert mains
    for board in mains:
        section = text.partition(f"### {board.unit}\n")[2].partition("\n### ")[0]
        for row in board.rows:
            assert re.search(rf"\| {row.label} \| {row.mean:.4f} \|", section)
        for reference in board.references:
            assert f"{reference.name} ({reference.kind}) | {reference.value:.4f}" in section
    assert all(f"**{heading}.** {rule}" in text for heading, rule in RULES)
    pages = re.findall(r"\]\((datasets/generated/[^)]+)\.md\)", text)
    datasets = dict.fromkeys(board.dataset for board in mains)
    assert pages == [f"datasets/generated/{name.replace('/', '-')}" for name in datasets]


def test_the_source_of_the_page_has_the_mark_once():
    assert (DOCS / "leaderboard.md").read_text(encoding="utf-8").count(leaderboard_page.MARK) == 1
