"""Commands. Each is a thin layer over the library; heavy imports happen inside the command that needs them.

Exit codes: 0 success, 1 a check failed, 2 wrong usage or a clear error, 130 interrupted.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from graphbench import __version__
from graphbench.cli import INTERRUPTED, INTERRUPTED_CODE
from graphbench.cli.options import (
    Cluster,
    DataSeed,
    Dataset,
    Datasets,
    Folder,
    Json,
    Limit,
    Root,
    Source,
    SplitNames,
    Workers,
    choose_splits,
    files_of,
)
from graphbench.cli.tuning import tune
from graphbench.core.errors import EvaluationError, GraphBenchError


class _Commands(TyperGroup):
    """The commands; typer alone would end an interrupted one without a word."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _told_of_interrupts():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _told_of_interrupts():
            return super().invoke(ctx)


@contextmanager
def _told_of_interrupts() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        typer.secho(INTERRUPTED, err=True)
        raise typer.Exit(INTERRUPTED_CODE) from None


app = typer.Typer(
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


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what happens; show tracebacks.")] = False,
) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
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
    """List datasets: task, sizes, metric, and what is on this machine."""
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
    """Show a dataset's card: features, splits, metrics, trivial and published scores, source and deviations."""
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
        bool, typer.Option("--graphs-only", help="Leave out labels that cost solver time, where a task has any.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Generate datasets (train, val and test; `--splits all` for every split). Interrupted work continues.

    Of a dataset with several tasks this is the graphs and the labels of one: `co/rb_small:mis`, or else the first.
    """
    from graphbench.catalog.names import catalog
    from graphbench.cli.generated import generate_one, generated
    from graphbench.data.cluster import connected
    from graphbench.data.workers import require_one_place

    require_one_place(workers, None, cluster)
    rows: list[dict[str, Any]] = []
    ids = catalog().resolve(datasets)
    with nullcontext() if cluster is None else connected(cluster) as client:
        for id_ in ids:
            card = catalog().card(id_).with_data_seed(data_seed)
            card = card.graphs if graphs_only else card
            rows += generate_one(card, choose_splits(card.all_splits, splits), root, limit, workers, client)
    generated(rows, as_json)


@app.command()
def verify(
    datasets: Datasets,
    splits: SplitNames = None,
    root: Root = None,
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples", "--limit", min=1, help="Graphs per split whose labels are recomputed.", show_default="by size"
        ),
    ] = None,
    update: Annotated[
        bool,
        typer.Option("--update", help="Measure anew what stands beside the card (hashes, statistics, trivial scores)."),
    ] = False,
    data_seed: DataSeed = 0,
    source: Source = "generated",
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Rebuild a sample of a dataset and check bytes, labels, uniqueness, statistics and leakage.

    Exit code 1 when a check fails.
    """
    from graphbench.catalog.names import catalog
    from graphbench.cli import show
    from graphbench.loader import sourced_card
    from graphbench.verification import update_measured
    from graphbench.verification import verify as run_checks

    ids, files = catalog().resolve(datasets), files_of(source, folder)
    if update and data_seed:
        raise typer.BadParameter("what stands beside the card is of data seed 0; leave --data-seed or --update out")
    if update and folder is not None:
        raise typer.BadParameter("what stands beside the card is of generated data; leave --source or --update out")
    if update:
        for card in {card.id: card for card in map(catalog().card, ids)}.values():
            typer.echo(f"{card.id}: wrote {update_measured(card)}")
        return
    outcomes = []
    for id_ in ids:
        card = sourced_card(catalog().card(id_).with_data_seed(data_seed), **files)
        chosen = None if splits is None else choose_splits(card.all_splits, splits)
        outcomes.append(run_checks(id_, root=root, samples=samples, splits=chosen, data_seed=data_seed, **files))
        if not as_json:
            show.verification(outcomes[-1])
    if as_json:
        show.verifications_json(outcomes)
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(1)


@app.command()
def train(
    dataset: Annotated[
        str, typer.Argument(help="Id or alias of one dataset; or a group with hints, e.g. `clrs30`: one model for all.")
    ],
    model: Annotated[
        str | None,
        typer.Option(
            help="Name of a configuration in baselines/, or a YAML file.",
            show_default="gin; clrs: mpnn, clrs_text: transformer_small, clutrr: gat",
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Budget in optimizer steps.", show_default="the configuration's")
    ] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(help="Seed; repeat the option for several runs.", show_default="the configuration's"),
    ] = None,
    data_seed: Annotated[
        list[int] | None,
        typer.Option(
            min=0,
            help="Which draw of the dataset: 0 is the canonical one, others are drawn anew; may be repeated.",
            show_default="0",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key, e.g. `--set model.hidden=64`; may be repeated.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder of the run.", show_default="runs/<dataset>/<model>-seed<seed>")
    ] = None,
    evaluate_on: Annotated[
        str, typer.Option("--evaluate", help="Splits to score at the end; `none` for none.")
    ] = "val,test,ood",
    eval_limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Score at most N samples of each split but train and val.",
            show_default="all",
        ),
    ] = None,
    val_limit: Annotated[
        int | None, typer.Option(min=1, help="Validate on at most N samples.", show_default="all")
    ] = None,
    save_record: Annotated[
        Path | None,
        typer.Option("--records", help="Also keep the run's record in this folder, for `graphbench report`."),
    ] = None,
    device: Annotated[str, typer.Option(help="`cpu`, `cuda`, `cuda:1` or `auto`.")] = "auto",
    resume: Annotated[bool, typer.Option(help="Continue an interrupted run in the same folder.")] = True,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write a TensorBoard log beside the run.")] = False,
    root: Root = None,
    source: Source = "generated",
    folder: Folder = None,
    limit: Limit = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Train a model, score its best weights on val, test and larger graphs, and write a record of the run."""
    from graphbench.cli import show
    from graphbench.cli.runs import train_seeds

    results = train_seeds(
        dataset,
        model,
        seeds=seed,
        data_seeds=data_seed,
        steps=steps,
        overrides=set_ or [],
        output=output,
        evaluate=() if evaluate_on == "none" else tuple(part.strip() for part in evaluate_on.split(",")),
        eval_limit=eval_limit,
        val_limit=val_limit,
        records=save_record,
        device=device,
        resume=resume,
        tensorboard=tensorboard,
        root=root,
        limit=limit,
        workers=workers,
        **files_of(source, folder),
    )
    show.runs(results, as_json, save_record)


@app.command()
def evaluate(
    target: Annotated[str, typer.Argument(help="Folder of a finished run, or a dataset (then give `--predictions`).")],
    predictions: Annotated[
        Path | None,
        typer.Option(
            help="`.npy`, or `.npz` with `y_pred`: one row per item of the split, in order. Algorithms: `.npz` with an "
            "array per output. Texts, and names of a graph's class: `.jsonl` (strings, or objects with `output` "
            "or `answer`) or `.txt`, one line per sample."
        ),
    ] = None,
    splits: Annotated[str, typer.Option(help="Comma-separated splits; one split with `--predictions`.")] = "test",
    scores: Annotated[
        str, typer.Option(help="What predictions are: `probability`, `logit` or `label`.")
    ] = "probability",
    data_seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Which draw of the dataset `--predictions` are for; a run is scored on the draw it was trained on.",
            show_default="0",
        ),
    ] = None,
    root: Root = None,
    source: Source = "generated",
    folder: Folder = None,
    limit: Limit = None,
    device: Annotated[str, typer.Option(help="`cpu`, `cuda` or `auto`.")] = "auto",
    as_json: Json = False,
) -> None:
    """Score a trained run, or a file of predictions."""
    from graphbench.cli import show
    from graphbench.cli.predictions import score_predictions
    from graphbench.cli.runs import refusal_of_files, score_run

    files = files_of(source, folder)
    if predictions is None:
        if not Path(target).is_dir():
            raise EvaluationError(
                f"{target!r} is no folder of a run; to score predictions of a dataset add --predictions FILE"
            )
        if data_seed is not None:
            raise typer.BadParameter("a run is scored on the draw it was trained on; leave --data-seed out")
        if folder is not None:
            raise typer.BadParameter(refusal_of_files(Path(target)))
        names = tuple(part.strip() for part in splits.split(","))
        show.scores_of_run(target, score_run(Path(target), names, root=root, limit=limit, device=device), as_json)
    else:
        options = {"root": root, "limit": limit, "data_seed": data_seed or 0, **files}
        found = score_predictions(target, splits, predictions, scores, **options)
        show.scores(target, found, as_json)


app.command()(tune)


@app.command()
def report(
    selector: Annotated[
        list[str] | None, typer.Argument(help="Datasets to include (ids, aliases, groups, globs).", show_default="all")
    ] = None,
    records: Annotated[
        Path | None, typer.Option(help="Folder of run records.", show_default="the package's baselines/results")
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder (or one .md / .html file) to write.")] = Path("report"),
    title: Annotated[str, typer.Option(help="Heading of the report.")] = "GraphBench report",
) -> None:
    """Build the report (Markdown, and one self-contained HTML page with plots) from run records."""
    from graphbench.cli.runs import write_report

    for path in write_report(selector, records, output, title):
        typer.echo(f"wrote {path}")


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
        words = str(error)
        if isinstance(error, OSError) and not isinstance(error, GraphBenchError) and error.filename is None:
            words = f"cannot write the output: {error.strerror or error}"
            _drop_output()
        if _State.verbose:
            traceback.print_exception(error)
        else:
            typer.secho(f"error: {words}", err=True, fg=typer.colors.RED)
        sys.exit(2)


def _drop_output() -> None:
    """Send what is left of the output nowhere: the interpreter would try to write it once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
