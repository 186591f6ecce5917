"""Combinatorial problems: scores of nodes are decoded to feasible solutions."""
