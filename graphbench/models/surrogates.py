"""Differentiable losses of combinatorial problems, for training without solutions.

A model's scores parametrise independent random choices: node ``v`` joins the set, or takes side 1, with probability
``p_v = sigmoid(score)``, or takes colour ``k`` with probability ``p_vk = softmax(scores)_k``. Each loss is the expected
number of violated constraints minus the expected objective (the principle of Karalias and Loukas 2020, "Erdos goes
neural"), summed over a graph and averaged over the graphs of the batch. At probabilities 0 and 1 the loss is the
objective itself.

===============  ====================================================================  ==============================
loss             loss of a graph, sums over nodes v and edges uv, each once            source
===============  ====================================================================  ==============================
independent_set  ``-sum p_v + beta * sum p_u p_v``                                     Karalias and Loukas 2020
vertex_cover     ``sum p_v + beta * sum (1 - p_u) (1 - p_v)``                          the same
clique           ``-sum p_v + beta * sum p_u p_v`` over pairs that are not joined      the same
max_cut          ``-sum (p_u (1 - p_v) + p_v (1 - p_u))``                              the same
clauses          ``sum_c prod_l (1 - p_l)`` over clauses c and their literals l, less      the same
                 the number of clauses
coloring         ``sum_uv sum_k p_uk p_vk + weight * sum_k max_v p_vk``                Schuetz et al. 2022; colours
                                                                                       are counted as by Jabrayilov
                                                                                       and Mutzel 2018
===============  ====================================================================  ==============================

A domain's problem names its loss; :func:`register_surrogate` adds one.

Independent sets: for ``beta`` >= 1 no loss is below minus the size of a largest set, and a loss of -x proves that a set
of x nodes exists; for ``beta`` > 1 only independent sets attain the minimum among sets. The form over pairs of nodes
(minus the sum of p_u p_v over non-adjacent pairs, plus ``beta`` times the sum over edges) is not offered: on a sparse
graph its minimum chooses all nodes.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from graphbench.core.errors import ConfigError
from graphbench.core.plugins import calling_module
from graphbench.core.registry import Registry
from graphbench.models.graphs import Layout, neighbour_sums
from graphbench.models.hashing import hashed
from graphbench.models.layers import full_precision


def independent_set_loss(scores: Tensor, batch: Data, beta: float = 1.0) -> Tensor:
    """Return minus the expected size of a set plus ``beta`` times the expected number of edges within it, a scalar.

    Args:
        scores: Logits ``[N]`` of joining the set; half precision is raised to float32.
        batch: A PyG ``Batch`` or ``Data`` on the same device, with both directions of every edge.
        beta: Weight of an edge within the set, 1 or more.

    Raises:
        ConfigError: If the scores have another shape, or ``beta`` is not a finite number of at least 1.
    """
    if not 1.0 <= beta < math.inf:
        raise ConfigError(f"beta = {beta}; give a number from 1 on: below, sets with edges in them have the least loss")
    _require_floats(scores)
    with full_precision(scores.device):
        layout, p = _layout(batch), torch.sigmoid(_checked(scores, batch, dimensions=1))
        edges_within = (p * neighbour_sums(p, layout)).sum() / 2
        return (beta * edges_within - p.sum()) / layout.num_graphs


def vertex_cover_loss(scores: Tensor, batch: Data, beta: float = 1.0) -> Tensor:
    """Return the expected size of a cover plus ``beta`` times the expected number of edges without a member, a scalar.

    It is the loss of the independent set of the other nodes, plus the mean number of nodes. Arguments and errors are
    those of :func:`independent_set_loss`; the scores are logits of joining the cover.
    """
    layout = _layout(batch)
    return independent_set_loss(-scores, batch, beta) + layout.num_nodes / layout.num_graphs


def clique_loss(scores: Tensor, batch: Data, beta: float = 1.0) -> Tensor:
    """Return minus the expected size of a set plus ``beta`` times the expected number of its pairs that are not joined.

    The sum over pairs that are not joined is the one over all pairs, ``((sum p_v)^2 - sum p_v^2) / 2``, less the one
    over edges, so no complement is made. Arguments and errors are those of :func:`independent_set_loss`.
    """
    if not 1.0 <= beta < math.inf:
        raise ConfigError(f"beta = {beta}; give a number from 1 on: below, sets that are no clique have the least loss")
    _require_floats(scores)
    with full_precision(scores.device):
        layout, p = _layout(batch), torch.sigmoid(_checked(scores, batch, dimensions=1))
        totals = p.new_zeros(layout.num_graphs).index_add(0, layout.graph, p)
        pairs = (totals.square().sum() - p.square().sum()) / 2
        joined = (p * neighbour_sums(p, layout)).sum() / 2
        return (beta * (pairs - joined) - p.sum()) / layout.num_graphs


def max_cut_loss(scores: Tensor, batch: Data) -> Tensor:
    """Return minus the expected number of edges between the sides, a scalar.

    Args:
        scores: Logits ``[N]`` of side 1; half precision is raised to float32.
        batch: A PyG ``Batch`` or ``Data`` on the same device, with both directions of every edge.

    Raises:
        ConfigError: If the scores have another shape.
    """
    _require_floats(scores)
    with full_precision(scores.device):
        layout, values = _layout(batch), _checked(scores, batch, dimensions=1)
        return -(torch.sigmoid(-values) * neighbour_sums(torch.sigmoid(values), layout)).sum() / layout.num_graphs


def coloring_loss(scores: Tensor, batch: Data, weight: float = 0.0) -> Tensor:
    """Return the expected number of edges within a colour plus ``weight`` times a count of colours, a scalar.

    Args:
        scores: Logits ``[N, K]`` of a node's colours; half precision is raised to float32.
        batch: A PyG ``Batch`` or ``Data`` on the same device, with both directions of every edge.
        weight: Weight of the number of colours, 0 or more; a colour counts with the probability of its most probable
            node. Below 1, an edge within a colour costs more than a further colour that avoids the edge.

    Raises:
        ConfigError: If the scores have another shape, or the weight is not a finite number of at least 0.
    """
    if not 0.0 <= weight < math.inf:
        raise ConfigError(f"weight = {weight}; give a number from 0 on: using fewer colours is the aim")
    _require_floats(scores)
    with full_precision(scores.device):
        layout, p = _layout(batch), torch.softmax(_checked(scores, batch, dimensions=2), dim=1)
        total = (p * neighbour_sums(p, layout)).sum() / 2
        if weight:
            total = total + weight * _largest_probabilities(p, layout).sum()
        return total / layout.num_graphs


def clauses_loss(scores: Tensor, batch: Data) -> Tensor:
    """Return minus the expected number of clauses that hold, a scalar.

    A clause is violated with the product of the probabilities that its literals are false; the products are sums of
    logarithms.

    Args:
        scores: Logits ``[N]`` of true; those of nodes that are clauses do not count. Half precision is raised.
        batch: A PyG ``Batch`` or ``Data`` on the same device: graphs of variables and clauses, with both directions of
            every edge, ``is_clause`` ``[N]`` and ``negated`` ``[E]``.

    Raises:
        ConfigError: If the scores have another shape, or the batch lacks a field.
    """
    _require_floats(scores)
    with full_precision(scores.device):
        values = _checked(scores, batch, dimensions=1)
        if getattr(batch, "is_clause", None) is None or getattr(batch, "negated", None) is None:
            if batch.edge_index.shape[1]:
                raise ConfigError("the batch has no is_clause and negated; the loss is one of variables and clauses")
            return values.sum() * 0
        is_clause, negated = batch.is_clause.reshape(-1) != 0, batch.negated.reshape(-1) != 0
        source, target = batch.edge_index
        violated = F.logsigmoid(torch.where(negated, values[source], -values[source]))
        violated = torch.where(is_clause[target], violated, 0)  # the reverse arcs say the same
        totals = values.new_zeros(len(values)).index_add(0, target, violated)
        holds = torch.where(is_clause, -torch.expm1(totals), 0)
        return -holds.sum() / (getattr(batch, "num_graphs", None) or 1)


@dataclass(frozen=True)
class Surrogate:
    """A loss of the table above.

    Attributes:
        loss: ``(scores, batch, **settings) -> scalar``; raises ``ConfigError`` for an invalid value of a setting.
        dimensions: Number of dimensions of the scores: 1 for ``[N]``, 2 for ``[N, K]``.
    """

    loss: Callable[..., Tensor]
    dimensions: int = 1

    @property
    def settings(self) -> tuple[str, ...]:
        """Names of the loss's settings."""
        return tuple(name for name in inspect.signature(self.loss).parameters if name not in ("scores", "batch"))


SURROGATES: Registry[Surrogate] = Registry("surrogate loss", ConfigError)


def register_surrogate(name: str, loss: Callable[..., Tensor], *, dimensions: int = 1) -> None:
    """Register a loss, which problems select by name (``Problem.surrogate``).

    Args:
        name: The name of the loss.
        loss: ``(scores, batch, **settings) -> scalar``.
        dimensions: Number of dimensions of the scores: 1 for ``[N]``, 2 for ``[N, K]``.

    Raises:
        PluginError: If the name is taken.
    """
    SURROGATES.add(name, Surrogate(loss, dimensions), calling_module())


register_surrogate("independent_set", independent_set_loss)
register_surrogate("vertex_cover", vertex_cover_loss)
register_surrogate("clique", clique_loss)
register_surrogate("max_cut", max_cut_loss)
register_surrogate("clauses", clauses_loss)
register_surrogate("coloring", coloring_loss, dimensions=2)

_ONE_NODE = Data(edge_index=torch.empty((2, 0), dtype=torch.long), num_nodes=1)


def surrogate_of(name: str, settings: Mapping[str, float]) -> Callable[[Tensor, Data], Tensor]:
    """Return a surrogate loss with its settings, ``(scores, batch) -> scalar``.

    Raises:
        ConfigError: If the loss is unknown, does not have a setting, or rejects the value of a setting.
    """
    surrogate = SURROGATES.find(name)
    for setting in settings:
        if setting not in surrogate.settings:
            available = ", ".join(surrogate.settings) or "no settings"
            raise ConfigError(f"training.task.surrogate.{setting}: the loss {name!r} has {available}")
    loss = partial(surrogate.loss, **settings)
    try:  # on a graph of one node, so that invalid settings raise an error before data are read
        loss(torch.zeros((1,) * surrogate.dimensions), _ONE_NODE)
    except ConfigError as error:
        raise ConfigError(f"training.task.surrogate: {error}") from error
    return loss


def _require_floats(scores: Tensor) -> None:
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        kind = scores.dtype if isinstance(scores, Tensor) else type(scores).__name__
        raise ConfigError(f"the scores are {kind}; give a tensor of floating-point numbers, a model's logits")


def _layout(batch: Data) -> Layout:
    if not batch.edge_index.is_cuda:  # on a GPU, the checks would synchronise every step
        _refuse_other_graphs(batch)
    return Layout.of(batch, directed=True)


def _refuse_other_graphs(batch: Data) -> None:
    """Raise an error for unknown nodes, loops, arcs without their reverse, and edge weights."""
    if getattr(batch, "edge_weight", None) is not None:
        raise ConfigError("the batch has edge_weight, but the problem is one of graphs without weights; delete it")
    source, target = batch.edge_index
    if not len(source):
        return
    nodes = int(batch.num_nodes or 0)
    lowest, highest = (int(end) for end in torch.aminmax(batch.edge_index))
    if lowest < 0 or highest >= nodes:
        wrong = lowest if lowest < 0 else highest
        raise ConfigError(f"edge_index names node {wrong} of a batch of {nodes} nodes; check how it was made")
    loops = source[source == target]
    if len(loops):
        raise ConfigError(f"node {int(loops[0])} of the batch is joined to itself; leave loops out")
    mixed = hashed(torch.arange(2 * nodes)).view(2, nodes)
    out_of, into = mixed[:, source], mixed[:, target]
    if (out_of[0] * into[1]).sum() != (out_of[1] * into[0]).sum():  # equal by chance with negligible odds
        raise ConfigError(
            "the graphs are directed: some arcs have no reverse; add them with torch_geometric.utils.to_undirected"
        )


def _checked(scores: Tensor, batch: Data, dimensions: int) -> Tensor:
    nodes = int(batch.num_nodes or 0)
    if scores.dim() != dimensions or scores.shape[0] != nodes or not scores.numel():
        form = f"[{nodes}]" if dimensions == 1 else f"[{nodes}, colours]"
        raise ConfigError(f"the scores have shape {list(scores.shape)}; give {form}, one row per node of the batch")
    return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores


def _largest_probabilities(p: Tensor, layout: Layout) -> Tensor:
    """Return the largest probability of each colour in each graph, ``[B, K]``."""
    graph = layout.graph[:, None].expand_as(p)
    return p.new_zeros(layout.num_graphs, p.shape[1]).scatter_reduce(0, graph, p, "amax", include_self=False)
