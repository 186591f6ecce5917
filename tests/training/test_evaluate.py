from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data

from graphbench.core.errors import (
    ArgumentError,
    CardError,
    CheckpointError,
    ConfigError,
    EvaluationError,
    TrainingError,
)
from graphbench.models import base
from graphbench.models.base import TaskFeatures, TaskModel, largest_batch
from graphbench.records.files import save_record
from graphbench.tasks.evaluator import Evaluator
from graphbench.training.evaluate import evaluate_model, evaluate_run, load_run, predict_model
from graphbench.training.run import train


class Guess(TaskModel):
    """Calls an edge heavy when its weight is above ``limit``; fails on batches above ``most`` graphs."""

    def __init__(self, limit: float = 0.3, most: int = 10**9) -> None:
        super().__init__()
        self.limit = nn.Parameter(torch.tensor(limit))
        self.most = most
        self.seen: list[int] = []

    def forward(self, batch, task_id=None):
        self.seen.append(batch.num_graphs)
        if batch.num_graphs > self.most:
            raise torch.OutOfMemoryError("out of memory")
        return {"heavy": batch.weight - self.limit, "total": torch.zeros(batch.num_graphs)}


@pytest.fixture(scope="module")
def run(make_toys, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    config = folder / "tiny.yaml"
    config.write_text("model: {layers: 1, hidden: 8}\ntraining: {steps: 5, batch_size: 16, lr: 0.01}\n")
    return train(data=make_toys(), model=config, output=folder / "out")


@pytest.mark.parametrize("size", [1, 5, 24, 100, "auto"])
def test_scores_do_not_depend_on_the_batch_size(toys, size):
    whole = next(iter(toys.test.batches(len(toys.test))))
    expected = Evaluator(toys.card).evaluate(whole.heavy, (whole.weight > 0.3).long())
    found = evaluate_model(Guess(), toys.test, size, "cpu")
    assert found.to_dict() == expected.to_dict()
    assert 0 < found.primary < 1
    assert found.graphs == 24


def test_the_first_of_several_outputs_is_scored(make_toys):
    assert evaluate_model(Guess(), make_toys("both").test, device="cpu").primary_name == "f1"


class Threshold(nn.Module):
    """A user's model, which knows nothing of the package: probabilities or logits of heavy edges."""

    def __init__(self, logits: bool) -> None:
        super().__init__()
        self.limit, self.logits = nn.Parameter(torch.tensor(0.3)), logits

    def forward(self, batch):
        assert not self.training and not torch.is_grad_enabled()
        logits = batch.weight - self.limit
        return logits if self.logits else logits.sigmoid()


def test_a_users_own_model_returns_predictions(toys, make_toys):
    expected = evaluate_model(Guess(), toys.test, device="cpu")
    assert evaluate_model(Threshold(False), toys.test, device="cpu") == expected
    assert evaluate_model(Threshold(True), toys.test, 5, "cpu", scores="logit") == expected
    assert evaluate_model(Threshold(True), toys.test, 5, "cpu", precision="bf16", scores="logit") == expected
    assert evaluate_model(lambda batch: (batch.weight > 0.3).long(), toys.test, device="cpu") == expected
    both = make_toys("both").test
    own = evaluate_model(lambda b: {"heavy": b.weight > 0.3, "total": torch.zeros(b.num_graphs)}, both, device="cpu")
    assert own == evaluate_model(Guess(), both, device="cpu")


def test_an_object_that_is_no_split_is_refused(toys):
    for other in ([1, 2], toys, None):
        with pytest.raises(EvaluationError, match="give a split of a loaded dataset"):
            evaluate_model(Guess(), other, device="cpu")


def test_what_cannot_be_called_with_a_batch_is_refused(toys):
    cases = {
        "give a module, or a function of a batch": None,
        "cannot be called with a batch alone .*; wrap it in a module": nn.Bilinear(2, 2, 1),
        "y_pred has 3 rows and y_true 328": lambda batch: torch.zeros(3),
        "total|mapping|heavy": lambda batch: {"other": batch.weight},
    }
    for message, model in cases.items():
        with pytest.raises(EvaluationError, match=message):
            evaluate_model(model, toys.test, device="cpu")
    with pytest.raises(EvaluationError, match="leave it out for a TaskModel"):
        evaluate_model(Guess(), toys.test, device="cpu", scores="logit")


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_of_the_model_is_kept(toys, training):
    model = Guess().train(training)
    evaluate_model(model, toys.test, device="cpu")
    assert model.training is training


def test_memory_errors_halve_the_batch(toys):
    model = Guess(most=4)
    assert evaluate_model(model, toys.test, 24, "cpu") == evaluate_model(Guess(), toys.test, 24, "cpu")
    assert model.seen[:4] == [24, 12, 6, 3]
    with pytest.raises(TrainingError, match="while evaluating with 1 samples"):
        evaluate_model(Guess(most=0), toys.test, 2, "cpu")


def test_batches_shrink_with_the_graphs(toys, monkeypatch):
    largest = max(batch.num_nodes + batch.num_edges for batch in toys.test.batches(1))
    assert largest_batch(Guess(), toys.test) == 1024
    monkeypatch.setattr(base, "_ROWS", 7 * largest + 1)
    assert largest_batch(Guess(), toys.test) == 7
    monkeypatch.setattr(base, "_ROWS", 1)
    assert largest_batch(Guess(), toys.test) == 1


def test_predictions_that_are_not_finite_are_an_error(toys):
    with pytest.raises(EvaluationError):
        evaluate_model(Guess(float("nan")), toys.test, device="cpu")


def test_an_empty_split_is_an_error(toys):
    with pytest.raises(EvaluationError, match="'test' of toys/heavy is empty"):
        evaluate_model(Guess(), toys.test[[]], device="cpu")


def test_a_run_folder_scores_as_it_did_after_training(run, toys):
    found = evaluate_run(run.path, ("val", "test", "ood"), data=toys)
    assert found == run.scores
    assert evaluate_run(run.path, "n12", data=toys).keys() == {"n12"}


def test_a_run_folder_gives_its_model_back(run, toys):
    model = load_run(run.path, toys.card)
    assert not model.training
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), run.model.parameters(), strict=True))


def other_parameters(run, folder):
    """Copy a run whose record names data of other parameters."""
    shutil.copytree(run.path, folder)
    record = run.record.model_copy(update={"data_fingerprint": "v1-000000000000"})
    save_record(record, path=folder / "record.json")
    return folder


def test_a_run_on_data_of_other_parameters_is_scored_with_a_warning(run, toys, tmp_path, caplog):
    assert evaluate_run(run.path, "test", data=toys)
    assert not caplog.records
    assert evaluate_run(other_parameters(run, tmp_path / "old"), "test", data=toys)
    assert "was trained on toys/heavy v1-000000000000, these data are toys/heavy v1-toy" in caplog.text


def test_a_run_is_not_scored_on_data_that_changed_since(tmp_path):
    small = {"model.hidden": 8, "model.layers": 1, "training.batch_size": 16}
    options = {"limit": 16, "root": tmp_path, "output": tmp_path / "run", "workers": 1, "device": "cpu"}
    run = train("bridges_easy", "gin_small", steps=2, overrides=small, evaluate="test", **options)
    assert evaluate_run(run.path, "test", root=tmp_path, limit=16, device="cpu") == run.scores
    old = other_parameters(run, tmp_path / "old")
    with pytest.raises(ConfigError, match=r"algoreas/bridges_easy v1-0+.*train the model"):
        evaluate_run(old, "test", root=tmp_path / "never made", limit=16, device="cpu")
    assert not (tmp_path / "never made").exists()


def test_no_split_has_many_names(toys):
    assert toys.card.select_splits(None) == toys.card.select_splits("none") == toys.card.select_splits(["none"]) == []
    assert toys.card.select_splits(("test", "ood", "n12")) == ["test", "n12"]
    assert toys.card.select_splits("all") == list(toys.card.all_splits)
    with pytest.raises(CardError, match="no split 'none'"):
        toys.card.select_splits(("none", "test"))


def test_folders_and_splits_that_do_not_exist_are_refused(run, toys, tmp_path):
    with pytest.raises(CheckpointError, match="is no run folder"):
        evaluate_run(tmp_path)
    with pytest.raises(CardError, match="no split 'n13'"):
        evaluate_run(run.path, "n13", data=toys)


def test_a_model_is_not_scored_on_data_without_its_features(run, toys):
    """The message names the features that the data lack, and no error of the model's inside is seen."""
    model = load_run(run.path, toys.card)
    fewer = TaskFeatures(
        (*toys.card.features, replace(toys.card.features[0], name="colour")), toys.card.directed, toys.card.complete
    )
    model.built_for = {"algoreas/mst_easy": fewer}
    with pytest.raises(EvaluationError, match=r"was built for algoreas/mst_easy, and .* lacks the \w+ 'colour'"):
        evaluate_model(model, toys.test)
    with pytest.raises(EvaluationError, match="lacks the"):
        next(iter(predict_model(model, toys.test)))
    model.built_for = {"algoreas/mst_easy": replace(fewer, features=toys.card.features, directed=not fewer.directed)}
    with pytest.raises(EvaluationError, match="directed graphs"):
        evaluate_model(model, toys.test)


@pytest.mark.parametrize("score", [evaluate_model, lambda model, data: next(iter(predict_model(model, data)))])
def test_what_is_no_split_is_named(run, toys, score):
    with pytest.raises(EvaluationError, match=r"'mst_easy'; give a split of a loaded dataset"):
        score(load_run(run.path, toys.card), "mst_easy")


def test_batches_that_do_not_fit_are_named(run, toys):
    model = load_run(run.path, toys.card)
    batch = next(iter(toys.test.batches(2)))
    batch.weight = batch.weight[:-1]
    with pytest.raises(ConfigError, match=r"edge feature 'weight' has the shape .* one row per column of edge_index"):
        model.predict(model.prepare(batch))
    empty = Data(edge_index=torch.zeros(2, 0, dtype=torch.long), weight=torch.zeros(0), num_nodes=0)
    with pytest.raises(ArgumentError, match="no nodes"):
        model.predict(model.prepare(Batch.from_data_list([empty])))
