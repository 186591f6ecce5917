"""The commands ``leaderboard`` and ``results``, which show stored records."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphbench.cli.options import Baselines, Json, Records
from graphbench.cli.output import answer_stream, echo
from graphbench.core.untrusted import spreadsheet_cell

if TYPE_CHECKING:
    from graphbench.leaderboard.model import Board
    from graphbench.records.record import RunRecord

_SHOWN = ("dataset", "model", "split", "metric", "value", "graphs", "seed", "steps", "budget")
_MOST_NAMES = 20  # in a message
_BUDGETS = {True: "small", False: "full", None: "not stated"}

Selector = Annotated[
    list[str] | None, typer.Argument(help="Datasets to include (ids, aliases, groups, globs).", show_default="all")
]


def leaderboard(
    selector: Selector = None,
    records: Records = None,
    baselines: Baselines = False,
    output: Annotated[Path, typer.Option(help="Folder to write to, or a single .html, .md or .json file.")] = Path(
        "leaderboard"
    ),
    title: Annotated[
        str | None,
        typer.Option(help="Heading of the pages.", show_default="graphbench leaderboard, with the date of --at"),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="COMMIT",
            help="The board as the records of a commit of this checkout make it; --records names their folder.",
            show_default="the present files",
        ),
    ] = None,
    changes: Annotated[
        bool,
        typer.Option(
            "--changes", help="Add the changes of first places since the first commit of this checkout with records."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the leaderboard as JSON and write no pages.")] = False,
) -> None:
    """Rank models by run records: self-contained HTML pages, Markdown and JSON.

    Per dataset and split, models are ranked by their means over seeds; models that no paired test separates share their
    ranks. A model stands in every budget class whose limit it keeps: minutes, paper, open. Means over a domain and over
    the suite are means of ranks and of normalised scores. Pages of an earlier state are made by the present rules.
    """
    from graphbench.cli.runs import chosen_records, fitting_records
    from graphbench.leaderboard import build_leaderboard, leaderboard_of, to_json
    from graphbench.leaderboard.history import first_places, state_at

    if (at is not None or changes) and records is not None and len(records) > 1:
        raise typer.BadParameter("--at and --changes read the history of one folder; give --records once")
    folder = records[0] if records else None
    heading = title or "graphbench leaderboard"
    if at is None:
        run_records = chosen_records(selector, records, baselines=baselines)
    else:
        state = state_at(at, folder)
        run_records = fitting_records(state.records, selector)
        heading = title or f"graphbench leaderboard of {state.date:%Y-%m-%d}, commit {state.commit[:8]}"
    if as_json:
        echo(to_json(leaderboard_of(run_records)), nl=False)
        return
    datasets = None if selector is None else {record.dataset for record in run_records}
    moved = first_places(folder, datasets) if changes else ()
    for path in build_leaderboard(run_records, output, title=heading, changes=moved):
        echo(f"wrote {path}")


def results(
    selector: Selector = None,
    records: Records = None,
    baselines: Baselines = False,
    model: Annotated[
        list[str] | None, typer.Option(help="Name or glob of models; may be repeated.", show_default="all")
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(
            help="Name or glob of splits, `*` for all; may be repeated.", show_default="test; for CSV and JSON all"
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="Name or glob of metrics, `*` for all, or `primary`, the one that models are ranked by; may be "
            "repeated.",
            show_default="primary; for CSV and JSON all",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="Only runs with a `full`, a `small` or an `unstated` budget.", show_default="all"),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Sort by a column of the CSV.", show_default="dataset, model and seed"),
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Sort descending.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV, with all columns.")] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORM",
            help="Print a table for a paper, `latex`, `markdown` or `csv`: means over the seeds, best in bold, "
            "marks of significance, a column per dataset and split.",
            show_default="a row per record",
        ),
    ] = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="With `--format`: 95 % intervals behind the deviations.")
    ] = False,
    budget_class: Annotated[
        str | None,
        typer.Option(
            "--class",
            metavar="CLASS",
            help="With `--format`: only models within `minutes` or `paper`.",
            show_default="open",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print stored records as a table, CSV or JSON, one row per record, split and metric; or a table for a paper.

    `graphbench.results()` gives the rows as a pandas table. In CSV a text that a spreadsheet would run as a formula
    begins with an apostrophe, and control characters are written as escapes.
    """
    from graphbench.catalog.names import list_datasets
    from graphbench.cli.printing import print_json
    from graphbench.cli.runs import chosen_records, is_chosen, record_places
    from graphbench.records.table import COLUMNS, PRIMARY, as_rows

    if sum((as_csv, as_json, form is not None)) > 1:
        raise typer.BadParameter("--csv, --json and --format are different forms; choose one")
    if form is None and (intervals or budget_class is not None):
        raise typer.BadParameter(
            "--intervals and --class are for tables for papers; add --format latex, markdown or csv"
        )
    if form is not None:
        if metric or budget or sort or reverse:
            raise typer.BadParameter(
                "--format shows the primary metric of whole tables; leave out --metric, --budget, --sort and --reverse"
            )
        _print_paper_table(selector, records, form, model, split, intervals, budget_class, baselines=baselines)
        return
    everything = as_csv or as_json
    filters: dict[str, Any] = {
        "model": model or "*",
        "split": split or ("*" if everything else "test"),
        "metric": metric or ("*" if everything else PRIMARY),
        "budget": budget,
    }
    chosen = set(list_datasets(selector)) if selector else None
    places = record_places(records, baselines=baselines)
    rows = as_rows("*", places, **filters, sort=sort, reverse=reverse, skip_malformed=True)
    rows = [row for row in rows if chosen is None or is_chosen(row["dataset"], chosen)]
    if not rows:
        _require_names(chosen_records(selector, records, baselines=baselines), model, split, metric)
    if as_json:
        print_json(rows)
    elif as_csv:
        writer = csv.DictWriter(answer_stream(), COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({column: spreadsheet_cell(value) for column, value in row.items()} for row in rows)
    else:
        _print_rows(rows)


def _print_paper_table(
    selector: Sequence[str] | None,
    records: Sequence[Path] | None,
    form: str,
    model: Sequence[str] | None,
    split: Sequence[str] | None,
    intervals: bool,
    budget_class: str | None,
    *,
    baselines: bool,
) -> None:
    from graphbench.cli.runs import chosen_records
    from graphbench.leaderboard.paper_tables import FORMATS, paper_boards, table_of_boards
    from graphbench.records.classes import BUDGET_CLASSES

    if form not in FORMATS:
        raise typer.BadParameter(f"choose from {', '.join(FORMATS)}, not {form!r}", param_hint="--format")
    if budget_class not in (None, *BUDGET_CLASSES):
        raise typer.BadParameter(f"choose from {', '.join(BUDGET_CLASSES)}, not {budget_class!r}", param_hint="--class")
    stored = chosen_records(selector, records, baselines=baselines)
    _require_names(stored, model, split)
    boards = paper_boards(stored, split or "test", model or "*")
    echo(table_of_boards(boards, form, budget_class=budget_class or "open", intervals=intervals), nl=False)
    if baselines:
        warn_of_absent(boards, chosen_records(selector, records, baselines=False))


def _require_names(
    records: Sequence[RunRecord],
    models: Sequence[str] | None,
    splits: Sequence[str] | None,
    metrics: Sequence[str] | None = None,
) -> None:
    """Refuse names and globs of models, splits and metrics that fit nothing in the chosen records."""
    from graphbench.core.suggestions import closest
    from graphbench.core.words import first_of
    from graphbench.records.files import matches
    from graphbench.records.table import PRIMARY

    known = {
        "model": {record.model for record in records},
        "split": {split for record in records for split in record.scores},
        "metric": {PRIMARY, *(name for record in records for scores in record.scores.values() for name in scores)},
    }
    for kind, patterns in (("model", models), ("split", splits), ("metric", metrics)):
        for pattern in patterns or ():
            if not any(matches(name, pattern) for name in known[kind]):
                hint = closest(pattern, known[kind]) or f"; there are {first_of(sorted(known[kind]), _MOST_NAMES)}"
                message = f"no chosen record has the {kind} {pattern!r:.80}{hint}"
                raise typer.BadParameter(message, param_hint=f"--{kind}")


def warn_of_absent(boards: Sequence[Board], records: Sequence[RunRecord]) -> None:
    """Print which of the user's models a paper table beside the package's records leaves out.

    Args:
        boards: The ranked tables behind the paper table.
        records: The user's records.
    """
    from graphbench.leaderboard.paper_tables import absent_rows

    absent = absent_rows(boards, {record.config_hash for record in records})
    for words in absent:
        typer.secho(words, err=True, fg="yellow")
    if absent:
        remedy = "score the models on all samples of the split, or leave --baselines out"
        typer.secho(f"a table holds the models that were scored on the same samples: {remedy}", err=True, fg="yellow")


def _labelled(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the model of every row is called, as tables of reports call it."""
    from graphbench.reports.labels import Labels, Named, stored_origin

    facts = [
        Named(
            row["dataset"],
            row["model"],
            row["protocol"],
            row["config_hash"],
            row["config_hash"],
            stored_origin(row["started_from"]),
        )
        for row in rows
    ]
    labels = Labels(facts)
    return [labels[one] for one in facts]


def _print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    from graphbench.cli.printing import new_table, print_line, print_table
    from graphbench.cli.show_scores import score_text
    from graphbench.core.words import counted, seed_text

    if not rows:
        print_line("no record fits; `graphbench results --split '*' --metric '*'` shows all")
        return
    table = new_table(*_SHOWN, right=("value", "seed", "steps", "graphs"))
    arrows = {True: " \u2191", False: " \u2193", None: ""}
    for row, model in zip(rows, _labelled(rows), strict=True):
        metric = row["metric"] + arrows[row["higher_is_better"]]
        graphs, steps = ("-" if row[key] is None else f"{row[key]:,}" for key in ("graphs_scored", "steps"))
        names = (row["dataset"], model, row["split"], metric)
        score, seed = score_text(row["value"]), seed_text(row["seed"], row["data_seed"])
        table.add_row(*names, score, graphs, seed, steps, _BUDGETS[row["small"]])
    print_table(table)
    print_line(f"\n{counted(len(rows), 'row')}; --csv and --json print all columns", "dim")
