"""A training step of trajectory models, ours and a straightforward port of the reference's formulas."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from benchmarks.common import Row, Sizes, main, ratio_at_least
from benchmarks.isolated import in_fresh_process

SETTINGS = {
    "step": "loss, gradients and an Adam update: batch 32, hidden 128, 16 nodes, one thread, best of the repeats",
    "port": "the same model with the reference's formulas term by term: vectors of all pairs made before every linear "
    "map of them, all triples of nodes in one tensor, pointers as a maximum of two tensors; loop and losses are ours",
    "algorithm": "dijkstra, where no row names another: a batch has 17 steps at most, of which 16 run the processor",
}
CASES = {  # row -> processor, algorithm, hidden
    "mpnn: training step": ("mpnn", "dijkstra", 128),
    "triplet_gmpnn: training step": ("triplet_gmpnn", "dijkstra", 128),
    "mpnn, 64 wide, depth-first search: training step": ("mpnn", "dfs", 64),
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``trajectories.json``."""
    for what, (processor, algorithm, hidden) in CASES.items():
        arguments: dict[str, Any] = {
            "processor": processor,
            "algorithm": algorithm,
            "hidden": hidden,
            "repeats": sizes(8, 1),
        }
        ours = in_fresh_process("benchmarks.trajectories:step", port=False, **arguments).value
        port = in_fresh_process("benchmarks.trajectories:step", port=True, **arguments).value
        yield Row(
            what,
            "ms",
            1e3 * ours["seconds"],
            1e3 * port["seconds"],
            target=ratio_at_least(1),
            n={"repeats": sizes(8, 1)},
            note=f"{1e3 * ours['seconds'] / ours['steps']:.1f} ms per step of the algorithm, encoders and decoders "
            f"included; the losses of both differ by {abs(ours['loss'] - port['loss']):.1e}",
            details={"ours": ours, "port": port},
        )


def step(processor: str, algorithm: str, hidden: int, port: bool, repeats: int) -> dict[str, float]:
    """Return the best time of a training step, the processor steps in it, and the first loss."""
    import numpy as np
    import torch

    from graphbench import card
    from graphbench.data.batches.trajectory_batch import batch_of_samples
    from graphbench.data.build.generation import draw_samples
    from graphbench.models.base import TaskFeatures
    from graphbench.models.trajectory.config import TrajectoryModelConfig
    from graphbench.models.trajectory.model import TrajectoryModel

    torch.set_num_threads(1)
    if port:
        _make_everything()
    about = card(f"clrs/{algorithm}")
    batch = batch_of_samples(draw_samples(about, "train", np.arange(32)), about.features)
    torch.manual_seed(0)
    rule: dict[str, Any] = {"random_positions": False, "constant_hints_as_inputs": False}
    config = TrajectoryModelConfig(processor=processor, hidden=hidden, **rule)
    model = TrajectoryModel(config, {about.id: TaskFeatures.of(about)})
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
    """Turn the model into a straightforward port of the reference's formulas, term by term."""
    import torch
    import torch.nn.functional as F
    from torch import Tensor

    from graphbench.models.trajectory.decoders import FeatureDecoder
    from graphbench.models.trajectory.encoders import PairVectors
    from graphbench.models.trajectory.processors.message_passing import MessagePassing, TripletMessagePassing

    def full(pairs: Any) -> Tensor:
        return F.linear(pairs.columns, pairs.weight, pairs.bias)

    def project(self: Any, linear: Any) -> Tensor:
        return F.linear(full(self), linear.weight[:, : len(self.bias)], linear.bias)

    def aggregate(self: Any, step: Any) -> Tensor:
        total = self.sender(step.nodes).unsqueeze(2) + self.receiver(step.nodes).unsqueeze(1)
        total = total + self.pair(full(step.pairs)) + self.graph(step.graph)[:, None, None]
        return self.outer(torch.relu(self.inner(torch.relu(total)))).max(1).values  # type: ignore[no-any-return]

    def triplets(self: Any, step: Any) -> Tensor:
        i, j, k = (corner(step.nodes) for corner in self.corners)
        ij, ik, jk = (side(full(step.pairs)) for side in self.sides)
        total = i[:, :, None, None] + j[:, None, :, None] + k[:, None, None]
        total = (
            total + ij[:, :, :, None] + ik[:, :, None] + jk[:, None] + self.of_graph(step.graph)[:, None, None, None]
        )
        return total.max(1).values  # type: ignore[no-any-return]

    def messages(self: Any, step: Any) -> Tensor:
        return torch.relu(self.widen(self.triplets(step)))

    def node_pointers(self: Any, state: Any, sources: Tensor, targets: Tensor) -> Tensor:
        pairs = full(state.pairs)
        if self.reads_messages:
            pairs = torch.cat([pairs, state.messages], -1)
        both = targets.unsqueeze(1) + self.pair(pairs).transpose(1, 2)
        return self.last(torch.maximum(sources.unsqueeze(2), both)).squeeze(-1)  # type: ignore[no-any-return]

    changes: dict[Any, dict[str, Any]] = {
        PairVectors: {"project": project, "full": full},
        MessagePassing: {"aggregate": aggregate},
        TripletMessagePassing: {"triplets": triplets, "messages": messages},
        FeatureDecoder: {"_node_pointers": node_pointers},
    }
    for owner, methods in changes.items():
        for name, function in methods.items():
            assert hasattr(owner, name), f"{owner.__name__} has no {name} any more: bring the port up to date"
            setattr(owner, name, function)


if __name__ == "__main__":
    main("trajectories", "Training on trajectories", measure, SETTINGS)
