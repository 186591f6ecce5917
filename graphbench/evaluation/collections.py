"""Collections of datasets that papers report together: averages by class, and win/tie/loss counts.

A collection is named in a file of published scores: the group of its datasets, the groups that are its classes, and
averages that papers print without the scores behind them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphbench.catalog.names import catalog
from graphbench.evaluation.published import Collection, collections, published
from graphbench.evaluation.results import Aggregate
from graphbench.evaluation.tables import ABSENT, Grid, number

Scores = Mapping[str, Mapping[str, tuple[float, float | None]]]
"""Dataset -> model -> (mean, standard deviation over seeds)."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a report says of a collection.

    Attributes:
        title: Its name in words.
        scores: One row per dataset, one column per model, published ones first.
        averages: One row per class, and one for all.
        counts: Wins, ties and losses of every model.
        notes: What to know about the tables, in sentences.
    """

    title: str
    scores: Grid
    averages: Grid
    counts: Grid
    notes: tuple[str, ...]


def summaries(results: Sequence[Aggregate]) -> list[Summary]:
    """Return a summary of every collection of which at least two datasets have results."""
    found = []
    for name, collection in collections().items():
        ids = catalog().resolve(name)
        own = [runs for runs in results if runs.dataset in ids]
        if len({runs.dataset for runs in own}) > 1:
            found.append(_summary(collection, ids, own))
    return found


def win_tie_loss(scores: Scores) -> dict[str, tuple[int, int, int]]:
    """Return model -> number of datasets it wins, ties and loses (CLRS paper, appendix C).

    Model A beats model B on a dataset if A's mean minus A's standard deviation exceeds B's mean. A model wins where it
    beats all others, loses where any other beats it, and ties elsewhere. Only models that are scored take part.
    """
    counts: dict[str, list[int]] = {}
    for models in scores.values():
        for model, (mean, _) in models.items():
            others = {name: score for name, score in models.items() if name != model}
            deviation = models[model][1] or 0.0
            wins = all(mean - deviation > other for other, _ in others.values())
            loses = any(other - (spread or 0.0) > mean for other, spread in others.values())
            counts.setdefault(model, [0, 0, 0])[0 if wins else 2 if loses else 1] += 1
    return {model: (wins, ties, losses) for model, (wins, ties, losses) in counts.items()}


def published_scores(ids: Sequence[str], split: str = "test") -> dict[str, dict[str, tuple[float, float | None]]]:
    """Return the scores that papers print of datasets."""
    found: dict[str, dict[str, tuple[float, float | None]]] = {}
    for id_ in ids:
        for score in published(id_):
            if score.split == split and score.study == "main" and score.value is not None:
                found.setdefault(id_, {})[score.model] = (score.value, score.std)
    return found


def _summary(collection: Collection, ids: Sequence[str], results: Sequence[Aggregate]) -> Summary:
    printed = published_scores(ids)
    own = _own_scores(results)
    models = sorted({model for scores in printed.values() for model in scores})
    ours = sorted({model for scores in own.values() for model in scores})
    heads = ("dataset", *(f"{model}, published" for model in models), *ours)
    rows = [
        (id_, *(_cell(printed, id_, model) for model in models), *(_cell(own, id_, model) for model in ours))
        for id_ in ids
    ]
    full = {_label(runs) for runs in results if not runs.small}
    compared = {
        id_: {**printed.get(id_, {}), **{m: s for m, s in scores.items() if m in full}} for id_, scores in own.items()
    }
    notes = [f"{a.model}: {a.value:.4f} on average ({a.source})." for a in collection.averages]
    notes.append("An average over fewer datasets than its class has says how many. Small runs count in no comparison.")
    return Summary(
        collection.title,
        Grid(heads, tuple(rows)),
        _averages(collection, ids, {**_by_model(printed, " published"), **_by_model(own, "")}),
        _counts(win_tie_loss(printed), win_tie_loss({k: v for k, v in compared.items() if set(v) & full})),
        tuple(notes),
    )


def _label(runs: Aggregate) -> str:
    return f"{runs.model}, ours{' (small run)' if runs.small else ''}"


def _own_scores(results: Sequence[Aggregate]) -> dict[str, dict[str, tuple[float, float | None]]]:
    found: dict[str, dict[str, tuple[float, float | None]]] = {}
    for runs in results:
        metric = catalog().cards[runs.dataset].metrics.primary
        score = runs.score("test", metric)
        if score is not None:
            found.setdefault(runs.dataset, {})[_label(runs)] = (score.mean, score.std)
    return found


def _cell(scores: Scores, id_: str, model: str) -> str:
    score = scores.get(id_, {}).get(model)
    if score is None:
        return ABSENT
    return number(score[0]) if score[1] is None else f"{number(score[0])} ± {number(score[1])}"


def _by_model(scores: Scores, suffix: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for id_, models in scores.items():
        for model, (mean, _) in models.items():
            found.setdefault(f"{model}{',' if suffix else ''}{suffix}", {})[id_] = mean
    return found


def _averages(collection: Collection, ids: Sequence[str], models: Mapping[str, Mapping[str, float]]) -> Grid:
    rows = []
    for title, group in (*collection.classes.items(), ("All", None)):
        members = ids if group is None else catalog().resolve(group)
        rows.append((title, *(_average(members, scores) for scores in models.values())))
    return Grid(("class", *models), tuple(rows))


def _average(members: Sequence[str], scores: Mapping[str, float]) -> str:
    known = [scores[id_] for id_ in members if id_ in scores]
    if not known:
        return ABSENT
    mean = number(sum(known) / len(known))
    return mean if len(known) == len(members) else f"{mean} ({len(known)} of {len(members)})"


def _counts(printed: Mapping[str, tuple[int, int, int]], compared: Mapping[str, tuple[int, int, int]]) -> Grid:
    rows = [(model, "/".join(map(str, counts)), _slashes(compared.get(model))) for model, counts in printed.items()]
    rows += [(model, ABSENT, _slashes(counts)) for model, counts in compared.items() if model not in printed]
    return Grid(("model", "among published", "with ours, where measured"), tuple(rows))


def _slashes(counts: tuple[int, int, int] | None) -> str:
    return ABSENT if counts is None else "/".join(map(str, counts))
