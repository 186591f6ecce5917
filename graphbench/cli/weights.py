"""The commands ``weights list``, ``weights export`` and ``weights check``: stored weights of trained models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphbench.cli.options import Json, Root
from graphbench.cli.output import CommandLine
from graphbench.core.errors import CheckpointError, ConfigError

if TYPE_CHECKING:
    from graphbench.training.weights.files import WeightsFile

weights = CommandLine(
    no_args_is_help=True,
    help="List, write and check the weights of trained models, which `graphbench.load_model` rebuilds models from.",
)

Results = Annotated[
    Path | None,
    typer.Option("--records", help="Folder of run records.", show_default="the package's baselines/results"),
]
_TYPES = ("auto", "float16", "float32")


@weights.command("list")
def list_command(
    selector: Annotated[
        list[str] | None, typer.Argument(help="Datasets: ids, aliases, groups or globs.", show_default="all")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the datasets and models whose weights are stored, of the package and of plug-ins."""
    from graphbench.catalog.names import list_datasets
    from graphbench.cli.printing import new_table, print_json, print_line, print_table
    from graphbench.cli.runs import is_chosen
    from graphbench.cli.show_scores import score_text
    from graphbench.core.words import human_bytes
    from graphbench.training.weights.files import rows

    chosen = None if not selector else set(list_datasets(selector))
    stored = [facts_of(id_, file) for id_, file in rows() if chosen is None or is_chosen(id_, chosen)]
    if as_json:
        print_json(stored)
        return
    if not stored:
        print_line("there are no weights of these datasets; `graphbench weights export RUN` writes some")
        return
    table = new_table("dataset", "model", "seed", "parameters", "stored as", "size", "validation")
    for row in stored:
        table.add_row(
            row["dataset"],
            row["model"],
            str(row["seed"]),
            f"{row['parameters']:,}",
            row["dtype"],
            human_bytes(row["bytes"]),
            f"{row['metric']} {score_text(row['value'])} on {row['split']}",
        )
    print_table(table)
    print_line("\nfrom Python: graphbench.load_model(dataset, model)", "dim")


def facts_of(dataset: str, file: WeightsFile) -> dict[str, Any]:
    """Return the facts of a row with weights, as lists of weights show them."""
    facts, validation = file.facts, file.facts.datasets[dataset].validation
    return {
        "dataset": dataset,
        "model": facts.model,
        "seed": facts.seed,
        "data_seed": facts.data_seed,
        "trained_on": list(facts.datasets),
        "parameters": facts.parameters,
        "dtype": facts.dtype,
        "bytes": file.size,
        "split": validation.split,
        "metric": validation.metric,
        "value": validation.stored,
        "record": facts.datasets[dataset].record,
        "file": str(file.path),
    }


@weights.command("export")
def export_command(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    dtype: Annotated[
        str,
        typer.Option(
            metavar="TYPE",
            help="How parameters are stored: `float16` (refused where it changes a score), `float32`, or `auto`.",
        ),
    ] = "auto",
    records: Results = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder of weights.", show_default="baselines/weights")
    ] = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Write the weights of a finished run to a file of `baselines/weights/`, for `graphbench.load_model`.

    The record of the run must stand in `baselines/results` (`graphbench train ... --records baselines/results`), and
    the weights must have its score on the validation split. A dataset and a model have one file: weights of another
    seed replace it.
    """
    from graphbench.cli.printing import print_json, print_line
    from graphbench.core.words import human_bytes
    from graphbench.training.weights.export import export_weights

    if dtype not in _TYPES:
        raise typer.BadParameter(f"choose from {', '.join(_TYPES)}, not {dtype!r}", param_hint="--dtype")
    file = export_weights(run, dtype=dtype, results=records, output=output, root=root)  # type: ignore[arg-type]
    described = [facts_of(id_, file) for id_ in file.facts.datasets]
    if as_json:
        print_json(described)
        return
    for row in described:
        print_line(
            f"{row['dataset']} {row['model']}, seed {row['seed']}: {row['metric']} {row['value']:.4g} on {row['split']}"
        )
    print_line(f"\nwrote {file.path} ({human_bytes(file.size)}, {file.facts.dtype})", "dim")


@weights.command("check")
def check_command(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Files of weights.", show_default="all of the package and of plug-ins")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Score whole splits and compare with the record, not the first 64 samples.")
    ] = False,
    records: Results = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Rebuild models from their weights, and compare them with their records and their stated scores.

    The exit code is 1 if a check fails.
    """
    from graphbench.cli.printing import print_json, print_line
    from graphbench.records.files import results_dir
    from graphbench.training.weights.check import check_weights
    from graphbench.training.weights.files import read_weights, weights_files

    outcomes: dict[str, list[str]] = {}
    for path in files or [file.path for file in weights_files()]:
        try:
            problems = check_weights(read_weights(path), records or results_dir(), whole=whole, root=root)
        except (CheckpointError, ConfigError) as error:
            problems = [str(error)]
        outcomes[str(path)] = problems
        if not as_json:
            print_line(f"{path}: {'; '.join(problems) or 'ok'}", "red" if problems else None)
    if as_json:
        print_json(outcomes)
    if any(outcomes.values()):
        raise typer.Exit(1)
