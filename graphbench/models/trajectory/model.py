"""The recurrent model: encode hints, process, decode, step after step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from graphbench.catalog.features import Feature, Kind, Location, Stage, select
from graphbench.data.trajectory_batch import TrajectoryBatch
from graphbench.data.trajectory_inputs import InputRule, order_is_constant
from graphbench.errors import ConfigError
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
        nodes, samples = batch.num_nodes, batch.num_graphs
        given = {f.name: dense(f, batch.inputs[f.name], nodes) for f in heads.inputs}
        fixed = heads.input_encoder.columns(given)
        truths = {f.name: dense(f, batch.hints[f.name], nodes) for f in heads.hint_encoder.features}
        fixed_neighbours = adjacency(heads.inputs, given, nodes)
        loops = torch.eye(nodes, dtype=torch.bool, device=batch.lengths.device).expand(samples, -1, -1)
        before = torch.zeros(samples, nodes, self.config.hidden, device=batch.lengths.device)
        steps = max(1, batch.steps - 1)
        raw_hints: list[dict[str, Tensor]] = []
        final: Decodable | None = None
        fed: dict[str, Tensor] = {}
        for t in range(steps):
            fed = self._fed(heads, truths, raw_hints, t)
            state = self._encode(heads, fixed, fed, samples, nodes)
            neighbours = _neighbours(loops, fixed_neighbours, adjacency(heads.hint_encoder.features, fed, nodes))
            joined = torch.cat([state.nodes, before], -1)
            after, messages = self.processor(Step(joined, state.pairs, state.graph, neighbours, before))
            now = Decodable(torch.cat([joined, after], -1), state.pairs, messages, state.graph)
            final = now if final is None else now.where(batch.lengths > t + 1, final)
            if heads.hints:
                raw_hints.append(heads.hint_decoders(now))
            before = after
        assert final is not None
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
        if batch.steps > 1:
            for feature in heads.hints:
                raw, truth = predicted.hints[feature.name].float(), batch.hints[feature.name]
                total = total + hint_loss(feature, raw, truth, batch.lengths)
        return total

    def predict(self, batch: TrajectoryBatch, algorithm: str) -> dict[str, Tensor]:
        """Return the outputs in the form of a ``TrajectoryBatch``; masks are probabilities."""
        heads, raw = self._heads(algorithm), self(batch, algorithm).outputs
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

    def _fed(
        self, heads: AlgorithmHeads, truths: Mapping[str, Tensor], raw_hints: Sequence[Mapping[str, Tensor]], t: int
    ) -> dict[str, Tensor]:
        """Return the hints that step t reads: the true ones at first, then the predicted or, forced, the true ones."""
        if t == 0:
            return {name: truth[0] for name, truth in truths.items()}
        mode = self.config.hint_repred_mode
        hard = mode == "hard" or (mode == "hard_on_eval" and not self.training)
        predicted = {}
        for feature in heads.hint_encoder.features:
            raw = raw_hints[-1][feature.name]
            predicted[feature.name] = soften(feature, raw.detach() if hard else raw, hard)
        chance = self.config.hint_teacher_forcing if self.training else 0.0
        if chance == 0 or not predicted:
            return predicted
        some = next(iter(predicted.values()))
        forced = torch.rand(len(some), device=some.device) < chance
        return {
            name: torch.where(forced.view(-1, *[1] * (value.dim() - 1)), truths[name][t], value)
            for name, value in predicted.items()
        }

    def _encode(
        self,
        heads: AlgorithmHeads,
        fixed: Mapping[Location, Tensor],
        fed: Mapping[str, Tensor],
        samples: int,
        nodes: int,
    ) -> Decodable:
        """Return the encoded nodes ``[B, n, h]``, pairs and graph of a step."""
        hints = heads.hint_encoder.columns(fed)
        shapes = {Location.NODE: (samples, nodes), Location.GRAPH: (samples,)}
        vectors = {}
        device = next(iter(fixed.values())).device
        for location, shape in shapes.items():
            parts = [
                linear(columns[location])
                for columns, encoder in ((fixed, heads.input_encoder), (hints, heads.hint_encoder))
                if (linear := encoder.linear(location)) is not None
            ]
            vectors[location] = sum(parts) if parts else torch.zeros(*shape, self.config.hidden, device=device)
        return Decodable(
            vectors[Location.NODE], self._pairs(heads, fixed, hints, samples, nodes), None, vectors[Location.GRAPH]
        )

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


def _neighbours(loops: Tensor, *parts: Tensor | None) -> Tensor:
    found = loops
    for part in parts:
        if part is not None:
            found = found | (part > 0.5)
    return found
