"""What is counted in published files, not refused: labels, noise, stories, proofs that are not as they should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphbench.domains.clutrr.official_checks import named_people
from graphbench.domains.clutrr.official_labels import NOT_STATED, PATH, noise_fault, verdict
from graphbench.domains.clutrr.official_rows import OfficialRow

if TYPE_CHECKING:
    from graphbench.domains.clutrr.official import OfficialSplit

Faulty = tuple[OfficialRow, str]  # a row, and what more there is to say of it


def findings(splits: Sequence[OfficialSplit]) -> Iterator[str]:
    """Yield one sentence per kind of fault that some rows have: how many, and file, row and id of the first.

    Args:
        splits: All splits of a folder.
    """
    rows = [row for split in splits for row in split.rows]
    verdicts = [verdict(row) for row in rows]
    times = Counter(row.id for row in rows)
    kinds: dict[str, list[Faulty]] = {
        "labels are false: the path implies another relation or gender": _those(rows, (v == "false" for v in verdicts)),
        "labels are not implied by the path under the sound rules": _those(rows, (v == "open" for v in verdicts)),
        "puzzles have other noise than the paper says of their task": [
            (row, f": {fault}") for row in rows if (fault := noise_fault(row)) is not None
        ],
        "stories do not name both people asked about": [
            (row, f": nobody is called {', '.join(missing)}")
            for row in rows
            if (missing := [f"[{name}]" for name in row.query if name not in named_people(row)])
        ],
        "proofs do not begin with the answer": _those(rows, (not _proves(row) for row in rows)),
        "puzzles share their id with another": _those(rows, (times[row.id] > 1 for row in rows)),
    }
    for what, faulty in kinds.items():
        if faulty:
            yield _sentence(len(faulty), len(rows), what, *faulty[0])
    unknown = [row for split in splits for row in _of_unknown_noise(split)]
    if unknown:
        every = sum(int((split.role != PATH).sum()) for split in splits)
        yield _sentence(len(unknown), every, f"noise facts have no known relation (class {NOT_STATED})", unknown[0])


def _those(rows: Iterable[OfficialRow], faulty: Iterable[bool]) -> list[Faulty]:
    return [(row, "") for row, is_faulty in zip(rows, faulty, strict=True) if is_faulty]


def _of_unknown_noise(split: OfficialSplit) -> list[OfficialRow]:
    """Return the row of every noise fact of unknown relation."""
    owner = np.repeat(np.arange(len(split)), split.num_edges)
    return [split.rows[i] for i in owner[(split.role != PATH) & (split.relation == NOT_STATED)].tolist()]


def _sentence(part: int, every: int, what: str, first: OfficialRow, more: str = "") -> str:
    return f"{part} of {every} ({part / every:.1%}) {what} (first: {first.place}, id {first.id!r}{more})"


def _proves(row: OfficialRow) -> bool:
    asker, asked = row.query
    return bool(row.proof_state) and row.proof_state[0][0] == (asker, row.target, asked)
