"""Positional encodings: CPU time per graph, ours (whole batches) and PyG's transforms (graph by graph)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.common import Row, Sizes, main, ratio_at_least, scratch_folder
from benchmarks.isolated import in_fresh_process

DATASET = "algoreas/mst_easy"
CASES = {16: ("train", 256, 50.0), 128: ("test", 64, 5.0)}  # nodes -> split, graphs per batch, target ratio
RWSE_STEPS, LPE_PAIRS = 16, 32
SETTINGS = {
    "time": "process CPU seconds (user and system), one thread, graphs in memory as int64 edge_index",
    "data": f"{DATASET}: training graphs (16 nodes) in batches of 256, test graphs (128 nodes) in batches of 64",
    "RWSE": f"k = {RWSE_STEPS}; peer: AddRandomWalkPE({RWSE_STEPS})",
    "LPE": (
        f"k = {LPE_PAIRS} eigenpairs; peer: AddLaplacianEigenvectorPE, k = 14 at 16 nodes and {LPE_PAIRS} at 128, with "
        "its defaults and with is_undirected=True; ours also returns the eigenvalues and the constant eigenvector"
    ),
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``encodings.json``."""
    with scratch_folder() as root:
        for nodes, (split, batch_size, target) in CASES.items():
            found = in_fresh_process(
                "benchmarks.encodings:time_encodings",
                root=str(root),
                split=split,
                batch_size=batch_size,
                graphs=sizes(8_192 if nodes == 16 else 512, 2 * batch_size),
                peer_graphs=sizes(1_000 if nodes == 16 else 200, 20),
                lpe_pairs_of_peer=min(LPE_PAIRS, nodes - 2),
            ).value
            for name, values in found["encodings"].items():
                yield Row(
                    what=f"{name}, {nodes} nodes",
                    unit="us/graph",
                    ours=1e6 * values["ours"],
                    peer=1e6 * values["peer"],
                    target=ratio_at_least(target),
                    n=found["n"],
                    note=values.get("note", ""),
                    details={"ours graphs/s": round(1 / values["ours"]), "peer graphs/s": round(1 / values["peer"])},
                )


def time_encodings(
    root: str, split: str, batch_size: int, graphs: int, peer_graphs: int, lpe_pairs_of_peer: int
) -> dict[str, Any]:
    """Return CPU seconds per graph of both encodings, ours and PyG's, on the same graphs."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE

    from graphbench import Loader
    from graphbench.models.positional import laplacian_encoding, random_walk_encoding

    torch.set_num_threads(1)
    dataset = Loader(DATASET, root=root, limit=graphs, progress=False).load([split])[split]
    batches = [(batch.edge_index, batch.ptr) for batch in dataset.batches(batch_size)]
    items = [Data(edge_index=d.edge_index, num_nodes=d.num_nodes) for d in (dataset[i] for i in range(peer_graphs))]
    walks = AddRandomWalkPE(RWSE_STEPS)
    general = AddLaplacianEigenvectorPE(lpe_pairs_of_peer)
    symmetric = AddLaplacianEigenvectorPE(lpe_pairs_of_peer, is_undirected=True)

    def our_walks(batch: tuple[Any, Any]) -> Any:
        return random_walk_encoding(*batch, RWSE_STEPS, symmetric=True)

    first = min(batch_size, peer_graphs)
    theirs = torch.cat([walks(item).random_walk_pe for item in items[:first]])
    difference = (our_walks(batches[0])[: len(theirs)] - theirs).abs().max().item()
    pairs = _seconds_per_call(lambda batch: laplacian_encoding(*batch, LPE_PAIRS), batches) * len(batches) / graphs
    return {
        "n": {"ours": graphs, "peer": peer_graphs},
        "encodings": {
            f"RWSE({RWSE_STEPS})": {
                "ours": _seconds_per_call(our_walks, batches) * len(batches) / graphs,
                "peer": _seconds_per_call(walks, items),
                "note": f"largest difference between the two: {difference:.1e}",
            },
            f"LPE({LPE_PAIRS})": {"ours": pairs, "peer": _seconds_per_call(general, items)},
            f"LPE({LPE_PAIRS}), PyG with is_undirected=True": {
                "ours": pairs,
                "peer": _seconds_per_call(symmetric, items),
                "note": "is_undirected=True lets PyG take a symmetric eigensolver",
            },
        },
    }


def _seconds_per_call(function: Callable[[Any], Any], arguments: list[Any]) -> float:
    """Return the mean CPU seconds of a call, after one call that compiles and loads."""
    function(arguments[0])
    started = time.process_time()
    for argument in arguments:
        function(argument)
    return (time.process_time() - started) / len(arguments)


if __name__ == "__main__":
    main("encodings", "Positional encodings", measure, SETTINGS)
