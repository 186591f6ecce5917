"""Changes of the Generalist protocol to the inputs of trajectories: random positions, constant hints as inputs.

Both follow the 2022 update of the CLRS benchmark (Ibarz et al., A Generalist Neural Algorithmic Learner). A card names
the hints and the input in the options of its task::

    task: {type: trace, options: {positions: pos, constant_hints: {pred_h: pred}}}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from graphbench.catalog.features import Feature, Kind, Location, Stage, select
from graphbench.core.errors import ConfigError, GraphBenchError
from graphbench.data.batches.trajectory_batch import TrajectoryBatch


@dataclass(frozen=True)
class InputRule:
    """Changes to batches before a model reads them.

    Attributes:
        constant_hints: Hint -> name of the input that it becomes; its value must be the same at all steps of a sample.
        positions: Scalar input of nodes that is replaced by sorted uniform numbers, for training and validation.
    """

    constant_hints: Mapping[str, str] = field(default_factory=dict)
    positions: str | None = None

    def features(self, features: Sequence[Feature]) -> tuple[Feature, ...]:
        """Return the features for which a model is built, given the features of the card.

        Raises:
            ConfigError: If the card lacks a hint or input that the rule names, or has a feature of an input's new name.
        """
        names, hints = {f.name for f in features}, {f.name for f in select(features, Stage.HINT)}
        for hint, name in self.constant_hints.items():
            if hint not in hints or name in names:
                raise ConfigError(
                    f"constant_hints: {hint!r} is no hint, or there is a feature {name!r}; correct the card"
                )
        nodes = select(features, Stage.INPUT, Location.NODE)
        scalars = {f.name for f in nodes if f.kind is Kind.SCALAR and f.width == 1}
        if self.positions is not None and self.positions not in scalars:
            raise ConfigError(f"positions: {self.positions!r} is no scalar input of nodes; correct the card")
        return tuple(
            replace(f, name=self.constant_hints[f.name], stage=Stage.INPUT) if f.name in self.constant_hints else f
            for f in features
        )

    def batch(self, batch: TrajectoryBatch, generator: torch.Generator | None = None) -> TrajectoryBatch:
        """Return the batch as the model reads it.

        Args:
            batch: On the CPU.
            generator: Random generator of the positions; None keeps them (testing).

        Raises:
            GraphBenchError: If a hint that should be constant changes within a sample.
        """
        inputs, hints = dict(batch.inputs), dict(batch.hints)
        for hint, name in self.constant_hints.items():
            values = hints.pop(hint)
            if bool((values != values[0]).any()):
                raise GraphBenchError(f"the hint {hint!r} changes within a sample, so it cannot be an input")
            inputs[name] = values[0]
        if self.positions is not None and generator is not None:
            inputs[self.positions] = random_positions(inputs[self.positions], generator)
        return replace(batch, inputs=inputs, hints=hints)


def random_positions(pos: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return sorted uniform numbers that replace the positions ``[B, n]``: one ramp per string, as ``pos`` has.

    A ramp starts where ``pos`` is 0.
    """
    drawn = torch.rand(pos.shape, generator=generator, dtype=pos.dtype)
    ramp = (pos == 0).cumsum(1).to(pos.dtype)
    return (drawn + ramp).sort(dim=1).values - ramp
