"""A folder that is ready for a hub of datasets, and back: Parquet files, a data card and Croissant metadata.

===========================  ===========================================================================================
file                         content
===========================  ===========================================================================================
``README.md``                data card: splits with hashes, columns, metric, trivial scores, how to regenerate the data
``croissant.json``           metadata in the Croissant format, with the SHA-256 of every file
``card.yaml``                the card, from which graphbench regenerates the data
``data/<split>.parquet``     one row per graph, with the columns of :func:`graphbench.interop.to_hf`; of a
                             series one row per time, with the stored state
``graph/graph.parquet``      the graph that all samples of a series share; of datasets with a series
``hints/<split>.npz``        hints of trajectories, as the flat arrays of the store; of datasets with hints
===========================  ===========================================================================================

Nothing is sent or fetched: the folder is given to the hub's own program.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import yaml

from graphbench._version import __version__
from graphbench.catalog.cards import CORE_SPLITS, Card
from graphbench.catalog.features import Kind
from graphbench.catalog.series import SeriesSpec
from graphbench.core.arguments import checked_path
from graphbench.core.damage import damage_named
from graphbench.core.errors import StoreError
from graphbench.core.files import atomic_path, file_sha256, read_json, write_json, write_text
from graphbench.core.untrusted import require_regular
from graphbench.data.arrays.quantisation import unpacked
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.trajectories import Trajectories
from graphbench.data.components.domain import find
from graphbench.data.components.export import require_new_folder
from graphbench.data.components.file_sources import Reader, has_one_draw
from graphbench.data.components.own_graphs import GENERATOR as OWN_GRAPHS
from graphbench.evaluation.trivial import best_floor
from graphbench.interop.cards import card_of, card_of_rows
from graphbench.interop.croissant import Content, HubFile, columns_of, croissant_of, source_address
from graphbench.interop.huggingface import graphs_alone, samples_of_table, shared_graph_table, tables

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.loader import Splits

HUB = "hub"
ABOUT = "a folder for a hub of datasets, with Parquet files, a data card and Croissant metadata"
METADATA, DATA_CARD, CARD = "croissant.json", "README.md", "card.yaml"
_REMEDY = "fetch the file again"


def write_hub(
    splits: Splits, folder: str | Path, *, names: Sequence[str] = CORE_SPLITS, url: str | None = None
) -> list[Path]:
    """Write a dataset into a folder that is ready for a hub of datasets, and return the written files.

    Args:
        splits: The splits of the dataset, of ``Loader(...).load()``.
        folder: New or empty.
        names: The splits that are written.
        url: Address that the dataset will have; None for the address of its source.

    Raises:
        ArgumentError: If the samples of the dataset do not fit into tables: transformed graphs, or selected samples of
            a series.
        StoreError: If the folder holds files, or cannot be written.
        MissingDependency: If ``pyarrow`` is not installed.
    """
    target = checked_path("folder", folder).expanduser()
    require_new_folder(target)
    card = splits.card
    files: list[HubFile] = []
    try:
        for name in names:
            files += _write_split(splits[name], target, name)
        if card.series is not None:
            path = _write_tables(iter([shared_graph_table(card)]), target / "graph" / "graph.parquet")
            files.append(_described(path, target, "graph", 1, "graph"))
        write_json(target / METADATA, croissant_of(card, files, url=url), sort_keys=False)
        hashes = {name: splits[name].content_hash for name in names}
        write_text(target / DATA_CARD, data_card(card, files, hashes, __version__))
        with atomic_path(target / CARD) as aside:
            shutil.copyfile(card.path, aside)
    except BaseException:  # a folder that is not whole must not be sent
        shutil.rmtree(target, ignore_errors=True)
        raise
    return [target / name for name in (DATA_CARD, METADATA, CARD, *(file.path for file in files))]


def hub_reader(of: Any) -> Reader:
    """Return a reader of a folder of :func:`write_hub`, for ``Loader(..., source=hub_reader(id), folder=...)``.

    The arrays equal the exported ones bit for bit; files whose hashes differ from the metadata are refused. Labels that
    a labeller of the card makes are made again, see :func:`read_hub` for the exported ones.

    Args:
        of: The dataset's card or id.
    """
    card = card_of(of)

    def read(folder: Path) -> Mapping[str, Samples]:
        stored = {name: graphs_alone(samples, card) for name, samples in read_hub(folder, card).items()}
        return {name: unpacked(card.graph_schema, samples, np.float64) for name, samples in stored.items()}

    read.__qualname__ = f"of_{card.address}"  # readers of several datasets are several sources
    return read


def read_hub(folder: str | Path, of: Any) -> dict[str, Samples]:
    """Return the samples in a folder of :func:`write_hub`, by split.

    Args:
        folder: The folder.
        of: The dataset's card or id.

    Raises:
        StoreError: If a file is missing, damaged or not the one that the metadata name, or the folder has another
            version of the dataset.
        ArgumentError: If the rows are no graphs of the card.
        MissingDependency: If ``pyarrow`` is not installed.
    """
    card, place = card_of_rows(card_of(of)), checked_path("folder", folder).expanduser()
    rows, hints = _listed(place, card)
    samples = {path.stem: _read_rows(path, card) for path in rows}
    return samples | {path.stem: replace(samples[path.stem], hints=_read_hints(path)) for path in hints}


def _write_split(split: GraphDataset, target: Path, name: str) -> Iterator[HubFile]:
    path = _write_tables(tables(split, hints=False), target / "data" / f"{name}.parquet")
    yield _described(path, target, name, split.stored_graphs)
    if split.card.hints:
        path = target / "hints" / f"{name}.npz"
        path.parent.mkdir(parents=True, exist_ok=True)
        hints = _hints(split)
        with atomic_path(path) as aside, aside.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **hints.arrays())
        yield _described(path, target, name, len(split), "hints")


def _write_tables(parts: Iterator[Any], path: Path) -> Path:
    import pyarrow.parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    first = next(parts)
    with atomic_path(path) as aside, pyarrow.parquet.ParquetWriter(aside, first.schema) as writer:
        writer.write_table(first)
        for part in parts:
            writer.write_table(part)
    return path


def _hints(split: GraphDataset) -> Trajectories:
    numbers, hints = split.graph_numbers, split.flat.hints
    assert hints is not None
    if numbers is None and len(hints) == len(split):
        return cast(Trajectories, hints)
    return cast(Trajectories, hints.take(np.arange(len(split)) if numbers is None else numbers))


def _described(path: Path, target: Path, split: str, samples: int, content: Content = "data") -> HubFile:
    relative = path.relative_to(target).as_posix()
    return HubFile(relative, split, samples, path.stat().st_size, file_sha256(path), content)


def _listed(folder: Path, card: Card) -> tuple[list[Path], list[Path]]:
    """Return the files of rows and of hints that the metadata name, after a check of version and hashes."""
    path = folder / METADATA
    if not path.is_file():
        raise StoreError(f"{folder} has no {METADATA}; give the folder that `graphbench export --format {HUB}` wrote")
    with damage_named(path, remedy=_REMEDY):
        described = read_json(path)
        objects = [(str(one["contentUrl"]), str(one["sha256"])) for one in described["distribution"]]
        stored = described.get("version")
    if stored is not None and str(stored).partition(".")[0] != str(card.version):
        raise StoreError(
            f"{path} is of version {stored} of the dataset, the card of {card.address} has version {card.version}; "
            "take the card.yaml of this folder, or export the dataset again"
        )
    files: dict[str, list[Path]] = {"data": [], "hints": []}
    for address, sha256 in objects:
        file = folder / address
        if file.resolve().parent.parent != folder.resolve() or not file.is_file():
            raise StoreError(f"{path} names {address!r}, which is no file of the folder; {_REMEDY}")
        digest = file_sha256(file)
        if digest != sha256:
            raise StoreError(f"{file} has the SHA-256 {digest[:12]}..., {METADATA} says {sha256[:12]}...; {_REMEDY}")
        files.setdefault(file.parent.name, []).append(file)
    return files["data"], files["hints"]


def _read_rows(path: Path, card: Card) -> Samples:
    with damage_named(path, remedy=_REMEDY):
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(path)
    return samples_of_table(table, card)


def _read_hints(path: Path) -> Trajectories:
    with damage_named(path, remedy=_REMEDY):
        require_regular(path)
        with np.load(path, allow_pickle=False) as stored:
            return Trajectories.of_arrays({name: stored[name] for name in stored.files})


def data_card(card: Card, files: Sequence[HubFile], hashes: Mapping[str, str], version: str) -> str:
    """Return the data card of a dataset as Markdown, with the front matter that hubs read.

    Args:
        card: The card of the dataset.
        files: Its files.
        hashes: Split -> content hash of its samples, which regenerated data have as well.
        version: Version of graphbench.
    """
    return "\n".join([*_front_matter(card, files), "", *_body(card, files, hashes, version)]) + "\n"


def _front_matter(card: Card, files: Sequence[HubFile]) -> list[str]:
    rows = [{"split": file.split, "path": file.path} for file in files if file.content == "data"]
    spdx = card.licence.lower()
    licence = {"license": spdx} if " " not in spdx else {"license": "other"}
    facts = {
        "pretty_name": f"{card.title} ({card.address})",
        **licence,
        "task_categories": ["graph-ml"],
        "tags": ["graphs", "graphbench", card.domain],
        "configs": [{"config_name": "default", "data_files": rows}],
    }
    return ["---", yaml.safe_dump(facts, sort_keys=False, allow_unicode=True).rstrip(), "---"]


def _body(card: Card, files: Sequence[HubFile], hashes: Mapping[str, str], version: str) -> Iterator[str]:
    rows = [file for file in files if file.content == "data"]
    whole = all(file.samples == card.all_splits[file.split].count for file in rows)
    draw = f", draw {card.data_seed}" if card.data_seed else ""
    yield from (f"# {card.title}", "", card.summary, "")
    if card.description:
        yield from (card.description.strip(), "")
    yield from (f"Dataset {card.address}, version {card.version}{draw}; written by graphbench {version}.", "")
    yield from _splits(card, rows, hashes, whole=whole)
    yield from _columns(card)
    yield from ("## Score", "", f"Models are ranked by `{card.metrics.primary}`.", "")
    if whole and not card.data_seed:
        yield from _floors(card, hashes)
    yield from _use(card, rows, whole=whole)
    yield from _source(card)


def _splits(card: Card, rows: Sequence[HubFile], hashes: Mapping[str, str], *, whole: bool) -> Iterator[str]:
    yield from ("## Splits", "")
    if not whole:
        yield from ("The files hold the first samples of the splits, not whole splits.", "")
    held = "graphs" if card.series is None else "states"
    yield from (f"| split | {held} | file | content hash | shift |", "| :-- | --: | :-- | :-- | :-- |")
    for file in rows:
        shift = card.all_splits[file.split].shift or ""
        yield f"| {file.split} | {file.samples:,} | `{file.path}` | `{hashes[file.split][:16]}` | {_cell(shift)} |"
    yield ""


def _columns(card: Card) -> Iterator[str]:
    notes = ["One row per graph."] if card.series is None else list(_notes_of_series(card.series))
    notes += [
        f"`{name}` holds (value - offset) / scale; `packed` in `{CARD}` has the offset and the scale of every channel."
        for name in card.packed
    ]
    if card.complete:
        notes.append(
            "Graphs are complete: a column of edges has a value per pair (u, v) of n nodes, at place u * n + v."
        )
    if card.hints:
        notes.append("The steps of the algorithms (hints) are in `hints/<split>.npz`, as changes from step to step.")
    if any(f.kind in (Kind.MASK, Kind.CATEGORICAL) for f in card_of_rows(card).stored_features):
        notes.append("A mask or a class of -1 is no value.")
    yield from ("## Columns", "", " ".join(notes), "", "| column | shape | meaning |", "| :-- | :-- | :-- |")
    for name, _, meaning, shape in columns_of(card_of_rows(card)):
        size = " x ".join("n" if length < 0 else str(length) for length in shape) or "one value"
        yield f"| `{name}` | {size} | {_cell(meaning)} |"
    yield ""


def _notes_of_series(series: SeriesSpec) -> Iterator[str]:
    yield "One row per time: a state of the series."
    later = f"{series.lead} rows later, where `{series.run}` is the same"
    changes = " and ".join(f"`{name}`, the change of `{source}`" for name, source in series.changes.items())
    yield f"A sample is a row, and its target is {changes} to the row {later}."
    fixed = ", ".join(f"`{name}`" for name in series.fixed)
    yield "All samples have one graph, in `graph/graph.parquet`" + (f" with {fixed}." if fixed else ".")
    yield "Rows have values of its first nodes."


def _floors(card: Card, splits: Iterable[str]) -> Iterator[str]:
    floors = {split: best_floor(card, split, card.metrics.primary) for split in splits}
    values = ", ".join(f"{best[1]:.4g} on {split} ({best[0]})" for split, best in floors.items() if best)
    if values:
        yield from (f"The best trivial predictions have {values}.", "")


def _source(card: Card) -> Iterator[str]:
    yield from ("## Source", "", f"{card.source.citation or card.source.paper}.".replace("..", "."), "")
    if card.source.deviations:
        yield from (*(f"- {deviation}" for deviation in card.source.deviations), "")
    address = source_address(card)
    yield from (f"Licence: {card.licence}.", *([f"Source: {address}"] if address else []))


def _use(card: Card, rows: Sequence[HubFile], *, whole: bool) -> Iterator[str]:
    yield from ("## Use", "", "```python", "import graphbench", "from graphbench.interop import hub_reader", "")
    yield f'splits = graphbench.Loader("{card.address}", source=hub_reader("{card.address}"), folder=".").load()'
    yield from ("```", "")
    if has_one_draw(find("generator", card.generator)):
        yield from ("The data cannot be generated again; `card.yaml` describes them.", "")
        if card.generator != OWN_GRAPHS:
            return
        place = f"datasets/{card.domain}/{Path(card.path).name}"
        yield from ("On a machine that does not know the dataset yet, make the card known first:", "")
        yield from ("```console", 'export GRAPHBENCH_OWN="$HOME/graphbench_own"')
        yield from (
            f'mkdir -p "$GRAPHBENCH_OWN/{Path(place).parent}" && cp card.yaml "$GRAPHBENCH_OWN/{place}"',
            "```",
            "",
        )
        return
    limit = "" if whole else f" --limit {max(file.samples for file in rows)}"
    draw = f" --data-seed {card.data_seed}" if card.data_seed else ""
    splits = ",".join(file.split for file in rows)
    yield from ("The same data, generated on your machine from the card instead of read from these files:", "")
    yield from ("```console", f"graphbench generate {card.address} --splits {splits}{draw}{limit}", "```", "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
