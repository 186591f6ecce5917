"""Training on a whole social network, and on parts of it, ours beside PyTorch Geometric."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.common import Row, Sizes, median_seconds, ours_at_most, ratio_at_least
from benchmarks.isolated import in_fresh_process

KIND = "reposts"  # the kind with most arcs
HIDDEN, LAYERS = 128, 4  # table 22


def rows(sizes: Sizes, root: str) -> Iterator[Row]:
    """Yield the rows of training.

    Args:
        sizes: Sizes of a full or a quick run.
        root: Folder of the datasets, but for the largest.
    """
    from graphbench.core.files import default_root

    users, repeats = sizes(100_000, 1_000), sizes(5, 2)
    arguments: dict[str, Any] = {"users": users, "root": root, "repeats": repeats}
    ours = in_fresh_process("benchmarks.social_training:ours", watch_memory=True, **arguments)
    for layer in ("GraphConv", "SAGEConv"):
        theirs = in_fresh_process("benchmarks.social_training:peer", watch_memory=True, layer=layer, **arguments)
        yield Row(
            f"training on the whole graph, beside {layer}",
            "steps/s",
            1 / ours.value["seconds"],
            1 / theirs.value["seconds"],
            lower_is_better=False,
            target=ratio_at_least(1.0),
            n={"users": users, "arcs": int(ours.value["arcs"])},
            note=f"{LAYERS} layers of {HIDDEN}, mean aggregation, three outputs; memory "
            f"{ours.peak_pss / 1e9:.2f} GB, peer {theirs.peak_pss / 1e9:.2f} GB",
        )
    parts = in_fresh_process("benchmarks.social_training:parts", **arguments).value
    yield Row(
        "training on parts, 1,024 nodes with 10 arcs per node and hop",
        "steps/s",
        1 / parts["seconds"],
        lower_is_better=False,
        n={"users": users, "arcs": int(parts["arcs"])},
        note=f"of which drawing the part takes {parts['drawing'] / parts['seconds']:.0%}; {parts['part']:,.0f} arcs in "
        "a part; PyG's NeighborLoader needs pyg-lib or torch-sparse, which have no wheels for this torch",
    )
    whole = sizes(960_000, 2_000)
    kept = root if sizes.quick else str(default_root())  # the whole dataset takes minutes to build, and is kept
    arguments |= {"users": whole, "root": kept, "repeats": 1}
    large = in_fresh_process("benchmarks.social_training:ours", watch_memory=True, **arguments)
    yield Row(
        "memory of training on the largest graph",
        "MB",
        large.peak_pss / 1e6,
        target=ours_at_most(16_000),
        n={"users": whole, "arcs": int(large.value["arcs"])},
        note=f"one step takes {large.value['seconds']:.3g} s",
    )


def _split(users: int, root: str) -> Any:
    from graphbench import Loader

    return Loader(f"social/sim_{KIND}", root=root, limit=users, workers=1, progress=False).load("train")


def _model(data: Any, **changes: Any) -> tuple[Any, Any, Any]:
    """Return a model of table 22, its task and its optimizer."""
    import torch

    from graphbench.models.base import TaskFeatures
    from graphbench.models.config import ModelConfig
    from graphbench.models.registry import build_task_model
    from graphbench.tasks.registry import task_of

    card, task = data.card, task_of(data.card)
    config = ModelConfig(
        processor="graphconv", layers=LAYERS, hidden=HIDDEN, dropout=0.0, activation="relu",
        positional={"type": "none"}, **changes,
    )  # fmt: skip
    torch.manual_seed(0)
    model = build_task_model(config, {card.address: TaskFeatures.of(card)})
    model.fit_normalisation(task.normalisation_batch(data.train), card.address)
    return model, task, torch.optim.AdamW(model.parameters(), 1e-3, fused=True)


def ours(users: int, root: str, repeats: int) -> dict[str, float]:
    """Return wall seconds of an update on the whole training split, and its arcs."""
    data = _split(users, root)
    model, task, optimizer = _model(data)
    batch = next(task.batches(data.train, 1, seed=0))

    def step() -> None:
        sum(task.losses(model(batch, data.card.address), batch).values()).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return {"seconds": median_seconds(step, repeats), "arcs": batch.edge_index.shape[1]}


def peer(users: int, root: str, repeats: int, layer: str) -> dict[str, float]:
    """Return wall seconds of an update of a model of the same size, built of PyTorch Geometric's layers."""
    import torch
    import torch_geometric.nn as pyg
    from torch import nn

    (batch,) = _split(users, root).train.batches(1)
    convolution = getattr(pyg, layer)
    torch.manual_seed(0)
    first, last = nn.Linear(batch.content.shape[1], HIDDEN), nn.Linear(HIDDEN, 3)
    layers = nn.ModuleList(convolution(HIDDEN, HIDDEN, aggr="mean") for _ in range(LAYERS))
    parameters = [p for module in (first, last, layers) for p in module.parameters()]
    optimizer = torch.optim.AdamW(parameters, 1e-3, fused=True)
    inputs, edges, targets = batch.content.float(), batch.edge_index.clone(), batch.y.float()

    def step() -> None:
        states = first(inputs)
        for one in layers:
            states = states + torch.relu(one(states, edges))
        (last(states) - targets).abs().mean(0).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return {"seconds": median_seconds(step, repeats), "arcs": edges.shape[1]}


def parts(users: int, root: str, repeats: int) -> dict[str, float]:
    """Return wall seconds of an update on a part of the graph, and of drawing the part."""
    from graphbench.training.neighbours import NeighbourBatches
    from graphbench.training.settings import NeighbourSettings

    data = _split(users, root)
    model, task, optimizer = _model(data)
    stream = NeighbourBatches(data.train, NeighbourSettings(nodes=1024, per_hop=(10,) * LAYERS)).batches(0)
    arcs = []

    def draw() -> Any:
        found = next(stream)
        assert found is not None
        arcs.append(found.edge_index.shape[1])
        return found

    def step() -> None:
        batch = draw()
        sum(task.losses(model(batch, data.card.address), batch).values()).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    drawing = median_seconds(draw, repeats)
    (whole,) = data.train.batches(1)
    return {
        "seconds": median_seconds(step, repeats),
        "drawing": drawing,
        "arcs": whole.edge_index.shape[1],
        "part": sum(arcs) / len(arcs),
    }
