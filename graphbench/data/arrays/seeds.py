"""Random seeds: sample ``i`` of a split depends on (id, version, data seed, split, i) alone."""

from __future__ import annotations

import hashlib

import numpy as np


def stream_key(dataset_id: str, version: int, split: str, data_seed: int = 0) -> np.uint64:
    """Return the 64-bit key of one split, from which compiled kernels seed every sample.

    The key is the first eight bytes (little endian) of SHA-256 of ``"<id>|v<version>|<split>"``, followed by
    ``"|draw<data seed>"`` where the data seed is not 0.
    """
    draw = f"|draw{data_seed}" if data_seed else ""
    digest = hashlib.sha256(f"{dataset_id}|v{version}|{split}{draw}".encode()).digest()
    return np.uint64(int.from_bytes(digest[:8], "little"))


def redrawn_seed(seed: int, data_seed: int) -> int:
    """Return the replacement for a seed among a split's parameters in another draw: a whole number below 2**32.

    It is the first four bytes (little endian) of SHA-256 of ``"<seed>|draw<data seed>"``, so equal seeds get equal
    replacements. In the canonical draw, data seed 0, the seed is unchanged.
    """
    digest = hashlib.sha256(f"{seed}|draw{data_seed}".encode()).digest()
    return int.from_bytes(digest[:4], "little") if data_seed else seed


def label_number(key: np.uint64, index: int) -> int:
    """Return the 63-bit seed for the label of one sample.

    It is the first eight bytes (little endian) of SHA-256 of ``"<key>|<index>"``, without the last bit.

    Args:
        key: Key of the labels of a split, from :func:`stream_key` with ``"<split>|<labeller>"`` for the split.
        index: Position of the sample in the split.
    """
    digest = hashlib.sha256(f"{key}|{index}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def sample_generator(key: np.uint64, index: int, attempt: int = 0) -> np.random.Generator:
    """Return a NumPy generator for one sample, for generators written in plain Python.

    Args:
        key: Key of the split, from :func:`stream_key`.
        index: Position of the sample in the split.
        attempt: 0 for the first draw, 1, 2, ... for redraws of a duplicate.
    """
    return np.random.Generator(np.random.Philox(key=int(key) | (attempt << 64), counter=index << 64))
