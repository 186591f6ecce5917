"""The encoders and decoders of one task of a recurrent model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphbench.catalog.features import Feature, Kind, Location, Stage, select
from graphbench.core.errors import ConfigError
from graphbench.data.batches.dense_view import EDGES, DenseGroup, dense_groups
from graphbench.models.base import TaskFeatures, module_key, predicted_features
from graphbench.models.decoders import check_output
from graphbench.models.encoders import Standardiser, as_rows, feature_values
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.decoders import Decoders
from graphbench.models.trajectory.encoders import Encoder
from graphbench.models.transfer import Part, named_by


class TaskHeads(nn.Module):
    """The encoders and decoders of one task.

    Args:
        config: The model's configuration.
        features: The features of the task, as the model sees them.
        messages: Whether the processor makes vectors of pairs.
        permutations: Whether permutations are decoded as such; else as pointers.
    """

    def __init__(
        self, config: TrajectoryModelConfig, features: Sequence[Feature], *, messages: bool, permutations: bool
    ) -> None:
        super().__init__()
        self.hidden = config.hidden
        self.inputs = select(features, Stage.INPUT)
        self.hints = select(features, Stage.HINT) if config.hint_mode != "none" else ()
        self.outputs = select(features, Stage.OUTPUT)
        fed = self.hints if config.hint_mode == "encoded_decoded" else ()
        xavier = config.encoder_init == "xavier_on_scalars"
        self.input_encoder = Encoder(self.inputs, config.hidden)
        self.hint_encoder = Encoder(fed, config.hidden, xavier_on_scalars=xavier)
        read = {"messages": messages, "triplets": config.edge_pointers == "triplets"}
        self.hint_decoders = Decoders(self.hints, config.hidden, **read)
        self.output_decoders = Decoders(self.outputs, config.hidden, permutations=permutations, **read)

    def parts(self) -> list[Part]:
        """Return the encoders of inputs and of hints, and the decoder of every feature."""
        parts = [
            Part("encoders", named_by(encoder.features, "encoder"), encoder)
            for encoder in (self.input_encoder, self.hint_encoder)
        ]
        for decoders in (self.hint_decoders, self.output_decoders):
            for feature in decoders.decoded:
                module = decoders.decoders[module_key(feature.name)]
                parts.append(Part("decoders", named_by([feature], "decoder"), module))
        return parts

    def encoders(self) -> dict[Location, tuple[Tensor, Tensor]]:
        """Return the encoders of inputs and hints side by side: weights ``[h, F]`` and biases ``[h]`` by location.

        A location without features has one column of weights, which are 0.
        """
        zeros = next(self.parameters()).new_zeros(self.hidden)
        joined = {}
        for location in Location:
            maps = [
                m for m in (self.input_encoder.linear(location), self.hint_encoder.linear(location)) if m is not None
            ]
            weights: list[Tensor] = [*(linear.weight for linear in maps)] or [zeros.unsqueeze(1)]
            biases: list[Tensor] = [*(linear.bias for linear in maps)] or [zeros]
            joined[location] = (torch.cat(weights, -1), torch.stack(biases).sum(0))
        return joined


class SingleShotHeads(TaskHeads):
    """The encoders and decoders of a task without hints; its samples come as PyG batches.

    Scalar inputs and outputs are standardised inside; the returned outputs are in the target's unit.

    Args:
        config: The model's configuration.
        task: The properties of the task that the model depends on.
        messages: Whether the processor makes vectors of pairs.

    Raises:
        ConfigError: If the task has no outputs, or a feature has no encoder or decoder.
    """

    def __init__(self, config: TrajectoryModelConfig, task: TaskFeatures, *, messages: bool) -> None:
        read = tuple(_as_read(f) for f in select(task.features, Stage.INPUT) if f.kind is not Kind.TEXT)
        outputs = predicted_features(task.features)
        for feature in outputs:
            check_output(feature)
        super().__init__(config, (*read, EDGES, *outputs), messages=messages, permutations=False)
        self.read, self.steps, self.directed = read, config.steps, task.directed
        self.scalars = tuple(f for f in (*read, *outputs) if f.kind is Kind.SCALAR)
        self.scales = nn.ModuleList(Standardiser(f.width) for f in self.scalars)

    def groups(self, batch: Any) -> list[DenseGroup]:
        """Return the inputs of a PyG batch in dense form, for the configured number of steps."""
        values = {feature.name: feature_values(batch, feature) for feature in self.read}
        for feature, scale in self._scales():
            if feature.stage is Stage.INPUT:
                rows = scale.standardise(as_rows(values[feature.name].float(), feature))
                values[feature.name] = rows if feature.width > 1 else rows.squeeze(1)
        return dense_groups(batch, self.read, values, self.steps + 1)

    def gathered(
        self, batch: Any, groups: Sequence[DenseGroup], raw: Sequence[Mapping[str, Tensor]]
    ) -> dict[str, Tensor]:
        """Return the raw outputs of a batch in the form of :meth:`graphbench.models.build.Model.forward`.

        Args:
            batch: The PyG batch.
            groups: The groups of the batch.
            raw: Feature name -> raw values ``[B, ...]`` of each group.
        """
        largest = max(group.batch.num_nodes for group in groups)
        counts = {Location.NODE: batch.batch.numel(), Location.EDGE: batch.edge_index.shape[1]}
        outputs = {}
        for feature in self.outputs:
            parts = [
                self._rows(feature, group, values[feature.name], largest)
                for group, values in zip(groups, raw, strict=True)
            ]
            positions, rows = (torch.cat(column) for column in zip(*parts, strict=True))
            total = rows.new_zeros(counts.get(feature.location, batch.num_graphs), *rows.shape[1:])
            outputs[feature.name] = total.index_copy(0, positions, rows)
        for feature, scale in self._scales():
            if feature.stage is Stage.OUTPUT:
                rows = scale.restore(as_rows(outputs[feature.name], feature))
                outputs[feature.name] = rows if feature.width > 1 else rows.squeeze(1)
        return outputs

    def fit_normalisation(self, batch: Any) -> None:
        """Estimate means and standard deviations of the scalars from a sample of training data."""
        for feature, scale in self._scales():
            scale.fit(as_rows(feature_values(batch, feature), feature))

    def _scales(self) -> list[tuple[Feature, Standardiser]]:
        return list(zip(self.scalars, self.scales, strict=True))  # type: ignore[arg-type]

    def _rows(self, feature: Feature, group: DenseGroup, raw: Tensor, largest: int) -> tuple[Tensor, Tensor]:
        """Return the row numbers of a group's items in the batch, and their raw values."""
        if feature.location is Location.GRAPH:
            return group.graphs, raw
        if feature.location is Location.EDGE:
            graphs, tails, heads = group.places
            values = raw[graphs, tails, heads]
            return group.columns, values if self.directed else (values + raw[graphs, heads, tails]) / 2
        if feature.is_pointer:
            raw = F.pad(raw, (0, largest - raw.shape[-1]), value=-torch.inf)
        return group.nodes.flatten(), raw.flatten(0, 1)


def _as_read(feature: Feature) -> Feature:
    """Return an input in its encoded form: a mask_one of edges or graphs is encoded as a mask."""
    if feature.is_pointer and feature.location is Location.GRAPH:
        raise ConfigError(f"input {feature.name!r}: there is no encoder for a {feature.type_name} of the graph")
    if feature.kind is Kind.MASK_ONE and feature.location is not Location.NODE:
        return replace(feature, kind=Kind.MASK)
    return feature
