"""What is counted in published files, not refused: labels, noise, stories, proofs that are not as they should be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphbench.domains.clutrr.official_checks import named_people
from graphbench.domains.clutrr.official_labels import NOT_STATED, PATH, noise_fault, verdict
from graphbench.domains.clutrr.official_rows import OfficialRow

if TYPE_CHECKING:
    from graphbench.domains.clutrr.official import OfficialSplit

Faulty = tuple[OfficialRow, str]  # a row, and what more there is to say of it


@dataclass(frozen=True)
class Finding:
    """What was looked for in published files, and how often it was found.

    Attributes:
        about: What it is about, in a word or two.
        what: The fault in words, to stand after a number.
        faulty: Every case: its row, and what more there is to say of it.
        every: Of how many.
    """

    about: str
    what: str
    faulty: Sequence[Faulty]
    every: int

    def __str__(self) -> str:
        """Return how many there are, with file, row and id of the first."""
        if not self.faulty:
            return f"0 of {self.every} {self.what}"
        first, more = self.faulty[0]
        share = len(self.faulty) / self.every
        words = f"{len(self.faulty)} of {self.every} ({share:.1%}) {self.what}"
        return f"{words} (first: {first.place}, id {first.id!r}{more})"


def findings(splits: Sequence[OfficialSplit]) -> Iterator[Finding]:
    """Yield every kind of fault that is looked for, found or not.

    Args:
        splits: All splits of a folder.
    """
    rows = [row for split in splits for row in split.rows]
    verdicts = [verdict(row) for row in rows]
    times = Counter(row.id for row in rows)
    nameless = [
        (row, f": nobody is called {', '.join(missing)}")
        for row in rows
        if (missing := [f"[{name}]" for name in row.query if name not in named_people(row)])
    ]
    noisy = [(row, f": {fault}") for row in rows if (fault := noise_fault(row)) is not None]
    kinds: tuple[tuple[str, str, list[Faulty]], ...] = (
        (
            "labels",
            "labels are false: the path implies another relation or gender",
            _those(rows, (v == "false" for v in verdicts)),
        ),
        (
            "labels",
            "labels are not implied by the path under the sound rules",
            _those(rows, (v == "open" for v in verdicts)),
        ),
        ("noise", "puzzles have other noise than the paper says of their task", noisy),
        ("stories", "stories do not name both people asked about", nameless),
        ("proofs", "proofs do not begin with the answer", _those(rows, (not _proves(row) for row in rows))),
        ("duplicates", "puzzles share their id with another", _those(rows, (times[row.id] > 1 for row in rows))),
    )
    for about, what, faulty in kinds:
        yield Finding(about, what, faulty, len(rows))
    unknown = [(row, "") for split in splits for row in _of_unknown_noise(split)]
    every = sum(int((split.role != PATH).sum()) for split in splits)
    yield Finding("noise relations", f"noise facts have no known relation (class {NOT_STATED})", unknown, every)


def _those(rows: Iterable[OfficialRow], faulty: Iterable[bool]) -> list[Faulty]:
    return [(row, "") for row, is_faulty in zip(rows, faulty, strict=True) if is_faulty]


def _of_unknown_noise(split: OfficialSplit) -> list[OfficialRow]:
    """Return the row of every noise fact of unknown relation."""
    owner = np.repeat(np.arange(len(split)), split.num_edges)
    return [split.rows[i] for i in owner[(split.role != PATH) & (split.relation == NOT_STATED)].tolist()]


def _proves(row: OfficialRow) -> bool:
    asker, asked = row.query
    return bool(row.proof_state) and row.proof_state[0][0] == (asker, row.target, asked)
