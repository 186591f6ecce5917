from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from graphbench.core.errors import ConfigError
from graphbench.records.files import read_record
from graphbench.training import checkpoint
from graphbench.training.distributed import World, choose_device, join_world
from graphbench.training.run import train

OPTIONS = ["model.dropout=0", "training.lr=1e-3", "training.accumulate=2"]

SCRIPT = """
import importlib.util, os, sys
from itertools import count
from pathlib import Path
from graphbench.training import loop
from graphbench.training.run import train

looks = count(step=100 if os.environ["RANK"] == "1" else 1)  # seconds of processor time of each process
loop.processor_seconds = lambda: float(next(looks))

conftest, toys, config, output, *options = sys.argv[1:]
spec = importlib.util.spec_from_file_location("toys", conftest)
module = importlib.util.module_from_spec(spec)
sys.modules["toys"] = module
spec.loader.exec_module(module)
data = module.make_splits(Path(toys))
result = train(data=data, model=config, steps=8, output=output, overrides=options, evaluate="val")
assert result.record.steps == 8 and result.scores["val"].primary >= 0
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_processes(count: int, arguments: list[str]) -> None:
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    common = {"WORLD_SIZE": str(count), **place}
    command = [sys.executable, "-c", SCRIPT, *arguments]
    processes = [
        subprocess.Popen(
            command,
            env={**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(count)
    ]
    try:
        outputs = [process.communicate(timeout=280)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * count, outputs


@pytest.mark.slow
def test_two_processes_train_the_model_one_process_trains(toys, toy_folder, tiny, tmp_path):
    alone = train(data=toys, model=tiny, steps=8, output=tmp_path / "alone", overrides=OPTIONS[:2], evaluate="val")
    conftest = Path(__file__).with_name("conftest.py")
    run_processes(2, [str(conftest), str(toy_folder), str(tiny), str(tmp_path / "both"), *OPTIONS])
    one, _ = checkpoint.load_tensors(tmp_path / "alone/checkpoint.safetensors")
    two, _ = checkpoint.load_tensors(tmp_path / "both/checkpoint.safetensors")
    names = [name for name in one if name.startswith("model.")]
    assert all(torch.allclose(one[name], two[name], atol=1e-5) for name in names)
    record = read_record(tmp_path / "both/record.json")
    assert record.hardware["processes"] == 2
    assert record.cpu_seconds and record.cpu_seconds % 101 == 0  # of both
    for (step, value), (other_step, other) in zip(
        alone.record.curves["train_loss"], record.curves["train_loss"], strict=True
    ):
        assert (step, value) == (other_step, pytest.approx(other, abs=1e-4))


def test_random_numbers_are_a_function_of_seed_step_and_rank():
    def draw(seed: int, step: int, rank: int) -> float:
        World(rank, 2, torch.device("cpu")).seed_step(seed, step)
        return torch.rand(1).item()

    keys = [(seed, step, rank) for seed in (0, 1) for step in range(20) for rank in (0, 1)]
    drawn = {key: draw(*key) for key in keys}
    assert len(set(drawn.values())) == len(keys)
    assert all(draw(*key) == value for key, value in drawn.items())


def test_alone_means_no_process_group():
    with join_world("cpu") as world:
        assert (world.rank, world.size, world.leads) == (0, 1, True)
        assert world.from_leader({"a": 1}) == {"a": 1}
        assert world.any(True)
        assert not world.any(False)
        assert not torch.distributed.is_initialized()


def test_devices():
    assert choose_device("cpu") == torch.device("cpu")
    assert choose_device("auto").type in ("cpu", "cuda")
    with pytest.raises(ConfigError, match="this machine has"):
        choose_device("cuda:99")
