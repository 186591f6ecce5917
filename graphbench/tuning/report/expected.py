"""Expected scores on the dataset of a tuning run: those of trivial predictors, solvers and papers."""

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
    """The scores that those of a tuning run are compared with.

    Attributes:
        card: The card of the dataset.
        metric: The metric of validation.
        split: The split of validation, which the scores of trivial predictors and solvers are for.
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
        """The trivial predictors and solvers on the samples of validation; None if none was measured on them."""
        return references_on(self.card, self.split, self.samples)

    @property
    def floor(self) -> tuple[str, float] | None:
        """Name and score of the best trivial predictor on the samples of validation; None if none was measured.

        Rules that read the graph do not count: a search whose models have learned much may be worse than such a rule.
        """
        floor = {} if self.references is None else without_rules(self.references.floor, self.card)
        found = best_of(floor, self.metric)
        return None if found is None else (found[0].replace("_", " "), found[1])

    @property
    def of_model(self) -> list[PublishedScore]:
        """The published scores of the tuned architecture; if there are none, the best published score."""
        own = [score for score in self.published if score.model == self.model]
        sign = 1 if METRICS[self.metric].higher_is_better else -1
        return own or sorted(self.published, key=lambda score: -sign * (score.value or 0.0))[:1]


def expected_of(history: History) -> Expected | None:
    """Return the expected scores on the dataset of a run.

    Returns:
        None for a training method of the user, for a dataset that is not in the catalogue any more, for data of another
        version than the card's, and if the metric of validation is not a registered metric, such as a loss.
    """
    what = history.what
    metric = history.measure.metric
    if not what.get("dataset") or metric is None or metric not in METRICS:
        return None
    try:
        card = catalog().card(str(what["dataset"]))
    except KeyError:
        return None
    if what.get("data") and not str(what["data"]).startswith(f"v{card.version}-"):
        return None
    overrides, configuration = what.get("overrides") or {}, what.get("configuration") or {}
    split = str(overrides.get(_SPLIT_KEY) or configuration.get(_SPLIT_KEY) or "val")
    published = tuple(score for score in scores_on_test(card, str(what["dataset"])) if score.metric == metric)
    return Expected(card, metric, split, _architecture(history), published, _validated(history, card, split))


def _validated(history: History, card: Card, split: str) -> SampleSet:
    """Return the samples that the search validates on: the whole split, or its first ones."""
    whole, limit = whole_split(card, split), history.what.get("val_limit") or history.what.get("limit")
    draw = int(history.what.get("data_seed") or 0)
    count = whole.count if not limit or whole.count is None else min(int(limit), whole.count)
    return replace(whole, draw=draw, count=count)


def expected_grid(history: History, best: Trial, found: Expected) -> Grid:
    """Return a table of the incumbent, the default configuration and the expected scores."""
    names = (found.metric,)
    own = [("incumbent", best), *(("default configuration", trial) for trial in history.default_trials[-1:])]
    rows: list[tuple[str, ...]] = [
        (
            name,
            "ours",
            history.measure.text(trial.measured, named=False),
            found.split,
            history.fidelity.text(trial.budget),
        )
        for name, trial in own
    ]
    measured = found.references or next(iter(measured_references(found.card, found.split)), None)
    note = ""
    if measured is not None and found.references is None:
        note = f"on {samples_text(measured.samples, task_of(found.card).samples, found.samples)}"
    expected = [row.apart(note) for row in measured_rows(measured, names)]
    rows += _cells(published_rows(found.published, names), "test") + _cells(expected, found.split)
    return Grid(("predictor", "kind", metric_head(found.metric), "split", "basis"), tuple(rows))


def expected_notes(history: History, found: Expected) -> list[str]:
    """Return remarks on the comparison of a run's scores with the expected ones."""
    notes = []
    if found.published:
        notes.append(
            "Published scores are on the test split, scores of this run on the validation split: train the incumbent "
            "and evaluate it on the test split to compare them."
        )
    measured = next(iter(measured_references(found.card, found.split)), None)
    if measured is not None and found.references is None:
        noun = task_of(found.card).samples
        theirs = samples_text(measured.samples, noun, found.samples)
        notes.append(
            f"Trivial predictors and solvers were scored on {theirs} of the split, this run on "
            f"{samples_text(found.samples, noun)}: these scores are not comparable."
        )
    return [*notes, *(f"{note.rstrip('.')}." for note in notes_on(found.published))]


def below_floor_text(history: History, found: Expected | None) -> str:
    """Return a warning if the best configuration is no better than a trivial predictor; else an empty text."""
    best, floor = history.incumbent, None if found is None else found.floor
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
    return str(model.get("processor") or history.what.get("model"))
