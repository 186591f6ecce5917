"""The registry of architectures, by the ``kind`` of a configuration's model section. This module loads no torch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from graphbench.core.errors import ConfigError, PluginError, UnknownModel
from graphbench.core.plugins import calling_module
from graphbench.core.registry import Registry
from graphbench.data.components.domain import find
from graphbench.models.builder.config import BuilderModelConfig, SpellerModelConfig
from graphbench.models.config import ModelConfig
from graphbench.models.demands import (
    require_costs,
    require_fit,
    require_readout,
    require_structures,
    require_texts,
    require_values,
)
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


def _nothing(config: Any, card: Card) -> None:
    """Accept every dataset."""


def _values(config: Any, card: Card) -> None:
    require_values(card.features)


def _graphs(config: ModelConfig, card: Card) -> None:
    require_values(card.features)
    require_fit(config, card.features, card.directed)
    require_readout(config.readout, card.features)


def _texts(config: Any, card: Card) -> None:
    require_texts(card.address, card.features)


def _structures(config: Any, card: Card) -> None:
    require_structures(config.kind, card.address, card.features)


def _costs(config: Any, card: Card) -> None:
    require_costs(card.features)


def _problem(config: Any, card: Card) -> None:
    if "problem" not in card.task.options:
        raise ConfigError(f"models of kind {config.kind} solve problems, and {card.address} names none")


def _problem_with_search(config: SearchModelConfig, card: Card) -> None:
    _problem(config, card)
    find("problem", card.task.options["problem"]).search(config.method, config.options)


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
        demands: Takes a configuration and a card, and raises ``ConfigError`` where the models cannot serve the dataset,
            as far as can be told without torch; ``build`` has the last word. The default accepts every dataset.
        complete: Returns the configuration completed with values from the training data, for example a vocabulary. It
            takes the tasks and, by task id, batches of the training split. A completed configuration does not change.
    """

    kind: str
    config: type[BaseModel]
    build: Callable[[Any, Mapping[str, TaskFeatures]], TaskModel]
    complete: Callable[[Any, Mapping[str, TaskFeatures], Mapping[str, Iterable[Any]]], Any] = _unchanged
    learner: str = "torch"
    has_steps: bool = True
    demands: Callable[[Any, Card], Any] = _nothing

    def serves(self, config: Any, card: Card) -> bool:
        """Return whether the models of a configuration can serve a dataset, as far as :attr:`demands` tell."""
        try:
            self.demands(config, card)
        except ConfigError:
            return False
        return True

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
    from graphbench.models.language import TextModel

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
    """Return the only task, after checking that its outputs are structures."""
    task = _only(kind, tasks)
    require_structures(kind, next(iter(tasks)), task.features)
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


register_architecture(Architecture("graph", ModelConfig, _graph, demands=_graphs))
register_architecture(Architecture("trajectory", TrajectoryModelConfig, _trajectory, demands=_values))
register_architecture(Architecture("story", StoryModelConfig, _story, _completed_story, demands=_values))
register_architecture(Architecture("text", TextModelConfig, _text, demands=_texts))
register_architecture(Architecture("epistemic", EpistemicModelConfig, _epistemic, demands=_values))
register_architecture(Architecture("stepwise", StepwiseModelConfig, _stepwise, demands=_problem))
register_architecture(Architecture("builder", BuilderModelConfig, _builder, demands=_structures))
register_architecture(Architecture("speller", SpellerModelConfig, _speller, demands=_structures))
register_architecture(
    Architecture("search", SearchModelConfig, _search, learner="search", has_steps=False, demands=_problem_with_search)
)
register_architecture(
    Architecture("tabular", TabularModelConfig, _tabular, learner="tabular", has_steps=False, demands=_values)
)
register_architecture(
    Architecture("selector", SelectorModelConfig, _selector, learner="tabular", has_steps=False, demands=_costs)
)
