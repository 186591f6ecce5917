"""Splits as ``datasets.Dataset`` of Hugging Face, one row per graph, and back.

The columns are Arrow arrays over the arrays and offsets of the split: values of nodes and graphs are not copied, and
no Python object is made per graph. A row has ``num_nodes``, ``edge_index`` (two lists, both directions of undirected
edges as neighbouring columns, as in ``Data``) and one column per feature: a value at the graph, a list with one value
per node or per column of ``edge_index``. Values have the types of the store. Of complete graphs all pairs are edges,
row after row, so ``edge_index`` is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.errors import ArgumentError, MissingDependency
from graphbench.core.files import atomic_path
from graphbench.core.ragged import offsets
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts
from graphbench.data.batches.series import build_topology
from graphbench.data.components.file_sources import Reader
from graphbench.interop.cards import card_of, card_of_rows, card_of_shared_graph

if TYPE_CHECKING:
    import pyarrow

    import datasets
    from graphbench.catalog.cards import Card
    from graphbench.data.batches.dataset import GraphDataset

_ROWS = 1 << 16  # most graphs of a part of a table
_PART = 1 << 27  # values of the widest column of a part, or one graph
_ELEMENTS = 1 << 30  # most elements of a column of a part, as Arrow's offsets are int32


def to_hf(split: GraphDataset, *, hints: bool = True, file: str | Path | None = None) -> datasets.Dataset:
    """Return a split as a ``datasets.Dataset``.

    Args:
        split: A split, such as ``splits.train``, or a selection of its graphs.
        hints: False leaves the hints of trajectories out; True refuses datasets that have any.
        file: An Arrow file to write the graphs to, part by part, and to read memory-mapped; None for a table in memory.

    Raises:
        ArgumentError: If the split has transforms, hints that are not left out, or samples of a series.
        MissingDependency: If ``datasets`` is not installed.
    """
    library, arrow = _libraries()
    card = split.card
    if card.series is not None:
        raise ArgumentError(
            f"the samples of {card.address} are pairs of states that share one graph, and rows would repeat them; "
            "use write_hub, which writes every state once"
        )
    parts = tables(split, hints=hints)
    if file is None:
        table = arrow.concat_tables(list(parts))
    else:
        first = next(parts)
        with (
            atomic_path(Path(file)) as aside,
            arrow.OSFile(str(aside), "wb") as sink,
            arrow.ipc.new_stream(sink, first.schema) as writer,
        ):
            writer.write_table(first)
            for part in parts:
                writer.write_table(part)
        table = library.Dataset.from_file(str(file)).data
    info = library.DatasetInfo(
        description=_description(split),
        license=card.licence,
        features=library.Features.from_arrow_schema(table.schema),
    )
    return library.Dataset(table if file is not None else library.table.InMemoryTable(table), info=info)


def from_hf(dataset: datasets.Dataset, of: Any) -> Samples:
    """Return the graphs of a ``datasets.Dataset`` of :func:`to_hf` as flat arrays.

    The arrays equal the arrays of the split bit for bit.

    Args:
        dataset: The dataset, which may have been saved, loaded, selected from or shuffled.
        of: The dataset's card, its id, a split or the splits.

    Raises:
        ArgumentError: If a column is missing, or the rows are no graphs of the card.
        MissingDependency: If ``datasets`` is not installed.
    """
    _libraries()
    if getattr(dataset, "_indices", None) is not None:
        dataset = dataset.flatten_indices()
    return samples_of_table(dataset.data, card_of(of))


def graphs_alone(samples: Samples, card: Card) -> Samples:
    """Return samples without the labels that a labeller of the card makes, as a reader of files gives them."""
    values = {f.name: samples.values[f.name] for f in card.graph_schema.stored_features}
    return replace(samples, values=values)


def tables(split: GraphDataset, *, hints: bool = True) -> Iterator[pyarrow.Table]:
    """Yield the graphs of a split as Arrow tables, one part after the other; of a series the states, one row per time.

    Args:
        split: As for :func:`to_hf`.
        hints: As for :func:`to_hf`.

    Raises:
        ArgumentError: If the split has transforms, hints that are not left out, or a selection of samples of a series.
        MissingDependency: If ``pyarrow`` is not installed.
    """
    arrow = _arrow()
    return (_table(arrow, card_of_rows(split.card), part) for part in _parts(split, hints))


def shared_graph_table(card: Card) -> pyarrow.Table:
    """Return the graph that all samples of a card with a series share as an Arrow table of one row.

    Raises:
        MissingDependency: If ``pyarrow`` is not installed.
    """
    return _table(_arrow(), card_of_shared_graph(card), build_topology(card))


def samples_of_table(table: Any, card: Card) -> Samples:
    """Return the graphs of an Arrow table of :func:`tables` as flat arrays, without hints.

    Raises:
        ArgumentError: If a column is missing, or the rows are no graphs of the card.
    """
    edges = () if card.complete else ("edge_index",)
    needed = ["num_nodes", *edges, *(f.name for f in card.stored_features)]
    missing = [name for name in needed if name not in table.column_names]
    if missing:
        raise ArgumentError(f"the dataset lacks the columns {', '.join(missing)} of {card.address}")
    columns = {name: _joined(table.column(name)) for name in needed}
    nodes = _numbers(columns["num_nodes"]).astype(np.int64)
    stored, counts, keep = (np.empty((0, 2), np.int64), nodes * nodes, None)
    if not card.complete:
        stored, counts, keep = _stored_edges(card, columns["edge_index"])
    lengths = {Location.NODE: nodes, Location.EDGE: counts * (1 if card.directed else 2), Location.GRAPH: None}
    values = {f.name: _values(f, columns[f.name], lengths[f.location]) for f in card.stored_features}
    if keep is not None:
        values |= {f.name: _per_edge(values[f.name]) for f in card.stored_features if f.location is Location.EDGE}
    return Samples(nodes, counts, stored, values)


def hf_reader(of: Any) -> Reader:
    """Return a reader of a folder that ``DatasetDict.save_to_disk`` wrote, for ``Loader(..., source=hf_reader(id))``.

    Args:
        of: The dataset's card or id.
    """
    card = card_of(of)

    def read(folder: Path) -> Mapping[str, Samples]:
        library, _ = _libraries()
        saved = library.load_from_disk(str(folder))
        return {name: graphs_alone(from_hf(split, card), card) for name, split in saved.items()}

    read.__qualname__ = f"of_{card.address}"  # readers of several datasets are several sources
    return read


def _libraries() -> tuple[Any, Any]:
    with _library_named("datasets of Hugging Face"):
        import datasets.features  # of the library: a folder named datasets, such as our cards', can be imported
    return datasets, _arrow()


def _arrow() -> Any:
    with _library_named("pyarrow"):
        import pyarrow
    return pyarrow


@contextmanager
def _library_named(name: str) -> Iterator[None]:
    """Turn the error of a missing library into one that says how to install it."""
    try:
        yield
    except ImportError as error:
        raise MissingDependency(
            f"this needs the library {name} ({error}); install it: pip install 'graphbench[hf]'"
        ) from error


def _parts(split: GraphDataset, hints: bool) -> Iterator[Samples]:
    """Yield the graphs of a split in parts.

    Raises:
        ArgumentError: See :func:`tables`.
    """
    from graphbench.data.components.domain import representation_of
    from graphbench.data.components.representations import represented

    card = card_of_rows(split.card)
    if split.is_changed:
        raise ArgumentError("the split has a transform or pre_transform, which an export would lose; load it without")
    if card.hints and hints:
        raise ArgumentError(f"{card.address} has hints, which are trajectories and no columns; give hints=False")
    representation, samples, numbers = representation_of(card), split.samples, split.graph_numbers
    if split.card.series is not None and numbers is not None:
        raise ArgumentError(
            f"samples of {card.address} are selected, but its states are exported whole; load the first states with "
            "Loader(..., limit=...)"
        )
    ends = _ends(card, samples, numbers)
    for first, last in zip([0, *ends], ends, strict=False):
        chosen = slice(first, last) if numbers is None else numbers[first:last]
        if representation is not None:
            yield represented(card, representation, samples, chosen)
        elif isinstance(chosen, slice):
            yield samples.part(card.stored_schema, first, last)
        else:
            yield samples.take(card.stored_schema, chosen)


def _description(split: GraphDataset) -> str:
    """Return the description of an exported split: its address and version, the summary, and every column's meaning."""
    card = split.card
    first = f"{card.address}, version {card.version}, {split.split} split: {card.summary}"
    return "\n".join([first, *(f"{f.name}: {f.meaning}" for f in card.stored_features if f.meaning)])


def _ends(card: Card, samples: Samples, numbers: NDArray[np.int64] | None) -> list[int]:
    """Return where the parts of a table end, by the number of values of their widest column."""
    width = {
        place: max((f.width for f in card.stored_features if f.location is place), default=1) for place in Location
    }
    values = samples.num_nodes * width[Location.NODE]
    values = np.maximum(values, samples.num_edges * 2 * max(width[Location.EDGE], 2))
    last = np.cumsum(values if numbers is None else values[numbers])
    ends = [0]
    while ends[-1] < len(last):
        begun = last[ends[-1] - 1] if ends[-1] else 0
        fitting = int(np.searchsorted(last, begun + _PART, side="right"))
        ends.append(min(max(fitting, ends[-1] + 1), ends[-1] + _ROWS, len(last)))
    return ends[1:] or [0]


def _table(arrow: Any, card: Card, samples: Samples) -> pyarrow.Table:
    copies = 1 if card.directed else 2
    ptr = {Location.NODE: samples.node_ptr, Location.EDGE: samples.edge_ptr * copies, Location.GRAPH: None}
    columns: dict[str, Any] = {"num_nodes": arrow.array(samples.num_nodes)}
    if not card.complete:
        columns["edge_index"] = _edge_lists(arrow, samples, card.directed)
    for feature in card.stored_features:
        value = samples.values[feature.name]
        if feature.location is Location.EDGE and not card.directed:
            value = _both_directions(value, feature)
        columns[feature.name] = _column(arrow, feature, value, ptr[feature.location])
    return arrow.table(columns)


def _both_directions(value: NDArray[Any], feature: Feature) -> NDArray[Any]:
    """Return the values of undirected edges for both directions, as neighbouring rows."""
    if value.ndim == 2 + len(feature.row_shape):
        return np.ascontiguousarray(value).reshape(-1, *feature.row_shape)
    return np.repeat(value, 2, axis=0)


def _edge_lists(arrow: Any, samples: Samples, directed: bool) -> Any:
    """Return the column ``edge_index``: two lists per graph, sources and targets."""
    edges, counts = samples.edges, samples.num_edges
    arcs = edges if directed else np.stack([edges, edges[:, ::-1]], axis=1).reshape(-1, 2)
    counts = counts if directed else counts * 2
    first = offsets(counts)
    flat = np.empty(2 * len(arcs), arcs.dtype)  # of every graph its sources, then its targets
    place = np.arange(len(arcs)) + np.repeat(first[:-1], counts)
    flat[place], flat[place + np.repeat(counts, counts)] = arcs[:, 0], arcs[:, 1]
    inner = _lists(arrow, arrow.array(flat), offsets(np.repeat(counts, 2)))
    return _lists(arrow, inner, 2 * np.arange(len(counts) + 1))


def _column(arrow: Any, feature: Feature, value: Any, ptr: NDArray[np.int64] | None) -> Any:
    if isinstance(value, Texts):
        offset, content = _int32(value.ptr - value.ptr[0]), np.ascontiguousarray(value.content)
        items = arrow.StringArray.from_buffers(len(value), arrow.py_buffer(offset), arrow.py_buffer(content))
    else:
        rows = np.ascontiguousarray(value)
        items = arrow.array(rows.reshape(-1))
        if feature.row_shape:
            items = arrow.FixedSizeListArray.from_arrays(items, feature.width)
    return items if ptr is None else _lists(arrow, items, ptr)


def _lists(arrow: Any, items: Any, ptr: NDArray[np.int64]) -> Any:
    return arrow.ListArray.from_arrays(arrow.array(_int32(ptr)), items)


def _int32(ptr: NDArray[Any]) -> NDArray[np.int32]:
    if len(ptr) and int(ptr[-1]) > _ELEMENTS:
        raise ArgumentError(
            f"{int(ptr[-1]):,} values in {len(ptr) - 1} graphs are too many for a part of a table; "
            "export fewer at once, split[:100]"
        )
    return ptr.astype(np.int32)


def _joined(column: Any) -> Any:
    """Return a column as one Arrow array without missing values.

    Raises:
        ArgumentError: If a value is missing.
    """
    joined = column.combine_chunks()
    joined = joined.combine_chunks() if hasattr(joined, "num_chunks") else joined
    if joined.null_count:
        raise ArgumentError(f"{joined.null_count} rows of the dataset have no value")
    return joined


def _numbers(array: Any) -> NDArray[Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _flattened(array: Any, per_row: NDArray[np.int64] | int, what: str) -> Any:
    """Return the values of lists one after the other, after checking how many each has."""
    lengths = _numbers(array.value_lengths())
    if not np.array_equal(lengths, np.broadcast_to(per_row, lengths.shape)):
        row = int(np.flatnonzero(lengths != per_row)[0])
        wanted = np.broadcast_to(per_row, lengths.shape)[row]
        raise ArgumentError(f"row {row} of the dataset has {lengths[row]} values of {what}, not {wanted}")
    return array.flatten()


def _values(feature: Feature, array: Any, lengths: NDArray[np.int64] | None) -> Any:
    if lengths is not None:
        array = _flattened(array, lengths, feature.name)
    if feature.kind is Kind.TEXT:
        return Texts.of(array.to_pylist()) if not len(array) else _texts(array)
    if feature.row_shape:
        return _numbers(array.flatten()).reshape(-1, feature.width)
    return _numbers(array)


def _texts(array: Any) -> Texts:
    import pyarrow

    array = pyarrow.concat_arrays([array.cast(pyarrow.large_string())])
    _, offset, content = array.buffers()
    ptr = np.frombuffer(offset, np.int64)[array.offset : array.offset + len(array) + 1]
    raw = np.frombuffer(content, np.uint8) if content is not None else np.empty(0, np.uint8)
    return Texts(raw[int(ptr[0]) : int(ptr[-1])], ptr - ptr[0])


def _stored_edges(card: Card, column: Any) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64] | None]:
    """Return the stored edges, their number per graph, and the rows of the stored ones if there are both directions.

    Raises:
        ArgumentError: If the two directions of an edge are no neighbours.
    """
    inner = _flattened(column, 2, "edge_index")
    lengths = _numbers(inner.value_lengths()).astype(np.int64).reshape(-1, 2)
    if (lengths[:, 0] != lengths[:, 1]).any():
        raise ArgumentError("a graph of the dataset has more sources than targets in edge_index")
    counts, flat = lengths[:, 0], _numbers(inner.flatten())
    place = np.arange(int(counts.sum())) + np.repeat(offsets(counts)[:-1], counts)
    arcs = np.stack([flat[place], flat[place + np.repeat(counts, counts)]], axis=1)
    if card.directed:
        return arcs, counts, None
    if (counts % 2).any() or not np.array_equal(arcs[::2], arcs[1::2, ::-1]):
        raise ArgumentError("the two directions of an edge are not neighbouring columns of edge_index")
    return np.ascontiguousarray(arcs[::2]), counts // 2, np.arange(0, len(arcs), 2)


def _per_edge(value: NDArray[Any]) -> NDArray[Any]:
    """Return values of both directions as one value per edge, or as two where they differ."""
    pairs = value.reshape(-1, 2, *value.shape[1:])
    return np.ascontiguousarray(pairs[:, 0]) if np.array_equal(pairs[:, 0], pairs[:, 1]) else pairs
