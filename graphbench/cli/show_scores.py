"""The output of scores: tables for people, JSON for scripts."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from graphbench.cli.printing import new_table, print_json, print_line, print_table

if TYPE_CHECKING:
    from graphbench.records.record import RunRecord

_SMALL = 1e-3  # scores below are shown with three digits
_WIDE = 12  # most metrics that are shown beside each other


def scores(title: str, by_split: Mapping[str, Mapping[str, float]], as_json: bool) -> None:
    """Print split -> metric -> score."""
    if as_json:
        print_json({split: {**score, **_failures(score)} for split, score in by_split.items()})
        return
    if not by_split:
        print_line(f"{title}: not scored")
        return
    from graphbench.evaluation.groups import by_size, quantity_of

    whole, sizes = by_size(by_split)
    metrics = list(dict.fromkeys(m for score in whole.values() for m in score))
    print_line(title, "italic")
    print_table(_table_of_scores(whole, metrics))
    for split, score in whole.items():
        if any(split.startswith(f"{other}_") for other in whole):  # a part of another line
            continue
        for reason, count in _failures(score).get("failures", {}).items():
            print_line(f"{split}: {count:,} worth 0: {reason}", "yellow")
    quantity = next(filter(None, map(quantity_of, by_split)), "")
    splits = [split for split in whole if any(split in size_scores for size_scores in sizes.values())]
    for metric in metrics[: len(metrics) if len(metrics) <= _WIDE else 1] if sizes else ():
        table = new_table(quantity, *splits, right=(quantity, *splits))
        for size, size_scores in sizes.items():
            table.add_row(str(size), *(_score(size_scores.get(split, {}), metric) for split in splits))
        print_line(f"\n{metric} by {quantity}", "italic")
        print_table(table)


def again(written: Sequence[tuple[RunRecord, Path]], metrics: Sequence[str], as_json: bool) -> None:
    """Print the scores of records that further metrics were added to, and where the records lie."""
    if as_json:
        print_json([{"record": str(path), "scores": record.scores} for record, path in written])
        return
    from graphbench.verification.again import is_score_of

    for record, path in written:
        new = {
            split: {name: value for name, value in split_scores.items() if is_score_of(name, metrics)}
            for split, split_scores in record.scores.items()
        }
        scores(f"{record.dataset}, {record.model}, seed {record.seed}", {k: v for k, v in new.items() if v}, False)
        print_line(f"wrote {path}", "dim")


def _table_of_scores(whole: Mapping[str, Mapping[str, float]], metrics: Sequence[str]) -> Table:
    """Return a row per split, or a row per metric where there are many."""
    if len(metrics) <= _WIDE:
        table = new_table("split", *metrics, right=metrics)
        for split, score in whole.items():
            table.add_row(split, *(_score(score, m) for m in metrics))
        return table
    table = new_table("metric", *whole, right=[*whole])
    for metric in metrics:
        table.add_row(metric, *(_score(score, metric) for score in whole.values()))
    return table


def _failures(score: Mapping[str, float]) -> dict[str, Any]:
    """Return the reasons why answers are wrong, and how many are, under the key ``failures``; nothing if none is."""
    failures = getattr(score, "failures", {})
    return {"failures": dict(failures)} if failures else {}


def scores_of_run(title: str, by_dataset: Mapping[str, Mapping[str, Mapping[str, float]]], as_json: bool) -> None:
    """Print split -> metric -> score of a run on one dataset, or dataset -> the same of one on several."""
    if len(by_dataset) == 1:
        scores(title, next(iter(by_dataset.values())), as_json)
    elif as_json:
        print_json(
            {id_: {split: dict(score) for split, score in by_split.items()} for id_, by_split in by_dataset.items()}
        )
    else:
        for id_, by_split in by_dataset.items():
            scores(f"{title}, {id_}", by_split, False)


def _score(score: Mapping[str, float], metric: str) -> str:
    if metric not in score:
        return "-"
    return score_text(score[metric])


def score_text(value: float) -> str:
    """Return a score with four decimals; a small one with three digits."""
    return f"{value:.4f}" if value == 0 or abs(value) >= _SMALL else f"{value:.3g}"


def runs(results: Sequence[Any], as_json: bool, records: Path | None = None) -> None:
    """Print the scores of finished runs and where their records lie; on the first process alone under ``torchrun``."""
    if os.environ.get("RANK", "0") != "0":
        return
    if as_json:
        print_json([json.loads(result.record.to_json()) for result in results])
        return
    for result in results:
        record = result.record
        draw = f", data seed {record.data_seed}" if record.data_seed else ""
        scores(f"{record.dataset}, {record.model}, seed {record.seed}{draw}", result.scores, False)
        kept = "" if records is None else f"\nand    {records / record.relative_path}"
        print_line(f"record {result.path}{kept}\n", "dim")


def written(path: Path) -> None:
    """Print where a file was written."""
    print_line(f"wrote {path}", "dim")
