"""Keys and generators: sample ``i`` of a split depends on (id, version, split, i) alone."""

from __future__ import annotations

import hashlib

import numpy as np


def stream_key(dataset_id: str, version: int, split: str) -> np.uint64:
    """Return the 64-bit key of one split, from which compiled kernels seed every sample.

    The key is the first eight bytes (little endian) of SHA-256 of ``"<id>|v<version>|<split>"``.
    """
    digest = hashlib.sha256(f"{dataset_id}|v{version}|{split}".encode()).digest()
    return np.uint64(int.from_bytes(digest[:8], "little"))


def sample_generator(key: np.uint64, index: int, attempt: int = 0) -> np.random.Generator:
    """Return a NumPy generator for one sample, for generators written in plain Python.

    Args:
        key: Key of the split, from :func:`stream_key`.
        index: Position of the sample in the split.
        attempt: 0 for the first draw, 1, 2, ... for redraws of a duplicate.
    """
    return np.random.Generator(np.random.Philox(key=int(key) | (attempt << 64), counter=index << 64))
