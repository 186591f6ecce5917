"""A training step of trajectory models, ours and a straightforward port of the reference's formulas."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from benchmarks.common import Row, Sizes, main, ratio_at_least
from benchmarks.isolated import in_fresh_process

SETTINGS = {
    "step": "loss, gradients and an Adam update: batch 32, hidden 128, 16 nodes, one thread, best of the repeats",
    "port": "the same model, in which vectors of pairs are made before every linear map of them, and all triples of "
    "nodes are put into one tensor before the maximum; everything else is ours, so the port is a fast one",
    "algorithm": "dijkstra: a batch has 17 steps at most, of which 16 run the processor",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``trajectories.json``."""
    for processor in ("mpnn", "triplet_gmpnn"):
        arguments: dict[str, Any] = {"processor": processor, "repeats": sizes(8, 1)}
        ours = in_fresh_process("benchmarks.trajectories:step", port=False, **arguments).value
        port = in_fresh_process("benchmarks.trajectories:step", port=True, **arguments).value
        yield Row(
            f"{processor}: training step",
            "ms",
            1e3 * ours["seconds"],
            1e3 * port["seconds"],
            target=ratio_at_least(1),
            n={"repeats": sizes(8, 1)},
            note=f"{1e3 * ours['seconds'] / ours['steps']:.1f} ms per step of the algorithm, encoders and decoders "
            f"included; the losses of both differ by {abs(ours['loss'] - port['loss']):.1e}",
            details={"ours": ours, "port": port},
        )


def step(processor: str, port: bool, repeats: int) -> dict[str, float]:
    """Return the best time of a training step, the processor steps in it, and the first loss."""
    import numpy as np
    import torch

    from graphbench import card
    from graphbench.data.generation import draw_samples
    from graphbench.data.trajectory_batch import batch_of_samples
    from graphbench.models.trajectory.config import TrajectoryModelConfig
    from graphbench.models.trajectory.model import build_trajectory_model

    torch.set_num_threads(1)
    if port:
        _make_everything()
    about = card("clrs/dijkstra")
    batch = batch_of_samples(draw_samples(about, "train", np.arange(32)), about.features)
    torch.manual_seed(0)
    config = TrajectoryModelConfig(processor=processor, random_positions=False, constant_hints_as_inputs=False)
    model = build_trajectory_model(config, {about.id: about.features})
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    seconds, losses = [], []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        loss = model.loss(batch, about.id)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - started)
        losses.append(loss.item())
    return {"seconds": min(seconds[1:]), "steps": batch.steps - 1, "loss": losses[0]}


def _make_everything() -> None:
    """Turn the model into a straightforward port: make what ours only composes."""
    from graphbench.models.trajectory.encoders import PairVectors
    from graphbench.models.trajectory.processors import message_passing

    def project(self: Any, linear: Any, first: int = 0) -> Any:
        import torch.nn.functional as F

        return F.linear(self.full(), linear.weight[:, first : first + len(self.bias)], linear.bias)

    def max_plus(left: Any, right: Any) -> Any:
        return (left.unsqueeze(3) + right.unsqueeze(2)).amax(1)

    PairVectors.project = project  # type: ignore[method-assign]
    message_passing.max_plus = max_plus


if __name__ == "__main__":
    main("trajectories", "Training on trajectories", measure, SETTINGS)
