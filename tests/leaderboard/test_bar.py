"""What a model has to beat on a dataset: the best score of every kind."""

from __future__ import annotations

import pytest

import graphbench
from graphbench.cli import show
from graphbench.leaderboard.bar import Mark, bar
from graphbench.leaderboard.best import best
from graphbench.records.files import load_records
from graphbench.records.published import published


def test_the_best_of_every_kind_stands_in_the_bar() -> None:
    card = graphbench.card("algoreas/mst_easy")
    (leader,) = best(card.address)[card.address]
    marks = {mark.kind: mark for mark in bar(card, leader)}
    assert list(marks) == ["trivial", "rule", "recorded", "published"]
    floor = card.floor["test"]
    assert marks["rule"] == Mark("rule", "structural", floor["structural"]["f1"])
    plain = max(scores["f1"] for name, scores in floor.items() if name != "structural")
    assert marks["trivial"].value == plain
    assert (marks["recorded"].name, marks["recorded"].value) == (leader.row.model, leader.mean)
    printed = [p.value for p in published(card.address) if (p.split, p.metric, p.study) == ("test", "f1", "main")]
    assert marks["published"].value == max(printed)


def test_searches_and_trained_models_have_marks_of_their_own() -> None:
    card = graphbench.card("co/rb_small:mis")
    (leader,) = best(card.address)[card.address]
    assert leader.row.trained and leader.search is not None and not leader.search.trained
    marks = {mark.kind: mark for mark in bar(card, leader)}
    assert (marks["recorded"].name, marks["recorded"].value) == (leader.row.model, leader.mean)
    assert (marks["search"].name, marks["search"].value) == (leader.search.model, leader.search.mean)
    searches = [record for record in load_records(card.address) if record.untrained]
    assert searches and leader.search.model in {record.model for record in searches}
    (alone,) = best(records=searches)[card.address]
    assert not alone.row.trained and "recorded" not in {mark.kind for mark in bar(card, alone)}


def test_lower_scores_are_better_where_they_are() -> None:
    card = graphbench.card("algoreas/flow_easy")
    marks = {mark.kind: mark.value for mark in bar(card, None)}
    assert "recorded" not in marks
    floor = {name: scores["mae"] for name, scores in card.floor["test"].items()}
    assert min(marks["trivial"], marks["rule"]) == min(floor.values())
    assert marks["published"] == min(p.value for p in published(card.address) if (p.split, p.metric) == ("test", "mae"))


def test_scores_of_a_part_name_its_size() -> None:
    card = graphbench.card("co/rb_small:mis")
    (leader,) = best(card.address)[card.address]
    assert not leader.data.whole
    marks = {mark.kind: mark for mark in bar(card, leader)}
    assert marks["recorded"].samples == marks["search"].samples == leader.data.graphs
    measured = card.measured_scores.scored_samples["test"]
    assert marks["trivial"].samples == (None if measured == leader.data.graphs else measured)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("algoreas/mst_easy", "f1 ↑ on test: trivial"),
        ("clrs/bfs", "score ↑ on test, canonical: trivial"),
        ("weather/sim_64x32", "mse ↓ on test"),
    ],
)
def test_info_has_the_bar_in_a_line(name: str, words: str) -> None:
    lines = show._bar_facts(graphbench.card(name))
    assert lines and all(label == "bar" for label, _ in lines)
    assert lines[0][1].startswith(words)


def test_files_of_a_user_have_no_bar(tmp_path, needs_installed) -> None:
    for i in range(3):
        (tmp_path / f"{i}.truth").write_text(f"{'01' * i}{'0' * (8 - 2 * i)}\n")
    loader = graphbench.Loader("chip_design/aig:generate", source="files", folder=tmp_path, root=tmp_path / "data")
    with needs_installed():
        data = loader.load("test")
    assert show._bar_facts(data.test.card) == []
