"""Adapters to other libraries: Lightning, Hugging Face datasets, NetworkX, arrays as DGL takes them, torchmetrics.

Each is one line for the user; the library behind it is imported when the adapter is used. The interface of the Open
Graph Benchmark is :mod:`graphbench.interop.ogb`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphbench.core.lazy import lazy_exports

if TYPE_CHECKING:
    from graphbench.interop.arrays import GraphArrays, to_arrays
    from graphbench.interop.croissant import croissant_of
    from graphbench.interop.hub import hub_reader, read_hub, write_hub
    from graphbench.interop.huggingface import from_hf, hf_reader, to_hf
    from graphbench.interop.lightning import DataModule
    from graphbench.interop.nx import from_networkx, to_networkx
    from graphbench.interop.torchmetrics import EvaluatorMetric

_LAZY = {
    "DataModule": "graphbench.interop.lightning",
    "EvaluatorMetric": "graphbench.interop.torchmetrics",
    "GraphArrays": "graphbench.interop.arrays",
    "croissant_of": "graphbench.interop.croissant",
    "from_hf": "graphbench.interop.huggingface",
    "from_networkx": "graphbench.interop.nx",
    "hf_reader": "graphbench.interop.huggingface",
    "hub_reader": "graphbench.interop.hub",
    "read_hub": "graphbench.interop.hub",
    "to_arrays": "graphbench.interop.arrays",
    "to_hf": "graphbench.interop.huggingface",
    "to_networkx": "graphbench.interop.nx",
    "write_hub": "graphbench.interop.hub",
}

__all__ = [
    "DataModule",
    "EvaluatorMetric",
    "GraphArrays",
    "croissant_of",
    "from_hf",
    "from_networkx",
    "hf_reader",
    "hub_reader",
    "read_hub",
    "to_arrays",
    "to_hf",
    "to_networkx",
    "write_hub",
]


if not TYPE_CHECKING:  # else type checkers would accept every name
    __getattr__, __dir__ = lazy_exports(globals(), _LAZY)
