"""Runs inside the peer's environment: draws graphs with the peer's own functions and times them.

``python peer_driver.py <operation>`` reads the arguments as JSON from the standard input and writes the answer as JSON
to the standard output. This file imports nothing of the package it stands beside.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

MODELS = ("er", "nws", "ba", "dba", "pc", "sbm")  # the order of the peer's sampling lists


def generate(
    task: str,
    nodes: int,
    models: dict[str, dict[str, Any]],
    mixture: dict[str, int],
    graphs: int,
    min_seconds: float,
    max_seconds: float,
    keep: bool = False,
) -> dict[str, Any]:
    """Draw labelled graphs, the models of the mixture in turn, and return CPU seconds per graph.

    Args:
        task: The peer's name of the task.
        nodes: Nodes per graph.
        models: Random graph model -> parameters; they replace the peer's, so that both sides draw alike.
        mixture: Random graph model -> how often it is drawn per round.
        graphs: Stop after the round that reaches this many graphs and ``min_seconds``.
        min_seconds: See ``graphs``; CPU seconds.
        max_seconds: Stop in any case after the round that reaches this many CPU seconds.
        keep: Return the graphs (edge list and labelled nodes) as well.
    """
    import torch
    from graphbench._algoreas_helpers import _algoreas_utils as peer

    torch.set_num_threads(1)
    _set_parameters(peer, task, models)
    draw = peer._ALGORITHMS[task]
    for model in mixture:
        _try_draw(draw, 16, task, model)  # loads what is loaded lazily, outside the timed part
    random.seed(0)
    seconds, counts = dict.fromkeys(mixture, 0.0), dict.fromkeys(mixture, 0)
    failures: dict[str, int] = {}
    kept = []
    began = time.process_time()
    while True:
        for model, times in mixture.items():
            for _ in range(times):
                started = time.process_time()
                data, error = _try_draw(draw, nodes, task, model)
                spent = time.process_time() - started
                if data is None:
                    failures[f"{model}: {error}"] = failures.get(f"{model}: {error}", 0) + 1
                    continue
                seconds[model] += spent
                counts[model] += 1
                if keep:
                    kept.append({"edges": data.edge_index.t().tolist(), "chosen": data.y.nonzero().flatten().tolist()})
        spent = time.process_time() - began
        if spent >= max_seconds or (sum(counts.values()) >= graphs and spent >= min_seconds):
            break
    drawn = sum(counts.values())
    return {
        "graphs": drawn,
        "seconds_per_graph": sum(seconds.values()) / drawn if drawn else None,
        "by_model": {model: seconds[model] / counts[model] for model in mixture if counts[model]},
        "failures": failures,
        "kept": kept,
    }


def co_graphs(family: str, parameters: dict[str, Any], graphs: int, max_seconds: float) -> dict[str, Any]:
    """Draw graphs for combinatorial optimisation and return CPU seconds per graph.

    The peer's model RB fails on its own draw, which is an array of edges where its caller expects an object with
    clauses; the draw is wrapped here, so that its speed can be measured.

    Args:
        family: ``rb``, ``er`` or ``ba``.
        parameters: Attributes of the peer's dataset class.
        graphs: Stop after so many graphs.
        max_seconds: Stop in any case after the graph that reaches this many CPU seconds.
    """
    import importlib
    from types import SimpleNamespace

    import numpy as np

    module = importlib.import_module(f"graphbench._co_helpers._datasets._{family}_dataset")
    dataset = getattr(module, f"{family.upper()}Dataset")
    if family == "rb":
        draw = module.generate_instance
        module.generate_instance = lambda *values: SimpleNamespace(clauses={"NAND": draw(*values)})
    stub = SimpleNamespace(**{key: tuple(v) if isinstance(v, list) else v for key, v in parameters.items()})
    stub._prepare_parameters = lambda: dataset._prepare_parameters(stub)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 -- what the peer draws from
    dataset.create_graph(stub, 0)
    began, drawn, nodes, edges = time.process_time(), 0, 0, 0
    while drawn < graphs and time.process_time() - began < max_seconds:
        graph, _ = dataset.create_graph(stub, drawn)
        drawn, nodes, edges = drawn + 1, nodes + graph.num_nodes, edges + graph.num_edges // 2
    seconds = time.process_time() - began
    return {
        "graphs": drawn,
        "seconds_per_graph": seconds / drawn,
        "nodes_per_graph": nodes / drawn,
        "edges_per_graph": edges / drawn,
    }


def _set_parameters(peer: Any, task: str, models: dict[str, dict[str, Any]]) -> None:
    for name, short in zip(peer._GENERATORS_LIST, MODELS, strict=True):
        p = models.get(short)
        if p is None:
            continue
        order = {"er": "p", "nws": "k p", "ba": "m", "dba": "m1 m2 p", "pc": "m p", "sbm": "sizes p"}[short]
        peer._CONFIG[name][task] = (1, *(p[key] for key in order.split()))


def _try_draw(draw: Any, nodes: int, task: str, model: str) -> tuple[Any, str]:
    only = [1 if model == name else 0 for name in MODELS]
    try:
        return draw(nodes, task, only, True), ""
    except Exception as error:  # the peer fails on some draws; they are counted and left out of the time
        return None, type(error).__name__


def versions() -> dict[str, Any]:
    """Return the versions of the libraries that count."""
    from importlib.metadata import version

    names = ("graphbench-lib", "networkx", "torch", "torch_geometric", "numpy")
    return {name: version(name) for name in names}


if __name__ == "__main__":
    real_output, sys.stdout = sys.stdout, sys.stderr
    answer = {"generate": generate, "co_graphs": co_graphs, "versions": versions}[sys.argv[1]](**json.load(sys.stdin))
    json.dump(answer, real_output)
