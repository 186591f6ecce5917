"""Evaluation of texts: the score of a split, and of every problem size in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphbench.catalog.features import Feature
from graphbench.core.errors import EvaluationError
from graphbench.evaluation.evaluator import FeatureEvaluator
from graphbench.evaluation.graphs import is_graphs, one_batch
from graphbench.evaluation.score import Score

_SIZED = re.compile(r"(.+)_n(\d+)")


class TextEvaluator(FeatureEvaluator):
    """Scores texts: what ``Evaluator("clrs_text/bfs")`` returns.

    Targets are references, a string per prompt; or a ``TextBatch`` or PyG graphs, which hold them and the problem
    sizes: then :meth:`groups` returns the score of every size.
    """

    def __init__(self, feature: Feature, primary: str | None = None, also: Sequence[str] | None = None, **options: Any):
        super().__init__(feature, primary, also, **options)
        self._sizes: dict[int, FeatureEvaluator] = {}

    def update(self, y_true: Any, y_pred: Any, batch: Any = None) -> None:
        """Take the answers to some prompts; an update that raises changes nothing."""
        references, sizes = self._references(y_true, batch)
        super().update(references, y_pred)
        for size in np.unique(sizes) if sizes is not None else ():
            own = np.flatnonzero(np.asarray(sizes) == size).tolist()
            part = self._sizes.setdefault(int(size), self._fresh())
            part.update([references[i] for i in own], [y_pred[i] for i in own])

    def evaluate(self, y_true: Any, y_pred: Any, batch: Any = None) -> Score:
        """Return the score of all answers at once; running updates stay untouched."""
        return super().evaluate(self._references(y_true, batch)[0], y_pred)

    def reset(self) -> None:
        """Forget all updates."""
        super().reset()
        self._sizes = {}

    def groups(self) -> dict[str, Score]:
        """Return the score of every problem size, as ``n<size>``, ascending."""
        return {f"n{size}": part.compute() for size, part in sorted(self._sizes.items())}

    def _fresh(self) -> FeatureEvaluator:
        primary, *also = (m.name for m in self.metrics)
        return FeatureEvaluator(self.feature, primary, also)

    def _references(self, y_true: Any, batch: Any) -> tuple[Any, Any]:
        """Return the references, and the problem sizes where they are known."""
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


def grouped_split(split: str, group: str) -> str:
    """Return the name under which the scores of a part of a split stand, e.g. ``test_n16``."""
    return f"{split}_{group}"


def split_and_size(name: str) -> tuple[str, int | None]:
    """Return split and problem size of a name such as ``test_n16``; the size of a whole split is None."""
    match = _SIZED.fullmatch(name)
    return (match[1], int(match[2])) if match else (name, None)


def by_size(
    scores: Mapping[str, Mapping[str, float]],
) -> tuple[dict[str, Mapping[str, float]], dict[int, dict[str, Mapping[str, float]]]]:
    """Return the scores of whole splits by name, and those of problem sizes as size -> split -> score, ascending."""
    whole: dict[str, Mapping[str, float]] = {}
    sizes: dict[int, dict[str, Mapping[str, float]]] = {}
    for name, own in scores.items():
        split, size = split_and_size(name)
        if size is None or split not in scores:
            whole[name] = own
        else:
            sizes.setdefault(size, {})[split] = own
    return whole, dict(sorted(sizes.items()))
