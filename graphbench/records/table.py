"""Stored records as one table: a row per record, split and metric."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from graphbench.catalog.names import card
from graphbench.core.errors import ArgumentError, MissingDependency, UnknownDataset
from graphbench.core.suggestions import did_you_mean, nearest
from graphbench.evaluation.metrics import METRICS
from graphbench.records.classes import started_from
from graphbench.records.files import RecordFolders, matches, stored_records
from graphbench.records.record import RunRecord

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "dataset",
    "model",
    "split",
    "metric",
    "value",
    "higher_is_better",
    "seed",
    "data_seed",
    "protocol",
    "started_from",
    "steps",
    "batch_size",
    "parameters",
    "budget",
    "small",
    "graphs_scored",
    "best_step",
    "dataset_version",
    "data_fingerprint",
    "data_hash",
    "config_hash",
    "wall_seconds",
    "cpu_seconds",
    "threads",
    "deterministic",
    "peak_memory_bytes",
    "throughput_graphs_per_s",
    "latency_ms",
    "started",
    "graphbench_version",
    "path",
)


PRIMARY = "primary"  # stands for the metric that the dataset's models are ranked by
Budgets = Literal["full", "small", "unstated"]
_SMALL: dict[str, bool | None] = {"full": False, "small": True, "unstated": None}


def as_rows(
    selector: str | Sequence[str] = "*",
    records: RecordFolders = None,
    *,
    model: str | Sequence[str] = "*",
    split: str | Sequence[str] = "*",
    metric: str | Sequence[str] = "*",
    budget: Budgets | None = None,
    sort: str | None = None,
    reverse: bool = False,
    skip_malformed: bool = False,
) -> list[dict[str, Any]]:
    """Return the stored records as rows for CSV or JSON, one per record, split and metric.

    Example:
        >>> import csv
        >>> writer = csv.DictWriter(file, COLUMNS)
        >>> writer.writeheader()
        >>> writer.writerows(as_rows("algoreas/*", split="test", metric="primary"))

    Args:
        selector: A dataset id or glob, or several; ``"*"`` takes all.
        records: Folder searched for records, at any depth, or several folders; ``baselines/results`` when None.
        model: Name or glob of models, or several.
        split: Name or glob of splits, or several.
        metric: Name or glob of metrics, or several; ``"primary"`` is the one that a dataset's models are ranked by.
        budget: Only runs of this kind: ``full`` budget, ``small`` budget, or ``unstated`` budget.
        sort: Column to sort by, ascending, rows without a value last; the order of datasets, models and seeds if None.
        reverse: Whether to sort descending.
        skip_malformed: Whether a malformed file is left out with a warning.

    Returns:
        Dictionaries with the keys ``COLUMNS``. Values are strings, numbers, booleans or None: ``higher_is_better`` is
        None for metrics that are not registered, ``started`` is in ISO 8601, ``data_hash`` is the hash of the split,
        ``graphs_scored`` is None where an older record does not say.

    Raises:
        ArgumentError: If the kind of budget or the column is unknown.
        ResultError: If the folder does not exist, or a record in it is malformed and not to be left out.
    """
    if budget is not None and budget not in get_args(Budgets):
        raise ArgumentError(f"unknown kind of budget {budget!r}; choose from {', '.join(get_args(Budgets))}")
    if sort is not None and sort not in COLUMNS:
        hint = did_you_mean(nearest(sort, COLUMNS)) or f"; choose from {', '.join(COLUMNS)}"
        raise ArgumentError(f"unknown column {sort!r}{hint}")
    rows = []
    for path, record in stored_records(selector, records, skip_malformed=skip_malformed):
        if matches(record.model, model) and (budget is None or record.budget.small is _SMALL[budget]):
            rows += [row for row in _rows(path, record) if matches(row["split"], split) and _is_metric(row, metric)]
    if sort is None:
        return rows[::-1] if reverse else rows
    sortable = [row for row in rows if row[sort] is not None]
    sortable.sort(key=lambda row: row[sort], reverse=reverse)
    return sortable + [row for row in rows if row[sort] is None]


def _is_metric(row: dict[str, Any], patterns: str | Sequence[str]) -> bool:
    if matches(row["metric"], patterns):
        return True
    return PRIMARY in ([patterns] if isinstance(patterns, str) else patterns) and row["metric"] == _primary(
        row["dataset"]
    )


@cache
def _primary(dataset: str) -> str | None:
    """Return the primary metric of a dataset, or None if it has no card."""
    try:
        return card(dataset).metrics.primary
    except UnknownDataset:
        return None


def results(selector: str | Sequence[str] = "*", records: RecordFolders = None, **filters: Any) -> pd.DataFrame:
    """Return the stored records as a pandas table, one row per record, split and metric.

    Example:
        >>> table = graphbench.results("algoreas/mst_easy")
        >>> table[table.metric == "f1"].pivot_table("value", "model", "split")

    Args:
        selector: A dataset id or glob, or several; ``"*"`` takes all.
        records: Folder searched for records, at any depth, or several folders: ``["records", results_dir()]`` adds the
            package's records to one's own; ``baselines/results`` when None.
        filters: ``model``, ``split``, ``metric``, ``budget``, ``sort`` and ``reverse``, as of :func:`as_rows`.

    Returns:
        A ``pandas.DataFrame`` with the columns of :data:`COLUMNS`, see :func:`as_rows`.

    Raises:
        ArgumentError: If the kind of budget or the column is unknown.
        MissingDependency: If pandas is not installed; :func:`as_rows` needs none.
        ResultError: If the folder does not exist or a record in it is malformed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingDependency(
            "a table of results needs pandas; install it with: pip install 'graphbench[pandas]', "
            "or use graphbench.records.table.as_rows"
        ) from error
    return pd.DataFrame(as_rows(selector, records, **filters), columns=list(COLUMNS))


def _rows(path: Path, record: RunRecord) -> list[dict[str, Any]]:
    shared: dict[str, Any] = {name: getattr(record, name) for name in COLUMNS if name in RunRecord.model_fields}
    shared |= {
        "started_from": started_from(record),
        "budget": record.budget.label,
        "small": record.budget.small,
        "config_hash": record.config_hash,
        "started": record.started.isoformat(),
        "path": str(path),
    }
    rows = []
    for split, scores in record.scores.items():
        fields = {
            "split": split,
            "data_hash": record.data_hashes.get(split),
            "graphs_scored": record.graphs_scored.get(split),
        }
        for name, value in scores.items():
            registered = METRICS.get(name)
            direction = None if registered is None else registered.higher_is_better
            row = {**shared, **fields, "metric": name, "value": value, "higher_is_better": direction}
            rows.append({column: row[column] for column in COLUMNS})
    return rows
