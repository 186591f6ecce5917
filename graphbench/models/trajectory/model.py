"""The recurrent model: encode hints, process, decode, step after step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphbench.catalog.features import Feature, Kind, Location, Stage, select
from graphbench.core.errors import ConfigError
from graphbench.data.trajectory_batch import TrajectoryBatch
from graphbench.data.trajectory_inputs import InputRule, order_is_constant
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.decoders import Decodable, Decoders, decided, decided_order, head_of, soften
from graphbench.models.trajectory.encoders import Encoder, PairVectors, adjacency, dense
from graphbench.models.trajectory.losses import hint_loss, output_loss, permutation_loss
from graphbench.models.trajectory.processors import Processor, Step, processor_class


@dataclass
class Predicted:
    """Raw values of a run.

    Attributes:
        outputs: Output name -> raw values ``[B, ...]``; of permutations also ``<name>_mask``.
        hints: Hint name -> raw values of all steps ``[T - 1, B, ...]``; empty where hints are ignored.
    """

    outputs: dict[str, Tensor]
    hints: dict[str, Tensor]


@dataclass
class Fixed:
    """The inputs, which are the same at all steps.

    Attributes:
        columns: The inputs' columns by location.
        neighbours: bool ``[B, n, n]``: the neighbours that the inputs tell of; the diagonal is set.
    """

    columns: dict[Location, Tensor]
    neighbours: Tensor


class AlgorithmHeads(nn.Module):
    """The encoders and decoders of one algorithm.

    Args:
        config: The model's configuration.
        features: The algorithm's features.
        messages: Whether the processor makes vectors of pairs.
    """

    def __init__(self, config: TrajectoryModelConfig, features: Sequence[Feature], *, messages: bool) -> None:
        super().__init__()
        self.inputs = select(features, Stage.INPUT)
        self.hints = select(features, Stage.HINT) if config.hint_mode != "none" else ()
        self.outputs = select(features, Stage.OUTPUT)
        fed = self.hints if config.hint_mode == "encoded_decoded" else ()
        xavier = config.encoder_init == "xavier_on_scalars"
        self.input_encoder = Encoder(self.inputs, config.hidden)
        self.hint_encoder = Encoder(fed, config.hidden, xavier_on_scalars=xavier)
        self.hint_decoders = Decoders(self.hints, config.hidden, messages=messages)
        self.output_decoders = Decoders(
            self.outputs, config.hidden, messages=messages, permutations=config.permutations
        )


class TrajectoryModel(nn.Module):
    """One processor, shared by one algorithm or several, with encoders and decoders for each.

    A step is one graph without branches on data, so ``model.step = torch.compile(model.step)`` compiles it.

    Args:
        config: The configuration.
        algorithms: Name -> features, in the order in which weights are drawn.

    Raises:
        UnknownModel: If no processor has the configuration's name.
        ConfigError: If no algorithm is given, or a feature has no decoder.
    """

    def __init__(self, config: TrajectoryModelConfig, algorithms: Mapping[str, Sequence[Feature]]) -> None:
        super().__init__()
        if not algorithms:
            raise ConfigError("a trajectory model needs the features of at least one algorithm")
        self.config = config
        kind = processor_class(config.processor)
        self.processor: Processor = kind(config)
        self.heads = nn.ModuleDict(
            {
                _key(name): AlgorithmHeads(config, features, messages=kind.makes_messages)
                for name, features in algorithms.items()
            }
        )

    def forward(self, batch: TrajectoryBatch, algorithm: str) -> Predicted:
        """Return the raw values of outputs and hints.

        The processor runs T - 1 times (once at least), T being the length of the longest trajectory; a sample's output
        is the one after its own last step.
        """
        heads = self._heads(algorithm)
        final, raw_hints = self._run(heads, batch)
        hints = {f.name: torch.stack([raw[f.name] for raw in raw_hints]) for f in heads.hints}
        return Predicted(heads.output_decoders(final), hints)

    def loss(self, batch: TrajectoryBatch, algorithm: str) -> Tensor:
        """Return the sum of the mean losses of all outputs and hints, a scalar float32."""
        heads, predicted = self._heads(algorithm), self(batch, algorithm)
        total = torch.zeros((), device=batch.lengths.device)
        for feature in heads.outputs:
            raw, truth = predicted.outputs[feature.name].float(), batch.outputs[feature.name]
            if self.config.permutations and feature.kind is Kind.PERMUTATION:
                total = total + permutation_loss(raw, predicted.outputs[head_of(feature).name].float(), truth)
            else:
                total = total + output_loss(feature, raw, truth)
        if _length(batch) > 1:
            for feature in heads.hints:
                raw, truth = predicted.hints[feature.name].float(), batch.hints[feature.name]
                total = total + hint_loss(feature, raw, truth, batch.lengths)
        return total

    def predict(self, batch: TrajectoryBatch, algorithm: str) -> dict[str, Tensor]:
        """Return the outputs in the form of a ``TrajectoryBatch``; masks are probabilities."""
        heads = self._heads(algorithm)
        final, _ = self._run(heads, batch, keep_hints=False)
        raw = heads.output_decoders(final)
        found = {}
        for feature in heads.outputs:
            if self.config.permutations and feature.kind is Kind.PERMUTATION:
                found[feature.name] = decided_order(raw[feature.name], raw[head_of(feature).name])
            else:
                found[feature.name] = decided(feature, raw[feature.name].float())
        return found

    @property
    def rule(self) -> InputRule:
        """How batches become this model's inputs."""
        return input_rule(self.config)

    def _heads(self, algorithm: str) -> AlgorithmHeads:
        if _key(algorithm) not in self.heads:
            known = ", ".join(name.replace("__", "/") for name in self.heads)
            raise ConfigError(f"the model was not built for {algorithm!r}; it knows {known}")
        found = self.heads[_key(algorithm)]
        assert isinstance(found, AlgorithmHeads)
        return found

    def _run(
        self, heads: AlgorithmHeads, batch: TrajectoryBatch, *, keep_hints: bool = True
    ) -> tuple[Decodable, list[dict[str, Tensor]]]:
        """Return what the output decoders read, and the raw hints of all steps, or of the last one alone."""
        samples, nodes = len(batch.lengths), batch.num_nodes
        given = {f.name: dense(f, batch.inputs[f.name], nodes) for f in heads.inputs}
        loops = torch.eye(nodes, dtype=torch.bool, device=batch.lengths.device).expand(samples, -1, -1)
        fixed = Fixed(heads.input_encoder.columns(given), _either(loops, adjacency(heads.inputs, given)))
        state = torch.zeros(samples, nodes, self.config.hidden, device=batch.lengths.device)
        raw_hints: list[dict[str, Tensor]] = []
        final: Decodable | None = None
        for t in range(max(1, _length(batch) - 1)):
            fed = self._fed(heads, batch, raw_hints[-1] if raw_hints else {}, t)
            state, now, raw = self.step(heads, fixed, fed, state)
            final = now if final is None else now.where(batch.lengths > t + 1, final)
            raw_hints = [*raw_hints, raw] if keep_hints else [raw]
        assert final is not None
        return final, raw_hints

    def step(
        self, heads: AlgorithmHeads, fixed: Fixed, fed: Mapping[str, Tensor], before: Tensor
    ) -> tuple[Tensor, Decodable, dict[str, Tensor]]:
        """Return the state after a step, what decoders read, and the raw hints.

        Args:
            heads: The encoders and decoders.
            fixed: The inputs.
            fed: Hint name -> dense form.
            before: The state before, ``[B, n, h]``.
        """
        hints = heads.hint_encoder.columns(fed)
        nodes = self._encoded(heads, Location.NODE, fixed, hints, before)
        graph = self._encoded(heads, Location.GRAPH, fixed, hints, before[:, 0])
        pairs = self._pairs(heads, fixed.columns, hints, len(before), before.shape[1])
        neighbours = _either(fixed.neighbours, adjacency(heads.hint_encoder.features, fed))
        joined = torch.cat([nodes, before], -1)
        after = self.processor(Step(joined, pairs, graph, neighbours)).float()
        now = Decodable(torch.cat([joined, after], -1), pairs, graph, self.processor)
        return after, now, heads.hint_decoders(now)

    def _fed(
        self, heads: AlgorithmHeads, batch: TrajectoryBatch, raw_hints: Mapping[str, Tensor], t: int
    ) -> dict[str, Tensor]:
        """Return the hints that step t reads: the true ones at first, then the predicted or, forced, the true ones."""
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

    def _encoded(
        self, heads: AlgorithmHeads, location: Location, fixed: Fixed, hints: Mapping[Location, Tensor], like: Tensor
    ) -> Tensor:
        """Return the encoded nodes ``[B, n, h]`` or graph ``[B, h]``: 0, shaped as ``like``, if nothing lies there."""
        total: Tensor | None = None
        for columns, encoder in ((fixed.columns, heads.input_encoder), (hints, heads.hint_encoder)):
            linear = encoder.linear(location)
            if linear is not None:
                part = linear(columns[location])
                total = part if total is None else total + part
        return torch.zeros_like(like) if total is None else total

    def _pairs(
        self,
        heads: AlgorithmHeads,
        fixed: Mapping[Location, Tensor],
        hints: Mapping[Location, Tensor],
        samples: int,
        nodes: int,
    ) -> PairVectors:
        columns: list[Tensor] = []
        weights: list[Tensor] = []
        bias: Tensor | None = None
        for source, encoder in ((fixed, heads.input_encoder), (hints, heads.hint_encoder)):
            linear = encoder.linear(Location.EDGE)
            if linear is not None:
                columns.append(source[Location.EDGE])
                weights.append(linear.weight)
                bias = linear.bias if bias is None else bias + linear.bias
        if bias is None:
            device = next(iter(fixed.values())).device
            nothing = torch.zeros(self.config.hidden, device=device)
            return PairVectors(torch.zeros(samples, nodes, nodes, 1, device=device), nothing.unsqueeze(1), nothing)
        return PairVectors(torch.cat(columns, -1), torch.cat(weights, -1), bias)


def input_rule(config: TrajectoryModelConfig) -> InputRule:
    """Return how batches become the inputs of a model of this configuration."""
    return InputRule(config.constant_hints_as_inputs, config.random_positions)


def build_trajectory_model(config: TrajectoryModelConfig, features: Mapping[str, Sequence[Feature]]) -> TrajectoryModel:
    """Return a model for datasets, freshly initialised from torch's generator.

    Args:
        config: The configuration.
        features: Dataset id -> the features of its card.
    """
    rule = input_rule(config)
    return TrajectoryModel(config, {id_: rule.features(own, order_is_constant(own)) for id_, own in features.items()})


def _key(algorithm: str) -> str:
    return algorithm.replace("/", "__")


def _either(first: Tensor, second: Tensor | None) -> Tensor:
    return first if second is None else first | second


def _length(batch: TrajectoryBatch) -> int:
    """Return the number of steps T of the longest trajectory; read off a shape where possible, not off a device."""
    hints = next(iter(batch.hints.values()), None)
    return batch.steps if hints is None else len(hints)
