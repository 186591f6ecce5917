"""Scalars in 16 bits: ``(value - offset) / scale`` as float16, with an error of at most 2**-11 of its magnitude."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphbench.catalog.schema import Schema
from graphbench.catalog.series import PackSpec
from graphbench.data.arrays.samples import Samples

_ROWS = 65_536  # rows quantised at once


def pack(values: NDArray[Any], spec: PackSpec) -> NDArray[np.float16]:
    """Return the quantised values; inf where a value is too large.

    Args:
        values: ``[rows]`` or ``[rows, d]``.
        spec: Offset and scale of every column.
    """
    offset, scale = columns(spec)
    packed = np.empty(values.shape, np.float16)
    with np.errstate(over="ignore"):
        for first in range(0, len(values), _ROWS):  # in parts: values may be half of the memory
            part = slice(first, first + _ROWS)
            packed[part] = (values[part].astype(np.float64) - offset) / scale
    return packed


def unpack(packed: NDArray[Any], spec: PackSpec, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Return the values that quantised values stand for, in the same shape; :func:`pack` inverts float64 exactly."""
    offset, scale = columns(spec)
    values = packed.astype(dtype)
    if spec.scale:
        values *= scale.astype(dtype)
    values += offset.astype(dtype)
    return values


def unpacked(schema: Schema, samples: Samples, dtype: DTypeLike = np.float32) -> Samples:
    """Return samples in which quantised features have their values, as generators return them; in memory."""
    if not schema.packed:
        return samples
    values = {
        name: unpack(samples.values[name], spec, dtype)
        for name, spec in schema.packed.items()
        if name in samples.values
    }
    return replace(samples, values={**samples.values, **values})


def columns(spec: PackSpec) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return offset and scale, float64 ``[d]``, or ``[]`` where ``spec`` gives none."""
    offset = np.array(spec.offset) if spec.offset else np.zeros(())
    return offset, np.array(spec.scale) if spec.scale else np.ones(())
