"""Commands on recorded labels: outcomes of solvers, as files that other machines can use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphbench.cli.options import Datasets, Folder, Json, Root, Source, SplitNames
from graphbench.cli.output import CommandLine

labels = CommandLine(
    no_args_is_help=True,
    help="Export and import recorded labels, such as the runs of solvers. Labels that are in a table are not computed.",
)


@labels.command("export")
def export_command(
    datasets: Datasets,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write, e.g. `runs.csv.xz`.")],
    splits: SplitNames = None,
    source: Source = "generated",
    folder: Folder = None,
    root: Root = None,
) -> None:
    """Write the recorded labels of datasets on this machine to one file; all splits that are there."""
    from graphbench.catalog.names import catalog
    from graphbench.cli.printing import print_line
    from graphbench.core.files import default_root
    from graphbench.data.build.label_export import recorded_tables
    from graphbench.data.build.label_tables import write_tables
    from graphbench.data.components.source_choice import sourced_card

    listed_cards = [catalog().card(id_) for id_ in catalog().resolve(datasets)]
    cards = [sourced_card(card, source, folder, root=root) for card in listed_cards]
    chosen = None if splits is None else [name for card in cards for name in card.select_splits(splits)]
    tables = recorded_tables(cards, default_root() if root is None else root.expanduser(), chosen)
    write_tables(tables, output)
    for table in tables:
        print_line(f"{table.head.labeller}: {len(table.rows):,} outcomes")
    print_line(f"\nin {output}", "dim")


@labels.command("import")
def import_command(
    files: Annotated[list[Path], typer.Argument(help="Files that `graphbench labels export` has written.")],
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Add recorded labels to the labels that `graphbench generate` and the loader use instead of computing them."""
    from graphbench.cli.printing import print_json, print_line
    from graphbench.core.files import default_root
    from graphbench.data.build.label_export import import_tables

    place = default_root() if root is None else root.expanduser()
    rows = [row for path in files for row in import_tables(path, place)]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        print_line(f"{row['labeller']}: {row['new']:,} new outcomes in {row['file']}")
        served = ", ".join(row["datasets"]) or "no dataset: none asks for labels of this effort, so nothing reads them"
        print_line(f"  read by {served}", "dim")
