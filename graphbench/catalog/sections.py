"""The parts of a dataset card: splits, labels, tasks, metrics, source, and what was measured."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from graphbench.catalog.features import Feature, Kind, Stage, parse_features


class Strict(BaseModel):
    """A frozen model without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SplitSpec(Strict):
    """One split: how many samples, drawn with which parameters.

    Attributes:
        count: Number of samples.
        shift: In words, how the split differs from the training distribution; None where it does not.
        parameters: Complete parameters of the generator for this split.
    """

    count: int = Field(gt=0)
    shift: str | None = None
    parameters: dict[str, Any] = {}


class Metrics(Strict):
    """The metric that ranks models, and those reported beside it."""

    primary: str
    also: tuple[str, ...] = ()


class Source(Strict):
    """Where the specification comes from and where this dataset departs from it."""

    paper: str
    section: str | None = None
    tables: tuple[int, ...] = ()
    citation: str | None = None
    url: str | None = None
    deviations: tuple[str, ...] = ()


class LabelSpec(Strict):
    """What a labeller finds out about every graph, and how hard it tries.

    Attributes:
        effort: What the labeller may spend on a graph, the same for all graphs of a split.
        splits: Split -> keys of the effort that differ there, for splits of larger graphs.
        features: What it gives at nodes, edges and graphs: scalars, masks and classes, one value per stored edge. All
            are ``meta``; a task says which of them are its outputs.
    """

    effort: dict[str, Any] = {}
    splits: dict[str, dict[str, Any]] = {}
    features: tuple[Feature, ...]

    @field_validator("features", mode="before")
    @classmethod
    def _parse_features(cls, value: Any) -> Any:
        return parse_features(value)

    @model_validator(mode="after")
    def _check(self) -> LabelSpec:
        if not self.features:
            raise ValueError("features is empty; name what the labeller gives")
        for f in self.features:
            if f.stage is not Stage.META:
                raise ValueError(f"the feature {f.name!r} is {f.stage}; write meta, a task's outputs make it an output")
            if f.kind not in (Kind.SCALAR, Kind.MASK, Kind.CATEGORICAL):
                raise ValueError(f"the feature {f.name!r} is a {f.kind}; labels are scalars, masks and classes")
        return self


class TaskSpec(Strict):
    """What is asked of the graphs, and by which kind of task.

    Attributes:
        type: Name of a registered kind of task (``predict``, ``trace``, ``solve``, ``text`` or a plug-in's). It decides
            how samples are batched, trained on, scored and read from files.
        weights: Output -> weight of its loss, and of its score in the mean over outputs; 1 where none is given.
        problem: The domain's problem, as ``<domain>.<name>``, for kinds of tasks that solve one.
        options: Settings of the kind of task.
    """

    type: str = Field(default="predict", pattern=r"^[a-z][a-z0-9_]*$")
    weights: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = {}
    problem: str | None = None
    options: dict[str, Any] = {}


class NamedTask(TaskSpec):
    """One of several tasks on the same graphs.

    Attributes:
        title: The task in a few words.
        summary: The task in a sentence.
        labels: Which of the card's labels the task needs.
        outputs: Features of these labels that are the task's outputs.
        metrics: How it is scored.
    """

    title: str
    summary: str
    labels: str
    outputs: tuple[str, ...] = Field(min_length=1)
    metrics: Metrics


Numbers = dict[str, dict[str, float]]


class MeasuredLabels(Strict):
    """Facts measured on the labels of one labeller.

    Attributes:
        first_samples: split -> SHA-256 of the labels of the first samples.
        statistics: split -> name -> [mean, standard deviation over graphs].
        statistics_samples: split -> number of samples the statistics were measured on.
    """

    first_samples: dict[str, str] = {}
    statistics: dict[str, dict[str, tuple[float, float]]] = {}
    statistics_samples: dict[str, int] = {}


class MeasuredTask(Strict):
    """Scores measured on one task.

    Attributes:
        floor: split -> trivial predictor -> metric -> score.
        solvers: split -> reference solver -> metric -> score.
    """

    floor: dict[str, Numbers] = {}
    solvers: dict[str, Numbers] = {}


class Measured(Strict):
    """Facts measured on the generated dataset, written by ``graphbench verify --update``.

    Attributes:
        first_samples: split -> SHA-256 of the arrays of the first 64 samples.
        statistics: split -> name -> [mean, standard deviation over graphs].
        statistics_samples: split -> number of samples the statistics were measured on.
        different: split -> what is counted -> how many different ones these samples have.
        floor: split -> trivial predictor -> metric -> score.
        solvers: split -> reference solver, which knows what the task is -> metric -> score.
        labels: labeller -> facts of its labels, for cards that have any.
        tasks: task -> its scores, for cards that have tasks; ``floor`` and ``solvers`` are then empty.
    """

    version: int
    first_samples: dict[str, str] = {}
    statistics: dict[str, dict[str, tuple[float, float]]] = {}
    statistics_samples: dict[str, int] = {}
    different: dict[str, dict[str, int]] = {}
    floor: dict[str, Numbers] = {}
    solvers: dict[str, Numbers] = {}
    labels: dict[str, MeasuredLabels] = {}
    tasks: dict[str, MeasuredTask] = {}

    def scores(self, task: str | None) -> MeasuredTask:
        """Return the scores of a task, or those of a card without tasks."""
        return (
            MeasuredTask(floor=self.floor, solvers=self.solvers)
            if task is None
            else self.tasks.get(task, MeasuredTask())
        )
