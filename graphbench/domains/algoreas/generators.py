"""The registered generators of algorithmic reasoning: structure first, then features and labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.generators import CompileJob, Generator, StatisticsFunction
from graphbench.domains.algoreas import checks
from graphbench.domains.algoreas.graph_models import check_models, pack_mixture, pack_models

_SHARD_NODES = 262_144  # nodes per unit of work: about 0.1 s for most tasks
Keys = tuple[np.uint64, NDArray[np.int64], NDArray[np.int64]]
Labelled = tuple[NDArray[Any], dict[str, NDArray[Any]]]
LabelFunction = Callable[[Any, Keys, NDArray[np.int64], NDArray[np.int32]], Labelled]


class GraphParameters(StrictModel):
    """The distribution of the graphs (paper tables 14 and 15).

    Attributes:
        nodes: Number of nodes of every graph.
        models: Random graph model -> its parameters (table 14).
        mixture: Random graph model -> its share (table 15), normalised to 1.
        connect: Edges that join a component to the rest of its graph (the paper's ``c``).
        copies: Consecutive samples that are one graph, each with another random numbering of the nodes. Weights and
            other random features are drawn for every copy.
        directed: Whether edges are arcs; follows from the task, and the card must say the same.
    """

    directed: ClassVar[bool] = False

    nodes: int = Field(ge=2, le=65_535)
    models: dict[str, dict[str, Any]]
    mixture: dict[str, float]
    connect: int = Field(default=1, ge=1)
    copies: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _check(self) -> GraphParameters:
        check_models(self.models, self.mixture, self.nodes)
        return self


class AcyclicParameters(GraphParameters):
    """Directed graphs without cycles."""

    directed: ClassVar[bool] = True


class CliqueParameters(GraphParameters):
    """Graphs, and how far to search for a maximum clique.

    Attributes:
        node_limit: Branch-and-bound nodes per graph before the best clique found is taken, unproved.
    """

    node_limit: int = Field(gt=0)


def _generate(
    label: LabelFunction,
    parameters: GraphParameters,
    key: np.uint64,
    indices: NDArray[np.int64],
    attempts: NDArray[np.int64],
) -> Samples:
    """Draw the structure of every sample and let ``label`` add edges as stored, features and labels."""
    from graphbench.domains.algoreas.random_graphs import draw_graphs

    edge_ptr, drawn, model = draw_graphs(
        key,
        indices,
        attempts,
        parameters.nodes,
        pack_mixture(parameters.mixture),
        pack_models(parameters.models),
        parameters.connect,
        parameters.copies,
    )
    edges, values = label(parameters, (key, indices, attempts), edge_ptr, drawn)
    nodes = np.full(len(indices), parameters.nodes, np.int64)
    return Samples(nodes, np.diff(edge_ptr), edges, {**values, "model": model})


def _topological_sort(
    p: GraphParameters, keys: Keys, edge_ptr: NDArray[np.int64], edges: NDArray[np.int32]
) -> Labelled:
    from graphbench.domains.algoreas.topological_sort import label_shard

    arcs, priority, rank = label_shard(*keys, p.nodes, edge_ptr, edges)
    return arcs, {"priority": priority, "rank": rank}


def _mst(p: GraphParameters, keys: Keys, edge_ptr: NDArray[np.int64], edges: NDArray[np.int32]) -> Labelled:
    from graphbench.domains.algoreas.mst import label_shard

    weight, in_tree = label_shard(*keys, p.nodes, edge_ptr, edges)
    return edges, {"weight": weight, "in_tree": in_tree}


def _bridges(p: GraphParameters, keys: Keys, edge_ptr: NDArray[np.int64], edges: NDArray[np.int32]) -> Labelled:
    from graphbench.domains.algoreas.bridges import label_shard

    return edges, {"is_bridge": label_shard(*keys, p.nodes, edge_ptr, edges)}


def _steiner_tree(p: GraphParameters, keys: Keys, edge_ptr: NDArray[np.int64], edges: NDArray[np.int32]) -> Labelled:
    from graphbench.domains.algoreas.steiner_tree import label_shard

    weight, is_terminal, in_tree = label_shard(*keys, p.nodes, edge_ptr, edges)
    return edges, {"weight": weight, "is_terminal": is_terminal, "in_tree": in_tree}


def _max_clique(p: GraphParameters, keys: Keys, edge_ptr: NDArray[np.int64], edges: NDArray[np.int32]) -> Labelled:
    from graphbench.domains.algoreas.max_clique import label_shard

    assert isinstance(p, CliqueParameters)
    in_clique, proved = label_shard(*keys, p.nodes, edge_ptr, edges, p.node_limit)
    return edges, {"in_clique": in_clique, "proved": proved}


def _clique_membership(
    p: GraphParameters, keys: Keys, edge_ptr: NDArray[np.int64], edges: NDArray[np.int32]
) -> Labelled:
    from graphbench.domains.algoreas.clique_membership import label_shard

    assert isinstance(p, CliqueParameters)
    is_member, size, proved = label_shard(*keys, p.nodes, edge_ptr, edges, p.node_limit)
    return edges, {"is_member": is_member, "clique_size": size.astype(np.float32), "proved": proved}


def _flow(p: GraphParameters, keys: Keys, edge_ptr: NDArray[np.int64], edges: NDArray[np.int32]) -> Labelled:
    from graphbench.domains.algoreas.flow import label_shard

    capacity, source, sink, value = label_shard(*keys, p.nodes, edge_ptr, edges)
    masks = {"source": _mask_one(source, p.nodes), "sink": _mask_one(sink, p.nodes)}
    return edges, {"capacity": capacity, **masks, "value": value}


def _max_matching(p: GraphParameters, keys: Keys, edge_ptr: NDArray[np.int64], edges: NDArray[np.int32]) -> Labelled:
    from graphbench.domains.algoreas.max_matching import label_shard

    weight, matched = label_shard(*keys, p.nodes, edge_ptr, edges)
    return edges, {"weight": weight, "matched": matched}


def _mask_one(chosen: NDArray[np.int32], nodes: int) -> NDArray[np.uint8]:
    """Return uint8 ``[S * nodes]`` with one 1 per graph, at the chosen node."""
    mask = np.zeros((len(chosen), nodes), np.uint8)
    mask[np.arange(len(chosen)), chosen] = 1
    return mask.reshape(-1)


def _shard_size(parameters: GraphParameters) -> int:
    # The work of most labels grows faster than the number of nodes: smaller shards keep progress and resuming fine.
    return max(4, _SHARD_NODES * 16 // parameters.nodes**2)


def _clique_shard_size(parameters: GraphParameters) -> int:
    slower = 1 if parameters.nodes <= 64 else 4 if parameters.nodes <= 128 else 16
    return max(1, _shard_size(parameters) // slower)


def _statistics(output: str, parameters: GraphParameters, samples: Samples) -> dict[str, NDArray[np.float64]]:
    """Return the mean of the label per graph, and the graph's average degree."""
    values = samples.values[output].astype(np.float64)
    if len(values) == len(samples):
        label = values
    else:
        ptr = samples.node_ptr if len(values) == samples.node_ptr[-1] else samples.edge_ptr
        label = np.add.reduceat(values, ptr[:-1]) / np.diff(ptr)
    columns = {f"mean_{output}": label}
    if "proved" in samples.values:
        columns["proved"] = samples.values["proved"].astype(np.float64)
    return columns


def _clique_statistics(parameters: CliqueParameters, samples: Samples) -> dict[str, NDArray[np.float64]]:
    """Return the usual statistics, and which graphs have several maximum cliques; nan where that is not proved."""
    from graphbench.domains.algoreas.clique_membership import several_cliques

    several = several_cliques(
        parameters.nodes,
        samples.edge_ptr,
        samples.edges.astype(np.int32),
        samples.values["in_clique"],
        samples.values["proved"],
        parameters.node_limit,
    )
    return {**_statistics("in_clique", parameters, samples), "several": several}


def _membership_statistics(parameters: CliqueParameters, samples: Samples) -> dict[str, NDArray[np.float64]]:
    """Return the usual statistics, the size of a maximum clique, and which graphs have several maximum cliques."""
    size, proved = samples.values["clique_size"].astype(np.float64), samples.values["proved"] != 0
    members = np.add.reduceat(samples.values["is_member"].astype(np.int64), samples.node_ptr[:-1])
    return {
        **_statistics("is_member", parameters, samples),
        "clique_size": size,
        "several": np.where(proved, members > size, np.nan),
    }


def compile_structure(parameters: GraphParameters) -> None:
    """Compile the kernel that draws graphs, by drawing one."""
    one = np.zeros(1, np.int64)
    _generate(lambda *_: (np.empty((0, 2), np.int32), {}), parameters, np.uint64(0), one, one)


def compile_labels(label: LabelFunction, nodes: int, parameters: GraphParameters) -> None:
    """Compile the kernel that labels graphs, by labelling a path of a few nodes."""
    ids = np.arange(nodes, dtype=np.int32)
    path = np.stack([ids[:-1], ids[1:]], axis=1)
    one = np.zeros(1, np.int64)
    keys = np.uint64(0), one, one
    label(parameters.model_copy(update={"nodes": nodes}), keys, np.array([0, len(path)]), path)


def _make(
    name: str,
    label: LabelFunction,
    output: str,
    parameters: type[GraphParameters] = GraphParameters,
    shard_size: Callable[[Any], int] = _shard_size,
    label_kernels: Mapping[str, int] = MappingProxyType({"label_shard": 16}),  # kernel -> nodes of a graph it labels
    version: int = 1,
    statistics: StatisticsFunction | None = None,
) -> Generator:
    package = __package__
    structure = CompileJob(f"{package}.random_graphs:draw_graphs", compile_structure)
    labels = (
        CompileJob(f"{package}.{name}:{kernel}", partial(compile_labels, label, nodes))
        for kernel, nodes in label_kernels.items()
    )
    return Generator(
        name=f"algoreas.{name}",
        version=version,
        parameters=parameters,
        generate=partial(_generate, label),
        check=partial(checks.check, checks.LABEL_CHECKS[name]),
        statistics=statistics or partial(_statistics, output),
        shard_size=shard_size,
        compile_jobs=(*labels, structure),
    )


GENERATORS: Mapping[str, Generator] = {
    "topological_sort": _make("topological_sort", _topological_sort, "rank", AcyclicParameters),
    "mst": _make("mst", _mst, "in_tree"),
    "bridges": _make("bridges", _bridges, "is_bridge"),
    "steiner_tree": _make("steiner_tree", _steiner_tree, "in_tree"),
    "max_clique": _make(
        "max_clique",
        _max_clique,
        "in_clique",
        CliqueParameters,
        _clique_shard_size,
        {"search_clique": 65, "_label_small": 16},
        version=2,
        statistics=_clique_statistics,
    ),
    "clique_membership": _make(
        "clique_membership",
        _clique_membership,
        "is_member",
        CliqueParameters,
        _clique_shard_size,
        {"extend_to_union": 65, "_label_small": 16},
        statistics=_membership_statistics,
    ),
    "flow": _make("flow", _flow, "value"),
    "max_matching": _make("max_matching", _max_matching, "matched"),
}
