"""Sizes, statistics and scores of simulated datasets beside those that a paper prints, as Markdown.

Published sizes lie in ``datasets/<domain>/calibration.json``, measured ones beside the cards.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

from markdown_text import code, table

from graphbench.catalog.cards import CORE_SPLITS
from graphbench.catalog.names import card
from graphbench.catalog.resources import datasets_dir
from graphbench.records.published import published_score
from graphbench.records.table import as_rows


def sizes(domain: str) -> str:
    """Return nodes and edges of every calibrated split beside the published ones, as Markdown."""
    found = json.loads((datasets_dir() / domain / "calibration.json").read_text(encoding="utf-8"))
    rows = []
    for name, published in found["published"].items():
        if not isinstance(published, dict):
            continue
        measured = _measured(f"{domain}/{name}").statistics
        for i, split in enumerate(CORE_SPLITS):
            row = [code(name), split]
            for what in ("nodes", "edges"):
                ours, theirs = measured[split][what][0], published[what][i]
                row += [f"{ours:,.0f}", f"{theirs:,}", f"{100 * (ours / theirs - 1):+.1f} %"]
            rows.append(row)
    head = ["dataset", "split", "nodes", "published", "difference", "edges", "published", "difference"]
    return table(head, rows, right=range(2, 8))


def statistics(ids: Sequence[str], lines: Sequence[str]) -> str:
    """Return statistics of the test splits of datasets, as Markdown.

    Args:
        ids: The datasets.
        lines: ``<name of the statistic>: <heading>``; with ``%`` at its end a share in percent.
    """
    named = [[part.strip() for part in line.split(":", 1)] for line in lines]
    rows = []
    for id_ in ids:
        own = _measured(id_).statistics["test"]
        values = [(own[name][0], heading.endswith("%")) for name, heading in named]
        rows.append([code(id_), *(f"{100 * v:.1f} %" if share else f"{v:,.0f}" for v, share in values)])
    return table(["dataset", *(h.removesuffix("%").strip() for _, h in named)], rows, right=range(1, 1 + len(named)))


def scores(metrics: Sequence[str], lines: Sequence[str]) -> str:
    """Return test scores of datasets beside those published for others, as Markdown.

    Args:
        metrics: The metrics.
        lines: ``<ours> ... = <published> : <models>``: datasets of this package, trivial predictors and solvers of the
            first of them, and the dataset and models of the paper.
    """
    runs: dict[tuple[str, str], dict[str, list[float]]] = {}
    rows = []
    for line in lines:
        own, _, theirs = line.partition("=")
        printed_id, _, models = theirs.partition(":")
        printed_id, ids = printed_id.strip(), own.split()
        for model in models.split():
            printed = [published_score(printed_id, "test", model, metric) for metric in metrics]
            cells = ["" if one is None or one.value is None else f"{one.value:.3f}" for one in printed]
            rows.append([code(printed_id), f"{code(model)}, published", *cells])
        measured = _measured(ids[0])
        known = {**measured.floor.get("test", {}), **measured.solvers.get("test", {})}
        for name, found in known.items():
            rows.append([code(ids[0]), code(name), *(f"{found[metric]:.3f}" for metric in metrics)])
        for id_ in ids:
            runs.clear()
            for row in as_rows(id_):
                if row["split"] == "test":
                    runs.setdefault((row["dataset"], row["model"]), {}).setdefault(row["metric"], []).append(
                        row["value"]
                    )
            for (dataset, model), values in sorted(runs.items()):
                seeds = len(next(iter(values.values())))
                what = f"{code(model)}, {seeds} {'seed' if seeds == 1 else 'seeds'}"
                rows.append([code(dataset), what, *(_mean_text(values.get(metric, [])) for metric in metrics)])
    head = ["data", "predictor", *(metric.replace("_", " ").replace("r2", "R2") for metric in metrics)]
    return table(head, rows, right=range(2, 2 + len(metrics)))


def _mean_text(values: Sequence[float]) -> str:
    if not values:
        return ""
    return f"{mean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")


def _measured(id_: str) -> Any:
    return card(id_).measured
