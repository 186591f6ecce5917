"""Files of predictions: written for a run, scored split by split, and kept as the record of a user's own model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import graphbench
from graphbench.cli import main
from graphbench.cli.predictions import score_predictions
from graphbench.core.errors import EvaluationError, ResultError
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.build.generation import ensure_split
from graphbench.evaluation.metrics.bootstrap import LEAST_SAMPLES
from graphbench.records.aggregates import aggregate
from graphbench.records.files import load_records, read_record, save_record
from graphbench.records.published import published_budget
from graphbench.records.record import RunRecord
from graphbench.records.stated import Stated, require_protocol
from graphbench.tasks.base import named_scores
from graphbench.tasks.registry import task_of
from graphbench.training.evaluate import evaluate_run

RUNS = Path(__file__).parents[1] / "parity" / "runs"
LIMIT = 10


def run(capsys, *arguments, expect=0):
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert end.value.code == expect, printed
    return printed


def error_of(capsys, *arguments):
    return " ".join(run(capsys, *arguments, expect=2).err.replace("│", " ").split())


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def truth(root):
    """Split -> right answers of the first puzzles of clutrr/gen_23."""
    splits = graphbench.Loader("clutrr/gen_23", root=root, limit=LIMIT, workers=1).load(["val", "test"])
    return {name: np.array([int(splits[name][i].answer) for i in range(LIMIT)]) for name in ("val", "test")}


@pytest.fixture
def folder(truth, tmp_path):
    """A folder of predictions: all right on val, half right on test."""
    path = tmp_path / "predictions"
    path.mkdir()
    np.savez(path / "val.npz", y_pred=truth["val"])
    np.save(path / "test.npy", np.where(np.arange(LIMIT) < 5, truth["test"], (truth["test"] + 1) % 22))
    return path


@pytest.mark.parametrize(
    "name",
    [
        "mst_gin",
        *(
            pytest.param(name, marks=pytest.mark.thorough)
            for name in ("clrs_bfs_mpnn", "clutrr_gat", "co_mis", "clrs_text_bfs")
        ),
    ],
)
def test_what_predict_writes_scores_as_the_run_does(name, tmp_path, root, capsys):
    shutil.copytree(RUNS / name, tmp_path / "run")
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    source = ("--root", root, "--limit", record["config"]["limit"])
    written = run(capsys, "predict", tmp_path / "run", "--split", "val,test", "--device", "cpu", *source).out
    files = sorted(path.name for path in (tmp_path / "run" / "predictions").iterdir())
    ending = "jsonl" if name == "clrs_text_bfs" else "npz"
    assert files == [f"test.{ending}", f"val.{ending}"] and written.count("wrote ") == 2
    arguments = ("evaluate", record["dataset"], "--predictions", tmp_path / "run" / "predictions", "--json", *source)
    found = json.loads(run(capsys, *arguments).out)
    options = {"root": root, "limit": record["config"]["limit"], "device": "cpu", "progress": False}
    own = evaluate_run(tmp_path / "run", ("val", "test"), **options)
    assert list(found) == list(own)
    for split, score in own.items():
        for metric in set(score) - {"seconds_per_graph"}:
            assert found[split][metric] == pytest.approx(score[metric], abs=1e-9), (split, metric)
            # the record was written on another machine, whose last bits may differ
            assert found[split][metric] == pytest.approx(record["scores"][split][metric], abs=0.02), (split, metric)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mst_gin", "clrs_bfs_mpnn", "co_mis", "clrs_text_bfs"])
def test_replicates_of_files_are_paired_with_those_of_the_run(name, tmp_path, root, capsys):
    shutil.copytree(RUNS / name, tmp_path / "run")
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    limit = LEAST_SAMPLES + 4
    run(capsys, "predict", tmp_path / "run", "--split", "test", "--device", "cpu", "--root", root, "--limit", limit)
    path = tmp_path / "run" / "predictions"
    found, _ = score_predictions(record["dataset"], None, path, limit=limit, root=root)
    own = evaluate_run(tmp_path / "run", ("test",), root=root, limit=limit, device="cpu", progress=False)
    assert len(set(own["test"].replicates)) > 1 or name == "clrs_text_bfs"  # its answers are all wrong
    assert found["test"].replicates == pytest.approx(own["test"].replicates, abs=1e-6)
    splits = graphbench.Loader(record["dataset"], root=root, limit=limit).load(["test"])
    kept = RunRecord.from_scores({"test": splits["test"]}, {"test": found["test"]}, model="mine")
    again = read_record(save_record(kept, tmp_path / "records"))
    assert again.replicates == {"test": list(found["test"].replicates)}


def test_predictions_are_written_in_the_order_of_the_split(root):
    for name in ("clrs_text/bfs", "clutrr/gen_23"):
        split = graphbench.Loader(name, root=root, limit=LIMIT, workers=1).load(["test"]).test
        batches = list(task_of(split.card).file_batches(split, 4))
        assert [batch.num_graphs for batch in batches] == [4, 4, 2]
        if name == "clrs_text/bfs":
            found = [text for batch in batches for text in batch.references]
            assert found == [split[i].reference for i in range(LIMIT)]
        else:
            found = np.concatenate([batch.answer for batch in batches]).tolist()
            assert found == [int(split[i].answer) for i in range(LIMIT)]


def test_files_of_several_outputs_come_back_by_name(write_family, root, tmp_path):
    features = {
        "weight": ["input", "edge", "scalar"],
        "in_tree": ["output", "edge", "mask"],
        "model": ["output", "graph", "categorical(6)"],
    }
    (card,) = write_family(features=features, metrics={"primary": "accuracy"})
    split = GraphDataset(card, "val", ensure_split(card, "val", tmp_path, 4, workers=1), limit=4)
    task, rng = task_of(card), np.random.default_rng(0)
    batches = list(split.batches(2))
    predictions = [
        {"in_tree": rng.random(batch.num_edges), "model": rng.random((batch.num_graphs, 6))} for batch in batches
    ]
    evaluator = task.evaluator(expected_graphs=4)
    for batch, own in zip(batches, predictions, strict=True):
        evaluator.update(batch, own)
    path = task.write_predictions(tmp_path / "val", predictions)
    assert path == tmp_path / "val.npz" and set(np.load(path).files) == {"in_tree", "model"}
    assert task.score_file(path, split) == named_scores("val", evaluator)
    np.savez(path, in_tree=np.zeros(3), model=np.zeros(4, int))
    with pytest.raises(
        EvaluationError,
        match=r"val\.npz has 3 rows, algoreas/toy val has [0-9]+",
    ):
        task.score_file(path, split)
    np.savez(path, in_tree=np.zeros(3))
    with pytest.raises(EvaluationError, match=r"array 'model', only 'in_tree'.*save"):
        task.score_file(path, split)


def test_a_folder_holds_one_file_per_split(folder, root, capsys):
    arguments = ("evaluate", "clutrr/gen_23", "--predictions", folder, "--limit", LIMIT, "--root", root)
    found = json.loads(run(capsys, *arguments, "--json").out)
    assert list(found) == ["val", "test"]  # all that the folder has files of, in the card's order
    assert (found["val"]["accuracy"], found["test"]["accuracy"]) == (1.0, 0.5)
    assert list(json.loads(run(capsys, *arguments, "--splits", "test", "--json").out)) == ["test"]
    assert list(json.loads(run(capsys, *arguments, "--splits", "test,val", "--json").out)) == ["test", "val"]
    assert "k5" in error_of(capsys, *arguments, "--splits", "val,k5")
    assert "has no split 'tset'" in error_of(capsys, *arguments, "--splits", "tset")


def test_wrong_files_are_refused_with_the_remedy(folder, root, tmp_path, capsys):
    common = ("evaluate", "clutrr/gen_23", "--limit", LIMIT, "--root", root, "--predictions")
    told = error_of(capsys, *common, folder / "test.npy", "--splits", "val,test")
    assert "is one file for 2 splits; give a folder with one file per split (val.npz)" in told
    (tmp_path / "empty").mkdir()
    told = error_of(capsys, *common, tmp_path / "empty")
    assert "has no predictions of any split; a file is named after its split, e.g. train.npz" in told
    told = error_of(capsys, *common, folder, "--splits", "test,k5")
    assert "has no predictions of k5; a file is named after its split, e.g. k5.npz" in told
    np.save(folder / "test.npy", np.zeros(LIMIT - 1, int))
    told = error_of(capsys, *common, folder)
    assert "has 9 rows, clutrr/gen_23 test has 10 graphs here; write one row per item, graph after" in told
    np.save(folder / "test.npy", np.zeros(LIMIT + 1, int))
    assert "has 11 rows, clutrr/gen_23 test has 10 graphs here" in error_of(capsys, *common, folder)
    for absent in ("absent.npy", "absent.jsonl"):
        assert f"{absent}: the file does not exist" in error_of(capsys, *common, tmp_path / absent)
    told = error_of(capsys, "evaluate", "clutrr/gen_23")
    assert "to score predictions of a dataset add --predictions FILE" in told


def own_record(capsys, folder, root, records, *further):
    arguments = ("evaluate", "clutrr/gen_23", "--predictions", folder, "--root", root)
    out = run(capsys, *arguments, "--model-name", "my_model", "--records", records, *further).out
    (record,) = load_records("*", records)
    assert "wrote" in out
    return record


def report_of(capsys, records, output):
    run(capsys, "report", "clutrr/gen_23", "--records", records, "--output", output)
    return (output / "report.md").read_text(encoding="utf-8")


def test_scores_of_part_of_the_graphs_enter_the_report_as_a_small_run(folder, root, tmp_path, capsys):
    further = ("--limit", LIMIT, "--seed", 4, "--parameters", 123456, "--notes", "my notes")
    record = own_record(capsys, folder, root, tmp_path / "records", *further)
    assert (record.dataset, record.model, record.seed, record.parameters) == ("clutrr/gen_23", "my_model", 4, 123456)
    assert (record.steps, record.batch_size, record.wall_seconds) == (None, None, None)
    assert record.scores["val"]["accuracy"] == 1.0 and record.scores["test"]["accuracy"] == 0.5
    assert record.graphs_scored == {"val": LIMIT, "test": LIMIT} and len(record.data_hashes["test"]) == 64
    assert record.budget.small is True
    assert record.budget.label == "budget not stated, scored on part of the graphs"
    text = report_of(capsys, tmp_path / "records", tmp_path / "report")
    assert "| my_model **[small run]** | ours | 0.5000 |" in text
    assert "not comparable" in text and "my notes" in text


def stated_record(root, scores=None, **stated):
    """Return a record for splits that hold no more than the few puzzles that were scored."""
    splits = graphbench.Loader("clutrr/gen_23", root=root, limit=LIMIT, workers=1).load(["val", "test"])
    sizes = {name: spec.model_copy(update={"count": LIMIT}) for name, spec in splits.card.splits.items()}
    card = splits.card.model_copy(update={"splits": sizes})
    chosen = {name: splits[name] for name in ("val", "test")}
    for split in chosen.values():
        split.card = card
    own = scores or {"val": {"accuracy": 0.75}, "test": {"accuracy": 0.5}}
    least = published_budget(graphbench.card("clutrr/gen_23"))
    return RunRecord.from_scores(chosen, own, model="my_model", published_samples=least, **stated)


def test_the_budget_that_is_stated_decides_what_the_report_says(root, tmp_path, capsys):
    least = published_budget(graphbench.card("clutrr/gen_23"))
    assert least is not None and least > 100
    cases = {
        "unknown": ({}, None, "budget not stated"),
        "half": ({"steps": 5}, None, "batch size not stated"),
        "other half": ({"batch_size": 5}, None, "steps not stated"),
        "below": ({"steps": 2, "batch_size": 4}, True, "small run"),
        "enough": ({"steps": least, "batch_size": 1}, False, ""),
    }
    for name, (stated, small, caveat) in cases.items():
        record = stated_record(root, **stated)
        assert record.budget.small is small, name
        (runs,) = aggregate([record])
        assert (runs.caveat, runs.comparable) == (caveat, small is False), name
        assert runs.mark == (f" ({caveat})" if caveat else "")
        save_record(record, tmp_path / name)
        text = report_of(capsys, tmp_path / name, tmp_path / f"report_{name}")
        assert ("| my_model | ours | 0.5000 |" in text) == (not caveat), name
        assert (f"my_model **[{caveat}]**" in text) == bool(caveat), name
    assert stated_record(root, steps=300).budget.label == "300 steps as stated, batch size not stated"
    assert stated_record(root, batch_size=32).budget.label == "32 samples per step as stated, steps not stated"
    stated = stated_record(root, steps=2, batch_size=4)
    assert stated.budget.label == "2 steps of 4 samples, as stated"
    of_nothing = stated.budget.model_copy(update={"small": None})  # no budget is published to compare with
    (runs,) = aggregate([stated.model_copy(update={"budget": of_nothing})])
    assert (runs.caveat, runs.comparable) == ("no published budget", False)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        ({"accuracy": 1.7}, "accuracy is 1.7.*0 to 1"),
        ({"accuracy": -0.1}, "accuracy is -0.1"),
        ({"macro_f1": 1e308}, "macro_f1 is 1e\\+308"),
        ({"accuracy": float("nan")}, "accuracy"),
        ({"own": float("inf")}, "own"),
    ],
)
def test_scores_that_no_metric_has_are_refused(score, message, root):
    with pytest.raises(ResultError, match=message):
        stated_record(root, {"test": score})


def test_records_of_nothing_or_of_odd_values_are_refused(root):
    with pytest.raises(ResultError, match="no split was scored"):
        RunRecord.from_scores({}, {}, model="m")
    for stated, message in (({"seed": "a"}, "seed"), ({"steps": -1}, "steps"), ({"batch_size": 0}, "batch_size")):
        with pytest.raises(ResultError, match=message):
            stated_record(root, **stated)


def test_a_name_and_a_folder_go_together(folder, root, tmp_path, capsys):
    common = ("evaluate", "clutrr/gen_23", "--predictions", folder, "--limit", LIMIT, "--root", root)
    for lone in (("--model-name", "m"), ("--records", tmp_path / "r")):
        told = error_of(capsys, *common, *lone)
        assert "--records and --model-name go together: a record needs a folder and a name" in told
    told = error_of(capsys, *common, "--model-name", "my model", "--records", tmp_path / "r")
    assert "model = 'my model' is refused: the name of a model has letters (A-Z, a-z), digits, dots, dashes" in told
    assert not (tmp_path / "r").exists()
    shutil.copytree(RUNS / "clutrr_gat", tmp_path / "run")
    told = error_of(capsys, "evaluate", tmp_path / "run", "--records", tmp_path / "r", "--model-name", "m")
    assert "a run has a record already; --records and --model-name are for --predictions" in told


def test_own_models_have_the_protocol_that_they_were_trained_by(root, tmp_path):
    """Without a word it is that of the split train, under which published scores and our runs stand."""
    split = graphbench.Loader("clrs/bfs", root=root, limit=LIMIT, workers=1).load(["test"]).test
    given = {"test": split}, {"test": {"score": 0.5}}
    assert RunRecord.of_statement(*given, Stated("mine")).protocol == "canonical"
    assert RunRecord.of_statement(*given, Stated("mine", protocol="multi_size")).protocol == "multi_size"
    with pytest.raises(ResultError, match=r"'canonicl'.*canonical or multi_size"):
        RunRecord.of_statement(*given, Stated("mine", protocol="canonicl"))
    trees = graphbench.card("algoreas/mst_easy")
    with pytest.raises(ResultError, match=r"'canonical'.*algoreas/mst_easy have none"):
        require_protocol(trees, "canonical")
