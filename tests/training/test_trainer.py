from __future__ import annotations

import errno
import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from graphbench.core.errors import (
    CardError,
    CheckpointError,
    ConfigError,
    MissingDependency,
    TrainingError,
    UnknownDataset,
)
from graphbench.loader import Splits
from graphbench.models import losses
from graphbench.records.files import read_record
from graphbench.tasks.registry import task_of
from graphbench.training import checkpoint, loop
from graphbench.training import run as driver
from graphbench.training.config import load_config
from graphbench.training.distributed import World
from graphbench.training.evaluate import evaluate_run
from graphbench.training.learners.torch_learner import TorchLearner
from graphbench.training.run import checked_tasks, make_context, train

from .conftest import make_card, make_splits


def weights(path):
    return checkpoint.load_tensors(path)[0]


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


def close(first, second, tolerance=1e-5):
    names = [name for name in first if name.startswith("model.")]
    return all(torch.allclose(first[k].float(), second[k].float(), atol=tolerance) for k in names)


@pytest.mark.parametrize("kind", ["graph", "trajectory"])
def test_an_output_may_be_named_like_a_method(make_toys, tmp_path, kind):
    config = tmp_path / "own.yaml"
    config.write_text(f"model: {{kind: {kind}, hidden: 8}}\ntraining: {{batch_size: 16, lr: 0.01}}\n")
    result = train(data=make_toys("keys"), model=config, output=tmp_path / "run", steps=2)
    again = evaluate_run(result.path, "test", data=make_toys("keys"), device="cpu")
    assert again["test"] == result.scores["test"]


def test_a_run_learns_and_leaves_weights_and_a_record(toys, tiny, tmp_path):
    result = train(data=toys, model=tiny, output=tmp_path / "run", steps=60)
    assert result.scores.keys() == {"val", "test", "n12"}
    assert result.scores["test"].primary > 0.9
    assert sorted(p.name for p in result.path.glob("[!.]*")) == [
        "best.safetensors",
        "checkpoint.safetensors",
        "config.json",
        "data.json",
        "fingerprint.json",
        "record.json",
    ]
    record = read_record(result.path / "record.json")
    assert record == result.record
    assert (record.dataset, record.model, record.steps, record.batch_size) == ("toys/heavy", "tiny", 60, 16)
    assert record.scores["test"] == result.scores["test"].to_dict()
    assert record.data_hashes.keys() == {"train", "val", "test", "n12"}
    assert record.parameters == sum(p.numel() for p in result.model.parameters())
    assert min(record.throughput_graphs_per_s, record.latency_ms, record.latency_ms_batched, record.wall_seconds) > 0
    assert record.peak_memory_bytes > 1e7
    assert not result.model.training


def test_curves_hold_every_validation_and_every_loss(toys, tiny, tmp_path):
    result = train(data=toys, model=tiny, output=tmp_path / "run", evaluate="val")
    curves = result.record.curves
    assert [step for step, _ in curves["train_loss"]] == [5, 10, 15, 20, 24]
    assert [step for step, _ in curves["val_f1"]] == [6, 12, 18, 24]
    best = max(value for _, value in curves["val_f1"])
    assert (result.record.best_step, best) in curves["val_f1"]
    assert result.scores["val"].primary == best


def test_graph_regression_runs_too(make_toys, tiny, tmp_path):
    result = train(data=make_toys("total"), model=tiny, output=tmp_path / "run", steps=40, evaluate=["test"])
    curve = result.record.curves["val_mae"]
    assert result.record.best_step == min(curve, key=lambda point: point[1])[0]
    assert result.scores["test"].primary < 2.0


def interrupted_at(monkeypatch, step, number="SIGINT"):
    """Send this process a signal during update ``step``, through the progress bar."""
    import os
    import signal
    from contextlib import contextmanager

    @contextmanager
    def bar(*args):
        done = 0

        def update(n=1, **fields):
            nonlocal done
            before, done = done, done + n
            if before < step <= done and n == 1:
                os.kill(os.getpid(), getattr(signal, number))

        yield SimpleNamespace(update=update)

    monkeypatch.setattr(driver, "progress_bar", bar)


@pytest.mark.parametrize("step", [1, 7, 18])
def test_an_interrupted_run_ends_with_the_same_bits(toys, tiny, tmp_path, monkeypatch, step):
    whole = train(data=toys, model=tiny, output=tmp_path / "whole", evaluate=("val", "test"))
    with monkeypatch.context() as patch:
        interrupted_at(patch, step)
        with pytest.raises(KeyboardInterrupt):
            train(data=toys, model=tiny, output=tmp_path / "cut")
    facts = checkpoint.load_tensors(tmp_path / "cut" / "checkpoint.safetensors")[1]
    assert facts["state"]["step"] == step
    resumed = train(data=toys, model=tiny, output=tmp_path / "cut", evaluate=("val", "test"))
    for name in ("checkpoint.safetensors", "best.safetensors"):
        assert same(weights(tmp_path / "whole" / name), weights(tmp_path / "cut" / name))
    assert resumed.record.curves == whole.record.curves
    assert resumed.record.scores == whole.record.scores
    assert resumed.record.best_step == whole.record.best_step


def test_a_request_to_terminate_writes_a_checkpoint_and_exits(toys, tiny, tmp_path, monkeypatch):
    interrupted_at(monkeypatch, 3, "SIGTERM")
    with pytest.raises(SystemExit) as end:
        train(data=toys, model=tiny, output=tmp_path)
    assert end.value.code == 143
    assert checkpoint.load_tensors(tmp_path / "checkpoint.safetensors")[1]["state"]["step"] == 3


def failing_loss(monkeypatch, call, result):
    """Make the ``call``-th loss of a run ``result(loss)``; the estimate before training takes no losses here."""
    calls = 0
    real = losses.losses

    def changed(*args, **options):
        nonlocal calls
        calls += 1
        return {name: result(value) if calls == call else value for name, value in real(*args, **options).items()}

    monkeypatch.setattr(losses, "losses", changed)
    monkeypatch.setattr(loop.TrainingLoop, "seconds_per_update", lambda self: 0.0)


def test_a_crash_between_checkpoints_costs_only_time(toys, tiny, tmp_path, monkeypatch):
    whole = train(data=toys, model=tiny, output=tmp_path / "whole", evaluate="test")

    def crash(_):
        raise RuntimeError("power cut")

    with monkeypatch.context() as patch:
        failing_loss(patch, 15, crash)
        with pytest.raises(RuntimeError, match="power cut"):
            train(data=toys, model=tiny, output=tmp_path / "cut")
    resumed = train(data=toys, model=tiny, output=tmp_path / "cut", evaluate="test")
    assert same(weights(tmp_path / "whole/checkpoint.safetensors"), weights(tmp_path / "cut/checkpoint.safetensors"))
    assert resumed.record.curves == whole.record.curves


def test_a_finished_run_is_not_trained_again(toys, tiny, tmp_path, monkeypatch):
    first = train(data=toys, model=tiny, output=tmp_path, evaluate="test")
    monkeypatch.setattr(losses, "losses", None)
    again = train(data=toys, model=tiny, output=tmp_path, evaluate=("test", "n12"))
    assert again.scores["test"].to_dict() == first.scores["test"].to_dict()
    assert again.record.curves == first.record.curves
    assert again.scores.keys() == {"test", "n12"}


def test_a_run_continues_to_a_larger_budget(toys, tiny, tmp_path):
    fixed = ["training.schedule_steps=24"]
    train(data=toys, model=tiny, steps=12, output=tmp_path / "grown", overrides=fixed, evaluate="val")
    train(data=toys, model=tiny, steps=24, output=tmp_path / "grown", overrides=fixed, evaluate="val")
    train(data=toys, model=tiny, steps=24, output=tmp_path / "whole", overrides=fixed, evaluate="val")
    assert same(weights(tmp_path / "grown/checkpoint.safetensors"), weights(tmp_path / "whole/checkpoint.safetensors"))


def test_another_configuration_does_not_continue_a_run(toys, tiny, tmp_path):
    train(data=toys, model=tiny, steps=6, output=tmp_path, evaluate="val")
    with pytest.raises(CheckpointError, match=r"another run.*training.seed 0 -> 1.*resume=False"):
        train(data=toys, model=tiny, steps=6, seed=1, output=tmp_path)
    anew = train(data=toys, model=tiny, steps=6, seed=1, output=tmp_path, resume=False, evaluate="val")
    assert anew.record.seed == 1


def test_the_seed_decides_everything_and_leaves_the_caller_alone(toys, tiny, tmp_path):
    torch.manual_seed(5)
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    expected = (torch.rand(1).item(), random.random(), np.random.rand())  # noqa: NPY002
    torch.manual_seed(5)
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        train(data=toys, model=tiny, steps=5, seed=seed, output=tmp_path / name, evaluate="val")
    assert (torch.rand(1).item(), random.random(), np.random.rand()) == expected  # noqa: NPY002
    a, b, c = (weights(tmp_path / name / "checkpoint.safetensors") for name in "abc")
    assert same(a, b)
    assert not same(a, c)


@pytest.mark.parametrize("output", ["heavy", "total", "both"])
@pytest.mark.thorough
def test_cutting_a_batch_into_parts_leaves_the_update_the_same(make_toys, tiny, tmp_path, output):
    options = ["model.dropout=0", "training.warmup=0", "training.lr=1e-3"]
    for name, parts in (("one", 1), ("five", 5)):
        train(
            data=make_toys(output),
            model=tiny,
            steps=6,
            output=tmp_path / name,
            overrides=[*options, f"training.accumulate={parts}"],
            evaluate=(),
        )
    one, five = (weights(tmp_path / name / "checkpoint.safetensors") for name in ("one", "five"))
    assert close(one, five)
    assert not same(one, five)


def scripted_validation(monkeypatch, scores):
    """Let validation return ``scores`` one after the other."""
    queue = iter(scores)
    monkeypatch.setattr(loop.TrainingLoop, "_validation_score", lambda self: next(queue))


@pytest.mark.parametrize(
    ("output", "scores"), [("heavy", [0.5, 0.6, 0.6, 0.55, 0.9]), ("total", [0.5, 0.4, 0.4, 0.45, 0.1])]
)
def test_training_stops_when_patience_is_spent(make_toys, tiny, tmp_path, monkeypatch, output, scores):
    scripted_validation(monkeypatch, scores)
    options = ["training.eval_every=2", "training.patience=2"]
    result = train(data=make_toys(output), model=tiny, output=tmp_path, overrides=options, evaluate=())
    assert (result.record.steps, result.record.best_step) == (8, 4)
    assert "stopped early after 2 validations" in result.record.notes
    best, facts = checkpoint.load_tensors(tmp_path / "best.safetensors")
    assert facts["best"] == {"step": 4, "score": scores[1]}
    assert all(torch.equal(best[f"model.{k}"], v) for k, v in result.model.state_dict().items())
    last = weights(tmp_path / "checkpoint.safetensors")
    assert not same(best, {name: last[name] for name in best})


@pytest.mark.parametrize(("later", "best"), [(False, 4), (True, 8)])
def test_equal_validations(make_toys, tiny, tmp_path, monkeypatch, later, best):
    scripted_validation(monkeypatch, [0.5, 0.6, 0.55, 0.6, 0.9])
    options = ["training.eval_every=2", "training.patience=2", f"training.prefer_later={later}"]
    result = train(data=make_toys("heavy"), model=tiny, output=tmp_path, overrides=options, evaluate=())
    assert (result.record.steps, result.record.best_step) == (8, best)


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_ends_the_run_and_keeps_the_checkpoint(toys, tiny, tmp_path, monkeypatch, broken):
    failing_loss(monkeypatch, 9, lambda value: value * broken)
    message = rf"the training loss is {broken} at step 9; the checkpoint of step 6 is kept.*Lower training.lr"
    with pytest.raises(TrainingError, match=message):
        train(data=toys, model=tiny, output=tmp_path)
    kept, facts = checkpoint.load_tensors(tmp_path / "checkpoint.safetensors")
    assert facts["state"]["step"] == 6
    assert all(tensor.isfinite().all() for tensor in kept.values())


def test_weights_that_are_not_finite_are_never_saved(toys, tiny, tmp_path, monkeypatch):
    failing_loss(monkeypatch, 6, lambda value: value + (value - value.detach()).sqrt())
    with pytest.raises(TrainingError, match=r"nan at step 6.*no checkpoint"):
        train(data=toys, model=tiny, output=tmp_path)
    assert not (tmp_path / "checkpoint.safetensors").exists()
    assert not (tmp_path / "best.safetensors").exists()


def test_too_little_memory_names_a_remedy(toys, tiny, tmp_path, monkeypatch):
    def full(_):
        raise torch.OutOfMemoryError("out of memory")

    failing_loss(monkeypatch, 2, full)
    with pytest.raises(TrainingError, match=r"16 graphs at once.*raise training.accumulate"):
        train(data=toys, model=tiny, output=tmp_path)


@pytest.mark.parametrize(
    "error",
    [MemoryError("Unable to allocate 8 TiB for an array"), RuntimeError("DefaultCPUAllocator: can't allocate memory")],
)
def test_batches_that_the_memory_of_the_machine_cannot_hold_name_the_same_remedy(toys, tiny, tmp_path, error):
    def batches(self, *_, **__):
        raise error

    task = type(task_of(toys.card))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(task, "batches", batches)
        with pytest.raises(TrainingError, match=r"16 graphs at once.*lower training.batch_size.*model.hidden"):
            train(data=toys, model=tiny, output=tmp_path)


def test_too_little_memory_for_the_estimate_names_the_same_remedy(toys, tiny, tmp_path, monkeypatch):
    def full(*_, **__):
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(losses, "losses", full)
    with pytest.raises(TrainingError, match=r"16 graphs at once.*raise training.accumulate"):
        train(data=toys, model=tiny, output=tmp_path)


def test_what_cannot_be_trained_is_refused(toys, make_toys, tiny, tmp_path):
    with pytest.raises(ConfigError, match="neither dataset nor data"):
        train()
    with pytest.raises(ConfigError, match="cannot be cut into 17 parts"):
        train(data=toys, model=tiny, output=tmp_path, overrides=["training.accumulate=17"])
    with pytest.raises(CardError, match=r"'tset'.*train, val, test, n12"):
        train(data=toys, model=tiny, steps=1, output=tmp_path, evaluate="tset")
    with pytest.raises(ConfigError, match="device 'abacus' does not exist"):
        train(data=toys, model=tiny, output=tmp_path, device="abacus")
    empty = make_toys()
    empty._opened["train"] = empty.train[[]]
    with pytest.raises(ConfigError, match="training split of toys/heavy is empty"):
        train(data=empty, model=tiny, output=tmp_path)


def test_fewer_graphs_than_a_batch_train_on_all_of_them(make_toys, tiny, tmp_path):
    result = train(data=make_toys(limit=5), model=tiny, limit=5, steps=4, output=tmp_path, evaluate="val")
    assert result.record.steps == 4
    assert result.record.budget.small
    assert "first 5 samples" in result.record.budget.label


def other_data(make_toys, choose):
    data = make_toys()
    data._opened["train"] = choose(data.train)
    return data


def test_a_run_does_not_continue_on_other_data(make_toys, tiny, tmp_path):
    first = train(data=make_toys(limit=40), model=tiny, steps=4, output=tmp_path, evaluate=())
    for choose in (lambda d: d[:30], lambda d: d[1:41], lambda d: d.copy(slice(0, 40)), lambda d: d):
        with pytest.raises(CheckpointError, match="belongs to another run"):
            train(data=other_data(make_toys, choose), model=tiny, steps=4, output=tmp_path, evaluate=())
    same_graphs = make_toys(limit=50)
    same_graphs._opened |= {"train": same_graphs.train[:40], "val": make_toys().val}
    again = train(data=same_graphs, model=tiny, steps=4, output=tmp_path, evaluate=())
    assert again.record.data_hashes["train"] == first.record.data_hashes["train"]
    assert again.record.curves == first.record.curves


def test_data_and_dataset_must_agree(toys, make_toys, tiny, tmp_path):
    with pytest.raises(ConfigError, match=r"dataset 'flow_easy'.*toys/heavy"):
        train("flow_easy", data=toys, model=tiny, output=tmp_path)
    with pytest.raises(ConfigError, match=r"limit=5.*70 samples of train.*leave limit out"):
        train(data=toys, model=tiny, limit=5, output=tmp_path)
    with pytest.raises(UnknownDataset):
        train("toys/hevy", data=toys, model=tiny, output=tmp_path)
    assert train("toys/heavy", data=toys, model=tiny, steps=2, output=tmp_path, evaluate=()).record.steps == 2


def test_an_output_that_is_a_file_is_refused(toys, tiny, tmp_path):
    for output in (tiny, tiny / "run"):
        with pytest.raises(ConfigError, match=r"tiny.yaml is a file; choose another"):
            train(data=toys, model=tiny, output=output)


@pytest.mark.parametrize("rank", [0, 1])
def test_process_0_alone_generates(toy_folder, rank, tiny, tmp_path):
    log = []
    data = Splits(make_card(), lambda name: (log.append(name), make_splits(toy_folder)[name])[1])
    world = SimpleNamespace(leads=rank == 0, size=1, wait=lambda: log.append("others are done"))
    config = load_config(data.card.address, tiny)
    make_context(
        config, checked_tasks(config, {data.card.address: data.card}), {data.card.address: data}, tmp_path, world
    )
    splits = ["train", "val"]
    assert log == ([*splits, "others are done"] if rank == 0 else ["others are done", *splits])


def test_a_process_without_samples_of_a_batch_adds_nothing(toys, tiny, tmp_path):
    id_ = toys.card.address
    config = load_config(id_, tiny)
    tasks, world = checked_tasks(config, {id_: toys.card}), World(0, 1, torch.device("cpu"))
    training = TorchLearner(make_context(config, tasks, {id_: toys}, tmp_path, world)).loop
    assert float(training._backward(id_, ())) == 0.0
    assert all(parameter.grad is None for parameter in training.model.parameters())


def test_tensorboard_curves(toys, tiny, tmp_path):
    pytest.importorskip("tensorboard")
    train(data=toys, model=tiny, steps=6, output=tmp_path, tensorboard=True, evaluate="val")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {"train/loss", "train/lr", "val/f1"}
    assert [e.step for e in events.Scalars("val/f1")] == [6]


def test_tensorboard_that_is_not_installed_is_an_error(toys, tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingDependency, match=r"pip install 'graphbench\[tensorboard\]'"):
        train(data=toys, model=tiny, steps=6, output=tmp_path, tensorboard=True)


@pytest.mark.parametrize("step", ["__init__", "add_scalar", "close"])
def test_a_board_that_fails_costs_no_result(step, toys, tiny, tmp_path, monkeypatch, caplog):
    writer = pytest.importorskip("torch.utils.tensorboard").SummaryWriter

    def fail(*args, **keywords):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writer, step, fail)
    result = train(data=toys, model=tiny, steps=6, output=tmp_path, tensorboard=True, evaluate="val")
    assert "val" in result.scores and (tmp_path / "record.json").is_file()
    (line,) = [record.getMessage() for record in caplog.records if "TensorBoard" in record.getMessage()]
    assert "No space left" in line and str(tmp_path / "tensorboard") in line and "tensorboard=True" in line


def test_an_interrupt_of_a_board_is_one(toys, tiny, tmp_path, monkeypatch):
    writer = pytest.importorskip("torch.utils.tensorboard").SummaryWriter

    def stop(*args, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr(writer, "close", stop)
    with pytest.raises(KeyboardInterrupt):
        train(data=toys, model=tiny, steps=6, output=tmp_path, tensorboard=True, evaluate="val")
