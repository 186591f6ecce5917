"""The sections of a dataset card (splits, labels, tasks, metrics, source, measured facts) and their checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from graphbench.catalog.features import Feature, Kind, Location, Stage, parse_features
from graphbench.core.validation import StrictModel


class Strict(StrictModel):
    """A frozen model without unknown keys."""


class SplitSpec(Strict):
    """One split: the number of samples, and the parameters of the generator.

    Attributes:
        count: Number of samples.
        shift: How the split differs from the training distribution, as text; None if it does not.
        parameters: Complete parameters of the generator for this split.
    """

    count: int = Field(gt=0)
    shift: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)


class ScoredPart(Strict):
    """A part of the samples that is scored in addition to the whole: the samples with a large output.

    Attributes:
        output: A scalar output of graphs.
        above: The part has the graphs on which the magnitude of the output's target is greater.
    """

    output: str
    above: float = Field(ge=0, allow_inf_nan=False)


class Metrics(Strict):
    """The metric that ranks models, further reported metrics, and parts of the samples with separate scores.

    Attributes:
        primary: The metric that ranks models.
        also: The metrics that are also reported.
        parts: Name -> the rule that selects its samples; the scores of a part are reported as ``<split>_<name>``.
    """

    primary: str
    also: tuple[str, ...] = ()
    parts: dict[Annotated[str, Field(pattern=r"^[a-z]+$")], ScoredPart] = Field(default_factory=dict)


class Source(Strict):
    """The origin of the specification, and the deviations of this dataset from it."""

    paper: str
    section: str | None = None
    tables: tuple[int, ...] = ()
    citation: str | None = None
    url: str | None = None
    deviations: tuple[str, ...] = ()


class LabelSpec(Strict):
    """The features that a labeller computes for every graph, and its effort.

    Attributes:
        effort: The effort that the labeller may spend on a graph, the same for all graphs of a split.
        splits: Split -> keys of the effort that differ there, for splits of larger graphs.
        features: Its features of nodes, edges and graphs: scalars, masks and classes, one value per stored edge, and
            texts of graphs. All are ``meta``; a task names its outputs among them.
    """

    effort: dict[str, Any] = Field(default_factory=dict)
    splits: dict[str, dict[str, Any]] = Field(default_factory=dict)
    features: tuple[Feature, ...]

    @field_validator("features", mode="before")
    @classmethod
    def _parse_features(cls, value: Any) -> Any:
        return parse_features(value)

    @model_validator(mode="after")
    def _check(self) -> LabelSpec:
        if not self.features:
            raise ValueError("features is empty; name the features of the labeller")
        for f in self.features:
            if f.stage is not Stage.META:
                raise ValueError(f"the feature {f.name!r} is {f.stage}; write meta, and name it among a task's outputs")
            if f.kind is Kind.TEXT and f.location is not Location.GRAPH:
                raise ValueError(f"the feature {f.name!r} is a text at a {f.location}; labels are texts only of graphs")
            if f.kind not in (Kind.SCALAR, Kind.MASK, Kind.CATEGORICAL, Kind.TEXT):
                raise ValueError(f"the feature {f.name!r} is a {f.kind}; labels are scalars, masks, classes and texts")
        return self


class RepresentationSpec(Strict):
    """Another graph of the same samples, which is derived from the stored one when a batch is made.

    Attributes:
        derived_by: The registered representation that derives the graph, as ``<domain>.<name>``.
        title: Description of the graph, in a few words.
        features: The inputs of models in this representation.
    """

    derived_by: str
    title: str
    features: tuple[Feature, ...] = ()

    @field_validator("features", mode="before")
    @classmethod
    def _parse_features(cls, value: Any) -> Any:
        return parse_features(value)

    @model_validator(mode="after")
    def _check(self) -> RepresentationSpec:
        for f in self.features:
            if f.stage not in (Stage.INPUT, Stage.META):
                raise ValueError(
                    f"the feature {f.name!r} of a representation is {f.stage}; representations have inputs and meta "
                    "features"
                )
        return self


class TaskSpec(Strict):
    """A task: its kind and the settings of this kind.

    Attributes:
        type: Name of a registered kind of task: ``predict``, ``trace``, ``solve``, ``select``, ``text``, ``generate``,
            ``link`` or a plug-in's. It decides how samples are batched, trained on, scored and read from files.
        weights: Output -> weight of its loss, and of its score in the mean over outputs; 1 where none is given.
        rules: Name of a trivial predictor, e.g. ``structural`` -> the domain's rule, as ``<domain>.<name>``, that it
            follows, for kinds of tasks that predict outputs from inputs.
        options: Options of the kind of task, such as its problem or its verifier; see ``options_type`` of its class.
    """

    type: str = Field(default="predict", pattern=r"^[a-z][a-z0-9_]*$")
    weights: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(default_factory=dict)
    rules: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], str] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)


class NamedTask(TaskSpec):
    """One of several tasks on the same graphs.

    Attributes:
        title: The task in a few words.
        summary: The task in a sentence.
        labels: Which of the card's labels the task needs: a labeller, or several.
        inputs: Features of these labels that models read.
        outputs: Features of these labels that are the task's outputs.
        metrics: How it is scored.
    """

    title: str
    summary: str
    labels: tuple[str, ...] = Field(min_length=1)
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = Field(min_length=1)
    metrics: Metrics

    @field_validator("labels", mode="before")
    @classmethod
    def _as_tuple(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


Numbers = dict[str, dict[str, float]]
"""Predictor -> metric -> score."""


class MeasuredLabels(Strict):
    """Measurements of the labels of one labeller.

    Attributes:
        first_samples: split -> SHA-256 of the labels of the first samples.
        statistics: split -> name -> [mean, standard deviation over graphs].
        statistics_samples: split -> number of samples the statistics were measured on.
    """

    first_samples: dict[str, str] = Field(default_factory=dict)
    statistics: dict[str, dict[str, tuple[float, float]]] = Field(default_factory=dict)
    statistics_samples: dict[str, int] = Field(default_factory=dict)


class MeasuredScores(Strict):
    """Measured scores of trivial predictors and reference solvers, and the samples behind them.

    Attributes:
        floor: split -> trivial predictor -> metric -> score; parts of the test split, if the task names any, are
            ``test_<part>``.
        solvers: split or part -> reference solver -> metric -> score.
        scored_samples: split or part -> number of samples that these scores were measured on, the first of the
            split. The number is unknown for a split that is absent, as in files of older versions.
        scored_hashes: split -> content hash of these samples, as records of runs have it, where version, draw and count
            do not determine the samples: bits of simulated samples depend on the machine.
    """

    floor: dict[str, Numbers] = Field(default_factory=dict)
    solvers: dict[str, Numbers] = Field(default_factory=dict)
    scored_samples: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    scored_hashes: dict[str, str] = Field(default_factory=dict)


class MeasuredTask(MeasuredScores):
    """Measured scores of one task.

    Attributes:
        scores_on_first: N -> the scores on the first N samples of every split for which ``floor`` and ``solvers`` were
            measured on more.
        training: Facts of the training split that scores refer to, by name; see ``Task.training_facts``.
    """

    scores_on_first: dict[int, MeasuredScores] = Field(default_factory=dict)
    training: dict[str, float] = Field(default_factory=dict)


class Measured(MeasuredTask):
    """Measurements of the generated dataset, written by ``graphbench verify --update``.

    Attributes:
        first_samples: split -> SHA-256 of the arrays of the first 64 samples.
        statistics: split -> name -> [mean, standard deviation over graphs].
        statistics_samples: split -> number of samples the statistics were measured on.
        different: split -> counted objects (e.g. ``paths``) -> number of distinct objects in these samples.
        labels: labeller -> measurements of its labels, for cards that have any.
        tasks: task -> its scores, for cards that have tasks; the scores of the card itself are then empty.
    """

    version: int
    first_samples: dict[str, str] = Field(default_factory=dict)
    statistics: dict[str, dict[str, tuple[float, float]]] = Field(default_factory=dict)
    statistics_samples: dict[str, int] = Field(default_factory=dict)
    different: dict[str, dict[str, int]] = Field(default_factory=dict)
    labels: dict[str, MeasuredLabels] = Field(default_factory=dict)
    tasks: dict[str, MeasuredTask] = Field(default_factory=dict)

    def scores(self, task: str | None) -> MeasuredTask:
        """Return the scores of a task, or of a card without tasks."""
        return self if task is None else self.tasks.get(task, MeasuredTask())


def check_trajectories(features: Iterable[Feature], complete: bool) -> None:
    """Check that inputs and outputs of a card with hints can be batched over time as dense arrays of numbers.

    Raises:
        ValueError: If a feature cannot be batched.
    """
    for feature in features:
        if feature.location is Location.EDGE and not complete:
            raise ValueError(
                f"{feature.name} is a feature of edges on a card with hints, whose graphs must be complete; write "
                "complete: true and directed: true"
            )
        if feature.kind is Kind.TEXT:
            raise ValueError(f"{feature.name} is a text on a card with hints; trajectories hold numbers only")


def check_names(key: str, named: Mapping[str, tuple[str, ...]], counts: Mapping[str, int], kind: str) -> None:
    """Check the names of classes or channels.

    Args:
        key: The card's key.
        named: Feature -> names.
        counts: Feature -> number of its classes or channels, of all features that have any.
        kind: Type of these features, for messages.

    Raises:
        ValueError: If a named feature has no classes or channels, or not one distinct name for each.
    """
    for feature, words in named.items():
        if feature not in counts:
            raise ValueError(f"{key} names {feature!r}; the {kind} features are {', '.join(counts) or 'none'}")
        if len(set(words)) != counts[feature] or len(words) != counts[feature]:
            raise ValueError(
                f"{key}.{feature} has {len(set(words))} different names, {feature} {counts[feature]} {key}"
            )


def staged(labels: Mapping[str, LabelSpec], task: NamedTask) -> tuple[Feature, ...]:
    """Return the features of a task's labels; the features that the task names become its inputs and outputs.

    Raises:
        ValueError: If a labeller or a feature does not exist, or a feature is input and output.
    """
    for name in task.labels:
        if name not in labels:
            raise ValueError(f"there are no labels {name!r}; there are {', '.join(labels) or 'none'}")
    features = tuple(feature for name in task.labels for feature in labels[name].features)
    for key, names in (("inputs", task.inputs), ("outputs", task.outputs)):
        unknown = set(names) - {f.name for f in features}
        if unknown:
            available = ", ".join(f.name for f in features)
            raise ValueError(f"{key} {sorted(unknown)} are none of the labels' features; there are {available}")
    both = set(task.inputs) & set(task.outputs)
    if both:
        raise ValueError(f"{sorted(both)} are inputs and outputs; a feature is one or the other")
    stages = {**dict.fromkeys(task.inputs, Stage.INPUT), **dict.fromkeys(task.outputs, Stage.OUTPUT)}
    return tuple(replace(f, stage=stages[f.name]) if f.name in stages else f for f in features)
