"""Training: time of an optimizer step of the baselines on one CPU core, and with ``--cuda`` on the GPU."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from benchmarks.common import Row, Sizes, main, ratio_at_least, row_or_failure, scratch_folder
from benchmarks.isolated import in_fresh_process

BATCH = 256
BUDGET = 11_880  # optimizer steps of the paper
GRAPHS = 8_192
NODES, WIDTH = 4_096, 384
TYPED_WIDTH, TYPES = 96, 8  # of baselines/circuits/typed_small.yaml
PARTS = {  # function -> part, what it is compared with
    "messages": ("GINE's messages", "GINEConv of PyTorch Geometric"),
    "pairs": ("Sum of eigenvalue and eigenvector pairs", "linear layer and ReLU of torch, pair by pair"),
    "typed": (
        "Layer with weights per type",
        "the same layer with HeteroLinear and MessagePassing of PyTorch Geometric",
    ),
    "dropout": ("Random dropout", "torch.nn.Dropout"),
}
CASES = {  # name -> model, dataset, graphs per measured step on the CPU
    "GIN": ("gin", "algoreas/mst_easy", 256),
    "GT, node tokens": ("gt", "algoreas/topological_sort_easy", 32),
    "GT, node and edge tokens": ("gt", "algoreas/mst_easy", 8),
}
LARGE = "GT, node and edge tokens, 128 nodes, CPU: a step of one graph"
SETTINGS = {
    "step": "batch from the data set, forward, loss, backward, clipping if configured, AdamW; encodings computed in it",
    "configuration": "baselines/algoreas/gin.yaml and gt.yaml as they are (16-node graphs)",
    "parts": "forward and backward of one part of a step: 256 graphs of 16 nodes with 64 arcs each, width 384, fp32; "
    "the layer with weights per type has 8 types and width 96, as baselines/circuits/typed_small.yaml",
    "CPU": "fp32 unless a row says bf16, one thread, CPU seconds; transformers on smaller batches, scaled up",
    "CUDA": "the configuration's precision (bf16 where supported), wall seconds, batches of 256 graphs",
    "peer": "of whole steps none: the public package ships no models and no training; of parts the rows name theirs",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``training.json``."""
    with scratch_folder() as root:
        if sizes.cpu:
            for name, (model, dataset, graphs) in CASES.items():
                yield _row(f"{name}, CPU", model, dataset, str(root), "cpu", sizes(graphs, min(graphs, 4)), sizes(5, 1))
            whole = ("gin", "algoreas/mst_easy", str(root), "cpu", sizes(256, 4), sizes(10, 1))
            yield _row("GIN, CPU, bf16", *whole, precision="bf16")
            yield _large_graphs(str(root), sizes(3, 1))
            for part in PARTS:
                yield _part(part, sizes(20, 1))
        if sizes.cuda:
            for name, (model, dataset, _) in CASES.items():
                row = _row(f"{name}, CUDA", model, dataset, str(root), "cuda", BATCH, sizes(200, 10))
                yield row
                yield _full_run(name, model, dataset, row)


def _row(
    name: str, model: str, dataset: str, root: str, device: str, graphs: int, steps: int, precision: str | None = None
) -> Row:
    what = f"{name}: a step of {BATCH} graphs"

    def measured() -> Row:
        found = in_fresh_process(
            "benchmarks.training:time_steps",
            model=model,
            dataset=dataset,
            root=root,
            device=device,
            graphs=graphs,
            steps=steps,
            precision=precision,
        ).value
        scaled = "" if graphs == BATCH else f"measured with {graphs} graphs per step and scaled to {BATCH}; "
        note = f"{scaled}{found['parameters'] / 1e6:.2f} M parameters, {found['precision']}"
        seconds = found["seconds"] * BATCH / graphs
        return Row(what, "s", seconds, n={"steps": steps}, note=note, details={"dataset": dataset, **found})

    return row_or_failure(what, "s", measured)


def _large_graphs(root: str, steps: int) -> Row:
    """Return the time of a step of GT on graphs of 128 nodes, beside the same model with a dense bias."""

    def measured() -> Row:
        setting = {"model": "gt", "dataset": "algoreas/mst_easy", "root": root, "device": "cpu", "graphs": 2}
        sides = [
            in_fresh_process(
                "benchmarks.training:time_steps", **setting, steps=steps, split="test", limit=64, attention=attention
            ).value
            for attention in ("auto", "sdpa")
        ]
        ours, peer = (side["seconds"] / side["graphs_per_step"] for side in sides)
        note = "peer: attention=sdpa, which adds a dense bias; one thread"
        return Row(LARGE, "s", ours, peer, target=ratio_at_least(3), n={"steps": steps}, note=note)

    return row_or_failure(LARGE, "s", measured)


def _part(part: str, repeats: int) -> Row:
    """Return the row of a part of a step."""
    name, peer = PARTS[part]
    what = f"{name}, forward and backward, CPU"

    def measured() -> Row:
        found = in_fresh_process("benchmarks.training:time_part", part=part, repeats=repeats).value
        return Row(what, "ms", found["ours"], found["peer"], n={"repeats": repeats}, note=f"peer: {peer}")

    return row_or_failure(what, "ms", measured)


def time_part(part: str, repeats: int) -> dict[str, float]:
    """Return the mean CPU milliseconds of a part of a step and of its peer, forward and backward, after one warm-up."""
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = {}
    for name, (function, inputs) in sides_of_part(part).items():
        weights = torch.randn_like(function())
        torch.autograd.grad(function(), inputs, weights)
        started = time.process_time()
        for _ in range(repeats):
            torch.autograd.grad(function(), inputs, weights)
        found[name] = 1e3 * (time.process_time() - started) / repeats
    return found


def sides_of_part(part: str) -> dict[str, tuple[Any, list[Any]]]:
    """Return, for ``ours`` and ``peer``, a function that computes a part of a step, and the tensors with gradients."""
    sides: dict[str, tuple[Any, list[Any]]]
    sides = {"messages": _messages, "pairs": _pairs, "typed": _typed, "dropout": _dropout}[part]()
    return sides


def _typed() -> Any:
    import torch

    from benchmarks.training_peers import TypedPeer
    from graphbench.models.config import ModelConfig
    from graphbench.models.processors.typed import Classes, TypedLayer

    config = ModelConfig(processor="typed", layers=1, hidden=TYPED_WIDTH, dropout=0.0, activation="relu")
    layer, kinds = TypedLayer(config, TYPES), torch.randint(TYPES, (NODES,))
    nodes = torch.randn(NODES, TYPED_WIDTH, requires_grad=True)
    edges = torch.randn(4 * NODES, TYPED_WIDTH, requires_grad=True)
    ends = torch.randint(16, (2, 4 * NODES)) + torch.arange(4 * NODES) // 64 * 16
    classes, peer = Classes.of(kinds, ends, TYPES), TypedPeer(layer)
    return {
        "ours": (lambda: layer(nodes, edges, classes), [nodes, edges, *layer.parameters()]),
        "peer": (lambda: peer(nodes, edges, ends, kinds), [nodes, edges, *peer.parameters()]),
    }


def _messages() -> Any:
    import torch
    from torch_geometric.nn import GINEConv

    from graphbench.models.fused import relu_messages

    nodes, edges = torch.randn(NODES, WIDTH, requires_grad=True), torch.randn(4 * NODES, WIDTH, requires_grad=True)
    ends = (torch.randint(16, (2, 4 * NODES)) + torch.arange(4 * NODES) // 64 * 16)[:, torch.randperm(4 * NODES)]
    ends = ends[:, ends[1].div(16, rounding_mode="floor").argsort(stable=True)]  # arcs graph by graph, as in batches
    peer = GINEConv(torch.nn.Identity(), eps=-1.0)  # the sum of the messages alone
    return {
        "ours": (lambda: relu_messages(nodes, edges, ends), [nodes, edges]),
        "peer": (lambda: peer(nodes, ends, edges), [nodes, edges]),
    }


def _pairs() -> Any:
    import torch

    from graphbench.models.fused import relu_pairs

    values, vectors = torch.rand(NODES, 16, requires_grad=True), torch.randn(NODES, 16)
    counts, layer = torch.full((NODES,), 16), torch.nn.Linear(2, WIDTH)

    def separate() -> torch.Tensor:
        total = torch.zeros(NODES, WIDTH)
        for j in range(16):
            total = total + torch.relu(layer(torch.stack([vectors[:, j], values[:, j]], dim=1)))
        return total

    inputs = [values, layer.weight, layer.bias]
    return {
        "ours": (lambda: relu_pairs(vectors, values, counts, layer.weight, layer.bias), inputs),
        "peer": (separate, inputs),
    }


def _dropout() -> Any:
    import torch

    from graphbench.models.layers import Dropout

    rows, own, peer = torch.randn(NODES, WIDTH, requires_grad=True), Dropout(0.1), torch.nn.Dropout(0.1)
    return {"ours": (lambda: own(rows), [rows]), "peer": (lambda: peer(rows), [rows])}


def _full_run(name: str, model: str, dataset: str, step: Row) -> Row:
    """Return the time of a whole run on a GPU: from the newest record of one if there is any, else projected."""
    from graphbench.records.files import load_records, results_dir

    runs = [
        record
        for record in (load_records(dataset) if results_dir().is_dir() else ())
        if record.model == model and record.steps == BUDGET and str(record.hardware.get("device")).startswith("cuda")
    ]
    what = f"{name}, CUDA: full run of {BUDGET:,} steps"
    if runs:
        newest = max(runs, key=lambda record: record.started)
        note = f"recorded {newest.started:%Y-%m-%d} on {newest.hardware.get('gpu', 'a GPU')}, validation included"
        return Row(what, "s", newest.wall_seconds, n={"runs": 1}, note=note)
    projected = None if step.ours is None else BUDGET * step.ours
    return Row(what, "s", projected, note="projected from the step time; `python -m benchmarks.gpu` runs it in full")


def time_steps(
    model: str,
    dataset: str,
    root: str,
    device: str,
    graphs: int,
    steps: int,
    precision: str | None = None,
    *,
    split: str = "train",
    limit: int = GRAPHS,
    attention: str | None = None,
) -> dict[str, Any]:
    """Return the mean seconds of an optimizer step (CPU seconds on the CPU, wall seconds on a GPU).

    Steps that compile and warm up come first and do not count.
    """
    import torch

    from graphbench import Loader, card
    from graphbench.data.batches.batching import on_device
    from graphbench.models.build import build_model
    from graphbench.models.losses import loss
    from graphbench.training.config import load_config
    from graphbench.training.loop import make_optimizer
    from graphbench.training.scoring import autocast, chosen_precision

    torch.set_num_threads(1)
    torch.manual_seed(0)
    place = torch.device(device)
    chosen = card(dataset)
    overrides = [] if attention is None else [f"model.attention={attention}"]
    config = load_config(chosen.id, model, family=chosen.family, overrides=overrides)
    precision = chosen_precision(precision or config.training.precision, place)
    data = Loader(dataset, root=root, limit=limit, progress=False).load([split])[split]
    network = build_model(config.model, chosen.features, directed=chosen.directed)
    network.fit_normalisation(next(iter(data.batches(1_024))))
    network = network.to(place).train()
    optimizer = make_optimizer(network, config.training)

    def run(first: int, count: int) -> None:
        done = first
        while done < first + count:
            for drawn in data.batches(graphs, shuffle=True, epoch=done, drop_last=True):
                batch = on_device(network.prepare(drawn, training=True), place)
                optimizer.zero_grad(set_to_none=True)
                with autocast(place, precision):
                    value = loss(network(batch), batch, chosen.features)
                value.backward()
                if config.training.gradient_clip is not None:
                    torch.nn.utils.clip_grad_norm_(network.parameters(), config.training.gradient_clip)
                optimizer.step()
                done += 1
                if done == first + count:
                    break
        if place.type == "cuda":
            torch.cuda.synchronize()

    run(0, 1 if place.type == "cpu" else 10)
    clock = time.process_time if place.type == "cpu" else time.perf_counter
    started = clock()
    run(1_000, steps)
    seconds = (clock() - started) / steps
    return {
        "seconds": seconds,
        "graphs_per_step": graphs,
        "graphs_per_second": graphs / seconds,
        "precision": precision,
        "parameters": sum(p.numel() for p in network.parameters()),
        "device": torch.cuda.get_device_name() if place.type == "cuda" else "cpu",
        "peak_gpu_bytes": torch.cuda.max_memory_allocated() if place.type == "cuda" else None,
    }


if __name__ == "__main__":
    main("training", "Training steps", measure, SETTINGS)
