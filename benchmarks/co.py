"""Combinatorial optimisation: graphs drawn, and labels found, beside the peer's generators and other solvers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from statistics import mean, stdev
from typing import Any

from benchmarks.common import Row, Sizes, main, ratio_at_least, row_or_failure
from benchmarks.isolated import in_fresh_process
from benchmarks.peer import PEER, ask_peer

FAMILIES = ("rb_small", "rb_large", "er_small", "er_large", "ba_small", "ba_large")
PEER_NAMES = {"cliques": "num_cliques", "clique_size": "k", "tightness": "p", "nodes": "num_nodes", "p": "p", "m": "m"}
SOLVERS: dict[str, dict[str, dict[str, Any]]] = {  # task -> solver -> call
    "mis": {"redumis, 1 s": {"name": "kamis_independent_set", "algorithm": "redumis", "seconds": 1.0}},
    "max_cut": {
        "chszlablib, 1 s": {"name": "kernelised_cut", "seconds": 1.0},
        "SCIP, 20 s": {"name": "scip_cut", "seconds": 20.0},
    },
    "coloring": {"gcol, 10,000 iterations": {"name": "gcol_colouring", "iterations": 10_000}},
}
COLOURING_SHARE = 0.2  # of the card's steps, which go beyond what a colouring as good as the peer's takes
SETTINGS = {
    "peer package": f"{PEER}; its model RB fails on its own draw, which is wrapped so that it runs",
    "graphs": "process CPU time; ours: draw_samples on compiled kernels; the peer: its create_graph, same parameters",
    "labels": "first graphs of the test split, one thread, CPU time; ours with the effort of the card, or for "
    "colourings with a share of its steps as well: the card goes on where the peer's colourings are reached",
    "cut solvers": "the better of chszlablib's heuristic (1 s) and, on graphs of Barabasi and Albert, SCIP (20 s)",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``co.json``."""
    for family in FAMILIES:
        yield row_or_failure(f"{family}: graphs", "us/graph", partial(_graphs, family, sizes))
    for task in SOLVERS:
        for family in FAMILIES:
            yield from _labels(task, family, sizes)


def _graphs(family: str, sizes: Sizes) -> Row:
    from graphbench import card

    small = family.endswith("small")
    parameters = card(f"co/{family}").split("train").parameters
    ours = in_fresh_process(
        "benchmarks.generation:draw", dataset=f"co/{family}", split="train",
        graphs=sizes(4_000 if small else 400, 40),
    ).value  # fmt: skip
    model = family.split("_")[0]
    peer = ask_peer(
        "co_graphs",
        family=model,
        parameters={"alpha": None, "r": None}
        | {PEER_NAMES[key]: v for key, v in parameters.items() if key in PEER_NAMES},
        graphs=sizes(200, 2),
        max_seconds=sizes(20, 5),
    )
    return Row(
        f"{family}: graphs",
        "us/graph",
        1e6 * ours["seconds_per_graph"],
        1e6 * peer["seconds_per_graph"],
        target=ratio_at_least(200 if model == "ba" else 500),
        n={"ours": ours["graphs"], "peer": peer["graphs"]},
        details={"ours": ours, "peer": peer},
    )


def _labels(task: str, family: str, sizes: Sizes) -> Iterator[Row]:
    """Yield how good the labels of a task are beside the best other solver, and how fast."""
    sparse = family.startswith("ba")
    calls = {name: call for name, call in SOLVERS[task].items() if sparse or call["name"] != "scip_cut"}
    count = sizes(20 if family.endswith("small") else 6, 1)
    share = COLOURING_SHARE if task == "coloring" else None
    solved = in_fresh_process(
        "benchmarks.co:solve", family=family, task=task, calls=calls, count=count, share=share
    ).value  # fmt: skip
    what = f"{family}, {task}"
    yield from _compared(what, task, solved["ours"], solved["others"])
    if share is not None:
        yield from _compared(f"{what}, {share:.0%} of the steps", task, solved["less"], solved["others"])


def _compared(what: str, task: str, ours: Any, others: Any) -> Iterator[Row]:
    """Yield objective and time of our labels beside the best of the other solvers."""
    best = [
        max(values) if task != "coloring" else min(values)
        for values in zip(*(o["values"] for o in others.values()), strict=True)
    ]
    count = len(best)
    n = {"ours": count, "peer": count}
    yield Row(
        f"{what}: mean objective, peer: {' and '.join(others)}",
        {"mis": "nodes", "max_cut": "edges", "coloring": "colours"}[task],
        mean(ours["values"]),
        mean(best),
        lower_is_better=task == "coloring",
        target=ratio_at_least(0.997 if task == "mis" else 1.0),
        n=n,
        note=f"{sum(ours['proved'])} of {count} proved optimal; mean bound {mean(ours['bounds']):.5g}",
        details={"ours": ours, **others},
    )
    fastest = min(mean(other["seconds"]) for other in others.values())
    yield Row(
        f"{what}: time, peer: as above",
        "ms/graph",
        1e3 * mean(ours["seconds"]),
        1e3 * fastest,
        target=ratio_at_least(10.0) if task == "coloring" else None,
        n=n,
        details={"ours, standard deviation": stdev(ours["seconds"]) if count > 1 else 0.0},
    )


# --------------------------------------------------------------------------------------------------------------------
# Run in fresh processes


def solve(family: str, task: str, calls: dict[str, dict[str, Any]], count: int, share: float | None) -> dict[str, Any]:
    """Return value, bound, proof and seconds of our labels and of other solvers on the first test graphs.

    With ``share``, also of our solver with that share of its steps, under ``less``.
    """
    import numpy as np

    from graphbench import card
    from graphbench.data.build.generation import draw_samples
    from graphbench.data.components.domain import find
    from graphbench.domains.co import external
    from graphbench.domains.co.solving import SOLVERS

    chosen = card(f"co/{family}:{task}")
    kernel = SOLVERS[task]
    samples = draw_samples(chosen.graphs, "test", np.arange(count))
    graphs = [
        (int(n), samples.edges[samples.edge_ptr[i] : samples.edge_ptr[i + 1]].astype(np.int32))
        for i, n in enumerate(samples.num_nodes)
    ]
    effort = find("labeller", chosen.labellers[0]).parse(chosen, "test")
    kernel.solve(*graphs[0], effort, 1)  # loads the kernels

    def solved_with(chosen_effort: Any) -> dict[str, Any]:
        labels = [kernel.solve(n, edges, chosen_effort, i) for i, (n, edges) in enumerate(graphs)]
        for (n, edges), label in zip(graphs, labels, strict=True):
            assert not kernel.check(n, edges, label)
        return {
            "values": [label.value for label in labels],
            "bounds": [label.bound for label in labels],
            "proved": [bool(label.proved) for label in labels],
            "seconds": [label.seconds for label in labels],
        }

    ours = solved_with(effort)
    less = None if share is None else solved_with(effort.model_copy(update={"steps": int(share * effort.steps)}))
    others = {}
    for name, call in calls.items():
        options = dict(call)
        function = getattr(external, options["name"], None) or globals()[options["name"]]
        del options["name"]
        began = time.process_time()
        found = [function(n, edges, **options) for n, edges in graphs]
        others[name] = {
            "values": [label.value for label in found],
            "seconds": [label.seconds for label in found],
            "with conversion": (time.process_time() - began) / count,
        }
    return {"ours": ours, "less": less, "others": others}


def kernelised_cut(num_nodes: int, edges: Any, seconds: float) -> Any:
    """Return the cut that chszlablib's heuristic reports; the partition it returns leaves nodes out, so is no proof."""
    import chszlablib
    import numpy as np

    from graphbench.domains.co.solvers import Label

    graph = chszlablib.Graph(num_nodes=num_nodes)
    for u, v in edges.tolist():
        graph.add_edge(u, v)
    graph.finalize()
    began = time.process_time()
    value = chszlablib.Decomposition.maxcut(graph, method="heuristic", time_limit=seconds).cut_value
    return Label(int(value), np.empty(0, np.int32), len(edges), "chszlablib", time.process_time() - began)


if __name__ == "__main__":
    main("co", "Combinatorial optimisation", measure, SETTINGS)
