"""The lite set: ten datasets, one per domain, on which small models are compared with five seeds.

The set is worth as much as it predicts: how well the order of the models on a dataset of the set agrees with their
order on the other datasets of the domain, and with the published order of the models that they are small forms of, is
measured by Kendall's rank correlation.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from pydantic import Field, ValidationError

from graphbench.catalog.resources import data_dir, read_yaml
from graphbench.core.errors import ResultError
from graphbench.core.validation import StrictModel, explain
from graphbench.core.words import counted
from graphbench.leaderboard.model import TEST, Board, Leaderboard
from graphbench.records.aggregates import student_half_width
from graphbench.records.classes import BudgetClass
from graphbench.reports.pages import Grid

FILE = "lite.yaml"
CLASS: BudgetClass = "minutes"
SMALL = "_small"  # behind the name of a model of a paper: its small form
_LEVEL = 0.95
_LEAST_DATASETS = 3  # for an interval


class LiteSet(StrictModel):
    """The datasets, models and seeds of the lite set.

    Attributes:
        seeds: Seeds of every learner.
        datasets: Address -> names of the models.
    """

    seeds: tuple[int, ...] = Field(min_length=1)
    datasets: dict[str, tuple[str, ...]] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Cell:
    """One model on one dataset of the set.

    Attributes:
        dataset: Address of the dataset.
        model: Name of the model.
        seeds: Number of the set's seeds that have records.
        of: Number of the set's seeds; 1 for a deterministic model.
    """

    dataset: str
    model: str
    seeds: int
    of: int


@dataclass(frozen=True, slots=True)
class Order:
    """The order of models on a dataset of the set, compared with another order of the same models.

    Attributes:
        dataset: The dataset of the set.
        other: The dataset, or the origin of the scores, that it is compared with.
        pairs: Number of pairs of models that are ordered in both.
        agreeing: Number of pairs in the same order in both.
    """

    dataset: str
    other: str
    pairs: int
    agreeing: int

    @property
    def tau(self) -> float:
        """Kendall's rank correlation: agreeing minus disagreeing pairs, as a share of all."""
        return _tau([self])


@dataclass(frozen=True, slots=True)
class Agreement:
    """Kendall's rank correlation over several comparisons of orders.

    Attributes:
        orders: The comparisons.
        tau: Agreeing minus disagreeing pairs over all comparisons, as a share of all pairs.
        low: Lower end of the 95 % interval over datasets of the set, by the jackknife; None for fewer than three.
        high: Upper end.
    """

    orders: tuple[Order, ...]
    tau: float
    low: float | None
    high: float | None


def lite_set() -> LiteSet:
    """Return the lite set of the package.

    Raises:
        ResultError: If its file is malformed.
    """
    path = data_dir("baselines") / FILE
    try:
        return LiteSet.model_validate(read_yaml(path))
    except ValidationError as error:
        raise ResultError(explain(error, LiteSet, where=str(path))) from error


def lite_boards(leaderboard: Leaderboard, lite: LiteSet) -> list[Board]:
    """Return the tables of the set: one per dataset and protocol, of the test split in the class of the set.

    Where models were scored on different samples of a split, the table has the samples on which most models of the set
    were scored.
    """
    boards = _boards_by_dataset(leaderboard)
    return [board for name, models in lite.datasets.items() for board in _tables(boards.get(name, ()), models)]


def _boards_by_dataset(leaderboard: Leaderboard) -> dict[str, list[Board]]:
    """Return dataset -> all tables of its test split in the class of the set."""
    boards: dict[str, list[Board]] = {}
    for board in leaderboard.boards:
        if board.split == TEST and board.budget_class == CLASS:
            boards.setdefault(board.dataset, []).append(board)
    return boards


def _tables(boards: Sequence[Board], models: Collection[str]) -> list[Board]:
    """Return, of the tables of a dataset, the one per protocol that has the most of some models."""
    tables = []
    for counting in (board for board in boards if board.counts):
        data = counting.data
        same = [b for b in boards if (b.unit, b.data.version, b.data.draw) == (counting.unit, data.version, data.draw)]
        tables.append(max(same, key=lambda b: (len({row.model for row in b.rows} & set(models)), b.main)))
    return tables


def cells_of(leaderboard: Leaderboard, lite: LiteSet) -> list[Cell]:
    """Return every model of the set with the number of its seeds."""
    seeds: dict[tuple[str, str], int] = {}
    fixed = set()
    for board in lite_boards(leaderboard, lite):
        for row in board.rows:
            if row.own_settings:
                continue
            key = board.dataset, row.model
            seeds[key] = max(seeds.get(key, 0), len(set(row.seeds) & set(lite.seeds)))
            if row.deterministic:
                fixed.add(key)
    cells = []
    for dataset, model in ((id_, name) for id_, names in lite.datasets.items() for name in names):
        needed = 1 if (dataset, model) in fixed else len(lite.seeds)
        cells.append(Cell(dataset, model, min(seeds.get((dataset, model), 0), needed), needed))
    return cells


def within_domains(leaderboard: Leaderboard, lite: LiteSet) -> Agreement | None:
    """Return how the order on each dataset of the set agrees with the order on the other datasets of its domain.

    Args:
        leaderboard: All tables.
        lite: The set.
    """
    others = {name: boards for name, boards in _boards_by_dataset(leaderboard).items() if name not in lite.datasets}
    orders: list[Order] = []
    for board in lite_boards(leaderboard, lite):
        scores = _scores(board, lambda name: name)
        for boards in others.values():
            if boards[0].domain == board.domain:
                for other in _tables(boards, scores):
                    orders += _compared(board, scores, other.unit, _scores(other, lambda name: name))
    return agreement_of(orders)


def with_papers(leaderboard: Leaderboard, lite: LiteSet) -> Agreement | None:
    """Return how the order of small models in the class of the set agrees with two orders of the whole models.

    The whole models are those of the class ``paper`` on the same dataset, and the published scores of all datasets of
    the domain. ``gin_small`` is the small form of ``gin``.

    Args:
        leaderboard: All tables.
        lite: The set.
    """
    orders: list[Order] = []
    tables = [b for b in leaderboard.boards if b.counts]
    for board in lite_boards(leaderboard, lite):
        small = _scores(board, lambda name: name.removesuffix(SMALL) if name.endswith(SMALL) else None)
        for other in tables:
            if other.domain != board.domain or other.budget_class != "open":
                continue
            printed = {r.name: _signed(r.value, other) for r in other.references if r.kind == "published"}
            orders += _compared(board, small, f"{other.unit}, published", printed)
            if other.dataset == board.dataset:
                whole = _scores(other, lambda name: None if name.endswith(SMALL) else name, within="paper")
                orders += _compared(board, small, f"{other.unit}, class paper", whole)
    return agreement_of(orders)


def _scores(board: Board, name_of: Callable[[str], str | None], within: BudgetClass | None = None) -> dict[str, float]:
    """Return name -> the best mean of its rows, as a number that is higher for better models."""
    best_scores: dict[str, float] = {}
    for row in board.rows:
        name = name_of(row.model)
        if name is None or row.own_settings or (within is not None and row.budget_class != within):
            continue
        value = _signed(row.mean, board)
        best_scores[name] = max(value, best_scores.get(name, value))
    return best_scores


def _signed(value: float, board: Board) -> float:
    return value if board.higher_is_better else -value


def _compared(board: Board, one: Mapping[str, float], where: str, other: Mapping[str, float]) -> Iterator[Order]:
    """Yield the comparison of two orders, if they share a pair of models."""
    shared = sorted(one.keys() & other.keys())
    pairs = [(a, b) for a, b in combinations(shared, 2) if one[a] != one[b] and other[a] != other[b]]
    if pairs:
        agreeing = sum((one[a] > one[b]) == (other[a] > other[b]) for a, b in pairs)
        yield Order(board.unit, where, len(pairs), agreeing)


def agreement_of(orders: Sequence[Order]) -> Agreement | None:
    """Return the correlation over all pairs, with an interval over datasets.

    Comparisons with one dataset of the set share the scores on this dataset, so they are no independent observations:
    the jackknife leaves out whole datasets of the set (Tukey's pseudo-values, with Student's quantile).
    """
    if not orders:
        return None
    datasets = sorted({order.dataset for order in orders})
    tau = _tau(orders)
    if len(datasets) < _LEAST_DATASETS:
        return Agreement(tuple(orders), tau, None, None)
    without = [_tau([order for order in orders if order.dataset != left_out]) for left_out in datasets]
    pseudo_values = [len(datasets) * tau - (len(datasets) - 1) * value for value in without]
    half = student_half_width(pseudo_values, _LEVEL)
    return Agreement(tuple(orders), tau, max(-1.0, tau - half), min(1.0, tau + half))


def _tau(orders: Sequence[Order]) -> float:
    return 2 * sum(order.agreeing for order in orders) / sum(order.pairs for order in orders) - 1


def cells_text(cells: Sequence[Cell]) -> str:
    """Return in a sentence how much of the set has records."""
    whole = sum(cell.seeds >= cell.of for cell in cells)
    begun = sum(0 < cell.seeds < cell.of for cell in cells)
    return (
        f"Of {counted(len(cells), 'pair')} of a dataset and a model, {whole} have all their seeds, {begun} some of "
        f"them, and {len(cells) - whole - begun} none."
    )


def agreement_text(agreement: Agreement | None, what: str) -> str:
    """Return an agreement in a sentence.

    Args:
        agreement: The agreement; None where no two models can be compared.
        what: What the order on the set is compared with.
    """
    if agreement is None:
        return f"No two models can be compared with {what}."
    pairs = sum(order.pairs for order in agreement.orders)
    datasets = counted(len({order.dataset for order in agreement.orders}), "dataset")
    ends = f"95 % interval {agreement.low:.2f} to {agreement.high:.2f}" if agreement.low is not None else "no interval"
    return (
        f"Kendall's tau with {what}: {agreement.tau:.2f} ({ends}), over {counted(pairs, 'pair')} of "
        f"models in {counted(len(agreement.orders), 'comparison')} with {datasets} of the set."
    )


def order_grid(agreement: Agreement) -> Grid:
    """Return the comparisons of orders, a row each."""
    rows = tuple((order.dataset, order.other, str(order.pairs), f"{order.tau:.2f}") for order in agreement.orders)
    return Grid(("order on", "compared with", "pairs of models", "tau"), rows)
