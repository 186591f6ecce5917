"""Generate datasets, and print the generated files."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphbench.catalog.cards import Card
from graphbench.cli.printing import new_table, print_json, print_line, print_table, root_folder
from graphbench.core.errors import CardError, EvaluationError
from graphbench.core.words import human_bytes
from graphbench.data.store.layout import Manifest


def generate_one(
    card: Card, names: Sequence[str], root: Path | None, limit: int | None, workers: int | None, cluster: Any = None
) -> list[dict[str, Any]]:
    """Generate the named splits of one dataset and return one row per split.

    ``graphs`` and ``content`` are the number and the hash of the requested graphs; ``bytes`` and ``file_graphs`` are
    the size and the number of graphs of the file, which may be a longer one that was there already. If the labels lie
    in separate files, ``labels`` is the list of files, one per labeller, ``label_seconds`` the processor time of all
    labellers, and ``failed`` the number of graphs without a label.
    """
    from graphbench.data.build.generation import ensure_split
    from graphbench.data.build.limits import apply_limit
    from graphbench.data.store.split_files import find_labels, hash_of_first

    _check_names(card)
    card, most = apply_limit(card, limit)
    limit = most if isinstance(most, int) else None
    rows = []
    for name in names:
        started = time.perf_counter()
        path = ensure_split(card, name, root_folder(root), limit, workers=workers, cluster=cluster)
        seconds = round(time.perf_counter() - started, 2)
        facts = Manifest(path.parent).read()["files"][path.name]
        graphs = facts["count"] if limit is None else min(limit, facts["count"])
        labels = find_labels(card, name, path, limit)
        rows.append(
            {
                "dataset": card.address,
                "split": name,
                "graphs": graphs,
                "bytes": facts["bytes"],
                "seconds": seconds,
                "content": hash_of_first(card, path, labels, graphs),
                "file": str(path),
                "file_graphs": facts["count"],
                **(_about_labels(labels) if labels else {}),
            }
        )
    return rows


def _check_names(card: Card) -> None:
    """Refuse an unknown kind of task or metric before any work; whether a metric fits the outputs is checked later.

    Raises:
        CardError: If the card names one; the message suggests the nearest.
    """
    from graphbench.evaluation.metrics import metric
    from graphbench.tasks.registry import task_class

    task_class(card.task.type)
    try:
        for name in (card.metrics.primary, *card.metrics.also):
            metric(name)
    except EvaluationError as error:
        raise CardError(f"{card.path} ({card.address}): metrics: {error}") from error


def _about_labels(paths: Sequence[Path]) -> dict[str, Any]:
    facts = [Manifest(path.parent).read()["files"][path.name] for path in paths]
    return {
        "labels": [str(path) for path in paths],
        "label_seconds": round(sum(entry["seconds"] for entry in facts), 2),
        "failed": len(set().union(*(entry.get("failed", {}) for entry in facts))),
    }


def generated(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Print the generated splits and their files."""
    if as_json:
        print_json(list(rows))
        return
    table = new_table(
        "dataset", "split", "graphs", "file size", "time", "content", right=("graphs", "file size", "time")
    )
    for r in rows:
        table.add_row(
            r["dataset"],
            r["split"],
            f"{r['graphs']:,}",
            human_bytes(r["bytes"]),
            f"{r['seconds']:.1f} s",
            r["content"][:12],
        )
    print_table(table)
    for r in rows:
        if r["graphs"] < r["file_graphs"]:
            print_line(
                f"{r['dataset']} {r['split']}: the first {r['graphs']:,} of {r['file_graphs']:,} graphs of {r['file']}"
            )
        if r.get("failed"):
            print_line(
                f"{r['dataset']} {r['split']}: {r['failed']:,} graphs have no label, as the labeller failed on them"
            )
    if rows:
        folders = dict.fromkeys(Path(row["file"]).parent for row in rows)
        print_line("\n" + "\n".join(f"in {folder}" for folder in folders), "dim")
