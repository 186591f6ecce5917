"""The command ``graphbench tune``: its options and its output."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphbench.cli.options import DEFAULT_MODEL, Json, Root
from graphbench.cli.output import echo
from graphbench.core.afterwards import never_fatal
from graphbench.core.errors import ConfigError
from graphbench.core.untrusted import shown

if TYPE_CHECKING:
    from graphbench.tuning.history import History

_INDENT = 18  # columns before the values of the last lines


def tune(
    context: typer.Context,
    dataset: Annotated[
        str,
        typer.Argument(
            help="Id or alias of one dataset; or the folder of a run, whose report is then written again "
            "without a search."
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            help="Name of a configuration in baselines/, or a YAML file.",
            show_default=DEFAULT_MODEL,
        ),
    ] = None,
    space: Annotated[
        str | None,
        typer.Option(help="Search space: a name in hpo/, or a YAML file.", show_default="hpo/<domain>/<model>.yaml"),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Total number of trials.", show_default="the space's")
    ] = None,
    min_budget: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Smallest budget of a trial: optimizer steps, or training samples of models without steps.",
            show_default="the space's",
        ),
    ] = None,
    max_budget: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Largest budget of a trial: optimizer steps, or training samples of models without steps.",
            show_default="the space's",
        ),
    ] = None,
    eta: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Ratio of successive budgets; one of ETA configurations is continued.",
            show_default="the space's",
        ),
    ] = None,
    walltime: Annotated[
        float | None,
        typer.Option(
            help="Seconds the whole run may take, over all restarts, generation of data included.",
            show_default="no limit",
        ),
    ] = None,
    trial_limit: Annotated[
        float | None, typer.Option(help="Seconds one trial may take.", show_default="no limit")
    ] = None,
    memory_limit: Annotated[
        float | None, typer.Option(help="GiB of memory one worker may use.", show_default="no limit")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes that train at the same time.")] = 1,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Address of a Dask scheduler, e.g. `tcp://host:8786`; its workers must have access to the root and "
            "output folders."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search and of every trial.")] = 0,
    method: Annotated[
        str,
        typer.Option(
            help="`smac`, `hyperband` (without a model of the costs) or `random` (at the largest budget only)."
        ),
    ] = "smac",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override a key in all trials, e.g. `--set model.hidden=64`; may be repeated."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Train and validate on the first N samples of the splits.", show_default="all"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder of the run.", show_default="runs/tune/<dataset>/<model>-seed<seed>")
    ] = None,
    device: Annotated[str, typer.Option(help="`cpu`, `cuda`, `cuda:1` or `auto`.")] = "auto",
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run the failed trials of this run once more.")
    ] = False,
    report: Annotated[bool, typer.Option(help="Write a report at the end of the run.")] = True,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Search for the best configuration of a model on a dataset's validation split; the same command continues a run.

    Configurations with good scores at a small budget are promoted to larger ones; models that are trained in steps
    continue from their checkpoints. The test split is never opened.
    """
    if _is_run(dataset):
        _refuse_options(context, dataset)
        _write_report_again(Path(dataset), as_json)
        return
    given = {
        "space": space,
        "trials": trials,
        "min_budget": min_budget,
        "max_budget": max_budget,
        "eta": eta,
        "walltime_limit": walltime,
        "trial_limit": trial_limit,
        "memory_limit": memory_limit,
        "cluster": cluster,
        "output": output,
        "retry_failed": retry_failed or None,
    }
    folder, history, page = search(
        dataset,
        model,
        report=report,
        workers=workers,
        seed=seed,
        method=method,
        overrides=set_ or [],
        limit=limit,
        device=device,
        root=root,
        **{name: value for name, value in given.items() if value is not None},
    )
    _print_summary(summary(history, folder, page, root), history, as_json)


def search(dataset: str, model: str | None, *, report: bool, **settings: Any) -> tuple[Path, History, Path | None]:
    """Run or continue a search with a live display, and return its folder, its history and the page of its report.

    Args:
        dataset: Id or alias of one dataset.
        model: Name or path of a configuration; None for the dataset's default.
        report: Write the report; the incumbent's file is written in any case.
        settings: As for :meth:`graphbench.tuning.optimizer.Optimizer.for_dataset`.
    """
    from graphbench.tuning.history import read_history
    from graphbench.tuning.live import LiveDisplay
    from graphbench.tuning.optimizer import REPORT, Optimizer
    from graphbench.tuning.report.report import write_incumbent

    optimizer = Optimizer.for_dataset(dataset, model=model, **settings)
    with LiveDisplay() as display:
        best = optimizer.optimize([display], report=report, refit=False)
    history = read_history(best.path)
    if best.report is None:
        again = shlex.join(["graphbench", "tune", str(best.path)])
        with never_fatal("the file of the best configuration", f"the result is in {best.path}; write it with: {again}"):
            write_incumbent(history, best.path / REPORT)
    return best.path, history, best.report


def summary(history: History, folder: Path, page: Path | None, root: Path | None) -> dict[str, Any]:
    """Return the result of a run: scores, counts, the files, and the command that trains the incumbent."""
    from graphbench.tuning.history import RESULT
    from graphbench.tuning.optimizer import REPORT
    from graphbench.tuning.report.report import FILE
    from graphbench.tuning.report.sentences import warnings_of

    here = Path.cwd()
    folder = folder.relative_to(here) if folder.is_relative_to(here) else folder
    result, file = history.result, folder / REPORT / FILE
    return {
        "metric": history.measure.metric,
        "incumbent": _scored(history, result["incumbent"]),
        "default": _scored(history, result["default"]),
        "largest_budget": result.get("largest_budget"),
        "warnings": warnings_of(history),
        "trials": len(history.trials),
        "failed": len(history.failures),
        "steps": result["steps"],
        "result": str(folder / RESULT),
        "report": None if page is None else str(folder / REPORT / page.name),
        "configuration": str(file),
        "command": _command(history, file, root),
    }


def _scored(history: History, trial: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if trial is None:
        return None
    return {"score": history.measure.score(trial["cost"]), **{key: trial[key] for key in ("cost", "budget", "config")}}


def _command(history: History, file: Path, root: Path | None) -> str:
    """Return the command that trains the incumbent with the budget it was scored at, as the search did."""
    identity = history.identity
    words = ["graphbench", "train", identity["dataset"], "--model", str(file), "--seed", str(identity["seed"])]
    words += ["--limit", str(identity["limit"])] if identity["limit"] is not None else []
    words += ["--root", str(root)] if root is not None else []
    return shlex.join(words)


def _print_summary(record: Mapping[str, Any], history: History, as_json: bool) -> None:
    if as_json:
        echo(json.dumps(record, indent=2))
        return
    for name, value in _lines(record, history):
        echo(shown(f"{name:<{_INDENT}}{value}"))


def _lines(record: Mapping[str, Any], history: History) -> list[tuple[str, str]]:
    """Return the names and values of the lines that are printed at the end of a run."""
    from graphbench.tuning.parameters import value_text

    fidelity = history.fidelity
    best, steps, about = record["incumbent"], record["steps"], record["largest_budget"] or {}
    of_all = f" of {about['budget']:,}" if about.get("reached", 0) < about.get("budget", 0) else ""
    at_best = f"at {best['budget']:,}{of_all} {fidelity.unit}s" if of_all else f"at {fidelity.text(best['budget'])}"
    measure = history.measure
    failed = f", {record['failed']} failed" if record["failed"] else ""
    saved = f", {steps['saved_share']:.0%} saved by continuing" if steps["saved_share"] else ""
    config = [(f"  {name}", value_text(value)) for name, value in best["config"].items()]
    width = max([_INDENT - 2, *(len(name) for name, _ in config)])
    return [
        (measure.head, f"{measure.text(best['cost'], named=False)} {at_best}"),
        ("default", _default_text(record, history)),
        ("trials", f"{record['trials']}{failed}"),
        (f"{fidelity.full_unit}s", f"{steps['done']:,}{saved}"),
        ("incumbent", record["configuration"]),
        *[("", f"{name:<{width}}  {value}") for name, value in config],
        ("result", record["result"]),
        *([("report", record["report"])] if record["report"] else []),
        ("train it", record["command"]),
    ]


def _default_text(record: Mapping[str, Any], history: History) -> str:
    """Return the score of the default configuration and its failure, or that it was not measured."""
    default, lost = record["default"], history.default_failures
    failed = f"failed at {history.fidelity.text(lost[-1].budget)}: {' '.join(lost[-1].reason.split())}" if lost else ""
    if default is None:
        return failed or "not measured"
    score = f"{history.measure.text(default['cost'], named=False)} at {history.fidelity.text(default['budget'])}"
    return f"{score}; {failed}" if failed else score


def _refuse_options(context: typer.Context, folder: str) -> None:
    """Refuse options of a search if a run's report is only written again.

    Raises:
        ConfigError: If one is given; the message names it.
    """
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in ("dataset", "as_json")
        and getattr(context.get_parameter_source(str(parameter.name)), "name", "") == "COMMANDLINE"
    ]
    if given:
        raise ConfigError(
            f"{folder} is the folder of a run, whose report is written again without a search: leave out "
            f"{', '.join(given)}, or name the dataset and --output {folder} to continue the search"
        )


def _is_run(dataset: str) -> bool:
    """Return whether an argument is the folder of a run, and not a dataset."""
    return (Path(dataset) / "result.json").is_file()


def _write_report_again(folder: Path, as_json: bool) -> None:
    from graphbench.tuning.history import read_history
    from graphbench.tuning.optimizer import REPORT
    from graphbench.tuning.report.report import write_report

    page = write_report(read_history(folder).result, folder / REPORT)
    echo(json.dumps({"report": str(page)}) if as_json else f"wrote {page}")
