"""What is accepted: records and predictions of several kinds of tasks, compared with scores computed by hand."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import graphbench
from graphbench.core.errors import ResultError, UnknownDataset
from graphbench.leaderboard.submissions import Verdict, check_submission, start_submission
from graphbench.leaderboard.submissions.description import read_description
from graphbench.records.files import load_records, read_record, save_record
from graphbench.records.record import RunRecord

from .conftest import (
    SETS,
    TREES,
    describe,
    edited,
    noisy,
    place_of,
    predict,
    record_of,
    saved,
    told,
)

BUDGET = {"steps": 100, "batch_size": 8, "parameters": 5, "training_seconds": 2.5, "gpu": "H100", "gpus": 2}


def f1(truth, found):
    return 2 * (truth & found).sum() / (truth.sum() + found.sum())


def test_predictions_of_three_seeds_are_accepted_with_scores_as_by_hand(folder, targets, check):
    describe(folder, datasets={TREES: BUDGET})
    predict(folder, targets, splits="val,test,n14")
    report = check()
    (entry,) = report.datasets
    assert report.accepted and entry.verdict is Verdict.ACCEPTED and entry.findings == []
    assert (report.model, report.authors, entry.seeds) == ("mine", ("Ada Lovelace",), [0, 1, 2])
    for split in ("val", "test", "n14"):
        truth = targets(split)
        assert entry.values(split) == pytest.approx([f1(truth, noisy(truth, seed)) for seed in range(3)], abs=1e-12)
    assert entry.complete == {"val": True, "test": True, "n14": True}
    assert set(entry.hashes.values()) == {"the data here"} and entry.recomputed.keys() == {0, 1, 2}


def test_records_of_predictions_are_written_on_request_alone(folder, targets, check, tmp_path):
    describe(folder, datasets={TREES: BUDGET}, description="A model\nof two lines", code="https://example.org/a")
    predict(folder, targets)
    before = sorted(path for path in folder.rglob("*"))
    assert check().written == [] and sorted(folder.rglob("*")) == before
    report = check(records=tmp_path / "records")
    assert len(report.written) == 3
    records = load_records(records=tmp_path / "records")
    assert [record.seed for record in records] == [0, 1, 2]
    first = records[0]
    assert first.scores["test"]["f1"] == pytest.approx(f1(targets("test"), noisy(targets("test"), 0)), abs=1e-12)
    assert (first.model, first.steps, first.batch_size, first.parameters) == ("mine", 100, 8, 5)
    assert (first.wall_seconds, first.hardware["gpu"], first.hardware["gpus"]) == (2.5, "H100", 2)
    assert first.notes == "A model of two lines; by Ada Lovelace; code https://example.org/a"
    assert first.budget.label.startswith("100 steps of 8 samples")


def test_records_beside_predictions_must_agree_with_them(folder, targets, check):
    predict(folder, targets)
    check(records=folder / "records")
    again = check(records=folder / "records")
    assert again.accepted and again.written == [] and len(again.datasets[0].records) == 3
    predict(folder, lambda split: ~targets(split), seeds=range(1))
    report = check()
    assert not report.accepted
    value = f1(targets("test"), noisy(~targets("test"), 0))
    assert f"the predictions give {value:.6g}; give the predictions of the run that is recorded" in told(report)
    assert f"predictions/{TREES}/seed0: f1 of test is " in told(report)


def test_replicates_beside_predictions_must_agree_with_them(folder, targets, check, monkeypatch):
    monkeypatch.setattr("graphbench.evaluation.metrics.bootstrap.LEAST_SAMPLES", 1)
    predict(folder, targets, seeds=range(1))
    check(records=folder / "records")
    (path,) = (folder / "records").rglob("*.json")
    record = read_record(path)
    forged = [value + 0.1 * (r == 5) for r, value in enumerate(record.replicates["test"])]
    save_record(record.model_copy(update={"replicates": {"test": forged}}), path=path)
    report = check()
    assert not report.accepted
    assert "the bootstrap replicates of test in the record differ from the predictions'" in told(report)
    save_record(record.model_copy(update={"replicates": {}}), path=path)  # records of older versions have none
    assert check().accepted


def test_what_is_missing_is_said_and_is_no_reason_to_refuse(folder, targets, check):
    predict(folder, targets, seeds=range(1))
    report = check()
    assert report.accepted
    assert told(report, "missing").splitlines() == [
        "1 seed; with 3 or more the mean has an interval",
        "not scored: n14",
        "budget not stated; without it the scores are not compared with published ones",
        "not stated: hardware, training time, parameters; their columns stay empty",
    ]


def test_predictions_of_the_first_samples_are_marked_as_small(folder, root, check):
    describe(folder, datasets={TREES: {"limit": 4}})
    data = graphbench.Loader(TREES, root=root, limit=4, workers=1).load("test").test
    np.save(place_of(folder) / "test.npy", np.concatenate([batch.in_tree.numpy() for batch in data.batches(9)]))
    report = check()
    (entry,) = report.datasets
    assert entry.verdict is Verdict.WITH_REMARKS and entry.values("test") == [1.0]
    assert "scored in part: test 4 of 12; it stands among the small runs" in told(report, "remark")
    assert entry.records[0].budget.small is True


def test_records_alone_are_accepted_as_they_are_stated(folder, root, check):
    for seed in range(3):
        saved(record_of(root, seed, ("val", "test")), folder)
    report = check()
    (entry,) = report.datasets
    assert report.accepted and entry.values("test") == [0.25] * 3 and not entry.recomputed
    assert "no predictions of seeds 0, 1, 2, so the scores come from the records" in told(report, "missing")


def test_solutions_are_decoded_as_the_record_says(folder, root, check):
    split = graphbench.Loader(SETS, root=root, workers=1).load("test").test
    rows = np.random.default_rng(0).normal(size=(int(split.flat.node_ptr[-1]), 2)).astype(np.float32)
    rows = rows[:, 0]
    np.save(place_of(folder, SETS) / "test.npy", rows)
    scores = {}
    for restarts in (1, 8):
        evaluator = graphbench.Evaluator(SETS, restarts=restarts)
        first = 0
        for batch in split.batches(4):
            evaluator.update(batch, rows[first : first + batch.num_nodes])
            first += batch.num_nodes
        scores[restarts] = evaluator.compute().primary
    assert scores[1] != scores[8]
    assert check().datasets[0].values("test") == [scores[1]]

    config = {"training": {"decoding": {"restarts": 8}}}
    record = RunRecord.from_scores({"test": split}, {"test": {"set_size": scores[8]}}, model="mine", config=config)
    path = saved(record, folder)
    assert check().accepted
    path.unlink()
    saved(record.model_copy(update={"scores": {"test": {"set_size": scores[1]}}}), folder)
    assert f"set_size of test is {scores[1]:.6g} in the record, the predictions give {scores[8]:.6g}" in told(check())


def test_words_and_their_warnings_are_read_by_the_task(tmp_path, root):
    folder = tmp_path / "kinship"
    folder.mkdir()
    describe(folder, datasets={"clutrr/gen_23": {"limit": 6}})
    data = graphbench.Loader("clutrr/gen_23", root=root, limit=6, workers=1).load("test").test
    names = graphbench.card("clutrr/gen_23").classes["answer"]
    answers = [names[int(data[i].answer)] for i in range(6)]
    (place_of(folder, "clutrr/gen_23") / "test.txt").write_text("\n".join([*answers[:5], "no idea"]) + "\n")
    report = check_submission(folder, root=root)
    assert report.accepted and report.datasets[0].values("test") == [pytest.approx(5 / 6)]
    assert "1 of 6 answers name no class and count as wrong, the first in line 6 of test.txt" in told(report, "remark")


def test_data_are_generated_on_request_alone(folder, targets, check, tmp_path):
    predict(folder, targets)
    away = tmp_path / "elsewhere"
    report = check(root=away)
    assert f"test of {TREES} is not in {away}, so the predictions are not scored; add --generate" in told(report)
    assert not away.exists()
    assert check(root=away, generate=True, workers=1).accepted


def test_a_record_whose_data_are_elsewhere_is_refused_until_they_are_generated(folder, root, check, tmp_path):
    saved(record_of(root), folder)
    report = check(root=tmp_path / "elsewhere")
    assert not report.accepted and report.datasets[0].hashes == {"test": ""}
    assert "the data hash of test was compared with nothing" in told(report)
    assert check(root=tmp_path / "elsewhere", generate=True, workers=1).accepted


def test_a_full_budget_has_as_many_samples_as_published_ones(folder, root, check, monkeypatch):
    monkeypatch.setattr("graphbench.leaderboard.submissions.groups.published_budget", lambda card: 801)
    record = record_of(root, steps=100, batch_size=8)
    for small, accepted in ((False, False), (True, True), (None, True)):
        saved(record.model_copy(update={"budget": record.budget.model_copy(update={"small": small})}), folder)
        report = check()
        assert report.accepted is accepted
        assert ("does not count as small, but was trained on 800 samples" in told(report)) is not accepted
        assert ("published budgets begin at 801" in told(report)) is not accepted
        shutil.rmtree(folder / "records")


def test_hashes_are_compared_with_the_records_of_the_package_where_data_are_missing(tmp_path):
    results = graphbench.catalog.resources.baselines_dir() / "results" / "clutrr" / "gen_234"
    for path in results.glob("gat_small*.json"):
        shutil.copy(path, tmp_path)
    describe(tmp_path, model=read_record(next(tmp_path.glob("*.json"))).model)
    report = check_submission(tmp_path, root=tmp_path / "nothing")
    assert report.accepted and set(report.datasets[0].hashes.values()) == {"the records of graphbench"}
    for path in tmp_path.glob("*.json"):
        edited(path, lambda content: content["data_hashes"].update(test="0" * 64))
    assert "the data hash of test is '000000000000', but the records of graphbench have" in told(
        check_submission(tmp_path, root=tmp_path / "nothing")
    )


def test_a_beginning_has_every_key_and_says_where_predictions_go(tmp_path, root):
    path, (place,) = start_submission(tmp_path / "new", "mine", [TREES], authors=['Ada "A" Lovelace'])
    assert place.startswith(f"predictions/{TREES}/seed0/: a file is named after its split, e.g. test.npz")
    assert place.endswith("12 graphs in the order of the split")
    text = (
        path.read_text().replace("\n    # ", "\n    ").replace("limit: 1000 ", "limit: 10 ").replace("# code", "code")
    )
    path.write_text(text.replace("https://...", "https://example.org"))
    about = read_description(path)
    assert about.authors == ('Ada "A" Lovelace',) and about.code == "https://example.org"
    budget = about.datasets[TREES]
    assert (budget.steps, budget.batch_size, budget.limit, budget.scores) == (10_000, 256, 10, "logit")
    with pytest.raises(ResultError, match=r"submission\.yaml exists already; edit it"):
        start_submission(tmp_path / "new", "mine")
    with pytest.raises(ResultError, match=r"the model name 'my model' is refused"):
        start_submission(tmp_path / "other", "my model")
    with pytest.raises(UnknownDataset, match="did you mean"):
        start_submission(tmp_path / "other", "mine", ["mst_eazy"])
    assert not (tmp_path / "other").exists()


def test_a_submission_without_authors_or_results_says_so(tmp_path, root):
    start_submission(tmp_path, "mine", [TREES])
    report = check_submission(tmp_path, root=root)
    assert "authors" in told(report) and not report.accepted
    describe(tmp_path, datasets={TREES: None})
    report = check_submission(tmp_path, root=root)
    assert "submission.yaml names it, but there are neither records nor predictions of it" in told(report)
    describe(tmp_path)
    assert "there are neither records (*.json) nor predictions" in told(check_submission(tmp_path, root=root))


def test_the_report_is_json(folder, targets, check):
    predict(folder, targets, seeds=range(2))
    found = json.loads(json.dumps(check().to_dict()))
    assert found["accepted"] is True and found["datasets"][0]["verdict"] == "accepted"
    assert found["datasets"][0]["recomputed"] == {"0": ["test"], "1": ["test"]}
    assert {finding["level"] for finding in found["datasets"][0]["findings"]} == {"missing"}


def test_smaller_networks_are_marked_as_small(tmp_path, root):
    name, users = "social/sim_replies_small", 500
    data = graphbench.Loader(name, root=root, limit=users, workers=1).load("test").test
    batch = next(iter(data.batches(1)))
    arrays = {feature.name: np.zeros_like(batch[feature.name].numpy()) for feature in data.card.outputs}
    np.savez(place_of(tmp_path, name) / "test.npz", **arrays)
    describe(tmp_path, datasets={name: {"limit": users}})
    report = check_submission(tmp_path, root=root, records=tmp_path / "records")
    assert report.accepted and report.datasets[0].complete == {"test": False}
    assert "the data were limited to 500 users: it stands among the small runs" in told(report, "remark")
    errors = [np.abs(batch[feature.name].numpy()).mean() for feature in data.card.outputs]
    assert report.datasets[0].values("test") == [pytest.approx(np.mean(errors), rel=1e-6)]
    assert report.datasets[0].records[0].budget.small is True
    edited(report.written[0], lambda content: content["budget"].update(small=None))
    report = check_submission(tmp_path, root=root)
    assert "its data are limited to 500 users, but it is not marked as a small run" in told(report)
