"""Commands. Each is a thin layer over the library; heavy imports happen inside the command that needs them.

Exit codes: 0 success, 1 a check failed or an unexpected error, 2 wrong usage or a clear error, 130 interrupted.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from graphbench import __version__
from graphbench.cli import INTERRUPTED, INTERRUPTED_CODE
from graphbench.cli.export import export
from graphbench.cli.imports import import_command
from graphbench.cli.labels import labels
from graphbench.cli.leaderboard import leaderboard, results
from graphbench.cli.options import (
    Cluster,
    DataSeed,
    Dataset,
    Datasets,
    Download,
    Folder,
    Json,
    Limit,
    Root,
    Source,
    SplitNames,
    Workers,
    files_of,
)
from graphbench.cli.output import CommandLine, echo
from graphbench.cli.portfolio import portfolio
from graphbench.cli.reproduce import reproduce
from graphbench.cli.submissions import submit
from graphbench.cli.sweep import sweep
from graphbench.cli.training import evaluate, predict, report, train
from graphbench.cli.transfer import transfer
from graphbench.cli.tuning import tune
from graphbench.cli.weights import weights
from graphbench.core.errors import GraphBenchError
from graphbench.core.foreign import described, text_of
from graphbench.core.plugins import place_of
from graphbench.core.untrusted import shown

TRACEBACK = "GRAPHBENCH_TRACEBACK"


class _Commands(TyperGroup):
    """The commands; typer alone would end an interrupted one without a word."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _interrupts_noted():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _interrupts_noted():
            return super().invoke(ctx)


@contextmanager
def _interrupts_noted() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        if type(error) is not KeyboardInterrupt:  # an error of a plug-in that is derived from it: Ctrl-C is the class
            _print_error(error, _described(error))
            raise typer.Exit(1) from None
        typer.secho(INTERRUPTED, err=True)
        raise typer.Exit(INTERRUPTED_CODE) from None


app = CommandLine(
    name="graphbench",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Graph learning benchmarks, regenerated on your machine from readable cards.",
    epilog="First steps: `graphbench list`, `graphbench info mst_easy`, `graphbench train mst_easy --model gin_small`",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"graphbench {__version__}")
        raise typer.Exit


class _LineFormatter(logging.Formatter):
    """Lines of the log; a terminal obeys no name or error in them."""

    def format(self, record: logging.LogRecord) -> str:
        return shown(super().format(record), lines=True)


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what happens; show tracebacks.")] = False,
) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_LineFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])
    for name in ("graphbench.core.progress", "graphbench.tuning.live"):  # progress of long work is always logged
        logging.getLogger(name).setLevel(logging.INFO)
    _State.verbose = verbose


class _State:
    verbose = False


@app.command("list")
def list_command(
    selector: Annotated[
        list[str] | None, typer.Argument(help="Ids, aliases, groups or globs.", show_default="all")
    ] = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """List datasets: task, sizes, metric, and the files on this machine."""
    from graphbench.cli import show

    show.datasets(selector, root, as_json)


@app.command()
def info(
    dataset: Dataset,
    root: Root = None,
    data_seed: DataSeed = 0,
    source: Source = "generated",
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Show a dataset's card: features, splits, metrics, models, trivial and published scores, source and deviations."""
    from graphbench.cli import show

    show.card(dataset, root, as_json, data_seed, **files_of(source, folder))


@app.command()
def generate(
    datasets: Datasets,
    splits: SplitNames = None,
    root: Root = None,
    limit: Limit = None,
    workers: Workers = None,
    cluster: Cluster = None,
    data_seed: DataSeed = 0,
    graphs_only: Annotated[
        bool, typer.Option("--graphs-only", help="Leave out labels that need solver time, where a task has any.")
    ] = False,
    source: Source = "generated",
    folder: Folder = None,
    download: Download = False,
    as_json: Json = False,
) -> None:
    """Generate datasets (train, val and test; `--splits all` for every split). Interrupted work continues.

    Of a dataset with several tasks, the graphs and the labels of one task are generated: the named one, as in
    `co/rb_small:mis`, or else the first.
    """
    from graphbench.catalog.names import catalog
    from graphbench.cli.generated import generate_one, generated
    from graphbench.core.processes.cluster import connected
    from graphbench.data.build.workers import require_one_place
    from graphbench.data.components.source_choice import sourced_card

    require_one_place(workers, None, cluster)
    rows: list[dict[str, Any]] = []
    ids = catalog().resolve(datasets)
    with nullcontext() if cluster is None else connected(cluster) as client:
        for id_ in ids:
            card = catalog().card(id_).with_data_seed(data_seed)
            card = sourced_card(card, **files_of(source, folder), download=download, root=root)
            card = card.graphs if graphs_only else card
            rows += generate_one(card, card.select_splits(splits or "train,val,test"), root, limit, workers, client)
    generated(rows, as_json)


@app.command()
def verify(
    datasets: Datasets,
    splits: SplitNames = None,
    root: Root = None,
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples",
            "--limit",
            min=1,
            help="Graphs per split whose labels are recomputed; with --update, the first graphs of each split on which "
            "trivial predictors and solvers are scored too.",
            show_default="by size",
        ),
    ] = None,
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            help="Measure the hashes, statistics and trivial scores of the card again; with --splits, of these splits, "
            "and of a dataset with its task, such as `co/rb_small:mis`, of this task.",
        ),
    ] = False,
    data_seed: DataSeed = 0,
    source: Source = "generated",
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Rebuild a sample of a dataset and check bytes, labels, uniqueness, statistics and leakage.

    The exit code is 1 if a check fails.
    """
    from graphbench.catalog.names import catalog
    from graphbench.cli import show
    from graphbench.data.components.source_choice import sourced_card
    from graphbench.verification import update_measured
    from graphbench.verification import verify as run_checks

    ids, files = catalog().resolve(datasets), files_of(source, folder)
    if update and data_seed:
        raise typer.BadParameter("facts are measured on data seed 0; leave --data-seed or --update out")
    if update and source != "generated":
        raise typer.BadParameter("facts are measured on generated data; leave --source or --update out")
    if update:
        tasks: dict[str, list[str | None]] = {}
        for card, id_ in zip(map(catalog().card, ids), ids, strict=True):
            tasks.setdefault(card.id, []).append(card.task_name if ":" in id_ else None)
        for card in map(catalog().card, tasks):
            named = [task for task in tasks[card.id] if task is not None]
            parts = {
                "splits": None if splits is None else card.select_splits(splits),
                "tasks": named if len(named) == len(tasks[card.id]) else None,  # an id without a task has all of them
            }
            path = update_measured(card, None, root, [] if samples is None else [samples], **parts)
            echo(f"{card.id}: wrote {path}")
        return
    outcomes = []
    for id_ in ids:
        card = sourced_card(catalog().card(id_).with_data_seed(data_seed), **files, root=root)
        chosen = None if splits is None else tuple(card.select_splits(splits))
        outcomes.append(run_checks(id_, root=root, samples=samples, splits=chosen, data_seed=data_seed, **files))
        if not as_json:
            show.verification(outcomes[-1])
    if as_json:
        show.verifications_json(outcomes)
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(1)


for command in (
    train,
    sweep,
    transfer,
    evaluate,
    predict,
    tune,
    report,
    results,
    reproduce,
    leaderboard,
    portfolio,
    export,
):
    app.command()(command)
app.command("import")(import_command)
app.add_typer(labels, name="labels")
app.add_typer(submit, name="submit")
app.add_typer(weights, name="weights")


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a character the terminal cannot show is no reason to stop
    try:
        try:
            app(arguments, standalone_mode=True)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # whoever reads the output has had enough, as with `| head`
        _drop_output()
        sys.exit(1)
    except (GraphBenchError, OSError) as error:
        words = text_of(error)
        plain = isinstance(error, OSError) and not isinstance(error, GraphBenchError) and error.filename is None
        if isinstance(error, OSError) and plain and place_of(error) is None:
            words = f"cannot write the output: {error.strerror or error}"
            _drop_output()
        _print_error(error, words)
        sys.exit(2)
    except KeyboardInterrupt:
        raise
    except SystemExit as end:
        if place_of(end) is None:  # the end of a command, not of the code of a plug-in
            raise
        _print_error(end, _described(end))
        sys.exit(1)
    except BaseException as error:
        _print_error(error, _described(error))
        sys.exit(1)


def _print_error(error: BaseException, words: str) -> None:
    """Print the traceback of an error if it is asked for, otherwise its words."""
    if _State.verbose or os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    else:
        typer.secho(f"error: {shown(words, lines=True)}", err=True, fg=typer.colors.RED)


def _described(error: BaseException) -> str:
    """Return an unexpected error and the line of code that raised it, in one line."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this; give fewer samples with --limit, or smaller files"
    place = place_of(error)
    if place is None:
        frame = place_of(error, built_in=True)
        place = f"{frame}; this is a fault of graphbench, please report it" if frame else "an unknown place"
    return f"{' '.join(described(error).split())}; raised in {place}; set {TRACEBACK}=1 for the full traceback"


def _drop_output() -> None:
    """Discard the rest of the output: the interpreter would try to write it once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
