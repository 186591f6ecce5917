"""One model trained on several datasets: the order of the updates, selection, and continuing after a stop."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest
import torch

import graphbench
from graphbench.core.errors import CardError, CheckpointError, ConfigError
from graphbench.records.files import read_record
from graphbench.training import checkpoint, loop
from graphbench.training.evaluate import evaluate_run, write_run_predictions
from graphbench.training.loop import TrainingLoop
from graphbench.training.run import train
from graphbench.training.settings import MixtureSchedule, mixture_weights

TINY = {"model.hidden": 8, "training.batch_size": 4, "training.eval_every": 4, "training.log_every": 1}
TRACES = ["clrs/bfs", "clrs/minimum"]
MIXED = ["clrs/bfs", "algoreas/bridges_easy"]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


def run(root, output, datasets=TRACES, model="mpnn_small", mixture=None, overrides=None, **changes):
    own = {**TINY, **(overrides or {})} | ({} if mixture is None else {"training.mixture": mixture})
    options = {"steps": 8, "limit": 12, "evaluate": "val", "workers": 1, "device": "cpu", "progress": False}
    return train(datasets, model, root=root, output=output, overrides=own, **{**options, **changes})


def weights(folder, name="checkpoint"):
    return checkpoint.load_tensors(folder / f"{name}.safetensors")[0]


def order(weights, steps, start=0):
    schedule = MixtureSchedule(weights, start)
    return [schedule.take() for _ in range(steps)]


def test_equal_weights_are_turns():
    assert order({"a": 1.0, "b": 1.0, "c": 1.0}, 7) == ["a", "b", "c", "a", "b", "c", "a"]
    assert order({"a": 2.0, "b": 2.0}, 3, start=3) == ["b", "a", "b"]


@pytest.mark.parametrize("own", [{"a": 1.0, "b": 3.0}, {"a": 0.5, "b": 0.3, "c": 0.2}, {"a": 1.0, "b": 1.0}])
def test_updates_follow_the_weights_from_the_start_on_and_from_any_step(own):
    whole, total = order(own, 40), sum(own.values())
    for step in range(1, 41):
        for name, count in Counter(whole[:step]).items():
            assert abs(count - step * own[name] / total) < 1 + 1e-9
    for start in (1, 7, 23):
        schedule = MixtureSchedule(own, start)
        assert schedule.counts == {name: whole[:start].count(name) for name in own}
        assert [schedule.take() for _ in range(10)] == whole[start : start + 10]


def test_weights_of_a_mixture():
    sizes = {"a": 30, "b": 10}
    assert mixture_weights("turns", sizes) == {"a": 1.0, "b": 1.0}
    assert mixture_weights("proportional", sizes) == {"a": 30.0, "b": 10.0}
    assert mixture_weights({"b": 2, "a": 1}, sizes) == {"a": 1.0, "b": 2.0}
    with pytest.raises(ConfigError, match=r"training\.mixture names a, c.*a, b"):
        mixture_weights({"a": 1, "c": 1}, sizes)


def updates_of(monkeypatch):
    """Return the list to which every update adds the dataset that it is on."""
    seen, real = [], TrainingLoop._update
    monkeypatch.setattr(TrainingLoop, "_update", lambda self, id_, parts: (seen.append(id_), real(self, id_, parts))[1])
    return seen


def test_updates_take_turns_in_the_order_of_the_datasets(root, tmp_path, monkeypatch):
    seen = updates_of(monkeypatch)
    found = run(root, tmp_path)
    assert seen == TRACES * 4
    assert list(found) == TRACES
    assert {id_: result.record.dataset for id_, result in found.items()} == {id_: id_ for id_ in TRACES}
    for id_, result in found.items():
        assert read_record(tmp_path / "records" / f"{id_.replace('/', '-')}.json") == result.record
        assert result.record.config["datasets"] == TRACES
        assert "trained on 2 datasets, one update each in turn" in result.record.notes
        assert "mixture" not in result.record.config["training"]
    assert not (tmp_path / "record.json").exists()


@pytest.mark.parametrize(
    ("mixture", "counts", "note"),
    [
        ({"clrs/bfs": 3, "clrs/minimum": 1}, {"clrs/bfs": 6, "clrs/minimum": 2}, "updates by weight (clrs/bfs 3, "),
        ("proportional", {"clrs/bfs": 2, "clrs/minimum": 6}, "updates in proportion to their training samples"),
    ],
)
@pytest.mark.thorough
def test_a_mixture_decides_how_often_a_dataset_is_trained_on(root, tmp_path, monkeypatch, mixture, counts, note):
    seen, data = updates_of(monkeypatch), graphbench.Loader(TRACES, root=root, limit=12, workers=1).load(())
    data["clrs/bfs"]._opened["train"] = data["clrs/bfs"].train[:4]
    found = run(root, tmp_path, None, mixture=mixture, limit=None, data=data)
    assert Counter(seen) == counts
    assert all(note in result.record.notes for result in found.values())
    words = next(iter(found.values())).record.budget.label
    assert "training.mixture)" in words and "training.mixture." not in words
    assert all(result.record.config["training"]["mixture"] == mixture for result in found.values())


def test_weights_for_other_datasets_are_refused(root, tmp_path):
    with pytest.raises(ConfigError, match=r"training\.mixture names clrs/bfs, clrs/dfs.*clrs/bfs"):
        run(root, tmp_path, mixture={"clrs/bfs": 1, "clrs/dfs": 1})
    for weight in (0, -1, float("inf"), float("nan")):
        with pytest.raises(ConfigError, match=rf"training\.mixture: the weight of clrs/bfs is {weight}.*above 0"):
            run(root, tmp_path, mixture={"clrs/bfs": weight, "clrs/minimum": 1})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mixture", [None, {"clrs/bfs": 1, "clrs/minimum": 2.5}])
@pytest.mark.thorough
def test_a_stopped_run_goes_on_with_the_same_bits(root, tmp_path, monkeypatch, mixture):
    options = {"mixture": mixture, "overrides": {"training.schedule_steps": 8, "training.eval_at": [3, 5]}}
    whole = run(root, tmp_path / "whole", **options)
    seen = updates_of(monkeypatch)
    for steps in (3, 5, 8):
        parts = run(root, tmp_path / "parts", steps=steps, **options)
    assert len(seen) == 8 and seen == order(mixture or dict.fromkeys(TRACES, 1.0), 8)
    for name in ("checkpoint", "best"):
        one, other = (weights(tmp_path / folder, name) for folder in ("whole", "parts"))
        assert one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)
    for id_ in TRACES:
        assert parts[id_].record.curves == whole[id_].record.curves
        assert parts[id_].record.scores == whole[id_].record.scores
    with pytest.raises(CheckpointError, match=r"another run.*training\.mixture"):
        run(root, tmp_path / "parts", **{**options, "mixture": {"clrs/bfs": 2, "clrs/minimum": 1}})


@pytest.mark.thorough
def test_another_order_or_another_dataset_does_not_continue_a_run(root, tmp_path):
    run(root, tmp_path, steps=2)
    for datasets in (TRACES[::-1], ["clrs/bfs", "clrs/dfs"], ["clrs/bfs"]):
        with pytest.raises(CheckpointError, match=r"belongs to another run .*dataset"):
            run(root, tmp_path, datasets, steps=2)


@pytest.mark.thorough
def test_a_finished_run_is_scored_again_and_keeps_its_scores(root, tmp_path):
    first = run(root, tmp_path)
    again = run(root, tmp_path, evaluate="test")
    for id_ in TRACES:
        assert again[id_].record.scores["val"] == first[id_].record.scores["val"]
        assert list(again[id_].scores) == ["test"] and set(again[id_].record.scores) == {"val", "test"}
    found = evaluate_run(tmp_path, ("val", "test"), root=root, limit=12, device="cpu", progress=False)
    assert found == {id_: {**first[id_].scores, **again[id_].scores} for id_ in TRACES}


def test_a_split_that_one_of_the_datasets_has_is_scored_and_predicted_for_it_alone(root, tmp_path):
    run(root, tmp_path / "run", MIXED, steps=2)
    own = [set(graphbench.card(id_).all_splits) for id_ in MIXED]
    (lone,) = sorted(own[1] - own[0])[:1]
    options = {"root": root, "limit": 2, "device": "cpu", "progress": False}
    found = evaluate_run(tmp_path / "run", lone, **options)
    assert {id_: list(scores) for id_, scores in found.items()} == {MIXED[0]: [], MIXED[1]: [lone]}
    (path,) = write_run_predictions(tmp_path / "run", tmp_path / "predictions", lone, **options)
    assert path.relative_to(tmp_path / "predictions").parts[:2] == tuple(MIXED[1].split("/"))
    with pytest.raises(CardError, match="has no split 'n7777'"):
        write_run_predictions(tmp_path / "run", tmp_path / "predictions", "n7777", **options)


@pytest.mark.thorough
def test_the_default_folder_of_a_group_has_its_name(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run(root, None, steps=1)
    assert {result.path.parent.as_posix() for result in found.values()} == {"runs/clrs-bfs-and-more"}
    (single,) = run(root, None, ["clrs/bfs"], steps=1).values()
    assert single.path.parent.as_posix() == "runs/clrs/bfs" and single.record.config.get("datasets") is None


def test_a_model_is_selected_by_the_mean_over_its_datasets(monkeypatch):
    tasks = {"a": ("f1", True), "b": ("mae", False)}
    val = SimpleNamespace(split="val")
    runs = {name: SimpleNamespace(task=SimpleNamespace(selection=own), val=val) for name, own in tasks.items()}
    values = iter([0.5, 4.0, 0.7, 1.0])
    monkeypatch.setattr(loop, "score_split", lambda *_, **__: {"val": SimpleNamespace(primary=next(values))})
    settings = SimpleNamespace(eval_batch_size=1)
    fake = SimpleNamespace(runs=runs, state=loop.TrainingState(), model=None, settings=settings, precision="fp32")
    fake.world = SimpleNamespace(device=None)
    assert loop._selection(runs) == ("score", True)
    assert TrainingLoop._validation_score(fake) == pytest.approx((0.5 + 0.0) / 2)
    assert TrainingLoop._validation_score(fake) == pytest.approx((0.7 + 0.75) / 2)
    assert fake.state.first_errors == {"b": 4.0}


def test_traces_and_graphs_share_a_processor(root, tmp_path, monkeypatch):
    seen = updates_of(monkeypatch)
    found = run(root, tmp_path / "whole", MIXED, mixture={MIXED[0]: 1, MIXED[1]: 3}, evaluate=("val", "test"))
    assert Counter(seen) == {MIXED[0]: 2, MIXED[1]: 6}
    assert found[MIXED[0]].model is found[MIXED[1]].model
    assert set(found[MIXED[1]].record.scores["test"]) >= {"f1"} and "score" in found[MIXED[0]].record.scores["test"]
    again = evaluate_run(tmp_path / "whole", ("val", "test"), root=root, limit=12, device="cpu", progress=False)
    assert again == {id_: result.scores for id_, result in found.items()}
