"""Generating labelled graphs: CPU time per graph, ours and the peer's, for every task."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.common import Row, Sizes, main, ours_at_most, ratio_at_least, row_or_failure, scratch_folder
from benchmarks.isolated import in_fresh_process
from benchmarks.peer import PEER, ask_peer

PEER_TASKS = {
    "topological_sort": "topologicalorder",
    "mst": "mst",
    "bridges": "bridges",
    "steiner_tree": "steinertree",
    "max_clique": "maxclique",
    "flow": "flow",
    "max_matching": "bipartitematching",
}
PEER_LABELS = {
    "max_clique": "the peer's label is an approximation, ours the maximum clique",
    "steiner_tree": "the peer's label is an approximation, ours the optimum",
}
SETTINGS = {
    "peer package": f"{PEER}, with the torch, PyG and networkx named above",
    "time": "process CPU seconds (user and system), one process, one thread",
    "ours": "draw_samples on compiled kernels: structure, features, labels, storage dtypes",
    "peer": "its own functions with this card's parameters and mixture, models drawn in turn; failed draws left out",
    "small": "training split of the easy variant, 16 nodes",
    "large": "test split of the easy variant, 128 nodes (flow: 64)",
}
MATCHING = "algoreas/max_matching_medium"


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``generation.json``."""
    for family in PEER_TASKS:
        yield _row(family, "train", sizes(20_000, 2_000), sizes(100, 6), sizes)
        if family == "max_clique":
            yield _clique_quality(sizes)
    for family in PEER_TASKS:
        yield _row(family, "test", sizes(240, 24), sizes(60, 1), sizes)
    try:
        yield from _large_matchings(sizes)
    except Exception as error:
        traceback.print_exc()
        yield Row("max_matching, 512 nodes", "s", None, note=f"failed: {error}", failed=True)


def _row(family: str, split: str, graphs: int, peer_graphs: int, sizes: Sizes) -> Row:
    what = f"{family}, {_split(f'algoreas/{family}_easy', split)['nodes']} nodes"
    return row_or_failure(what, "us/graph", lambda: _compare(what, family, split, graphs, peer_graphs, sizes))


def _compare(what: str, family: str, split: str, graphs: int, peer_graphs: int, sizes: Sizes) -> Row:
    spec = _split(f"algoreas/{family}_easy", split)
    ours = in_fresh_process(
        "benchmarks.generation:draw", dataset=f"algoreas/{family}_easy", split=split, graphs=graphs
    ).value
    peer = ask_peer(
        "generate",
        task=PEER_TASKS[family],
        nodes=spec["nodes"],
        models=spec["models"],
        mixture=spec["mixture"],
        graphs=peer_graphs,
        min_seconds=sizes(2, 0),
        max_seconds=sizes(60, 5),
    )
    small = split == "train"
    bound = (100 if family == "max_matching" else 200) if small else 50
    details = {"mixture": spec["mixture"], "ours": ours, "peer": _without_graphs(peer)}
    return Row(
        what=what,
        unit="us/graph",
        ours=1e6 * ours["seconds_per_graph"],
        peer=None if peer["seconds_per_graph"] is None else 1e6 * peer["seconds_per_graph"],
        target=ratio_at_least(bound),
        n={"ours": ours["graphs"], "peer": peer["graphs"]},
        note=_note(family, ours, peer),
        details=details,
    )


def _note(family: str, ours: dict[str, Any], peer: dict[str, Any]) -> str:
    parts = [PEER_LABELS[family]] if family in PEER_LABELS else []
    if ours["proved"] is not None:
        parts.append(f"{100 * ours['proved']:.2f} % of ours proved maximum")
    if peer["failures"]:
        failed = ", ".join(f"{count} {what}" for what, count in peer["failures"].items())
        parts.append(f"draws on which the peer fails, left out: {failed}")
    return "; ".join(parts)


def _without_graphs(peer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in peer.items() if key != "kept"}


def _split(dataset: str, split: str) -> dict[str, Any]:
    from graphbench import card

    return card(dataset).split(split).parameters


def draw(dataset: str, split: str, graphs: int) -> dict[str, Any]:
    """Return the CPU time of drawing the first ``graphs`` samples of a split, shard by shard, kernels compiled."""
    from graphbench import card
    from graphbench.data.build.generation import draw_samples
    from graphbench.data.components.domain import find

    chosen = card(dataset).graphs
    generator = find("generator", chosen.generator)
    shard = generator.shard_size(generator.parse(chosen, split))
    draw_samples(chosen, split, range(min(64, graphs)))
    proved: list[float] = []
    seconds, edges = 0.0, 0
    for first in range(0, graphs, shard):
        indices = np.arange(first, min(first + shard, graphs))
        started = time.process_time()
        samples = draw_samples(chosen, split, indices)
        seconds += time.process_time() - started
        edges += len(samples.edges)
        if "proved" in samples.values:
            proved.extend(samples.values["proved"].tolist())
    return {
        "graphs": graphs,
        "seconds_per_graph": seconds / graphs,
        "edges_per_graph": edges / graphs,
        "proved": float(np.mean(proved)) if proved else None,
    }


def _clique_quality(sizes: Sizes) -> Row:
    """Return how many of the peer's maximum-clique labels are maximum cliques."""
    spec = _split("algoreas/max_clique_easy", "train")
    peer = ask_peer(
        "generate",
        task="maxclique",
        nodes=spec["nodes"],
        models=spec["models"],
        mixture=spec["mixture"],
        graphs=sizes(1_000, 30),
        min_seconds=0.0,
        max_seconds=60.0,
        keep=True,
    )
    dataset = "algoreas/max_clique_easy"
    graphs = sizes(20_000, 2_000)
    ours = in_fresh_process("benchmarks.generation:draw", dataset=dataset, split="train", graphs=graphs).value
    right = in_fresh_process(
        "benchmarks.generation:share_of_maximum_cliques", nodes=spec["nodes"], labelled=peer["kept"]
    ).value
    return Row(
        what=f"max_clique, {spec['nodes']} nodes: labels that are a maximum clique",
        unit="share",
        ours=ours["proved"],
        peer=right,
        lower_is_better=False,
        n={"ours": ours["graphs"], "peer": peer["graphs"]},
        note="ours: share that the search proved; peer: its labels against an exact search of networkx",
    )


def share_of_maximum_cliques(nodes: int, labelled: list[dict[str, Any]]) -> float:
    """Return the share of graphs whose labelled nodes are as many as the maximum clique has (networkx, exact)."""
    import networkx

    right = 0
    for item in labelled:
        graph = networkx.Graph()
        graph.add_nodes_from(range(nodes))
        graph.add_edges_from(item["edges"])
        right += max(map(len, networkx.find_cliques(graph))) == len(item["chosen"])
    return right / len(labelled)


def _large_matchings(sizes: Sizes) -> Iterator[Row]:
    """Yield the time of 1,000 maximum-weight matchings at 512 nodes: extrapolated, and measured with two workers."""
    spec = _split(MATCHING, "n512")
    probe = in_fresh_process("benchmarks.generation:draw", dataset=MATCHING, split="n512", graphs=sizes(40, 6)).value
    peer = ask_peer(
        "generate",
        task=PEER_TASKS["max_matching"],
        nodes=spec["nodes"],
        models=spec["models"],
        mixture=spec["mixture"],
        graphs=1,
        min_seconds=0.0,
        max_seconds=sizes(60, 1),
    )
    count = sizes(1_000, 20)
    peer_seconds = None if peer["seconds_per_graph"] is None else count * peer["seconds_per_graph"]
    with scratch_folder() as root:
        built = in_fresh_process(
            "benchmarks.build:build", dataset=MATCHING, splits=["n512"], root=str(root), workers=2, limit=count
        ).value
    shared: dict[str, Any] = {"unit": "s", "peer": peer_seconds, "target": ours_at_most(120)}
    note = "peer: one process, extrapolated from its time per graph (it has no workers)"
    yield Row(
        what=f"max_matching, 512 nodes: {count} graphs, 2 workers, extrapolated",
        ours=count * probe["seconds_per_graph"] / 2,
        n={"ours": probe["graphs"], "peer": peer["graphs"]},
        note=note,
        details={"ours": probe, "peer": _without_graphs(peer)},
        **shared,
    )
    yield Row(
        what=f"max_matching, 512 nodes: {count} graphs, 2 workers, built and written",
        ours=built["wall_seconds"],
        n={"ours": count, "peer": peer["graphs"]},
        note=note,
        **shared,
    )


if __name__ == "__main__":
    main("generation", "Generating labelled graphs", measure, SETTINGS)
