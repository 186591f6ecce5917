"""What kinds of models ask of a task, as far as features tell. This module loads no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphbench.catalog.features import Feature, Kind, Location, Stage, node_marks, select
from graphbench.core.errors import ConfigError

if TYPE_CHECKING:
    from graphbench.models.config import ModelConfig


def require_fit(config: ModelConfig, features: Sequence[Feature], directed: bool) -> None:
    """Refuse settings of a model of graphs that a task gives no meaning.

    Args:
        config: The configuration.
        features: The features of the task.
        directed: Whether the graphs of the task are directed.

    Raises:
        ConfigError: If there is one.
    """
    outputs = select(features, Stage.OUTPUT)
    if config.pair_scores and not any(f.location is Location.PAIR for f in outputs):
        raise ConfigError("pair_scores is set, but the task asks for no links; set it to false")
    if config.inverse_edges and not directed:
        raise ConfigError("inverse_edges is set, but the graphs are undirected; set it to false")
    if config.degrees == "both" and not directed:
        raise ConfigError("degrees is 'both', but the graphs are undirected, so nodes have one degree; set it to true")


def require_readout(readout: str, features: Sequence[Feature]) -> None:
    """Refuse a readout of marked nodes for a task without marks or without outputs of graphs.

    Raises:
        ConfigError: If it reads marks, and there are none to read or nothing to predict from them.
    """
    if readout == "pooled":
        return
    if not node_marks(features):
        raise ConfigError(f"readout {readout!r} needs an input of the type mask_one, and there is none; use 'pooled'")
    if not select(features, Stage.OUTPUT, Location.GRAPH):
        raise ConfigError(f"readout {readout!r} is for outputs of graphs, and there are none; use 'pooled'")


def require_values(features: Sequence[Feature]) -> None:
    """Raise an error for a task that asks for texts, which stand for structures too.

    Raises:
        ConfigError: With the name of the output.
    """
    for feature in select(features, Stage.OUTPUT):
        if feature.kind is Kind.TEXT:
            raise ConfigError(
                f"output feature {feature.name!r} is a text, which models of graphs do not write; choose a "
                "configuration whose kind does, such as text, builder or speller"
            )


def require_texts(task_id: str, features: Sequence[Feature]) -> None:
    """Raise an error for a task that does not predict one text of a graph from texts of the graph.

    Raises:
        ConfigError: If the features have another output than one text, or no text as input.
    """
    texts = [f for f in features if f.kind is Kind.TEXT and f.location is Location.GRAPH]
    outputs = select(features, Stage.OUTPUT)
    if len(outputs) != 1 or outputs[0] not in texts or not select(texts, Stage.INPUT):
        raise ConfigError(f"models of kind text answer a text with a text, which {task_id} does not ask for")


def require_structures(kind: str, task_id: str, features: Sequence[Feature]) -> None:
    """Raise an error for a task with outputs that are no structures, whose references are texts.

    Raises:
        ConfigError: With the names of these outputs.
    """
    others = [f.name for f in select(features, Stage.OUTPUT) if f.kind is not Kind.TEXT]
    if others:
        raise ConfigError(
            f"models of kind {kind} generate structures, and {task_id} asks for {', '.join(others)}; choose a model of "
            "another kind, such as gin_small"
        )


def require_costs(features: Sequence[Feature]) -> None:
    """Raise an error for a task whose outputs are not two or more scalars of graphs.

    Raises:
        ConfigError: With the names of the outputs.
    """
    outputs = select(features, Stage.OUTPUT)
    wrong = [f for f in outputs if (f.location, f.kind, f.width) != (Location.GRAPH, Kind.SCALAR, 1)]
    if wrong or len(outputs) < 2:
        raise ConfigError(
            f"the outputs are {', '.join(f.name for f in outputs)}; models of kind selector choose between two or "
            "more outputs that are scalars of graphs: the costs of algorithms, as in a task of kind select"
        )
