"""On which samples trivial predictors and reference solvers are scored: those of the files, as many as models are."""

from __future__ import annotations

import numpy as np
import pytest

import graphbench
from graphbench.catalog.sections import Measured, MeasuredScores
from graphbench.core.errors import CardError
from graphbench.data.build.generation import draw_samples, ensure_split
from graphbench.tasks.registry import task_of
from graphbench.verification.measuring import measure, update_measured
from graphbench.verification.scoring import Counts, measured_task, usual_count


def few(card, count=60):
    """The card with small splits."""
    splits = {name: spec.model_copy(update={"count": count}) for name, spec in card.splits.items()}
    return card.model_copy(update={"splits": splits, "ood": {}, "additional": {}, "measured": None})


def test_whole_splits_are_scored_and_the_first_samples_besides(tmp_path):
    card = few(graphbench.card("flow_easy"))
    found = measure(card, progress=False, root=tmp_path, samples=(20,))
    assert found.scored_samples == {"val": 60, "test": 60} and set(found.scores_on_first) == {20}
    first = found.scores_on_first[20]
    assert first.scored_samples == {"val": 20, "test": 20} and found.scored_hashes == {}
    train, test = (draw_samples(card, split, np.arange(60)) for split in ("train", "test"))
    task = task_of(card)
    assert found.floor["test"]["mean"] == pytest.approx(task.floors(train, test)["mean"])
    assert first.floor["test"]["mean"] == pytest.approx(
        task.floors(train, test.part(card.stored_schema, 0, 20))["mean"]
    )


def test_the_next_update_keeps_the_numbers_of_the_last():
    card = few(graphbench.card("flow_easy"))
    assert Counts.of(card) == Counts(usual_count(card)) and Counts.of(card, [7]).also == (7,)
    small = MeasuredScores(scored_samples={"test": 7})
    measured = Measured(version=1, scored_samples={"test": 60}, scores_on_first={7: small})
    assert Counts.of(card.model_copy(update={"measured": measured})).also == (7,)
    with_labels = graphbench.card("co/rb_small:mis")
    assert Counts.of(with_labels).most == usual_count(with_labels) == 256
    counts = Counts.of(with_labels)  # the test split was measured on more samples than the others
    assert {split: counts.of_split(with_labels, split) for split in ("val", "test", "large")} == {
        "val": 256, "test": 500, "large": 256
    }  # fmt: skip
    assert {32, 256} <= set(counts.also)


def test_samples_of_the_files_are_scored_even_where_draws_repeat(tmp_path):
    """A duplicate is redrawn when a split is built; models see what is built."""
    card = few(graphbench.card("flow_easy"))
    path = ensure_split(card, "test", tmp_path, workers=1)
    before = path.stat().st_mtime_ns
    scores = measured_task(card, tmp_path)
    assert scores.scored_samples["test"] == 60 and path.stat().st_mtime_ns == before


def test_an_update_of_some_splits_keeps_the_facts_of_the_others(tmp_path, monkeypatch):
    card = few(graphbench.card("flow_easy"), 30).model_copy(update={"path": tmp_path / "flow.yaml"})
    splits = {**card.splits, "test_large": card.splits["test"]}  # a split whose name begins as another one's
    card = card.model_copy(update={"splits": splits})
    with pytest.raises(CardError, match="only val should be measured, but nothing is measured yet"):
        update_measured(card, progress=False, root=tmp_path, splits=["val"])
    path = update_measured(card, progress=False, root=tmp_path)
    whole = Measured.model_validate_json(path.read_text())

    def altered(part):
        return {split: {"mean": {"mae": 7.0}} for split in part}

    before = whole.model_copy(
        update={
            "floor": altered([*whole.floor, "test_big"]),
            "scored_samples": dict.fromkeys([*whole.scored_samples, "test_big"], 3),
            "scores_on_first": {3: MeasuredScores(floor=altered(["val", "test"]))},
        }
    )
    with pytest.raises(CardError, match="its measurements are of version 2"):
        other = before.model_copy(update={"version": 2})
        update_measured(card.model_copy(update={"measured": other}), progress=False, root=tmp_path, splits=["test"])
    update_measured(card.model_copy(update={"measured": before}), progress=False, root=tmp_path, splits=["test"])
    after = Measured.model_validate_json(path.read_text())
    assert after.floor["test"] == whole.floor["test"]
    assert after.floor["val"] == before.floor["val"] and after.floor["test_large"] == before.floor["test_large"]
    assert "test_big" not in after.floor and "test_big" not in after.scored_samples
    assert after.scored_samples == {"val": 3, "test": 30, "test_large": 3}
    assert after.scores_on_first[3].floor["val"] == before.scores_on_first[3].floor["val"]
    assert after.first_samples == whole.first_samples and after.statistics == whole.statistics
