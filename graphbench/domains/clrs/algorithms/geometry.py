"""Computational geometry (Cormen et al., chapter 33)."""
