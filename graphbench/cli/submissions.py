"""The commands ``submit init`` and ``submit check``: a user's results, made ready for the leaderboard."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphbench.cli.options import Json, Root, Workers
from graphbench.cli.output import CommandLine

submit = CommandLine(
    no_args_is_help=True,
    help="Make results ready for the leaderboard: a folder with records or predictions, checked before it is sent.",
)


@submit.command("init")
def init_command(
    folder: Annotated[Path, typer.Argument(help="Folder of the submission; it is made if it is not there.")],
    model: Annotated[
        str, typer.Option(help="Name of the model: letters, digits, dots, dashes and underscores.", show_default=False)
    ],
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="Id or alias of a dataset, with its task (`co/rb_small:mis`); may be repeated."),
    ] = None,
    author: Annotated[list[str] | None, typer.Option(help="Name of an author; may be repeated.")] = None,
    licence: Annotated[str, typer.Option(help="Licence of the records and predictions.")] = "CC-BY-4.0",
    description: Annotated[str, typer.Option(help="Description of the model, in a sentence or two.")] = "",
) -> None:
    """Begin a submission: write `submission.yaml` with every key explained, and say where predictions go."""
    from graphbench.cli.printing import print_line
    from graphbench.leaderboard.submissions import start_submission

    path, places = start_submission(
        folder, model, dataset or [], authors=author or [], licence=licence, description=description
    )
    print_line(f"wrote {path}")
    for place in places:
        print_line(f"{folder}/{place}")
    print_line(f"records of graphbench train or evaluate: anywhere in {folder}, such as {folder}/records/")
    print_line(f"then: graphbench submit check {folder}", "dim")


@submit.command("check")
def check_command(
    folder: Annotated[Path, typer.Argument(help="Folder of the submission.")],
    records: Annotated[
        Path | None,
        typer.Option(
            help="Write a record for the predictions of every accepted dataset into this folder, for "
            "`graphbench report` and the leaderboard.",
            show_default="nothing is written",
        ),
    ] = None,
    generate: Annotated[
        bool, typer.Option("--generate", help="Generate the data that the check needs and that are not here.")
    ] = False,
    root: Root = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Check a submission: records and predictions, their data, seeds, splits and budget; recompute the scores.

    The report says for each dataset whether it is accepted, why not, and which results are missing. Nothing in the
    folder is run or unpickled, and links are not followed. The exit code is 0 if every dataset is accepted, else 1.
    """
    from graphbench.cli import show_submission
    from graphbench.leaderboard.submissions import check_submission

    report = check_submission(folder, root=root, generate=generate, workers=workers, records=records)
    show_submission.report(report, as_json)
    if not report.accepted:
        raise typer.Exit(1)
