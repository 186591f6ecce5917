"""Runs inside graphbench-lib's environment: decodes scores with its own decoders and times them.

``python decoding_peer_driver.py decode`` reads the arguments as JSON from the standard input and writes the answer as
JSON to the standard output. This file imports nothing of the package it stands beside.
"""

from __future__ import annotations

import json
import os
import sys
import time

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"


def decode(path: str, graphs: dict[str, int]) -> dict[str, dict[str, float]]:
    """Decode the first graphs of a file and score them; return task -> mean objective and CPU seconds per graph.

    Args:
        path: An ``.npz`` file with ``ptr [G + 1]``, ``edges [E, 2]`` (each once, local ids), ``edge_ptr [G + 1]`` and
            for every task ``<task> [N]`` or ``[N, K]``, the scores.
        graphs: Task (``mis``, ``max_cut``, ``coloring``) -> how many graphs to decode, in one batch.
    """
    import numpy as np
    import torch
    from graphbench.helpers import combinatorial_optimization as peer
    from torch_geometric.data import Batch, Data

    torch.set_num_threads(1)
    arrays = dict(np.load(path))
    items = []
    for i in range(max(graphs.values())):
        edges = torch.from_numpy(arrays["edges"][arrays["edge_ptr"][i] : arrays["edge_ptr"][i + 1]].astype(np.int64))
        both = torch.cat([edges, edges.flip(1)]).t().contiguous()
        items.append(Data(edge_index=both, num_nodes=int(arrays["ptr"][i + 1] - arrays["ptr"][i])))
    functions = {
        "mis": (peer.mis_decoder, peer.mis_size),
        "max_cut": (peer.max_cut_decoder, peer.max_cut_size),
        "coloring": (peer.graph_coloring_decoder, peer.num_colors_used),
    }
    found = {}
    for task, count in graphs.items():
        decoder, objective = functions[task]
        scores = torch.from_numpy(arrays[task][: int(arrays["ptr"][count])])
        decoder(scores[: items[0].num_nodes], Batch.from_data_list(items[:1]))
        batch = Batch.from_data_list(items[:count])
        started = time.process_time()
        value = float(objective(decoder(scores, batch), batch))
        found[task] = {"objective": value, "seconds_per_graph": (time.process_time() - started) / count}
    return found


if __name__ == "__main__":
    real_output, sys.stdout = sys.stdout, sys.stderr
    json.dump({"decode": decode}[sys.argv[1]](**json.load(sys.stdin)), real_output)
