"""The commands ``train``, ``evaluate``, ``predict`` and ``report``: their options, and the functions that they call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphbench.cli.options import (
    DEFAULT_MODEL,
    Baselines,
    Folder,
    Json,
    Limit,
    Records,
    Root,
    Source,
    ValLimit,
    Workers,
    files_of,
    limits_by_split,
)
from graphbench.cli.output import echo
from graphbench.core.errors import EvaluationError


def train(
    datasets: Annotated[
        list[str],
        typer.Argument(help="Id or alias of a dataset; several, a group or a glob for one model on all of them."),
    ],
    model: Annotated[
        str | None,
        typer.Option(help="Name of a configuration in baselines/, or a YAML file.", show_default=DEFAULT_MODEL),
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
            help="Which draw of the dataset: 0 is the canonical one; every other number gives other random samples. "
            "May be repeated.",
            show_default="0",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Override a key, e.g. `--set model.hidden=64`; may be repeated.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the run; of several seeds, each has a subfolder `seed<n>`.",
            show_default="runs/<dataset>/<model>-<settings>-seed<seed>",
        ),
    ] = None,
    evaluate_on: Annotated[
        str,
        typer.Option(
            "--evaluate", help="Splits to score at the end, also `ood`, `additional` or `all`; `none` for none."
        ),
    ] = "val,test,ood",
    eval_limit: Annotated[
        str | None,
        typer.Option(
            metavar="N | SPLIT=N,...",
            help="Score at most N samples of each split other than train, val and the one validated on, or of the "
            "splits that are named: `n384=100,n512=100`.",
            show_default="all",
        ),
    ] = None,
    val_limit: ValLimit = None,
    save_record: Annotated[
        Path | None,
        typer.Option(
            "--records",
            help="Also keep the run's record in this folder, for reports and leaderboards.",
        ),
    ] = None,
    init_from: Annotated[
        str | None,
        typer.Option(
            metavar="RUN | DATASET/MODEL",
            help="Start from the weights of another run: its folder, or stored weights as `graphbench weights list` "
            "shows them. The processor is taken, and the encoders and decoders of features that agree.",
            show_default="random weights",
        ),
    ] = None,
    freeze: Annotated[
        list[str] | None,
        typer.Option(help="With --init-from: do not train these parts: `processor`, `encoders`, `decoders`."),
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
    """Train a model, score its best weights on val, test and larger graphs, and write a record of the run.

    Several datasets are trained together: one processor for all, and a record for each.
    """
    from graphbench.cli import show_scores
    from graphbench.cli.runs import train_seeds

    results = train_seeds(
        datasets[0] if len(datasets) == 1 else datasets,
        model,
        seeds=seed,
        data_seeds=data_seed,
        steps=steps,
        overrides=set_ or [],
        output=output,
        evaluate=evaluate_on,
        eval_limit=limits_by_split("--eval-limit", eval_limit),
        val_limit=val_limit,
        records=save_record,
        init_from=init_from,
        freeze=tuple(freeze or ()),
        device=device,
        resume=resume,
        tensorboard=tensorboard,
        root=root,
        limit=limit,
        workers=workers,
        **files_of(source, folder),
    )
    show_scores.runs(results, as_json, save_record)


def evaluate(
    target: Annotated[
        str,
        typer.Argument(
            help="Folder of a finished run; a dataset (then give `--predictions`); a record's file (with `--again`)."
        ),
    ],
    predictions: Annotated[
        Path | None,
        typer.Option(
            help="A file of predictions for one split, or a folder with one file per split, named after it "
            "(`test.npz`). `.npy`, or `.npz` with `y_pred` or an array per output: one row per item of the split, in "
            "order. Texts, and names of a graph's class: `.jsonl` (strings, or objects with `output` or `answer`) or "
            "`.txt`, one line per sample. `graphbench predict` writes such files."
        ),
    ] = None,
    splits: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated splits.", show_default="test; of a folder of predictions all that it has files of"
        ),
    ] = None,
    scores: Annotated[
        str | None,
        typer.Option(
            help="Kind of floating-point predictions: `probability`, `logit` or `label`.",
            show_default="probability; logit for tasks of the kinds solve and select",
        ),
    ] = None,
    model_name: Annotated[
        str | None,
        typer.Option("--model-name", help="Name of your model, for the record of its scores; needs `--records`."),
    ] = None,
    save_record: Annotated[
        Path | None,
        typer.Option(
            "--records",
            help="Write a record of the scores into this folder, for reports and leaderboards; needs `--model-name`.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of your model, for the record.")] = 0,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="Optimizer steps of your model, for the record.", show_default="not stated"),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(min=1, help="Samples per step of your model, for the record.", show_default="not stated"),
    ] = None,
    parameters: Annotated[
        int | None,
        typer.Option(
            min=0, help="Number of trained parameters of your model, for the record.", show_default="not stated"
        ),
    ] = None,
    cost: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The measured cost of the training, for the record: a file that `cost.save(FILE)` wrote after `with "
            "graphbench.measure() as cost:`. The five options below state the cost instead.",
            show_default="not stated",
        ),
    ] = None,
    train_seconds: Annotated[
        float | None,
        typer.Option(min=0, help="Training time in seconds, for the record.", show_default="not stated"),
    ] = None,
    cpu_seconds: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Processor time of the training in seconds, of all cores together, for the record: the budget class "
            "`minutes` needs it.",
            show_default="not stated",
        ),
    ] = None,
    memory: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="MB", help="Peak memory of the training, for the record.", show_default="not stated"
        ),
    ] = None,
    cpu: Annotated[
        str | None, typer.Option(help="Processor that trained, for the record.", show_default="not stated")
    ] = None,
    gpu: Annotated[str | None, typer.Option(help="GPU that trained, for the record.", show_default="none")] = None,
    untrained: Annotated[
        bool, typer.Option("--untrained", help="Nothing was trained, as for a rule or a solver, for the record.")
    ] = False,
    again: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC",
            help="Add the scores of a further metric to a record, from kept predictions or weights; the target is a "
            "run, or the file of a record. May be repeated.",
        ),
    ] = None,
    notes: Annotated[str, typer.Option(help="A note for readers of the record.")] = "",
    protocol: Annotated[
        str | None,
        typer.Option(
            help="Protocol that your model was trained by, if a benchmark has several, for the record.",
            show_default="the protocol of the split train",
        ),
    ] = None,
    deterministic: Annotated[
        bool | None,
        typer.Option(
            "--deterministic/--not-deterministic",
            help="Whether neither seed nor chance has any influence on the scores, as of a rule or a solver, for the "
            "record.",
            show_default="not stated",
        ),
    ] = None,
    data_seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Which draw of the dataset the predictions are for; a run is scored on the draw it was trained on.",
            show_default="0",
        ),
    ] = None,
    root: Root = None,
    source: Source = "generated",
    folder: Folder = None,
    limit: Limit = None,
    device: Annotated[str, typer.Option(help="`cpu`, `cuda`, `cuda:1` or `auto`.")] = "auto",
    as_json: Json = False,
) -> None:
    """Score a trained run, or files of predictions.

    With `--model-name` and `--records` the scores of your model are kept in a record for reports and leaderboards.
    Small files of predictions are kept beside it, so that `--again METRIC` adds a metric without training.
    """
    from graphbench.cli import show_scores
    from graphbench.cli.predictions import add_metrics, score_predictions, stated_cost
    from graphbench.records.stated import Stated
    from graphbench.training.evaluate import scores_of_run

    files = files_of(source, folder)
    if again:
        if model_name is not None or folder is not None:
            raise typer.BadParameter("--again scores a recorded result; leave --model-name and --folder out")
        written = add_metrics(
            Path(target), again, splits, records=save_record, root=root, scores=scores, predictions=predictions
        )
        show_scores.again(written, again, as_json)
        return
    if predictions is None:
        if not Path(target).is_dir():
            raise EvaluationError(
                f"{target!r} is no folder of a run; to score predictions of a dataset add --predictions FILE"
            )
        if data_seed is not None:
            raise typer.BadParameter("a run is scored on the draw it was trained on; leave --data-seed out")
        if save_record is not None or model_name is not None:
            raise typer.BadParameter("a run has a record already; --records and --model-name are for --predictions")
        if folder is not None:
            raise typer.BadParameter("a run is scored on the data it was trained on; leave --source and --folder out")
        by_dataset = scores_of_run(Path(target), splits or "test", root=root, limit=limit, device=device)
        show_scores.scores_of_run(target, by_dataset, as_json)
        return
    if (save_record is None) != (model_name is None):
        raise typer.BadParameter("--records and --model-name go together: a record needs a folder and a name")
    stated = None
    if cost is not None and model_name is None:
        raise typer.BadParameter("--cost is for a record; add --records and --model-name")
    if model_name is not None:
        stated = Stated(
            model_name,
            seed,
            steps,
            batch_size,
            parameters,
            notes,
            protocol=protocol,
            deterministic=deterministic,
            cost=stated_cost(cost, train_seconds, cpu_seconds, memory, cpu, gpu),
            untrained=untrained,
        )
    options = {"root": root, "limit": limit, "data_seed": data_seed or 0, **files}
    split_scores, path = score_predictions(
        target, splits, predictions, scores, stated=stated, records=save_record, **options
    )
    show_scores.scores(target, split_scores, as_json)
    if path is not None and not as_json:
        show_scores.written(path)


def predict(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    splits: Annotated[str, typer.Option("--splits", "--split", help="Comma-separated splits.")] = "test",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of the files, one per split.", show_default="<run>/predictions"),
    ] = None,
    root: Root = None,
    limit: Limit = None,
    device: Annotated[str, typer.Option(help="`cpu`, `cuda`, `cuda:1` or `auto`.")] = "auto",
    as_json: Json = False,
) -> None:
    """Write the predictions of a trained run to files, which `graphbench evaluate --predictions` reads."""
    from graphbench.cli.printing import print_json, print_line
    from graphbench.training.evaluate import write_run_predictions

    place = run / "predictions" if output is None else output
    paths = write_run_predictions(run, place, splits, root=root, limit=limit, device=device)
    if as_json:
        print_json([str(path) for path in paths])
        return
    for path in paths:
        print_line(f"wrote {path}")


def report(
    selector: Annotated[
        list[str] | None, typer.Argument(help="Datasets to include (ids, aliases, groups, globs).", show_default="all")
    ] = None,
    records: Records = None,
    baselines: Baselines = False,
    output: Annotated[Path, typer.Option(help="Folder to write to, or a single .md or .html file.")] = Path("report"),
    title: Annotated[str, typer.Option(help="Heading of the report.")] = "graphbench report",
) -> None:
    """Build a report from run records: Markdown, and one self-contained HTML page with plots.

    With `--baselines` and without datasets, the package's records of the datasets of your records are added.
    """
    from graphbench.cli.runs import chosen_records
    from graphbench.reports.report import build_report

    if baselines and records and not selector:
        selector = sorted({record.dataset for record in chosen_records(None, records, baselines=False)})
    for path in build_report(chosen_records(selector, records, baselines=baselines), output, title=title):
        echo(f"wrote {path}")
