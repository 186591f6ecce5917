"""The arrays of samples: ragged features, texts, trajectories, 16-bit scalars, checks, hashes and seeds."""
