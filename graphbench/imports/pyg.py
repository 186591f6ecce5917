"""Datasets of PyTorch Geometric objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import DataImportError
from graphbench.imports.dataset import Imported, import_graphs
from graphbench.imports.graphs import RawGraph
from graphbench.imports.options import ImportOptions, settings_of

USUAL_INPUTS = ("x", "z", "pos", "edge_attr", "edge_weight", "node_attr")
"""Attributes that are inputs where the user names none."""

_STRUCTURE = ("edge_index", "num_nodes", "batch", "ptr", "adj_t", "num_edges")


def from_pyg(
    name: str,
    data: Any = None,
    *,
    train: Iterable[Any] | None = None,
    val: Iterable[Any] | None = None,
    test: Iterable[Any] | None = None,
    ood: Mapping[str, Iterable[Any]] | None = None,
    **options: Unpack[ImportOptions],
) -> Imported:
    """Make a dataset of PyG ``Data`` objects, which all commands and functions then know by its name.

    The inputs are ``x``, ``z``, ``pos``, ``edge_attr`` and ``edge_weight``, where the objects have them, and the target
    is ``y``. Whole numbers are classes, booleans masks, all else numbers. Missing labels of masks and classes are -1 or
    nan, and count in no loss and no score.

    Args:
        name: ``<domain>/<name>``, such as ``mine/toy``; a name alone is put into the domain ``own``.
        data: All objects, divided by a rule (``split=``, at random by default); or a single object, whose nodes are
            divided, by ``train_mask``, ``val_mask`` and ``test_mask`` where it has them.
        train: The training graphs, if the splits are given.
        val: The validation graphs.
        test: The test graphs.
        ood: Name -> graphs of further test splits, such as larger graphs.
        **options: See :class:`~graphbench.imports.options.ImportOptions`.

    Returns:
        The dataset: its card, the file of the card, and notes on what was found.

    Raises:
        DataImportError: If the graphs cannot become a dataset; the message names the graph, the column and the remedy.
        ArgumentError: If an argument is unknown.

    Example:
        >>> import graphbench
        >>> graphbench.from_pyg("mine/toy", graphs, metric="f1")  # doctest: +SKIP
        >>> graphbench.train("mine/toy", "gin_small")  # doctest: +SKIP
    """
    settings = settings_of(options)
    return import_graphs(name, parts_or_all(data, train, val, test, ood, raw_graphs), settings, USUAL_INPUTS)


def parts_or_all(
    data: Any,
    train: Iterable[Any] | None,
    val: Iterable[Any] | None,
    test: Iterable[Any] | None,
    ood: Mapping[str, Iterable[Any]] | None,
    converted: Any,
) -> dict[str, list[RawGraph]] | list[RawGraph]:
    """Return split -> its graphs, or all graphs, from the arguments of a function of this room.

    Args:
        data: All graphs, or a single one.
        train: The training graphs.
        val: The validation graphs.
        test: The test graphs.
        ood: Name -> graphs of further splits.
        converted: Function (graphs, how messages name them) -> list of :class:`RawGraph`.

    Raises:
        DataImportError: If both, or neither, of ``data`` and the splits are given.
    """
    given = {"train": train, "val": val, "test": test, **(ood or {})}
    splits = {split: graphs for split, graphs in given.items() if graphs is not None}
    if (data is None) == (not splits):
        raise DataImportError("give either data= (all graphs, which a rule divides) or train=, val= and test=")
    if data is not None:
        graphs: list[RawGraph] = converted(data, "data")
        return graphs
    return {split: converted(graphs, split) for split, graphs in splits.items()}


def raw_graphs(graphs: Any, where: str) -> list[RawGraph]:
    """Return PyG objects as graphs with arrays.

    Args:
        graphs: A ``Data`` object, a dataset, or a list of ``Data``.
        where: How messages name the list.
    """
    if _is_data(graphs):
        return [_raw_graph(graphs, where)]
    converted_graphs = []
    for i, data in enumerate(graphs):
        if not _is_data(data):
            raise DataImportError(
                f"{where}[{i}] is a {type(data).__name__}; give torch_geometric.data.Data objects with edge_index "
                "(hetero data: to_homogeneous() first)"
            )
        converted_graphs.append(_raw_graph(data, f"{where}[{i}]"))
    return converted_graphs


def _is_data(value: Any) -> bool:
    return hasattr(value, "edge_index") and hasattr(value, "num_nodes") and hasattr(value, "to_dict")


def _raw_graph(data: Any, where: str) -> RawGraph:
    values: dict[str, NDArray[Any]] = {}
    for key, value in data.to_dict().items():
        if key not in _STRUCTURE and (array := array_of(value, f"{where}.{key}")) is not None:
            values[key] = array
    if data.edge_index is None:
        raise DataImportError(f"{where} has no edge_index; give [2, edges], empty for graphs without edges")
    given = data.edge_index
    edges = np.asarray(given.detach().cpu().numpy() if hasattr(given, "detach") else given)
    if edges.dtype.kind not in "iu":
        raise DataImportError(f"{where}.edge_index has the dtype {edges.dtype}; give whole numbers")
    return RawGraph(int(data.num_nodes), edges.astype(np.int64), values, where)


def array_of(value: Any, where: str) -> NDArray[Any] | None:
    """Return a value of a graph as an array with at least one axis; None for values that are no column.

    Args:
        value: A tensor, an array, a number, a text, or a list of numbers or texts.
        where: How messages name it.

    Raises:
        DataImportError: If it has more than two axes, or complex numbers.
    """
    if value is None or isinstance(value, Mapping):
        return None
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
        value = value.numpy() if str(value.layout) == "torch.strided" else None
    if value is None or (isinstance(value, Sequence) and not isinstance(value, str) and not len(value)):
        return None
    array = np.atleast_1d(np.asarray(value))
    if array.dtype.kind == "O":
        array = array.astype(str) if all(isinstance(item, str | None) for item in array.reshape(-1)) else array
    if array.dtype.kind not in "biufUO" or array.ndim > 2 or (array.dtype.kind == "O"):
        raise DataImportError(
            f"{where} is of the type {array.dtype} and shape {list(array.shape)}; give numbers or texts, [rows] or "
            "[rows, columns], or delete it from the graphs"
        )
    return array
