"""A small dataset and a small model, both real, so that every part of training runs on what users run it on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphbench.catalog.cards import Card, Metrics, Source, SplitSpec
from graphbench.data.arrays.hashing import samples_hash
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.store.files import map_arrays, write_arrays
from graphbench.data.store.layout import Manifest
from graphbench.loader import Splits

COUNTS = {"train": 70, "val": 24, "test": 24, "n12": 10}

TINY = """
model: {processor: gin, layers: 2, hidden: 16, heads: 4, dropout: 0.1, positional: {type: rwse, k: 4, hidden: 16}}
training: {steps: 24, batch_size: 16, lr: 1.0e-2, warmup: 4, weight_decay: 0.01, eval_every: 6, log_every: 5}
tasks: {toy: {training: {gradient_clip: 1.0}}, other: {model: {layers: 7}}}
parameters: {toy: 2.0e+3}
"""


def make_card(output: str = "heavy") -> Card:
    """Return the card of a learnable task: is the weight of an edge above a half?"""
    outputs = {
        "heavy": {"heavy": ["output", "edge", "mask"]},
        "total": {"total": ["output", "graph", "scalar"]},
        "both": {"heavy": ["output", "edge", "mask"], "total": ["output", "graph", "scalar"]},
        "keys": {"keys": ["output", "edge", "mask"]},  # a method of dictionaries, batches and modules has that name
    }[output]
    return Card(
        id=f"toys/{output}",
        domain="toys",
        family="toy",
        version=1,
        title="Toy",
        summary="Toy",
        generator="toys.toy",
        features={"weight": ["input", "edge", "scalar"], **outputs},
        splits={name: SplitSpec(count=COUNTS[name]) for name in ("train", "val", "test")},
        ood={"n12": SplitSpec(count=COUNTS["n12"])},
        metrics=Metrics(primary="mae") if output == "total" else Metrics(primary="f1", also=("accuracy",)),
        licence="CC0",
        source=Source(paper="none"),
        path=Path("toy.yaml"),
    )


def write_split(folder: Path, card: Card, split: str) -> Path:
    """Write rings with a few chords, of 4 to 8 nodes (12 where the split says so)."""
    rng = np.random.default_rng(len(split) + COUNTS[split])
    nodes, counts, edges = [], [], []
    for _ in range(COUNTS[split]):
        n = 12 if split == "n12" else int(rng.integers(4, 9))
        ring = {(i, i + 1) for i in range(n - 1)} | {(0, n - 1)}
        chords = {tuple(sorted(rng.choice(n, 2, replace=False).tolist())) for _ in range(2)}
        own = sorted(ring | chords)
        nodes.append(n)
        counts.append(len(own))
        edges += own
    weight = rng.random(len(edges), dtype=np.float32)
    owner = np.repeat(np.arange(len(nodes)), counts)
    values = {
        "heavy": (weight > 0.5).astype(np.uint8),
        "total": np.bincount(owner, weight).astype(np.float32),
        "keys": (weight > 0.5).astype(np.uint8),
    }
    path = folder / f"{split}.h5"
    arrays = {
        "node_ptr": np.concatenate([[0], np.cumsum(nodes)]),
        "edge_ptr": np.concatenate([[0], np.cumsum(counts)]),
        "edges": np.array(edges, np.int32),
        "weight": weight,
        **{f.name: values[f.name] for f in card.outputs},
    }
    write_arrays(path, arrays)
    content = samples_hash(map_arrays(path))
    Manifest(folder).add_file(path.name, {"split": split, "count": len(nodes), "content": content}, {})
    return path


def make_splits(folder: Path, output: str = "heavy", limit: int | None = None) -> Splits:
    """Return the toy dataset, written to ``folder`` if it is not there yet."""
    card = make_card(output)
    home = folder / output / "v1-toy"

    def open_split(name: str) -> GraphDataset:
        path = home / f"{name}.h5"
        return GraphDataset(card, name, path if path.is_file() else write_split(home, card, name), limit=limit)

    return Splits(card, open_split)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Path of a model configuration that trains in a moment."""
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="session")
def toy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("toys")


@pytest.fixture
def toys(toy_folder: Path) -> Splits:
    """The toy dataset with an edge mask as its output."""
    return make_splits(toy_folder)


@pytest.fixture(scope="session")
def make_toys(toy_folder: Path):
    """``make_toys(output, limit)``: the toy dataset with other outputs or fewer graphs."""
    return lambda output="heavy", limit=None: make_splits(toy_folder, output, limit)
