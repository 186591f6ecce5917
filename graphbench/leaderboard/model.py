"""The content of a leaderboard: tables of ranked models per dataset and split, and means over datasets.

Everything here is plain data, which pages show and :func:`to_json` writes.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from graphbench._version import __version__
from graphbench.leaderboard.statistics import Comparison, Interval
from graphbench.records.classes import BUDGET_CLASSES, BudgetClass
from graphbench.records.provenance import Provenance
from graphbench.reports.labels import named

SCHEMA = 3
TEST = "test"

Unranked = Literal["seeds", "bootstrap", "alone"]


@dataclass(frozen=True, slots=True)
class Data:
    """The samples behind the scores of a table.

    Attributes:
        version: Version of the dataset.
        draw: Number of the draw of the dataset; 0 is the canonical draw.
        hash: Hash of the split's content; the fingerprint of the dataset if a record has no hash; may be empty.
        graphs: Number of graphs that were scored; None if a record does not say.
        whole: Whether all graphs of the split were scored, as far as the records say.
    """

    version: int
    draw: int
    hash: str
    graphs: int | None
    whole: bool


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of training and prediction, as means over the runs; None for a cost that no run states.

    Attributes:
        parameters: Trainable parameters.
        seconds: Training time in seconds.
        memory_bytes: Peak memory of the process, or of the GPU where one was used.
        graphs_per_second: Training graphs per second.
        latency_ms: Milliseconds to predict one test graph alone.
        devices: The machines, in words.
        cpu_seconds: Processor time of training in seconds.
        threads: Threads of each process.
        core_seconds: Processor time that the budget class goes by: of older records the time on the clock times the
            cores.
    """

    parameters: float | None
    seconds: float | None
    memory_bytes: float | None
    graphs_per_second: float | None
    latency_ms: float | None
    devices: tuple[str, ...]
    cpu_seconds: float | None = None
    threads: float | None = None
    core_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One model of a table.

    Attributes:
        label: Name of the model, unique within the table.
        model: Name of the configuration.
        config_hash: Digits that identify data, model, configuration and budget.
        setup_hash: Digits that identify model, configuration and budget, the same on all datasets.
        budget_class: The tightest class of the model's budget.
        own_settings: Whether the budget's label says that the configuration was changed by overrides.
        seeds: Seed of every distinct run.
        values: Score of every distinct run, in the order of the seeds.
        copies: Seeds of runs that equal an earlier run; these runs were dropped.
        deterministic: Whether neither seed nor chance has any influence on the score.
        mean: Mean over the distinct runs.
        interval: 95 % interval of the mean, or None.
        rank: One more than the number of models that are significantly better; None for a model without a rank.
        worst_rank: Number of ranked models minus the number of models that are significantly worse; None as for
            ``rank``.
        class_rank: As ``rank``, in the table of ``budget_class``.
        class_worst_rank: As ``worst_rank``, in the table of ``budget_class``.
        provenance: Where the scores are from: the weakest source among the distinct runs.
        sources: Source of the score of every distinct run, in the order of the seeds.
        sealed: Scores of distinct runs on their sealed draws, of the runs that have one.
        algorithm: Whether a sealed draw showed that the weights make no difference to the score.
        own_model: Whether the records are of a model that this package did not train.
        trained: Whether anything was trained; False for rules, searches and solvers.
        in_steps: Whether the model was trained in optimizer steps; False for forests, rules and solvers, and where no
            record says so.
        unranked: Why the model has no rank: ``seeds`` (too few runs of the seeds 0, 1, 2, ...), ``bootstrap`` (its runs
            lack replicates) or ``alone`` (no other model of the table can be compared with it); None with a rank.
        against_best: The comparison with the ranked model of the best mean; None for the best model itself.
        replicates: Number of bootstrap replicates; 0 without bootstrap.
        budget: The budget in words.
        cost: The cost of training and prediction.
        versions: Versions of graphbench that wrote the records.
        notes: Remarks of the records.
        blind: Whether the test split had no part in the choice of the settings, by ``seen`` in its file.
    """

    label: str
    model: str
    config_hash: str
    setup_hash: str
    budget_class: BudgetClass
    own_settings: bool
    seeds: tuple[int, ...]
    values: tuple[float, ...]
    copies: tuple[int, ...]
    deterministic: bool
    mean: float
    interval: Interval | None
    rank: int | None
    worst_rank: int | None
    unranked: Unranked | None
    against_best: Comparison | None
    replicates: int
    budget: str
    cost: Cost
    versions: tuple[str, ...]
    notes: tuple[str, ...]
    class_rank: int | None = None
    class_worst_rank: int | None = None
    provenance: Provenance = "stated"
    sources: tuple[Provenance, ...] = ()
    sealed: tuple[float, ...] = ()
    algorithm: bool = False
    in_steps: bool = False
    trained: bool = True
    own_model: bool = False
    blind: bool = True

    @property
    def is_classical(self) -> bool:
        """Whether the model is a rule, a search, a solver or a forest; a trained model of one's own is none of them."""
        return not self.trained or not (self.in_steps or self.own_model)


@dataclass(frozen=True, slots=True)
class Reference:
    """A score that stands beside the models and is not ranked.

    Attributes:
        kind: ``trivial``; ``rule``: a simple rule that reads the graph as models do; ``solver``; ``bound``: a
            solver that is given a part of the answer; or ``published``.
        name: Name of the predictor.
        value: The score.
        std: Standard deviation over seeds, as published; None if none was published.
        basis: Origin of the score, in words.
        comparable: Whether the score answers the same question and, if it was measured here, is of the samples that the
            models were scored on; other scores are listed and not drawn.
        apart: Whether the score was measured here on other samples than the models' samples, or on unknown samples.
        samples: Number of samples behind the score; None for published scores, and if it is unknown.
    """

    kind: Literal["trivial", "rule", "solver", "bound", "published"]
    name: str
    value: float
    std: float | None
    basis: str
    comparable: bool = True
    apart: bool = False
    samples: int | None = None


@dataclass(frozen=True, slots=True)
class Board:
    """The ranked models of one dataset, split, protocol, budget class and set of samples.

    Attributes:
        dataset: Address of the dataset, e.g. ``co/rb_small:mis``.
        protocol: The data that models are trained on, if a benchmark has several protocols.
        title: The dataset's title.
        split: Name of the split.
        metric: The primary metric.
        higher_is_better: Direction of the metric.
        budget_class: The models are all those within this class.
        data: The samples.
        samples: Noun for the samples, in the plural.
        main: Whether the table counts in means over datasets. Of one split and class, the table of the current
            version's canonical draw with the whole split counts, else the one with the most models, else with the most
            graphs.
        rows: The models, the best mean first.
        references: Reference scores, best first; references on other samples come last. Empty for other versions and
            draws.
        best: Label of the ranked model with the best mean; the best of all models if none is ranked.
        anchors: The scores that count as 0 and as 1 in normalised scores, measured on the same samples; None if there
            are none.
        pairs_tested: Pairs of models that could be tested.
        size: Size of the split's samples, such as nodes per graph; None where the samples have no common size, and for
            splits whose graphs differ from the test graphs in more than their size.
    """

    dataset: str
    protocol: str | None
    title: str
    split: str
    metric: str
    higher_is_better: bool
    budget_class: BudgetClass
    data: Data
    samples: str
    main: bool
    rows: tuple[Row, ...]
    references: tuple[Reference, ...]
    best: str
    pairs_tested: int
    anchors: tuple[float, float] | None = None
    size: float | None = None

    @property
    def search(self) -> Row | None:
        """The best row for which nothing was trained, of the ranked ones where any is ranked; None without any."""
        return _leader([row for row in self.rows if not row.trained])

    @property
    def leader(self) -> Row:
        """The best trained row, of the ranked ones where any is ranked; the best of all rows if none was trained."""
        return _leader([row for row in self.rows if row.trained] or self.rows) or self.rows[0]

    @property
    def counts(self) -> bool:
        """Whether the scores count in means over datasets: scores of the test split on the main samples."""
        return self.main and self.split == TEST

    @property
    def domain(self) -> str:
        """The dataset's domain."""
        return self.dataset.partition("/")[0]

    @property
    def unit(self) -> str:
        """Address and protocol."""
        return f"{self.dataset} ({self.protocol})" if self.protocol else self.dataset


def _leader(rows: Sequence[Row]) -> Row | None:
    return next((row for row in rows if row.rank is not None), rows[0] if rows else None)


@dataclass(frozen=True, slots=True)
class UnitScore:
    """A model on one dataset of a group.

    Attributes:
        unit: Address and protocol of the dataset.
        label: The model's name in the dataset's table.
        mean: The model's mean score.
        normalised: Score between the best trivial baseline (0) and the best known score (1), cut at the bounds; None if
            the dataset has no anchors.
    """

    unit: str
    label: str
    mean: float
    normalised: float | None


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A model's means over the datasets of a group.

    Attributes:
        model: Name of the model.
        scores: Scores of the model on every dataset where it has a score.
        missing: The group's datasets without a score of the model.
        mean_normalised: Mean normalised score over all datasets of the group; a missing dataset counts as 0.
        mean_normalised_own: Mean normalised score over the datasets of the model alone; None if none has anchors.
        mean_rank: Mean rank among the models that have a rank on every dataset of the group; None for other models.
        rank: Rank of the model by the mean rank; None for models without a mean rank.
    """

    model: str
    scores: tuple[UnitScore, ...]
    missing: tuple[str, ...]
    mean_normalised: float | None
    mean_normalised_own: float | None
    mean_rank: float | None
    rank: int | None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two models of a group on the datasets that both have.

    Attributes:
        first: Name of the first model.
        second: Name of the second model.
        shared: Number of datasets that both have.
        better: Number of shared datasets on which the first is better, and a test separates the two.
        worse: Number of shared datasets on which the second is better, and a test separates the two.
        untested: Number of shared datasets on which no test can compare the two, such as runs with other seeds.
    """

    first: str
    second: str
    shared: int
    better: int
    worse: int
    untested: int

    @property
    def tied(self) -> int:
        """Number of shared datasets on which a test does not separate the two."""
        return self.shared - self.better - self.worse - self.untested


@dataclass(frozen=True, slots=True)
class Group:
    """The means over a domain, or over the whole suite.

    Attributes:
        name: Domain, or ``suite``.
        protocol: Protocol of the runs; None for the protocol of the datasets' split ``train``.
        budget_class: The models are all those within this class.
        units: The datasets of the group: all datasets with a test score of a model of this class.
        without_anchors: The datasets of the group that have no normalised scores.
        rows: The models: complete models by mean rank, then other models by mean normalised score.
        pairs: Pairs of the models that have the most datasets, with the datasets that both have.
    """

    name: str
    protocol: str | None
    budget_class: BudgetClass
    units: tuple[str, ...]
    without_anchors: tuple[str, ...]
    rows: tuple[GroupRow, ...]
    pairs: tuple[Pair, ...]

    @property
    def title(self) -> str:
        """The budget class in words, with the protocol if it is not the usual protocol."""
        return named(BUDGET_CLASSES[self.budget_class], self.protocol)

    @property
    def shown(self) -> tuple[GroupRow, ...]:
        """The models with a score on at least half of the datasets; a mean over fewer says nothing of the group."""
        return tuple(row for row in self.rows if 2 * len(row.scores) >= len(self.units))


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """All tables and means.

    Attributes:
        boards: The tables, by dataset, protocol, split and class, the test split first.
        groups: The whole suite, then the domains, by budget class.
        unknown: Datasets of records that the catalogue does not know; their records are left out.
        refused: Records with numbers that cannot be averaged, in words; they are left out.
        records: Number of records.
    """

    boards: tuple[Board, ...]
    groups: tuple[Group, ...]
    unknown: tuple[str, ...]
    refused: tuple[str, ...]
    records: int

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains that have tables, sorted."""
        return tuple(sorted({board.domain for board in self.boards}))


def to_json(leaderboard: Leaderboard) -> str:
    """Return a leaderboard as JSON: ``schema`` and every attribute of the classes of this module by its name."""
    content: dict[str, Any] = {"schema": SCHEMA, "graphbench_version": __version__, **dataclasses.asdict(leaderboard)}
    return json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n"
