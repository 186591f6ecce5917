"""The thirty algorithms, by the chapters of Cormen et al., Introduction to Algorithms."""

import importlib

_MODULES = (
    "sorting",
    "searching",
    "greedy",
    "dynamic_programming",
    "strings",
    "geometry",
    "breadth_first",
    "depth_first",
    "spanning_trees",
    "shortest_paths",
)
for _module in _MODULES:
    importlib.import_module(f"{__name__}.{_module}")
