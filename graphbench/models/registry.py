"""The registry of architectures, by the ``kind`` of a configuration's model section. This module loads no torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from graphbench.catalog.features import Feature, Kind, Location, Stage, select
from graphbench.core.errors import ConfigError, PluginError, UnknownModel
from graphbench.core.plugins import calling_module
from graphbench.core.registry import Registry
from graphbench.data.components.domain import find
from graphbench.models.builder.config import BuilderModelConfig, SpellerModelConfig
from graphbench.models.config import ModelConfig
from graphbench.models.epistemic.config import EpistemicModelConfig
from graphbench.models.language_config import TextModelConfig
from graphbench.models.search.config import SearchModelConfig
from graphbench.models.stepwise.config import StepwiseModelConfig
from graphbench.models.story.config import StoryModelConfig
from graphbench.models.tabular.config import SelectorModelConfig, TabularModelConfig
from graphbench.models.trajectory.config import TrajectoryModelConfig

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.models.base import TaskFeatures, TaskModel

DEFAULT_KIND = "graph"
_BYTES_PER_NUMBER = 4


def _unchanged(config: Any, tasks: Mapping[str, TaskFeatures], batches: Mapping[str, Iterable[Any]]) -> Any:
    return config


def _unknown(config: Any, card: Card) -> bool:
    return True


def _outputs(card: Card) -> list[Feature]:
    return list(select(card.features, Stage.OUTPUT))


def _predicts(config: Any, card: Card) -> bool:
    """Return whether a dataset asks for values, and not for texts, which stand for structures too."""
    return all(feature.kind is not Kind.TEXT for feature in _outputs(card))


def _fits_graphs(config: ModelConfig, card: Card) -> bool:
    """Return whether a dataset has what the settings of a model of graphs ask for."""
    outputs = _outputs(card)
    marked = any(f.kind is Kind.MASK_ONE and f.location is Location.NODE for f in select(card.features, Stage.INPUT))
    asks_of_graphs = any(f.location is Location.GRAPH for f in outputs)
    return (
        _predicts(config, card)
        and (config.readout == "pooled" or (marked and asks_of_graphs))
        and (not config.pair_scores or any(f.location is Location.PAIR for f in outputs))
        and (card.directed or not (config.inverse_edges or config.degrees == "both"))
    )


def _generates(config: Any, card: Card) -> bool:
    """Return whether a dataset asks for structures alone, whose references are texts."""
    return all(feature.kind is Kind.TEXT for feature in _outputs(card))


def _writes(config: Any, card: Card) -> bool:
    """Return whether a dataset asks for a text that answers a text."""
    reads = any(feature.kind is Kind.TEXT for feature in select(card.features, Stage.INPUT))
    return reads and [feature.kind for feature in _outputs(card)] == [Kind.TEXT]


def _solves(config: Any, card: Card) -> bool:
    return "problem" in card.task.options


def _searches(config: SearchModelConfig, card: Card) -> bool:
    return _solves(config, card) and config.method in find("problem", card.task.options["problem"]).searches


def _selects(config: Any, card: Card) -> bool:
    """Return whether a dataset asks for several numbers of a graph, such as the run times of solvers."""
    outputs = _outputs(card)
    return len(outputs) > 1 and all((f.location, f.kind) == (Location.GRAPH, Kind.SCALAR) for f in outputs)


@dataclass(frozen=True)
class Architecture:
    """One kind of model.

    Attributes:
        kind: The value of ``model.kind`` in a configuration.
        config: The schema of the model section, with an attribute ``estimated_size`` if its models may be large.
        build: Takes a configuration and the tasks (task id -> properties of the task), and returns a model initialised
            from torch's generator. It raises ``ConfigError`` for tasks that the model cannot serve.
        learner: The learner that trains the models: ``torch``, ``tabular``, ``search`` (nothing is trained), or
            ``module:Class`` of another ``LearnerClass``.
        has_steps: Whether the models are trained in optimizer steps, which are then the budget of a search. The budget
            of other models is the number of training samples.
        serves: Takes a configuration and a card, and returns whether the models can serve the dataset, as far as can be
            told without torch; ``build`` has the last word. Without it nothing is known, and they are taken to.
        complete: Returns the configuration completed with values from the training data, for example a vocabulary. It
            takes the tasks and, by task id, batches of the training split. A completed configuration does not change.
    """

    kind: str
    config: type[BaseModel]
    build: Callable[[Any, Mapping[str, TaskFeatures]], TaskModel]
    complete: Callable[[Any, Mapping[str, TaskFeatures], Mapping[str, Iterable[Any]]], Any] = _unchanged
    learner: str = "torch"
    has_steps: bool = True
    serves: Callable[[Any, Card], bool] = _unknown

    @property
    def completes(self) -> bool:
        """Whether configurations are completed with values from the training data."""
        return self.complete is not _unchanged


_ARCHITECTURES: Registry[Architecture] = Registry("kind of model", UnknownModel)


def register_architecture(new: Architecture) -> None:
    """Make a kind of model available to configurations.

    Raises:
        PluginError: If another architecture has the same kind or the same configuration class.
    """
    module = calling_module()
    for kind, registered, _ in _ARCHITECTURES.registered():
        if registered.config is new.config and kind != new.kind:
            raise PluginError(f"the kind of model {kind!r} has the configuration {registered.config.__name__} already")
    _ARCHITECTURES.add(new.kind, new, module)


def architectures() -> tuple[Architecture, ...]:
    """Return all kinds of models, the built-in ones first."""
    return tuple(_ARCHITECTURES.values())


def architecture(kind: str) -> Architecture:
    """Return a kind of model.

    Raises:
        UnknownModel: If the kind is unknown; the message suggests the nearest kind.
    """
    return _ARCHITECTURES.find(kind)


def architecture_of(config: BaseModel) -> Architecture:
    """Return the kind of model that a configuration describes.

    Raises:
        UnknownModel: If no architecture has configurations of this class.
    """
    for registered in _ARCHITECTURES.values():
        if type(config) is registered.config:
            return registered
    raise UnknownModel(f"{type(config).__name__} is the configuration of no model; register_architecture adds one")


def build_task_model(config: BaseModel, tasks: Mapping[str, TaskFeatures]) -> TaskModel:
    """Return a newly initialised model for one task, or for several tasks that share its processor.

    Args:
        config: The configuration, of any kind.
        tasks: Task id -> properties of the task that the model depends on.

    Raises:
        UnknownModel: If no processor has the configuration's name.
        ConfigError: If the configuration does not fit the tasks, or the model does not fit into memory.
    """
    registered = architecture_of(config)
    if not tasks:
        raise ConfigError("a model needs at least one task")
    size, memory = getattr(config, "estimated_size", 0) * _BYTES_PER_NUMBER, _memory_bytes()
    if size > memory:
        raise ConfigError(
            f"the model's weights would take at least {size / 1e9:,.0f} GB, this machine has {memory / 1e9:,.0f} GB "
            "of memory; lower model.hidden or model.layers"
        )
    model = registered.build(config, tasks)
    model.built_for = dict(tasks)
    return model


def _memory_bytes() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # not available on every system
        return float("inf")


# The built-in architectures. Their modules load torch, so they are imported when a model is built.


def _graph(config: ModelConfig, tasks: Mapping[str, TaskFeatures]) -> TaskModel:
    from graphbench.models.joint import build_graph_model

    return build_graph_model(config, tasks)


def _trajectory(config: TrajectoryModelConfig, tasks: Mapping[str, TaskFeatures]) -> TaskModel:
    from graphbench.models.trajectory.model import TrajectoryModel

    return TrajectoryModel(config, tasks)


def _story(config: StoryModelConfig, tasks: Mapping[str, TaskFeatures]) -> TaskModel:
    from graphbench.models.story.model import StoryModel

    return StoryModel(config, _only(config.kind, tasks).features)


def _completed_story(
    config: StoryModelConfig, tasks: Mapping[str, TaskFeatures], batches: Mapping[str, Iterable[Any]]
) -> StoryModelConfig:
    from graphbench.models.story.model import completed

    features = _only(config.kind, tasks).features
    return completed(config, features, next(iter(batches.values())))


def _search(config: SearchModelConfig, tasks: Mapping[str, TaskFeatures]) -> TaskModel:
    from graphbench.models.search.model import SearchModel

    return SearchModel(config, _only(config.kind, tasks))


def _stepwise(config: StepwiseModelConfig, tasks: Mapping[str, TaskFeatures]) -> TaskModel:
    from graphbench.models.stepwise.model import StepwiseModel

    return StepwiseModel(config, _only(config.kind, tasks))


def _epistemic(config: EpistemicModelConfig, tasks: Mapping[str, TaskFeatures]) -> TaskModel:
    from graphbench.models.epistemic.model import EpistemicModel

    return EpistemicModel(config, _only(config.kind, tasks))


def _text(config: TextModelConfig, tasks: Mapping[str, TaskFeatures]) -> TaskModel:
    from graphbench.models.language import TextModel, require_texts

    for id_, task in tasks.items():
        require_texts(id_, task.features)
    return TextModel(config)


def _builder(config: BuilderModelConfig, tasks: Mapping[str, TaskFeatures]) -> TaskModel:
    from graphbench.models.builder.model import BuilderModel

    return BuilderModel(config, _only_structures(config.kind, tasks))


def _speller(config: SpellerModelConfig, tasks: Mapping[str, TaskFeatures]) -> TaskModel:
    from graphbench.models.builder.speller import SpellerModel

    return SpellerModel(config, _only_structures(config.kind, tasks))


def _only_structures(kind: str, tasks: Mapping[str, TaskFeatures]) -> TaskFeatures:
    """Return the only task, after checking that its outputs are structures (their references are texts)."""
    task = _only(kind, tasks)
    others = [f.name for f in select(task.features, Stage.OUTPUT) if f.kind is not Kind.TEXT]
    if others:
        raise ConfigError(
            f"models of kind {kind} generate structures, and {next(iter(tasks))} asks for {', '.join(others)}; choose "
            "a model of another kind, such as gin_small"
        )
    return task


def _only(kind: str, tasks: Mapping[str, TaskFeatures]) -> TaskFeatures:
    if len(tasks) != 1:
        raise ConfigError(f"models of kind {kind} have one task, not {len(tasks)}; train them one after the other")
    return next(iter(tasks.values()))


def _tabular(config: TabularModelConfig, tasks: Mapping[str, TaskFeatures]) -> TaskModel:
    from graphbench.models.tabular.model import TabularModel

    return TabularModel(config, _only(config.kind, tasks))


def _selector(config: SelectorModelConfig, tasks: Mapping[str, TaskFeatures]) -> TaskModel:
    from graphbench.models.tabular.selector_model import SelectorModel

    return SelectorModel(config, _only(config.kind, tasks))


register_architecture(Architecture("graph", ModelConfig, _graph, serves=_fits_graphs))
register_architecture(Architecture("trajectory", TrajectoryModelConfig, _trajectory, serves=_predicts))
register_architecture(Architecture("story", StoryModelConfig, _story, _completed_story, serves=_predicts))
register_architecture(Architecture("text", TextModelConfig, _text, serves=_writes))
register_architecture(Architecture("epistemic", EpistemicModelConfig, _epistemic, serves=_predicts))
register_architecture(Architecture("stepwise", StepwiseModelConfig, _stepwise, serves=_solves))
register_architecture(Architecture("builder", BuilderModelConfig, _builder, serves=_generates))
register_architecture(Architecture("speller", SpellerModelConfig, _speller, serves=_generates))
register_architecture(
    Architecture("search", SearchModelConfig, _search, learner="search", has_steps=False, serves=_searches)
)
register_architecture(
    Architecture("tabular", TabularModelConfig, _tabular, learner="tabular", has_steps=False, serves=_predicts)
)
register_architecture(
    Architecture("selector", SelectorModelConfig, _selector, learner="tabular", has_steps=False, serves=_selects)
)
