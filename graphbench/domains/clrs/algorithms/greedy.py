"""Greedy algorithms (Cormen et al., chapter 16)."""
