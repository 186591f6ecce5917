"""Evaluation of texts: the score of a split, and of every problem size in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphbench.core.errors import EvaluationError
from graphbench.evaluation.evaluator import FeatureEvaluator, FeatureSums
from graphbench.evaluation.graphs import is_graphs, one_batch
from graphbench.evaluation.metrics import Metric
from graphbench.evaluation.score import Score


class _Sums(FeatureSums):
    """Running sums over all texts, and over the texts of every problem size."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        super().__init__(metrics)
        self.by_size: dict[int, FeatureSums] = {}


class TextEvaluator(FeatureEvaluator):
    """Scores texts; returned by ``Evaluator("clrs_text/bfs")``.

    Targets are references, a string per prompt; or a ``TextBatch`` or PyG graphs, which hold them and the problem
    sizes: then :meth:`groups` returns the score of every size.
    """

    def start(self) -> _Sums:
        """Return the sums of no answer."""
        return _Sums(self.metrics)

    def add(self, sums: Any, y_true: Any, y_pred: Any, batch: Any = None) -> None:
        """Add the answers to some prompts to the sums; where it raises, the sums stay as they were."""
        references, sizes = self._references(y_true, batch)
        items, graphs = self.checked(sums, references, y_pred, None)
        numbers = getattr(y_true, "numbers", None)
        sums.add(items if numbers is None else replace(items, samples=np.asarray(numbers)), graphs)
        for size in np.unique(sizes) if sizes is not None else ():
            rows = np.flatnonzero(np.asarray(sizes) == size).tolist()
            part = sums.by_size.setdefault(int(size), FeatureSums(self.metrics))
            super().add(part, [references[i] for i in rows], [y_pred[i] for i in rows])

    def groups(self) -> dict[str, Score]:
        """Return the score of every problem size, as ``n<size>``, ascending."""
        return {f"n{size}": self.score_of(part) for size, part in sorted(self._sums.by_size.items())}

    def _references(self, y_true: Any, batch: Any) -> tuple[Any, Any]:
        """Return the references, and the problem sizes or None where ``y_true`` does not state them."""
        if batch is not None:
            raise EvaluationError("batch is given, but there is one text per prompt; leave batch out")
        if hasattr(y_true, "references"):
            return y_true.references, y_true.sizes
        if not is_graphs(y_true):
            return y_true, None
        graphs = one_batch(y_true)
        if self.feature.name not in graphs:
            raise EvaluationError(f"the graphs have no text {self.feature.name!r}; load them with their references")
        texts = graphs[self.feature.name]
        ptr = getattr(graphs, "ptr", None)
        sizes = [int(graphs.num_nodes)] if ptr is None else np.diff(ptr.cpu().numpy())
        return [texts] if isinstance(texts, str) else texts, sizes
