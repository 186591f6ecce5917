"""The GPU code paths of the shipped configurations: equal to the CPU's, without errors, and without needless waits.

The checks run in another process, see :mod:`benchmarks.pretended_cuda`: without a GPU they run on a pretended one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu_paths import DATASETS

ROOT = Path(__file__).parents[2]
LARGEST_LOSS_DIFFERENCE = 1e-6
LARGEST_GRADIENT_DIFFERENCE = 1e-3
WITHOUT_WAITS = ("algoreas", "clrs", "circuits")  # GIN and GT of these domains
MOST_WAITS = 2


def checked(tmp_path: Path, *arguments: str) -> list[dict[str, Any]]:
    """Return the rows of the checks; the command's output where it ends otherwise than planned."""
    output = tmp_path / "rows.json"
    command = [sys.executable, "-m", "benchmarks.gpu_paths", *arguments, "--output", str(output)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert output.is_file(), done.stderr
    rows: list[dict[str, Any]] = json.loads(output.read_text())["paths"]
    assert rows, done.stdout + done.stderr
    return rows


def require(row: dict[str, Any]) -> None:
    """Check one row."""
    name = f"{row['name']} on {row['dataset']}"
    assert not row["error"], f"{name}: {row['error']}"
    assert row["loss"] <= LARGEST_LOSS_DIFFERENCE, name
    assert row["gradient"] <= LARGEST_GRADIENT_DIFFERENCE, name
    domain, model = row["name"].split("/")
    if domain in WITHOUT_WAITS and model.split("_")[0] in ("gin", "gt"):
        assert sum(row["waits"].values()) <= MOST_WAITS, f"{name}: {row['waits']}"
        assert row["blocking_copies"] == 0, name


@pytest.mark.thorough
def test_a_model_computes_the_same_on_a_gpu_without_waiting_for_it(tmp_path: Path) -> None:
    (row,) = checked(tmp_path, "algoreas/gin_small=algoreas/mst_easy")
    require(row)
    assert row["copies"] > 0 and row["operations"] > 100


REPEATED = """
import torch

from benchmarks.pretended_cuda import allow_cuda_tensors, pretend_cuda
from graphbench.data.batches.batching import move

allow_cuda_tensors()
with pretend_cuda():
    copied = move(torch.arange(3).expand(2, 3), "cuda")
    assert copied.device.type == "cuda" and copied.cpu().tolist() == [[0, 1, 2], [0, 1, 2]]
print("copied")
"""


@pytest.mark.thorough
def test_tensors_that_repeat_their_numbers_are_copied_to_a_gpu() -> None:
    """Positions of texts are one row for all texts, which pinned memory cannot hold as it is."""
    done = subprocess.run([sys.executable, "-c", REPEATED], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "copied\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("domain", sorted(DATASETS))
def test_all_configurations_of_a_domain_train_on_a_gpu(domain: str, tmp_path: Path) -> None:
    rows = checked(tmp_path, domain, "--runs")
    for row in rows:
        require(row)
        assert row["run"] == "ok", row["name"]
