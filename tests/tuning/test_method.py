"""Our own models as a training method: what a promoted configuration continues from, and what a trial costs."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
import torch
import yaml

from graphbench import loader
from graphbench.core.errors import ConfigError, UnknownDataset, UnknownModel
from graphbench.data.build import generation
from graphbench.training import checkpoint, loop
from graphbench.training.run import train
from graphbench.tuning.method import DatasetMethod
from graphbench.tuning.trial import Status, cost_of
from graphbench.tuning.worker import Job, run_job

GRAPH = {
    "model.hidden": 16,
    "model.layers": 2,
    "model.dropout": 0.1,
    "model.positional.k": 4,
    "model.positional.hidden": 16,
    "training.batch_size": 16,
}
LR = {"training.lr": 3e-3}
KINDS = {  # dataset, model, ladder, overrides: one of each kind of model
    "graphs": ("algoreas/mst_easy", "gin_small", (27, 81, 243), GRAPH),
    "trajectories": ("clrs/minimum", "mpnn_small", (3, 9, 27), {"model.hidden": 8, "training.batch_size": 4}),
    "texts": (
        "clrs_text/minimum",
        "transformer_small",
        (3, 9, 27),
        {"model.hidden": 16, "model.layers": 1, "training.batch_size": 4},
    ),
    "stories": ("clutrr/gen_23", "bilstm_small", (3, 9, 27), {"model.hidden": 16, "training.batch_size": 8}),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def make(root):
    """Return a function that gives the method of a kind of model, with other arguments where they are given."""

    def make(kind="graphs", **changes):
        dataset, model, budgets, overrides = KINDS[kind]
        options = {"budgets": budgets, "overrides": overrides, "limit": 48, "root": root, "device": "cpu", **changes}
        method = DatasetMethod(dataset, options.pop("model", model), **options)
        method.prepare(LR, workers=1, progress=False)
        return method

    return make


def tensors(folder, name="checkpoint.safetensors"):
    return checkpoint.load_tensors(folder / "seed0" / name)[0]


def curve(folder):
    return checkpoint.load_tensors(folder / "seed0" / "checkpoint.safetensors")[1]["state"]["val_curve"]


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


def promoted(method, folder, config=LR):
    """Train a configuration to every budget of the ladder, each time from where the last one ended."""
    results, last = [], None
    for budget in method.budgets:
        results.append(method(config, 0, budget, last, folder))
        last = results[-1].checkpoint
    return results


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_promoted_configuration_is_that_of_an_uninterrupted_run_to_the_bit(kind, make, tmp_path):
    method = make(kind)
    small, middle, large = method.budgets
    rungs = promoted(method, tmp_path / "rungs")
    whole = method(LR, 0, large, None, tmp_path / "whole")
    for name in ("checkpoint.safetensors", "best.safetensors"):
        assert same(tensors(tmp_path / "whole", name), tensors(tmp_path / "rungs", name))
    assert curve(tmp_path / "whole") == curve(tmp_path / "rungs")
    assert {small, middle, large} <= {step for step, _ in curve(tmp_path / "whole")}
    assert (rungs[-1].cost, rungs[-1].metrics) == (whole.cost, whole.metrics)
    assert same(rungs[-1].model.state_dict(), whole.model.state_dict())
    assert [result.steps for result in rungs] == [small, middle - small, large - middle]
    assert whole.steps == large


def test_the_score_is_the_best_validation_so_far(make, tmp_path):
    method = make(budgets=(9, 27, 54))
    results = promoted(method, tmp_path)
    for budget, result in zip(method.budgets, results, strict=True):
        seen = [(score, step) for step, score in curve(tmp_path) if step <= budget]
        best = max(score for score, _ in seen)
        assert result.metrics == {"val_f1": best, "best_step": min(step for score, step in seen if score == best)}
        assert result.cost == 1 - best
        assert method.score_of(result.cost) == pytest.approx(best)
    assert results[0].cost > results[-1].cost


def test_a_smaller_budget_than_was_trained_is_read_off_and_trains_nothing(make, tmp_path, monkeypatch):
    method = make(budgets=(9, 27, 54))
    small, _, large = promoted(method, tmp_path)
    monkeypatch.setattr(loop.TrainingLoop, "_backward", None)
    again = method(LR, 0, 9, None, tmp_path)
    assert (again.cost, again.metrics, again.steps, again.model) == (small.cost, small.metrics, 0, None)
    assert method(LR, 0, 54, None, tmp_path).cost == large.cost


@pytest.mark.parametrize(("stop", "step"), [("interrupt", 17), ("crash", 17), ("crash", 10)])
@pytest.mark.thorough
def test_a_trial_that_was_cut_short_is_continued_to_the_same_bits(make, tmp_path, monkeypatch, stop, step):
    method = make(budgets=(9, 27, 54))
    whole = promoted(method, tmp_path / "whole")
    first = method(LR, 0, 9, None, tmp_path / "cut")
    updates, real = count(10), loop.TrainingLoop._backward

    def cut(*arguments):
        if next(updates) == step:
            if stop == "crash":
                raise SystemError("power cut")
            os.kill(os.getpid(), signal.SIGINT)
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(loop.TrainingLoop, "_backward", cut)
        with pytest.raises(KeyboardInterrupt if stop == "interrupt" else SystemError):
            method(LR, 0, 27, first.checkpoint, tmp_path / "cut")
    second = method(LR, 0, 27, first.checkpoint, tmp_path / "cut")
    assert (second.cost, second.metrics, second.steps) == (whole[1].cost, whole[1].metrics, 18)
    third = method(LR, 0, 54, second.checkpoint, tmp_path / "cut")
    assert (third.cost, third.metrics, third.steps) == (whole[2].cost, whole[2].metrics, 27)
    assert same(tensors(tmp_path / "whole"), tensors(tmp_path / "cut"))


def test_steps_of_a_trial_that_fails_are_those_known_to_be_done(make, tmp_path, monkeypatch):
    method = make(budgets=(9, 27, 54))
    outcome = run_job(method, Job(0, {"training.lr": 1e30}, 0, 54, None, tmp_path / "nan"))
    at = int(re.search(r"at step (\d+)", outcome.reason)[1])
    assert outcome.status is Status.NOT_FINITE and outcome.steps == at > 0
    first = method(LR, 0, 9, None, tmp_path / "cut")
    updates, real = count(10), loop.TrainingLoop._backward

    def cut(*arguments):
        if next(updates) == 20:
            raise FloatingPointError("the training loss is nan at step 20; lower it")
        return real(*arguments)

    monkeypatch.setattr(loop.TrainingLoop, "_backward", cut)
    outcome = run_job(method, Job(0, LR, 0, 27, first.checkpoint, tmp_path / "cut"))
    assert outcome.steps == 20 - 9
    assert 9 <= method.steps_in(tmp_path / "cut", 0) < 20
    assert method.steps_in(tmp_path / "cut", 1) == 0
    (tmp_path / "cut" / "seed0" / "checkpoint.safetensors").write_bytes(b"broken")
    assert method.steps_in(tmp_path / "cut", 0) == 0


@pytest.mark.thorough
def test_a_baseline_for_a_smaller_budget_ends_where_the_search_did(make, tmp_path, root):
    method = make(budgets=(9, 27, 54))
    found = promoted(method, tmp_path / "search")[1]
    (tmp_path / "incumbent.yaml").write_text(yaml.safe_dump(method.baseline(LR, 27)))
    assert method.baseline(LR, 27)["training"] | {"steps": 54} != method.baseline(LR)["training"]
    options = {"limit": 48, "root": root, "device": "cpu", "evaluate": "val", "seed": 0, "output": tmp_path / "run"}
    again = train("algoreas/mst_easy", tmp_path / "incumbent.yaml", **options)
    assert again.record.steps == 27 and again.scores["val"]["f1"] == pytest.approx(1 - found.cost)


def test_steps_are_those_of_the_trial_where_its_checkpoint_is_lost_or_training_stopped_early(make, tmp_path):
    method = make(budgets=(9, 27, 54))
    first = method(LR, 0, 9, None, tmp_path / "lost")
    (tmp_path / "lost" / "seed0" / "checkpoint.safetensors").unlink()
    assert method(LR, 0, 27, first.checkpoint, tmp_path / "lost").steps == 27
    patient = {**LR, "training.patience": 1, "training.lr": 1e-9}
    early = promoted(method, tmp_path / "early", patient)
    assert early[0].steps < 9 and [result.steps for result in early[1:]] == [0, 0]
    assert len({result.cost for result in early}) == 1


@pytest.mark.thorough
def test_a_damaged_checkpoint_costs_its_steps_and_nothing_else(make, tmp_path, caplog):
    method = make(budgets=(9, 27, 54))
    first = method(LR, 0, 9, None, tmp_path)
    path = tmp_path / "seed0" / "checkpoint.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    second = method(LR, 0, 27, first.checkpoint, tmp_path)
    assert second.steps == 27 and "training starts from the beginning: the checkpoint" in caplog.text
    assert second.cost == method(LR, 0, 27, None, tmp_path / "other").cost


def test_seeds_and_configurations_have_runs_of_their_own(make, tmp_path):
    method = make(budgets=(5, 10))
    costs = {seed: method(LR, seed, 10, None, tmp_path) for seed in (0, 1)}
    assert {result.checkpoint.name for result in costs.values()} == {"seed0", "seed1"}
    assert costs[0].cost != costs[1].cost
    assert method({"training.lr": 1e-5}, 0, 10, None, tmp_path).cost != costs[0].cost  # what lay there is not its own


def test_without_a_folder_nothing_is_kept(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    method = make(budgets=(5, 10))
    found = method(LR, 0, 5)
    assert (found.checkpoint, found.steps) == (None, 5)
    assert found.cost == method(LR, 0, 5, None, tmp_path / "kept").cost
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.parametrize(
    ("metric", "score", "cost"),
    [
        ("f1", 0.75, 0.25),
        ("score", 1.0, 0.0),
        ("exact_match", 0.0, 1.0),
        ("r2", -3.0, 3.0),
        ("spearman", 0.5, -0.5),
        ("mae", 2.5, 2.5),
        ("rse", 0.25, 0.25),
        ("loss", 1.5, 1.5),
    ],
)
def test_costs_fall_as_scores_get_better_and_scores_come_back(metric, score, cost):
    assert cost_of(score, metric) == cost
    assert cost_of(cost, metric) == score


@pytest.mark.parametrize(
    ("metric", "worst"), [("f1", 1.0), ("spearman", 1.0), ("r2", None), ("mae", None), ("loss", None)]
)
def test_failed_trials_cost_the_most_that_a_metric_allows(metric, worst, make, monkeypatch):
    method = make()
    assert method.worst_cost == 1.0
    monkeypatch.setattr(DatasetMethod, "metric", metric)
    assert method.worst_cost == worst


def test_text_models_are_selected_by_their_loss(make):
    assert (make("texts").metric, make("graphs").metric, make("trajectories").metric) == ("loss", "f1", "score")


def test_a_warm_up_as_long_as_the_largest_budget_fails_with_a_reason(make):
    method = make()
    assert method.run_config({"training.warmup": 242}, 0, 27).training.warmup == 242  # longer than the smallest budget
    with pytest.raises(ConfigError, match=r"warmup 243.*243 steps.*lower"):
        method({"training.warmup": 243}, 0, 27)


def test_the_warm_up_of_the_file_keeps_its_share_of_the_largest_budget_on_every_rung(make):
    method = make()
    assert {method.run_config(LR, 0, budget).training.warmup for budget in method.budgets} == {30 * 243 // 300}


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"lr": 1e-3}, "override 'lr' must start with 'model.'"),
        ({"training.leaning_rate": 1e-3}, "unknown key 'training.leaning_rate'"),
        ({"training.steps": 10}, "training.steps cannot be tuned"),
        ({"training.seed": 1}, "training.seed cannot be tuned"),
        ({"training.schedule_steps": 10}, "training.schedule_steps cannot be tuned"),
        ({"model.hidden": 32}, "model.hidden is tuned and set to 16"),
        ({"training.val_split": "test"}, "training.val_split=test is refused"),
        ({"training.train_split": "n192"}, "training.train_split=n192 is refused"),
    ],
)
def test_a_refused_configuration_is_told_before_the_search_and_in_a_trial(make, tmp_path, config, words):
    method = make()
    with pytest.raises(ConfigError, match=re.escape(words)):
        method.prepare(config)
    with pytest.raises(ConfigError, match=re.escape(words)):
        method(config, 0, 27, None, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"dataset": "mst_esy"}, UnknownDataset, "did you mean"),
        ({"dataset": "algoreas/*"}, ConfigError, "'algoreas/*' stands for 24"),
        ({"budgets": ()}, ConfigError, "budgets must rise from at least 1"),
        ({"budgets": (9, 3)}, ConfigError, r"budgets must rise from at least 1, e.g. (100, 300, 900); got (9, 3)"),
        ({"overrides": {"training.steps": 9}}, ConfigError, "training.steps cannot be tuned"),
        ({"overrides": ["training.eval_at=[1]"]}, ConfigError, "training.eval_at cannot be tuned"),
        ({"overrides": ["hidden=4"]}, ConfigError, "did you mean 'model.hidden'"),
    ],
)
def test_a_method_is_refused_with_a_remedy(changes, error, words):
    arguments = {"dataset": "mst_easy", "model": "gin_small", "budgets": (3, 9), **changes}
    with pytest.raises(error, match=re.escape(words)):
        DatasetMethod(arguments.pop("dataset"), arguments.pop("model"), **arguments)


def test_an_unknown_model_is_told_before_the_search(root):
    with pytest.raises(UnknownModel, match="did you mean 'gin_small'"):
        DatasetMethod("mst_easy", "gin_smal", budgets=(3,), root=root).prepare({})


def test_a_model_file_is_found_from_any_folder(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own.yaml").write_text("model: {processor: gin, layers: 1, hidden: 16}\ntraining: {batch_size: 16}\n")
    method = make(model="own.yaml", budgets=(2,), overrides={})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert method({}, 0, 2).steps == 2
    assert method.description["model"] == "own"
    before = method.description
    (tmp_path / "own.yaml").write_text("model: {processor: gin, layers: 2, hidden: 16}\ntraining: {batch_size: 16}\n")
    assert before["configuration"]["model.layers"] == 1 and method.description["configuration"]["model.layers"] == 2


def test_the_description_tells_searches_apart_and_is_plain(make):
    first = make().description
    assert json.loads(json.dumps(first)) == first
    assert make(overrides=[f"{key}={value}" for key, value in GRAPH.items()]).description == first
    for changes in ({"limit": 40}, {"val_limit": 40}, {"overrides": GRAPH | LR}, {"model": "gt_small"}):
        dataset, model, budgets, overrides = KINDS["graphs"]
        options = {"budgets": budgets, "overrides": overrides, "limit": 48, **changes}
        assert DatasetMethod(dataset, options.pop("model", model), **options).description != first
    assert first["dataset"] == "algoreas/mst_easy" and first["metric"] == "f1"


def test_a_method_travels_to_other_processes(make, root):
    method = make(budgets=(2, 4))
    twin = pickle.loads(pickle.dumps(method))
    assert twin == method and twin.root == str(root)
    assert len(pickle.dumps(method)) < 2000
    assert twin(LR, 0, 4).cost == method(LR, 0, 4).cost


def test_a_process_opens_the_dataset_once_and_prepare_generates_it_whole(make, tmp_path, monkeypatch):
    opened = []
    real = loader.ensure_split
    monkeypatch.setattr(
        loader,
        "ensure_split",
        lambda card, split, *rest, **options: (opened.append(split), real(card, split, *rest, **options))[1],
    )
    method = make(root=tmp_path, budgets=(2, 4), limit=40, val_limit=20)
    assert opened == ["train", "val"]
    (folder,) = tmp_path.glob("algoreas/mst_easy/v*")
    assert sorted(path.name for path in folder.glob("*.h5")) == ["train-first40.h5", "val-first20.h5"]
    monkeypatch.setattr(generation.SplitBuilder, "build", None)
    for seed in range(3):
        method(LR, seed, 2)
    assert opened == ["train", "val"] * 2


def test_a_loss_that_is_not_finite_and_a_full_memory_are_told_apart_by_the_worker(make, tmp_path, monkeypatch):
    method = make(budgets=(9, 27))
    job = Job(0, LR, 0, 9, None, tmp_path / "well")
    assert run_job(method, job).status is Status.SUCCESS
    outcome = run_job(method, replace(job, config={"training.lr": 1e30}, folder=tmp_path / "nan"))
    assert outcome.status is Status.NOT_FINITE
    assert re.search(r"the training loss is nan at step \d+; .* Lower training.lr", outcome.reason)

    def full(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(loop.TrainingLoop, "_backward", full)
    outcome = run_job(method, replace(job, folder=tmp_path / "full"))
    assert outcome.status is Status.OUT_OF_MEMORY
    assert "ran out of memory while training with 16 graphs at once" in outcome.reason
    outcome = run_job(method, replace(job, config={"training.warmup": 27}))
    assert outcome.status is Status.RAISED and "warmup 27 leaves nothing" in outcome.reason


@pytest.mark.thorough
def test_the_baseline_file_of_a_configuration_trains_to_the_same_weights_and_score(make, root, tmp_path):
    method = make(budgets=(9, 27, 54))
    found = promoted(method, tmp_path / "search")[-1]
    path = tmp_path / "incumbent.yaml"
    path.write_text(yaml.safe_dump(method.baseline(LR)))
    again = train(
        "mst_easy", path, seed=0, limit=48, root=root, output=tmp_path / "train", evaluate="val", device="cpu"
    )
    assert again.scores["val"].primary == found.metrics["val_f1"] == pytest.approx(method.score_of(found.cost))
    assert again.record.best_step == found.metrics["best_step"]
    assert same(again.model.state_dict(), found.model.state_dict())
