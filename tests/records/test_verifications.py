"""Records that say they were verified or recomputed: a list beside them has the digests of those that were."""

import json
import subprocess

import pytest

from graphbench.cli.predictions import add_metrics
from graphbench.core.errors import ResultError
from graphbench.leaderboard import leaderboard_of
from graphbench.leaderboard.history import state_at
from graphbench.records.files import load_records, save_record
from graphbench.records.verifications import FILE, begin_attempt, confirm, confirmed_in
from graphbench.verification import again
from tests.evaluation.conftest import BEACON, COMMITMENT, make_record, verified


def saved(folder, record, *, listed=False):
    path = save_record(record, folder)
    if listed:
        begin_attempt(folder, COMMITMENT, BEACON)
        confirm(folder, json.loads(path.read_text())["digest"])
    return path


def provenances(folder):
    return {row.provenance for board in leaderboard_of(load_records(records=folder)).boards for row in board.rows}


MST = {"dataset": "algoreas/mst_easy", "dataset_version": 1}


def test_a_record_in_the_list_is_verified(tmp_path):
    record = verified(make_record(**MST))
    path = saved(tmp_path, record, listed=True)
    assert record.digest == json.loads(path.read_text())["digest"]
    assert load_records(records=tmp_path) == [record] and provenances(tmp_path) == {"verified"}
    assert load_records(records=path.parent) == [record]  # the list lies in a folder above


@pytest.mark.parametrize(
    "changes",
    [{"scores": {"test": {"f1": 0.99}}}, {"model": "forged"}, {"seed": 7}, {"scores": {"test": {"f1": 0.8, "x": 1.0}}}],
    ids=["score", "name", "seed", "further score"],
)
@pytest.mark.parametrize("listed", [True, False], ids=["beside a verified one", "alone"])
def test_a_forged_record_is_not_verified(tmp_path, caplog, changes, listed):
    """The digest of a record is no secret: anybody can compute one that fits."""
    genuine = verified(make_record(**MST))
    if listed:
        saved(tmp_path, genuine, listed=True)
    saved(tmp_path, verified(make_record(**MST)).model_copy(update=changes))
    records = load_records(records=tmp_path)
    forged = [record for record in records if record.digest != genuine.digest]
    assert forged and all(record.verification is None for record in forged)
    assert "says that its scores were verified, and no verifications.jsonl in its folders lists it" in caplog.text
    if not listed:
        assert provenances(tmp_path) == {"stated"}


def test_a_record_that_says_it_was_recomputed_is_one_of_stated_scores(tmp_path, caplog):
    record = make_record(**MST).model_copy(update={"recomputed_from": "predictions"})
    path = saved(tmp_path, record)
    assert provenances(tmp_path) == {"stated"} and "says that its scores were recomputed" in caplog.text
    confirm(tmp_path, json.loads(path.read_text())["digest"])
    assert provenances(tmp_path) == {"recomputed"}


def test_a_verified_record_stays_verified_in_an_earlier_state(tmp_path):
    def git(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", "-C", tmp_path, *identity, *words], check=True, capture_output=True)

    git("init")
    saved(tmp_path, verified(make_record(**MST)), listed=True)
    saved(tmp_path, verified(make_record(1, **MST)))
    git("add", ".")
    git("commit", "-m", "records")
    genuine, forged = state_at("HEAD", tmp_path).records
    assert genuine.verification is not None and forged.verification is None


def test_further_metrics_leave_a_record_verified(tmp_path, monkeypatch):
    def score_again(record, *_, **__):
        return record.model_copy(update={"scores": {"test": {**record.scores["test"], "accuracy": 0.9}}})

    monkeypatch.setattr(again, "score_again", score_again)
    path = saved(tmp_path / "a", verified(make_record(**MST)), listed=True)
    forged = saved(tmp_path / "b", verified(make_record(1, **MST)))
    for file in (path, forged):
        add_metrics(file, ["accuracy"], None, records=None, root=None)
    assert load_records(records=tmp_path / "a")[0].verification is not None
    assert load_records(records=tmp_path / "b")[0].verification is None
    add_metrics(path, ["accuracy"], None, records=tmp_path / "c", root=None)
    assert load_records(records=tmp_path / "c")[0].verification is not None


@pytest.mark.parametrize("text", ["{", "[]\n", '{"commitment": "a"}\n', "1\n", "[" * 100_000])
def test_a_damaged_list_is_named(tmp_path, text):
    path = saved(tmp_path, verified(make_record(**MST)))
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ResultError, match=r"verifications\.jsonl is damaged"):
        load_records(records=tmp_path)
    with pytest.raises(ResultError, match=r"verifications\.jsonl is damaged"):
        begin_attempt(tmp_path, COMMITMENT, BEACON)
    (tmp_path / FILE).unlink()
    assert confirmed_in(path, "0" * 64) is None
