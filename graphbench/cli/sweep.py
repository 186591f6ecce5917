"""The command ``sweep``: models x datasets x seeds, and the report, leaderboard and paper table of their records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphbench.cli.options import Device, Json, Root, SamplesLimit, ValLimit, limits_by_split, overrides_of
from graphbench.cli.output import echo
from graphbench.core.errors import ConfigError

if TYPE_CHECKING:
    from graphbench.training.sweep import Cell, CellResult, SweepPlan


_TABLES: dict[str, Any] = {"md": "markdown", "tex": "latex", "csv": "csv"}  # ending of the file -> form


def sweep(
    datasets: Annotated[
        list[str], typer.Argument(help="Datasets (ids, aliases, groups, globs), or one YAML file of a sweep.")
    ],
    model: Annotated[
        list[str] | None,
        typer.Option(help="Name of a configuration in baselines/, or a YAML file; may be repeated."),
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Seed; may be repeated.", show_default="0, 1 and 2")] = None,
    data_seed: Annotated[
        list[int] | None, typer.Option(min=0, help="Draw of the datasets; may be repeated.", show_default="0")
    ] = None,
    evaluate: Annotated[
        str | None,
        typer.Option(help="Splits to score, also `ood`, `additional` or `all`.", show_default="val,test,ood"),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Budget in optimizer steps.", show_default="the configurations'")
    ] = None,
    limit: SamplesLimit = None,
    eval_limit: Annotated[
        str | None,
        typer.Option(metavar="N | SPLIT=N,...", help="Score at most N samples of each split.", show_default="all"),
    ] = None,
    val_limit: ValLimit = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override a key of all models, e.g. `--set training.lr=3e-4`; may be repeated."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the sweep: its runs, records, report and leaderboard.")
    ] = Path("sweep"),
    workers: Annotated[
        int | None, typer.Option(min=1, help="Trainings at once, one thread each.", show_default="all cores")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Train on a running Dask cluster: the address of its scheduler or its scheduler file. Its workers "
            "must have access to the folders of the sweep and of the datasets.",
            show_default="this machine's processes",
        ),
    ] = None,
    slurm: Annotated[
        bool,
        typer.Option("--slurm", help="Print a script for `sbatch`, a job array of the missing runs; train nothing."),
    ] = False,
    cell: Annotated[
        int | None, typer.Option(min=0, help="Train one run by its number, as the Slurm script does.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the runs, and train none.")] = False,
    device: Device = "auto",
    baselines: Annotated[
        bool, typer.Option("--baselines", help="Add the package's records to the tables and pages of the sweep.")
    ] = False,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Train several models on several datasets with several seeds, and compare them.

    Finished runs are kept: the same command goes on after an interruption, and with a further model it trains this
    model alone. At the end, the folder of the sweep holds the records, a report, a leaderboard and `table.md`,
    `table.tex` and `table.csv` for papers. The exit code is 1 if a run failed.

    Example: `graphbench sweep mst_easy bridges_easy --model gin_small --model my_model.yaml --workers 2`
    """
    from graphbench.core.processes.pool import available_cores
    from graphbench.training.sweep import LOGS, cells_of, prepare_data, run_cell, run_cells, slurm_script

    given: dict[str, Any] = {"models": model, "seeds": seed, "data_seeds": data_seed, "evaluate": evaluate}
    given |= {"steps": steps, "limit": limit, "eval_limit": limits_by_split("--eval-limit", eval_limit)}
    given |= {"val_limit": val_limit, "set": None if set_ is None else overrides_of(set_)}
    plan = _plan(datasets, {key: value for key, value in given.items() if value is not None})
    cells = cells_of(plan, output)
    missing = [waiting for waiting in cells if waiting.record() is None]
    if dry_run:
        _print_cells(cells, missing, as_json)
        return
    if slurm and (cell is not None or as_json):
        raise typer.BadParameter("prints a script; leave --cell and --json out", param_hint="--slurm")
    if cell is not None:
        if cell >= len(cells):
            raise typer.BadParameter(f"the sweep has the runs 0 to {len(cells) - 1}, not {cell}", param_hint="--cell")
        record = run_cell(plan, cells[cell], root, device)
        echo(f"{cells[cell].name}: {record.scores.get('test', record.scores)}")
        return
    plan_file = output / f"plan-{plan.digits}.yaml"
    plan.write(plan_file)
    if slurm:
        options = {} if root is None else {"--root": str(root)}
        options |= {} if device == "auto" else {"--device": device}
        (output / LOGS).mkdir(parents=True, exist_ok=True)
        prepare_data(plan, missing, root, workers)
        echo(slurm_script(plan_file, output, missing, options, baselines=baselines), nl=False)
        return
    at_once = workers if workers is not None else available_cores()
    prepare_data(plan, missing, root, at_once)
    how: dict[str, Any] = {"root": root, "device": device, "workers": at_once, "cluster": cluster}
    results = _shown(run_cells(plan, cells, output, **how), cells, at_once)
    _finish(results, output, as_json, baselines=baselines)
    if any(result.error for result in results):
        raise typer.Exit(1)


def _plan(datasets: Sequence[str], given: dict[str, Any]) -> SweepPlan:
    """Return the plan of the options, or that of a file with the options in place of its keys."""
    from graphbench.catalog.names import list_datasets
    from graphbench.core.validation import validated
    from graphbench.training.sweep import SweepPlan, read_plan

    content: dict[str, Any] = {"datasets": tuple(datasets)}
    if len(datasets) == 1 and datasets[0].endswith((".yaml", ".yml")):
        content = read_plan(Path(datasets[0])).model_dump(exclude_unset=True)
    else:
        list_datasets(datasets)  # a wrong name is named before a missing option
    content |= given
    if not content.get("models"):
        raise ConfigError(
            f"no model is named for {', '.join(content['datasets'])}; give --model NAME once or more, or a YAML file "
            "with the key models"
        )
    return validated(SweepPlan, content, ConfigError, "the sweep")


def _print_cells(cells: Sequence[Cell], missing: Sequence[Cell], as_json: bool) -> None:
    from graphbench.cli.printing import new_table, print_json, print_line, print_table
    from graphbench.core.words import counted

    open_ones = {cell.number for cell in missing}
    if as_json:
        facts = [
            {"number": c.number, "run": c.name, "folder": str(c.folder), "finished": c.number not in open_ones}
            for c in cells
        ]
        print_json(facts)
        return
    table = new_table("run", "dataset", "model", "seed", "finished", right=("run", "seed"))
    for cell in cells:
        config, done = cell.config, "" if cell.number in open_ones else "yes"
        table.add_row(str(cell.number), config.dataset, config.model_name, str(config.training.seed), done)
    print_table(table)
    print_line(f"\n{counted(len(cells), 'run')}, {len(missing)} to train", "dim")


def _shown(results: Any, cells: Sequence[Cell], workers: int) -> list[CellResult]:
    from graphbench.cli.show_sweep import SweepDisplay

    ended = []
    with SweepDisplay(cells, workers) as display:
        for result in results:
            display.add(result)
            ended.append(result)
    return sorted(ended, key=lambda result: result.cell.number)


def _finish(results: Sequence[CellResult], output: Path, as_json: bool, *, baselines: bool) -> None:
    """Write the tables and pages of the records, and print the table and the runs that failed."""
    from graphbench.cli.leaderboard import warn_of_absent
    from graphbench.cli.printing import print_json, print_line
    from graphbench.cli.runs import chosen_records
    from graphbench.core.files import write_text
    from graphbench.leaderboard import build_leaderboard
    from graphbench.leaderboard.paper_tables import paper_boards, table_of_boards
    from graphbench.reports.report import build_report
    from graphbench.training.sweep import RECORDS

    tables: dict[str, str] = {}
    finished = [result for result in results if result.record is not None]
    if finished:
        datasets = list(dict.fromkeys(result.cell.config.dataset for result in finished))
        records = chosen_records(datasets, [output / RECORDS], baselines=baselines)
        if any("test" in record.scores for record in records):
            boards = paper_boards(records)
            tables = {ending: table_of_boards(boards, form) for ending, form in _TABLES.items()}
            if baselines:
                warn_of_absent(boards, [result.record for result in finished if result.record is not None])
        for ending, text in tables.items():
            write_text(output / f"table.{ending}", text)
        build_report(records, output / "report")
        build_leaderboard(records, output / "leaderboard")
    if as_json:
        print_json(
            [
                {"run": result.cell.name, "folder": str(result.cell.folder), "error": result.error or None}
                | ({} if result.record is None else {"scores": result.record.scores})
                for result in results
            ]
        )
        return
    if "md" in tables:
        echo(tables["md"])
    for result in results:
        if result.error:
            print_line(f"{result.cell.name} failed: {result.error}", "red")
    print_line(
        f"{len(finished)} of {len(results)} runs have ended; records, report, leaderboard and tables: {output}", "dim"
    )
