"""Small batches and features, made here, so that no dataset is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from graphbench.catalog.features import Feature, parse_features
from graphbench.models.build import Model, ModelConfig, build_model
from graphbench.models.graphs import Layout

TASKS: dict[str, dict[str, list[str]]] = {
    "topological_sort": {"priority": ["input", "node", "scalar"], "rank": ["output", "node", "scalar"]},
    "mst": {"weight": ["input", "edge", "scalar"], "in_tree": ["output", "edge", "mask"]},
    "bridges": {"is_bridge": ["output", "edge", "mask"]},
    "steiner_tree": {
        "weight": ["input", "edge", "scalar"],
        "is_terminal": ["input", "node", "mask"],
        "in_tree": ["output", "edge", "mask"],
    },
    "max_clique": {"in_clique": ["output", "node", "mask"]},
    "flow": {
        "capacity": ["input", "edge", "scalar"],
        "source": ["input", "node", "mask_one"],
        "sink": ["input", "node", "mask_one"],
        "value": ["output", "graph", "scalar"],
    },
    "max_matching": {"weight": ["input", "edge", "scalar"], "matched": ["output", "edge", "mask"]},
}
PROCESSOR_NAMES = ("gin", "gt", "mlp", "deepsets")


SMALL: dict[str, Any] = {"layers": 2, "hidden": 16, "heads": 4, "positional": {"type": "rwse", "k": 4, "hidden": 16}}


def features_of(task: str) -> tuple[Feature, ...]:
    """Return the features of an algorithmic reasoning task."""
    return parse_features(TASKS[task])


def graph(nodes: int, task: str = "mst", seed: int = 0, p: float = 0.4) -> Data:
    """Return one random graph with random features and labels of a task."""
    rng = np.random.default_rng(seed)
    drawn = nx.gnp_random_graph(nodes, p, seed=seed)
    pairs = np.array(sorted(drawn.edges()), dtype=np.int64).reshape(-1, 2)
    directed = task == "topological_sort"
    columns = pairs.T if directed else np.stack([pairs, pairs[:, ::-1]], axis=1).reshape(-1, 2).T
    data = Data(edge_index=torch.tensor(np.ascontiguousarray(columns)), num_nodes=nodes)
    items = {"node": nodes, "edge": len(pairs), "graph": 1}
    for feature in features_of(task):
        count = items[feature.location.value]
        if feature.kind.value == "scalar":
            values = torch.tensor(rng.uniform(0, 10, count), dtype=torch.float32)
        elif feature.kind.value == "mask_one":
            values = torch.zeros(count, dtype=torch.uint8)
            values[rng.integers(count)] = 1
        else:
            values = torch.tensor(rng.integers(0, 2, count), dtype=torch.uint8)
        if feature.location.value == "edge" and not directed:
            values = values.repeat_interleave(2)
            if feature.name == "capacity":
                values = torch.tensor(rng.uniform(0, 3, 2 * count), dtype=torch.float32)
        data[feature.name] = values
    return data


def batch_of(graphs: Sequence[Data]) -> Batch:
    """Return a PyG batch."""
    return Batch.from_data_list(list(graphs))


def random_batch(task: str = "mst", sizes: Sequence[int] = (7, 12, 5, 9), seed: int = 0) -> Batch:
    """Return a batch of random graphs of these sizes."""
    return batch_of([graph(n, task, seed + i) for i, n in enumerate(sizes)])


def small_model(processor: str, task: str, **settings: Any) -> Model:
    """Return a tiny model for a task."""
    config = ModelConfig.model_validate({**SMALL, "processor": processor, **settings})
    return build_model(config, features_of(task), directed=task == "topological_sort")


def assert_near_under_autocast(model: torch.nn.Module, batch: Batch, output: str) -> None:
    """Assert that an output stays float32 under autocast, and near what full precision gives."""
    expected = model(batch)[output]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = model(batch)[output]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, atol=0.1, rtol=0.1)


@pytest.fixture(autouse=True)
def _fixed_seed() -> None:
    """Every test starts from the same random state."""
    torch.manual_seed(0)


def layout_of(edge_index: torch.Tensor, nodes: int) -> Layout:
    """Return the layout of one directed graph."""
    graph = torch.zeros(nodes, dtype=torch.long)
    return Layout(edge_index, graph, torch.tensor([0, nodes]), 1, directed=True)


def random_arcs(nodes: int, count: int) -> torch.Tensor:
    """Return that many different arcs without loops, int64 [2, count]."""
    pairs = [(u, v) for u in range(nodes) for v in range(nodes) if u != v]
    return torch.tensor(pairs)[torch.randperm(len(pairs))[:count]].t().reshape(2, count)
