"""The command that writes a dataset in a format of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from graphbench.cli.options import DataSeed, Dataset, Folder, Json, Limit, Root, Source, SplitNames, Workers, files_of


def export(
    dataset: Dataset,
    form: Annotated[
        str, typer.Option("--format", metavar="NAME", help="`hub`, or a format of the domain, e.g. `cnf` for formulas.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write; new or empty.")],
    splits: SplitNames = None,
    root: Root = None,
    limit: Limit = None,
    workers: Workers = None,
    data_seed: DataSeed = 0,
    source: Source = "generated",
    folder: Folder = None,
    url: Annotated[
        str | None, typer.Option("--url", help="Address that the dataset will have on a hub; for `hub`.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a dataset in a format of other tools (train, val and test; `--splits all` for every split).

    `hub` writes a folder that is ready for a hub of datasets: Parquet files, a data card and Croissant metadata.
    The domain of a dataset offers further formats, such as `cnf` and `aslib` for `sat`; an unknown name is answered
    with the list. Missing splits of the dataset are generated first.
    """
    from graphbench.catalog.names import card
    from graphbench.cli.printing import print_json, print_line
    from graphbench.data.components.export import export_samples, find_exporter
    from graphbench.interop.hub import ABOUT, HUB, write_hub
    from graphbench.loader import Loader

    chosen = card(dataset)  # one dataset, not a group
    exporter = None if form == HUB else find_exporter(chosen, form, {HUB: ABOUT})
    options: dict[str, Any] = {"root": root, "limit": limit, "workers": workers, "data_seed": data_seed}
    place = files_of(source, folder)
    loaded = Loader(dataset, **options, **place).load(())
    names = loaded.card.select_splits(splits or "train,val,test")
    written: Sequence[Path]
    if exporter is None:
        written = write_hub(loaded, output, names=names, url=url)
    else:
        if not exporter.labels:
            loaded = Loader(dataset, unlabelled=names, **options, **place).load(())
        samples = {name: loaded[name].samples for name in names}
        written = export_samples(exporter, loaded.card, samples, output.expanduser())
    counts = {name: len(loaded[name]) for name in names}
    if as_json:
        name = HUB if exporter is None else exporter.name
        print_json({"dataset": loaded.card.address, "format": name, "splits": counts, "files": written})
        return
    for name, count in counts.items():
        print_line(f"{loaded.card.address} {name}: {count:,} samples")
    print_line("\n" + "\n".join(f"in {path}" for path in written), "dim")
