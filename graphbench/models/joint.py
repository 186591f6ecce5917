"""Graph models for one task, or for several that share a processor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphbench.catalog.features import Location, Stage, select
from graphbench.core.errors import ConfigError
from graphbench.models.base import TaskFeatures, TaskModel, graphs_at_once, module_key, of_task
from graphbench.models.build import Model, context_of
from graphbench.models.config import ModelConfig
from graphbench.models.processor_registry import processor_class
from graphbench.models.processors import Context, Processor
from graphbench.models.transfer import Part, distinct, processor_parts

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset


class JointModel(TaskModel):
    """One processor, shared by several tasks, with encoders and decoders for each.

    The processor has edge tokens or a graph token if any of the tasks needs them. Settings that name inputs
    (``ignore``, ``fixed``) apply to the tasks that have these inputs, and ``readout`` to the tasks whose outputs lie on
    graphs.
    """

    def __init__(self, config: ModelConfig, tasks: Mapping[str, TaskFeatures]) -> None:
        super().__init__()
        self.config = config
        kind: type[Processor] = processor_class(config.processor, "sparse")
        contexts = [context_of(config, kind, task.features, task.directed)[0] for task in tasks.values()]
        context = Context(
            directed=any(c.directed for c in contexts),
            edge_tokens=any(c.edge_tokens for c in contexts),
            graph_token=any(c.graph_token for c in contexts),
        )
        self.processor = kind(config, context)
        _refuse_unknown_names(config, tasks)
        self.ids = tuple(tasks)
        self.tasks = nn.ModuleDict(
            {
                module_key(id_): Model(
                    _config_of_task(config, task), task.features, directed=task.directed, shared=context
                )
                for id_, task in tasks.items()
            }
        )

    def forward(self, batch: Data, task_id: str | None = None) -> dict[str, Tensor]:
        """Return the raw value of every output of a task; see :meth:`graphbench.models.build.Model.forward`."""
        outputs: dict[str, Tensor] = self._task(task_id)(batch, processor=self.processor)
        return outputs

    def prepare(
        self,
        batch: Any,
        task_id: str | None = None,
        generator: torch.Generator | None = None,
        *,
        training: bool = False,
    ) -> Any:
        """Return a batch with the encodings that the model of its task reads."""
        return self._task(task_id).prepare(batch, None, generator, training=training, processor=self.processor)

    def largest_batch(self, dataset: GraphDataset) -> int:
        """Return the number of graphs of a split that fit the memory budget at once."""
        return graphs_at_once(dataset, self.processor.rows)

    def fit_normalisation(self, batch: Data, task_id: str | None = None) -> None:
        """Standardise the scalars of a task with the statistics of a sample of its training data."""
        self._task(task_id).fit_normalisation(batch)

    def parts(self) -> list[Part]:
        """Return the shared processor and what reads and writes features of any task."""
        task_parts = [part for id_ in self.ids for part in self._task(id_).parts()]
        shared = processor_parts(self.config.processor, self.processor, self.processor.cores())
        return distinct([*shared, *task_parts])

    def _task(self, task_id: str | None) -> Model:
        model = of_task({id_: self.tasks[module_key(id_)] for id_ in self.ids}, task_id)
        assert isinstance(model, Model)
        return model


def build_graph_model(config: ModelConfig, tasks: Mapping[str, TaskFeatures]) -> TaskModel:
    """Return a model for one task of graphs, or for several tasks that share its processor.

    Args:
        config: The configuration.
        tasks: Task id -> properties of the task that the model depends on.

    Raises:
        UnknownModel: If no processor has the configuration's name.
        ConfigError: If a task has hints, the configuration does not fit, or a feature has no encoder or decoder.
    """
    for id_, task in tasks.items():
        if select(task.features, Stage.HINT):
            raise ConfigError(
                f"{id_} has hints, which models of kind graph do not follow; write model.kind: trajectory"
            )
    if len(tasks) > 1:
        return JointModel(config, tasks)
    (task,) = tasks.values()
    return Model(config, task.features, directed=task.directed)


def _config_of_task(config: ModelConfig, task: TaskFeatures) -> ModelConfig:
    """Return the configuration, restricted to names of inputs and to a readout that the task has."""
    inputs = {f.name for f in select(task.features, Stage.INPUT)}
    named: dict[str, Sequence[str]] = {"ignore": config.ignore, "fixed": config.fixed}
    changes: dict[str, Any] = {key: tuple(n for n in names if n in inputs) for key, names in named.items()}
    return config.model_copy(update=changes if _has_graph_outputs(task) else {**changes, "readout": "pooled"})


def _has_graph_outputs(task: TaskFeatures) -> bool:
    return any(f.location is Location.GRAPH for f in select(task.features, Stage.OUTPUT))


def _refuse_unknown_names(config: ModelConfig, tasks: Mapping[str, TaskFeatures]) -> None:
    inputs = {f.name for task in tasks.values() for f in select(task.features, Stage.INPUT)}
    for key, names in (("ignore", config.ignore), ("fixed", config.fixed)):
        unknown = set(names) - inputs
        if unknown:
            raise ConfigError(f"{key} names {sorted(unknown)}; the inputs of the tasks are {sorted(inputs)}")
    if config.readout != "pooled" and not any(map(_has_graph_outputs, tasks.values())):
        raise ConfigError(
            f"readout {config.readout!r} is for outputs of graphs, and no task has any; set model.readout to pooled"
        )
