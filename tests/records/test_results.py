import json
import math
import statistics
from datetime import UTC, datetime
from pathlib import Path

import pytest

from graphbench.core import processor
from graphbench.core.errors import ArgumentError, ResultError
from graphbench.records.aggregates import Stat, aggregate
from graphbench.records.budgets import Budget
from graphbench.records.files import load_records, read_record, results_dir, save_record
from graphbench.records.machine import cpu_kind, hardware
from graphbench.records.record import RunRecord

from .conftest import make_record

OLD = Path(__file__).resolve().parents[1] / "data" / "records" / "v1.json"


def test_round_trip(tmp_path):
    record = make_record(seed=3)
    path = save_record(record, tmp_path)
    assert path.parent == tmp_path / "algoreas" / "mst_medium"
    assert path.name == f"gin-{record.config_hash}-seed3.json"
    assert read_record(path) == record
    assert json.loads(path.read_text())["schema"] == 2
    assert "\n   [10, 0.9187" in path.read_text()  # one point of a curve per line


def test_an_old_file_still_loads():
    record = read_record(OLD)
    assert record.schema_version == 1
    assert (record.dataset, record.model, record.seed, record.steps) == ("algoreas/mst_easy", "gin_small", 7, 300)
    assert record.scores["test"]["f1"] == 0.6125
    assert record.curves["train_loss"][0] == (1, 0.6931)
    assert record.budget.small
    assert record.started == datetime(2025, 12, 1, 10, 30, tzinfo=UTC)
    assert record.data_seed == 0
    assert record.config_hash == "c96648f8"  # the name of its file must not change


def test_a_name_is_shared_by_seeds_alone():
    base = make_record(0)
    assert make_record(1).config_hash == base.config_hash
    for changes in (
        {"dataset_version": 3},
        {"data_fingerprint": "x"},
        {"model": "gt"},
        {"config": {"model": {"processor": "gin", "layers": 2}, "training": {"steps": 100, "seed": 0}}},
        {"budget": Budget(small=True)},
        {"batch_size": 1},
    ):
        assert make_record(0, **changes).config_hash != base.config_hash, changes
    assert make_record(0, steps=80).config_hash == base.config_hash  # early stopping is no other budget


def test_writing_is_atomic(tmp_path, monkeypatch):
    path = save_record(make_record(), tmp_path)
    before = path.read_text()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(ResultError, match="disk full"):
        save_record(make_record(f1=0.1), tmp_path)
    assert path.read_text() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_an_exact_path(tmp_path):
    path = save_record(make_record(), path=tmp_path / "run" / "record.json")
    assert path == tmp_path / "run" / "record.json"
    assert read_record(path).model == "gin"


@pytest.mark.parametrize("dataset", ["../../etc/passwd", "mst_easy", "a/../b", "/abs/x", ""])
def test_only_ids_become_paths(tmp_path, dataset):
    with pytest.raises(ResultError, match="not an id"):
        save_record(make_record(dataset=dataset), tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": "red"}, "unknown key 'colour'"),
        ({"schema": 0}, "schema = 0.*1 or 2"),
        ({"schema": 3}, "record format 3, newer.*update"),
        ({"seed": None}, "seed"),
        ({"scores": {"test": {"f1": "high"}}}, "scores.test.f1"),
        ({"scores": {"test": {"f1": math.nan}}}, "scores.test.f1"),
    ],
)
def test_malformed_records_name_the_key(tmp_path, change, message):
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(json.loads(OLD.read_text()) | change), encoding="utf-8")
    with pytest.raises(ResultError, match=message):
        read_record(path)


def test_unreadable_records(tmp_path):
    with pytest.raises(ResultError, match="there is no record"):
        read_record(tmp_path / "absent.json")
    (tmp_path / "half.json").write_text("{", encoding="utf-8")
    with pytest.raises(ResultError, match="not a JSON record"):
        load_records(records=tmp_path)
    with pytest.raises(ResultError, match="no results folder"):
        load_records(records=tmp_path / "nowhere")


def test_a_malformed_record_can_be_left_out_with_its_name_and_reason(tmp_path, caplog):
    save_record(make_record(), tmp_path)
    (tmp_path / "half.json").write_text("{", encoding="utf-8")
    assert len(load_records(records=tmp_path, skip_malformed=True)) == 1
    assert "left out" in caplog.text and "half.json is not a JSON record" in caplog.text


def test_selecting_records(tmp_path):
    save_record(make_record(1), tmp_path)
    for dataset in ("algoreas/mst_medium", "clrs/bfs", "co/rb_small:max_cut"):
        save_record(make_record(0, dataset=dataset), tmp_path)
    assert [(r.dataset, r.seed) for r in load_records(records=tmp_path)] == [
        ("algoreas/mst_medium", 0), ("algoreas/mst_medium", 1), ("clrs/bfs", 0), ("co/rb_small:max_cut", 0),
    ]  # fmt: skip
    assert {r.dataset for r in load_records(["clrs/*", "co/*"], tmp_path)} == {"clrs/bfs", "co/rb_small:max_cut"}
    assert load_records("sat/*", tmp_path) == []


def test_statistics_over_seeds():
    values = [0.8, 0.7, 0.9]
    (runs,) = aggregate(make_record(seed, f1=value) for seed, value in enumerate(values))
    stat = runs.score("test", "f1")
    assert (stat.mean, stat.std, stat.n) == (pytest.approx(0.8), pytest.approx(statistics.stdev(values)), 3)
    assert runs.seeds == (0, 1, 2)
    assert runs.measure("wall_seconds").mean == pytest.approx(11.0)
    assert runs.measure("latency_ms") is None
    assert runs.score("test", "recall") is None
    assert runs.score("n999", "f1") is None


def test_one_run_has_no_deviation():
    (runs,) = aggregate([make_record()])
    assert runs.score("test", "f1") == Stat(0.8, None, 1)
    with pytest.raises(ResultError):
        Stat.of([])


def test_small_and_full_runs_never_mix():
    small = make_record(0, budget=Budget(small=True, label="demonstration"))
    groups = aggregate([make_record(0), small, make_record(1), make_record(0, dataset_version=1)])
    found = sorted((g.small, g.dataset_version, len(g.records)) for g in groups)
    assert found == [(False, 1, 1), (False, 2, 2), (True, 2, 1)]


def drawn(seed, data_seed, **changes):
    """A record of a run on one of the draws of a card, which share the digits of their folders."""
    suffix = f"-draw{data_seed}" if data_seed else ""
    fields = {"data_seed": data_seed, "data_fingerprint": f"v2-ab12cd34ef56{suffix}"}
    config = {"model": {"processor": "gin"}, "training": {"steps": 100, "seed": seed}}
    config |= {"data_seed": data_seed} if data_seed else {}
    return make_record(seed, config=config, **fields, **changes)


def test_draws_of_a_card_are_one_group():
    values = {(0, 1): 0.6, (0, 2): 0.7, (1, 3): 0.8, (1, 4): 0.9}
    (runs,) = aggregate(drawn(seed, k, f1=value) for (seed, k), value in values.items())
    assert (runs.seeds, runs.data_seeds, len(runs.records)) == ((0, 1), (1, 2, 3, 4), 4)
    assert [(r.seed, r.data_seed) for r in runs.records] == sorted(values)
    stat = runs.score("test", "f1")
    assert (stat.mean, stat.std, stat.n) == (pytest.approx(0.75), pytest.approx(statistics.stdev(values.values())), 4)
    (mixed,) = aggregate([drawn(0, 0), drawn(0, 4)])
    assert mixed.data_seeds == (0, 4)
    assert len({drawn(0, k).setup_hash for k in range(3)}) == 1


def test_draws_with_other_numbers_of_runs_are_groups_of_their_own():
    """Five seeds of one draw and one seed of another have no common mean."""
    groups = aggregate([*(drawn(seed, 0, f1=0.8) for seed in range(5)), drawn(0, 1, f1=0.2)])
    assert [(runs.data_seeds, runs.seeds) for runs in groups] == [((0,), (0, 1, 2, 3, 4)), ((1,), (0,))]
    assert [runs.score("test", "f1").mean for runs in groups] == [pytest.approx(0.8), pytest.approx(0.2)]


def test_draws_of_other_cards_and_versions_never_mix():
    other = drawn(0, 2).model_copy(update={"data_fingerprint": "v2-000000000000-draw2"})
    older = drawn(0, 3).model_copy(update={"dataset_version": 1})
    assert [len(runs.records) for runs in aggregate([drawn(0, 1), other, older])] == [1, 1, 1]


def test_records_of_draws_lie_side_by_side(tmp_path):
    paths = [save_record(drawn(0, k), tmp_path) for k in (0, 2)]
    assert [path.name.split("-", 2)[2] for path in paths] == ["seed0.json", "seed0-draw2.json"]
    assert paths[0].name.split("-")[1] == paths[1].name.split("-")[1]
    assert [r.data_seed for r in load_records(records=tmp_path)] == [0, 2]
    with pytest.raises(ValueError, match="data_seed"):
        make_record(data_seed=-1)


def test_of_a_repeated_run_the_later_counts(caplog):
    later = make_record(0, f1=0.9, started=datetime(2027, 1, 1))
    (runs,) = aggregate([later, make_record(0, f1=0.1)])
    assert runs.score("test", "f1").mean == 0.9
    assert "two records of algoreas/mst_medium gin seed 0" in caplog.text


def test_hardware_is_storable():
    facts = hardware()
    assert facts["cpu"] and facts["cores"] >= 1
    assert make_record(hardware=facts).hardware == facts
    assert json.loads(json.dumps(facts)) == facts


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ("cpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n", "AMD EPYC (family 25, model 1)"),
        ("cpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) Gold 6148\n", "Intel(R) Xeon(R) Gold 6148"),
        ("model name\t: Cortex\n", "Cortex"),
    ],
)
def test_a_processor_without_a_number_has_its_family(tmp_path, monkeypatch, lines, kind):
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\n{lines}", encoding="utf-8")
    monkeypatch.setattr(processor, "CPUINFO", tmp_path / "cpuinfo")
    assert cpu_kind() == kind


def test_records_cannot_hold_what_json_cannot():
    with pytest.raises(ValueError, match="finite"):
        make_record(f1=math.inf)
    with pytest.raises(ValueError, match=r"letters \(A-Z, a-z\), digits, dots"):
        RunRecord.model_validate(make_record().model_dump() | {"model": "../evil"})


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ({"f1": 1.7}, "test: f1 is 1.7.*0 to 1"),
        ({"f1": 1e308}, r"f1 is 1e\+308, outside"),
        ({"accuracy": -0.1}, "accuracy is -0.1, outside"),
        ({"mae": -1.0}, "mae is -1.*0 to inf"),
        ({"r2": 1.5}, "r2 is 1.5.*-inf to 1"),
        ({"f1": math.nan}, "finite number"),
        ({"mae": math.inf}, "finite number"),
    ],
)
def test_scores_outside_the_range_of_their_metric_are_refused(tmp_path, scores, words):
    record = make_record(scores={"test": {"f1": 1.0 + 1e-12, "gap": -3.0, "my_metric": 17.0}})
    content = json.loads(record.to_json())
    content["schema"] = 1  # of an older file
    del content["digest"]
    with pytest.raises(ValueError, match=words):
        make_record(scores={"val": {"f1": 0.5}, "test": scores})
    path = tmp_path / "record.json"
    path.write_text(json.dumps({**content, "scores": {"test": scores}}))
    with pytest.raises(ResultError, match=r"record\.json: scores"):
        read_record(path)


def test_a_record_of_a_newer_schema_says_so(tmp_path):
    path = tmp_path / "record.json"
    path.write_text(json.dumps({**json.loads(make_record().to_json()), "schema": 3, "more": 1}))
    with pytest.raises(ResultError, match=r"record\.json.*format 3.*\(2\).*update"):
        read_record(path)


def test_records_that_are_nested_too_deeply(tmp_path):
    path = tmp_path / "record.json"
    path.write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(ResultError, match="nested too deeply"):
        read_record(path)
    config = deepest = {}
    for _ in range(3000):
        deepest["a"] = deepest = {}
    for values in (config, {"a": object()}):
        with pytest.raises(ResultError, match="cannot be written as JSON"):
            save_record(make_record(config=values), tmp_path)


@pytest.mark.parametrize("path", ["a\0b.json", "\ud800.json", 5])
def test_paths_that_no_file_can_have(path):
    for use in (read_record, lambda path: save_record(make_record(), path=path), lambda path: load_records("*", path)):
        with pytest.raises(ArgumentError):
            use(path)


@pytest.mark.parametrize(
    "change",
    [
        {"scores": {"test": {"f1": 0.99}}},
        {"budget": {"small": None, "label": "large"}},
        {"steps": 5000},
        {"dataset": "algoreas/mst_hard"},
        {"digest": "0" * 64},
    ],
)
def test_a_record_that_was_edited_is_refused(tmp_path, change):
    path = save_record(make_record(), tmp_path)
    assert read_record(path) == make_record()
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ResultError, match="was changed after its run wrote it"):
        read_record(path)


def test_the_committed_records_have_digests():
    files = list(results_dir().rglob("*.json"))
    assert len(files) > 100 and all("digest" in json.loads(path.read_text()) for path in files)
