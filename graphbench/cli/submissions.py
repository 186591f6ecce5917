"""The commands of ``submit``: a user's results, made ready for the leaderboard, sealed and verified."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphbench.cli.options import Json, Root, Workers
from graphbench.cli.output import CommandLine

_REHEARSED = 16  # samples

submit = CommandLine(
    no_args_is_help=True,
    help="Make results ready for the leaderboard: a folder with records, predictions or weights, checked before it is "
    "sent; sealed weights are verified on a draw that nobody could know.",
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


@submit.command("seal")
def seal_command(
    folder: Annotated[Path, typer.Argument(help="Folder of the submission, with weights.")],
    rehearsal: Annotated[
        bool,
        typer.Option(
            "--rehearse/--no-rehearse",
            help=f"First score {_REHEARSED} samples of the known draw, as a verification would.",
        ),
    ] = True,
    root: Root = None,
    workers: Workers = None,
) -> None:
    """Commit to the weights, the configuration and the code of an entry: write `seal.json`, and print its commitment.

    Weights lie in `weights/<domain>/<dataset>[-<task>]/seed<number>.safetensors`: the files of `graphbench weights
    export`, or your own tensors with `code/model.py`, which defines `load(weights)` and returns a function of a PyG
    batch. Publish the commitment. The test draw follows from it and from a public text that comes later, so that
    nobody can know the draw now.
    """
    from graphbench.cli.printing import print_line
    from graphbench.core.words import counted
    from graphbench.leaderboard.submissions import rehearse, seal

    if rehearsal and not (folder / "seal.json").exists():
        for dataset, seed, score in rehearse(folder, samples=_REHEARSED, root=root, workers=workers):
            where = f"on the first {_REHEARSED} samples of the known draw"
            print_line(f"rehearsed {dataset}, seed {seed}: {score:.4f} {where}", "dim")
    made, path = seal(folder)
    print_line(f"wrote {path}")
    parts = [counted(len(made.weights), "file") + " of weights"]
    parts += [counted(len(made.code), "file") + " of code"] if made.code else []
    print_line(f"sealed {' and '.join(parts)} of {made.model} on {', '.join(made.data)}")
    print_line(f"commitment {made.commitment}", "bold")
    then = f"graphbench submit verify {folder} --commitment {made.commitment} --beacon TEXT"
    print_line(f"publish the commitment; once a public text exists that nobody could know now: {then}", "dim")


@submit.command("verify")
def verify_command(
    folder: Annotated[Path, typer.Argument(help="The sealed folder.")],
    beacon: Annotated[
        str,
        typer.Option(
            help="A public text that did not exist when the entry was sealed: the value of a random beacon, the hash "
            "of a block, thrown dice.",
            show_default=False,
        ),
    ],
    commitment: Annotated[
        str | None,
        typer.Option(
            metavar="HEX",
            help="The commitment that was published before the text existed; a folder that was sealed anew is refused.",
            show_default="the folder's, unchecked",
        ),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(help="Folder of the records of verified results.", show_default="nothing is written"),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Most samples of the draw.", show_default="the whole test split")
    ] = None,
    patience: Annotated[
        float, typer.Option(min=0, metavar="MINUTES", help="Most processor time that a draw of a dataset may cost.")
    ] = 60.0,
    timeout: Annotated[
        float, typer.Option(min=0, metavar="MINUTES", help="Most time of one run of an author's code.")
    ] = 60.0,
    root: Root = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Score sealed weights on the draw that follows from their commitment and a public text.

    Weights of models of this package are rebuilt without any foreign code. An author's code runs in a closed process
    (Bubblewrap) without network, files or labels: twice, and once with shuffled weights, which shows whether it is a
    trained model or an algorithm. The exit code is 0 if every result is verified, else 1.
    """
    from graphbench.cli import show_submission
    from graphbench.cli.printing import print_line
    from graphbench.core.processes.isolated import IsolationLimits
    from graphbench.leaderboard.submissions import verify_sealed

    results = verify_sealed(
        folder,
        beacon,
        commitment=commitment,
        root=root,
        limit=limit,
        workers=workers,
        records=records,
        patience=60 * patience,
        limits=IsolationLimits(seconds=60 * timeout),
    )
    show_submission.sealed(results, as_json)
    if commitment is None and not as_json:
        print_line(
            "no --commitment was given, so nothing says that the entry was sealed before the text existed", "dim"
        )
    if not all(result.outcome in ("verified", "algorithm") for result in results):
        raise typer.Exit(1)
