"""The command that builds portfolios of algorithms from their costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphbench.cli.options import DataSeed, Dataset, Folder, Json, Limit, Root, Source, Workers, files_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


def portfolio(
    dataset: Dataset,
    split: Annotated[str, typer.Option("--split", help="The split whose costs are used.")] = "train",
    tables: Annotated[
        list[Path] | None,
        typer.Option(
            "--tables",
            help="Files of recorded labels (`graphbench labels export`), whose outcomes are used instead of a split; "
            "may be repeated.",
        ),
    ] = None,
    beam: Annotated[int, typer.Option(min=1, help="Sets of each size that the search extends.")] = 500,
    sensitivity: Annotated[
        float, typer.Option(min=0.0, help="How many sizes without progress make a knee (the S of Kneedle).")
    ] = 1.0,
    root: Root = None,
    limit: Limit = None,
    workers: Workers = None,
    data_seed: DataSeed = 0,
    source: Source = "generated",
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Find the best portfolio of every size for a selection task, and the knee of size against cost.

    A portfolio is judged by the mean cost of its cheapest member on each instance; for `sat/small:select` that is the
    PAR10 of its virtual best solver.
    """
    from graphbench.cli.printing import print_json
    from graphbench.tasks.select.portfolios import best_portfolios, knee

    if tables:
        names, costs = _costs_of_tables(dataset, tables)
    else:
        options: dict[str, Any] = {"root": root, "limit": limit, "workers": workers, "data_seed": data_seed}
        names, costs = _costs_of_split(dataset, split, {**options, **files_of(source, folder)})
    portfolios = best_portfolios(costs, names, beam=beam)
    chosen = knee([best.cost for best in portfolios], sensitivity)
    rows = [
        {
            "size": size,
            "cost": best.cost,
            "algorithms": list(best.algorithms),
            "exact": best.exact,
            "knee": chosen == size - 1,
        }
        for size, best in enumerate(portfolios, 1)
    ]
    if as_json:
        print_json({"dataset": dataset, "instances": len(costs), "portfolios": rows})
        return
    _print_rows(rows, len(costs), None if chosen is None else chosen + 1)


def _print_rows(rows: list[dict[str, Any]], instances: int, size: int | None) -> None:
    from graphbench.cli.printing import new_table, print_line, print_table

    table = new_table("size", "VBS cost", "", "members", right=("size", "VBS cost"))
    for row in rows:
        mark = "knee" if row["knee"] else ""
        table.add_row(str(row["size"]), f"{row['cost']:.6g}", mark, ", ".join(row["algorithms"]))
    print_table(table)
    print_line(f"\n{instances:,} instances; " + ("the curve has no knee" if size is None else f"the knee is at {size}"))
    inexact = [row["size"] for row in rows if not row["exact"]]
    if inexact:
        print_line(f"from size {inexact[0]} on the search has not seen every set; a larger --beam sees more")


def _costs_of_split(dataset: str, split: str, options: dict[str, Any]) -> tuple[tuple[str, ...], NDArray[Any]]:
    from graphbench.loader import Loader

    loader = Loader(dataset, **options)
    if len(loader.ids) != 1:
        raise typer.BadParameter(f"{dataset!r} stands for {len(loader.ids)} datasets; name one")
    loaded = loader.load(())
    splits = loaded[loader.ids[0]] if isinstance(loaded, dict) else loaded
    task = _select_task(splits.card)
    return task.algorithms, task.cost_table(splits[splits.card.select_splits([split])[0]])


def _costs_of_tables(dataset: str, files: list[Path]) -> tuple[tuple[str, ...], NDArray[Any]]:
    from graphbench.catalog.names import card
    from graphbench.data.build.label_tables import read_tables, tabulated_labels

    task = _select_task(card(dataset))
    return task.algorithms, tabulated_labels([table for file in files for table in read_tables(file)], task.names)


def _select_task(card: Any) -> Any:
    from graphbench.tasks.registry import task_of
    from graphbench.tasks.select.task import SelectTask

    task = task_of(card)
    if not isinstance(task, SelectTask):
        raise typer.BadParameter(f"{card.address} is no selection of algorithms; name one, e.g. sat/small:select")
    return task
