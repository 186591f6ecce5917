"""The command ``import``: a dataset of one's own files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphbench.cli.options import Json
from graphbench.core.errors import DataImportError

if TYPE_CHECKING:
    from graphbench.imports.dataset import Imported

FORMATS = ("csv", "folder", "ogb", "hf")
_ALL = "all: see the page on own data"


def import_command(
    name: Annotated[str, typer.Argument(help="`<domain>/<name>` of the new dataset, e.g. `mine/toy`.")],
    source: Annotated[
        Path | None,
        typer.Argument(
            help="A CSV file of edges, a folder with `dataset.pt`, a folder of OGB (with `raw/`), or a folder that "
            "`save_to_disk` of Hugging Face wrote."
        ),
    ] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="`csv`, `folder`, `ogb` or `hf`.", show_default="found out")
    ] = None,
    nodes: Annotated[Path | None, typer.Option(help="CSV file of nodes.")] = None,
    graphs: Annotated[Path | None, typer.Option(help="CSV file of graphs, for several graphs.")] = None,
    source_column: Annotated[str, typer.Option(help="Column of the edges with the first node.")] = "source",
    target_column: Annotated[str, typer.Option(help="Column of the edges with the second node.")] = "target",
    node_column: Annotated[str, typer.Option(help="Column of the nodes with their names.")] = "node",
    graph_column: Annotated[str, typer.Option(help="Column with the graph, in all CSV files.")] = "graph",
    split_column: Annotated[str, typer.Option(help="Column with the split, of graphs or nodes.")] = "split",
    scheme: Annotated[
        str | None, typer.Option(help="Folder of the splits of OGB.", show_default="the only one")
    ] = None,
    target: Annotated[list[str] | None, typer.Option(help="Column of the target.", show_default="y")] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="Where the target is and its type: `graph mask`, `node categorical`, `edge scalar`; or `link`, which "
            "hides edges and asks for them.",
            show_default="found out",
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", help="Column that models read; may be repeated.", show_default=_ALL)
    ] = None,
    meta: Annotated[list[str] | None, typer.Option(help="Column that is stored and that no model reads.")] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type", metavar="COLUMN=TYPE", help="Type of a column: `scalar`, `mask`, `categorical`, `text`."
        ),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="The metric that ranks models, e.g. `roc_auc`.", show_default="of the type")
    ] = None,
    also: Annotated[list[str] | None, typer.Option(help="A further metric; may be repeated.")] = None,
    split: Annotated[
        str | None,
        typer.Option(help="Rule that divides the samples: `random`, `group`, `time` or `size`.", show_default="random"),
    ] = None,
    by: Annotated[str | None, typer.Option(help="Column of graphs with the group, time or size.")] = None,
    fractions: Annotated[
        str | None, typer.Option(help="Shares of train, val and test.", show_default="0.8,0.1,0.1")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random rules.")] = 0,
    folds: Annotated[
        int | None, typer.Option(min=3, help="Divide into folds: the datasets `<name>_fold0`, `<name>_fold1`, ...")
    ] = None,
    directed: Annotated[
        bool | None, typer.Option("--directed/--undirected", help="Whether edges are arcs.", show_default="found out")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Drop loops of undirected graphs and repeated edges.")
    ] = False,
    overlap: Annotated[bool, typer.Option("--overlap", help="Allow equal graphs in several splits.")] = False,
    hidden: Annotated[
        float | None, typer.Option(help="Share of the edges that a link task hides.", show_default="0.3")
    ] = None,
    negatives: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE=N",
            help="Negatives of every link of a link task, by rule: `uniform`, `degree`, `near`, `ends`; repeatable.",
            show_default="uniform=25, degree=25",
        ),
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option(min=1, help="Most links of a graph that a link task asks for.", show_default="5,000"),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the dataset.")] = None,
    summary: Annotated[str | None, typer.Option(help="What the dataset asks, in a sentence.")] = None,
    licence: Annotated[str | None, typer.Option(help="Licence of the data.")] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="Folder of the dataset.", show_default="$GRAPHBENCH_OWN, else `own` in the root"),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a dataset of this name; its version rises.")
    ] = False,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the dataset of this name, and import nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Make a dataset of your own graphs; all other commands then know it by its name.

    Types, splits and leakage are checked, trivial predictors are scored, and a card is written. From Python:
    `graphbench.from_pyg`, `from_networkx`, `from_csv`, `from_ogb`, `from_hf`, `from_folder`.
    """
    from graphbench.imports.dataset import remove as remove_dataset

    if remove:
        from graphbench.cli.printing import print_line

        for path in remove_dataset(name, folder):
            print_line(f"removed {path}")
        return
    if source is None:
        raise typer.BadParameter("name the file or the folder with your graphs", param_hint="SOURCE")
    options: dict[str, Any] = {
        "target": None if not target else target[0] if len(target) == 1 else target,
        "task": task,
        "inputs": inputs,
        "meta": meta,
        "types": _pairs(types or (), "--type", "COLUMN=TYPE") or None,
        "hidden": hidden,
        "queries": queries,
        "negatives": _numbers(negatives or ()) or None,
        "metric": metric,
        "also": also,
        "split": split,
        "by": by,
        "fractions": None if fractions is None else _shares(fractions),
        "folds": folds,
        "directed": directed,
        "title": title,
        "summary": summary,
        "licence": licence,
        "folder": folder,
    }
    given = {key: value for key, value in options.items() if value is not None}
    given |= {"seed": seed, "repair": repair, "overlap": overlap, "replace": replace}
    chosen = format_ or _format_of(source)
    if chosen not in FORMATS:
        raise typer.BadParameter(f"{chosen!r} is unknown; there are {', '.join(FORMATS)}", param_hint="--format")
    if chosen == "csv":
        columns = {
            "source": source_column,
            "destination": target_column,
            "node": node_column,
            "graph": graph_column,
            "split_column": split_column,
        }
        given |= {**columns, "nodes": nodes, "graphs": graphs}
    elif nodes is not None or graphs is not None:
        raise typer.BadParameter(f"--nodes and --graphs are for CSV files, and {source} is not one")
    if chosen == "ogb":
        given["scheme"] = scheme
    show_import(_function_of(chosen)(name, source, **given), as_json)


def _function_of(name: str) -> Callable[..., Imported]:
    import graphbench

    functions: dict[str, Callable[..., Imported]] = {
        "csv": graphbench.from_csv,
        "folder": graphbench.from_folder,
        "ogb": graphbench.from_ogb,
        "hf": graphbench.from_hf,
    }
    return functions[name]


def _format_of(source: Path) -> str:
    """Return the format of a file or folder."""
    if source.is_file() and source.name.endswith((".csv", ".csv.gz")):
        return "csv"
    if (source / "dataset.pt").is_file():
        return "folder"
    if (source / "raw").is_dir():
        return "ogb"
    if (source / "dataset_dict.json").is_file() or (source / "dataset_info.json").is_file():
        return "hf"
    what = "is not there" if not source.exists() else "is neither a CSV file nor a folder that is known"
    raise DataImportError(
        f"{source} {what}; give a .csv file of edges, or a folder with dataset.pt, with raw/ (OGB) or of save_to_disk "
        "(Hugging Face)"
    )


def _numbers(words: Sequence[str]) -> dict[str, int]:
    pairs = _pairs(words, "--negatives", "RULE=N")
    wrong = next((f"{rule}={number}" for rule, number in pairs.items() if not number.isdigit()), None)
    if wrong is not None:
        raise typer.BadParameter(f"{wrong!r} is not of the form RULE=N", param_hint="--negatives")
    return {rule: int(number) for rule, number in pairs.items()}


def _pairs(words: Sequence[str], option: str, form: str) -> dict[str, str]:
    pairs = [word.partition("=") for word in words]
    wrong = next((word for word, (name, _, value) in zip(words, pairs, strict=True) if not (name and value)), None)
    if wrong is not None:
        raise typer.BadParameter(f"{wrong!r} is not of the form {form}", param_hint=option)
    return {name: value for name, _, value in pairs}


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not of the form 0.8,0.1,0.1", param_hint="--fractions") from None


def show_import(imported: Imported, as_json: bool) -> None:
    """Print what became of the graphs: the features, the splits, the best trivial predictors, and what comes next."""
    from graphbench.cli.printing import new_table, print_json, print_line, print_table
    from graphbench.evaluation.trivial import best_of

    card = imported.card
    primary = card.metrics.primary
    floors = {split: best_of(card.floor.get(split, {}), primary) for split in card.all_splits}
    if as_json:
        print_json(
            {
                "datasets": [fold_card.id for fold_card in imported.cards],
                "card": str(imported.path),
                "version": card.version,
                "features": {f.name: [f.stage.value, f.location.value, f.type_name] for f in card.features},
                "directed": card.directed,
                "splits": {split: spec.count for split, spec in card.all_splits.items()},
                "metric": primary,
                "best_trivial": {split: None if best is None else list(best) for split, best in floors.items()},
                "notes": list(imported.notes),
            }
        )
        return
    print_line(f"{imported.name}, version {card.version}: {imported.path}", "bold")
    table = new_table("feature", "stage", "at", "type")
    for feature in card.features:
        table.add_row(feature.name, feature.stage.value, feature.location.value, feature.type_name)
    print_table(table)
    measured = card.measured
    table = new_table("split", "graphs", "nodes", "edges", f"best trivial ({primary})")
    for split, spec in card.all_splits.items():
        statistics = {} if measured is None else measured.statistics.get(split, {})
        best = floors[split]
        means = [f"{statistics[key][0]:,.1f}" if key in statistics else "-" for key in ("nodes", "edges")]
        table.add_row(split, f"{spec.count:,}", *means, "-" if best is None else f"{best[1]:.4f} {best[0]}")
    print_table(table)
    for note in (f"edges are {'arcs' if card.directed else 'undirected'}", *imported.notes):
        print_line(f"- {note}")
    first = card.id
    print_line(f"\nnext: graphbench train {first} --model gin_small; graphbench verify {first}", "dim")
