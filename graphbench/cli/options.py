"""Options that several commands share, and what their values stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

Datasets = Annotated[
    list[str],
    typer.Argument(
        help="Ids, aliases, groups or globs, e.g. `algoreas/mst_easy`, `mst_easy`, `'algoreas/*_easy'`; a task of a "
        "dataset that has several as `co/rb_small:mis`, `'co/*:mis'`."
    ),
]
Dataset = Annotated[
    str,
    typer.Argument(
        help="Id or alias of one dataset, e.g. `algoreas/mst_easy`, `mst_easy` or, a task, `co/rb_small:mis`."
    ),
]
Root = Annotated[
    Path | None,
    typer.Option(help="Folder of all datasets.", show_default="$GRAPHBENCH_ROOT, else the user's cache folder"),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N samples of each split.", show_default="all")]
DataSeed = Annotated[
    int, typer.Option(min=0, help="Which draw of the dataset: 0 is the canonical one, others are drawn anew.")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes that generate.", show_default="all cores")]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Work on a running Dask cluster: the address of its scheduler (`tcp://host:8786`), or its scheduler file "
        "(`.json`). Its workers must see the root folder.",
        show_default="this machine's processes",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
SplitNames = Annotated[
    str | None, typer.Option("--splits", help="Comma-separated splits; `ood` stands for all out-of-distribution ones.")
]
Source = Annotated[
    Literal["generated", "official"],
    typer.Option(
        help="`official`: not generated data but the published files in `--folder`, where a domain reads any."
    ),
]
Folder = Annotated[Path | None, typer.Option(help="Folder of the published files.", show_default="none")]


def choose_splits(known: Any, wanted: str | None) -> tuple[str, ...]:
    """Return the splits a ``--splits`` option names; without one, train, val and test."""
    core = ("train", "val", "test")
    names: list[str] = []
    for part in (wanted or ",".join(core)).split(","):
        name = part.strip()
        if name == "all":
            names += list(known)
        elif name == "ood":
            names += [n for n in known if n not in core]
        elif name in known:
            names.append(name)
        else:
            raise typer.BadParameter(f"no split {name!r}; there are {', '.join(known)} (and `ood`, `all`)")
    return tuple(dict.fromkeys(names))


def files_of(source: str, folder: Path | None) -> dict[str, Any]:
    """Return ``source`` and ``folder`` as the loader takes them, after checking that they go together."""
    if source == "official" and folder is None:
        raise typer.BadParameter("--source official needs --folder, the folder of the published files")
    if source != "official" and folder is not None:
        raise typer.BadParameter(f"--folder {folder} is of published files; add --source official, or give --root")
    return {"source": source, "folder": folder}
