"""A source of files: spanning trees as CSV files, one row per edge, one file per split."""

from pathlib import Path

import numpy as np

import graphbench
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.domain import Domain
from graphbench.data.components.file_sources import file_source
from graphbench.data.sources.downloads import Download


def read_trees(folder: Path) -> dict[str, Samples]:
    """Return split -> samples of the files ``train.csv``, ``val.csv``, ``test.csv``, ... of a folder."""
    return {path.stem: read_split(path) for path in sorted(folder.glob("*.csv"))}


def read_split(path: Path) -> Samples:
    """Return the graphs of a file with the columns graph, u, v, weight, in_tree; sorted, with u < v."""
    table = np.loadtxt(path, delimiter=",", ndmin=2)
    graph, edges = table[:, 0].astype(int), table[:, 1:3].astype(int)
    num_edges = np.bincount(graph)
    num_nodes = np.zeros(len(num_edges), int)
    np.maximum.at(num_nodes, graph, edges[:, 1] + 1)
    return Samples(num_nodes, num_edges, edges, {"weight": table[:, 3], "in_tree": table[:, 4].astype(int)})


ARCHIVE = Download(
    url="https://example.org/measured_trees-1.0.zip",
    size=48_211_064,
    sha256="3f1d0a6a5c0b7c6f8f5be1d2f9d4c87a1b62e0c8a9d7f6e5d4c3b2a190807f6e",
    unpacked_size=200_000_000,
)
SOURCE = file_source("measured.trees", read_trees, downloads=(ARCHIVE,))
graphbench.register_domain(Domain("measured", sources={"trees": SOURCE}))
