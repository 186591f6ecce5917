"""Hostile and broken submissions: each is refused with a reason, none is run, none takes much memory or time."""

from __future__ import annotations

import json
import os
import pickle
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

import graphbench
from graphbench.core.errors import EvaluationError
from graphbench.leaderboard.submissions import Verdict, check_submission
from graphbench.leaderboard.submissions import folder as folders
from graphbench.leaderboard.submissions import predictions as limits
from graphbench.leaderboard.submissions.records import smaller_than_full
from graphbench.records.files import load_records
from graphbench.reports.report import build_report
from graphbench.tasks.files import read_texts

from .conftest import SETS, TREES, describe, edited, noisy, place_of, predict, record_of, saved, told

HOSTILE = "<script>alert(1)</script>"


class Bomb:
    """An object that leaves a file behind when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return (Path.touch, (self.mark,))


def refusal(check) -> str:
    """Return why a submission is refused; nothing of it can be obeyed by a terminal."""
    report = check()
    assert not report.accepted
    found = json.dumps(report.to_dict(), ensure_ascii=False)
    assert found.isprintable()
    words = told(report)
    assert words.replace("\n", "").isprintable()
    return words


# ------------------------------------------------------------------------------------------------ records


def test_seeds_that_are_missing_or_twice(folder, root, check):
    saved(record_of(root, 1), folder)
    report = check()
    assert report.accepted and "1 seed; with 3 or more the mean has an interval" in told(report, "missing")
    (path,) = folder.rglob("*.json")
    path.with_name("copy.json").write_bytes(path.read_bytes())
    assert "two records of seed 1; keep one of them" in refusal(check)


def test_seeds_that_are_copies_of_each_other(folder, root, check, targets):
    scores = {"test": {"f1": 0.123456789, "accuracy": 0.5}}
    for seed in range(3):
        saved(record_of(root, seed, scores=scores), folder)
    refused = refusal(check)
    assert "seed 1 equals seed 0" in refused and "seed 2 equals seed 0" in refused
    for path in folder.rglob("*.json"):
        path.unlink()
    for seed in range(3):
        saved(record_of(root, seed, scores=scores).model_copy(update={"deterministic": True}), folder)
    assert check().accepted
    saved(record_of(root, 3, scores={"test": {"f1": 0.2, "accuracy": 0.5}}, deterministic=True), folder)
    assert "seeds 0, 3 are said to be of a deterministic model" in refusal(check)
    for path in folder.rglob("*.json"):
        path.unlink()
    predict(folder, targets, seeds=range(1))
    (place_of(folder, seed=7) / "test.npz").write_bytes((place_of(folder) / "test.npz").read_bytes())
    assert "the predictions of test of the seeds 0 and 7 are the same file" in told(check(), "remark")


def test_a_wrong_data_hash(folder, root, check):
    record = record_of(root, splits=("val", "test"))
    saved(record.model_copy(update={"data_hashes": {**record.data_hashes, "test": "ab" * 32}}), folder)
    found = refusal(check)
    assert "the data hash of test is 'abababababab', but the data here have" in found
    assert "data hash of val" not in found


def test_another_version_fingerprint_draw_and_dataset(folder, root, check):
    record = record_of(root)
    for change, fault in [
        ({"dataset_version": 9}, "it is of version 9 of algoreas/toy_trees, whose version is 1"),
        ({"data_fingerprint": "v1-000000000000"}, "its data have the fingerprint 'v1-000000000000', but "),
        ({"data_fingerprint": ""}, "its data have the fingerprint 'none'"),
        ({"data_seed": 5}, "its data have the fingerprint"),
        ({"dataset": "co/toy_graphs"}, "it is of 'co/toy_graphs', whose full id is 'co/toy_graphs:mis_size'"),
        ({"dataset": "algoreas/toy_tree"}, "unknown dataset 'algoreas/toy_tree'; did you mean"),
        ({"dataset": f"algoreas/{HOSTILE}\x1b[2J"}, "the character \\x1b, which cannot be printed"),
        ({"dataset": "../../etc/passwd"}, "unknown dataset '../../etc/passwd'"),
        ({"model": "other"}, "it is of the model 'other', submission.yaml names 'mine'"),
        ({"model": HOSTILE}, "is refused: the name of a model has letters"),
    ]:
        path = folder / "records" / "a.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(record.to_json())
        edited(path, lambda content, change=change: content.update(change))
        assert fault in refusal(check), change


def test_counts_of_samples_that_cannot_be(folder, root, check):
    path = saved(record_of(root), folder)
    edited(path, lambda content: content["graphs_scored"].update(test=13))
    assert "it says that 13 samples of test were scored, which has 12" in refusal(check)
    path.unlink()
    path = saved(record_of(root), folder)
    edited(path, lambda content: content["graphs_scored"].update(test=0))
    assert "it says that 0 samples of test were scored" in refusal(check)
    path.unlink()
    path = saved(record_of(root), folder)
    edited(path, lambda content: content["graphs_scored"].update(test=5))
    assert "5 of 12 samples of test were scored, but it is not marked as a small run" in refusal(check)
    edited(path, lambda content: content.update(graphs_scored={}))
    assert "it does not say how many samples of test were scored" in refusal(check)
    edited(path, lambda content: content.update(graphs_scored={"test": 12}, data_hashes={}))
    assert "it has no hash of the data of test" in refusal(check)
    hashes = record_of(root).data_hashes
    edited(path, lambda content: content.update(data_hashes=hashes, budget={**content["budget"], "small": False}))
    assert "it counts as a full budget, but" in refusal(check)


def test_protocols_that_a_dataset_does_not_have(folder, root, check):
    path = saved(record_of(root), folder)
    edited(path, lambda content: content.update(protocol="anything <b>|x"))
    assert "the protocol 'anything <b>|x' is stated; runs on algoreas/" in refusal(check)


def test_numbers_that_cannot_be_averaged(folder, root, check):
    path = saved(record_of(root), folder)
    edited(path, lambda content: content.update(wall_seconds=1e200))
    assert "wall_seconds is beyond 1e+100" in refusal(check)


def test_scores_that_cannot_be_and_splits_that_do_not_exist(folder, root, check):
    for scores, fault in [
        ({"test": {"f1": 1.5}}, "f1 is 1.5, outside its range from 0 to 1"),
        ({"test": {"accuracy": 0.5}}, "test has no score of f1, the metric that ranks models"),
        ({"val": {"f1": 0.5}}, "no scores of test, by which models are ranked"),
        ({"test": {"f1": 0.5}, "tset": {"f1": 0.5}}, "it has scores of 'tset', which is no split"),
        ({"test": {"f1": "0.5; DROP TABLE"}}, "scores.test.f1"),
        ({"test": {"f1": 0.5, "x" * 500: 1}}, "is no name of a split, metric or curve"),
        ({}, "no scores of test"),
    ]:
        path = saved(record_of(root), folder)
        edited(path, lambda content, scores=scores: content.update(scores=scores))
        assert fault in refusal(check), scores


def test_records_that_were_edited_or_are_no_records(folder, root, check):
    path = saved(record_of(root), folder)
    text = path.read_text()
    path.write_text(text.replace('"accuracy": 0.5', '"accuracy": 0.9'))
    assert "was changed after its run wrote it: its digest does not fit" in refusal(check)
    path.write_text(text.replace('"f1": 0.25', '"f1": NaN'))
    assert "no JSON record: it has the value NaN" in refusal(check)
    path.write_text(text.replace('"seed": 0', '"seed": ' + "9" * 400, 1))
    assert "no JSON record: it has a number of 400 digits" in refusal(check)
    path.write_text(text.replace('"seed": 0,', '"seed": 0, "seed": 1,', 1))
    assert "the key 'seed' appears twice" in refusal(check)
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert "it begins with a byte order mark" in refusal(check)
    path.write_bytes(text.encode().replace(b'"mine"', b'"m\xffne"'))
    assert "it is not UTF-8" in refusal(check)
    path.write_text("[" * 200_000)
    assert "nested too deeply" in refusal(check)
    path.write_text(text.replace('"notes": ""', '"notes": "\\u001b]0;owned\\u0007"'))
    assert "the character \\x1b, which cannot be printed" in refusal(check)
    path.write_text(text.replace('"schema": 2', '"schema": 99'))
    assert "has the record format 99, newer than this version reads" in refusal(check)
    path.write_text("[1, 2]")
    assert "[1, 2] is refused: write keys with values" in refusal(check)
    path.write_text(text.replace('"notes": ""', f'"notes": "", "{HOSTILE}": 1'))
    assert "was changed" in refusal(check)
    path.write_bytes(b'"' + b"a" * (17 * 2**20) + b'"')
    assert "it is larger than 16,777,216 bytes" in refusal(check)


def test_records_without_a_digest_are_refused(folder, root, check):
    path = saved(record_of(root), folder)
    assert check().accepted
    content = json.loads(path.read_text())
    del content["digest"]
    path.write_text(json.dumps(content))
    assert "it has no digest, so an edit of it would not be noticed" in refusal(check)
    path.write_text(json.dumps({**content, "schema": 1}))  # of the format that is older than digests
    assert "it has no digest, so an edit of it would not be noticed" in refusal(check)


@pytest.mark.parametrize("score", ["0.25", True])
def test_scores_that_are_no_numbers(folder, root, check, score):
    edited(saved(record_of(root), folder), lambda content: content["scores"]["test"].update(f1=score))
    assert f"f1 of test is {score!r}, which is no number" in refusal(check)


def test_scores_of_no_metric(folder, root, check):
    path = saved(record_of(root), folder)
    edited(path, lambda content: content["scores"]["test"].update(f1_start=0.5))
    assert check().accepted  # as of one of several outputs
    edited(path, lambda content: content["scores"]["test"].update(foo=12.0))
    assert "it has a score 'foo' of test, which is no metric" in refusal(check)


def test_replicates_that_are_not_those_of_the_score(folder, root, check):
    path = saved(record_of(root), folder)
    near, far = ([centre - 0.01, centre, centre + 0.01] * 20 for centre in (0.25, 0.1))
    edited(path, lambda content: content.update(replicates={"test": near}))
    assert check().accepted
    for values in (far, [0.26] * 60):
        edited(path, lambda content, values=values: content.update(replicates={"test": values}))
        assert "f1 of test is far from its bootstrap replicates" in refusal(check)


def test_scores_without_their_predictions_are_those_of_the_records(folder, check, targets):
    predict(folder, targets, splits="val,test")
    assert check(records=folder / "records").accepted
    assert "no predictions" not in told(check(), "remark") + told(check(), "missing")
    for seed in range(3):
        (place_of(folder, seed=seed) / "test.npz").unlink()
    report = check()
    assert "no predictions of test of seeds 0, 1, 2, so its scores come from the records" in told(report, "remark")
    assert set(report.datasets[0].recomputed.values()) == {("val",)}


def test_records_that_say_less_than_a_later_description(folder, check, targets):
    predict(folder, targets, seeds=range(1))
    assert check(records=folder / "records").accepted
    describe(folder, datasets={TREES: {"steps": 10, "gpu": "NVIDIA A100", "training_seconds": 60}})
    found = refusal(check)
    for key in ("steps: 10", "gpu: NVIDIA A100", "training_seconds: 60"):
        assert f"submission.yaml says {key}" in found
    assert "the record of seed 0 does not state it; correct one, or remove the record and write it again" in found
    describe(folder, description="Two layers.")
    report = check()
    assert report.accepted and "says other things of the model than the records of seed 0" in told(report, "remark")


def test_nothing_is_written_of_a_submission_that_is_refused_as_a_whole(folder, check, targets):
    predict(folder, targets, seeds=range(1))
    (folder / "broken.json").write_text("{}")
    report = check(records=folder / "written")
    assert "broken.json" in told(report) and all(entry.verdict is not Verdict.REFUSED for entry in report.datasets)
    assert report.written == [] and not (folder / "written").exists()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, None),
        ({"config": {"limit": 200}}, "its splits were limited to 200 samples"),
        ({"config": {"overridden": ["model.hidden"]}}, "it changed keys of its configuration"),
        ({"config": {"training": {"steps": 3, "patience": None}}}, "it has 3 steps, and gin 11,880"),
        ({"steps": 3}, "it took 3 of 11,880 steps"),
        ({"model": "gin_small"}, "gin_small is a small configuration"),
        ({"model": "mine"}, "mine is none of graphbench's configurations"),
        ({"model": "mine.yaml"}, "mine.yaml is none of graphbench's configurations"),
    ],
)
@pytest.mark.thorough
def test_full_budgets_that_the_record_itself_contradicts(change, why, tmp_path, monkeypatch):
    (tmp_path / "mine.yaml").write_text("training: {steps: 1}")
    monkeypatch.chdir(tmp_path)
    (record,) = [r for r in load_records("algoreas/mst_easy") if r.budget.small is False and r.model == "gin"]
    config = {**record.config, **change.get("config", {})}
    found = smaller_than_full(record.model_copy(update={**change, "config": config}), graphbench.card("mst_easy"))
    assert found is None if why is None else found is not None and why in found


def test_runs_of_several_configurations(folder, root, check):
    saved(record_of(root, 0, steps=10, batch_size=4, config={"lr": 0.1}), folder)
    saved(record_of(root, 1, steps=20, batch_size=4, config={"lr": 0.2}), folder)
    assert "the runs have 2 configurations, which differ in config.lr, steps; submit the runs of one" in refusal(check)
    (folder / "submission.yaml").unlink()
    saved(record_of(root, 1, model="other"), folder)
    assert "the runs are of 2 models (mine, other); give each one folder" in refusal(check)


def test_a_budget_that_contradicts_the_record(folder, root, check):
    describe(folder, datasets={TREES: {"steps": 9, "batch_size": 4}})
    saved(record_of(root, steps=10, batch_size=4), folder)
    assert "submission.yaml says steps: 9, the record of seed 0 has 10" in refusal(check)


def test_a_decoder_that_would_run_for_years(folder, root, check):
    split = graphbench.Loader(SETS, root=root, workers=1).load("test").test
    np.save(place_of(folder, SETS) / "test.npy", np.zeros(int(split.flat.node_ptr[-1]), np.float32))
    config = {"training": {"decoding": {"restarts": 10**12}}}
    scores = {"test": {"set_size": 3.0}}
    record = type(record_of(root)).from_scores({"test": split}, scores, model="mine", config=config)
    saved(record, folder)
    assert "training.task.decoding.restarts = 1000000000000, more than the 1,000 with which scores" in refusal(check)


# ------------------------------------------------------------------------------------------------ predictions


def test_nothing_is_unpickled(folder, check, targets, tmp_path):
    mark, place = tmp_path / "mark", place_of(folder)
    bomb = Bomb(mark)
    np.save(place / "test.npy", np.array([bomb], object), allow_pickle=True)
    assert "holds Python objects, which are never unpickled" in refusal(check)
    (place / "test.npy").unlink()
    np.savez(place / "test.npz", y_pred=np.array([bomb], object))
    assert "holds Python objects, which are never unpickled" in refusal(check)
    (place / "test.npz").write_bytes(pickle.dumps(bomb))
    assert "test.npz is damaged" in refusal(check)
    torch.save({"y_pred": torch.zeros(3), "bomb": bomb}, place / "test.npz")
    assert "which is no array" in refusal(check)
    (place / "test.npz").unlink()
    torch.save(bomb, place / "test.pt")
    assert "test.pt belongs to no split" in refusal(check)
    (place / "test.pt").unlink()
    predict(folder, targets, seeds=range(1))
    (folder / "model.pkl").write_bytes(pickle.dumps(bomb))
    torch.save(bomb, folder / "weights.pt")
    report = check()
    assert report.accepted and report.unread == 2
    (folder / "submission.yaml").write_text(f"!!python/object/apply:pathlib.Path.touch [{str(mark)!r}]\n")
    assert "could not determine a constructor" in refusal(check)
    assert not mark.exists()
    pickle.loads(pickle.dumps(bomb))
    assert mark.exists()  # the bomb would have worked


def test_predictions_that_are_nan_too_few_or_of_another_shape(folder, check, targets):
    place, right = place_of(folder) / "test.npz", targets("test")
    for wrong, fault in [
        (np.where(np.arange(len(right)) == 3, np.nan, right), "nan"),
        (np.where(np.arange(len(right)) == 3, np.inf, right), "inf"),
        (right[:-1], f"has {len(right) - 1:,} rows, {TREES} test has {len(right):,}"),
        (np.zeros(10**6, bool), f"has 1,000,000 rows, {TREES} test has {len(right):,}"),
        (right.astype(float) * 7, "probabilit"),
        (np.zeros((len(right), 3)), "shape"),
        (right.astype(complex), "complex"),
        (np.full(len(right), "yes"), "dtype <u3"),
        (np.zeros((0,)), "has 0 rows"),
        (np.array(1.0), "single value"),
    ]:
        np.savez(place, y_pred=wrong)
        found = refusal(check)
        assert f"predictions/{TREES}/seed0: test.npz" in found and fault.lower() in found.lower(), found


def test_labels_that_are_logits_are_said_to_be_so(folder, check, targets):
    np.savez(place_of(folder) / "test.npz", y_pred=np.where(targets("test"), 3.0, -3.0))
    assert "`scores: logit` for the dataset in submission.yaml" in refusal(check)
    describe(folder, datasets={TREES: {"scores": "logit"}})
    assert check().datasets[0].values("test") == [1.0]


def test_infeasible_solutions_are_refused(folder, root, check):
    split = graphbench.Loader(SETS, root=root, workers=1).load("test").test
    np.save(place_of(folder, SETS) / "test.npy", np.ones(int(split.flat.node_ptr[-1]), np.int64))
    found = refusal(check)
    assert ("predictions/co/toy_graphs-mis/seed0: test.npy" in found and "both in" in found.lower()) or "edge" in found


def test_a_million_lines_are_refused_by_their_number_in_little_memory(tmp_path, root):
    folder = tmp_path / "kinship"
    folder.mkdir()
    describe(folder, datasets={"clutrr/gen_23": {"limit": 6}})
    graphbench.Loader("clutrr/gen_23", root=root, limit=6, workers=1).load("test")
    for name, line in (("test.txt", b"aunt\n"), ("test.jsonl", b'"aunt"\n')):
        path = place_of(folder, "clutrr/gen_23") / name
        path.write_bytes(line * 10**6)
        check_submission(folder, root=root)
        tracemalloc.start()
        started = time.process_time()
        report = check_submission(folder, root=root)
        assert time.process_time() - started < 5
        assert tracemalloc.get_traced_memory()[1] < 32 * 2**20
        tracemalloc.stop()
        assert f"{name} has 1,000,000 lines, the split has 6 samples here" in told(report)
        path.unlink()


def test_arrays_and_texts_beyond_the_limits(folder, root, check, targets, monkeypatch):
    predict(folder, targets, seeds=range(1))
    monkeypatch.setattr(limits, "MOST_ARRAY_BYTES", 16)
    assert "bytes of arrays, more than the 16 that are read" in refusal(check)
    monkeypatch.setattr(limits, "MOST_TEXT_BYTES", 4)
    (place_of(folder) / "test.npz").unlink()
    (place_of(folder) / "test.txt").write_text("yes\nno\n")
    assert "(endings: .npz, .npy), and holds a row per column of edge_index" in refusal(check)
    graphbench.Loader("clutrr/gen_23", root=root, limit=6, workers=1).load("test")
    describe(folder, datasets={"clutrr/gen_23": {"limit": 6}})
    (place_of(folder, "clutrr/gen_23") / "test.txt").write_text("aunt\n" * 6)
    assert "test.txt is larger than 4 bytes; write the answers alone" in refusal(check)


def test_words_where_there_are_none_and_broken_lines(tmp_path, root):
    folder = tmp_path / "kinship"
    folder.mkdir()
    describe(folder, datasets={"clutrr/gen_23": {"limit": 3}})
    graphbench.Loader("clutrr/gen_23", root=root, limit=6, workers=1).load("test")
    place = place_of(folder, "clutrr/gen_23")
    for content, fault in [
        (b"\xff\xfe\n\n\n", "codec can't decode"),
        (b'"aunt"\n' + b"[" * 100_000 + b'\n"aunt"\n', "line 2 is no JSON"),
        (b'"aunt"\n{"output": NaN}\n"aunt"\n', "line 2 is '{\"output\": NaN}'; write a string"),
        (b'"aunt"\n' + b"9" * 10_000 + b'\n"aunt"\n', "line 2 is no JSON"),
        (b"", "are an empty file"),
        (b'"aunt"\n"aunt"\n', "has 2 answers, clutrr/gen_23 test has 3 graphs"),
        (b'"\\u001b[31m"\n' * 3, "no answer names a class"),
    ]:
        (place / "test.jsonl").write_bytes(content)
        report = check_submission(folder, root=root)
        found = told(report)
        assert report.datasets[0].verdict is Verdict.REFUSED and fault in found, (content[:20], found)
        assert found.replace("\n", "").isprintable()


def test_two_files_of_one_split_and_files_of_none(folder, check, targets):
    predict(folder, targets, seeds=range(1))
    np.save(place_of(folder) / "test.npy", targets("test"))
    assert "test.npy and test.npz are predictions of the same split; keep one" in refusal(check)
    (place_of(folder) / "test.npy").rename(place_of(folder) / "tset.npy")
    assert "tset.npy belongs to no split (train, val, test, n14)" in refusal(check)


def test_predictions_in_the_wrong_place(folder, check, targets):
    base = folder / "predictions"
    for name, fault in [
        ("test.npz", "test.npz: predictions lie in predictions/<domain>/<dataset>[-<task>]/seed<number>/"),
        (f"{TREES}/test.npz", "predictions lie in"),
        (f"{TREES}/first/test.npz", f"predictions/{TREES}/first: no seed"),
        (f"{TREES}/seed1e9/test.npz", "no seed"),
        (f"{TREES}/seed-1/test.npz", "no seed"),
        ("algoreas/toy*/seed0/test.npz", "no id of a dataset"),
        ("algoreas/<b>/seed0/test.npz", "predictions/algoreas/<b>: no id of a dataset"),
        ("algoreas/nothing/seed0/test.npz", "unknown dataset 'algoreas/nothing'"),
        ("co/toy_graphs-mas/seed0/test.npz", "unknown task 'co/toy_graphs:mas'; did you mean"),
    ]:
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path.open("wb"), targets("test"))
        assert fault in refusal(check), name
        path.unlink()


# ------------------------------------------------------------------------------------------------ folders


def test_links_and_special_files_are_not_read(folder, check, targets, tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    predict(folder, targets, seeds=range(1))
    (folder / "a.json").symlink_to(secret)
    report = check()
    assert not report.accepted and report.datasets == []  # nothing else was read
    assert "a.json: it is a symbolic link, which is not followed; put the file itself there (nothing was" in told(
        report
    )
    (folder / "a.json").unlink()
    (folder / "records").symlink_to("/", target_is_directory=True)
    assert "records: it is a symbolic link" in refusal(check)
    (folder / "records").unlink()
    (place_of(folder) / "val.npz").symlink_to(place_of(folder) / "test.npz")
    assert "val.npz: it is a symbolic link" in refusal(check)
    (place_of(folder) / "val.npz").unlink()
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    assert "loop: it is a symbolic link" in refusal(check)
    (folder / "loop").unlink()
    os.mkfifo(folder / "pipe.json")
    assert "pipe.json: it is no ordinary file; remove it" in refusal(check)
    (folder / "pipe.json").unlink()
    assert check().accepted


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("a\nb.json", "a\\nb.json"),
        ("\x1b[2J.json", "\\x1b[2J.json"),
        ("\u202ecod.json", "\\u202ecod.json"),
        (os.fsdecode(b"\xff.json"), "\\udcff.json"),
        ("x" * 230 + ".json", "x" * 100),
    ],
)
def test_names_of_files_that_cannot_be_printed(folder, check, name, seen):
    (folder / name).write_text("{}")
    found = refusal(check)
    assert seen in found and "its name is a text" in found


def test_too_many_and_too_deep(folder, check, monkeypatch):
    deep = folder.joinpath(*["a"] * 12)
    deep.mkdir(parents=True)
    assert "folders lie more than 8 deep" in refusal(check)
    monkeypatch.setattr(folders, "MOST_RUNS", 3)
    for number in range(4):
        (folder / f"{number}.json").write_text("{}")
    (folder / "a").rename(folder / ".hidden")
    assert "records: there are 4 of them; at most 3 are read" in refusal(check)
    monkeypatch.setattr(folders, "MOST_FILES", 5)
    for number in range(8):
        (folder / f"{number}.txt").touch()
    assert "there are more than 5 files" in refusal(check)


# ------------------------------------------------------------------------------------------------ submission.yaml


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("model: [", "while parsing a flow node"),
        ("- a\n- b\n", "it holds no keys"),
        ("a: 1\na: 2\n", "the key 'a' appears twice"),
        ("a: &x [1]\nb: *x\n", "line 2: it has an alias (*x); write the value itself"),
        ("a: " + "[" * 30_000 + "]" * 30_000, "nested too deeply"),
        ("a: " + "9" * 6000, "it cannot be read"),
        ("a: 2020-13-45\n", "it cannot be read"),
        ("a: \x1b[2J\n", "it cannot be read"),
        ("a: !!python/object/apply:os.system ['true']\n", "could not determine a constructor"),
        ("#" * 70_000, "it is larger than 65,536 bytes"),
        ("\ufeffmodel: a\n", "byte order mark"),
    ],
)
def test_descriptions_that_are_no_yaml(folder, check, content, fault):
    (folder / "submission.yaml").write_text(content, encoding="utf-8")
    assert fault in refusal(check)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"model": HOSTILE}, "model = '<script>alert(1)</script>' is refused"),
        ({"model": "[link=https://evil.example]x[/link]"}, "model = "),
        ({"model": "../../etc/cron.d/x"}, "model = "),
        ({"model": "x" * 100}, "at most 60 characters"),
        ({"model": 7}, "model = 7 is refused"),
        ({"authors": ["\x1b]8;;https://evil.example\x07click"]}, "the character \\x1b, which cannot be printed"),
        ({"authors": ["a\nb"]}, "the character \\n"),
        ({"authors": ["\u202egnp.exe"]}, "\\u202e"),
        ({"authors": ["x" * 500]}, "at most 200 characters"),
        ({"authors": []}, "authors"),
        ({"authors": "Ada"}, "authors"),
        ({"licence": " "}, "it is empty"),
        ({"description": "x" * 5000}, "at most 2000 characters"),
        ({"code": "javascript:alert(1)"}, "code = 'javascript:alert(1)' is refused"),
        ({"code": 'https://a.example/"onload="alert(1)'}, "code = "),
        ({"paper": "https://a.example/<script>"}, "paper = "),
        ({"schema": 2}, "schema = 2 is refused"),
        ({"run": "rm -rf /"}, "unknown key 'run'"),
        ({"datasets": {TREES: {"steps": float("nan")}}}, "steps"),
        ({"datasets": {TREES: {"steps": -1}}}, "steps = -1 is refused"),
        ({"datasets": {TREES: {"steps": 10**30}}}, "steps"),
        ({"datasets": {TREES: {"steps": "100"}}}, "steps"),
        ({"datasets": {TREES: {"training_seconds": float("inf")}}}, "training_seconds"),
        ({"datasets": {TREES: {"gpu": "\x07"}}}, "\\x07"),
        ({"datasets": {"algoreas/*": None}}, "stands for"),
        ({"datasets": {"algoreas/nothing": None}}, "unknown dataset"),
        ({"datasets": {f"{HOSTILE}": None}}, "unknown dataset"),
    ],
)
def test_values_of_the_description_that_are_refused(folder, check, targets, changes, fault):
    predict(folder, targets, seeds=range(1))
    describe(folder, **changes)
    assert fault in refusal(check)
    if "datasets" not in changes:
        assert check(records=folder / "written").written == [] and not (folder / "written").exists()


def test_html_of_a_submission_is_text_in_the_report(folder, check, targets, tmp_path):
    text = f"{HOSTILE} <img src=x onerror=alert(1)> [link=https://evil.example]x[/link] | a | b"
    describe(folder, authors=[text], description=text, datasets={TREES: {"gpu": text}})
    predict(folder, targets)
    report = check(records=tmp_path / "records")
    assert report.accepted
    paths = build_report(load_records(records=tmp_path / "records"), tmp_path / "report")
    assert {path.suffix for path in paths} == {".md", ".html"}
    for path in paths:
        page = path.read_text()
        assert "<script>alert(1)" not in page and "<img src=x" not in page
        assert "&lt;script" in page
        assert path.suffix == ".html" or ("\\[link=" in page and " [link=" not in page)
    assert yaml.safe_load((folder / "submission.yaml").read_text())["authors"] == [text]


def test_predictions_without_the_record_that_the_others_have(folder, root, check, targets):
    trained = {"kind": "trained", "training": {"steps": 5}}
    for seed in range(2):
        truth = targets("test")
        scores = {
            "test": {"f1": float(2 * (truth & noisy(truth, seed)).sum() / (truth.sum() + noisy(truth, seed).sum()))}
        }
        record = record_of(root, seed, scores=scores)
        saved(record.model_copy(update={"config": trained}), folder)
    predict(folder, targets, seeds=range(3))
    assert "there is no record of seed 2 that can be read, but records of other seeds" in refusal(check)


def test_bytes_changed_at_random_are_findings_and_never_errors(folder, check, targets):
    predict(folder, targets, seeds=range(1))
    assert check(records=folder / "records").accepted
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    whole = {path: path.read_bytes() for path in files}
    rng = np.random.default_rng(0)
    accepted = 0
    for _ in range(60):
        path = files[rng.integers(len(files))]
        content = bytearray(whole[path])
        first, last = sorted(rng.integers(0, len(content), 2))
        last = min(last, first + 8)
        content[first:last] = [bytes(rng.integers(0, 256, 8, np.uint8)), b"NaN", b"\x1b[2J", b"[[[[", b""][
            rng.integers(5)
        ]
        path.write_bytes(content)
        report = check()
        assert all(finding.line.isprintable() for entry in report.datasets for finding in entry.findings)
        accepted += report.accepted
        path.write_bytes(whole[path])
    assert check().accepted and accepted < 30


# ------------------------------------------------------------------------------------------------ advice


def test_arrays_far_larger_than_the_split_are_refused_by_their_header(folder, check, targets):
    np.savez_compressed(place_of(folder) / "test.npz", y_pred=np.zeros(2**28, bool))
    tracemalloc.start()
    found = refusal(check)
    assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    tracemalloc.stop()
    assert f"holds {2**28 + 128:,} bytes of arrays, more than the" in found


def test_a_seed_is_written_in_one_way(folder, check, targets):
    predict(folder, targets, seeds=range(1))
    (place_of(folder).parent / "seed01").mkdir()
    np.savez(place_of(folder).parent / "seed01" / "test.npz", y_pred=targets("test"))
    assert f"predictions/{TREES}/seed01: no seed, which is written without" in refusal(check)


def test_negative_seeds_of_records_are_refused(folder, root, check):
    saved(record_of(root, 3).model_copy(update={"seed": -3}), folder)
    assert "its seed is -3; number the runs from 0 on" in refusal(check)


def test_predictions_are_not_scored_without_the_limit_that_an_unreadable_description_may_state(folder, check, targets):
    predict(folder, lambda split: targets(split)[:5], seeds=range(2))
    (folder / "submission.yaml").write_text("model: [")
    report = check()
    assert "not scored: submission.yaml, which may state a limit, cannot be read" in told(report)
    assert "rows" not in told(report) and report.datasets[0].lost == [0, 1]


def test_advice_names_the_key_and_no_option_of_another_command(folder, check, targets):
    predict(folder, lambda split: targets(split)[:5], seeds=range(1))
    found = refusal(check)
    assert "write `limit:` for the dataset in submission.yaml" in found and "--limit" not in found


def test_a_column_of_predictions_is_scored_as_its_numbers_or_refused_by_its_shape(folder, check, targets):
    np.savez(place_of(folder) / "test.npz", y_pred=targets("test")[:, None])
    report = check()
    assert report.datasets[0].values("test") == [1.0] or "shape" in told(report)


def test_scores_below_the_best_trivial_predictor_are_remarked_on(folder, check, targets, monkeypatch):
    from graphbench.leaderboard.submissions import groups

    monkeypatch.setattr(groups, "best_floor", lambda *_, **__: ("all_positive", 0.75))
    np.savez(place_of(folder) / "test.npz", y_pred=~targets("test"))
    assert "worse than the score of the best trivial predictor (all positive, 0.75)" in told(check(), "remark")
    predict(folder, targets, seeds=range(1))
    assert "trivial" not in told(check(), "remark")


def test_seeds_that_are_lost_are_named_and_scores_belong_to_their_runs(folder, check, targets, capsys):
    from graphbench.cli import show_submission

    predict(folder, targets, seeds=range(3), splits="val,test")
    (place_of(folder, seed=1) / "test.npz").write_bytes(b"nothing")
    (place_of(folder, seed=2) / "val.npz").unlink()
    report = check()
    (found,) = report.to_dict()["datasets"]
    assert found["lost_seeds"] == [1]
    assert set(found["scores"]["test"]) == {"0", "2"} and set(found["scores"]["val"]) == {"0"}
    show_submission.report(report, as_json=False)
    assert "0, 2, 1 refused" in capsys.readouterr().out


def test_a_submission_that_is_refused_as_a_whole_is_not_called_accepted(folder, check, targets, capsys):
    from graphbench.cli import show_submission

    predict(folder, targets, seeds=range(3))
    (folder / "submission.yaml").unlink()
    report = check()
    assert not report.accepted and all(entry.verdict is not Verdict.REFUSED for entry in report.datasets)
    show_submission.report(report, as_json=False)
    printed = capsys.readouterr().out
    assert "1 of 1" not in printed and "something is refused that belongs to no dataset above" in printed


def test_a_number_that_python_cannot_print(folder, check, targets):
    predict(folder, targets, seeds=range(1))
    describe(folder, datasets={TREES: {"steps": 1}})
    place = folder / "submission.yaml"
    place.write_text(place.read_text().replace("steps: 1", f"steps: 0x{'f' * 6000}"))
    assert "it has a number of thousands of digits" in refusal(check)


def test_lines_end_at_line_feeds_alone_and_are_not_long(tmp_path):
    path = tmp_path / "answers.txt"
    path.write_bytes(b"ab\r" * 1000 + b"\r\nx\r\n")
    limits.require_readable(path, 2)
    assert read_texts(path) == ["ab\r" * 1000, "x"]
    path.write_bytes(b'{"output": "a", "x": [' + b"[]," * limits.MOST_LINE_BYTES)
    with pytest.raises(EvaluationError, match="a line of more than 1,048,576 bytes"):
        limits.require_readable(path, 2)


def test_a_model_whose_record_would_be_hidden(folder, targets, check):
    predict(folder, targets, seeds=range(1))
    describe(folder, model=".mine")
    assert "model" in refusal(check)
