"""The scores of an entry's weights: computed here, or by the author's own code in a closed child process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from graphbench.core.errors import GraphBenchError, ResultError
from graphbench.core.processes.isolated import IsolationLimits
from graphbench.leaderboard.submissions.comparisons import is_better
from graphbench.leaderboard.submissions.description import Description, StatedBudget
from graphbench.leaderboard.submissions.foreign_code import scores_of_code

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.evaluation.score import Score


@dataclass(frozen=True)
class Answer:
    """The scores of one set of weights.

    Attributes:
        known: On the canonical draw.
        sealed: On the sealed draw.
        scrambled: Of shuffled weights on the sealed draw; None where there are none or the code refuses them.
        algorithm: Whether the weights make no difference.
    """

    known: Score
    sealed: Score
    scrambled: float | None = None
    algorithm: bool = False


@dataclass(frozen=True)
class Scoring:
    """How the weights of an entry are scored.

    Attributes:
        code: Folder of the author's code; None for models of this package, which need no foreign code.
        description: The description of the entry.
        hidden: Folders that the code cannot read.
        limits: Limits of the child process that runs the code.
        progress: Show progress bars; None shows them in a terminal.
    """

    code: Path | None
    description: Description
    hidden: tuple[Path, ...]
    limits: IsolationLimits
    progress: bool | None

    def score(self, dataset: str, weights: Path | None, split: GraphDataset) -> Score:
        """Return the score on a split; code is run twice.

        Raises:
            ResultError: If the code fails, or its two runs gave different predictions.
        """
        if self.code is None:
            return self._scores_of_weights(dataset, weights, {"known": split})["known"]
        return self._repeatable_scores(dataset, weights, {"known": split}, "known")["known"][0]

    def answer(self, dataset: str, weights: Path | None, known: GraphDataset, sealed: GraphDataset) -> Answer:
        """Return the scores on the canonical and on the sealed draw; code is also run with shuffled weights.

        Raises:
            ResultError: If the code fails, or its two runs on the sealed draw gave different predictions.
        """
        splits = {"known": known, "sealed": sealed}
        if self.code is None:
            scores = self._scores_of_weights(dataset, weights, splits)
            return Answer(scores["known"], scores["sealed"])
        first = self._repeatable_scores(dataset, weights, splits, "sealed")
        score = first["sealed"][0]
        answers = partial(Answer, first["known"][0], score)
        if weights is None:
            return answers(algorithm=True)
        try:
            scrambled = self._scores_of_code(dataset, weights, {"sealed": sealed}, scramble=True)["sealed"][0]
        except GraphBenchError:  # the code knows its weights, or cannot compute with others
            return answers(algorithm=True)
        return answers(scrambled=scrambled.primary, algorithm=not is_better(score, scrambled))

    def _scores_of_weights(
        self, dataset: str, weights: Path | None, splits: dict[str, GraphDataset]
    ) -> Mapping[str, Score]:
        from graphbench.training.evaluate import evaluate_splits
        from graphbench.training.weights.load import load_model

        assert weights is not None
        return evaluate_splits(load_model(dataset, weights), splits, device="cpu", progress=self.progress)

    def _scores_of_code(
        self, dataset: str, weights: Path | None, splits: dict[str, GraphDataset], *, scramble: bool = False
    ) -> dict[str, tuple[Score, str]]:
        assert self.code is not None
        stated = (self.description.budget(dataset) or StatedBudget()).scores
        hidden, limits = list(self.hidden), self.limits
        return scores_of_code(self.code, weights, splits, stated, scramble=scramble, hidden=hidden, limits=limits)

    def _repeatable_scores(
        self, dataset: str, weights: Path | None, splits: dict[str, GraphDataset], twice: str
    ) -> dict[str, tuple[Score, str]]:
        """Return the scores of the code on some splits, after a second run on the split ``twice``.

        Raises:
            ResultError: If the two runs gave different predictions.
        """
        first = self._scores_of_code(dataset, weights, splits)
        again, other_bits = self._scores_of_code(dataset, weights, {twice: splits[twice]})[twice]
        score, bits = first[twice]
        if bits != other_bits:
            raise ResultError(
                f"two runs of the code on the same samples gave different predictions ({score.primary:g} and "
                f"{again.primary:g}): it reads a clock or draws random numbers without a seed; make it repeatable"
            )
        return first
