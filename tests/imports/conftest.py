"""Own graphs for the tests of imports, and a folder that holds nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's own datasets, and a root beside it."""
    monkeypatch.setenv("GRAPHBENCH_OWN", str(tmp_path / "own"))
    monkeypatch.setenv("GRAPHBENCH_ROOT", str(tmp_path / "root"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "own"


def molecule(number: int, nodes: int | None = None) -> Data:
    """Return a tree with a few cycles, classes at nodes and edges, and a label of the graph that follows from them."""
    rng = np.random.default_rng(number)
    count = int(rng.integers(6, 14)) if nodes is None else nodes
    pairs = {(int(rng.integers(0, k)), k) for k in range(1, count)}
    pairs |= {(min(a, b), max(a, b)) for a, b in rng.integers(0, count, (2, 2)).tolist() if a != b}
    u, v = np.array(sorted(pairs)).T
    x = rng.integers(0, 4, (count, 2))
    kinds = (u * 7 + v) % 3
    return Data(
        x=torch.from_numpy(x),
        edge_index=torch.from_numpy(np.stack([np.r_[u, v], np.r_[v, u]])),
        edge_attr=torch.from_numpy(np.r_[kinds, kinds]),
        y=torch.tensor([float((x[:, 0] == 1).sum() > 2)]),
        group=torch.tensor([number % 7]),
    )


@pytest.fixture(scope="session")
def molecules() -> list[Data]:
    return [molecule(i) for i in range(80)]
