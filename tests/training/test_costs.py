"""What runs cost: processor time, threads, the influence of chance, and the time to predict a sample."""

from __future__ import annotations

import json
from itertools import count
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from graphbench.catalog.names import catalog
from graphbench.loader import Loader
from graphbench.models.base import TaskModel
from graphbench.models.tabular.estimators import draws_nothing, register_estimator, threads_of
from graphbench.records.files import load_records, read_record
from graphbench.records.machine import processor_seconds
from graphbench.records.record import is_deterministic
from graphbench.tasks.base import in_memory
from graphbench.tasks.registry import task_of
from graphbench.tasks.solve import task as solve
from graphbench.training import checkpoint, scoring
from graphbench.training.context import TaskRun
from graphbench.training.run import train
from graphbench.training.scoring import finish_work, latencies_ms, score_split

FIXED = ["training.schedule_steps=24"]
TABULAR = "model: {{kind: tabular, processor: {name}, hops: 1, most_rows: {rows}, options: {options}}}\n"
CPU = torch.device("cpu")


@pytest.fixture
def one_second_a_look(monkeypatch):
    """Let a second of processor time pass between two looks at the clock, and return the looks that were taken."""
    clock, looks = count(), []

    def look():
        looks.append(next(clock))
        return float(looks[-1])

    for module in ("loop", "learners.tabular"):
        monkeypatch.setattr(f"graphbench.training.{module}.processor_seconds", look)
    return looks


def test_processor_time_counts_all_threads_and_children_that_ended():
    before = processor_seconds()
    sum(i * i for i in range(300_000))
    assert processor_seconds() > before


def test_processor_time_of_a_run_is_summed_over_its_interruptions(toys, tiny, tmp_path, one_second_a_look):
    first = train(data=toys, model=tiny, steps=6, output=tmp_path, overrides=FIXED, evaluate="val").record
    spent = len(one_second_a_look) - 1
    assert first.cpu_seconds == spent > 0 and first.threads == torch.get_num_threads()
    one_second_a_look.clear()
    whole = train(data=toys, model=tiny, steps=24, output=tmp_path, overrides=FIXED, evaluate="val").record
    later = len(one_second_a_look) - 1
    assert whole.cpu_seconds == spent + later > spent
    scored = train(data=toys, model=tiny, steps=24, output=tmp_path, overrides=FIXED, evaluate="test").record
    assert (scored.cpu_seconds, scored.threads) == (whole.cpu_seconds, whole.threads)  # nothing was trained
    assert read_record(tmp_path / "record.json").cpu_seconds == whole.cpu_seconds


def test_runs_that_an_older_version_began_have_no_processor_time(toys, tiny, tmp_path):
    train(data=toys, model=tiny, steps=6, output=tmp_path, overrides=FIXED, evaluate=())
    path = tmp_path / "checkpoint.safetensors"
    tensors, facts = checkpoint.load_tensors(path)
    del facts["state"]["cpu_seconds"], facts["state"]["threads"]
    checkpoint.save_tensors(path, tensors, facts)
    record = train(data=toys, model=tiny, steps=6, output=tmp_path, overrides=FIXED, evaluate="val").record
    assert (record.cpu_seconds, record.threads) == (None, None) and record.wall_seconds > 0
    record = train(data=toys, model=tiny, steps=12, output=tmp_path, overrides=FIXED, evaluate="val").record
    assert (record.cpu_seconds, record.threads) == (None, torch.get_num_threads())


def test_trained_models_depend_on_chance(toys, tiny, tmp_path):
    record = train(data=toys, model=tiny, steps=2, output=tmp_path, evaluate="val").record
    assert record.deterministic is False and not is_deterministic(record)


@pytest.mark.parametrize(
    ("name", "rows", "options", "deterministic", "threads"),
    [
        ("k_nearest", 100_000, "{n_neighbors: 3}", True, 1),
        ("k_nearest", 100, "{n_neighbors: 3}", False, 1),  # a random sample of the rows
        ("linear", 100_000, "{}", True, None),
        ("linear", 100_000, "{solver: saga}", False, None),
        ("random_forest", 100_000, "{n_estimators: 3, n_jobs: 2}", False, 2),
    ],
)
def test_tabular_models_say_what_chance_and_threads_had_to_do(
    toys, tmp_path, one_second_a_look, name, rows, options, deterministic, threads
):
    pytest.importorskip("sklearn")
    pytest.importorskip("skops")
    path = tmp_path / "model.yaml"
    path.write_text(TABULAR.format(name=name, rows=rows, options=options))
    record = train(data=toys, model=path, output=tmp_path / "run", device="cpu", evaluate="val").record
    assert record.deterministic is deterministic
    assert record.threads == (threads or torch.get_num_threads())
    assert record.cpu_seconds == 1.0  # two looks
    old = record.model_copy(update={"deterministic": None})
    assert is_deterministic(old) is is_deterministic(record) is deterministic
    again = train(data=toys, model=path, output=tmp_path / "run", device="cpu", evaluate="val").record
    assert (again.cpu_seconds, again.threads, again.deterministic) == (1.0, record.threads, deterministic)
    facts = json.loads((tmp_path / "run" / "estimators.json").read_text())
    for key in ("cpu_seconds", "threads", "deterministic"):
        del facts[key]
    (tmp_path / "run" / "estimators.json").write_text(json.dumps(facts))  # of an older version
    older = train(data=toys, model=path, output=tmp_path / "run", device="cpu", evaluate="val").record
    assert (older.cpu_seconds, older.threads, older.deterministic) == (None, None, None)


def test_which_estimators_draw_random_numbers():
    assert draws_nothing("xgboost", {"n_estimators": 5}) is True
    assert draws_nothing("xgboost", {"subsample": 1.0, "colsample_bytree": 1.0}) is True
    assert draws_nothing("xgboost", {"subsample": 0.5}) is draws_nothing("xgboost", {"booster": "dart"}) is False
    assert draws_nothing("gradient_boosting", {}) is draws_nothing("random_forest", {}) is False
    assert draws_nothing("no such estimator", {}) is None
    register_estimator("test_costs_unknown", lambda regression, seed, options: None)
    assert draws_nothing("test_costs_unknown", {}) is None
    assert [threads_of("random_forest", {"n_jobs": jobs}, 7) for jobs in (None, 3)] == [7, 3]
    assert threads_of("random_forest", {}, 7) == 1 and threads_of("gradient_boosting", {}, 7) == 7
    assert threads_of("k_nearest", {"n_jobs": -1}, 7) >= 1 == threads_of("k_nearest", {"n_jobs": -10_000}, 7)


@pytest.mark.thorough
def test_committed_records_without_the_fact_are_judged_by_their_configuration():
    """Records that state the fact agree with what their configuration says."""
    records = load_records()
    judged = [is_deterministic(record.model_copy(update={"deterministic": None})) for record in records]
    assert all(own in (None, found) for own, found in zip((r.deterministic for r in records), judged, strict=True))
    by_model = {record.model: found for record, found in zip(records, judged, strict=True)}
    assert by_model["k_nearest"] is by_model["xgb_epm"] is True
    assert by_model["rf_epm"] is by_model["gin"] is by_model["gradient_boosting"] is False
    assert by_model["greedy_rule"] is by_model["dsatur"] is True and by_model["annealing"] is False
    strange = next(r for r in records if r.model == "dsatur").model_copy(update={"deterministic": None})
    for changes in ({"dataset": "mine/gone"}, {"config": {"model": {"kind": "search", "method": ["greedy"]}}}):
        assert is_deterministic(strange.model_copy(update=changes)) is False


# ------------------------------------------------------------------------------------------------ latency


class Clock:
    """A clock that only work moves on, and what was done, in order."""

    def __init__(self):
        self.now, self.events = 0.0, []

    def perf_counter(self):
        self.events.append("look")
        return self.now

    def work(self, seconds, what):
        self.now += seconds
        self.events.append(what)


class Slow(TaskModel):
    """A model whose forward pass takes a second per call."""

    def __init__(self, clock):
        super().__init__()
        self.clock, self.bias = clock, nn.Parameter(torch.zeros(()))

    def forward(self, batch, task_id=None):
        self.clock.work(1.0, "model")
        sizes = {"heavy": batch.num_edges, "mis": batch.num_nodes}
        return {name: torch.ones(size) + self.bias for name, size in sizes.items()}


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(scoring, "time", made)
    monkeypatch.setattr(scoring, "finish_work", lambda device: made.events.append("finish"))
    return made


def run_of(task, splits):
    return TaskRun(task, splits, splits["train"], splits["val"])


def test_latency_is_that_of_the_whole_prediction(toys, clock, monkeypatch):
    task = task_of(toys.card)

    def decoded(outputs, batch):
        clock.work(2.0, "decoding")

        def lazily():
            clock.work(4.0, "what was left to do")
            yield outputs["heavy"]

        return lazily()

    monkeypatch.setattr(task, "predictions", decoded)
    alone, together = latencies_ms(Slow(clock), run_of(task, toys), toys.card.address, CPU)
    assert (alone, together) == (7000.0, 7000.0 / 24)
    done = ["finish", "look", "model", "decoding", "what was left to do", "finish", "look"]
    assert clock.events[: len(done)] == done and clock.events == done * (len(clock.events) // len(done))


def test_slow_predictions_are_timed_for_half_a_minute_and_once_at_least(toys, clock, monkeypatch):
    task = task_of(toys.card)
    timed = []

    def counted(outputs, batch):
        timed.append(int(batch.num_graphs))
        clock.work(20.0, "decoding")
        return outputs["heavy"]

    monkeypatch.setattr(task, "predictions", counted)
    assert latencies_ms(Slow(clock), run_of(task, toys), toys.card.address, CPU) == (21000.0, 21000.0 / 24)
    assert timed == [1, 1, 24, 24]
    timed.clear()
    monkeypatch.setattr("graphbench.training.scoring._ENOUGH_SECONDS", 1.0)
    latencies_ms(Slow(clock), run_of(task, toys), toys.card.address, CPU)
    assert timed == [1, 24]


def test_latency_of_problems_counts_the_decoder(make_labelled, tmp_path, clock, monkeypatch):
    card = make_labelled()
    monkeypatch.setitem(catalog().cards, card.id, card)
    splits = Loader(f"{card.id}:mis", root=tmp_path / "data", workers=1, limit=6).load(())
    task, real = task_of(splits.card), solve.decode

    def decode(*arguments, **options):
        clock.work(8.0, "decoder")
        return real(*arguments, **options)

    monkeypatch.setattr(solve, "decode", decode)
    alone, together = latencies_ms(Slow(clock), run_of(task, splits), splits.card.address, CPU)
    assert (alone, together) == (9000.0, 9000.0 / 6)
    batch = next(iter(splits["val"].batches(6)))
    solved = task.completed(torch.zeros(batch.num_nodes), batch)
    assert len(solved.values) == 6 and solved.values.min() > 0


def test_what_scores_count_as_time_waits_for_the_device(toys, clock, monkeypatch):
    task, taken = task_of(toys.card), []
    score = task.score
    monkeypatch.setattr(task, "score", lambda *arguments: (taken.append(arguments[3]), score(*arguments)))
    score_split(Slow(clock), task, toys["val"], device=CPU, batch_size=24)
    assert taken == [1.0] and clock.events == ["look", "model", "finish", "look"]


def test_work_on_a_gpu_is_waited_for(monkeypatch):
    waited = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    finish_work(CPU)
    finish_work(torch.device("cuda", 0))
    assert waited == [torch.device("cuda", 0)]


def test_predictions_in_memory():
    tensor = torch.ones(2)
    found = in_memory({"a": (tensor, ["text"]), "b": iter([1, None])})
    assert found == {"a": [tensor, ["text"]], "b": [1, None]}
    moved = SimpleNamespace(cpu=lambda: "in memory")
    assert in_memory([moved]) == ["in memory"]


def test_a_model_that_was_trained_in_steps_is_never_deterministic(toys, tiny, tmp_path):
    record = train(data=toys, model=tiny, steps=2, output=tmp_path, evaluate="val").record
    assert not is_deterministic(record.model_copy(update={"deterministic": True}))
