"""The best score of every dataset, for the pages of the datasets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from graphbench.leaderboard.boards import tables_of
from graphbench.leaderboard.model import Data, Reference, Row
from graphbench.records.classes import BudgetClass
from graphbench.records.files import RecordFolders, load_records
from graphbench.records.record import RunRecord


@dataclass(frozen=True, slots=True)
class BestScore:
    """The best model of a dataset's test split, next to the references.

    Attributes:
        dataset: Address of the dataset.
        protocol: The data that models are trained on, if a benchmark has several protocols.
        metric: The primary metric.
        higher_is_better: Direction of the metric.
        budget_class: The tightest class of the model's budget.
        data: The samples that were scored.
        row: The ranked model with the best mean (the best of all models if none is ranked), its interval, rank and
            cost; rules, searches and solvers only where nothing else has a record.
        search: The best of the rules, searches and solvers with records, in the same way; None without any.
        shared: Number of ranked models that may be the best, as far as tests tell; 1 if no model is ranked.
        references: Trivial baseline, solvers and published scores, best first; references on other samples come last.
    """

    dataset: str
    protocol: str | None
    metric: str
    higher_is_better: bool
    budget_class: BudgetClass
    data: Data
    row: Row
    search: Row | None
    shared: int
    references: tuple[Reference, ...]

    @property
    def model(self) -> str:
        """The model's name."""
        return self.row.label

    @property
    def mean(self) -> float:
        """The model's mean score over the seeds."""
        return self.row.mean

    @property
    def trivial(self) -> Reference | None:
        """The best trivial baseline on the model's samples, or None if none was measured on them."""
        return next((r for r in self.references if r.kind == "trivial" and not r.apart), None)

    @property
    def solver(self) -> Reference | None:
        """The best reference solver or bound on the model's samples, or None if none was measured on them."""
        return next((r for r in self.references if r.kind in ("solver", "bound") and not r.apart), None)


def best(
    selector: str | Sequence[str] = "*",
    folder: RecordFolders = None,
    *,
    records: Iterable[RunRecord] | None = None,
    repeated: Collection[tuple[str, datetime]] | None = None,
) -> dict[str, list[BestScore]]:
    """Return address -> the best score of every protocol, of datasets that have records of the current version.

    Args:
        selector: A dataset address or glob, or several; ``"*"`` takes all.
        folder: Folder searched for records, at any depth, or several folders; ``baselines/results`` when None.
        records: The records, instead of a folder.
        repeated: As for :func:`~graphbench.leaderboard.boards.tables_of`.

    Raises:
        ResultError: If the folder does not exist or a record in it is malformed.
    """
    chosen = load_records(selector, folder) if records is None else records
    boards = {
        (board.dataset, board.protocol or ""): board
        for board in tables_of(chosen, repeated=repeated).boards
        if board.counts and board.budget_class == "open"
    }
    best_scores: dict[str, list[BestScore]] = {}
    for (dataset, _), board in boards.items():
        shared = sum(row.rank == 1 for row in board.rows)
        leader = board.leader
        score = BestScore(
            dataset=dataset,
            protocol=board.protocol,
            metric=board.metric,
            higher_is_better=board.higher_is_better,
            budget_class=leader.budget_class,
            data=board.data,
            row=leader,
            search=board.search,
            shared=max(1, shared),
            references=board.references,
        )
        best_scores.setdefault(dataset, []).append(score)
    return best_scores
