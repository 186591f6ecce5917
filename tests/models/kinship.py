"""Toy puzzles in the form of CLUTRR: the answer is the sum of the relations on the way, modulo their number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Batch

from graphbench.catalog.cards import Card, Metrics, Source, SplitSpec
from graphbench.catalog.features import Feature, parse_features
from graphbench.catalog.schema import Schema
from graphbench.data.arrays.hashing import samples_hash
from graphbench.data.arrays.texts import Texts, stored_arrays
from graphbench.data.batches.batching import FlatGraphs, make_batch
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.store.files import map_arrays, write_arrays
from graphbench.data.store.layout import Manifest
from graphbench.loader import Splits
from graphbench.models.build import ModelConfig, StoryModelConfig, build_model
from graphbench.models.story.model import completed

CLASSES, POOL = 22, 32
SPEC = {
    "relation": ["input", "edge", f"categorical({CLASSES})"],
    "asker": ["input", "node", "mask_one"],
    "asked": ["input", "node", "mask_one"],
    "entity": ["input", "node", f"categorical({POOL})"],
    "story": ["input", "graph", "text"],
    "tokens": ["input", "graph", "text"],
    "answer": ["output", "graph", f"categorical({CLASSES})"],
}
FEATURES = parse_features(SPEC)
FILLERS = ("", "as everybody knows , ", "it is true that ")


def puzzle(rng: np.random.Generator, facts: int, words: int = 4) -> dict[str, Any]:
    """Return one puzzle with the path x0 .. xk in shuffled order, told in one shuffled sentence per fact."""
    people, relations = facts + 1, rng.integers(0, words, facts)
    node, entity = rng.permutation(people), rng.choice(POOL, people, replace=False)
    order = rng.permutation(facts)
    edges = np.stack([node[:-1], node[1:]], axis=1)[order]
    sentences = [
        f"{FILLERS[rng.integers(3)]}@ent{entity[x]} has a w{r} called @ent{entity[y]} ."
        for (x, y), r in zip(edges.tolist(), relations[order].tolist(), strict=True)
    ]
    marks = np.zeros((2, people), np.uint8)
    marks[0, node[0]] = marks[1, node[-1]] = 1
    told = " ".join(sentences)
    return {
        "edges": edges, "relation": relations[order], "asker": marks[0], "asked": marks[1], "entity": entity,
        "story": told.upper(), "tokens": told, "answer": int(relations.sum()) % CLASSES,
    }  # fmt: skip


def puzzles(count: int, seed: int = 0, facts: tuple[int, int] = (2, 4), words: int = 4) -> list[dict[str, Any]]:
    """Return puzzles with so many facts, both ends included."""
    rng = np.random.default_rng(seed)
    return [puzzle(rng, int(rng.integers(facts[0], facts[1] + 1)), words) for _ in range(count)]


def arrays(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """Return samples as flat arrays."""
    sizes = [(len(s["entity"]), len(s["edges"])) for s in samples]
    ptr = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(sizes, axis=0)])
    joined = {name: np.concatenate([s[name] for s in samples]) for name in ("relation", "asker", "asked", "entity")}
    return {
        "node_ptr": ptr[:, 0],
        "edge_ptr": ptr[:, 1],
        "edges": np.concatenate([s["edges"] for s in samples]).astype(np.int32),
        **{name: values.astype(np.uint8) for name, values in joined.items()},
        "story": Texts.of([s["story"] for s in samples]),
        "tokens": Texts.of([s["tokens"] for s in samples]),
        "answer": np.array([s["answer"] for s in samples], np.uint8),
    }


def batch_of(samples: list[dict[str, Any]], features: tuple[Feature, ...] = FEATURES) -> Batch:
    """Return samples as the batch that training gets."""
    values = arrays(samples)
    edges = {name: values.pop(name) for name in ("node_ptr", "edge_ptr", "edges")}
    return make_batch(
        FlatGraphs(**edges, values=values, schema=Schema(features, directed=True)), slice(0, len(samples))
    )


def graph_model(processor: str, **settings: Any) -> torch.nn.Module:
    """Return a small graph model that reads by query."""
    small = {"layers": 2, "hidden": 16, "heads": 4, "readout": "query", "pooling": "mean"}
    config = ModelConfig.model_validate({**small, "processor": processor, **settings})
    return build_model(config, FEATURES, directed=True)


def story_model(batch: Batch, **settings: Any) -> torch.nn.Module:
    """Return a small story model with the words of a batch."""
    small = {"kind": "story", "text": "tokens", "embedding": 12, "hidden": 8, "decoder_hidden": 16}
    config = StoryModelConfig.model_validate({**small, **settings})
    return build_model(completed(config, FEATURES, [batch]), FEATURES, directed=True)


def make_card() -> Card:
    """Return the card of the toy puzzles."""
    return Card(
        id="toys/kinship", domain="toys", family="kinship", version=1, title="Toy", summary="Toy",
        generator="toys.kinship", directed=True, features=SPEC,
        splits={name: SplitSpec(count=40) for name in ("train", "val", "test")},
        metrics=Metrics(primary="accuracy"), licence="CC0", source=Source(paper="none"), path=Path("toy.yaml"),
    )  # fmt: skip


def make_splits(folder: Path, count: int = 40) -> Splits:
    """Return the toy puzzles as a dataset; the test split has words that training does not."""
    card = make_card()

    def open_split(name: str) -> GraphDataset:
        path = folder / f"{name}.h5"
        if not path.is_file():
            samples = puzzles(count, seed=len(name), words=6 if name == "test" else 4)
            write_arrays(path, stored_arrays(arrays(samples)))
            content = samples_hash(map_arrays(path))
            Manifest(folder).add_file(path.name, {"split": name, "count": count, "content": content}, {})
        return GraphDataset(card, name, path)

    return Splits(card, open_split)
