"""Costs of trainings elsewhere: measured or stated, the same record from Python and from the command line."""

import json
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import graphbench
from graphbench.cli import main as command_line
from graphbench.core.errors import ResultError
from graphbench.evaluation.metrics import METRICS
from graphbench.leaderboard import leaderboard_of
from graphbench.records.classes import classes_of, core_seconds
from graphbench.records.files import load_records, read_record, stored_records
from graphbench.records.kept import MOST_BYTES
from graphbench.records.stated import StatedCost

ID = "algoreas/bridges_easy"


def main(words):
    """Run a command and raise ``SystemExit`` if it fails."""
    try:
        command_line(words)
    except SystemExit as end:
        if end.code:
            raise


@pytest.fixture(autouse=True)
def specificity():
    """A metric that nothing was scored by when it was recorded: the share of the negatives that are found."""

    def value(counts):
        return counts.true_negative / (counts.true_negative + counts.false_positive)

    graphbench.register_metric(replace(METRICS["recall"], name="specificity", value=value))
    yield
    METRICS.remove("specificity")


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    return graphbench.Loader(ID, root=tmp_path_factory.mktemp("data"), limit=40, workers=1).load(())


@pytest.fixture(scope="module")
def answers(splits):
    return np.concatenate([batch.is_bridge.numpy() for batch in splits["test"].batches(64)]).astype(float)


@pytest.fixture(scope="module")
def score(splits, answers):
    rows = iter(np.split(answers, np.cumsum([data.num_edges for data in splits["test"]])[:-1]))
    return graphbench.evaluate_model(lambda batch: next(rows), splits["test"], batch_size=1)


def test_a_measured_training_has_its_times_memory_threads_and_machine(splits, score):
    with graphbench.measure() as cost:
        assert cost.wall_seconds is None
        subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"], check=True)
        time.sleep(0.2)
    assert cost.wall_seconds > 0.2 and cost.cpu_seconds > 0 and cost.peak_memory_bytes > 1e7
    assert cost.hardware["device"] == "cpu" and cost.hardware["cores"] >= 1 and cost.threads >= 1
    record = graphbench.RunRecord.from_scores({"test": splits["test"]}, {"test": score}, model="mine", cost=cost)
    assert (record.wall_seconds, record.cpu_seconds) == (cost.wall_seconds, cost.cpu_seconds)
    assert classes_of([record], splits.card)[0] == "minutes"
    (board,) = [b for b in leaderboard_of([record]).boards if b.budget_class == "minutes"]
    assert board.rows[0].cost.cpu_seconds == cost.cpu_seconds


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux counts a peak anew")
def test_the_peak_of_memory_is_that_of_the_block():
    """What was freed before the block does not count; what an inner block has freed counts in both."""

    def fill(size):
        np.ones(size // 8).sum()

    size = 300_000_000
    fill(2 * size)
    with graphbench.measure() as outer:
        fill(size)
        with graphbench.measure() as inner:
            pass
    assert outer.peak_memory_bytes - inner.peak_memory_bytes > 0.8 * size
    with graphbench.measure() as after:
        pass
    with graphbench.measure() as outer, graphbench.measure() as inner:
        fill(size)
    assert min(outer.peak_memory_bytes, inner.peak_memory_bytes) - after.peak_memory_bytes > 0.8 * size
    assert outer.peak_memory_bytes - after.peak_memory_bytes < 1.5 * size


def test_a_failed_training_is_measured_too():
    with pytest.raises(ZeroDivisionError), graphbench.measure() as cost:
        1 / 0  # noqa: B018
    assert cost.wall_seconds is not None


def test_the_same_statement_from_python_and_from_the_command_line_is_the_same_record(
    tmp_path, splits, score, answers, monkeypatch
):
    np.save(tmp_path / "test.npy", answers)
    root = splits["test"].path.parents[2]
    line = (
        f"evaluate {ID} --predictions {tmp_path} --limit 40 --root {root} --records {tmp_path / 'records'} "
        "--model-name mine --steps 10 --batch-size 5 --parameters 7 --train-seconds 20 --cpu-seconds 30 --memory 12.5"
    )
    main([*line.split(), "--cpu", "a processor"])
    (theirs,) = load_records(records=tmp_path / "records")
    machine = {"cpu": "a processor", "gpu": None, "gpus": 0, "device": "cpu"}
    cost = StatedCost(20.0, 30.0, None, 12_500_000, machine)
    ours = graphbench.RunRecord.from_scores(
        {"test": splits["test"]}, {"test": score}, model="mine", steps=10, batch_size=5, parameters=7, cost=cost
    )
    assert theirs.predictions and not ours.predictions
    same = {"started": ours.started, "predictions": {}}
    assert theirs.model_copy(update=same) == ours and theirs.relative_path == ours.relative_path
    assert classes_of([theirs], splits.card)[0] == "minutes"


def test_a_rule_was_not_trained(splits, score):
    record = graphbench.RunRecord.from_scores(
        {"test": splits["test"]}, {"test": score}, model="rule", untrained=True, deterministic=True
    )
    assert record.parameters == 0 and record.cpu_seconds == 0 and record.budget.label.startswith("nothing was trained")
    assert classes_of([record], splits.card) == ("minutes", "paper", "open")
    with pytest.raises(ResultError, match="nothing was trained, but"):
        graphbench.RunRecord.from_scores(
            {"test": splits["test"]}, {"test": score}, model="rule", untrained=True, steps=5
        )


def test_a_time_on_the_clock_alone_says_nothing_of_processors(splits, score):
    def classes(cost):
        made = graphbench.RunRecord.from_scores({"test": splits["test"]}, {"test": score}, model="mine", cost=cost)
        return core_seconds(made), classes_of([made], splits.card)[0]

    assert classes(StatedCost(wall_seconds=60.0)) == (None, "open")
    assert classes(StatedCost(wall_seconds=60.0, threads=2)) == (120.0, "minutes")
    assert classes(StatedCost(cpu_seconds=1801.0)) == (1801.0, "open")
    assert classes(StatedCost(10.0, 10.0, hardware={"device": "cuda", "gpu": "a GPU"})) == (None, "open")
    for wrong in (-1.0, float("inf"), float("nan"), "60"):
        with pytest.raises(ResultError, match="cpu_seconds is"):
            StatedCost(cpu_seconds=wrong)


def test_more_processor_time_than_the_machine_has_is_refused(splits, score):
    machine = {"cores": 2, "device": "cpu"}
    assert StatedCost(10.0, 20.0, hardware=machine).cpu_seconds == 20.0
    with pytest.raises(ResultError, match="cpu_seconds is 40, more than the 2 cores"):
        StatedCost(10.0, 40.0, hardware=machine)
    with pytest.raises(ResultError, match="more than 4,096 cores have in wall_seconds = 1"):
        StatedCost(1.0, 5000.0)
    with pytest.raises(ResultError, match="0 seconds"):
        graphbench.RunRecord.from_scores(
            {"test": splits["test"]}, {"test": score}, model="mine", cost=StatedCost(0.0, 0.0)
        )


def test_a_measured_cost_goes_to_the_command_line_in_a_file(splits, score, tmp_path):
    with graphbench.measure() as cost:
        sum(range(300_000))
        with pytest.raises(ResultError, match="no time yet"):
            cost.save(tmp_path / "early.json")
    cost.save(tmp_path / "cost.json")
    assert StatedCost.load(tmp_path / "cost.json") == cost
    np.save(tmp_path / "test.npy", np.concatenate([graph.y.numpy() for graph in splits["test"]]).astype(float))
    root = splits["test"].path.parents[2]
    place = (
        f"--predictions {tmp_path / 'test.npy'} --splits test --limit 40 --root {root} --records {tmp_path / 'records'}"
    )
    line = f"evaluate {ID} {place} --model-name mine --cost {tmp_path / 'cost.json'}"
    main(line.split())
    (record,) = load_records(records=tmp_path / "records")
    assert record.cpu_seconds == cost.cpu_seconds and record.threads == cost.threads
    with pytest.raises(SystemExit):
        main([*line.split(), "--train-seconds", "3"])
    with pytest.raises(SystemExit):
        main([*line.split(), "--untrained"])
    with pytest.raises(SystemExit):
        main(f"evaluate {ID} {place.split(' --records')[0]} --cost {tmp_path / 'cost.json'}".split())
    for text in ("[]", "{}", '{"seconds": 3}', '{"hardware": 3}', '{"cpu_seconds": -1}', "{"):
        (tmp_path / "cost.json").write_text(text)
        with pytest.raises(ResultError):
            StatedCost.load(tmp_path / "cost.json")


# ------------------------------------------------------------------------------------------- further metrics


def kept(tmp_path, splits, answers):
    np.save(tmp_path / "test.npy", answers)
    root = splits["test"].path.parents[2]
    line = (
        f"evaluate {ID} --predictions {tmp_path} --limit 40 --root {root} --records {tmp_path / 'r'} --model-name mine"
    )
    main(line.split())
    (path,) = (tmp_path / "r").rglob("*.json")
    return path, root


def test_a_metric_is_added_from_kept_predictions(tmp_path, splits, answers):
    wrong = answers.copy()
    wrong[: len(wrong) // 3] = 1.0
    path, root = kept(tmp_path, splits, wrong)
    assert path.with_name(f"{path.stem}.test.npy").stat().st_size < MOST_BYTES
    before = read_record(path)
    main(["evaluate", str(path), "--again", "specificity", "--root", str(root)])
    after = read_record(path)
    from sklearn.metrics import recall_score

    truth = answers > 0.5
    assert after.scores["test"]["specificity"] == pytest.approx(recall_score(~truth, wrong <= 0.5))
    del after.scores["test"]["specificity"]
    assert after == before


def test_predictions_that_changed_or_are_of_another_run_are_refused(tmp_path, splits, answers, capsys):
    path, root = kept(tmp_path, splits, answers)
    content = path.read_text()
    beside = path.with_name(f"{path.stem}.test.npy")
    np.save(beside, 1 - answers)
    with pytest.raises(SystemExit):
        main(["evaluate", str(path), "--again", "specificity", "--root", str(root)])
    assert "was changed after it was scored" in " ".join(capsys.readouterr().err.split())
    beside.unlink()
    with pytest.raises(SystemExit):
        main(["evaluate", str(path), "--again", "specificity", "--root", str(root)])
    assert "neither predictions nor weights" in " ".join(capsys.readouterr().err.split())
    assert path.read_text() == content


def test_predictions_that_were_not_kept_are_given_again(tmp_path, splits, answers, capsys):
    path, root = kept(tmp_path, splits, answers)
    path.with_name(f"{path.stem}.test.npy").unlink()
    again = ["evaluate", str(path), "--again", "specificity", "--root", str(root), "--predictions"]
    np.save(tmp_path / "other.npy", 1 - answers)
    with pytest.raises(SystemExit):
        main([*again, str(tmp_path / "other.npy")])
    assert "its hash is another one" in " ".join(capsys.readouterr().err.split())
    main([*again, str(tmp_path / "test.npy")])
    assert read_record(path).scores["test"]["specificity"] == 1.0
    assert "specificity" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "words"), [("mae", "cannot score"), ("nothing", "nothing")])
def test_metrics_that_do_not_fit_are_refused(tmp_path, splits, answers, capsys, name, words):
    path, root = kept(tmp_path, splits, answers)
    with pytest.raises(SystemExit):
        main(["evaluate", str(path), "--again", name, "--root", str(root)])
    assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.thorough
def test_a_metric_is_added_from_the_weights_of_a_run(tmp_path, splits):
    run = tmp_path / "run"
    root = splits["test"].path.parents[2]
    options = {"limit": 40, "root": root, "output": run, "progress": False, "evaluate": "val,test"}
    result = graphbench.train(ID, "arcs", steps=3, overrides={"training": {"batch_size": 4}}, **options)
    main(["evaluate", str(run), "--again", "specificity", "--root", str(root), "--records", str(tmp_path / "r")])
    assert read_record(run / "record.json") == result.record
    main(["evaluate", str(run), "--again", "specificity", "--root", str(root)])
    record = read_record(run / "record.json")
    assert record.scores.keys() == {"val", "test"}
    assert all("specificity" in own for own in record.scores.values())
    assert record.scores["test"]["f1"] == result.scores["test"]["f1"]
    (other,) = load_records(records=tmp_path / "r")
    assert json.loads(other.to_json()) == json.loads(record.to_json())


def test_a_metric_is_added_from_the_stored_weights_of_a_committed_record(tmp_path):
    path = next(path for path, r in stored_records(ID) if (r.model, r.seed) == ("arcs", 0))
    line = (
        f"evaluate {path} --again specificity --splits val_large --records {tmp_path / 'r'} --root {tmp_path / 'data'}"
    )
    main(line.split())
    (record,) = load_records(records=tmp_path / "r")
    found = record.scores["val_large"]["specificity"]
    assert 0.9 < found <= 1 and "specificity" not in record.scores["test"]
