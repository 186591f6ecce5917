"""What is said of the published tables, as Markdown, from ``benchmarks/claims`` and the results of its checks."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from markdown_text import code, plain, table

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "claims.json"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def _claims() -> Any:
    """Return the module with the rows; importing it sets the number of threads for benchmarks, which is undone."""
    before = {name: os.environ.get(name) for name in _THREADS}
    from benchmarks.claims import model

    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    return model


def page() -> str:
    """Return summary, meanings of the verdicts, and one section per paper."""
    model = _claims()
    entries = json.loads(RESULTS.read_text(encoding="utf-8"))
    papers = model.papers()
    parts = [summary(papers, model.VERDICTS, model.BASES)]
    parts += [_section(paper, entries["results"], model) for paper in papers]
    parts.append(_when(entries))
    return "\n\n".join(parts)


def summary(papers: Sequence[Any], verdicts: Mapping[str, str], bases: Mapping[str, str]) -> str:
    """Return how many rows of each paper have each verdict, and how reproduced ones were, as a table."""
    rows = []
    every: list[Any] = []
    for paper in papers:
        own = [row for _, _, row in paper.rows()]
        every += own
        tables = sum(found.number > 0 for found in paper.tables)
        name = f"[{paper.short}](#published-{paper.key}), {tables} {'table' if tables == 1 else 'tables'}"
        rows.append([name, *_counts(own, verdicts, bases)])
    count = sum(found.number > 0 for paper in papers for found in paper.tables)
    rows.append([f"all, {count} tables", *_counts(every, verdicts, bases)])
    heads = ["paper"]
    for verdict, said in verdicts.items():
        heads += [said, *(f"… {basis}" for basis in bases.values())] if verdict == "reproduced" else [said]
    return table(heads, rows, right=range(1, len(heads)))


def _counts(rows: Sequence[Any], verdicts: Mapping[str, str], bases: Mapping[str, str]) -> Iterator[str]:
    """Yield the number of rows with each verdict; after that of reproduced rows how many have each basis."""
    for verdict in verdicts:
        found = [row for row in rows if row.verdict == verdict]
        yield str(len(found))
        if verdict == "reproduced":
            yield from (str(sum(row.basis == basis for row in found)) for basis in bases)


def _section(paper: Any, entries: Mapping[str, Any], model: Any) -> str:
    verdicts = model.VERDICTS
    parts = [f"(published-{paper.key})=\n## {paper.short}", f"{plain(paper.title)}. {paper.citation}."]
    parts.append(f"**Version read:** {plain(paper.version)}.")
    contents = []
    for found in paper.tables:
        kinds = Counter(row.verdict for row in found.rows)
        text = ", ".join(f"{kinds[verdict]} {name}" for verdict, name in verdicts.items() if kinds[verdict])
        contents.append([f"[{_name(found)}](#{_anchor(paper, found)})", plain(found.title), text])
    parts.append(table(["table", "of", "rows"], contents))
    for found in paper.tables:
        heading = plain(found.title) if found.number == 0 else f"Table {found.number}: {plain(found.title)}"
        parts.append(f"({_anchor(paper, found)})=\n### {heading}")
        parts.append(plain(found.states))
        for name, own, row in paper.rows():
            if own is found:
                parts.append("\n".join(_row(name, row, entries.get(name), model)))
    return "\n\n".join(parts)


def _name(found: Any) -> str:
    return str(found.number) if found.number else "none"


def _anchor(paper: Any, found: Any) -> str:
    return f"{paper.key.replace('_', '-')}-table-{found.number}"


def _row(name: str, row: Any, entry: Mapping[str, Any] | None, model: Any) -> Iterator[str]:
    """Yield the lines of a row: an entry of a list of definitions, with one bullet for each thing that is said."""
    verdict = model.VERDICTS[row.verdict] + (f": {model.BASES[row.basis]}" if row.basis else "")
    yield f"{plain(row.about)} [{verdict}]{{.gb-verdict .gb-{row.verdict.replace('_', '-')}}}"
    said = [("Printed", row.printed), ("Here", row.ours), ("Why", row.because), ("Cost", row.cost)]
    if row.verdict in ("reproduced", "open"):
        said[2] = ("Note", row.because)
    if row.verdict == "finding":
        said[2] = ("Meaning", row.because)
    values = {} if entry is None else entry["values"]
    status = "missing" if entry is None else entry["status"]
    if status in ("missing", "skipped"):
        reason = "was not run" if entry is None else f"was skipped: {entry['note']}"
        said = [(what, text) for what, text in said if "{" not in text] + [("Here", f"The check {reason}.")]
    elif status == "fails":
        said = [("No longer true", f"{entry['note']}"), said[0]] if entry is not None else said
        values = _Braces()
    try:
        bullets = [f"**{what}:** {plain(_spaced(text.format_map(values)))}" for what, text in said if text]
    except KeyError as error:
        raise ValueError(
            f"the result of {name} has no {error}; run python -m benchmarks.claims {name} --write"
        ) from error
    bullets.append(f"**Check:** {code(f'python -m benchmarks.claims {name}')}, {'minutes' if row.slow else 'seconds'}")
    for i, bullet in enumerate(bullets):
        yield f"{':' if i == 0 else ' '} - {bullet}"


def findings(dataset: str) -> str:
    """Return what checks state of a dataset, as a list for its page; empty where nothing is stated.

    Args:
        dataset: Id of the dataset.
    """
    rows = _claims().rows_about(dataset)
    if not rows:
        return ""
    entries = json.loads(RESULTS.read_text(encoding="utf-8"))["results"]
    return "\n".join(_finding(name, row, entries.get(name)) for name, row in rows.items())


def _finding(name: str, row: Any, entry: Mapping[str, Any] | None) -> str:
    """Return one statement of a dataset's page, with the command that checks it."""
    command = code(f"python -m benchmarks.claims {name}")
    if entry is None or entry["status"] != "holds":
        return f"- {plain(row.about)}: to be checked, {command}."
    text = " ".join(_spaced(part.format_map(entry["values"])) for part in (row.ours, row.because))
    return f"- **{plain(row.about)}.** {plain(text)} Check: {command}."


class _Braces(dict[str, str]):
    """Names of values stand for themselves, where a check failed."""

    def __missing__(self, key: str) -> str:
        """Return the name."""
        return key


def _spaced(text: str) -> str:
    """Return text with a space before the sign of percent."""
    return re.sub(r"(?<=\d)%", " %", text)


def _when(entries: Mapping[str, Any]) -> str:
    days = sorted({entry["date"] for entry in entries["results"].values()})
    machine = entries["machine"]
    libraries = ", ".join(f"{name} {machine[name]}" for name in ("numpy", "networkx", "torch") if machine.get(name))
    span = days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    place = f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}; {libraries}"
    return f"Checks were run on {span}: {place}."
