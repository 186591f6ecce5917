"""The command ``reproduce``: recorded results obtained again, and a table of how they compare."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphbench.cli.options import Json, Root, Workers
from graphbench.core.errors import ConfigError

if TYPE_CHECKING:
    from graphbench.core.errors import GraphBenchError
    from graphbench.verification.reproduction import Reproduction, Row

_COLUMNS = ("dataset", "model", "seed", "split", "metric", "recorded", "again", "interval", "outcome", "CPU time")
_STYLES = {
    "same bits": "green",
    "same weights": "green",
    "within the interval": None,
    "undecided": "yellow",
    "different": "red",
}


def reproduce(
    rows: Annotated[
        list[str] | None,
        typer.Argument(
            help="Datasets (ids, aliases, groups, globs) whose records are repeated, or files of records (`.json`)."
        ),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Name or glob of models; may be repeated.", show_default="all")
    ] = None,
    seed: Annotated[
        list[int] | None, typer.Option(help="Seed of the records; may be repeated.", show_default="all")
    ] = None,
    under: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="MINUTES",
            help="Only records whose training took fewer CPU minutes; none of a GPU on a machine without one.",
            show_default="all",
        ),
    ] = None,
    one_each: Annotated[
        bool,
        typer.Option(
            "--one-each", help="One record of every dataset and configuration: a repeated one, else the shortest."
        ),
    ] = False,
    weights: Annotated[
        bool, typer.Option("--weights", help="Score the stored weights of the records instead of training again.")
    ] = False,
    weights_suffice: Annotated[
        bool,
        typer.Option(
            "--weights-suffice",
            help="Compute no scores where the weights and curves of the repeated run are the recorded ones.",
        ),
    ] = False,
    samples: Annotated[
        int | None,
        typer.Option(
            min=100,
            help="Most samples of a split that are scored again; the intervals are wider accordingly.",
            show_default="all",
        ),
    ] = None,
    records: Annotated[
        Path | None, typer.Option(help="Folder of run records.", show_default="the package's baselines/results")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the outcomes, one JSON file per record.")
    ] = Path("reproductions"),
    runs: Annotated[Path, typer.Option(help="Folder of the repeated runs.")] = Path("runs/reproduced"),
    again: Annotated[
        bool, typer.Option("--again", help="Repeat records whose outcome is in the output folder already.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the records that would be repeated, and repeat none.")
    ] = False,
    root: Root = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Obtain recorded results again and compare: the same configuration, data, seeds and budget.

    On a processor of the same kind the scores, curves and weights of a repeated run have the same bits. Elsewhere
    every score is compared with the 95 % interval of the recorded one. The shortest runs are repeated first. The exit
    code is 1 if a score is different, or a record could not be repeated.

    Examples: `graphbench reproduce mst_easy --model pairs --seed 0`, `graphbench reproduce --under 10
    --one-each`
    """
    from graphbench.records.files import matches
    from graphbench.verification.repeat import reproduce as train_again
    from graphbench.verification.repeat import rescore, times_count_here
    from graphbench.verification.reproduction import finished_of, load_reproductions, one_of_each, save_reproduction

    if weights and (weights_suffice or samples is not None):
        raise typer.BadParameter("--weights trains nothing; leave --weights-suffice and --samples out")
    if not rows and under is None:
        raise typer.BadParameter(
            "name a dataset or a file of a record, or give --under MINUTES for all records of short runs",
            param_hint="ROWS",
        )
    named = _named(rows or [], records, weights)
    chosen = [
        row
        for row in named
        if (model is None or matches(row.record.model, model))
        and (seed is None or row.record.seed in seed)
        and (under is None or row.minutes < under)
    ]
    fitting = [row for row in chosen if under is None or weights or times_count_here(row)]
    if len(fitting) < len(chosen) and not as_json:
        _say_slower(len(chosen) - len(fitting))
    chosen = fitting
    if not chosen:
        raise ConfigError(_why_none(named, weights))
    finished = {} if again else finished_of(chosen, load_reproductions(output), "weights" if weights else "training")
    if one_each:
        chosen = one_of_each(chosen, finished)
        finished = {row.path: finished[row.path] for row in chosen if row.path in finished}
    missing = sorted((row for row in chosen if row.path not in finished), key=attrgetter("minutes"))
    if dry_run:
        _print_chosen(missing, len(finished), output, as_json)
        return
    how: dict[str, Any] = {"root": root, "workers": workers}
    if weights:
        repeated = rescore(missing, **how)
    else:
        repeated = train_again(missing, runs, weights_suffice=weights_suffice, samples=samples, **how)
    by_path: dict[str, Reproduction | GraphBenchError] = dict(finished)
    for row, outcome in repeated:
        by_path[row.path] = outcome
        if not isinstance(outcome, Exception):
            save_reproduction(outcome, output)
        if not as_json:
            _say(row, outcome)
    outcomes = [(row, by_path[row.path]) for row in chosen]
    if as_json:
        _print_json(outcomes)
    else:
        _print_table(outcomes, len(finished), output)
    if any(isinstance(outcome, Exception) or outcome.verdict == "different" for _, outcome in outcomes):
        raise typer.Exit(1)


def _say_slower(count: int) -> None:
    """Print how many records of a GPU are left out, since they take hours without one."""
    from graphbench.cli.printing import print_line
    from graphbench.core.words import counted

    print_line(
        f"{counted(count, 'record')} of a GPU left out: this machine has none, and the minutes of a GPU are hours "
        "without it (name the files of the records, without --under, to repeat them)",
        "yellow",
    )


def _why_none(named: Sequence[Row], weights: bool) -> str:
    """Return why no record is left, with the models and seeds that there are."""
    from graphbench.core.words import counted

    if not named:
        listed = "weights list` lists the ones with weights" if weights else "results` lists all"
        return f"no record fits; `graphbench {listed}"
    models, seeds = sorted({row.record.model for row in named}), sorted({row.record.seed for row in named})
    return (
        f"no record fits --model, --seed and --under; without them {counted(len(named), 'record')} would, of "
        f"{', '.join(models)}, with the seeds {', '.join(map(str, seeds))}"
    )


def _named(names: Sequence[str], folder: Path | None, weights: bool) -> list[Row]:
    """Return the records that the arguments name, each once; ``weights`` asks for records with weights."""
    from graphbench.catalog.names import list_datasets
    from graphbench.cli.runs import is_chosen
    from graphbench.records.files import read_record, results_dir, stored_records
    from graphbench.verification.repeat import rows_with_weights
    from graphbench.verification.reproduction import rows_of_records

    files = [Path(name) for name in names if name.endswith(".json")]
    selectors = [name for name in names if not name.endswith(".json")]
    where = folder if folder is not None else results_dir()
    given = {record.relative_path.as_posix(): record for record in map(read_record, files)}
    datasets = set(list_datasets(selectors)) if selectors else set()
    if selectors or not names:
        places = [where]
    else:  # the further seeds of the given records, whose spread is part of the comparison
        places = [place for place in dict.fromkeys((where / name).parent for name in given) if place.is_dir()]
    stored = stored_records("*", places) if places else []
    known = {path.relative_to(where).as_posix(): record for path, record in stored}
    rows = rows_of_records(list((given | known | given).items()))  # a given record stands for the stored one
    named = [row for row in rows if not names or row.path in given or is_chosen(row.record.dataset, datasets)]
    return rows_with_weights(named) if weights else named


def _print_chosen(rows: Sequence[Row], finished: int, output: Path, as_json: bool) -> None:
    """Print the records to repeat, the shortest runs first, and how many others have an outcome already."""
    from graphbench.cli.printing import new_table, print_json, print_line, print_table
    from graphbench.core.words import counted, duration

    if as_json:
        print_json([row.path for row in rows])
        return
    table = new_table("dataset", "model", "seed", "CPU time", right=("seed", "CPU time"))
    for row in rows:
        seconds, clock = row.minutes * 60, " (clock)" if row.record.cpu_seconds is None else ""
        time = "-" if seconds == float("inf") else f"{duration(seconds)}{clock}"
        table.add_row(row.record.dataset, row.record.model, _seed(row), time)
    print_table(table)
    seconds = sum(row.minutes * 60 for row in rows if row.minutes != float("inf"))
    others = f"; {counted(finished, 'other')} repeated already ({output})" if finished else ""
    print_line(f"\n{counted(len(rows), 'record')}, {duration(seconds)} of CPU time for training{others}", "dim")


def _seed(row: Row) -> str:
    from graphbench.core.words import seed_text

    return seed_text(row.record.seed, row.record.data_seed)


def _say(row: Row, outcome: Reproduction | GraphBenchError) -> None:
    """Print the outcome of one record at once, as a long list takes hours."""
    from graphbench.cli.printing import print_line

    name = f"{row.record.dataset} {row.record.model} seed {_seed(row)}"
    if isinstance(outcome, Exception):
        print_line(f"{name}: not repeated: {outcome}", "red")
    else:
        print_line(f"{name}: {outcome.verdict}", _STYLES[outcome.verdict])


def _print_table(outcomes: Sequence[tuple[Row, Reproduction | GraphBenchError]], kept: int, output: Path) -> None:
    from rich.text import Text

    from graphbench.cli.printing import new_table, print_line, print_table
    from graphbench.core.words import counted, duration

    table = new_table(*_COLUMNS, right=("seed", "recorded", "again", "interval", "CPU time"))
    changes: dict[str, None] = {}
    for row, outcome in outcomes:
        if isinstance(outcome, Exception):
            continue
        outcome_cell: Any = Text(outcome.verdict, _STYLES[outcome.verdict] or "")
        names = (row.record.dataset, row.record.model, _seed(row))
        table.add_row(*names, *_numbers(outcome), outcome_cell, duration(outcome.cpu_seconds))
        changes |= dict.fromkeys(outcome.changes)
    print_table(table)
    failed = sum(isinstance(outcome, Exception) for _, outcome in outcomes)
    counts = [f"{counted(len(outcomes) - failed, 'record')} repeated"]
    counts += [f"{kept} of them earlier (--again repeats them)"] if kept else []
    counts += [f"{failed} not repeated"] if failed else []
    print_line(f"\n{', '.join(counts)}; the files in {output} have the scores of all splits", "dim")
    if changes:
        print_line(f"other than in the records: {'; '.join(changes)}", "dim")


def _numbers(outcome: Reproduction) -> tuple[str, ...]:
    """Return split, metric, recorded and repeated score and interval of a record, as the table shows them.

    The split is the first one that is different, else test.
    """
    from graphbench.cli.show_scores import score_text

    splits = outcome.splits
    if not splits:
        return ("-",) * 5
    worst = next((name for name, split in splits.items() if not (split.equal or split.within)), None)
    name = worst if worst is not None else "test" if "test" in splits else next(iter(splits))
    split = splits[name]
    low, high = split.low, split.high
    interval = "-" if low is None or high is None else f"{score_text(low)} to {score_text(high)}"
    return name, split.metric, score_text(split.recorded), score_text(split.repeated), interval


def _print_json(outcomes: Sequence[tuple[Row, Reproduction | GraphBenchError]]) -> None:
    from graphbench.cli.printing import print_json

    print_json(
        [
            {"record": row.path, "error": str(outcome)}
            if isinstance(outcome, Exception)
            else {"verdict": outcome.verdict, **outcome.model_dump(mode="json", by_alias=True)}
            for row, outcome in outcomes
        ]
    )
