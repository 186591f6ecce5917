"""The output of ``submit check``: one screen for people, JSON for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

from rich.table import Table
from rich.text import Text

from graphbench.cli.printing import console, new_table, print_json, print_line, print_table
from graphbench.cli.show_scores import score_text
from graphbench.core.untrusted import shown
from graphbench.core.words import counted, first_of
from graphbench.leaderboard.submissions import (
    Finding,
    Level,
    SealedResult,
    SubmissionReport,
    SubmittedDataset,
    Verdict,
)
from graphbench.records.aggregates import Stat
from graphbench.records.provenance import Verification

_MOST_DATASETS = 10
_MOST_LINES = 6  # findings of one level
_MOST_NAMES = 3
_SMALL = 5e-5  # four decimals show deviations from here on
_WRAP: dict[str, Any] = {"subsequent_indent": "  ", "break_long_words": False, "break_on_hyphens": False}
_STYLES = {Level.REFUSED: "red", Level.REMARK: "yellow", Level.MISSING: "dim"}
_HEADS = {Level.REFUSED: "Refused", Level.REMARK: "Remarks", Level.MISSING: "Missing, and optional"}
_RANKED = "test"


def report(submission: SubmissionReport, as_json: bool) -> None:
    """Print the findings of the check of a submission."""
    if as_json:
        print_json(submission.to_dict())
        return
    by = f", by {_some(submission.authors)}" if submission.authors else ""
    print_line(f"{shown(submission.folder)}: {submission.model or 'a model without a name'}{shown(by)}", "bold")
    if submission.datasets:
        print_table(_table(submission.datasets[:_MOST_DATASETS]))
        _print_rest(len(submission.datasets) - _MOST_DATASETS, "dataset")
    for level, head in _HEADS.items():
        _print_findings(level, head, submission)
    print_line("")
    _print_sources(submission)
    accepted = sum(dataset.verdict is not Verdict.REFUSED for dataset in submission.datasets)
    style = "green" if submission.accepted else "red"
    print_line(_outcome(submission, accepted), style)
    if submission.unread:
        print_line(f"{counted(submission.unread, 'other file')}, not read", "dim")
    for path in submission.written[:_MOST_NAMES]:
        print_line(f"wrote {path}", "dim")
    _print_rest(len(submission.written) - _MOST_NAMES, "record")


_SEALED_STYLES = {"verified": "green", "algorithm": "green", "refused": "red", "impossible": "yellow"}


def sealed(results: Sequence[SealedResult], as_json: bool) -> None:
    """Print the outcomes of the verification of a sealed entry."""
    if as_json:
        print_json([_sealed_as_dict(result) for result in results])
        return
    table = new_table("dataset", "seed", "metric", "known", "sealed", "interval", "shuffled", "outcome")
    for column in table.columns:
        column.no_wrap = True
    for result in results:
        known, verification = _number(result.known), result.verification
        cells = ("", known, "", "", "") if verification is None else _sealed_cells(verification, known)
        style = _SEALED_STYLES[result.outcome]
        table.add_row(result.dataset, str(result.seed), *cells, Text(result.outcome, style))
    print_table(table)
    for result in results:
        if result.reason:
            line = f"- {result.dataset}, seed {result.seed}: {shown(result.reason, 600)}"
            print_line(fill(line, console().width, **_WRAP), _SEALED_STYLES[result.outcome])
        elif result.outcome == "algorithm":
            line = f"- {result.dataset}, seed {result.seed}: its weights make no difference, so it is an algorithm"
            print_line(fill(line, console().width, **_WRAP), "dim")
    first = next((result.verification for result in results if result.verification), None)
    if first is not None:
        draw = f"draw {first.data_seed}, of the commitment {first.commitment[:12]}... and the beacon"
        print_line(f"{draw} {shown(first.beacon)}", "dim")
    for result in results[:_MOST_DATASETS]:
        if result.path is not None:
            print_line(f"wrote {result.path}", "dim")


def _sealed_cells(found: Verification, known: str) -> tuple[str, ...]:
    interval = "" if found.low is None or found.high is None else f"{score_text(found.low)}-{score_text(found.high)}"
    return found.metric, known, score_text(found.score), interval, _number(found.scrambled)


def _number(value: float | None) -> str:
    return "" if value is None else score_text(value)


def _sealed_as_dict(result: SealedResult) -> dict[str, Any]:
    verification = result.verification
    return {
        "dataset": result.dataset,
        "seed": result.seed,
        "outcome": result.outcome,
        "reason": result.reason,
        "known": result.known,
        "verification": None
        if verification is None
        else {**verification.model_dump(mode="json"), "data_seed": verification.data_seed},
        "record": None if result.path is None else str(result.path),
    }


def _outcome(submission: SubmissionReport, accepted: int) -> str:
    """Return the outcome of a submission as a sentence, given the number of datasets without a fault."""
    told = (
        f"{accepted} of {counted(len(submission.datasets), 'dataset')} accepted"
        if submission.datasets
        else "nothing accepted"
    )
    if submission.accepted:
        return told
    if submission.datasets and accepted == len(submission.datasets):
        return "not accepted: something is refused that belongs to no dataset above; mend it, or remove it"
    return f"{told}; mend the refused results, or remove them"


def _table(datasets: Sequence[SubmittedDataset]) -> Table:
    table = new_table("dataset", "seeds", "test", "splits", "verdict")
    for column in table.columns:
        column.no_wrap = True
    for entry in datasets:
        part = "" if all(entry.complete.values()) else " in part"
        splits = f"{len(entry.complete)}/{entry.scoreable}{part}"
        verdict = entry.verdict.replace(" with", ",")
        lost = f", {_seeds(entry.lost)} refused" if entry.lost else ""
        table.add_row(entry.dataset, _seeds(entry.seeds) + lost, _score(entry), splits, verdict)
    return table


def _seeds(seeds: Sequence[int]) -> str:
    """Return seeds as text: ``0-2`` where they follow each other."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]}-{seeds[-1]}"
    return first_of(seeds, _MOST_NAMES) or "-"


def _score(entry: SubmittedDataset) -> str:
    values = entry.values(_RANKED)
    if not values:
        return "-"
    stat = Stat.of(values)
    spread = "" if stat.std is None else f" ± {_spread(stat.std)}"
    return f"{entry.primary} {score_text(stat.mean)}{spread}"


def _spread(deviation: float) -> str:
    return f"{deviation:.4f}" if deviation >= _SMALL else score_text(deviation)


def _print_findings(level: Level, head: str, submission: SubmissionReport) -> None:
    """Print the findings of one level: first of the whole submission, then of datasets, a shared finding once."""
    lines = [finding.line for finding in submission.findings if finding.level is level]
    owners: dict[str, list[str]] = {}
    for entry in submission.datasets:
        for line in _lines_of(entry.of_level(level)):
            owners.setdefault(line, []).append(entry.dataset)
    lines += [f"{_some(names)}: {line}" for line, names in owners.items()]
    if not lines:
        return
    print_line(f"\n{head}", f"bold {_STYLES[level]}")
    for line in lines[:_MOST_LINES]:
        print_line(fill(f"- {line}", console().width, **_WRAP), _STYLES[level])
    _print_rest(len(lines) - _MOST_LINES, "line")


def _lines_of(findings: Sequence[Finding]) -> list[str]:
    """Return one line per finding of a dataset; of findings that differ in the file alone one for all."""
    files: dict[str, list[str]] = {}
    for finding in findings:
        files.setdefault(finding.text, []).append(finding.file)
    lines = []
    for text, names in files.items():
        named = [name for name in names if name and not text.startswith(name)]
        more = f" and {len(named) - 1} more" if len(named) > 1 else ""
        lines.append(f"{f'{named[0]}{more}: ' if named else ''}{text}")
    return lines


def _print_sources(submission: SubmissionReport) -> None:
    """Print the sources that the hashes of the data were compared with, and the sources of the scores."""
    places: dict[str, dict[str, list[str]]] = {}
    for entry in submission.datasets:
        for split, where in entry.hashes.items():
            if where:
                places.setdefault(where, {}).setdefault(entry.dataset, []).append(split)
    for where, datasets in places.items():
        names = [f"{dataset} ({', '.join(splits)})" for dataset, splits in datasets.items()]
        print_line(f"Data hashes compared with {where}: {_some(names)}", "dim")
    runs: dict[str, int] = {}
    for split in (split for entry in submission.datasets for splits in entry.recomputed.values() for split in splits):
        runs[split] = runs.get(split, 0) + 1
    if runs:
        counts = ", ".join(f"{split} ({counted(count, 'run')})" for split, count in runs.items())
        print_line(f"Scores computed from predictions: {counts}", "dim")


def _print_rest(count: int, noun: str) -> None:
    if count > 0:
        print_line(f"... and {counted(count, f'more {noun}')} (--json has all)", "dim")


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMES]) + (
        f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    )
