"""Dataset cards: what a dataset is, in one readable YAML file per family.

A family file holds what its variants share; every variant is one dataset with an id ``<domain>/<family>_<variant>``
(or ``<domain>/<family>`` where a file has no variants). Measured facts (statistics, scores of the trivial predictors,
the hash of the first samples) lie beside the cards in ``measured/`` and are written by ``graphbench verify --update``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from operator import index
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from graphbench.catalog.features import Feature, Stage, parse_features, select
from graphbench.catalog.resources import read_yaml
from graphbench.errors import CardError

MEASURED_FOLDER = "measured"
CORE_SPLITS = ("train", "val", "test")
_SET_BY_PLACE = {"id", "domain", "family", "variant", "path", "measured", "data_seed"}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SplitSpec(_Strict):
    """One split: how many samples, drawn with which parameters.

    Attributes:
        count: Number of samples.
        shift: In words, how the split differs from the training distribution; None where it does not.
        parameters: Complete parameters of the generator for this split.
    """

    count: int = Field(gt=0)
    shift: str | None = None
    parameters: dict[str, Any] = {}


class Metrics(_Strict):
    """The metric that ranks models, and those reported beside it."""

    primary: str
    also: tuple[str, ...] = ()


class Source(_Strict):
    """Where the specification comes from and where this dataset departs from it."""

    paper: str
    section: str | None = None
    tables: tuple[int, ...] = ()
    citation: str | None = None
    url: str | None = None
    deviations: tuple[str, ...] = ()


class Measured(_Strict):
    """Facts measured on the generated dataset, written by ``graphbench verify --update``.

    Attributes:
        first_samples: split -> SHA-256 of the arrays of the first 64 samples.
        statistics: split -> name -> [mean, standard deviation over graphs].
        statistics_samples: split -> number of samples the statistics were measured on.
        floor: split -> trivial predictor -> metric -> score.
        solvers: split -> reference solver, which knows what the task is -> metric -> score.
    """

    version: int
    first_samples: dict[str, str] = {}
    statistics: dict[str, dict[str, tuple[float, float]]] = {}
    statistics_samples: dict[str, int] = {}
    floor: dict[str, dict[str, dict[str, float]]] = {}
    solvers: dict[str, dict[str, dict[str, float]]] = {}


class Card(_Strict):
    """Everything there is to say about one dataset.

    Attributes:
        directed: Whether an edge is an arc.
        complete: Whether every pair of nodes is an edge, loops included: edge features are ``n x n`` matrices.
        protocol: Which of a benchmark's ways the data follow, where there are several; stands in every result.
        classes: Feature -> names of its classes, in their order, for categorical features whose classes have names.
        overlapping: Whether splits may have samples in common, because the published ones are drawn independently.
        data_seed: Which draw of the dataset: 0 is the canonical one, see :meth:`with_data_seed`.
    """

    id: str
    domain: str
    family: str
    variant: str | None = None
    version: int = Field(ge=1)
    title: str
    summary: str
    description: str | None = None
    generator: str
    directed: bool = False
    complete: bool = False
    overlapping: bool = False
    protocol: str | None = None
    features: tuple[Feature, ...]
    classes: dict[str, tuple[str, ...]] = {}
    splits: dict[str, SplitSpec]
    ood: dict[str, SplitSpec] = {}
    metrics: Metrics
    aliases: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    licence: str
    source: Source
    measured: Measured | None = None
    path: Path = Field(exclude=True)
    data_seed: int = Field(default=0, exclude=True)

    @field_validator("features", mode="before")
    @classmethod
    def _parse_features(cls, value: Any) -> Any:
        return parse_features(value) if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _check(self) -> Card:
        if not self.outputs:
            raise ValueError("a card needs at least one output feature")
        if self.complete and not self.directed:
            raise ValueError("complete graphs have both arcs of every pair of nodes; write directed: true")
        missing = [name for name in CORE_SPLITS if name not in self.splits]
        if missing:
            raise ValueError(f"splits {missing} are missing; a card needs train, val and test")
        clash = set(self.splits) & set(self.ood)
        if clash:
            raise ValueError(f"{sorted(clash)} are both splits and ood splits")
        counts = {feature.name: feature.classes for feature in self.features if feature.classes}
        for name, words in self.classes.items():
            if name not in counts:
                raise ValueError(f"classes names {name!r}; the categorical features are {', '.join(counts) or 'none'}")
            if len(set(words)) != counts[name]:
                raise ValueError(f"classes.{name} has {len(set(words))} different names, {name} {counts[name]} classes")
        return self

    @property
    def outputs(self) -> tuple[Feature, ...]:
        """Features that models predict."""
        return select(self.features, Stage.OUTPUT)

    @property
    def inputs(self) -> tuple[Feature, ...]:
        """Features that models read."""
        return select(self.features, Stage.INPUT)

    @property
    def hints(self) -> tuple[Feature, ...]:
        """Features that an algorithm shows on the way: one value per step."""
        return select(self.features, Stage.HINT)

    @property
    def stored_features(self) -> tuple[Feature, ...]:
        """Features with one value per node, edge or graph: all but the hints."""
        return tuple(f for f in self.features if f.stage is not Stage.HINT)

    @property
    def all_splits(self) -> dict[str, SplitSpec]:
        """Splits and out-of-distribution splits, in the card's order."""
        return {**self.splits, **self.ood}

    @property
    def floor(self) -> dict[str, dict[str, dict[str, float]]]:
        """Scores of the trivial predictors: split -> predictor -> metric -> score."""
        return self.measured.floor if self.measured is not None else {}

    @property
    def solvers(self) -> dict[str, dict[str, dict[str, float]]]:
        """Scores of the reference solvers: split -> solver -> metric -> score."""
        return self.measured.solvers if self.measured is not None else {}

    def split(self, name: str) -> SplitSpec:
        """Return the split or out-of-distribution split ``name``.

        Raises:
            CardError: If the dataset has no such split.
        """
        found = self.all_splits.get(name)
        if found is None:
            raise CardError(f"{self.id} has no split {name!r}; it has {', '.join(self.all_splits)}")
        return found

    def nodes(self, split: str) -> float | None:
        """Return the nodes of a split's graphs: the parameter ``nodes``, else the measured mean, else None."""
        nodes = self.split(split).parameters.get("nodes")
        if isinstance(nodes, int | float):
            return float(nodes)
        measured = self.measured.statistics.get(split, {}).get("nodes") if self.measured is not None else None
        return measured[0] if measured is not None else None

    def with_data_seed(self, data_seed: int) -> Card:
        """Return the card of another draw of the dataset: everything random in it is drawn anew.

        Measured facts are of the canonical draw, so the cards of others have none.

        Args:
            data_seed: Number of the draw; 0 is the canonical one, whose card is returned as it is.

        Raises:
            CardError: If the number is not whole or is negative, or this is the card of another draw.
        """
        number = _checked_data_seed(data_seed)
        if number == self.data_seed:
            return self
        if self.data_seed:
            raise CardError(f"{self.id} is of data seed {self.data_seed} already; start from the card of data seed 0")
        return self.model_copy(update={"data_seed": number, "measured": None})

    def fingerprint(self, generator_version: int) -> str:
        """Return 12 hexadecimal digits that change whenever the generated bytes may change.

        Draws of one card share the digits; those of another draw than the canonical one have ``-draw3`` behind them.
        """
        facts = {
            "id": self.id,
            "version": self.version,
            "generator": [self.generator, generator_version],
            "features": [[f.name, f.stage, f.location, f.type_name] for f in self.features],
            "directed": self.directed,
            "splits": {name: spec.parameters for name, spec in self.all_splits.items()},
            **({"complete": True} if self.complete else {}),
        }
        digits = hashlib.sha256(canonical_json(facts).encode()).hexdigest()[:12]
        return digits + draw_suffix(self.data_seed)


def draw_suffix(data_seed: int) -> str:
    """Return what names of another draw than the canonical one end in: ``-draw3``; nothing for data seed 0."""
    return f"-draw{data_seed}" if data_seed else ""


def _checked_data_seed(value: Any) -> int:
    try:
        number = -1 if isinstance(value, bool) else index(value)
    except TypeError:
        number = -1
    if number < 0:
        raise CardError(f"data_seed is {value!r}; give 0, the canonical data, or another whole number above it")
    return number


def canonical_json(value: Any) -> str:
    """Return JSON text that is the same for equal values: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``base`` overridden by ``changes``, mappings merged key by key.

    A key written ``name!`` in ``changes`` replaces ``name`` as a whole instead of merging into it.
    """
    merged = dict(base)
    for key, value in changes.items():
        if isinstance(key, str) and key.endswith("!"):
            merged[key[:-1]] = value
        elif isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def load_family(path: Path) -> tuple[Card, ...]:
    """Return the cards of one family file.

    Raises:
        CardError: If the file is malformed; the message gives the file, the place and the value.
    """
    raw = read_yaml(path)
    if not isinstance(raw, Mapping):
        raise CardError(f"{path}: a card is a mapping of keys, got {type(raw).__name__}")
    raw = dict(raw)
    variants = raw.pop("variants", None)
    domain, family = path.parent.name, path.stem
    if variants is None:
        return (_build_card(raw, domain, family, None, path),)
    if not isinstance(variants, Mapping) or not variants:
        raise CardError(f"{path}: 'variants' is a mapping name -> changes, got {variants!r}")
    return tuple(
        _build_card(merge(raw, changes or {}), domain, family, name, path) for name, changes in variants.items()
    )


def _build_card(raw: Mapping[str, Any], domain: str, family: str, variant: str | None, path: Path) -> Card:
    name = family if variant is None else f"{family}_{variant}"
    where = f"{path} ({domain}/{name})"
    content = dict(raw)
    for key in _SET_BY_PLACE & set(content):
        raise CardError(f"{where}: the key {key!r} is not for authors, it follows from files and loading; remove it")
    shared = _mapping(content.pop("parameters", {}), where, "parameters")
    for section in ("splits", "ood"):
        _mapping(content.get(section, {}), where, section)
    for section in ("splits", "ood"):
        if section in content:
            content[section] = {split: _resolve_split(split, content, shared, where) for split in content[section]}
    try:
        return Card(
            id=f"{domain}/{name}",
            domain=domain,
            family=family,
            variant=variant,
            path=path,
            measured=_load_measured(path, name),
            **{str(key): value for key, value in content.items()},
        )
    except ValidationError as error:
        raise CardError(f"{where}: {_explain(error)}") from error
    except TypeError as error:
        raise CardError(f"{where}: {error}") from error


def _mapping(value: Any, where: str, key: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise CardError(f"{where}: {key!r} must be a mapping of keys, got {value!r}")
    return value


def _resolve_split(
    split: str, content: Mapping[str, Any], shared: Mapping[str, Any], where: str, seen: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return a split with ``like`` followed and the card's shared parameters filled in."""
    known = {**content.get("ood", {}), **content.get("splits", {})}
    if split not in known:
        raise CardError(f"{where}: split {seen[-1]!r} is like {split!r}, which does not exist")
    if split in seen:
        raise CardError(f"{where}: splits {', '.join(seen)} are like each other in a circle")
    own = dict(_mapping(known[split], where, split))
    like = own.pop("like", None)
    model = {"parameters": shared} if like is None else _resolve_split(like, content, shared, where, (*seen, split))
    changes = _mapping(own.get("parameters", {}), where, f"{split}.parameters")
    own["parameters"] = merge(model["parameters"], changes)
    own.setdefault("shift", model.get("shift"))
    return own


def _explain(error: ValidationError) -> str:
    lines = []
    for problem in error.errors():
        place = ".".join(str(part) for part in problem["loc"]) or "card"
        if problem["type"] == "extra_forbidden":
            lines.append(f"unknown key {place!r}; keys are {', '.join(sorted(_keys_beside(problem['loc'])))}")
        elif problem["type"] == "missing":
            lines.append(f"the key {place!r} is missing")
        else:
            lines.append(f"{place}: {problem['msg']} (got {problem['input']!r:.80})")
    return "; ".join(lines)


def _keys_beside(place: tuple[int | str, ...]) -> set[str]:
    """Return the keys an author may write where the unknown key at ``place`` stands."""
    if len(place) == 3 and place[0] in ("splits", "ood"):
        return {*SplitSpec.model_fields, "like"}
    sections: dict[int | str, type[BaseModel]] = {"metrics": Metrics, "source": Source}
    if len(place) == 2 and place[0] in sections:
        return set(sections[place[0]].model_fields)
    return (set(Card.model_fields) - _SET_BY_PLACE) | {"variants", "parameters"}


def measured_path(card_path: Path, name: str) -> Path:
    """Return the file of measured facts of the dataset ``name`` (without its domain)."""
    return card_path.parent / MEASURED_FOLDER / f"{name}.json"


def _load_measured(card_path: Path, name: str) -> Measured | None:
    path = measured_path(card_path, name)
    if not path.is_file():
        return None
    try:
        return Measured.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        raise CardError(f"{path}: {_explain(error)}; rewrite it with `graphbench verify --update`") from error
