"""The recurrent model: encode hints, process, decode, step after step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbench.catalog.features import Kind, Location, Stage, select
from graphbench.core.errors import ConfigError
from graphbench.data.batches.trajectory_batch import TrajectoryBatch
from graphbench.data.batches.trajectory_inputs import InputRule
from graphbench.models.base import Predicted, TaskFeatures, TaskModel, module_key, of_task
from graphbench.models.processors import Processor, processor_class, require_shape
from graphbench.models.trajectory.adapter import SparseAdapter
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.decoders import DecoderInput, head_of, postprocessed, postprocessed_order, soften
from graphbench.models.trajectory.encoders import Compositions, NodeVectors, PairVectors, adjacency, dense
from graphbench.models.trajectory.heads import SingleShotHeads, TaskHeads
from graphbench.models.trajectory.losses import trace_losses
from graphbench.models.trajectory.processors import DenseProcessor, Step
from graphbench.models.trajectory.processors.base import HistoryGate
from graphbench.models.transfer import Part, distinct, processor_parts

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset

_PAIRS = 2**14  # pairs of nodes of a batch: each holds a few vectors of the hidden width, which fit the cache
_STEP_CELLS = 2**24  # cells of all hints of a batch over time
_MAX_GRAPHS = 256


@dataclass
class StaticInputs:
    """The inputs, which are the same at all steps.

    Attributes:
        columns: The inputs' columns by location.
        neighbours: bool ``[B, n, n]``: the neighbours according to the inputs; the diagonal is set.
        encoders: The encoders of inputs and hints side by side, by location.
        made: Linear maps that the steps have composed so far.
    """

    columns: dict[Location, Tensor]
    neighbours: Tensor
    encoders: Mapping[Location, tuple[Tensor, Tensor]]
    made: Compositions


class TrajectoryModel(TaskModel):
    """One processor, shared by one task or several, with encoders and decoders for each.

    Tasks with hints are followed step by step. Samples of tasks without hints (PyG batches) are answered after a fixed
    number of steps. A step is one graph without branches on data, so ``model.step = torch.compile(model.step)`` works.

    Args:
        config: The configuration.
        tasks: Task id -> properties of the task, in the order in which weights are initialised.

    Raises:
        UnknownModel: If no processor has the configuration's name.
        ConfigError: If no task is given, or a feature has no encoder or decoder.
    """

    def __init__(self, config: TrajectoryModelConfig, tasks: Mapping[str, TaskFeatures]) -> None:
        super().__init__()
        if not tasks:
            raise ConfigError("a trajectory model needs the features of at least one task")
        self.config = config
        self.rules = {id_: input_rule(config, task) for id_, task in tasks.items()}
        kind = processor_class(config.processor, "dense", "sparse")
        self.processor: DenseProcessor = SparseAdapter(config, kind) if issubclass(kind, Processor) else kind(config)
        gated = config.history == "gated"
        self.history = HistoryGate(config.hidden, config.gate_penalty, config.gate_anneal) if gated else None
        self.heads = nn.ModuleDict({module_key(id_): self._new_heads(id_, task) for id_, task in tasks.items()})

    def forward(self, batch: Any, task_id: str | None = None) -> Any:
        """Return the raw values of outputs and hints.

        On trajectories, the processor runs T - 1 times (at least once), where T is the length of the longest
        trajectory; the output of a sample is the output after its last step. On tasks without hints, the processor runs
        ``config.steps`` times.

        Args:
            batch: A ``TrajectoryBatch`` from :meth:`prepare`; for tasks without hints, a PyG batch.
            task_id: Id of the task.

        Returns:
            :class:`Predicted`; for tasks without hints, outputs like :meth:`graphbench.models.build.Model.forward`.
        """
        heads = self._heads(task_id)
        if isinstance(heads, SingleShotHeads):
            groups = heads.groups(batch)
            raw = [heads.output_decoders(self._run(heads, group.batch)[0]) for group in groups]
            return heads.gathered(batch, groups, raw)
        final, raw_hints, shares = self._run(heads, batch)
        hints = {f.name: torch.stack([raw[f.name] for raw in raw_hints]) for f in heads.hints}
        penalty = None if self.history is None else self.history.loss(shares[1:], batch.lengths)
        return Predicted(heads.output_decoders(final), hints, penalty)

    def loss(self, batch: TrajectoryBatch, task_id: str | None = None) -> Tensor:
        """Return the sum of the mean losses of all outputs and hints, a scalar float32."""
        heads = self._heads(task_id)
        losses = trace_losses(self(batch, task_id), batch, (*heads.outputs, *heads.hints))
        return sum(losses.values(), torch.zeros((), device=batch.lengths.device))

    def predict(self, batch: Any, task_id: str | None = None) -> dict[str, Tensor]:
        """Return the outputs in the form of a ``TrajectoryBatch``; masks are probabilities.

        For tasks without hints, the raw outputs are returned.
        """
        heads = self._heads(task_id)
        if isinstance(heads, SingleShotHeads):
            outputs: dict[str, Tensor] = self(batch, task_id)
            return outputs
        final, *_ = self._run(heads, batch, keep_hints=False)
        raw = heads.output_decoders(final)
        predictions = {}
        for feature in heads.outputs:
            if self.config.permutations and feature.kind is Kind.PERMUTATION:
                predictions[feature.name] = postprocessed_order(raw[feature.name], raw[head_of(feature).name])
            else:
                predictions[feature.name] = postprocessed(feature, raw[feature.name].float())
        return predictions

    def prepare(
        self,
        batch: Any,
        task_id: str | None = None,
        generator: torch.Generator | None = None,
        *,
        training: bool = False,
    ) -> Any:
        """Return the batch with constant hints as inputs, and with random positions if a generator is given."""
        if isinstance(self._heads(task_id), SingleShotHeads):
            return batch
        return of_task(self.rules, task_id).batch(batch, generator)

    def largest_batch(self, dataset: GraphDataset) -> int:
        """Return the number of samples of a split that fit into memory at once."""
        flat = dataset.flat
        nodes = int(np.diff(flat.node_ptr).max())
        size = min(_MAX_GRAPHS, _PAIRS // max(nodes, 1) ** 2)
        if flat.hints is not None:
            cells = sum(nodes**2 if f.location is Location.EDGE else nodes for f in dataset.card.hints)
            size = min(size, _STEP_CELLS // max(cells * int(flat.hints.lengths.max()), 1))
        return max(1, size)

    def fit_normalisation(self, batch: Any, task_id: str | None = None) -> None:
        """Standardise the scalars of a task without hints; scalars of trajectories are not standardised."""
        heads = self._heads(task_id)
        if isinstance(heads, SingleShotHeads):
            heads.fit_normalisation(batch)

    def parts(self) -> list[Part]:
        """Return the processor, with the gate of its history, and the encoders and decoders of all algorithms."""
        parts = processor_parts(self.config.processor, self.processor, self.processor.cores())
        if self.history is not None:
            parts.append(Part("processor", "gate of the history", self.history))
        heads: Any
        for heads in self.heads.values():
            parts += heads.parts()
        return distinct(parts)

    def _new_heads(self, id_: str, task: TaskFeatures) -> TaskHeads:
        messages = self.processor.makes_messages
        if not select(task.features, Stage.HINT):
            return SingleShotHeads(self.config, task, messages=messages)
        features = self.rules[id_].features(task.features)
        return TaskHeads(self.config, features, messages=messages, permutations=self.config.permutations)

    def _heads(self, task_id: str | None) -> TaskHeads:
        heads = of_task({id_: self.heads[module_key(id_)] for id_ in self.rules}, task_id)
        assert isinstance(heads, TaskHeads)
        return heads

    def _run(
        self, heads: TaskHeads, batch: TrajectoryBatch, *, keep_hints: bool = True
    ) -> tuple[DecoderInput, list[dict[str, Tensor]], list[Tensor]]:
        """Return the input of the output decoders, the raw hints of all steps, and the shares of a gate.

        Without ``keep_hints``, only the raw hints of the last step are returned, and no shares.
        """
        samples, nodes = len(batch.lengths), batch.num_nodes
        inputs = {f.name: dense(f, batch.inputs[f.name], nodes) for f in heads.inputs}
        loops = torch.eye(nodes, dtype=torch.bool, device=batch.lengths.device).expand(samples, -1, -1)
        neighbours = _either(loops, adjacency(heads.inputs, inputs))
        fixed = StaticInputs(heads.input_encoder.columns(inputs), neighbours, heads.encoders(), {})
        state = torch.zeros(samples, nodes, self.config.hidden, device=batch.lengths.device)
        raw_hints: list[dict[str, Tensor]] = []
        shares: list[Tensor] = []
        kept: Tensor | None = None
        final: DecoderInput | None = None
        for t in range(max(1, _length(batch) - 1)):
            fed = self._hints_read(heads, batch, raw_hints[-1] if raw_hints else {}, t)
            before = torch.zeros_like(state) if self.config.history == "forgotten" else state
            forgets = final is None or self.config.history == "forgotten"
            state, now, raw = self.step(heads, fixed, fed, before, None if forgets else kept)
            kept = now.step.pair_states
            if now.step.share is not None and keep_hints:
                shares.append(now.step.share)
            final = now if final is None else now.where(batch.lengths > t + 1, final)
            raw_hints = [*raw_hints, raw] if keep_hints else [raw]
        assert final is not None
        return final, raw_hints, shares

    def step(
        self,
        heads: TaskHeads,
        fixed: StaticInputs,
        fed: Mapping[str, Tensor],
        before: Tensor,
        pair_states: Tensor | None = None,
    ) -> tuple[Tensor, DecoderInput, dict[str, Tensor]]:
        """Return the state after a step, the input of the decoders, and the raw hints.

        Args:
            heads: The encoders and decoders.
            fixed: The inputs.
            fed: Hint name -> dense form.
            before: The state before the step, ``[B, n, h]``.
            pair_states: The states of pairs before the step, ``[B, n, n, h]``, of processors that keep them.
        """
        step = self._read(heads, fixed, fed, before)
        step.pair_states = pair_states
        after = self.processor(step)
        require_shape(self.processor, self.config.processor, "nodes", after, before.shape)
        after = after.float()
        now = DecoderInput(step, after, self.processor)
        return after, now, heads.hint_decoders(now)

    def _read(self, heads: TaskHeads, fixed: StaticInputs, fed: Mapping[str, Tensor], before: Tensor) -> Step:
        """Return the vectors that the processor reads."""
        hints, encoders, (samples, nodes, _) = heads.hint_encoder.columns(fed), fixed.encoders, before.shape
        shapes = {Location.NODE: (samples, nodes), Location.EDGE: (samples, nodes, nodes), Location.GRAPH: (samples,)}
        columns = {}
        for location, shape in shapes.items():
            parts = [part[location] for part in (fixed.columns, hints) if location in part]
            columns[location] = torch.cat(parts, -1) if parts else before.new_zeros(*shape, 1)
        made = None if torch.compiler.is_compiling() else fixed.made
        neighbours = _either(fixed.neighbours, adjacency(heads.hint_encoder.features, fed))
        read = NodeVectors(columns[Location.NODE], *encoders[Location.NODE], before, made)
        share = None if self.history is None else self.history(read)
        if share is not None:
            read = NodeVectors(read.columns, read.weight, read.bias, share * before, made)
        step = Step(
            read,
            PairVectors(columns[Location.EDGE], *encoders[Location.EDGE], made),
            F.linear(columns[Location.GRAPH], *encoders[Location.GRAPH]),
            neighbours,
        )
        step.share = share
        return step

    def _hints_read(
        self, heads: TaskHeads, batch: TrajectoryBatch, raw_hints: Mapping[str, Tensor], t: int
    ) -> dict[str, Tensor]:
        """Return the hints that step t reads: true hints at t = 0, then predicted hints, or true ones if forced."""
        features, nodes = heads.hint_encoder.features, batch.num_nodes
        if t == 0:
            return {f.name: dense(f, batch.hints[f.name][0], nodes) for f in features}
        mode = self.config.hint_repred_mode
        hard = mode == "hard" or (mode == "hard_on_eval" and not self.training)
        predicted = {}
        for feature in features:
            raw = raw_hints[feature.name]
            predicted[feature.name] = soften(feature, raw.detach() if hard else raw, hard)
        chance = self.config.hint_teacher_forcing if self.training else 0.0
        if chance == 0 or not predicted:
            return predicted
        forced = torch.rand(len(batch.lengths), device=batch.lengths.device) < chance
        for feature in features:
            value = predicted[feature.name]
            truth = dense(feature, batch.hints[feature.name][t], nodes)
            predicted[feature.name] = torch.where(forced.view(-1, *[1] * (value.dim() - 1)), truth, value)
        return predicted


def input_rule(config: TrajectoryModelConfig, task: TaskFeatures) -> InputRule:
    """Return the rule that turns batches of a task into a model's inputs, from the card and the configuration."""
    constant = task.options.get("constant_hints", {}) if config.constant_hints_as_inputs else {}
    return InputRule(constant, task.options.get("positions") if config.random_positions else None)


def _either(first: Tensor, second: Tensor | None) -> Tensor:
    return first if second is None else first | second


def _length(batch: TrajectoryBatch) -> int:
    """Return the number of steps T of the longest trajectory; read from a shape if possible, not from a device."""
    hints = next(iter(batch.hints.values()), None)
    return batch.steps if hints is None else len(hints)
