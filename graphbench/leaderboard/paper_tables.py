"""Tables for papers: models by datasets or by splits, from the ranked tables of the leaderboard.

A cell holds the mean over the seeds and its sample standard deviation, on request also the 95 % interval. The best mean
of a column is bold. A dagger marks a model that no test separates from it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from graphbench.core.errors import ArgumentError, ResultError
from graphbench.core.untrusted import spreadsheet_cell
from graphbench.core.words import counted
from graphbench.leaderboard.aggregation import group_names
from graphbench.leaderboard.boards import tables_of
from graphbench.leaderboard.model import Board, Reference, Row, Unranked
from graphbench.records.aggregates import Stat
from graphbench.records.classes import BudgetClass
from graphbench.records.files import matches
from graphbench.reports.pages import markdown_safe
from graphbench.reports.tables import metric_head

if TYPE_CHECKING:
    from graphbench.records.record import RunRecord

PaperFormat = Literal["latex", "markdown", "csv"]
FORMATS: tuple[PaperFormat, ...] = get_args(PaperFormat)
CSV_COLUMNS = (
    "dataset", "protocol", "split", "metric", "higher_is_better", "samples", "model", "class", "seeds", "mean",
    "deviation", "low", "high", "interval", "rank", "worst_rank", "best", "separated_from_best",
)  # fmt: skip
_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
})  # fmt: skip
_TIED, _UNTESTED = "\u2020", "\u2021"
_OF_INTERVALS = (
    "95 % intervals: from three seeds on of the mean over seeds (Student), which leaves the draw of the test samples "
    "out; for fewer seeds over test samples (bootstrap), which leaves the seeds out"
)
_NO_WIDTH = (
    "an interval of no width says that all runs have the same score on these test samples, "
    "not that no other sample would be missed"
)
_KINDS = ("trivial", "rule", "solver", "bound", "published")


@dataclass(frozen=True, slots=True)
class Cell:
    """The score of one row in one column.

    Attributes:
        mean: Mean over the seeds.
        deviation: Sample standard deviation over the seeds; None for a single one.
        interval: Ends of the 95 % interval; None without one.
        best: Whether it is the best mean of the models of its column.
        tied: Whether no test separates the model from the best tested one; None for this one and for untested models.
        tested: Whether the model is ranked, so that it was compared with others.
    """

    mean: float
    deviation: float | None
    interval: tuple[float, float] | None = None
    best: bool = False
    tied: bool | None = None
    tested: bool = True

    @property
    def mark(self) -> str:
        """The mark behind the score."""
        return _UNTESTED if not self.tested else _TIED if self.tied else ""


@dataclass(frozen=True, slots=True)
class _Style:
    """How a form writes the parts of a cell; the formats have a place for each number."""

    absent: str
    best: str
    deviation: str
    interval: str
    marks: Mapping[str, str]

    def row(self, name: str, cells: Sequence[Cell | None], intervals: bool) -> list[str]:
        """Return the name of a row, which is safe in the form, and its cells as texts."""
        return [name, *(self.text(cell, intervals) for cell in cells)]

    def text(self, cell: Cell | None, intervals: bool) -> str:
        """Return a cell as text, with its interval if ``intervals`` asks for it."""
        if cell is None:
            return self.absent
        parts = [self.best.format(_digits(cell.mean)) if cell.best else _digits(cell.mean)]
        if cell.deviation is not None:
            parts.append(self.deviation.format(_digits(cell.deviation)))
        if intervals and cell.interval is not None:
            parts.append(self.interval.format(*map(_digits, cell.interval)))
        return "".join(parts) + self.marks.get(cell.mark, "")


_MARKDOWN = _Style("\u2013", "**{}**", " ± {}", " [{}, {}]", {_TIED: _TIED, _UNTESTED: _UNTESTED})
_TEX = _Style(
    absent="--",
    best=r"\textbf{{{}}}",
    deviation=r" {{\scriptsize$\pm$\,{}}}",
    interval=r" {{\scriptsize[{}, {}]}}",
    marks={_TIED: r"$^{\dagger}$", _UNTESTED: r"$^{\ddagger}$"},
)


_WHY: Mapping[Unranked, str] = {
    "seeds": "it lacks one of the seeds 0, 1 and 2",
    "bootstrap": "its records have no bootstrap replicates",
    "alone": "there is no other tested model",
}
"""Why a model is not tested, in words."""


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table for a paper.

    Attributes:
        heads: Headings of the columns, each with its metric and direction.
        models: Name -> cell per column, None without a score; the models, the best mean rank of their means first.
        references: The same for references that are not ranked, such as printed scores.
        notes: Lines below the table.
    """

    heads: tuple[str, ...]
    models: Mapping[str, tuple[Cell | None, ...]]
    references: Mapping[str, tuple[Cell | None, ...]]
    notes: tuple[str, ...]


def paper_table(
    records: Iterable[RunRecord],
    form: PaperFormat,
    *,
    splits: str | Sequence[str] = "test",
    models: str | Sequence[str] = "*",
    budget_class: BudgetClass = "open",
    intervals: bool = False,
) -> str:
    """Return a table for a paper of some records, as text.

    The columns are the datasets, and of each the chosen splits. CSV has a row per model and column, with all numbers.

    Args:
        records: The records, such as ``load_records()`` returns.
        form: ``latex`` (needs the package booktabs), ``markdown`` or ``csv``.
        splits: Name or glob of splits, or several.
        models: Name or glob of models, or several.
        budget_class: Only models within this class; the tests are those of the class.
        intervals: Whether the 95 % interval stands behind the deviation.

    Raises:
        ArgumentError: If the form is unknown.
        ResultError: If no record has a score for the table.
    """
    if form not in FORMATS:
        raise ArgumentError(f"unknown form of a table {form!r}; choose from {', '.join(FORMATS)}")
    boards = paper_boards(records, splits, models)
    return table_of_boards(boards, form, budget_class=budget_class, intervals=intervals)


def paper_boards(
    records: Iterable[RunRecord], splits: str | Sequence[str] = "test", models: str | Sequence[str] = "*"
) -> list[Board]:
    """Return the ranked tables that :func:`table_of_boards` writes; arguments as for :func:`paper_table`."""
    chosen = [record for record in records if matches(record.model, models)]
    return [board for board in tables_of(chosen).boards if matches(board.split, splits)]


def table_of_boards(
    on_split: Sequence[Board], form: PaperFormat, *, budget_class: BudgetClass = "open", intervals: bool = False
) -> str:
    """Return a table for a paper of some ranked tables; arguments and errors as for :func:`paper_table`."""
    of_class = [board for board in on_split if board.budget_class == budget_class]
    boards = [board for board in of_class if board.main]
    if not boards and any(board.main for board in on_split):
        raise ResultError(
            f"no record of these splits is of the class {budget_class}: it needs the cost of the training, which "
            "`graphbench evaluate` takes as --cpu-seconds; --class open has every model"
        )
    if not boards:
        raise ResultError(
            "no record has a score for this table; `graphbench results --split '*'` lists the splits with scores"
        )
    if form == "csv":
        return _csv(boards)
    table = _table(boards, [board for board in of_class if not board.main])
    return _latex(table, intervals) if form == "latex" else _markdown(table, intervals)


def absent_rows(boards: Sequence[Board], hashes: Collection[str]) -> list[str]:
    """Return a sentence for every row of some configurations that a table for a paper leaves out.

    A table has the models that were scored on the samples of most models.

    Args:
        boards: The ranked tables, as :func:`paper_boards` returns them.
        hashes: Hashes of the configurations.
    """
    in_class = [board for board in boards if board.budget_class == "open"]
    others = [board for board in in_class if not board.main]
    chosen = [replace(b, rows=tuple(row for row in b.rows if row.config_hash in hashes)) for b in others]
    return _left_out([board for board in in_class if board.main], chosen)


def _table(boards: Sequence[Board], others: Sequence[Board] = ()) -> PaperTable:
    """Return the table of some boards; ``others`` are of the same splits, on other samples."""
    names = _names(boards)
    rows: dict[str, dict[int, Cell]] = {}
    references: dict[str, dict[int, Cell]] = {}
    for column, board in enumerate(boards):
        for row in board.rows:
            rows.setdefault(names[board.split, board.unit, row.label], {})[column] = _cell(row, board)
        for reference in sorted(board.references, key=lambda r: _KINDS.index(r.kind)):
            if reference.comparable and not reference.apart:
                name = f"{reference.name} ({reference.kind})"
                references.setdefault(name, {})[column] = Cell(reference.value, reference.std)
    places = {name: _mean_place(name, rows, boards) for name in rows}
    heads = _heads(boards)
    notes = ["mean and standard deviation over the seeds; best mean in bold"]
    marks = {cell.mark for cells in rows.values() for cell in cells.values()}
    if _TIED in marks:
        notes.append(f"{_TIED}: no test separates the model from the best tested one (5 % per column, Holm)")
    if _UNTESTED in marks:
        reasons = {row.unranked for board in boards for row in board.rows if row.unranked is not None}
        notes.append(f"{_UNTESTED}: not tested: {', or '.join(_WHY[reason] for reason in sorted(reasons))}")
    notes += [
        f"{row.label} on {_place(board)}: {counted(len(row.copies), 'run')} with the scores of another seed (seed "
        f"{', '.join(map(str, row.copies))}) left out"
        for board in boards
        for row in board.rows
        if row.copies
    ]
    notes += [
        f"{_place(board)}: scored on a part, {board.data.graphs:,} samples" for board in boards if _is_part(board)
    ]
    notes += _left_out(boards, others)
    return PaperTable(
        heads=heads,
        models={name: _across(rows[name], len(boards)) for name in sorted(rows, key=lambda n: (places[n], n))},
        references={name: _across(cells, len(boards)) for name, cells in references.items()},
        notes=tuple(notes),
    )


def _names(boards: Sequence[Board]) -> dict[tuple[str, str, str], str]:
    """Return (split, unit, label) -> name of a row, which is the same in all forms of a table."""
    names: dict[tuple[str, str, str], str] = {}
    for split in dict.fromkeys(board.split for board in boards):
        by_row = group_names([board for board in boards if board.split == split])
        names |= {(split, unit, label): name for (unit, label), name in by_row.items()}
    return names


def _is_part(board: Board) -> bool:
    return not board.data.whole and board.data.graphs is not None


def _place(board: Board) -> str:
    return f"{board.unit} {board.split}"


def _left_out(boards: Sequence[Board], others: Sequence[Board]) -> list[str]:
    """Return a note per model that was scored on other samples than the models of its column."""
    columns = {(board.unit, board.split): board for board in boards}
    notes = []
    for other in others:
        column = columns.get((other.unit, other.split))
        shown = {row.config_hash for row in column.rows} if column is not None else set()
        for row in other.rows:
            if row.config_hash not in shown:
                data = other.data
                samples = "other samples" if data.graphs is None else f"{data.graphs:,} samples"
                draw = f" of draw {data.draw}" if data.draw else ""
                ours = (
                    ""
                    if column is None or column.data.graphs is None
                    else f", the models above on {column.data.graphs:,}"
                )
                notes.append(f"left out: {row.label} on {_place(other)}, scored on {samples}{draw}{ours}")
    return list(dict.fromkeys(notes))


def _across(cells: Mapping[int, Cell], columns: int) -> tuple[Cell | None, ...]:
    return tuple(cells.get(column) for column in range(columns))


def _mean_place(name: str, rows: Mapping[str, Mapping[int, Cell]], boards: Sequence[Board]) -> tuple[float, float]:
    """Return the share of columns without the model, and its mean place by the means of the others."""
    places = []
    for column, cell in rows[name].items():
        sign = 1 if boards[column].higher_is_better else -1
        better = sum(sign * cells[column].mean > sign * cell.mean for cells in rows.values() if column in cells)
        places.append(better)
    return 1 - len(places) / len(boards), sum(places) / len(places)


def _heads(boards: Sequence[Board]) -> tuple[str, ...]:
    """Return the headings of columns: the parts in which they differ, and the metric."""
    units, splits = {board.unit for board in boards}, {board.split for board in boards}
    heads = []
    for board in boards:
        parts = [board.unit] if len(units) > 1 or len(splits) == 1 else []
        parts += [board.split] if len(splits) > 1 else []
        heads.append(f"{', '.join(parts)} ({metric_head(board.metric)})")
    return tuple(heads)


def _cell(row: Row, board: Board) -> Cell:
    comparison, tested = row.against_best, row.unranked is None
    tied = None if comparison is None or comparison.p is None or not tested else not comparison.differs
    interval = None if row.interval is None else (row.interval.low, row.interval.high)
    return Cell(row.mean, Stat.of(row.values).std, interval, row.mean == board.rows[0].mean, tied, tested)


def _digits(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.3f}" if abs(value) < 100 else f"{value:.1f}"


def _markdown(table: PaperTable, intervals: bool) -> str:
    lines = ["| " + " | ".join(map(markdown_safe, ("model", *table.heads))) + " |"]
    lines.append("| :--- |" + " ---: |" * len(table.heads))
    for rows in (table.models, table.references):
        for name, cells in rows.items():
            lines.append(f"| {' | '.join(_MARKDOWN.row(markdown_safe(name), cells, intervals))} |")
    return "\n".join([*lines, "", *(f"{note}  " for note in _notes(table, intervals))]) + "\n"


def _notes(table: PaperTable, intervals: bool) -> list[str]:
    """Return the notes of a table, with those on the intervals that it shows."""
    shown = [cell for cells in table.models.values() for cell in cells if cell is not None] if intervals else []
    known = [cell.interval for cell in shown if cell.interval is not None]
    notes = [*table.notes, *([_OF_INTERVALS] if known else [])]
    return [*notes, *([_NO_WIDTH] if any(low == high for low, high in known) else [])]


def _latex(table: PaperTable, intervals: bool) -> str:
    lines = [r"% \usepackage{booktabs}", rf"\begin{{tabular}}{{l{'r' * len(table.heads)}}}", r"\toprule"]
    lines.append(" & ".join(map(_latex_safe, ("model", *table.heads))) + r" \\")
    for rows in (table.models, table.references):
        lines += [r"\midrule"] if rows else []
        for name, cells in rows.items():
            lines.append(" & ".join(_TEX.row(_latex_safe(name), cells, intervals)) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", *(f"% {note}" for note in _notes(table, intervals))]
    text_of_table = "\n".join(lines) + "\n"
    return text_of_table.replace(f"% {_TIED}", r"% $\dagger$").replace(f"% {_UNTESTED}", r"% $\ddagger$")


def _latex_safe(text: str) -> str:
    safe = "".join(c if c.isprintable() else " " for c in text).translate(_LATEX)
    return safe.replace("\u2191", r"$\uparrow$").replace("\u2193", r"$\downarrow$")


def _csv(boards: Sequence[Board]) -> str:
    out, names = io.StringIO(), _names(boards)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for board in boards:
        shared = [board.dataset, board.protocol, board.split, board.metric, board.higher_is_better, board.data.graphs]
        for row in board.rows:
            cell = _cell(row, board)
            interval = (
                [None] * 3 if row.interval is None else [row.interval.low, row.interval.high, row.interval.method]
            )
            separated = None if cell.tied is None else not cell.tied
            numbers = [
                len(row.seeds),
                cell.mean,
                cell.deviation,
                *interval,
                row.rank,
                row.worst_rank,
                cell.best,
                separated,
            ]
            name = names[board.split, board.unit, row.label]
            writer.writerow(map(spreadsheet_cell, [*shared, name, row.budget_class, *numbers]))
        for reference in board.references:
            writer.writerow(map(spreadsheet_cell, [*shared, *_of_reference(reference)]))
    return out.getvalue()


def _of_reference(reference: Reference) -> list[object]:
    return [f"{reference.name} ({reference.kind})", None, None, reference.value, reference.std, *[None] * 7]
