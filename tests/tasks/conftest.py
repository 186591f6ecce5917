"""A small dataset of algorithm selection: which of three algorithms is cheapest depends on a graph's density."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from pydantic import BaseModel, ConfigDict

import graphbench
from graphbench.catalog.cards import Card
from graphbench.catalog.families import load_family
from graphbench.catalog.names import catalog
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.seeds import sample_generator
from graphbench.data.components.domain import unregister
from graphbench.data.components.generators import Generator

SELECT: dict[str, Any] = {
    "version": 1,
    "title": "Toy portfolio",
    "summary": "Which of three algorithms is cheapest on a random graph.",
    "generator": "portfolios.density",
    "features": {
        "sparse_cost": ["output", "graph", "scalar"],
        "dense_cost": ["output", "graph", "scalar"],
        "any_cost": ["output", "graph", "scalar"],
        "density": ["input", "graph", "scalar"],
        "feature_seconds": ["meta", "graph", "scalar"],
    },
    "task": {"type": "select"},
    "parameters": {"nodes": 8},
    "splits": {
        "train": {"count": 160},
        "val": {"count": 40, "like": "train"},
        "test": {"count": 60, "like": "train"},
    },
    "metrics": {"primary": "closed_gap", "also": ["par10", "best_share", "regret"]},
    "licence": "CC0",
    "source": {"paper": "none"},
}


class DensityParameters(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    nodes: int = 8


def generate(parameters: DensityParameters, key: Any, indices: Any, attempts: Any) -> Samples:
    """Return random graphs; one algorithm is fast on sparse ones, one on dense ones, one is always mediocre."""
    pairs = np.array(list(combinations(range(parameters.nodes), 2)), np.int64)
    edges, rows = [], []
    for index, attempt in zip(indices, attempts, strict=True):
        rng = sample_generator(key, int(index), int(attempt))
        edges.append(pairs[rng.random(len(pairs)) < rng.uniform(0.1, 0.9)])
        density = len(edges[-1]) / len(pairs)
        noise = rng.uniform(0.9, 1.1, 3)
        rows.append([*(np.array([1 + 80 * density**3, 1 + 60 * (1 - density) ** 3, 9.0]) * noise), density])
    table = np.array(rows, np.float32)
    values = dict(zip(("sparse_cost", "dense_cost", "any_cost", "density"), table.T.copy(), strict=True))
    values["feature_seconds"] = np.full(len(indices), 0.5, np.float32)
    counts = np.array([len(own) for own in edges], np.int64)
    return Samples(np.full(len(indices), parameters.nodes, np.int64), counts, np.concatenate(edges), values)


@pytest.fixture(scope="module")
def portfolio_domain() -> Any:
    """The domain ``portfolios``, registered for the tests of a module."""
    generator = Generator(
        name="portfolios.density",
        version=1,
        parameters=DensityParameters,
        generate=generate,
        check=lambda parameters, samples: [],
        statistics=lambda parameters, samples: {"density": samples.values["density"].astype(np.float64)},
        shard_size=lambda parameters: 1000,
    )
    yield graphbench.register_domain(graphbench.Domain("portfolios", generators={"density": generator}))
    unregister("portfolios")


def load_card(folder: Path, **changes: Any) -> Card:
    """Return the card ``portfolios/toy`` with other top-level keys; None removes one."""
    path = folder / "datasets" / "portfolios" / "toy.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {key: value for key, value in {**SELECT, **changes}.items() if value is not None}
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return load_family(path)[0]


@pytest.fixture
def select_card(tmp_path, portfolio_domain):
    """``select_card(**changes)``: the card of the toy dataset with other top-level keys."""
    return lambda **changes: load_card(tmp_path, **changes)


@pytest.fixture(scope="module")
def select_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("select")


@pytest.fixture
def select_data(select_card, select_root, monkeypatch):
    """``select_data(**changes)``: the splits of the toy dataset, which the catalogue has, too."""

    def load(**changes: Any) -> Any:
        card = select_card(**changes)
        monkeypatch.setitem(catalog().cards, card.id, card)
        return graphbench.Loader(card.id, root=select_root, workers=1, progress=False).load()

    return load
