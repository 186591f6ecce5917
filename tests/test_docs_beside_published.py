"""Tables of measured sizes and scores beside published ones."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import graphbench
from graphbench.catalog.resources import datasets_dir

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "_ext"))

import published_text


def cells(text):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]


def test_sizes_are_those_beside_the_cards_within_a_tenth_of_table_2():
    published = json.loads((datasets_dir() / "social" / "calibration.json").read_text())["published"]
    rows = cells(published_text.sizes("social"))
    assert len(rows) == 9
    for name, split, nodes, printed_nodes, _, edges, printed_edges, difference in rows:
        own = graphbench.card(f"social/{name.strip('`')}").measured.statistics[split]
        numbers = [float(cell.replace(",", "")) for cell in (nodes, printed_nodes, edges, printed_edges)]
        assert numbers[::2] == [own["nodes"][0], own["edges"][0]]
        place = ("train", "val", "test").index(split)
        assert numbers[1::2] == [published[name.strip("`")][what][place] for what in ("nodes", "edges")]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.1) and numbers[2] == pytest.approx(numbers[3], rel=0.1)
        assert float(difference.removesuffix(" %")) == pytest.approx(100 * (numbers[2] / numbers[3] - 1), abs=0.06)


def test_scores_are_printed_measured_and_recorded_ones():
    rows = cells(published_text.scores(["mae", "r2_likes"], ["social/sim_replies = social/replies : graphconv"]))
    assert rows[0] == ["`social/replies`", "`graphconv`, published", "0.694", "0.158"]
    by_name = {row[1]: row[2:] for row in rows}
    measured = graphbench.card("social/sim_replies").measured
    assert by_name["`persistence`"][0] == f"{measured.solvers['test']['persistence']['mae']:.3f}"
    assert by_name["`median`"][1] == f"{measured.floor['test']['median']['r2_likes']:.3f}"


def test_statistics_are_numbers_or_shares():
    (row,) = cells(published_text.statistics(["social/sim_quotes"], ["nodes: nodes", "zero_likes: zeros %"]))
    own = graphbench.card("social/sim_quotes").measured.statistics["test"]
    assert row[1:] == [f"{own['nodes'][0]:,.0f}", f"{100 * own['zero_likes'][0]:.1f} %"]
