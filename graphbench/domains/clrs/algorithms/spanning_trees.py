"""Minimum spanning trees (Cormen et al., chapter 23)."""
