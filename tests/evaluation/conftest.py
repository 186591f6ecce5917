import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from graphbench.catalog.cards import Card, Measured
from graphbench.catalog.families import load_family
from graphbench.records.budgets import Budget
from graphbench.records.provenance import Verification
from graphbench.records.record import RunRecord

CARD = """
version: 2
title: Toy trees
summary: Which edges are <special> & few.
generator: toy.tree
features:
  weight: [input, edge, scalar]
  in_tree: [output, edge, mask]
parameters: {nodes: 16}
splits:
  train: {count: 1000}
  val: {count: 100, like: train}
  test: {count: 100, shift: larger graphs, parameters: {nodes: 128}}
ood:
  n192: {count: 10, like: test, parameters: {nodes: 192}}
  n512: {count: 10, like: test, parameters: {nodes: 512}}
variants:
  medium: {}
metrics: {primary: f1, also: [accuracy, f1_per_graph]}
licence: MIT
source: {paper: A paper}
"""

FLOOR = {"all_positive": 0.4, "all_negative": 0.0, "majority": 0.0, "random": 0.3}


@pytest.fixture
def card(tmp_path: Path) -> Card:
    """A card whose id has published numbers (``algoreas/mst_medium``), with measured floors."""
    path = tmp_path / "cards" / "algoreas" / "mst.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(CARD, encoding="utf-8")
    (plain,) = load_family(path)
    floor = {
        split: {name: {"f1": value, "accuracy": value / 2} for name, value in FLOOR.items()}
        for split in ("test", "n192")
    }
    statistics = {"test": {"nodes": (128.0, 0.0), "edges": (750.0, 120.0)}}
    scored = {"test": 100, "n192": 10}
    measured = Measured(version=2, floor=floor, scored_samples=scored, statistics=statistics)
    return plain.model_copy(update={"measured": measured})


COMMITMENT, BEACON = "ab" * 32, "the hash of a block"


def verified(record: RunRecord, **changes: object) -> RunRecord:
    """Return a record that says it was verified, with a score of .5 on its sealed draw."""
    verification = Verification(
        commitment=COMMITMENT, beacon=BEACON, sealed_at=datetime(2026, 1, 1, tzinfo=UTC),
        verified_at=datetime(2026, 1, 2, tzinfo=UTC), split="test", graphs=10, metric="f1", score=0.5, data_hash="c",
        runs="package", hardware={}, graphbench_version="0", **changes,
    )  # fmt: skip
    return record.model_copy(update={"recomputed_from": "weights", "verification": verification})


def make_record(seed: int = 0, f1: float = 0.8, **changes: object) -> RunRecord:
    fields: dict[str, object] = {
        "dataset": "algoreas/mst_medium",
        "dataset_version": 2,
        "data_fingerprint": "ab12cd34ef56",
        "data_hashes": {"test": "0123456789abcdef"},
        "model": "gin",
        "config": {"model": {"processor": "gin"}, "training": {"steps": 100, "seed": seed}},
        "parameters": 2_680_000,
        "seed": seed,
        "steps": 100,
        "batch_size": 256,
        "budget": Budget(small=False),
        "hardware": {"cpu": "Example CPU", "cores": 2, "gpu": None},
        "started": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "wall_seconds": 10.0 + seed,
        "curves": {
            "train_loss": [(t, math.exp(-t / 50) + 0.1) for t in range(0, 101, 10)],
            "val_f1": [(50, 0.5), (100, f1)],
        },
        "scores": {
            "test": {"f1": f1, "accuracy": 0.9, "f1_per_graph": max(f1 - 0.01, 0.0)},
            "n192": {"f1": max(f1 - 0.1, 0.0)},
            "n512": {"f1": max(f1 - 0.2, 0.0)},
        },
    }
    if changes.get("deterministic"):  # a model that is trained in steps is not
        fields |= {"steps": None, "batch_size": None}
    return RunRecord.model_validate(fields | changes)
