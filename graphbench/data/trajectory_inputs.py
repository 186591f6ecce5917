"""What the Generalist protocol changes about the inputs of trajectories: random positions, constant hints as inputs.

Both follow the 2022 update of the CLRS benchmark (Ibarz et al., A Generalist Neural Algorithmic Learner).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from graphbench.catalog.features import Feature, Stage
from graphbench.core.errors import GraphBenchError
from graphbench.data.trajectory_batch import TrajectoryBatch

_ORDER_HINT, _ORDER_INPUT = "pred_h", "pred"
_CHANGING = "pred"  # an algorithm with this output reorders its list, so the hint of the order changes


@dataclass(frozen=True)
class InputRule:
    """How batches are changed before a model sees them.

    Attributes:
        constant_hints_as_inputs: Make the hint ``pred_h`` the input ``pred`` where it never changes.
        random_positions: Replace ``pos`` by sorted uniform numbers, for training and validation.
    """

    constant_hints_as_inputs: bool = False
    random_positions: bool = False

    def features(self, features: Sequence[Feature], constant: bool) -> tuple[Feature, ...]:
        """Return the features a model is built for.

        Args:
            features: Those of the card.
            constant: Whether the hint ``pred_h`` never changes, see ``order_is_constant``.
        """
        if not (self.constant_hints_as_inputs and constant):
            return tuple(features)
        return tuple(replace(f, name=_ORDER_INPUT, stage=Stage.INPUT) if f.name == _ORDER_HINT else f for f in features)

    def batch(
        self, batch: TrajectoryBatch, constant: bool, generator: torch.Generator | None = None
    ) -> TrajectoryBatch:
        """Return the batch as the model sees it.

        Args:
            batch: On the CPU.
            constant: As for ``features``.
            generator: Draws the positions; None leaves them as they are (testing).

        Raises:
            GraphBenchError: If the hint changes within a sample after all.
        """
        inputs, hints = dict(batch.inputs), dict(batch.hints)
        if self.constant_hints_as_inputs and constant:
            order = hints.pop(_ORDER_HINT)
            if bool((order != order[0]).any()):
                raise GraphBenchError(f"the hint {_ORDER_HINT!r} changes within a sample, so it cannot be an input")
            inputs[_ORDER_INPUT] = order[0]
        if self.random_positions and generator is not None:
            inputs["pos"] = random_positions(inputs["pos"], generator)
        return TrajectoryBatch(inputs, hints, batch.outputs, batch.lengths)


def order_is_constant(features: Sequence[Feature]) -> bool:
    """Return whether an algorithm has the hint ``pred_h`` and never changes it.

    Sorting algorithms, which have the output ``pred``, and quickselect, which shows a pivot, move their keys.
    """
    names = {f.name for f in features}
    return _ORDER_HINT in names and not names & {_CHANGING, "pivot"}


def random_positions(pos: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return sorted uniform numbers in place of the positions ``[B, n]``: one ramp per string, as ``pos`` has.

    A ramp starts where ``pos`` is 0.
    """
    drawn = torch.rand(pos.shape, generator=generator, dtype=pos.dtype)
    ramp = (pos == 0).cumsum(1).to(pos.dtype)
    return (drawn + ramp).sort(dim=1).values - ramp
