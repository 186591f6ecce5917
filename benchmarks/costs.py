"""What drawing a dataset costs: CPU time and bytes per sample of every split, written beside the cards.

``python -m benchmarks.costs [domains...]`` writes ``datasets/<domain>/costs.json``. A split is measured on as many of
its first samples as a fraction of a second allows; the page on costs reckons with these rates. No dataset depends on
them.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.common import machine, scratch_folder
from graphbench.records.machine import processor_seconds

SECONDS = 0.15  # CPU time for the shards of one split
LABEL_SECONDS = 4.0  # labels of some graphs cost much more than those of others
MOST = 20_000  # samples
MOST_RECORDED = 200  # samples whose recorded outcomes are averaged
FEW = 4
LIBRARIES = ("cpu", "cores", "python", "numpy", "numba", "h5py")


def main() -> None:
    """Measure the named domains, or all, and write one file for each."""
    from graphbench.catalog.names import catalog
    from graphbench.catalog.resources import datasets_dir

    domains = sorted({card.domain for card in catalog().cards.values()})
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs", description="Measure the cost of datasets.")
    parser.add_argument("domains", nargs="*", help=f"any of {', '.join(domains)}; default: all of them")
    chosen = parser.parse_args().domains or domains
    if unknown := sorted(set(chosen) - set(domains)):
        parser.error(f"unknown domain {unknown[0]!r}; there are {', '.join(domains)}")
    for domain in chosen:
        cards = [card for card in catalog().cards.values() if card.domain == domain]
        path = datasets_dir() / domain / "costs.json"
        path.write_text(json.dumps(measured(cards), indent=1) + "\n", encoding="utf-8")
        print(f"wrote {path}", flush=True)


def measured(cards: list[Any]) -> dict[str, Any]:
    """Return the rates of all splits of the cards of one domain, and where they were measured."""
    about = machine()
    load, started = os.getloadavg()[0], datetime.now(UTC)
    rates: dict[str, dict[str, Any]] = {}
    for card in cards:
        name = card.id.split("/", 1)[1]
        graphs = card.graphs
        rates[name] = {"version": card.version, "splits": {split: rate(graphs, split) for split in card.all_splits}}
        print(f"  {card.id}", flush=True)
        labels: dict[str, Any] = {}
        for labeller, own in labelled(card).items():
            labels[labeller] = {split: rate(own, split) for split in card.all_splits}
            print(f"  {card.id}, labels {labeller}", flush=True)
        if labels:
            rates[name]["labels"] = labels
    return {
        "date": started.isoformat(timespec="seconds"),
        "load_average_at_start": round(load, 2),
        "machine": {key: about[key] for key in LIBRARIES},
        "rates": rates,
    }


def labelled(card: Any) -> dict[str, Any]:
    """Return labeller -> card with a task that needs the labels of this labeller alone."""
    cards = {}
    for task, spec in card.tasks.items():
        for name in spec.labels:
            alone = spec.model_copy(update={"labels": (name,)})
            features = (*card.graph_features, *card.labels[name].features)
            changes = {"tasks": {task: alone}, "task_name": task, "features": features}
            cards.setdefault(name, card.model_copy(update=changes))
    return cards


def rate(card: Any, split: str) -> dict[str, float]:
    """Return what a sample of a split costs; of the card of a labeller, what its label costs.

    ``draw``: CPU seconds to draw, label and write it in a shard, those of recorded outcomes included; ``join``: CPU
    seconds of what one process does with all shards (duplicates, joining, hashing); ``bytes``: in the finished file;
    ``shard``: samples in a shard; ``samples``: how many were measured.
    """
    from graphbench.data.components.domain import find

    maker = find("generator", card.generator) if not card.labellers else find("labeller", card.labellers[0])
    seconds = SECONDS if not card.labellers else LABEL_SECONDS
    count = card.split(split).count
    size = min(FEW, count)
    found = few = _built(card, split, size)
    if few["draw"] < seconds:
        few = min((_built(card, split, size) for _ in range(3)), key=lambda built: built["join"])
    while found["draw"] < seconds and size < min(MOST, count):
        growth = min(8.0, max(2.0, 1.2 * seconds / max(found["draw"], 1e-4)))
        size = min(count, MOST, int(size * growth) + 1)
        found = _built(card, split, size)
    shard = min(count, maker.shard_size(maker.parse(card, split)))
    more = size > FEW
    return {
        "samples": size,
        "shard": shard,
        "draw": _short(found["draw"] / size + recorded_seconds(card, split, min(count, MOST_RECORDED))),
        "join": _short(max(0.0, found["join"] - few["join"]) / (size - FEW) if more else 0.0),
        "bytes": _short((found["bytes"] - few["bytes"]) / (size - FEW) if more else found["bytes"] / size),
    }


def recorded_seconds(card: Any, split: str, count: int) -> float:
    """Return the mean CPU seconds of the recorded outcomes of the first samples of a split; 0 without such outcomes."""
    from graphbench.data.build.label_tables import find_tables, first_outcome
    from graphbench.data.components.domain import find

    labeller = None if not card.labellers else find("labeller", card.labellers[0])
    if labeller is None or labeller.recorded is None or labeller.recorded.cpu_seconds is None:
        return 0.0
    tables = find_tables(labeller, labeller.parse(card, split), None)
    graphs = _first_graphs(card.id, split, count)
    keys = [labeller.recorded.key(graphs.part(card.graph_schema, i, i + 1)) for i in range(count)]
    outcomes = [outcome for key in keys if (outcome := first_outcome(tables, key)) is not None]
    return sum(map(labeller.recorded.cpu_seconds, outcomes)) / len(outcomes) if outcomes else 0.0


@cache
def _first_graphs(dataset: str, split: str, count: int) -> Any:
    """Return the first graphs of a split, which all labellers of a dataset share."""
    from graphbench.catalog.names import catalog
    from graphbench.data.build.generation import draw_samples

    return draw_samples(catalog().cards[dataset].graphs, split, range(count))


@cache
def _built_graphs(dataset: str, split: str, count: int) -> Path:
    """Return a folder of datasets with the first graphs of a split, which labels are then made for."""
    from graphbench.catalog.names import catalog
    from graphbench.data.build.generation import ensure_split

    root = _kept_folders().enter_context(scratch_folder())
    ensure_split(catalog().cards[dataset].graphs, split, root, count, workers=1, progress=False)
    return root


@cache
def _kept_folders() -> ExitStack:
    """Return the folders that are kept until the process ends."""
    kept = ExitStack()
    atexit.register(kept.close)
    return kept


def _built(card: Any, split: str, count: int) -> dict[str, float]:
    """Build the first samples, or their labels, in two shards.

    Returns CPU seconds of the shards and of what follows, and the bytes.
    """
    from graphbench.data.build import generation
    from graphbench.data.store.layout import label_folder

    spent = {"draw": 0.0, "join": 0.0}
    after = [(generation, "join_shards"), (generation, "samples_hash"), (generation.Manifest, "add_file")]
    generation.draw_samples(card, split, range(count)[:1])  # kernels compiled and loaded
    with scratch_folder() as root, ExitStack() as patches:
        if card.labellers:
            shutil.copytree(_built_graphs(card.id, split, count), root, dirs_exist_ok=True)
        patches.enter_context(_clocked(generation, "build_shard", spent, "draw"))
        for owner, name in ((generation.SplitBuilder, "_resolve_duplicates"), *after):
            patches.enter_context(_clocked(owner, name, spent, "join"))
        size = -(-count // 2)
        path: Path = generation.ensure_split(card, split, root, count, workers=1, progress=False, shard_size=size)
        if card.labellers:
            path = label_folder(card, card.labellers[0], path.parent) / path.name
        return {**spent, "bytes": float(path.stat().st_size)}


@contextmanager
def _clocked(owner: Any, name: str, spent: dict[str, float], kind: str) -> Iterator[None]:
    """Add the CPU time of a function, as long as the block runs."""
    real = getattr(owner, name)

    def run(*arguments: Any, **options: Any) -> Any:
        began = processor_seconds()  # programs that label run in processes of their own
        try:
            return real(*arguments, **options)
        finally:
            spent[kind] += processor_seconds() - began

    with patch.object(owner, name, run):
        yield


def _short(value: float) -> float:
    return float(f"{value:.3g}")


if __name__ == "__main__":
    main()
