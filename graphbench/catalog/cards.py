"""Dataset cards: the definition of a dataset, in one readable YAML file per family.

A family file holds the facts that its variants share. Every variant is one dataset with an id
``<domain>/<family>_<variant>`` (or ``<domain>/<family>`` where a file has no variants). Measured facts (statistics,
scores of the trivial predictors, the hash of the first samples) are next to the cards in ``measured/`` and are written
by ``graphbench verify --update``.

If the same graphs serve several tasks, with labels that may be costly, a card has ``tasks``. The dataset of one task is
addressed as ``<id>:<task>``; the id alone means the first task, and a :class:`Card` is always the card of one task.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from graphbench.catalog.features import Feature, FeatureSelection, Location, parse_features
from graphbench.catalog.links import LinksSpec, at_edges, check_links
from graphbench.catalog.schema import Schema
from graphbench.catalog.sections import (
    LabelSpec,
    Measured,
    MeasuredTask,
    Metrics,
    NamedTask,
    Numbers,
    RepresentationSpec,
    Source,
    SplitSpec,
    TaskSpec,
    check_names,
    check_trajectories,
    staged,
)
from graphbench.catalog.series import PackSpec, SeriesSpec, check_packed, check_series
from graphbench.core.arguments import whole_number
from graphbench.core.errors import CardError, UnknownDataset
from graphbench.core.suggestions import closest
from graphbench.core.validation import StrictModel

__all__ = ["CORE_SPLITS", "Card", "Measured", "Metrics", "Source", "SplitSpec", "canonical_json", "draw_suffix"]

CORE_SPLITS = ("train", "val", "test")


class Card(FeatureSelection, StrictModel):
    """The definition of one dataset, or of one task of it.

    Attributes:
        directed: Whether an edge is an arc.
        complete: Whether every pair of nodes is an edge, loops included: edge features are ``n x n`` matrices.
        protocol: Protocol of the benchmark that the data follow, if there are several; recorded with every
            result, unless a run takes a training split of another protocol.
        classes: Feature -> names of its classes in order, for categorical features with named classes.
        channels: Feature -> names of its columns in order, for features of type ``scalar(d)``.
        class_aliases: Alternative spelling -> class name, for answers given as words.
        additional: Splits that were added to finished data, such as larger graphs for the selection of models: they
            change neither the fingerprint of the data nor what ``ood`` stands for.
        overlapping: Whether splits may share samples, because the published ones are sampled independently.
        supplementary: Whether the dataset supplements the benchmark of its domain: it is in no group but those that it
            names, not in the group of the domain, and in no mean over datasets.
        labels: Labeller -> its effort and features, for cards with tasks.
        tasks: Name -> task, if the same graphs serve several; the id alone means the first.
        task: The task of this card: ``features`` are the features of the graphs and of the task's labels, ``metrics``
            are the metrics of the task.
        task_name: Its name among ``tasks``; None for a card with a single task.
        representations: Name -> another graph of the same samples, addressed as ``<id>@<representation>``.
        series: How samples follow from states that are stored once per time, for samples that are times of a series.
        links: How candidate pairs of nodes follow from the stored edges, for samples that ask for hidden edges.
        packed: Feature -> how it is stored in 16 bits, for scalars for which 16 bits are precise enough.
        data_seed: Draw of the dataset: 0 is the canonical one, see :meth:`with_data_seed`.
        keeps_choices: Whether the draw has further samples of the canonical dataset: what that holds out is held out.
        representation: The graph representation of the samples, see :meth:`with_representation`; None for the stored
            graphs.
        graph_features: The features that the generator returns; they follow from ``features``.
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
    supplementary: bool = False
    protocol: str | None = None
    features: tuple[Feature, ...]
    classes: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    channels: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    class_aliases: dict[str, str] = Field(default_factory=dict)
    splits: dict[str, SplitSpec]
    ood: dict[str, SplitSpec] = Field(default_factory=dict)
    additional: dict[str, SplitSpec] = Field(default_factory=dict)
    labels: dict[str, LabelSpec] = Field(default_factory=dict)
    task: TaskSpec = TaskSpec()
    tasks: dict[str, NamedTask] = Field(default_factory=dict)
    task_name: str | None = None
    representations: dict[str, RepresentationSpec] = Field(default_factory=dict)
    series: SeriesSpec | None = None
    links: LinksSpec | None = None
    packed: dict[str, PackSpec] = Field(default_factory=dict)
    metrics: Metrics
    aliases: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    licence: str
    source: Source
    measured: Measured | None = None
    path: Path = Field(exclude=True)
    data_seed: int = 0
    keeps_choices: bool = False
    representation: str | None = None
    graph_features: tuple[Feature, ...] = ()

    @field_validator("features", mode="before")
    @classmethod
    def _parse_features(cls, value: Any) -> Any:
        return parse_features(value)

    @model_validator(mode="after")
    def _set_graph_features(self) -> Card:
        object.__setattr__(self, "graph_features", self._features_of_graphs(self.features))
        return self

    @model_validator(mode="after")
    def _check(self) -> Card:
        if self.complete and not self.directed:
            raise ValueError("complete graphs have both arcs of every pair of nodes; write directed: true")
        missing = [name for name in CORE_SPLITS if name not in self.splits]
        if missing:
            raise ValueError(f"splits {missing} are missing; a card needs train, val and test")
        sections = Counter(name for section in (self.splits, self.ood, self.additional) for name in section)
        clash = sorted(name for name, times in sections.items() if times > 1)
        if clash:
            raise ValueError(f"{clash} are in several of splits, ood and additional; give each split one section")
        unweighted = set(self.task.weights) - {f.name for f in self.outputs}
        if unweighted:
            raise ValueError(f"task.weights names {sorted(unweighted)}, which are not outputs of the task")
        unknown = {split for spec in self.labels.values() for split in spec.splits} - self.all_splits.keys()
        if unknown:
            raise ValueError(f"labels have an effort for the splits {sorted(unknown)}, which do not exist")
        check_packed(self.packed, self.features)
        check_links(self.links, self.features)
        if self.links is not None:
            unfit = [key for key in ("hints", "tasks", "representations", "series", "complete") if getattr(self, key)]
            if unfit:
                raise ValueError(
                    "a card with links has one task, no hints, representations or series, and graphs that are not "
                    f"complete; remove {' and '.join(unfit)}"
                )
        if self.series is not None:
            unfit = [key for key in ("hints", "labels", "representations", "complete") if getattr(self, key)]
            if unfit:
                raise ValueError(
                    "a card with series has one task, no hints, labels or representations, and a graph that is not "
                    f"complete; remove {' and '.join(unfit)}"
                )
            check_series(self.series, self.features, self.directed)
        if self.hints:
            check_trajectories((*self.inputs, *self.outputs), self.complete)
        features = (*self.features, *(feature for spec in self.labels.values() for feature in spec.features))
        check_names("classes", self.classes, {f.name: f.classes for f in features if f.classes}, "categorical")
        check_names("channels", self.channels, {f.name: f.width for f in features if f.width > 1}, "scalar(d)")
        return self

    def __repr__(self) -> str:
        """Return the address, the version, the outputs, the metric and the sizes of the splits, in a line."""
        outputs = ", ".join(f"{f.name}: {f.location} {f.type_name}" for f in self.outputs) or self.task.type
        sizes = ", ".join(f"{name} {spec.count:,}" for name, spec in self.splits.items())
        further = len(self.all_splits) - len(self.splits)
        more = f" and {further} more" if further else ""
        return f"Card({self.address}, version {self.version}; {outputs}; {self.metrics.primary}; {sizes}{more})"

    __str__ = __repr__

    @property
    def address(self) -> str:
        """Name of the dataset in records, reports and messages: id, task if there are several, and representation."""
        task = "" if self.task_name is None else f":{self.task_name}"
        return f"{self.id}{task}" + ("" if self.representation is None else f"@{self.representation}")

    @property
    def all_groups(self) -> tuple[str, ...]:
        """Names of the groups that the dataset is in: of its domain, unless it is supplementary, and those it names."""
        return self.groups if self.supplementary else (self.domain, *self.groups)

    @property
    def labellers(self) -> tuple[str, ...]:
        """Names of the labellers that the task needs; empty if the generator gives all features."""
        return () if self.task_name is None else self.tasks[self.task_name].labels

    @property
    def stored_features(self) -> tuple[Feature, ...]:
        """Features with one value per node, stored edge or graph: all but the hints; masks of links lie at edges."""
        return at_edges(super().stored_features)

    @property
    def label_features(self) -> tuple[Feature, ...]:
        """Features of the labellers, as they are stored; the same for all tasks that share them."""
        return tuple(feature for name in self.labellers for feature in self.labels[name].features)

    @property
    def graph_schema(self) -> Schema:
        """The schema of the samples that the generator returns, which all tasks and representations share."""
        return Schema(self.graph_features, self.directed, "complete" if self.complete else "listed", self.packed)

    @property
    def label_schemas(self) -> dict[str, Schema]:
        """Labeller -> the schema of its files; the edges of labels are the stored edges of the graphs."""
        return {name: Schema(spec.features, self.directed, "none") for name, spec in self.labels.items()}

    @property
    def stored_schema(self) -> Schema:
        """The schema of the stored graphs together with the labels of the task."""
        labels = {f.name for f in self.label_features}
        features = (*self.graph_features, *(f for f in self.features if f.name in labels))
        return replace(self.graph_schema, features=features)

    @property
    def sample_schema(self) -> Schema:
        """The schema of a user's sample, with labels of the task, in a representation, or with changes of a series."""
        return replace(self.graph_schema, features=self.features)

    @property
    def graphs(self) -> Card:
        """The card of the graphs alone: no task is chosen, and the samples have no labels."""
        if self.task_name is None and self.representation is None and self.series is None and self.links is None:
            return self
        changes: dict[str, Any] = dict.fromkeys(("representation", "series", "links"))
        changes["features"] = self.graph_features
        if self.tasks:
            first = next(iter(self.tasks.values()))
            changes |= {"labels": {}, "tasks": {}, "task_name": None, "task": TaskSpec(), "metrics": first.metrics}
        return self.model_copy(update=changes)

    def _features_of_graphs(self, features: Iterable[Feature]) -> tuple[Feature, ...]:
        """Return the features that the generator returns: no labels, nothing that a series derives, masks of links."""
        derived = self.series.derived if self.series is not None else frozenset()
        others = {f.name for f in self.label_features} | derived
        return at_edges(f for f in features if f.name not in others)

    def with_features(self, features: Iterable[Feature]) -> Card:
        """Return the card with other features, e.g. the features of a source of files."""
        listed = tuple(features)
        return self.model_copy(update={"features": listed, "graph_features": self._features_of_graphs(listed)})

    def with_splits(self, splits: Mapping[str, SplitSpec], ood: Mapping[str, SplitSpec] | None = None) -> Card:
        """Return the card with these splits alone, e.g. the splits of a source of files.

        Args:
            splits: The core splits, and other splits that are not out of distribution.
            ood: The out-of-distribution splits; None for none.
        """
        return self.model_copy(update={"splits": dict(splits), "ood": dict(ood or {}), "additional": {}})

    def with_task(self, name: str) -> Card:
        """Return the card of another task of the same graphs.

        Raises:
            UnknownDataset: If the card has no task ``name``; the message suggests the nearest task.
        """
        if not self.tasks:
            raise UnknownDataset(f"'{self.id}:{name}' names a task, but {self.id} has none; leave ':{name}' out")
        if name not in self.tasks:
            hint = closest(name, (), aliases={task: f"{self.id}:{task}" for task in self.tasks}, cutoff=0.5)
            raise UnknownDataset(f"unknown task '{self.id}:{name}'{hint} (its tasks are {', '.join(self.tasks)})")
        spec = self.tasks[name]
        labels = staged(self.labels, spec)
        return self.model_copy(
            update={
                "task_name": name,
                "task": spec,
                "features": (*self.graph_features, *labels),
                "representation": None,
                "metrics": spec.metrics,
            }
        )

    def with_representation(self, name: str) -> Card:
        """Return the card of another representation of the graphs, with the same splits and labels.

        Raises:
            UnknownDataset: If the card has no representation ``name``; the message suggests the nearest representation.
            CardError: If the task has labels of nodes or edges.
        """
        stored = self.model_copy(update={"representation": None}).address
        if name not in self.representations:
            addresses = ", ".join(f"{stored}@{representation}" for representation in self.representations)
            hint = closest(name, self.representations, cutoff=0.5) if self.representations else ""
            raise UnknownDataset(
                f"{self.id} has no representation {name!r}{hint} "
                f"({f'there are {addresses}' if addresses else 'it has none'})"
            )
        labels = self.stored_schema.features[len(self.graph_features) :]
        other = [f.name for f in labels if f.location is not Location.GRAPH]
        if other:
            raise CardError(
                f"{stored}: the labels {', '.join(other)} belong to nodes or edges of the stored graph, which the "
                f"representation {name} replaces; leave '@{name}' out"
            )
        return self.model_copy(
            update={"representation": name, "features": (*self.representations[name].features, *labels)}
        )

    @property
    def all_splits(self) -> dict[str, SplitSpec]:
        """Splits, out-of-distribution splits and additional splits, in the card's order."""
        return {**self.splits, **self.ood, **self.additional}

    @property
    def measured_scores(self) -> MeasuredTask:
        """Scores of trivial predictors and reference solvers for the task, and the samples behind them."""
        return MeasuredTask() if self.measured is None else self.measured.scores(self.task_name)

    @property
    def floor(self) -> dict[str, Numbers]:
        """Scores of the trivial predictors: split -> predictor -> metric -> score."""
        return self.measured_scores.floor

    @property
    def solvers(self) -> dict[str, Numbers]:
        """Scores of the reference solvers: split -> solver -> metric -> score."""
        return self.measured_scores.solvers

    @property
    def training_facts(self) -> dict[str, float]:
        """Facts of the training split that scores refer to, by name; empty where there are none or none is measured."""
        return self.measured_scores.training

    def split(self, name: str) -> SplitSpec:
        """Return the split or out-of-distribution split ``name``.

        Raises:
            CardError: If the dataset has no split ``name``.
        """
        spec = self.all_splits.get(name)
        if spec is None:
            raise CardError(f"{self.address} has no split {name!r}; it has {', '.join(self.all_splits)}")
        return spec

    def select_splits(self, names: str | Iterable[str] | None, others: Collection[str] = ()) -> list[str]:
        """Return the splits that names stand for, each once.

        ``ood`` stands for every out-of-distribution split, ``additional`` for every additional split and ``all`` for
        every split; None and ``none`` alone stand for no split. A string may hold several names, separated by commas.

        Args:
            names: The names.
            others: Splits of other datasets; a name from ``others`` that this dataset lacks stands for no split.

        Raises:
            CardError: If a name is neither a split of this dataset nor one of ``others``.
        """
        listed = names.split(",") if isinstance(names, str) else list(names or ())
        groups = {"ood": list(self.ood), "additional": list(self.additional), "all": list(self.all_splits)}
        selected: dict[str, None] = {}
        for name in [] if listed == ["none"] else [name.strip() for name in listed]:
            if name not in groups and name not in self.all_splits:
                if name in others:
                    continue
                available = ", ".join(self.all_splits)
                raise CardError(f"{self.address} has no split {name!r}; it has {available} (and {', '.join(groups)})")
            selected |= dict.fromkeys(groups.get(name, [name]))
        return list(selected)

    def nodes(self, split: str) -> float | None:
        """Return the number of nodes of a split's graphs: the parameter ``nodes``, else the measured mean.

        Without measurements it is the middle of a range of nodes; None without a range.
        """
        nodes = self.split(split).parameters.get("nodes")
        if isinstance(nodes, int | float):
            return float(nodes)
        measured = self.measured.statistics.get(split, {}).get("nodes") if self.measured is not None else None
        if measured is not None:
            return measured[0]
        is_range = isinstance(nodes, list | tuple) and len(nodes) == 2
        return float(sum(nodes)) / 2 if is_range and nodes is not None else None

    def with_data_seed(self, data_seed: int, *, keeps_choices: bool = False) -> Card:
        """Return the card of another draw of the dataset: everything random in it is regenerated.

        Measured facts belong to the canonical draw, so the cards of other draws have none.

        Args:
            data_seed: Number of the draw; 0 is the canonical draw, which returns this card unchanged.
            keeps_choices: Whether only the samples are regenerated, and random choices that make the dataset, such as
                the facts that are held out of training, stay those of the canonical draw.

        Raises:
            CardError: If the number is not whole or is negative, or this is the card of another draw.
        """
        number = whole_number("data_seed", data_seed, 0, "0 is the canonical data", CardError)
        if number == self.data_seed:
            return self
        if self.data_seed:
            raise CardError(f"{self.id} is of data seed {self.data_seed} already; start from the card of data seed 0")
        return self.model_copy(update={"data_seed": number, "keeps_choices": keeps_choices, "measured": None})

    @property
    def draw_mark(self) -> str:
        """The end of names of the draw's data, ``-draw3`` or ``-further3``; empty for the canonical draw."""
        return f"-further{self.data_seed}" if self.keeps_choices and self.data_seed else draw_suffix(self.data_seed)

    def with_limited(self, parameter: str, limits: Mapping[str, int]) -> Card:
        """Return the card with a parameter cut to a limit in some splits; a card with a cut parameter has other data.

        Args:
            parameter: A parameter of the generator that is a number.
            limits: Split -> largest value; the parameters of other splits stay.
        """

        def limited(specs: Mapping[str, SplitSpec]) -> dict[str, SplitSpec]:
            limited_specs = {}
            for split, spec in specs.items():
                least = min(spec.parameters[parameter], limits.get(split, spec.parameters[parameter]))
                limited_specs[split] = spec.model_copy(update={"parameters": {**spec.parameters, parameter: least}})
            return limited_specs

        sections = ("splits", "ood", "additional")
        changed = {name: specs for name in sections if (specs := limited(getattr(self, name))) != getattr(self, name)}
        return self.model_copy(update={**changed, "measured": None}) if changed else self

    def fingerprint(self, generator_version: int) -> str:
        """Return 12 hexadecimal digits that change whenever the generated bytes may change.

        Draws of one card share the digits; draw 3 is marked by the suffix ``-draw3``, the canonical draw by none.
        Additional splits do not count; the names of their files have digits of their parameters instead, see
        :meth:`stored_name`.
        """
        facts = {
            "id": self.id,
            "version": self.version,
            "generator": [self.generator, generator_version],
            "features": [_feature_key(f) for f in self.graph_features],
            "directed": self.directed,
            "splits": {name: spec.parameters for name, spec in {**self.splits, **self.ood}.items()},
            **({"complete": True} if self.complete else {}),
            **({"packed": {name: spec.model_dump() for name, spec in self.packed.items()}} if self.packed else {}),
        }
        return _digest(facts) + self.draw_mark

    def stored_name(self, split: str) -> str:
        """Return the name of a split's files in the folder of the dataset.

        That is the name of the split. The names of additional splits, whose parameters are not part of the fingerprint
        of the folder, also have eight hexadecimal digits that change with the parameters.

        Raises:
            CardError: If the dataset has no split ``split``.
        """
        parameters = self.split(split).parameters
        return f"{split}-{_digest(parameters)[:8]}" if split in self.additional else split

    def label_fingerprint(self, labeller: str, labeller_version: int) -> str:
        """Return 12 hexadecimal digits that change whenever the bytes of a labeller's labels of the graphs may change.

        Args:
            labeller: Name of the labeller.
            labeller_version: Its version.
        """
        spec = self.labels[labeller]
        features = [_feature_key(f) for f in spec.features]
        effort = [spec.effort, spec.splits]
        return _digest({"labels": [labeller, labeller_version], "effort": effort, "features": features})


def _feature_key(feature: Feature) -> list[str]:
    return [feature.name, feature.stage, feature.location, feature.type_name]


def _digest(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(facts).encode()).hexdigest()[:12]


def draw_suffix(data_seed: int) -> str:
    """Return the suffix of names of a draw, ``-draw3``; empty for the canonical draw, data seed 0."""
    return f"-draw{data_seed}" if data_seed else ""


def canonical_json(value: Any) -> str:
    """Return JSON text that is the same for equal values: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
