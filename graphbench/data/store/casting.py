"""Check samples against their card, and convert every array to its storage dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.features import Feature, Kind, Location
from graphbench.catalog.schema import Schema
from graphbench.core.casting import overflow_fault
from graphbench.core.errors import GenerationError
from graphbench.core.ragged import smallest_integer
from graphbench.data.arrays.quantisation import pack
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.trajectories import HintLayout, Trajectories
from graphbench.data.components.domain import fault_of
from graphbench.data.components.generators import Generator, Labeller


def compact(schema: Schema, samples: Samples, maker: Generator | Labeller) -> Samples:
    """Return the samples with every array in its storage dtype, checked against the card.

    Scalars are float32 (or the type that the generator declares) or quantised to float16, masks uint8, class numbers,
    pointers and node ids the smallest safe integer; if cells may be masked, masks and class numbers are int8.

    Raises:
        GenerationError: If arrays are missing, or their rows, columns or values do not match the card's features.
    """
    names = {f.name for f in schema.stored_features}
    if set(samples.values) != names:
        raise GenerationError(
            f"{maker.name} returned {sorted(samples.values)}, the card has {sorted(names)}; return the values of "
            f"exactly these features; {fault_of(maker)}"
        )
    largest = int(samples.num_nodes.max(initial=1)) - 1
    rows = {
        Location.NODE: int(samples.num_nodes.sum()),
        Location.EDGE: int(samples.num_edges.sum()),
        Location.GRAPH: len(samples),
    }
    values = {}
    for feature in schema.stored_features:
        value = samples.values[feature.name]
        expected = rows[feature.location]
        if len(value) != expected:
            raise GenerationError(
                f"{maker.name}: {feature.name} has {len(value)} rows, not {expected}; return one row per "
                f"{'stored edge' if feature.location is Location.EDGE else feature.location.value}; {fault_of(maker)}"
            )
        if feature.kind is Kind.TEXT:
            values[feature.name] = value
            continue
        value = np.asarray(value)
        problem = row_problem(feature, value, schema.directed) or _value_problem(
            feature, value, largest, -1 if maker.masks_cells else 0
        )
        if problem is None and feature.kind is Kind.SCALAR:
            problem = overflow_fault(value, _dtype(feature, largest, maker))
        if problem is not None:
            raise GenerationError(f"{maker.name}: {feature.name} {problem}; {_remedy(maker)}{fault_of(maker)}")
        if feature.name in schema.packed:
            value = pack(value, schema.packed[feature.name])
            if not np.isfinite(value).all():
                raise GenerationError(
                    f"{maker.name}: {feature.name} has values too large for 16 bits; give it another scale under packed"
                )
            values[feature.name] = value
            continue
        values[feature.name] = np.ascontiguousarray(value.astype(_dtype(feature, largest, maker), copy=False))
    edges = np.ascontiguousarray(samples.edges.astype(smallest_integer(largest), copy=False))
    hints = _compact_hints(schema, samples, maker, largest + 1)
    return Samples(samples.num_nodes, samples.num_edges, edges, values, hints, samples.facts)


def row_problem(feature: Feature, values: NDArray[Any], directed: bool) -> str | None:
    """Return the problem with the shape of the rows of a feature's array, or None."""
    row_shape = feature.row_shape
    allowed = {row_shape: "one row per item"}
    if feature.location is Location.EDGE and not directed:
        allowed[2, *row_shape] = "a value per direction"
    if values.shape[1:] in allowed:
        return None
    shapes = " or ".join(f"{['rows', *shape]} ({rows})".replace("'", "") for shape, rows in allowed.items())
    feature_type = f"({feature.type_name} at {feature.location}s)"
    return f"{feature_type} has the shape {list(values.shape)}; the card asks for {shapes}"


def _remedy(maker: Generator | Labeller) -> str:
    """Return the advice on labels of graphs that nobody generated."""
    return (
        "if the samples are of files, leave those out that are beyond the ranges on the card, or take a dataset with "
        "larger ranges; otherwise "
        if isinstance(maker, Labeller)
        else ""
    )


def _compact_hints(schema: Schema, samples: Samples, maker: Generator | Labeller, nodes: int) -> Trajectories | None:
    if not schema.hints:
        return None
    if samples.hints is None or len(samples.hints) != len(samples):
        raise GenerationError(
            f"{maker.name} did not return hints for each graph, but the card has hints; {fault_of(maker)}"
        )
    if (problem := overflow_fault(samples.hints.floats.values, np.float32)) is not None:
        raise GenerationError(f"{maker.name}: a scalar hint {problem}; {fault_of(maker)}")
    return samples.hints.compact(HintLayout(schema.hints, nodes))


def _dtype(feature: Feature, largest_id: int, maker: Generator | Labeller) -> np.dtype[Any]:
    if feature.kind is Kind.SCALAR:
        return np.dtype(maker.scalars)
    if feature.kind is Kind.MASK_ONE:
        return np.dtype(np.uint8)
    if feature.kind is Kind.MASK:
        return np.dtype(np.int8 if maker.masks_cells else np.uint8)
    if feature.kind is Kind.CATEGORICAL:
        signed = np.int8 if feature.classes <= 128 else np.int32
        return np.dtype(signed) if maker.masks_cells else smallest_integer(feature.classes - 1)
    return smallest_integer(largest_id)


def _value_problem(feature: Feature, value: NDArray[Any], largest_id: int, masked: int) -> str | None:
    """Return the problem with values for the type of their feature, or None."""
    if value.dtype.kind not in "biuf":
        return f"has the dtype {value.dtype}; give booleans, integers or real numbers"
    if not value.size:
        return None
    if feature.kind is Kind.SCALAR:
        return None if np.isfinite(value).all() else "has values that are not finite"
    largest = {Kind.MASK: 1, Kind.MASK_ONE: 1, Kind.CATEGORICAL: feature.classes - 1}.get(feature.kind, largest_id)
    least = masked if feature.kind in (Kind.MASK, Kind.CATEGORICAL) else 0
    if value.min() < least or value.max() > largest:
        return f"has values from {value.min()} to {value.max()}, outside {least} to {largest}"
    if value.dtype.kind == "f" and (value != np.floor(value)).any():
        return f"is a {feature.type_name} and has values that are not whole numbers"
    return None
