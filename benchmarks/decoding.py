"""From scores to checked solutions and their objective: CPU time per graph and objective, ours and the peer's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from benchmarks.common import Row, Sizes, main, ratio_at_least, scratch_folder
from benchmarks.isolated import in_fresh_process
from benchmarks.peer import PEER, graphbench_lib

FAMILIES = {  # GraphBench, table 11
    "RB small": {
        "model": "rb",
        "cliques": [20, 25],
        "clique_size": [5, 12],
        "tightness": [0.3, 1.0],
        "nodes": [200, 300],
    },
    "ER small": {"model": "er", "nodes": [200, 300], "p": 0.15},
    "BA small": {"model": "ba", "nodes": [200, 300], "m": 2},
    "BA large": {"model": "ba", "nodes": [700, 800], "m": 2},
}
COLOURS = {"RB small": 48, "ER small": 32, "BA small": 24}  # the peer's decoder fails where they do not suffice
TARGET = 100.0
UNITS = {"mis": "nodes", "max_cut": "edges", "coloring": "colours"}
PEER_GRAPHS = {"mis": 64, "max_cut": 256, "coloring": 16}
SETTINGS = {
    "time": "process CPU seconds, one thread, from a batch and scores in memory to the mean objective; ours includes "
    "the checks of graphs, scores and solutions; best of the repeats, after one call that compiles",
    "data": "256 graphs in one batch, the peer's the first of them; scores drawn from a normal distribution, "
    f"float32; for colourings of {', '.join(f'{count} colours ({family})' for family, count in COLOURS.items())}",
    "objective": "mean over the graphs that both decoded, from the same scores",
    "peer": f"{PEER}: the decoders and objectives of graphbench.helpers.combinatorial_optimization",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``decoding.json``."""
    peer = replace(graphbench_lib(), driver="decoding_peer_driver.py")
    with scratch_folder() as folder:
        path = str(folder / "batch.npz")
        for family in FAMILIES:
            tasks = tuple(PEER_GRAPHS) if family in COLOURS else ("mis",)
            shared = {task: sizes(PEER_GRAPHS[task], 2) for task in tasks}
            arguments = {"path": path, "graphs": sizes(256, 4), "shared": shared, "repeats": sizes(5, 1)}
            ours = in_fresh_process("benchmarks.decoding:decode", family=family, **arguments).value
            theirs = peer.ask("decode", path=path, graphs=shared)
            for task, count in shared.items():
                counts = {"ours": sizes(256, 4), "peer": count}
                yield from _rows(task, family, ours[task], theirs[task], counts)


def _rows(task: str, family: str, ours: Any, theirs: Any, counts: dict[str, int]) -> Iterator[Row]:
    searched = ours["searched"]
    yield Row(
        f"{task}, {family}: time",
        "us/graph",
        1e6 * ours["seconds_per_graph"],
        1e6 * theirs["seconds_per_graph"],
        target=ratio_at_least(TARGET) if family in COLOURS else None,
        n=counts,
        note=_note(task, family),
        details={"ours with local search": 1e6 * searched["seconds_per_graph"]} if searched else {},
    )
    yield Row(
        f"{task}, {family}: objective",
        UNITS[task],
        ours["objective"],
        theirs["objective"],
        lower_is_better=task == "coloring",
        target=ratio_at_least(1.0),
        n=dict.fromkeys(("ours", "peer"), counts["peer"]),
        note=f"ours with local search: {searched['objective']:.1f}" if searched else "",
        details={"ours with local search": searched["objective"]} if searched else {},
    )


def _note(task: str, family: str) -> str:
    if family not in COLOURS:
        return "the peer stops after 300 nodes of each graph"
    if task == "max_cut":
        return "the peer only compares scores with 0 and counts; ours checks the graphs and the cut besides"
    return ""


def decode(family: str, path: str, graphs: int, shared: dict[str, int], repeats: int) -> dict[str, Any]:
    """Write a batch of graphs with scores for the peer; return task -> our seconds per graph and mean objective.

    The objective is that of the graphs shared with the peer. ``searched`` holds the same with local search, None for a
    task without.
    """
    import numpy as np
    from pydantic import TypeAdapter

    from graphbench.core.ragged import offsets
    from graphbench.domains.co.graphs import GraphParameters, draw_graphs

    parameters = TypeAdapter(GraphParameters).validate_python(FAMILIES[family])
    nodes, sizes, edges = draw_graphs(parameters, np.uint64(1), np.arange(graphs), np.zeros(graphs, np.int64))
    ptr, edge_ptr, rng = offsets(nodes), offsets(sizes), np.random.default_rng(0)
    shapes = {task: (int(ptr[-1]), *((COLOURS[family],) if task == "coloring" else ())) for task in shared}
    scores = {task: rng.normal(size=shape).astype(np.float32) for task, shape in shapes.items()}
    np.savez(path, ptr=ptr, edges=edges, edge_ptr=edge_ptr, **scores)
    batch = _batch(ptr, edge_ptr, edges)
    found: dict[str, Any] = {}
    for task, count in shared.items():
        found[task] = _timed(task, batch, scores[task], repeats, count)
        searches = task != "mis"
        found[task]["searched"] = (
            _timed(task, batch, scores[task], repeats, count, local_search=True) if searches else None
        )
    return found


def _batch(ptr: Any, edge_ptr: Any, edges: Any) -> Any:
    """Return a PyG batch as a data set gives it: the two directions of an edge are neighbouring columns."""
    import numpy as np
    import torch
    from torch_geometric.data import Batch

    shifted = edges.astype(np.int64) + np.repeat(ptr[:-1], np.diff(edge_ptr))[:, None]
    both = np.stack([shifted.T, shifted.T[::-1]], axis=-1).reshape(2, -1)
    graph = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    return Batch(edge_index=torch.from_numpy(both), batch=torch.from_numpy(graph), ptr=torch.from_numpy(ptr))


def _timed(task: str, batch: Any, scores: Any, repeats: int, shared: int, **options: Any) -> dict[str, Any]:
    from graphbench.tasks.solve.evaluator import decode as decoded

    seconds = []
    for _ in range(repeats + 1):
        started = time.process_time()
        values = decoded(task, batch, scores, **options).values
        values.mean()
        seconds.append(time.process_time() - started)
    return {"seconds_per_graph": min(seconds[1:]) / len(values), "objective": float(values[:shared].mean())}


if __name__ == "__main__":
    main("decoding", "Decoding of solutions", measure, SETTINGS)
