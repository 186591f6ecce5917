"""Texts of pages as they were last accepted, in files under ``tests/data/snapshots``.

One command accepts pages whose language or layout changes on purpose; read the difference before you commit it::

    GRAPHBENCH_WRITE_SNAPSHOTS=1 python -m pytest -k snapshots tests/reports tests/leaderboard tests/tuning/report
    git diff tests/data/snapshots
"""

from __future__ import annotations

import os
from pathlib import Path

import graphbench

FOLDER = Path(__file__).parent / "data" / "snapshots"
VARIABLE = "GRAPHBENCH_WRITE_SNAPSHOTS"


def require_snapshot(name: str, text: str) -> None:
    """Require that a text is the one of the snapshot; with the environment variable set, write the snapshot instead.

    Args:
        name: The file under ``tests/data/snapshots``.
        text: What a page says. The version of graphbench, which every page names, is left out of the comparison.
    """
    text = text.replace(graphbench.__version__, "<version>")
    path = FOLDER / name
    if os.environ.get(VARIABLE) == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"there is no snapshot {path}; write it with {VARIABLE}=1"
    assert text == path.read_text(encoding="utf-8"), f"{name} has changed; accept it with {VARIABLE}=1"
