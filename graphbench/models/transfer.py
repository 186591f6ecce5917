"""Parts of a model that start from the weights of another model: the processor, and what reads and writes features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from graphbench.catalog.features import Feature
from graphbench.core.errors import ConfigError

PartKind = Literal["processor", "encoders", "decoders"]
PART_KINDS: tuple[PartKind, ...] = ("processor", "encoders", "decoders")


def require_part_kinds(kinds: Sequence[str]) -> None:
    """Raise an error for a kind of parts that no model has, and where no kind is left to train.

    Raises:
        ConfigError: With the kinds.
    """
    unknown = next((kind for kind in kinds if kind not in PART_KINDS), None)
    if unknown is not None:
        raise ConfigError(f"freeze names {unknown!r}; the parts of a model are {', '.join(PART_KINDS)}")
    if {*kinds} == {*PART_KINDS}:
        raise ConfigError(f"freeze names {', '.join(PART_KINDS)}, so nothing is left to train; leave one out")


@dataclass(frozen=True)
class Part:
    """A part of a model that may be taken from another model.

    Attributes:
        kind: Whether it is of the processor, reads features or writes features.
        name: What it is, the same in all models where it does the same: ``processor``, or the features that it reads.
        module: The part itself.
        within: Name of the part that this one belongs to; it is taken alone where the whole one has another shape.
    """

    kind: PartKind
    name: str
    module: nn.Module
    within: str | None = None

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name -> shape of its tensors."""
        return {name: tuple(tensor.shape) for name, tensor in self.module.state_dict().items()}

    @property
    def size(self) -> int:
        """Number of its parameters."""
        return sum(parameter.numel() for parameter in self.module.parameters())


@dataclass(frozen=True)
class Taken:
    """What a model took from another one.

    Attributes:
        taken: The parts that were taken.
        new: The parts that keep their own first weights.
        frozen: The parts of them that are not trained.
    """

    taken: tuple[Part, ...]
    new: tuple[Part, ...]
    frozen: tuple[Part, ...]

    def words(self) -> str:
        """Return the parts and their sizes in a line."""
        words = [f"taken: {_listed(self.taken)}", f"new: {_listed(self.new, without=self.taken)}"]
        return "; ".join(words + ([f"not trained: {_listed(self.frozen)}"] if self.frozen else []))


def _listed(parts: Iterable[Part], without: Iterable[Part] = ()) -> str:
    """Return names and sizes; of a part of which some was taken, the size of the rest."""
    listed = []
    for part in parts:
        gone = sum(inner.size for inner in without if inner.within == part.name)
        if part.size > gone:
            listed.append(f"{'the rest of ' if gone else ''}{part.name} ({part.size - gone:,})")
    return ", ".join(listed) or "nothing"


def processor_parts(name: str, processor: nn.Module, cores: Mapping[str, nn.Module]) -> list[Part]:
    """Return a processor as a part, and its cores, which processors of another kind have too.

    Args:
        name: Name of the processor.
        processor: The processor.
        cores: Name -> module within the processor.
    """
    whole = f"processor {name}"
    inner = [Part("processor", core, module, within=whole) for core, module in cores.items()]
    return [Part("processor", whole, processor), *inner]


def named_by(features: Sequence[Feature], what: str) -> str:
    """Return the name of a part by the features that it serves, with their types and locations.

    Args:
        features: The features.
        what: What it does with them, such as ``encoder``.
    """
    return f"{what} of " + ", ".join(f"{f.name} ({f.location} {f.type_name})" for f in features)


def distinct(parts: Iterable[Part]) -> list[Part]:
    """Return the parts that have tensors, the first of each name."""
    named_parts: dict[str, Part] = {}
    for part in parts:
        if part.module.state_dict():
            named_parts.setdefault(part.name, part)
    return list(named_parts.values())


@torch.no_grad()
def take(model: Sequence[Part], source: Sequence[Part], where: str, freeze: Sequence[PartKind] = ()) -> Taken:
    """Copy the weights of the parts that two models have in common, and stop the training of some.

    Processors of different kinds may have a core in common, such as the layer that combines pairs of nodes.

    Args:
        model: The parts of the model that starts.
        source: The parts of the model with the weights.
        where: How messages name the source.
        freeze: Kinds of parts that are not trained where they were taken.

    Raises:
        ConfigError: If the models have no processor of one shape, or a kind that is frozen was not taken.
    """
    source_parts = {part.name: part for part in source}
    taken = [part for part in model if part.name in source_parts and part.shapes == source_parts[part.name].shapes]
    whole = {part.name for part in taken}
    taken = [part for part in taken if part.within not in whole]
    if not any(part.kind == "processor" for part in taken):
        raise ConfigError(
            f"the model cannot start from {where}: {_difference(model, source)}; take a configuration with the "
            "processor, the width and the number of layers of the other one"
        )
    missing = [kind for kind in freeze if not any(part.kind == kind for part in taken)]
    if missing:
        raise ConfigError(
            f"freeze names {missing[0]}, and none was taken from {where}, whose features differ; leave it out"
        )
    for part in taken:
        part.module.load_state_dict(source_parts[part.name].module.state_dict())
    frozen = [part for part in taken if part.kind in freeze]
    for part in frozen:
        part.module.requires_grad_(False)
    names = {part.name for part in taken}
    new = [part for part in model if part.name not in names and part.within is None]
    return Taken(tuple(taken), tuple(new), tuple(frozen))


def _difference(model: Sequence[Part], source: Sequence[Part]) -> str:
    """Return how the processors of two models differ, in words."""
    processor, other = (next((p for p in parts if p.kind == "processor"), None) for parts in (model, source))
    if processor is None or other is None:
        return "one of the two has no processor that could be shared"
    if processor.name != other.name:
        return f"its processor is {processor.name}, the other one {other.name}"
    shapes, other_shapes = processor.shapes, other.shapes
    first = next(name for name in {**shapes, **other_shapes} if shapes.get(name) != other_shapes.get(name))
    here, there = shapes.get(first, "absent"), other_shapes.get(first, "absent")
    return f"the processors differ in {first}, {here} here and {there} there"
