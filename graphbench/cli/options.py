"""Options that several commands share, and the meaning of their values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

Datasets = Annotated[
    list[str],
    typer.Argument(
        help="Ids, aliases, groups or globs, e.g. `algoreas/mst_easy`, `mst_easy`, `'algoreas/*_easy'`. Name one of "
        "several tasks as `co/rb_small:mis` or `'co/*:mis'`."
    ),
]
Dataset = Annotated[
    str,
    typer.Argument(
        help="Id or alias of one dataset, e.g. `algoreas/mst_easy` or `mst_easy`; with a task `co/rb_small:mis`."
    ),
]
Root = Annotated[
    Path | None,
    typer.Option(help="Folder that holds all datasets.", show_default="$GRAPHBENCH_ROOT, else the user's cache folder"),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Use only the first N samples of each split (social networks: a network of N users).",
        show_default="all",
    ),
]
DataSeed = Annotated[
    int,
    typer.Option(
        min=0, help="Which draw of the dataset: 0 is the canonical one; every other number gives other random samples."
    ),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Number of processes that generate data.", show_default="all cores")
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Generate on a running Dask cluster: the address of its scheduler (`tcp://host:8786`) or its scheduler "
        "file (`.json`). Its workers must have access to the root folder.",
        show_default="this machine's processes",
    ),
]
Records = Annotated[
    list[Path] | None,
    typer.Option(help="Folder of run records; may be repeated.", show_default="the package's baselines/results"),
]
Baselines = Annotated[
    bool, typer.Option("--baselines", help="Add the package's records to the records of `--records`.")
]
SamplesLimit = Annotated[
    int | None, typer.Option(min=1, help="Use only the first N samples of each split.", show_default="all")
]
ValLimit = Annotated[int | None, typer.Option(min=1, help="Validate on at most N samples.", show_default="all")]
Device = Annotated[str, typer.Option(help="`auto`, `cpu`, `cuda` or `cuda:<number>`.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def limits_by_split(option: str, text: str | None) -> int | dict[str, int] | None:
    """Return a number of samples, or split -> number of samples, from ``100`` or ``n384=100,n512=50``.

    Raises:
        typer.BadParameter: If a part of the text has another form.
    """
    if text is None:
        return None
    if text.strip().isdigit():
        return int(text)
    limits: dict[str, int] = {}
    for part in text.split(","):
        split, _, number = (piece.strip() for piece in part.partition("="))
        if not split or not number.isdigit():
            raise typer.BadParameter(f"{option} {text!r}: write a number, or SPLIT=NUMBER parts such as n384=100")
        limits[split] = int(number)
    return limits


def overrides_of(words: Sequence[str]) -> dict[str, Any]:
    """Return the changes of a configuration, from ``KEY=VALUE`` words."""
    from graphbench.training.overrides import pair_of

    return dict(pair_of(word) for word in words)


SplitNames = Annotated[
    str | None,
    typer.Option(
        "--splits",
        help="Comma-separated splits; `ood` stands for all out-of-distribution splits, `additional` for splits "
        "that were added later, `all` for every split.",
    ),
]
Source = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Read samples from files: `official` are the published ones, where the domain reads any; others are "
        "sources of the domain, such as `files`, or `<domain>.<name>`.",
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(help="Folder of the source's files.", show_default="the downloaded files, if there are any"),
]
Download = Annotated[bool, typer.Option("--download", help="Download the files of the source, where it registers any.")]

DEFAULT_MODEL = "the first one that `graphbench info` names"
"""The model of commands where none is named, as help texts say it."""


def files_of(source: str, folder: Path | None) -> dict[str, Any]:
    """Return ``source`` and ``folder`` as the loader takes them."""
    return {"source": source, "folder": folder}
