"""Card sections for samples that are times of a series on one graph, and for features that are stored quantised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.catalog.sections import Strict

_Number = Annotated[float, Field(allow_inf_nan=False)]
_Scale = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class SeriesSpec(Strict):
    """How samples follow from a series of states of one graph.

    A file holds one state per time: the stored features. All samples have the same graph, which is neither drawn nor
    stored but built from its parameters, and the features of that graph. A sample is a time together with a later one:
    outputs are the changes between the two. So a state that is the input of one sample and the target of another is
    stored once.

    Attributes:
        topology: The registered topology that builds the graph, as ``<domain>.<name>``. Stored features of nodes
            belong to its first nodes; all other nodes have 0, or the offset of a packed feature, which standardised
            is near 0.
        parameters: Parameters of the topology.
        fixed: The features of nodes and edges that come with the topology.
        run: Stored feature of graphs: consecutive times with the same value belong to the same run.
        lead: Number of times from a sample to the later one.
        changes: Output -> stored feature; the output is the feature's value at the later time minus its value now.
    """

    topology: str
    parameters: dict[str, Any] = Field({})
    fixed: tuple[str, ...] = ()
    run: str
    lead: int = Field(ge=1)
    changes: dict[str, str] = Field(min_length=1)

    @property
    def derived(self) -> frozenset[str]:
        """Names of the features that are not stored."""
        return frozenset((*self.fixed, *self.changes))


class PackSpec(Strict):
    """How a scalar is stored in 16 bits: as the float16 of ``(value - offset) / scale``.

    Attributes:
        offset: One number per column; empty for 0.
        scale: One positive number per column; empty for 1.
    """

    offset: tuple[_Number, ...] = ()
    scale: tuple[_Scale, ...] = ()


def check_packed(packed: dict[str, PackSpec], features: Sequence[Feature]) -> None:
    """Check that quantised features are scalars that no evaluator reads, with one number per column.

    Raises:
        ValueError: If a feature is not.
    """
    by_name = {f.name: f for f in features}
    for name, spec in packed.items():
        feature = by_name.get(name)
        if feature is None or feature.kind is not Kind.SCALAR or feature.stage not in (Stage.INPUT, Stage.META):
            raise ValueError(f"packed names {name!r}, which is no scalar of the stage input or meta")
        for key, numbers in (("offset", spec.offset), ("scale", spec.scale)):
            if numbers and len(numbers) != feature.width:
                raise ValueError(f"packed.{name}.{key} has {len(numbers)} numbers, {name} has {feature.width} columns")


def check_series(series: SeriesSpec, features: Sequence[Feature], directed: bool) -> None:
    """Check that the features of a card fit its series.

    Raises:
        ValueError: If a feature that the series names does not exist or is of another type.
    """
    by_name = {f.name: f for f in features}
    missing = sorted({*series.fixed, series.run, *series.changes, *series.changes.values()} - set(by_name))
    if missing:
        raise ValueError(f"series names {missing}, which are not among the features {', '.join(by_name)}")
    if not directed:
        raise ValueError("the graph of a series has arcs; write directed: true")
    run = by_name[series.run]
    if run.location is not Location.GRAPH or run.name in series.derived:
        raise ValueError(f"series.run is {run.name!r}; name a stored feature of graphs")
    for name, source in series.changes.items():
        output, state = by_name[name], by_name[source]
        if source in series.derived or output.stage is not Stage.OUTPUT or state.kind is not Kind.SCALAR:
            raise ValueError(f"series.changes has {name}: {source}; it takes an output, and a stored scalar")
        if (output.kind, output.location, output.width) != (state.kind, state.location, state.width):
            raise ValueError(
                f"series.changes: {name} is {output.type_name} at {output.location}s, {source} {state.type_name} at "
                f"{state.location}s; both must be the same"
            )
    for name in series.fixed:
        if by_name[name].location is Location.GRAPH or by_name[name].stage is Stage.OUTPUT:
            raise ValueError(f"series.fixed names {name!r}; it takes inputs and meta features of nodes and edges")
    edges = [f.name for f in features if f.location is Location.EDGE and f.name not in series.derived]
    if edges:
        raise ValueError(f"{edges} are features of edges, which come with the topology; list them under series.fixed")
