"""What ``graphbench verify`` tells of published files: nothing stands beside them, so it counts what is in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from graphbench.catalog.cards import Card
from graphbench.data.checks import Row
from graphbench.domains.clutrr.official import OfficialSplit
from graphbench.domains.clutrr.official_dataset import OfficialParameters, parts_of
from graphbench.domains.clutrr.official_findings import Finding, findings
from graphbench.domains.clutrr.official_rows import OfficialRow
from graphbench.domains.clutrr.relations import relation_of_word


def rows_of_files(card: Card, splits: Sequence[str]) -> Iterator[Row]:
    """Yield what is found in published files: faults of all of them, and clauses of test files that training has, too.

    Nothing of it is a failure, as the files are taken as they are published.

    Args:
        card: The card of the files.
        splits: The splits whose clauses are looked at.
    """
    parts = parts_of(card)
    *others, unknown = findings(list(parts.values()))
    for finding in (*others, unknown):
        yield _counted("all files", finding.about, str(finding), bool(finding.faulty), bool(finding.every))
    yield _recovered(list(parts.values()), unknown)
    yield _told_twice(list(parts.values()))
    trained = parts["train"].rows
    walks, clauses = {row.f_comb for row in trained}, {_clause(row) for row in trained}
    for split in splits:
        names = OfficialParameters.model_validate(card.split(split).parameters).tasks
        if "train" not in names:
            rows = [row for name in names for row in parts[name].rows]
            seen = [sum(row.f_comb in walks for row in rows), sum(_clause(row) in clauses for row in rows)]
            words = f"{seen[0]} of {len(rows)} paths have the words of one of training, {seen[1]} its relations"
            yield _counted(split, "clause leakage", words, any(seen))


def _recovered(splits: Sequence[OfficialSplit], unknown: Finding) -> Row:
    """Return where the relations of noise facts come from, if there are such facts."""
    rows = [row for split in splits for row in split.rows]
    said = sum(len(set(row.story_edges[row.k : len(row.edge_types)]) - set(row.story_edges[: row.k])) for row in rows)
    words = (
        f"{said} of {unknown.every} noise facts have a relation in the files, "
        f"{unknown.every - said - len(unknown.faulty)} more can have but one, which is taken"
    )
    return _counted("all files", "noise relations", words, False, bool(unknown.every))


def _told_twice(splits: Sequence[OfficialSplit]) -> Row:
    times = Counter(row.story for split in splits for row in split.rows)
    repeated = sum(count for count in times.values() if count > 1)
    return _counted("all files", "duplicates", f"{repeated} of {times.total()} stories stand twice", repeated > 0)


def _counted(split: str, check: str, words: str, is_found: bool, is_checked: bool = True) -> Row:
    if not is_checked:
        return Row(split, check, True, "there is none in the files", "skipped")
    return Row(split, check, True, words, "noted" if is_found else "")


def _clause(row: OfficialRow) -> tuple[str, ...]:
    return tuple(map(relation_of_word, row.f_comb))
