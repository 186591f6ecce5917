"""Searching and selection, and the maximum subarray (Cormen et al., chapters 2, 4 and 9)."""
