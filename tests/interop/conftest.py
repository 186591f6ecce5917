"""Small datasets of several kinds: undirected and directed, graphs with texts, several outputs."""

from pathlib import Path
from typing import Any

import pytest

import graphbench

SMALL = {
    "algoreas/mst_easy": 40,  # undirected, features of edges
    "algoreas/topological_sort_easy": 12,  # directed, features of nodes
    "algoreas/flow_easy": 12,  # a scalar of the graph
    "clutrr/gen_23": 12,  # texts, arcs with classes
    "circuits/converters_5": 12,  # several outputs
    "clrs/bfs": 4,  # complete graphs, hints
    "clrs_text/bfs": 4,  # texts alone
}


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a function that gives the splits of a small dataset."""
    root: Path = tmp_path_factory.mktemp("root")
    known: dict[str, Any] = {}

    def load(name: str) -> Any:
        if name not in known:
            known[name] = graphbench.Loader(name, root=root, limit=SMALL[name.split(":")[0]], workers=1).load(())
        return known[name]

    load.root = root  # type: ignore[attr-defined]
    return load
