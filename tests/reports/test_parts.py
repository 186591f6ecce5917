"""The table of parts of the test split."""

import graphbench
from graphbench.evaluation.aggregates import aggregate
from graphbench.reports.parts import parts_grid
from graphbench.reports.report import build_report

from .conftest import make_record

ID = "circuits/converters_5:ratio"


def record(seed, part=None):
    whole = {"rse": 0.2 + 0.1 * seed, "mae": 0.05, "spearman": 0.9}
    scores = {"test": whole, **({"test_converting": {**whole, "rse": part}} if part is not None else {})}
    return make_record(seed).model_copy(update={"dataset": ID, "scores": scores, "primary": "rse"})


def test_parts_stand_beside_the_test_split(tmp_path):
    card = graphbench.card(ID)
    records = [record(0, 0.5), record(1, 0.7)]
    grid = parts_grid(card, aggregate(records))
    assert grid.heads[:2] == ("part", "model") and grid.heads[2].startswith("rse")
    ((about, _, rse, *_),) = grid.rows
    assert about == "converting: magnitude of ratio above 0.05" and rse.startswith("0.6000 ± 0.1414")
    text = "".join(path.read_text() for path in build_report(records, tmp_path / "out") if path.suffix == ".md")
    assert "### Parts of the test split" in text and "0.6000" in text


def test_there_is_no_table_without_scores_of_parts():
    card = graphbench.card(ID)
    assert parts_grid(card, aggregate([record(0)])) is None
    assert parts_grid(graphbench.card("algoreas/mst_medium"), aggregate([make_record(0)])) is None
