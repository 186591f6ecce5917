"""Collections of datasets that papers report together: averages by class, win/tie/loss counts, and matrices.

A file of published scores defines a collection: the group of its datasets and, depending on its kind, the groups that
are its classes and averages that papers print without the underlying scores; or only the group, for a matrix of
training by test datasets.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from graphbench.catalog.names import catalog
from graphbench.evaluation.metrics import METRICS
from graphbench.records.aggregates import Aggregate
from graphbench.records.budgets import PARTLY_SCORED
from graphbench.records.published import Collection, collections, published
from graphbench.reports.comparison import compared_with
from graphbench.reports.labels import Labels, named
from graphbench.reports.pages import ABSENT, Grid
from graphbench.reports.tables import number, score_text, stat_text

Score = tuple[float, float | None]
"""Mean and standard deviation over seeds."""
Scores = dict[str, dict[str, Score]]
"""Dataset -> model -> score."""

_SMALL = "Small runs and scores of older data count in no comparison."
_SMALL_MARK = "small run, not comparable"
_PARTIAL = "An average over fewer datasets than its class has says how many."
_HASHES = "Digits in brackets distinguish configurations of one name; they identify the setup, see Provenance."
_MATRIX = (
    "Rows: the dataset trained on. Columns: the split tested on. Cells: ours, and in brackets the score of the "
    "same architecture in the paper."
)


@dataclass(frozen=True, slots=True)
class Summary:
    """The part of a report on a collection.

    Attributes:
        title: Its name in words.
        tables: Heading -> table.
        notes: Remarks on the tables, in sentences.
    """

    title: str
    tables: Mapping[str, Grid]
    notes: tuple[str, ...]


def summaries(results: Sequence[Aggregate]) -> list[Summary]:
    """Return a summary of every collection with results on at least two datasets."""
    summaries_of_collections = []
    for name, collection in collections().items():
        ids = catalog().resolve(name)
        runs_of_collection = [runs for runs in results if runs.dataset in ids]
        if len({runs.dataset for runs in runs_of_collection}) > 1:
            summary = _matrices if collection.kind == "matrix" else _classes
            summaries_of_collections.append(summary(collection, ids, runs_of_collection))
    return summaries_of_collections


def win_tie_loss(scores: Scores, lower_is_better: Container[str] = ()) -> dict[str, tuple[int, int, int]]:
    """Return model -> number of datasets it wins, ties and loses (CLRS paper, appendix C).

    Model A beats model B on a dataset if A's mean minus A's standard deviation exceeds B's mean. A model wins where it
    beats all other models, loses where any other model beats it, and ties elsewhere. A dataset counts if at least two
    models have scores on it.

    Args:
        scores: Dataset -> model -> mean and standard deviation.
        lower_is_better: The datasets with an error as metric; the sign of all their means is flipped.
    """
    counts: dict[str, list[int]] = {}
    for dataset, scores_of_models in scores.items():
        if len(scores_of_models) < 2:
            continue
        sign = -1 if dataset in lower_is_better else 1
        models = {name: (sign * mean, std) for name, (mean, std) in scores_of_models.items()}
        for model, (mean, _) in models.items():
            others = {name: score for name, score in models.items() if name != model}
            deviation = models[model][1] or 0.0
            wins = all(mean - deviation > other for other, _ in others.values())
            loses = any(other - (spread or 0.0) > mean for other, spread in others.values())
            counts.setdefault(model, [0, 0, 0])[0 if wins else 2 if loses else 1] += 1
    return {model: (wins, ties, losses) for model, (wins, ties, losses) in counts.items()}


def published_scores(ids: Sequence[str], protocol: str | None = None, split: str = "test") -> Scores:
    """Return the published scores of the primary metrics under a protocol; None selects tables without a protocol."""
    scores: Scores = {}
    for id_ in ids:
        metric = catalog().card(id_).metrics.primary
        for score in published(id_):
            wanted = (score.split, score.study, score.protocol, score.metric) == (split, "main", protocol, metric)
            if wanted and score.value is not None:
                scores.setdefault(id_, {})[score.model] = (score.value, score.std)
    return scores


def _classes(collection: Collection, ids: Sequence[str], results: Sequence[Aggregate]) -> Summary:
    """Return the scores of all models, their averages by class, and counts among the models of each protocol."""
    names = _Names(results)
    protocols = sorted({s.protocol or "" for id_ in ids for s in published(id_)} | {r.protocol or "" for r in results})
    printed: dict[str, dict[str, Score]] = {}
    counts: list[tuple[str, ...]] = []
    for protocol in protocols:
        scores = published_scores(ids, protocol or None)
        paper = {
            id_: {named(model, protocol or None): s for model, s in scores_of_models.items()}
            for id_, scores_of_models in scores.items()
        }
        printed |= _by_model(paper)
        comparable = [r for r in results if (r.protocol or "") == protocol and r.comparable and not _is_old(r)]
        counts += _count_rows(paper, _own_scores(comparable, names))
    columns = {f"{model}, published": printed[model] for model in sorted(printed)}
    columns |= dict(sorted(_by_model(_own_scores(results, names)).items()))
    rows = [(id_, *(_cell(scores.get(id_)) for scores in columns.values())) for id_ in ids]
    notes = [f"{a.model}: {a.value:.4f} on average ({a.source})." for a in collection.averages]
    return Summary(
        collection.title,
        {
            "Scores on the test split": Grid(("dataset", *columns), tuple(rows)),
            "Averages by class": _averages(collection, ids, columns),
            "Wins/ties/losses": Grid(("model", "among published", "with ours, where measured"), tuple(counts)),
        },
        (*notes, f"{_PARTIAL} {_SMALL} Wins, ties and losses count within one protocol.", *names.notes),
    )


def _matrices(collection: Collection, ids: Sequence[str], results: Sequence[Aggregate]) -> Summary:
    """Return one table per model: training datasets by test splits."""
    cards = [catalog().card(id_) for id_ in ids]
    splits = tuple(dict.fromkeys(split for card in cards for split in card.ood))
    names = _Names(results)
    tables: dict[str, Grid] = {}
    for name in sorted({names[runs] for runs in results}):
        trained = {runs.dataset: runs for runs in results if names[runs] == name}
        rows = tuple((id_, *(_matrix_cell(trained[id_], split) for split in splits)) for id_ in ids if id_ in trained)
        if any(cell != ABSENT for row in rows for cell in row[1:]):
            metrics = dict.fromkeys(catalog().card(id_).metrics.primary for id_ in trained)
            tables[f"{name}, {', '.join(metrics)}"] = Grid(("trained on", *splits), rows)
    return Summary(collection.title, tables, (_MATRIX, *names.notes))


def _matrix_cell(runs: Aggregate, split: str) -> str:
    card = catalog().card(runs.dataset)
    metric = card.metrics.primary
    printed = compared_with(runs, card, split, metric, study="ood")
    paper = f" [{number(printed.value)}]" if printed is not None and printed.value is not None else ""
    return stat_text(runs.score(split, metric)) + paper


class _Names:
    """Names of runs across the datasets of a collection."""

    def __init__(self, results: Sequence[Aggregate]) -> None:
        groups = {old: [runs for runs in results if _is_old(runs) is old] for old in (False, True)}
        self._labels = {old: Labels(group, across=True) for old, group in groups.items()}
        self.notes = (_HASHES,) if any("[" in self[runs] for runs in results) else ()

    def __getitem__(self, runs: Aggregate) -> str:
        partly = runs.partly_scored and len(runs.records) > 1
        marks = (
            [_SMALL_MARK if runs.small else runs.caveat] * (not runs.comparable)
            + [PARTLY_SCORED] * partly
            + ["older data"] * _is_old(runs)
        )
        return f"{self._labels[_is_old(runs)][runs]}, ours" + (f" ({', '.join(marks)})" if marks else "")


def _is_old(runs: Aggregate) -> bool:
    return runs.dataset_version != catalog().card(runs.dataset).version


def _own_scores(results: Sequence[Aggregate], names: _Names) -> Scores:
    scores: Scores = {}
    for runs in results:
        score = runs.score("test", catalog().card(runs.dataset).metrics.primary)
        if score is not None:
            scores.setdefault(runs.dataset, {})[names[runs]] = (score.mean, score.std)
    return scores


def _by_model(scores: Scores) -> dict[str, dict[str, Score]]:
    """Return model -> dataset -> score."""
    by_model: dict[str, dict[str, Score]] = {}
    for id_, models in scores.items():
        for model, score in models.items():
            by_model.setdefault(model, {})[id_] = score
    return by_model


def _cell(score: Score | None) -> str:
    return ABSENT if score is None else score_text(*score)


def _averages(collection: Collection, ids: Sequence[str], columns: Mapping[str, Mapping[str, Score]]) -> Grid:
    rows = []
    for title, group in (*collection.classes.items(), ("All", None)):
        members = ids if group is None else catalog().resolve(group)
        rows.append((title, *(_average(members, scores) for scores in columns.values())))
    return Grid(("class", *columns), tuple(rows))


def _average(members: Sequence[str], scores: Mapping[str, Score]) -> str:
    values = [scores[id_][0] for id_ in members if id_ in scores]
    if not values:
        return ABSENT
    mean = number(sum(values) / len(values))
    return mean if len(values) == len(members) else f"{mean} ({len(values)} of {len(members)})"


def _count_rows(paper: Scores, measured: Scores) -> list[tuple[str, ...]]:
    """Return the counts of the models of one protocol: among published models, and with our runs on their datasets."""
    metrics = {id_: METRICS[catalog().card(id_).metrics.primary] for id_ in {**paper, **measured}}
    errors = {id_ for id_, metric in metrics.items() if not metric.higher_is_better}
    printed = win_tie_loss(paper, errors)
    compared = win_tie_loss({id_: {**paper.get(id_, {}), **models} for id_, models in measured.items()}, errors)
    rows: list[tuple[str, ...]]
    rows = [(model, _slashes(counts), _slashes(compared.get(model))) for model, counts in printed.items()]
    return rows + [(model, ABSENT, _slashes(counts)) for model, counts in compared.items() if model not in printed]


def _slashes(counts: tuple[int, int, int] | None) -> str:
    return ABSENT if counts is None else "/".join(map(str, counts))
