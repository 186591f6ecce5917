"""Samples: generation, storage, datasets and batches."""
