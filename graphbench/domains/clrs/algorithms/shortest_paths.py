"""Shortest paths (Cormen et al., chapters 24 and 25)."""
