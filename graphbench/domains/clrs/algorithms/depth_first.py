"""Depth-first search and what is built on it (Cormen et al., chapter 22)."""
