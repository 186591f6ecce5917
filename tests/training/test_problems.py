"""Runs that solve problems without solutions to learn from."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from graphbench.catalog.names import catalog
from graphbench.core.errors import ConfigError, DecodingError
from graphbench.loader import Loader
from graphbench.models.losses import losses
from graphbench.models.surrogates import independent_set_loss
from graphbench.records.record import is_deterministic
from graphbench.tasks.registry import task_of
from graphbench.tasks.solve.evaluator import SolutionEvaluator
from graphbench.training.evaluate import evaluate_model, evaluate_run, load_run, write_run_predictions
from graphbench.training.run import train
from graphbench.tuning.method import DatasetMethod


@pytest.fixture
def options(make_labelled, monkeypatch, tiny, tmp_path):
    card = make_labelled()
    monkeypatch.setitem(catalog().cards, card.id, card)
    shared = {"dataset": "co/toy:mis", "model": str(tiny), "root": tmp_path, "workers": 1, "progress": False}
    return {**shared, "evaluate": "test", "output": tmp_path / "run", "device": "cpu"}


def test_the_loss_is_that_of_the_problem(make_labelled, tmp_path):
    card = make_labelled().with_task("mis")
    scores = torch.tensor([0.5, -1.0, 2.0])
    batch = Batch.from_data_list([Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=3)])
    value = task_of(card, {"surrogate": {"beta": 3.0}}).losses({"mis": scores}, batch)
    assert value.keys() == {"mis"} and torch.equal(value["mis"], independent_set_loss(scores, batch, beta=3.0))
    other, guessed = card.with_task("mis_size"), {"mis_value": torch.tensor([1.5])}
    batch.mis_value = torch.tensor([4.0])
    assert task_of(other).losses(guessed, batch) == losses(guessed, batch, other.features)
    with pytest.raises(ConfigError, match=r"'beta': 3.0.*co/toy:mis_size"):
        task_of(other, {"surrogate": {"beta": 3.0}})


def test_a_run_learns_and_its_scores_are_of_decoded_solutions(options):
    result = train(**options, steps=60, overrides={"training.lr": 0.01})
    curve = [value for _, value in result.record.curves["train_loss"]]
    assert curve[-1] < curve[0] - 0.5
    assert set(result.record.scores["test"]) == {"set_size"}
    test = Loader("co/toy:mis", root=options["root"], workers=1).load(())["test"]
    evaluator = SolutionEvaluator(test.card)
    for batch in test.batches(7):
        evaluator.update(batch, result.model(batch)["mis"].detach())
    assert evaluator.compute()["set_size"] == pytest.approx(result.record.scores["test"]["set_size"])


def test_training_finds_no_labels_of_what_it_trains_on(options):
    result = train(**options, steps=2)
    folder = options["root"] / "co" / "toy"
    assert sorted(path.name for path in folder.glob("*/labels-mis-*/*.h5")) == ["test.h5", "val.h5"]
    splits = Loader("co/toy:mis", root=options["root"], workers=1, unlabelled=("train",)).load(())
    assert "mis" not in splits.train[0] and "mis" in splits.val[0]
    assert not list(folder.glob("*/labels-*/train*"))
    assert result.record.data_hashes["train"] == splits.train.content_hash
    assert result.record.data_fingerprint == splits.val.data_fingerprint


def test_validation_may_use_part_of_its_split(options):
    record = train(**options, steps=2, val_limit=3, eval_limit=2).record
    assert record.budget.small and "val 3 of " in record.budget.label and "train" not in record.budget.label
    folder = options["root"] / "co" / "toy"
    assert sorted(path.name for path in folder.glob("*/labels-*/*.h5")) == ["test-first2.h5", "val-first3.h5"]
    data = Loader("co/toy:mis", root=options["root"], workers=1).load(())
    with pytest.raises(ConfigError, match="val_limit=3 and data are both given"):
        train(data=data, val_limit=3)


def test_the_training_split_is_scored_with_labels_where_asked_for(options):
    result = train(**{**options, "evaluate": ["train", "test"]}, steps=2)
    assert set(result.record.scores) == {"train", "test"}
    splits = Loader("co/toy:mis", root=options["root"], workers=1, unlabelled="train").load(())
    assert result.record.data_hashes["train"] == splits.labelled("train").content_hash != splits.train.content_hash
    assert splits.labelled("val") is splits.val


def test_settings_that_do_not_fit_are_refused_before_anything_is_written(options):
    for dataset, key, value, message in (
        ("co/toy:mis", "decoding", {"restarts": -1}, r"training\.task\.decoding: restarts is -1; give a whole number"),
        (
            "co/toy:mis",
            "decoding",
            {"local_search": True},
            r"training\.task\.decoding: the decoder of mis has no option",
        ),
        (
            "co/toy:mis",
            "decoding",
            {"restarts": "many"},
            r"training\.task.*restarts is 'many'",
        ),
        ("co/toy:mis", "surrogate", {"beta": 0.2}, r"training\.task\.surrogate: beta = 0\.2"),
        (
            "co/toy:mis_size",
            "decoding",
            {"restarts": 3},
            r"training\.task.*'restarts': 3.*co/toy:mis_size is a predict task",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            train(**{**options, "dataset": dataset}, steps=2, overrides={f"training.task.{key}": value})
    assert not options["output"].exists() and not (options["root"] / "co").exists()


def test_labelled_data_train_to_the_same_bits(options, tmp_path):
    plain = train(**options, steps=3).record.curves["train_loss"]
    data = Loader("co/toy:mis", root=options["root"], workers=1).load(())
    labelled = train(**{**options, "output": tmp_path / "labelled"}, data=data, steps=3).record.curves["train_loss"]
    assert labelled == plain


def test_supervised_tasks_train_on_labels(options):
    train(**{**options, "dataset": "co/toy:mis_size"}, steps=2)
    assert len(list((options["root"] / "co" / "toy").glob("*/labels-mis-*/train.h5"))) == 1


def test_labels_play_no_part_in_the_loss(options):
    model = train(**options, steps=3).model
    train_split = Loader("co/toy:mis", root=options["root"], workers=1).load(())["train"]
    batch = next(iter(train_split.batches(8)))
    task = task_of(train_split.card)
    before = task.losses(model(batch), batch)["mis"]
    batch.mis = 1 - batch.mis
    assert torch.equal(task.losses(model(batch), batch)["mis"], before)


def test_micro_batches_leave_the_update_the_same(options, tmp_path):
    shared = {"model.dropout": 0.0, "training.log_every": 1}
    whole = train(**options, steps=4, overrides=shared).record.curves["train_loss"]
    in_parts = {**shared, "training.accumulate": 4}
    cut = train(**{**options, "output": tmp_path / "cut"}, steps=4, overrides=in_parts).record
    assert [value for _, value in cut.curves["train_loss"]] == pytest.approx([v for _, v in whole], rel=1e-4)


def test_decoding_is_part_of_the_run(options, tmp_path):
    plain = train(**options, steps=2)
    often = train(
        **{**options, "output": tmp_path / "often"},
        steps=2,
        overrides={"training.task.decoding": {"restarts": 20, "seed": 1}},
    )
    assert often.record.scores["test"]["set_size"] >= plain.record.scores["test"]["set_size"]
    assert often.record.config["training"]["task"]["decoding"] == {"restarts": 20, "seed": 1}
    again = evaluate_run(tmp_path / "often", "test", root=options["root"], device="cpu", progress=False)
    assert again["test"]["set_size"] == often.record.scores["test"]["set_size"]
    test = Loader("co/toy:mis", root=options["root"], workers=1).load(())["test"]
    model = load_run(tmp_path / "often")
    assert evaluate_model(model, test)["set_size"] <= again["test"]["set_size"]
    for folder, kind in (("run", "f"), ("often", "i")):  # files have no options, so they hold the solutions
        run = evaluate_run(tmp_path / folder, "test", root=options["root"], device="cpu", progress=False)
        (path,) = write_run_predictions(tmp_path / folder, tmp_path / "files" / folder, root=options["root"])
        with np.load(path) as arrays:
            (rows,) = (arrays[name] for name in arrays.files)
        assert rows.dtype.kind == kind
        scored = SolutionEvaluator("co/toy:mis").evaluate(next(iter(test.batches(len(test)))), rows)
        assert scored["set_size"] == run["test"]["set_size"]
    with pytest.raises(DecodingError, match="restart"):
        evaluate_model(model, test, task_options={"decoding": {"restart": 3}})


def config_at(path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_a_search_is_scored_and_recorded_as_untrained(options, tmp_path):
    model = config_at(tmp_path / "annealing.yaml", "model: {kind: search, method: annealing, options: {sweeps: 50}}")
    result = train(**{**options, "model": model})
    record = result.record
    assert record.steps is None and record.parameters == 0 and record.wall_seconds == record.cpu_seconds == 0.0
    assert "nothing was trained" in record.notes
    test = Loader("co/toy:mis", root=options["root"], workers=1).load(())["test"]
    optimum = sum(float(batch.mis_value.sum()) for batch in test.batches(50)) / len(test)
    assert record.scores["test"]["set_size"] == pytest.approx(optimum)  # small graphs
    again = evaluate_run(options["output"], "test", root=options["root"], progress=False)
    assert again["test"]["set_size"] == record.scores["test"]["set_size"]
    with pytest.raises(ConfigError, match=r"annealing is fitted without steps and has no training\.lr"):
        train(**{**options, "model": model, "output": tmp_path / "other"}, overrides={"training.lr": 0.1})
    with pytest.raises(ConfigError, match=r"no search 'tabu'; it has greedy, annealing, langevin, solver"):
        train(**{**options, "model": model, "output": tmp_path / "other"}, overrides={"model.method": "tabu"})


def test_rules_are_deterministic_and_searches_with_random_numbers_are_not(options, tmp_path):
    for method, deterministic in (("greedy", True), ("annealing", False), ("solver", False)):
        model = config_at(tmp_path / f"{method}.yaml", f"model: {{kind: search, method: {method}}}")
        record = train(**{**options, "model": model, "output": tmp_path / method}).record
        assert record.deterministic is deterministic and is_deterministic(record) is deterministic


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: {kind: search, method: dsatur}", "dsatur on co/toy:mis: the problem mis has no search 'dsatur'"),
        ("model: {kind: search, method: greedy, options: {sweeps: 3}}", "the search greedy of mis has no option"),
        (
            "model: {kind: graph, processor: gin, readout: marked, layers: 1, hidden: 4}",
            "readout 'marked' needs an input",
        ),
    ],
)
def test_a_model_that_cannot_serve_the_task_is_refused_before_data_are_made(options, tmp_path, text, message):
    model, root = config_at(tmp_path / "dsatur.yaml", text), tmp_path / "nothing"
    with pytest.raises(ConfigError, match=message):
        train(**{**options, "model": model, "root": root})
    assert not root.exists()


STEPWISE = """
model: {kind: stepwise, processor: gin, layers: 2, hidden: 16, dropout: 0.0, degrees: true, input_network: false,
        positional: {type: none}, rounds: 4, repairs: 4}
training: {steps: 30, batch_size: 8, lr: 0.01, weight_decay: 0.0}
"""


@pytest.mark.thorough
def test_a_stepwise_model_learns_without_labels_and_solves(options, tmp_path):
    result = train(**{**options, "model": config_at(tmp_path / "stepwise.yaml", STEPWISE)})
    folder = options["root"] / "co" / "toy"
    assert sorted(path.name for path in folder.glob("*/labels-mis-*/*.h5")) == ["test.h5", "val.h5"]
    plain = train(**{**options, "output": tmp_path / "plain"}, steps=30)
    assert result.record.scores["test"]["set_size"] >= plain.record.scores["test"]["set_size"]
    again = evaluate_run(options["output"], "test", root=options["root"], progress=False)
    assert again["test"]["set_size"] == result.record.scores["test"]["set_size"]


def test_an_imitation_reads_the_labels_of_the_training_split(options, tmp_path):
    model = config_at(tmp_path / "stepwise.yaml", STEPWISE)
    changes = {"model.teacher": "labels", "training.task.imitation": True}
    result = train(**{**options, "model": model}, overrides=changes)
    folder = options["root"] / "co" / "toy"
    assert sorted(path.name for path in folder.glob("*/labels-mis-*/*.h5")) == ["test.h5", "train.h5", "val.h5"]
    first = train(**{**options, "model": model, "output": tmp_path / "first"}, overrides=changes, steps=2)
    splits = Loader("co/toy:mis", root=options["root"], workers=1).load(())
    batch, of_first, of_last = next(iter(splits.test.batches(50))), first.model.eval(), result.model.eval()
    loss = task_of(splits.test.card, {"imitation": True}).losses
    assert loss(of_last(batch), batch)["mis"] < loss(of_first(batch), batch)["mis"]
    shared = {**options, "model": model, "output": tmp_path / "other"}
    with pytest.raises(ConfigError, match=r"surrogate.*but imitation is set"):
        train(**shared, overrides={**changes, "training.task.surrogate.beta": 2.0})
    with pytest.raises(ConfigError, match="the training data have no mis"):
        train(**shared, overrides={"model.teacher": "labels"})


def test_tuning_an_imitation_reads_the_labels_of_the_training_split(options, tmp_path):
    model = config_at(tmp_path / "stepwise.yaml", STEPWISE)
    changes = {"model.teacher": "labels", "training.task.imitation": True}
    method = DatasetMethod("co/toy:mis", str(model), budgets=(1, 2), overrides=changes, root=tmp_path, device="cpu")
    method.prepare({}, workers=1, progress=False)
    result = method({}, 0, 1, None, tmp_path / "trial")
    assert result.steps == 1 and result.metrics["best_step"] == 1
