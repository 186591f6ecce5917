"""Evaluation of links: the rank of every asked link among its candidates."""

from __future__ import annotations

from typing import Any, ClassVar

from graphbench.data.batches.sample_ids import SampleIds
from graphbench.evaluation.evaluator import FeatureEvaluator, FeatureSums
from graphbench.evaluation.graphs import is_graphs
from graphbench.evaluation.inputs import ScoreScale
from graphbench.evaluation.score import Score


class LinkEvaluator(FeatureEvaluator):
    """Scores predictions of links; returned by ``Evaluator("social/sim_links_replies")``.

    Arguments of :meth:`evaluate` and :meth:`update`:

    - ``y_true``: the graphs, a PyG ``Batch``, ``Data`` or a list of ``Data``, which hold the candidate pairs; or
      ``[pairs]``, 1 for the link of every query and 0 for its negatives.
    - ``y_pred``: ``[pairs]``, scores of any scale, higher for pairs that are more likely to be a link.
    - ``batch``: int ``[pairs]``, the query of every pair, where ``y_true`` is an array.

    A query is what intervals are drawn over: a network is one sample with thousands of queries.
    """

    default_scores: ClassVar[ScoreScale] = ScoreScale.LOGIT

    def start(self) -> _Sums:
        """Return the sums of no prediction."""
        return _Sums(self.metrics)

    def add(self, sums: Any, y_true: Any, y_pred: Any, batch: Any = None) -> None:
        """Add predictions of whole graphs to the sums; where it raises, the sums stay as they were."""
        samples = None
        if is_graphs(y_true):
            samples = len(y_true) if isinstance(y_true, list | tuple) else getattr(y_true, "num_graphs", 1)
        super().add(sums, y_true, y_pred, batch)
        sums.samples = None if samples is None else (sums.samples or 0) + int(samples)

    def finish(self, sums: Any) -> Score:
        """Return the score of sums to which predictions were added."""
        self.check_graphs(sums.samples)
        score = self.score_of(sums)
        score.resampled, score.graphs = sums.graphs, sums.samples
        score.items_scored = sums.graphs or 0  # a rank per query
        return score

    def _name_samples(self, sums: Any, ids: SampleIds | None, *, is_first: bool) -> None:
        """Count queries in the order of the updates, as the numbers of samples do not name them."""
        super()._name_samples(sums, ids, is_first=is_first)
        for part in self.primary_sums(sums).values():
            if part.tally is not None:
                part.tally.numbers = None


class _Sums(FeatureSums):
    """Running sums over queries.

    Attributes:
        samples: The number of graphs that were scored; None where it is unknown.
    """

    samples: int | None = None
