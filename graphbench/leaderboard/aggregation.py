"""Means over the datasets of a domain and of the suite: of ranks and of normalised scores, never of raw scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from graphbench.evaluation.metrics import METRICS
from graphbench.leaderboard.boards import Tables, needs_bootstrap
from graphbench.leaderboard.model import Board, Group, GroupRow, Pair, Row, UnitScore
from graphbench.leaderboard.statistics import Rank, Sample, rank
from graphbench.records.classes import BUDGET_CLASSES, BudgetClass
from graphbench.tasks.registry import task_of

if TYPE_CHECKING:
    pass

SUITE = "suite"
LOWEST, HIGHEST = 0.0, 2.0  # bounds of normalised scores: leaving a dataset out never raises a mean, no dataset decides
MOST_COMPARED = 12  # models of a group that are compared in pairs
MISSING = 0.0  # normalised score of a missing dataset: as much as the best trivial baseline


def normalised(score: float, worst: float, best: float) -> float:
    """Return a score between two anchors, 0 at the first and 1 at the second, cut at 0 and 2."""
    return min(max((score - worst) / (best - worst), LOWEST), HIGHEST)


def groups_of(tables: Tables) -> list[Group]:
    """Return the suite and every domain, per budget class, where there is anything to sum up.

    A dataset counts once in a mean: by runs of the protocol of its split ``train``. Runs of its other protocols have
    separate means over the domain. Runs on files, runs of protocols that the dataset does not have, and runs on
    supplementary datasets have no means.

    Args:
        tables: All tables; the function uses the tables of the test split that count in means.
    """
    groups = []
    supplementary = {address for address, card in tables.cards.items() if card.supplementary}
    protocols = {address: task_of(card).protocols for address, card in tables.cards.items()}
    for budget_class in BUDGET_CLASSES:
        counting = [
            board
            for board in tables.boards
            if board.budget_class == budget_class and board.counts and board.dataset not in supplementary
        ]
        parts: dict[tuple[str, str | None], list[Board]] = {}
        for board in counting:
            main, *others = protocols[board.dataset]
            if board.protocol in (main, *others):
                parts.setdefault((board.domain, None if board.protocol == main else board.protocol), []).append(board)
        groups += [_group(name, budget_class, boards, tables, protocol) for (name, protocol), boards in parts.items()]
        counted = [boards for (_, protocol), boards in parts.items() if protocol is None]
        if len(counted) > 1:
            groups.append(_group(SUITE, budget_class, [board for boards in counted for board in boards], tables))
    return sorted(groups, key=_place)


def _place(group: Group) -> tuple[bool, str, str, int]:
    return group.name != SUITE, group.name, group.protocol or "", list(BUDGET_CLASSES).index(group.budget_class)


def group_names(boards: Sequence[Board]) -> dict[tuple[str, str], str]:
    """Return (unit, label) -> name under which a row counts in means over datasets.

    The name is the name of the configuration. If one dataset has several configurations of a name, the configuration
    with the most datasets of the domain keeps the name, unmodified configurations first; the other configurations have
    the digits of their setup behind their names.
    """
    spread: Counter[tuple[str, str, str]] = Counter()
    for board in boards:
        spread.update({(board.domain, row.model, row.setup_hash) for row in board.rows})
    names: dict[tuple[str, str], str] = {}
    for board in boards:
        taken: dict[str, int] = {}
        for row in sorted(board.rows, key=lambda r: _claim(r, spread[board.domain, r.model, r.setup_hash])):
            name = row.model if row.model not in taken else f"{row.model} [{row.setup_hash}]"
            if name in taken:  # the same setup on data that training reads in two forms
                name = f"{row.model} [{row.config_hash}]"
            taken[name] = 1
            names[board.unit, row.label] = name
    return names


def _claim(row: Row, datasets: int) -> tuple[bool, int, str, str]:
    return row.own_settings, -datasets, row.setup_hash, row.config_hash


def _scores_by_model(boards: Sequence[Board]) -> dict[str, dict[str, UnitScore]]:
    """Return model -> unit -> score."""
    names = group_names(boards)
    by_model: dict[str, dict[str, UnitScore]] = {}
    for board in boards:
        for row in board.rows:
            value = None if board.anchors is None else normalised(row.mean, *board.anchors)
            score = UnitScore(board.unit, row.label, row.mean, value)
            by_model.setdefault(names[board.unit, row.label], {})[board.unit] = score
    return by_model


def _group(
    name: str,
    budget_class: BudgetClass,
    boards: Sequence[Board],
    tables: Tables,
    protocol: str | None = None,
) -> Group:
    units = tuple(board.unit for board in boards)
    domains = {board.unit: board.domain for board in boards}
    by_model = _scores_by_model(boards)
    anchored = {unit for scores in by_model.values() for unit, score in scores.items() if score.normalised is not None}
    ranked = {(board.unit, row.label) for board in boards for row in board.rows if row.rank is not None}
    complete = {
        model: scores
        for model, scores in by_model.items()
        if len(scores) == len(units) and all((unit, score.label) in ranked for unit, score in scores.items())
    }
    mean_ranks = _mean_ranks(complete, boards, tables)
    rows = []
    for model, scores in by_model.items():
        mean_rank = mean_ranks.get(model)
        values = {unit: score.normalised for unit, score in scores.items() if score.normalised is not None}
        rows.append(
            GroupRow(
                model=model,
                scores=tuple(scores[unit] for unit in units if unit in scores),
                missing=tuple(unit for unit in units if unit not in scores),
                mean_normalised=_mean({u: values.get(u, MISSING) for u in anchored}, domains),
                mean_normalised_own=_mean(values, domains),
                mean_rank=mean_rank,
                rank=None if mean_rank is None else 1 + sum(other < mean_rank - 1e-9 for other in mean_ranks.values()),
            )
        )
    rows.sort(key=_order)
    unanchored = tuple(unit for unit in units if unit not in anchored)
    return Group(name, protocol, budget_class, units, unanchored, tuple(rows), _pairs(rows, boards, tables))


def _order(row: GroupRow) -> tuple[bool, float, float, str]:
    mean_rank = row.mean_rank if row.mean_rank is not None else float("inf")
    return row.rank is None, mean_rank, -(row.mean_normalised if row.mean_normalised is not None else -9.0), row.model


def _mean_ranks(
    complete: Mapping[str, Mapping[str, UnitScore]], boards: Sequence[Board], tables: Tables
) -> dict[str, float]:
    """Return model -> mean rank of the models with a rank on every dataset; empty for fewer than two models.

    On a dataset, the rank of a model is the middle between its best and its worst rank among these models.
    """
    if len(complete) < 2:
        return {}
    middles: dict[str, dict[str, float]] = {model: {} for model in complete}
    for board in boards:
        samples = [
            tables.samples[board.unit, board.budget_class, scores[board.unit].label] for scores in complete.values()
        ]
        for model, model_rank in zip(complete, _ranks(samples, board), strict=True):
            middles[model][board.unit] = (1 + len(complete)) / 2 if model_rank is None else model_rank.middle
    domains = {board.unit: board.domain for board in boards}
    return {model: mean for model, values in middles.items() if (mean := _mean(values, domains)) is not None}


def _ranks(samples: Sequence[Sample], board: Board) -> tuple[Rank | None, ...]:
    needed = needs_bootstrap(METRICS[board.metric], board.data)
    return rank(samples, board.higher_is_better, needs_bootstrap=needed).ranks


def _pairs(rows: Sequence[GroupRow], boards: Sequence[Board], tables: Tables) -> tuple[Pair, ...]:
    """Return the comparisons of the models with the most datasets; each pair is compared on the datasets it shares."""
    most = sorted(rows, key=lambda row: -len(row.scores))[:MOST_COMPARED]
    chosen = [row for row in rows if row in most]
    by_unit = {board.unit: board for board in boards}
    pairs = []
    for i, first in enumerate(chosen):
        labels = {score.unit: score.label for score in first.scores}
        for second in chosen[i + 1 :]:
            both = [(labels[s.unit], s.label, by_unit[s.unit]) for s in second.scores if s.unit in labels]
            ranks = [_ranks([tables.samples[b.unit, b.budget_class, label] for label in (a, c)], b) for a, c, b in both]
            better, worse = (
                sum(loser is not None and loser.best == 2 for loser in (pair_ranks[j] for pair_ranks in ranks))
                for j in (1, 0)
            )
            untested = sum(pair_ranks[0] is None for pair_ranks in ranks)
            if both:
                pairs.append(Pair(first.model, second.model, len(both), better, worse, untested))
    return tuple(pairs)


def _mean(values: Mapping[str, float], domains: Mapping[str, str]) -> float | None:
    """Return the mean over domains of the means over their datasets; None if there is no value."""
    if not values:
        return None
    parts: dict[str, list[float]] = {}
    for unit, value in sorted(values.items()):
        parts.setdefault(domains[unit], []).append(value)
    means = [sum(part) / len(part) for part in parts.values()]
    return sum(means) / len(means)
