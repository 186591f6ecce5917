"""Stored records as one table: a row per record, split and metric."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.core.errors import MissingDependency
from graphbench.evaluation.metrics import METRICS
from graphbench.evaluation.results import RunRecord, stored_records

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
    "peak_memory_bytes",
    "throughput_graphs_per_s",
    "latency_ms",
    "started",
    "graphbench_version",
    "path",
)


def as_rows(selector: str | Sequence[str] = "*", root: str | Path | None = None) -> list[dict[str, Any]]:
    """Return the stored records as rows for CSV or JSON, one per record, split and metric.

    Example:
        >>> import csv
        >>> writer = csv.DictWriter(file, COLUMNS)
        >>> writer.writeheader()
        >>> writer.writerows(as_rows("algoreas/*"))

    Args:
        selector: A dataset id or glob, or several; ``"*"`` takes all.
        root: Folder searched for records, at any depth; ``baselines/results`` when None.

    Returns:
        Dictionaries with the keys ``COLUMNS``, in the order of datasets, models and seeds. Values are strings, numbers,
        booleans or None: ``higher_is_better`` is None for metrics that are not registered, ``started`` is in ISO 8601,
        ``data_hash`` is that of the split, ``graphs_scored`` is None where an older record does not say.

    Raises:
        ResultError: If the folder does not exist or a record in it is malformed.
    """
    return [row for path, record in stored_records(selector, root) for row in _rows(path, record)]


def results(selector: str | Sequence[str] = "*", root: str | Path | None = None) -> pd.DataFrame:
    """Return the stored records as a pandas table, one row per record, split and metric.

    Example:
        >>> table = graphbench.results("algoreas/mst_easy")
        >>> table[table.metric == "f1"].pivot_table("value", "model", "split")

    Args:
        selector: A dataset id or glob, or several; ``"*"`` takes all.
        root: Folder searched for records, at any depth; ``baselines/results`` when None.

    Returns:
        A ``pandas.DataFrame`` with the columns of :data:`COLUMNS`, see :func:`as_rows`.

    Raises:
        MissingDependency: If pandas is not installed; :func:`as_rows` needs none.
        ResultError: If the folder does not exist or a record in it is malformed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingDependency(
            'a table of results needs pandas; install it with: pip install "graphbench[pandas]", '
            "or use graphbench.evaluation.results_table.as_rows"
        ) from error
    return pd.DataFrame(as_rows(selector, root), columns=list(COLUMNS))


def _rows(path: Path, record: RunRecord) -> list[dict[str, Any]]:
    shared: dict[str, Any] = {name: getattr(record, name) for name in COLUMNS if name in RunRecord.model_fields}
    shared |= {
        "budget": record.budget.label,
        "small": record.budget.small,
        "config_hash": record.config_hash,
        "started": record.started.isoformat(),
        "path": str(path),
    }
    rows = []
    for split, scores in record.scores.items():
        own = {
            "split": split,
            "data_hash": record.data_hashes.get(split),
            "graphs_scored": record.graphs_scored.get(split),
        }
        for name, value in scores.items():
            registered = METRICS.get(name)
            direction = None if registered is None else registered.higher_is_better
            row = {**shared, **own, "metric": name, "value": value, "higher_is_better": direction}
            rows.append({column: row[column] for column in COLUMNS})
    return rows
