"""Datasets of the user's own graphs, from PyG, networkx, tables, and the layouts of other benchmarks."""
