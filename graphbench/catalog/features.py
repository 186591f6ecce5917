"""The vocabulary that describes every array of a sample.

A feature is a name with a stage, a location and a type, after the CLRS benchmark (Velickovic et al., 2022, section 3).
Encoders, decoders, losses and default metrics are chosen from it, never from a dataset's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from graphbench.core.errors import CardError
from graphbench.core.untrusted import shown, text_fault


class Stage(StrEnum):
    """Role of a feature: model input, intermediate state of an algorithm, target, or metadata."""

    INPUT = "input"
    HINT = "hint"
    OUTPUT = "output"
    META = "meta"  # metadata that no model reads: the random graph model, whether a label is proved optimal


class Location(StrEnum):
    """The items that have a value of a feature."""

    NODE = "node"
    EDGE = "edge"
    GRAPH = "graph"
    PAIR = "pair"  # candidate pairs of nodes, which the card's section ``links`` draws


class Kind(StrEnum):
    """The type of a feature's values."""

    SCALAR = "scalar"
    CATEGORICAL = "categorical"
    MASK = "mask"
    MASK_ONE = "mask_one"
    POINTER = "pointer"
    PERMUTATION = "permutation"
    TEXT = "text"


_E = TypeVar("_E", bound=StrEnum)
MEANING_CHARACTERS = 200
"""Most characters of a feature's meaning, which is one line of a table."""

_RESERVED = frozenset({"x", "y", "face", "ptr", "edges", "edge_attr", "edge_ptr", "node_ptr", "num_nodes"})
_SIZED = re.compile(r"(scalar|categorical)\(([0-9]+)\)")


@dataclass(frozen=True, slots=True)
class Feature:
    """One named array of a sample.

    Attributes:
        name: Field name in ``Data``, in batches and in the store.
        stage: input, hint, output or meta.
        location: node, edge, graph or pair: the array has one row per node, edge, graph or candidate pair of nodes.
        kind: scalar (float), categorical (class number), mask (0/1), mask_one (exactly one 1 per graph),
            pointer (a node id, local to the graph), permutation (pointers that define an order of all nodes: each to
            its predecessor, the first to itself) or text (a string; at nodes and graphs, never a hint).
        classes: Number of classes of a categorical feature, else 0.
        width: Values per item of a scalar, written ``scalar(3)``; 1 for all other kinds.
        meaning: One line that describes a value; for scalars the unit follows a semicolon: ``weight of the edge,
            uniform in (0, 10); no unit``. Empty where the card does not say. Two features that differ in their meanings
            alone are equal, so a better text changes no data, no fingerprint and no run.
    """

    name: str
    stage: Stage
    location: Location
    kind: Kind
    classes: int = 0
    width: int = 1
    meaning: str = field(default="", compare=False)

    @classmethod
    def parse(cls, name: str, words: Sequence[str]) -> Feature:
        """Return the feature that a card writes as ``name: [stage, location, type, "meaning"]``.

        The meaning may be left out.

        Raises:
            CardError: If a word is not in the vocabulary; the message lists the allowed words. Or if the meaning is no
                text, is empty, longer than :data:`MEANING_CHARACTERS` or not on one line.
        """
        if not isinstance(name, str) or not name.isidentifier():
            raise CardError(f"feature name {name!r} is not an identifier; use letters, digits and underscores")
        if name in _RESERVED or "index" in name or "batch" in name:
            raise CardError(f"feature name {name!r} is reserved by PyG or the store; choose another")
        stage_word, location_word, type_word, meaning = _parts(name, words)
        stage = _word(Stage, stage_word, name)
        location = _word(Location, location_word, name)
        if location is Location.PAIR and (stage is not Stage.OUTPUT or type_word != Kind.MASK):
            raise CardError(f"feature {name!r}: pairs have masks that are outputs alone, got {list(words)}")
        sized = _SIZED.fullmatch(type_word)
        if sized:
            return cls._sized(name, stage, location, Kind(sized[1]), int(sized[2]), meaning)
        kind = _word(Kind, type_word, name)
        if kind is Kind.CATEGORICAL:
            raise CardError(f"feature {name!r}: write the number of classes, e.g. categorical(3)")
        if kind is Kind.TEXT and (location is Location.EDGE or stage is Stage.HINT):
            raise CardError(f"feature {name!r}: texts belong to nodes or graphs and are no hints, got {list(words)}")
        return cls(name, stage, location, kind, meaning=meaning)

    @classmethod
    def _sized(cls, name: str, stage: Stage, location: Location, kind: Kind, size: int, meaning: str) -> Feature:
        if kind is Kind.CATEGORICAL and size < 2:
            raise CardError(f"feature {name!r}: categorical({size}) needs at least 2 classes")
        if kind is Kind.SCALAR and (size < 1 or (stage is Stage.HINT and size > 1)):
            raise CardError(
                f"feature {name!r}: scalar({size}) needs a width of at least 1, and of exactly 1 for a hint"
            )
        classes, width = (size, 1) if kind is Kind.CATEGORICAL else (0, size)
        return cls(name, stage, location, kind, classes, width, meaning)

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one item's value in an array of the feature: ``(width,)`` of a scalar with a width, else ``()``."""
        return (self.width,) if self.width > 1 else ()

    @property
    def is_pointer(self) -> bool:
        """Whether the feature's values are node ids: a pointer or a permutation."""
        return self.kind in (Kind.POINTER, Kind.PERMUTATION)

    @property
    def type_name(self) -> str:
        """The type as a card writes it, e.g. ``categorical(3)`` or ``scalar(2)``."""
        if self.kind is Kind.CATEGORICAL:
            return f"categorical({self.classes})"
        return f"scalar({self.width})" if self.width > 1 else self.kind.value


def parse_features(spec: Any) -> tuple[Feature, ...]:
    """Return the features of a card's ``features`` mapping in the card's order; parsed features are returned as is.

    Raises:
        CardError: If it is no mapping, or a word is not in the vocabulary.
    """
    if isinstance(spec, list | tuple) and all(isinstance(feature, Feature) for feature in spec):
        return tuple(spec)
    if not isinstance(spec, Mapping):
        raise CardError(f"features is a mapping name: [stage, location, type], got {spec!r:.80}")
    return tuple(Feature.parse(name, words) for name, words in spec.items())


def select(
    features: Iterable[Feature], stage: Stage | None = None, location: Location | None = None
) -> tuple[Feature, ...]:
    """Return the features of one stage and/or location, in order."""
    return tuple(
        f for f in features if (stage is None or f.stage is stage) and (location is None or f.location is location)
    )


class HasFeatures(Protocol):
    """Something with a list of features."""

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features, in order."""


def node_marks(features: Iterable[Feature]) -> tuple[Feature, ...]:
    """Return the inputs that mark one node of every graph."""
    return tuple(f for f in select(features, Stage.INPUT, Location.NODE) if f.kind is Kind.MASK_ONE)


class FeatureSelection:
    """The features of each stage, for classes with an attribute ``features``."""

    __slots__ = ()

    @property
    def outputs(self: HasFeatures) -> tuple[Feature, ...]:
        """Features that models predict."""
        return select(self.features, Stage.OUTPUT)

    @property
    def inputs(self: HasFeatures) -> tuple[Feature, ...]:
        """Features that models read."""
        return select(self.features, Stage.INPUT)

    @property
    def hints(self: HasFeatures) -> tuple[Feature, ...]:
        """Intermediate states of an algorithm: one value per step."""
        return select(self.features, Stage.HINT)

    @property
    def stored_features(self: HasFeatures) -> tuple[Feature, ...]:
        """Features with one value per node, edge or graph: all features except the hints."""
        return tuple(f for f in self.features if f.stage is not Stage.HINT)


def _parts(name: str, words: Any) -> tuple[str, str, str, str]:
    """Return stage, location, type and meaning of a feature as a card writes them; an absent meaning is empty.

    Raises:
        CardError: If they are no list of three texts, or of four with a fit meaning.
    """
    listed = list(words) if isinstance(words, Sequence) and not isinstance(words, str) else []
    if len(listed) not in (3, 4) or not all(isinstance(word, str) for word in listed[:3]):
        quoted = " (a meaning with commas needs quotation marks)" if len(listed) > 4 else ""
        raise CardError(
            f"feature {name!r} needs [stage, location, type] or these and a meaning{quoted}; got {words!r:.200}"
        )
    meaning = _checked_meaning(name, listed[3]) if len(listed) == 4 else ""
    return listed[0], listed[1], listed[2], meaning


def _checked_meaning(name: str, meaning: Any) -> str:
    """Return the meaning of a feature.

    Raises:
        CardError: If it is no text, is empty, too long, or has line breaks or characters that a terminal obeys.
    """
    if not isinstance(meaning, str):
        raise CardError(f"feature {name!r}: the meaning is {meaning!r:.80}; give a text in quotation marks")
    if not meaning.strip() or meaning != meaning.strip():
        raise CardError(f"feature {name!r}: the meaning is {meaning!r:.80}; give a text without spaces around it")
    if fault := text_fault(meaning, MEANING_CHARACTERS):
        begun = shown(repr(meaning), 80)
        raise CardError(f"feature {name!r}: the meaning {begun} is {fault}; give one line of plain text")
    return meaning


def _word(vocabulary: type[_E], word: str, name: str) -> _E:
    try:
        return vocabulary(word)
    except ValueError:
        allowed = ", ".join(vocabulary)
        raise CardError(
            f"feature {name!r}: unknown {vocabulary.__name__.lower()} {word!r}; use one of {allowed}"
        ) from None
