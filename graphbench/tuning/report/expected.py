"""Expected scores on the dataset of a tuning run: the scores of trivial baselines, solvers and papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphbench.catalog.names import catalog
from graphbench.evaluation.metrics.registry import METRICS
from graphbench.evaluation.references import (
    SampleSet,
    SplitReferences,
    measured_references,
    references_on,
    samples_text,
    whole_split,
)
from graphbench.evaluation.trivial import best_of, without_rules
from graphbench.reports.comparison import notes_on, scores_on_test
from graphbench.reports.pages import ABSENT, Grid
from graphbench.reports.tables import ScoreRow, measured_rows, metric_head, published_rows
from graphbench.tasks.registry import task_of

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.records.published import PublishedScore
    from graphbench.tuning.history import History
    from graphbench.tuning.trial import Trial

_SPLIT_KEY = "training.val_split"


@dataclass(frozen=True)
class Expected:
    """The scores with which the scores of a tuning run are compared.

    Attributes:
        card: The card of the dataset.
        metric: The metric of validation.
        split: The split of validation, on which the trivial baselines and solvers were scored.
        model: Name of the tuned architecture in papers.
        published: Published scores of the metric on the test split, in the order of their tables.
        samples: The samples of the split on which the search validates.
    """

    card: Card
    metric: str
    split: str
    model: str
    published: tuple[PublishedScore, ...]
    samples: SampleSet

    @property
    def references(self) -> SplitReferences | None:
        """The trivial baselines and solvers on the samples of validation; None if none was measured on them."""
        return references_on(self.card, self.split, self.samples)

    @property
    def floor(self) -> tuple[str, float] | None:
        """Name and score of the best trivial baseline on the samples of validation; None if none was measured.

        Rules that read the graph do not count: models that have learned much may still be worse than these rules.
        """
        floor = {} if self.references is None else without_rules(self.references.floor, self.card)
        best = best_of(floor, self.metric)
        return None if best is None else (best[0].replace("_", " "), best[1])

    @property
    def of_model(self) -> list[PublishedScore]:
        """The published scores of the tuned architecture; if there are none, the best published score."""
        scores_of_model = [score for score in self.published if score.model == self.model]
        sign = 1 if METRICS[self.metric].higher_is_better else -1
        return scores_of_model or sorted(self.published, key=lambda score: -sign * (score.value or 0.0))[:1]


def expected_of(history: History) -> Expected | None:
    """Return the expected scores on the dataset of a run.

    Returns:
        The expected scores. None for a training method of the user, for a dataset that is not in the catalogue any
        more, for data of another version than the card's, and if the metric of validation is not a registered metric
        (e.g. a loss).
    """
    identity = history.identity
    metric = history.measure.metric
    if not identity.get("dataset") or metric is None or metric not in METRICS:
        return None
    try:
        card = catalog().card(str(identity["dataset"]))
    except KeyError:
        return None
    if identity.get("data") and not str(identity["data"]).startswith(f"v{card.version}-"):
        return None
    overrides, configuration = identity.get("overrides") or {}, identity.get("configuration") or {}
    split = str(overrides.get(_SPLIT_KEY) or configuration.get(_SPLIT_KEY) or "val")
    published = tuple(score for score in scores_on_test(card, str(identity["dataset"])) if score.metric == metric)
    return Expected(card, metric, split, _architecture(history), published, _validated(history, card, split))


def _validated(history: History, card: Card, split: str) -> SampleSet:
    """Return the samples that the search validates on: the whole split, or its first ones."""
    whole, limit = whole_split(card, split), history.identity.get("val_limit") or history.identity.get("limit")
    draw = int(history.identity.get("data_seed") or 0)
    count = whole.count if not limit or whole.count is None else min(int(limit), whole.count)
    return replace(whole, draw=draw, count=count)


def expected_grid(history: History, best: Trial, expected_scores: Expected) -> Grid:
    """Return a table of the incumbent, the default configuration and the expected scores."""
    names = (expected_scores.metric,)
    ours = [("incumbent", best), *(("default configuration", trial) for trial in history.default_trials[-1:])]
    rows: list[tuple[str, ...]] = [
        (
            name,
            "ours",
            history.measure.text(trial.measured, named=False),
            expected_scores.split,
            history.fidelity.text(trial.budget),
        )
        for name, trial in ours
    ]
    measured = expected_scores.references or next(
        iter(measured_references(expected_scores.card, expected_scores.split)), None
    )
    note = ""
    if measured is not None and expected_scores.references is None:
        note = f"on {samples_text(measured.samples, task_of(expected_scores.card).samples, expected_scores.samples)}"
    expected = [row.apart(note) for row in measured_rows(expected_scores.card, measured, names)]
    rows += _cells(published_rows(expected_scores.published, names), "test") + _cells(expected, expected_scores.split)
    return Grid(("predictor", "kind", metric_head(expected_scores.metric), "split", "basis"), tuple(rows))


def expected_notes(history: History, expected: Expected) -> list[str]:
    """Return remarks on the comparison of a run's scores with the expected ones."""
    notes = []
    if expected.published:
        notes.append(
            "Published scores are on the test split, scores of this run on the validation split: train the incumbent "
            "and evaluate it on the test split to compare them."
        )
    measured = next(iter(measured_references(expected.card, expected.split)), None)
    if measured is not None and expected.references is None:
        noun = task_of(expected.card).samples
        reference_samples = samples_text(measured.samples, noun, expected.samples)
        notes.append(
            f"Trivial predictors and solvers were scored on {reference_samples} of the split, this run on "
            f"{samples_text(expected.samples, noun)}: these scores are not comparable."
        )
    return [*notes, *(f"{note.rstrip('.')}." for note in notes_on(expected.published))]


def below_floor_text(history: History, expected: Expected | None) -> str:
    """Return a warning if the best configuration is no better than a trivial baseline; else an empty text."""
    best, floor = history.incumbent, None if expected is None else expected.floor
    if best is None or floor is None:
        return ""
    measure = history.measure
    score = measure.score(best.measured)
    if score > floor[1] if measure.higher_is_better else score < floor[1]:
        return ""
    return (
        f"the best configuration ({measure.text(best.measured)}) is no better than the best trivial predictor "
        f"({floor[0]}: {floor[1]:.4f}); give the search larger budgets or another space"
    )


def _cells(rows: Sequence[ScoreRow], split: str) -> list[tuple[str, ...]]:
    """Return the cells of the rows that have a score; the kind of a row that stands apart says so."""
    return [
        (row.name, ", ".join(part for part in (row.kind, row.caveat) if part), *row.values, split, row.basis)
        for row in rows
        if row.values != (ABSENT,)
    ]


def _architecture(history: History) -> str:
    baseline: dict[str, Any] = history.result.get("baseline") or {}
    model = baseline.get("model") or {}
    return str(model.get("processor") or history.identity.get("model"))
