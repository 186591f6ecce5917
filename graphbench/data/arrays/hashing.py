"""Hashes of graphs and of arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Kind
from graphbench.catalog.schema import Schema
from graphbench.core.kernels import kernel
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts

_MULTIPLIERS = np.array([0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53], np.uint64)
_SHIFT = np.uint64(32)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def structure_hashes(samples: Samples) -> NDArray[np.uint64]:
    """Return a 128-bit hash of every graph's labelled structure (node count and edge list), uint64 ``[S, 2]``.

    For the uniqueness check, two graphs are equal if they have the same nodes and edges; features do not count.
    Complete graphs without stored edges differ only in size: see ``input_hashes``.
    """
    return _hash_graphs(samples.num_nodes, samples.edge_ptr, np.ascontiguousarray(samples.edges), _MULTIPLIERS)


def input_hashes(samples: Samples, schema: Schema) -> NDArray[np.uint64]:
    """Return a 128-bit hash of the size and all inputs of every graph, uint64 ``[S, 2]``."""
    hashes = np.empty((len(samples), 2), np.uint64)
    for i in range(len(samples)):
        digest = hashlib.blake2b(int(samples.num_nodes[i]).to_bytes(8, "little"), digest_size=16)
        for feature in schema.inputs:
            rows = samples.values[feature.name][samples.rows(feature.location, i, i + 1)]
            digest.update(np.ascontiguousarray(rows.content if isinstance(rows, Texts) else rows).data)
        hashes[i] = np.frombuffer(digest.digest(), np.uint64)
    return hashes


def sample_hashes(samples: Samples, schema: Schema, unique_inputs: bool = False) -> NDArray[np.uint64]:
    """Return the hashes by which duplicates are detected: hashes of the structure, or of the inputs.

    Inputs are hashed for complete graphs of a size, which all have the same structure, and for texts. With
    ``unique_inputs``, which a generator sets, two graphs are equal only if both structure and inputs are equal.
    """
    if unique_inputs:
        return structure_hashes(samples) ^ input_hashes(samples, schema)
    by_inputs = not schema.lists_edges or any(f.kind is Kind.TEXT for f in schema.inputs)
    return input_hashes(samples, schema) if by_inputs else structure_hashes(samples)


@kernel
def _hash_graphs(
    num_nodes: NDArray[np.int64], edge_ptr: NDArray[np.int64], edges: NDArray[Any], multipliers: NDArray[np.uint64]
) -> NDArray[np.uint64]:
    count = num_nodes.shape[0]
    hashes = np.empty((count, 2), np.uint64)
    for g in range(count):
        for lane in range(2):
            h = np.uint64(num_nodes[g]) * multipliers[1 - lane] + _GOLDEN
            for e in range(edge_ptr[g], edge_ptr[g + 1]):
                word = (np.uint64(edges[e, 0]) << _SHIFT) | np.uint64(edges[e, 1])
                h = (h ^ word) * multipliers[lane]
                h ^= h >> _SHIFT
                h *= _GOLDEN
                h ^= h >> np.uint64(29)
            hashes[g, lane] = h
    return hashes


def samples_hash(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of named arrays (names, dtypes, shapes, bytes): the hash of the data itself.

    It does not depend on the file format or the HDF5 library.
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{name}|{little.dtype.str}|{little.shape}|".encode())
        digest.update(little.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
