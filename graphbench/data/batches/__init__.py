"""Splits as users see them, and the batches that models read."""
