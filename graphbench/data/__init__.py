"""Samples: drawn, stored, opened and batched."""
