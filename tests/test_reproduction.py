"""Recorded results that are obtained again: same bits, named differences, and records that nothing can repeat."""

from __future__ import annotations

import json
import os
import random
from datetime import date

import pytest
import torch

import graphbench
from graphbench.catalog.names import card as find_card
from graphbench.cli.app import main
from graphbench.core.errors import ResultError
from graphbench.records.classes import core_seconds, is_on_gpu
from graphbench.records.files import results_dir, save_record, stored_records
from graphbench.records.record import RunRecord
from graphbench.tasks.registry import task_of
from graphbench.verification.repeat import reproduce
from graphbench.verification.reproduction import (
    Outcome,
    Reproduction,
    Row,
    compared,
    load_reproductions,
    one_of_each,
    reproductions_dir,
    rows_of_records,
)

TINY = {"model.hidden": 8, "training.batch_size": 4, "training.eval_every": 4}
SETTINGS = {"limit": 12, "steps": 6, "device": "cpu", "progress": False, "workers": 1, "seed": 3}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def results(root, tmp_path_factory):
    """Records of three runs: of graphs, of two datasets together, and of a forest."""
    runs, results = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("results")
    evaluate = {"evaluate": ["val", "test"], "root": root}
    several = graphbench.train(
        ["clrs/bfs", "clrs/minimum"], "mpnn_small", output=runs / "joint", overrides=TINY, **SETTINGS, **evaluate
    )
    single = graphbench.train(
        "algoreas/bridges_easy", "gin_small", output=runs / "one", overrides=TINY, **SETTINGS, **evaluate
    )
    without_steps = SETTINGS | evaluate | {"steps": None}
    forest = graphbench.train("clutrr/gen_23", "random_forest", output=runs / "forest", **without_steps)
    for result in (single, *several.values(), forest):
        save_record(result.record, results)
    return results


@pytest.fixture(scope="module")
def repeated(results, root, tmp_path_factory):
    """The records beside their repetitions, by dataset."""
    outcomes = reproduce(rows_of(results), tmp_path_factory.mktemp("again"), root=root, workers=1, progress=False)
    return {row.record.dataset: outcome for row, outcome in outcomes}


def rows_of(results):
    stored = stored_records("*", results)
    return rows_of_records([(path.relative_to(results).as_posix(), record) for path, record in stored])


def repeated_alone(record, root, folder):
    """Return the repetition of a record in a new folder."""
    save_record(record, folder / "results")
    ((_, outcome),) = reproduce(rows_of(folder / "results"), folder / "again", root=root, workers=1, progress=False)
    return outcome


def row_of(results, dataset):
    return next(row for row in rows_of(results) if row.record.dataset == dataset)


@pytest.mark.parametrize("dataset", ["algoreas/bridges_easy", "clrs/bfs", "clrs/minimum", "clutrr/gen_23"])
def test_a_repeated_run_has_the_bits_of_its_record(repeated, results, dataset):
    outcome, record = repeated[dataset], row_of(results, dataset).record
    assert outcome.verdict == "same bits" and outcome.method == "training" and outcome.changes == ()
    assert list(outcome.splits) == ["val", "test"] and outcome.equal_curves
    assert outcome.equal_weights is (None if record.model == "random_forest" else True)
    primary = graphbench.card(dataset).metrics.primary
    for name, split in outcome.splits.items():
        assert split.metric == primary and split.equal and split.recorded == record.scores[name][primary]


def test_an_older_version_is_named_among_the_reasons(results, root, tmp_path):
    row = row_of(results, "algoreas/bridges_easy")
    older = Row(row.path, row.record.model_copy(update={"graphbench_version": "0.1.0"}))
    ((_, outcome),) = reproduce([older], tmp_path, root=root, workers=1, progress=False)
    assert outcome.changes == (f"graphbench 0.1.0 -> {graphbench.__version__}",)


def test_a_score_that_the_run_did_not_have_is_different(results, root, tmp_path):
    row = row_of(results, "algoreas/bridges_easy")
    scores = {name: {**values} for name, values in row.record.scores.items()}
    scores["test"]["f1"] += 0.2 if scores["test"]["f1"] < 0.5 else -0.2
    changed = Row(row.path, row.record.model_copy(update={"scores": scores}))
    ((_, outcome),) = reproduce([changed], tmp_path, root=root, workers=1, progress=False)
    assert outcome.verdict == "different" and not outcome.splits["test"].within
    assert outcome.splits["val"].equal and outcome.equal_curves


def test_another_seed_is_within_the_interval_or_different_and_never_the_same(results, root, tmp_path):
    row = row_of(results, "algoreas/bridges_easy")
    config = {**row.record.config, "training": {**row.record.config["training"], "seed": 4}}
    other = Row(row.path, row.record.model_copy(update={"config": config}))
    ((_, outcome),) = reproduce([other], tmp_path, root=root, workers=1, progress=False)
    assert outcome.verdict != "same bits" and outcome.equal_weights is False


def test_scores_are_left_out_where_all_weights_of_the_run_are_the_recorded_ones(results, root, tmp_path):
    rows = rows_of(results)
    outcomes = reproduce(rows, tmp_path, root=root, workers=1, progress=False, weights_suffice=True)
    outcomes = {row.record.dataset: outcome for row, outcome in outcomes}
    forest = outcomes.pop("clutrr/gen_23")  # has no tensors, so its scores are compared
    assert forest.verdict == "same bits" and list(forest.splits) == ["val", "test"]
    assert len(outcomes) == 3
    for outcome in outcomes.values():
        assert outcome.verdict == "same weights" and outcome.splits == {}
        assert outcome.equal_weights and outcome.equal_curves


@pytest.mark.parametrize("change", ["seed", "curves"])
def test_a_run_with_other_weights_or_curves_is_scored_although_weights_suffice(results, root, tmp_path, change):
    row = row_of(results, "algoreas/bridges_easy")
    if change == "seed":
        config = {**row.record.config, "training": {**row.record.config["training"], "seed": 4}}
        other = Row(row.path, row.record.model_copy(update={"config": config}))
    else:
        other = Row(row.path, row.record.model_copy(update={"curves": {}}))
    ((_, outcome),) = reproduce([other], tmp_path, root=root, workers=1, progress=False, weights_suffice=True)
    assert list(outcome.splits) == ["val", "test"] and outcome.verdict not in ("same bits", "same weights")
    assert (outcome.equal_weights, outcome.equal_curves) == ((False, False) if change == "seed" else (True, False))


def test_weights_do_not_suffice_on_other_data(results, root, tmp_path):
    row = row_of(results, "algoreas/bridges_easy")
    other = Row(row.path, row.record.model_copy(update={"data_hashes": {**row.record.data_hashes, "test": "0" * 64}}))
    ((_, outcome),) = reproduce([other], tmp_path, root=root, workers=1, progress=False, weights_suffice=True)
    with pytest.raises(ResultError, match=r"the split test .* has the hash"):
        raise outcome


def test_a_part_of_the_samples_is_scored_and_the_whole_splits_are_compared_by_their_hashes(results, root, tmp_path):
    row = row_of(results, "algoreas/bridges_easy")
    known = row.record.model_copy(update={"replicates": {"test": [0.1 * i for i in range(10)]}, "curves": {}})
    how = {"root": root, "workers": 1, "progress": False, "samples": 5}
    ((_, outcome),) = reproduce([Row(row.path, known)], tmp_path, **how, weights_suffice=True)
    val, test = outcome.splits["val"], outcome.splits["test"]
    assert (val.samples, test.samples) == (None, 5)  # val has no replicates, and selects models
    assert val.equal and not test.equal and outcome.equal_weights
    changed = known.model_copy(update={"data_hashes": {**known.data_hashes, "test": "0" * 64}})
    ((_, outcome),) = reproduce([Row(row.path, changed)], tmp_path, **how)
    with pytest.raises(ResultError, match=r"the split test .* has the hash"):
        raise outcome


def test_a_search_is_repeated_without_the_splits_on_which_models_are_trained_and_selected(root, tmp_path):
    options = {"limit": 3, "device": "cpu", "progress": False, "workers": 1, "root": root, "evaluate": ["test"]}
    record = graphbench.train("co/ba_small:mis", "greedy_rule", output=tmp_path / "run", **options).record
    unlimited = record.model_copy(update={"config": {**record.config, "limit": None}})  # each split had a limit
    outcome = repeated_alone(unlimited, root, tmp_path)
    assert outcome.verdict == "same bits" and list(outcome.splits) == ["test"]


def test_a_training_split_that_was_loaded_again_is_compared_although_nothing_was_trained(results):
    row = row_of(results, "algoreas/bridges_easy")
    rule = Row(row.path, row.record.model_copy(update={"parameters": 0, "wall_seconds": 0.0, "weights_hash": None}))
    assert rule.record.untrained
    hashes = {**rule.record.data_hashes, "train": "0" * 64}
    spent = {"repeated_at": rule.record.started, "wall_seconds": 1.0, "cpu_seconds": 1.0}
    with pytest.raises(ResultError, match=r"the split train .* has the hash"):
        compared(rule, "training", Outcome(rule.record.scores, hashes), spent)


def test_a_limit_of_the_validation_split_is_kept_although_the_split_is_not_scored(root, tmp_path):
    options = SETTINGS | {"limit": None, "val_limit": 7, "evaluate": ["test"], "eval_limit": 5, "root": root}
    changes = TINY | {"training.train_limit": 12}
    trained = graphbench.train("clrs/minimum", "mpnn_small", output=tmp_path / "run", overrides=changes, **options)
    assert trained.record.graphs_loaded == {"train": 12, "val": 7} and trained.record.graphs_scored == {"test": 5}
    outcome = repeated_alone(trained.record, root, tmp_path)
    assert outcome.verdict == "same bits" and list(outcome.splits) == ["test"]


def test_the_interval_of_fewer_samples_is_wider_by_the_root_of_their_ratio(results):
    row = row_of(results, "algoreas/bridges_easy")
    normal = [0.5 + 0.01 * x for x in (-1.0, 0.0, 1.0)]
    scored = {"scores": {"test": {"f1": 0.5}}, "replicates": {"test": normal}, "graphs_scored": {"test": 400}}
    record = row.record.model_copy(update=scored)
    spent = {"repeated_at": record.started, "wall_seconds": 1.0, "cpu_seconds": 1.0}

    def interval(graphs, runs=()):
        outcome = Outcome({"test": {"f1": 0.51}}, {}, curves=record.curves, graphs=graphs)
        split = compared(Row(row.path, record, runs), "training", outcome, spent).splits["test"]
        return split.samples, split.low, split.high

    assert interval({}) == interval({"test": 400}) == (None, pytest.approx(0.4905), pytest.approx(0.5095))
    assert interval({"test": 100}) == (100, pytest.approx(0.481), pytest.approx(0.519))
    others = tuple(
        record.model_copy(update={"seed": seed, "scores": {"test": {"f1": f1}}}) for seed, f1 in ((4, 0.49), (5, 0.51))
    )
    of_runs = 4.302653 * 0.01 * (4 / 3) ** 0.5  # half the interval of one more run
    assert interval({"test": 400}, others)[1] == pytest.approx(0.5 - of_runs, abs=1e-6)
    assert interval({"test": 100}, others)[1] == pytest.approx(0.5 - (of_runs**2 + 0.019**2) ** 0.5, abs=1e-6)


def test_a_score_outside_of_its_interval_is_undecided_on_another_machine_without_further_seeds(results):
    row = row_of(results, "algoreas/bridges_easy")
    scored = {"scores": {"test": {"f1": 0.5}}, "replicates": {"test": [0.49, 0.5, 0.51]}}
    record = row.record.model_copy(update=scored)
    elsewhere = record.model_copy(update={"hardware": {**record.hardware, "cpu": "another"}})
    spent = {"repeated_at": record.started, "wall_seconds": 1.0, "cpu_seconds": 1.0}

    def verdict(known, f1, seeds=0):
        others = tuple(known.model_copy(update={"seed": seed}) for seed in range(4, 4 + seeds))
        outcome = Outcome({"test": {"f1": f1}}, {}, curves=record.curves)
        return compared(Row(row.path, known, others), "training", outcome, spent).verdict

    assert verdict(elsewhere, 0.7) == "undecided" and verdict(elsewhere, 0.505) == "within the interval"
    assert verdict(elsewhere, 0.7, seeds=2) == "different" and verdict(record, 0.7) == "different"


def test_all_splits_of_a_record_lie_in_their_intervals_together(results):
    """With n splits every interval leaves out 0.05 / n."""
    row = row_of(results, "algoreas/bridges_easy")
    replicates = [i / 1000 for i in range(1001)]
    spent = {"repeated_at": row.record.started, "wall_seconds": 1.0, "cpu_seconds": 1.0}
    for names in (["test"], ["val", "test"], ["val", "test", "n192", "n256", "n384"]):
        scores = {name: {"f1": 0.5} for name in names}
        record = row.record.model_copy(update={"scores": scores, "replicates": dict.fromkeys(names, replicates)})
        outcome = Outcome(scores, {}, curves=record.curves)
        split = compared(Row(row.path, record), "training", outcome, spent).splits["test"]
        assert split.low == pytest.approx(0.025 / len(names)) and split.high == pytest.approx(1 - 0.025 / len(names))


def test_an_outcome_without_scores_has_the_recorded_weights_and_curves(repeated):
    known = repeated["algoreas/bridges_easy"].model_dump(by_alias=True)
    assert Reproduction.model_validate(known | {"splits": {}}).verdict == "same weights"
    for unequal in ({"equal_weights": False}, {"equal_weights": None}, {"equal_curves": False}):
        with pytest.raises(ValueError, match="weights and curves must be equal"):
            Reproduction.model_validate(known | {"splits": {}} | unequal)


def test_what_cannot_be_repeated_is_an_error_with_its_reason(results, root, tmp_path):
    row = row_of(results, "algoreas/bridges_easy")
    split = graphbench.Loader("algoreas/bridges_easy", root=root, limit=12).load(()).test
    stated = RunRecord.from_scores({"test": split}, {"test": {"f1": 0.5}}, model="mine")
    hashes = {**row.record.data_hashes, "test": "0" * 64}
    cases = {
        "were stated and belong to no run": stated,
        "is of version 99 of the dataset": row.record.model_copy(update={"dataset_version": 99}),
        "trained on other data": row.record.model_copy(update={"data_fingerprint": "other"}),
        "the split test .* has the hash": row.record.model_copy(update={"data_hashes": hashes}),
    }
    rows = [Row(f"{number}.json", record) for number, record in enumerate(cases.values())]
    outcomes = [outcome for _, outcome in reproduce(rows, tmp_path, root=root, workers=1, progress=False)]
    for message, outcome in zip(cases, outcomes, strict=True):
        with pytest.raises(ResultError, match=message):
            raise outcome


def test_the_command_writes_what_it_compared_and_repeats_nothing_twice(results, root, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)

    def run(*words):
        with pytest.raises(SystemExit) as end:
            main(["reproduce", *map(str, words), "--root", str(root), "--records", str(results), "--workers", "1"])
        printed = capsys.readouterr()
        return end.value.code or 0, printed.out or printed.err

    code, out = run("bridges_easy", "--dry-run")
    assert code == 0 and "1 record" in out and not (tmp_path / "reproductions").exists()
    code, out = run("bridges_easy", "--model", "gin_*")
    assert code == 0 and "same bits" in out and "1 record repeated" in out
    (kept,) = load_reproductions(tmp_path / "reproductions")
    assert (kept.dataset, kept.method, kept.verdict) == ("algoreas/bridges_easy", "training", "same bits")
    assert kept.cpu_seconds > 0 and kept.hardware["torch"]
    code, out = run(results / row_of(results, "algoreas/bridges_easy").path, "--json")
    (answer,) = json.loads(out)
    assert (
        code == 0
        and answer["verdict"] == "same bits"
        and answer["repeated_at"] == json.loads(kept.model_dump_json())["repeated_at"]
    )
    code, out = run("bridges_easy", "--dry-run")
    assert code == 0 and "0 records" in out and "1 other repeated already (reproductions)" in out
    code, out = run("bridges_easy", "--dry-run", "--again")
    assert code == 0 and "1 record," in out and "already" not in out
    code, out = run("bridges_easy", "--again", "--weights-suffice")
    assert code == 0 and "same weights" in out and "1 record repeated" in out
    code, out = run("bridges_easy", "--weights", "--samples", "100")
    assert code == 2 and "trains nothing" in " ".join(out.split())
    code, out = run("bridges_easy", "--weights", "--weights-suffice")
    assert code == 2 and "trains nothing" in " ".join(out.split())
    code, out = run("bridges_easy", "--model", "nothing")
    assert code == 2 and "without them 1 record would, of gin_small, with the seeds 3" in out
    code, _ = run()
    assert code == 2
    code, _ = run("bridges_easy", "--weights")  # this record has no weights
    assert code == 2


@pytest.fixture
def asked(monkeypatch):
    """The rows that a command would repeat."""
    rows_asked = []

    def noted(rows, *folders, **options):
        rows_asked.extend(rows)
        return [(row, ResultError("not repeated")) for row in rows]

    monkeypatch.setattr("graphbench.verification.repeat.reproduce", noted)
    return rows_asked


def test_the_shortest_runs_are_repeated_first(asked, tmp_path):
    with pytest.raises(SystemExit) as end:
        main(["reproduce", "clutrr/*", "bridges_easy", "--under", "1", "-o", str(tmp_path)])
    assert end.value.code == 1
    seconds = [row.record.wall_seconds if row.record.cpu_seconds is None else row.record.cpu_seconds for row in asked]
    assert len(seconds) > 5 and seconds == sorted(seconds) and max(seconds) < 60
    assert len({row.record.dataset.split("/")[0] for row in asked}) == 2


def test_the_minutes_of_a_gpu_do_not_count_on_a_machine_without_one(tmp_path, capsys, monkeypatch):
    def chosen(*words):
        with pytest.raises(SystemExit) as end:
            main(["reproduce", *words, "-o", str(tmp_path), "--dry-run", "--json"])
        assert not end.value.code
        return set(json.loads(capsys.readouterr().out))

    of_gpus = {row.path for row in rows_of(results_dir()) if is_on_gpu(row.record) and row.minutes < 10}
    short = ("steiner_tree_easy", "--under", "10")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    everywhere = chosen(*short)
    assert of_gpus & everywhere
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert chosen(*short) == everywhere - of_gpus
    assert of_gpus & chosen("steiner_tree_easy")  # whoever names it may repeat it
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main(["reproduce", *short, "-o", str(tmp_path), "--dry-run"])
    assert "1 record of a GPU left out: this machine has none" in capsys.readouterr().out


def test_one_of_each_takes_a_repeated_record_or_the_shortest():
    rows = [
        row for row in rows_of(results_dir()) if row.record.dataset in ("clutrr/gen_23", "social/sim_replies_small")
    ]
    chosen = one_of_each(rows)
    configurations = {(row.record.dataset, row.record.config_hash) for row in rows}
    assert len(rows) > len(chosen) == len(configurations) > 2
    for one in chosen:
        same = [
            row
            for row in rows
            if (row.record.dataset, row.record.config_hash) == (one.record.dataset, one.record.config_hash)
        ]
        assert one.minutes == min(row.minutes for row in same)
    longest = max((row for row in rows if row.others), key=lambda row: row.minutes)
    assert longest.path not in {row.path for row in chosen}
    assert longest in one_of_each(rows, [longest.path]) and len(one_of_each(rows, [longest.path])) == len(chosen)


def test_a_record_given_as_a_file_is_compared_with_its_further_seeds(asked, tmp_path):
    row = next(row for row in rows_of(results_dir()) if row.record.dataset == "clutrr/gen_23" and len(row.others) > 2)
    with pytest.raises(SystemExit):
        main(["reproduce", str(results_dir() / row.path), "-o", str(tmp_path)])
    assert [one.path for one in asked] == [row.path] and len(asked[0].others) == len(row.others)


@pytest.mark.thorough
def test_stored_weights_have_the_scores_of_their_record(root, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["reproduce", "clutrr/gen_23", "--model", "gat_small", "--weights", "--json", "--root", str(root)])
    (answer,) = json.loads(capsys.readouterr().out)
    assert not end.value.code
    assert answer["method"] == "weights" and answer["verdict"] in ("same bits", "within the interval")
    assert (tmp_path / "reproductions" / "weights" / answer["record"]).is_file()


def cheap_rows():
    """The committed records that take less than two minutes to train, on data without labels of solvers."""
    rows = [row for row in rows_of(results_dir()) if "training" in row.record.config]
    return [
        row
        for row in rows
        if (seconds := core_seconds(row.record)) is not None
        and seconds < 120
        and not find_card(row.record.dataset).labellers
        and not row.record.config.get("datasets")
        and (row.record.replicates or len(row.others) > 1)  # an interval to compare with
        and row.record.protocol in task_of(find_card(row.record.dataset)).protocols
    ]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_random_sample_of_five_committed_rows_is_obtained_again(root, tmp_path):
    """Another sample every day; the seed of the sample is in the message."""
    seed = int(os.environ.get("GRAPHBENCH_SAMPLE", date.today().toordinal()))
    chosen = random.Random(seed).sample(cheap_rows(), 5)
    for row, outcome in reproduce(chosen, tmp_path, root=root, workers=1, progress=False):
        assert isinstance(outcome, Reproduction), f"GRAPHBENCH_SAMPLE={seed}: {row.path}: {outcome}"
        assert outcome.verdict != "different", f"GRAPHBENCH_SAMPLE={seed}: {row.path}: {outcome.splits}"


EXPLAINED = {  # on the page, with what changed
    "clrs/binary_search/mpnn_small-22794f29-seed2.json": "cpu ",
    "clrs/find_maximum_subarray_kadane/mpnn_small-eef3010e-seed2.json": "cpu ",
    "social/sim_reposts_small/mlp-78d23f14-seed2.json": "cpu ",
}


def test_the_committed_reproductions_are_of_committed_records_and_no_unexplained_one_is_different():
    found = load_reproductions(reproductions_dir())
    stored = {row.path: row.record for row in rows_of(results_dir())}
    for one in found:
        record = stored.get(one.record)
        if record is not None and record.started == one.started:  # else the record was made anew since
            if one.record in EXPLAINED:
                assert any(change.startswith(EXPLAINED[one.record]) for change in one.changes)
            else:
                assert one.verdict != "different", one.record
            for name, split in one.splits.items():
                assert split.recorded == record.scores[name][split.metric]


def test_other_bits_are_compared_with_the_spread_over_seeds(results):
    """The interval of one more run is mean -+ t s sqrt(1 + 1 / n): for 0.5, 0.6 and 0.7 it is 0.6 -+ 0.4968."""
    row = row_of(results, "algoreas/bridges_easy")
    record = row.record.model_copy(update={"scores": {"test": {"f1": 0.5}}, "replicates": {}})
    others = tuple(
        record.model_copy(update={"seed": seed, "scores": {"test": {"f1": f1}}}) for seed, f1 in ((4, 0.6), (5, 0.7))
    )
    spent = {"repeated_at": record.started, "wall_seconds": 1.0, "cpu_seconds": 1.0}

    def verdict(f1, siblings):
        outcome = Outcome({"test": {"f1": f1}}, {}, curves=record.curves)
        return compared(Row(row.path, record, siblings), "training", outcome, spent)

    found = verdict(1.0, others)
    assert found.verdict == "within the interval" and found.splits["test"].high == 1.0  # no f1 is above 1
    assert found.splits["test"].low == pytest.approx(0.6 - 4.302653 * 0.1 * (4 / 3) ** 0.5, abs=1e-5)
    assert verdict(1.0, others[:1]).verdict == "different" and verdict(0.5, ()).verdict == "same bits"
    both = rows_of_records([("a", record), ("b", others[0]), ("c", others[1].model_copy(update={"data_seed": 1}))])
    assert [[other.seed for other in one.others] for one in both] == [[4], [3], []]
