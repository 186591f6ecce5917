"""Training on one large graph in parts: some nodes at a time, with samples of their neighbourhoods.

This is the sampling of GraphSAGE (Hamilton, Ying and Leskovec, 2017, section 3.1 and algorithm 2): of every node that
is reached, a number of incoming arcs is drawn without replacement, hop by hop. Batches have the form of PyG's
``NeighborLoader``: the nodes whose outputs are learned come first, and ``batch.seeds`` says how many they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Location, Stage
from graphbench.catalog.schema import Schema
from graphbench.core.arguments import whole_number
from graphbench.core.errors import ArgumentError, ConfigError
from graphbench.core.kernels import kernel
from graphbench.core.rng import below, seed
from graphbench.data.batches.batching import FlatGraphs, make_batch
from graphbench.training.parts import why_not_in_parts
from graphbench.training.settings import NeighbourSettings

if TYPE_CHECKING:
    from torch_geometric.data import Batch

    from graphbench.catalog.cards import Card
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.training.config import RunConfig

Ints = NDArray[np.int64]


@kernel
def incoming(senders: NDArray[np.int32], receivers: NDArray[np.int32], nodes: int) -> tuple[Ints, NDArray[np.int32]]:
    """Return the arcs by receiver.

    Args:
        senders: int32 ``[E]``.
        receivers: int32 ``[E]``.
        nodes: Number of nodes.

    Returns:
        ``ptr`` int64 ``[nodes + 1]`` and ``arcs`` int32 ``[E]``: the arcs into node ``v``, in their order, are
        ``arcs[ptr[v]:ptr[v + 1]]``.
    """
    ptr = np.zeros(nodes + 1, np.int64)
    for receiver in receivers:
        ptr[receiver + 1] += 1
    for v in range(nodes):
        ptr[v + 1] += ptr[v]
    place, arcs = ptr[:-1].copy(), np.empty(len(senders), np.int32)
    for arc in range(len(senders)):
        receiver = receivers[arc]
        arcs[place[receiver]] = arc
        place[receiver] += 1
    return ptr, arcs


@kernel
def neighbourhood(
    ptr: Ints,
    arcs: NDArray[np.int32],
    senders: NDArray[np.int32],
    chosen: Ints,
    per_hop: Ints,
    key: np.uint64,
    number: int,
    place: NDArray[np.int32],
) -> tuple[Ints, Ints, NDArray[np.int32], NDArray[np.int32]]:
    """Draw the neighbourhood of some nodes.

    Args:
        ptr: From :func:`incoming`.
        arcs: From :func:`incoming`.
        senders: int32 ``[E]``.
        chosen: The nodes, each once.
        per_hop: Most arcs per node that is reached in a hop.
        key: Key of the random numbers.
        number: Number of the batch, part of the key.
        place: int32 ``[nodes]``, scratch memory: every value is -1 before the call, and again after it.

    Returns:
        ``nodes`` int64, the chosen nodes first; ``taken`` int64, the arcs; ``senders`` and ``receivers`` int32, the
        ends of the arcs as positions in ``nodes``. Receivers ascend.
    """
    nodes, taken = [np.int64(0) for _ in range(0)], [np.int64(0) for _ in range(0)]
    sources, targets = [np.int32(0) for _ in range(0)], [np.int32(0) for _ in range(0)]
    for node in chosen:
        place[node] = len(nodes)
        nodes.append(node)
    first = 0
    drawn = np.empty(per_hop.max(), np.int64)
    for hop in range(len(per_hop)):
        last = len(nodes)
        for at in range(first, last):
            node = nodes[at]
            begin, degree = ptr[node], ptr[node + 1] - ptr[node]
            count = min(degree, per_hop[hop])
            if count < degree:  # Floyd's sampling without replacement
                state = seed(key, number, int(node), hop)
                for k in range(count):
                    top = degree - count + k
                    pick = np.int64(below(state, top + 1))
                    for earlier in range(k):
                        if drawn[earlier] == pick:
                            pick = top
                            break
                    drawn[k] = pick
            for k in range(count):
                arc = arcs[begin + (k if count == degree else drawn[k])]
                sender = senders[arc]
                if place[sender] < 0:
                    place[sender] = len(nodes)
                    nodes.append(np.int64(sender))
                taken.append(np.int64(arc))
                sources.append(place[sender])
                targets.append(np.int32(at))
        first = last
    reached = np.array(nodes)
    place[reached] = -1
    return reached, np.array(taken), np.array(sources), np.array(targets)


def require_all_arcs(config: RunConfig, cards: Iterable[Card]) -> None:
    """Refuse datasets that have no parts, and inputs that a model computes from all arcs, where it is trained on parts.

    Raises:
        ConfigError: If there are any.
    """
    if config.training.neighbours is None:
        return
    for card in cards:
        require_parts(card)
    positional = getattr(config.model, "positional", None)
    computed = {
        "model.inverse_edges=false": getattr(config.model, "inverse_edges", False),
        "model.graph_size=false": getattr(config.model, "graph_size", False),
        "model.positional.type=none": positional is not None and positional.type != "none",
    }
    without = [change for change, used in computed.items() if used]
    if without:
        raise ConfigError(
            "training.neighbours gives the model samples of the arcs that lead to a node of one large directed graph, "
            f"and some inputs of {config.model_name} need all arcs; set {', '.join(without)}, or leave "
            "training.neighbours out"
        )


def require_parts(card: Card) -> None:
    """Refuse a dataset that cannot be trained on in parts, as far as its card tells.

    Raises:
        ConfigError: With the reason.
    """
    if reason := why_not_in_parts(card):
        raise _refusal(reason, card)


def _refusal(reason: str, card: Card) -> ConfigError:
    return ConfigError(
        f"training.neighbours trains on parts of one large directed graph whose nodes have outputs, but {reason} "
        f"({card.address}); leave training.neighbours out"
    )


class NeighbourBatches:
    """Batches of some nodes of one large graph, with samples of their neighbourhoods.

    Args:
        dataset: A split of one directed graph.
        settings: How much of it a batch has.

    Raises:
        ConfigError: If the split has several graphs, undirected ones, or outputs that are not of nodes.
    """

    def __init__(self, dataset: GraphDataset, settings: NeighbourSettings) -> None:
        card = dataset.card
        if len(dataset) != 1:
            raise _refusal(f"its split {dataset.split} has {len(dataset)} graphs", card)
        if dataset.is_changed:
            raise _refusal("a transform changes it", card)
        require_parts(card)
        self.settings = settings
        numbers = dataset.graph_numbers
        graph = 0 if numbers is None else int(numbers[0])
        self._flat = flat = dataset.flat
        self._rows = {
            Location.NODE: slice(int(flat.node_ptr[graph]), int(flat.node_ptr[graph + 1])),
            Location.EDGE: slice(int(flat.edge_ptr[graph]), int(flat.edge_ptr[graph + 1])),
            Location.GRAPH: slice(graph, graph + 1),
        }
        edges = np.asarray(flat.edges[self._rows[Location.EDGE]])
        self._senders = np.ascontiguousarray(edges[:, 0], np.int32)
        self.nodes = self._rows[Location.NODE].stop - self._rows[Location.NODE].start
        self._degrees = np.stack([np.bincount(ends, minlength=self.nodes) for ends in edges.T], axis=1)
        self._ptr, self._arcs = incoming(self._senders, np.ascontiguousarray(edges[:, 1], np.int32), self.nodes)
        self._place = np.full(self.nodes, -1, np.int32)

    def __len__(self) -> int:
        """Return the number of batches in which every node is learned once; the last batch may be smaller."""
        return -(-self.nodes // self.settings.nodes)

    def batches(self, seed: int, start: int = 0, share: tuple[int, int] = (0, 1)) -> Iterator[Batch | None]:
        """Yield batches without end; they are a function of (seed, number of the batch) alone.

        Args:
            seed: Seed of the order of the nodes, and of the draws.
            start: Number of the first batch.
            share: ``(rank, parts)``: learn every ``parts``-th node of each batch, from the ``rank``-th on. A share of
                no nodes is None.
        """
        seed, start = whole_number("seed", seed, 0), whole_number("start", start, 0)
        number, size, order, epoch = start, self.settings.nodes, np.empty(0, np.int64), -1
        while True:
            if number // len(self) != epoch:
                epoch = number // len(self)
                random = np.random.Generator(np.random.Philox(key=seed, counter=epoch << 128))
                order = random.permutation(self.nodes)
            first = number % len(self) * size
            chosen = order[first : first + size][share[0] :: share[1]]
            yield self.batch(chosen, seed, number) if len(chosen) else None
            number += 1

    def batch(self, chosen: Ints, seed: int = 0, number: int = 0) -> Batch:
        """Return the batch in which some nodes are learned.

        Args:
            chosen: int64, the nodes, each once.
            seed: Seed of the draws.
            number: Number of the batch.

        Returns:
            A PyG batch of one graph. ``seeds`` is the number of chosen nodes, which are the first ones; outputs have
            rows of these alone, and inputs of all nodes; ``nodes`` int64 has the numbers of all nodes in the graph, and
            ``whole_degrees`` int64 ``[N, 2]`` how many arcs leave each of them, and arrive there, in the graph.
        """
        import torch

        from graphbench.models.graphs import WHOLE_DEGREES

        chosen = np.asarray(chosen, np.int64)
        if not len(chosen) or chosen.min() < 0 or chosen.max() >= self.nodes or len(np.unique(chosen)) < len(chosen):
            raise ArgumentError(
                f"chosen must be different nodes from 0 to {self.nodes - 1}, at least one; got {chosen}"
            )
        nodes, taken, sources, targets = neighbourhood(
            self._ptr, self._arcs, self._senders, chosen,
            np.array(self.settings.per_hop, np.int64), np.uint64(seed), number, self._place,
        )  # fmt: skip
        rows = {Location.NODE: nodes, Location.EDGE: taken, Location.GRAPH: np.zeros(1, np.int64)}
        flat, values = self._flat, {}
        for feature in flat.features:
            values[feature.name] = flat.values[feature.name][self._rows[feature.location]][rows[feature.location]]
        part = FlatGraphs(
            np.array([0, len(nodes)]),
            np.array([0, len(taken)]),
            np.stack([sources, targets], axis=1),
            values,
            Schema(flat.features, directed=True, packed=flat.schema.packed),
        )
        batch = make_batch(part, slice(0, 1))
        for feature in flat.features:
            if feature.stage is Stage.OUTPUT:
                batch[feature.name] = batch[feature.name][: len(chosen)]
        if "y" in batch:
            batch.y = batch.y[: len(chosen)]
        batch.seeds, batch.nodes = len(chosen), torch.from_numpy(nodes)
        batch[WHOLE_DEGREES] = torch.from_numpy(self._degrees[nodes])
        return batch
