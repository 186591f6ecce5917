"""The call convention of all torch models of the suite, and the properties of a task that a model depends on.

A model is built for one task or for several; ``task_id`` names the task of a batch, and may be left out if the model
has only one task. A training step is ``batch = model.prepare(batch, id, training=True).to(device)``,
``outputs = model(batch, id)`` and the losses of :mod:`graphbench.models.losses`; scoring calls
:meth:`TaskModel.predict` instead of ``forward``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graphbench.catalog.features import Feature, Stage, select
from graphbench.core.errors import ConfigError
from graphbench.models.transfer import Part

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.data.batches.dataset import GraphDataset

MOST_GRAPHS = 1024
_ROWS = 2**17  # of a batch: each holds a few vectors of the hidden width

_T = TypeVar("_T")


@dataclass(frozen=True)
class TaskFeatures:
    """The properties of a task that a model depends on.

    Attributes:
        features: The features of the card.
        directed: Whether each column of ``edge_index`` is a separate arc.
        complete: Whether every pair of nodes is an edge.
        options: The settings of the card's task (``task.options``), and those of a run, which come first.
    """

    features: tuple[Feature, ...]
    directed: bool = False
    complete: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, card: Card, run_options: Mapping[str, Any] | None = None) -> TaskFeatures:
        """Return the properties of a card's task that a model depends on.

        Args:
            card: The card.
            run_options: The options of a run (``training.task``), which come first unless they are None.
        """
        given = {name: value for name, value in (run_options or {}).items() if value is not None}
        return cls(card.features, card.directed, card.complete, {**card.task.options, **given})


class Decoded(dict[str, Tensor]):
    """The raw outputs of a model by name, with the outputs of its earlier states, which share the loss in training.

    Attributes:
        earlier: The outputs of earlier states.
    """

    def __init__(self, outputs: Mapping[str, Tensor], earlier: Sequence[Mapping[str, Tensor]] = ()) -> None:
        super().__init__(outputs)
        self.earlier = tuple(earlier)


@dataclass
class Predicted:
    """The raw outputs of a model that follows hints.

    Attributes:
        outputs: Output name -> raw values ``[B, ...]``; permutations also have an entry ``<name>_mask``.
        hints: Hint name -> raw values of all steps ``[T - 1, B, ...]``; empty where hints are ignored.
        penalty: A further term of the loss, a scalar; None if the model has none.
    """

    outputs: dict[str, Tensor]
    hints: dict[str, Tensor]
    penalty: Tensor | None = None


class TaskModel(nn.Module):
    """Base class of the models of the suite.

    Attributes:
        built_for: Task id -> the properties of the task that the model was built for; empty if the model was not built
            from a configuration.
    """

    built_for: Mapping[str, TaskFeatures] = MappingProxyType({})

    def forward(self, batch: Any, task_id: str | None = None) -> Any:
        """Return the raw outputs for a batch.

        Args:
            batch: The batch that :meth:`prepare` returned, on the model's device.
            task_id: Id of the batch's task; None if the model has only one task.

        Returns:
            Models of graphs return a mapping from output name to tensor, models that follow hints return
            :class:`Predicted`, and models that write texts return logits.
        """
        raise NotImplementedError

    def predict(self, batch: Any, task_id: str | None = None) -> Any:
        """Return the outputs from which predictions are scored; by default the outputs of ``forward``."""
        return self(batch, task_id)

    def prepare(
        self,
        batch: Any,
        task_id: str | None = None,
        generator: torch.Generator | None = None,
        *,
        training: bool = False,
    ) -> Any:
        """Return a batch in the form that the model reads, before it is moved to a device; by default unchanged.

        Args:
            batch: A batch of the task's data, on the CPU.
            task_id: Id of the task; None if the model has only one.
            generator: Source of random numbers for inputs that are randomised; None (testing) leaves them unchanged.
            training: Whether the batch is used for training.
        """
        return batch

    def largest_batch(self, dataset: GraphDataset) -> int:
        """Return the number of samples of a split that fit the memory budget of scoring at once, at least one."""
        return graphs_at_once(dataset)

    def fit_normalisation(self, batch: Any, task_id: str | None = None) -> None:
        """Estimate means and standard deviations of scalars on training data; by default nothing is standardised."""

    def parts(self) -> list[Part]:
        """Return the parts that may be taken from another model, or given to it; by default none."""
        return []


def largest_batch(model: nn.Module, dataset: GraphDataset) -> int:
    """Return the number of samples of a split that fit the memory budget at once, for any model."""
    return model.largest_batch(dataset) if isinstance(model, TaskModel) else graphs_at_once(dataset)


Rows = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[Any]]
"""A function of the nodes and the edges of graphs (an undirected edge counts once): the rows that each graph takes."""


def graphs_at_once(dataset: GraphDataset, rows: Rows | None = None) -> int:
    """Return the number of graphs of a split that fit the memory budget at once: at most 1024, at least one.

    A batch holds at most 2^17 rows of all graphs, padded to the largest graph.

    Args:
        dataset: The split.
        rows: The rows that a processor takes, see :meth:`.Processor.rows`; the nodes and directed edges of a graph are
            counted in any case.
    """
    flat, selected = dataset.flat, dataset.graph_numbers
    nodes, edges = np.diff(flat.node_ptr), np.diff(flat.edge_ptr)
    if selected is not None:
        nodes, edges = nodes[selected], edges[selected]
    columns = edges if flat.schema.directed else 2 * edges
    taken = nodes + columns
    if rows is not None:
        taken = np.maximum(taken, rows(nodes.astype(np.int64), edges.astype(np.int64)))
    return max(1, min(MOST_GRAPHS, int(_ROWS // max(taken.max(), 1))))


_RESERVED = frozenset(dir(nn.ModuleDict()))


def module_key(name: str) -> str:
    """Return the id of a task, or the name of a feature, as the key of a submodule in an ``nn.ModuleDict``.

    A name that is an attribute of the dictionary (for example ``keys`` or ``type``) gets a trailing hyphen; no id or
    name of a feature ends in a hyphen.
    """
    key = name.replace("/", "__").replace(".", "_")
    return f"{key}-" if key in _RESERVED else key


def predicted_features(features: Iterable[Feature]) -> tuple[Feature, ...]:
    """Return the output features that a model predicts.

    Raises:
        ConfigError: If there are none.
    """
    outputs = select(features, Stage.OUTPUT)
    if not outputs:
        raise ConfigError("the features hold no output, so there is nothing to predict")
    return outputs


def of_task(parts: Mapping[str, _T], task_id: str | None) -> _T:
    """Return the part of a model that belongs to a task.

    Args:
        parts: Task id -> part.
        task_id: The id of the task; None if the model has only one task.

    Raises:
        ConfigError: If the model was not built for the task, or ``task_id`` is None and the model has several tasks.
    """
    if task_id is None and len(parts) == 1:
        return next(iter(parts.values()))
    if task_id is None:
        raise ConfigError(f"the model has {len(parts)} tasks; pass task_id, one of {', '.join(parts)}")
    if task_id not in parts:
        raise ConfigError(f"the model was not built for {task_id!r}; it knows {', '.join(parts)}")
    return parts[task_id]
