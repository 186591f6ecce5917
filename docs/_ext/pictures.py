"""The pictures of datasets' pages: drawn by several processes, and again only when what they show has changed.

Beside every picture lies a note with the key of what it shows: the dataset's fingerprint, which changes with
everything that its generator draws, its features, and the program and libraries that draw.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from page_text import is_text, page_name
from project_state import tree_hash
from sample_drawing import draw, has_picture, pick_sample
from trajectory_drawing import draw_trajectory

from graphbench.catalog.cards import Card
from graphbench.core.errors import GraphBenchError
from graphbench.data.components.domain import find

CAN_FORK = sys.platform == "linux"  # elsewhere the libraries that are loaded do not survive a fork
MOST_NODES, MOST_EDGES = 300, 1_000  # of graphs that are drawn, on average: more cannot be read
DRAWING = ["pictures.py", "sample_drawing.py", "trajectory_drawing.py"]


def wants_picture(card: Card) -> bool:
    """Return whether a dataset's page has a picture."""
    if card.hints:
        return True
    if is_text(card) or not has_picture(card):
        return False
    measured = card.measured.statistics.get("train", {}) if card.measured is not None else {}
    nodes, _ = measured.get("nodes", (card.nodes("train") or 0.0, 0.0))
    edges, _ = measured.get("edges", (0.0, 0.0))
    return nodes <= MOST_NODES and edges <= MOST_EDGES


def draw_pictures(cards: Iterable[Card], folder: Path, notes: Path, workers: int | None = None) -> dict[str, Any]:
    """Write the missing pictures to ``folder`` and their notes to ``notes``; return id -> note.

    Returns:
        Notes with the entries ``index``, the number of the sample that is shown (None of trajectories), and ``error``,
        why there is no picture ("" where there is one).
    """
    notes.mkdir(parents=True, exist_ok=True)
    wanted = [card for card in cards if wants_picture(card)]
    missing = [card for card in wanted if not _is_drawn(card, folder, notes)]
    _draw_missing(missing, folder, notes, workers)
    return {card.id: json.loads(_note(card, notes).read_text(encoding="utf-8")) for card in wanted}


def _draw_missing(cards: Sequence[Card], folder: Path, notes: Path, workers: int | None) -> None:
    """Draw the pictures of one domain after the other in one process, as they share compiled functions.

    Each process is bound to one core, so that a generator starts no workers, which would import everything again.
    """
    domains: dict[str, list[Card]] = {}
    for card in cards:
        domains.setdefault(card.domain, []).append(card)
    groups = sorted(domains.values(), key=len, reverse=True)
    if not CAN_FORK:
        for group in groups:
            _draw_group(group, folder, notes)
        return
    cores = sorted(os.sched_getaffinity(0))[:workers]
    fork = get_context("fork")
    free = fork.Queue()
    for core in cores:
        free.put(core)
    with ProcessPoolExecutor(len(cores), fork, lambda: os.sched_setaffinity(0, {free.get()})) as pool:
        for drawing in [pool.submit(_draw_group, group, folder, notes) for group in groups]:
            drawing.result()


def _draw_group(cards: Sequence[Card], folder: Path, notes: Path) -> None:
    for card in cards:
        note: dict[str, Any] = {"key": picture_key(card), "index": None, "error": ""}
        aside = folder / f".drawing-{os.getpid()}.svg"
        try:
            if card.hints:
                draw_trajectory(card, aside)
            else:
                sample = pick_sample(card)
                note["index"] = sample.index
                draw(sample, aside)
        except GraphBenchError as error:
            note["error"] = str(error)
        else:
            write_if_changed(folder / f"{page_name(card)}.svg", aside.read_text(encoding="utf-8"))
            aside.unlink()
        _note(card, notes).write_text(json.dumps(note), encoding="utf-8")


def picture_key(card: Card) -> str:
    """Return a hash of everything that a dataset's picture depends on."""
    libraries = [version(name) for name in ("matplotlib", "networkx", "numpy")]
    features = [f"{f.name} {f.stage} {f.location} {f.type_name}" for f in card.features]
    parts = [
        card.id,
        card.fingerprint(find("generator", card.generator).version),
        *features,
        *libraries,
        tree_hash(Path(__file__).parent, DRAWING),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _is_drawn(card: Card, folder: Path, notes: Path) -> bool:
    """Return whether a picture is there and shows what the card says; one that failed is tried again."""
    path = _note(card, notes)
    if not path.is_file() or not (folder / f"{page_name(card)}.svg").is_file():
        return False
    note = json.loads(path.read_text(encoding="utf-8"))
    return note["key"] == picture_key(card) and not note["error"]


def _note(card: Card, notes: Path) -> Path:
    return notes / f"{page_name(card)}.json"


def write_if_changed(path: Path, text: str) -> None:
    """Write a text file, unless that text is what it holds."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
