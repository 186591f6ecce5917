"""Running sums of the verifier's values of answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Self

import numpy as np

from graphbench.core.errors import EvaluationError
from graphbench.data.components.verifiers import Verdict
from graphbench.evaluation.metrics.bootstrap import Floats, Tally, tallied
from graphbench.evaluation.metrics.registry import NO_FEATURE, Metric


class VerdictSums:
    """Sums over answers of the values that a verifier gives them, and counts of the reasons why answers are wrong.

    Attributes:
        graphs: Number of answers.
        failures: Reason -> number of answers that are wrong for it.
        parts: Name of a part of the samples -> the sums over it.
    """

    tally: Tally | None = None

    def __init__(self) -> None:
        """Start from zero."""
        self.graphs = 0
        self.failures: Counter[str] = Counter()
        self.parts: dict[str, VerdictSums] = {}
        self._totals: dict[str, tuple[float, float]] = {}

    def add(self, verdict: Verdict) -> None:
        """Take one update."""
        self._add(verdict, np.ones(len(verdict.reasons), np.bool_))
        names = np.asarray(verdict.groups)
        for name in np.unique(names).tolist() if len(names) else ():
            self.parts.setdefault(str(name), VerdictSums())._add(verdict, names == name)
        tallied(self, verdict)

    def shares(self, verdict: Verdict) -> Floats | None:
        """Return the contribution of each answer: its values, and whether it has them."""
        values = np.stack([verdict.values[name] for name in sorted(verdict.values)], axis=1)
        return np.concatenate([np.nan_to_num(values), ~np.isnan(values)], axis=1).astype(np.float64)

    def like(self, totals: Floats) -> Self:
        """Return the sums of such values with other totals."""
        sums = type(self)()
        names = sorted(self._totals)
        sums._totals = {name: (totals[i], totals[len(names) + i]) for i, name in enumerate(names)}
        return sums

    def _add(self, verdict: Verdict, chosen: np.typing.NDArray[np.bool_]) -> None:
        self.graphs += int(np.count_nonzero(chosen))
        reasons, counts = np.unique(verdict.reasons[chosen], return_counts=True)
        for reason, count in zip(reasons.tolist(), counts.tolist(), strict=True):
            if reason:
                self.failures[verdict.texts[reason]] += count
        for name, values in verdict.values.items():
            chosen_values = values[chosen]
            defined = chosen_values[~np.isnan(chosen_values)]
            total, number = self._totals.get(name, (0.0, 0))
            self._totals[name] = (total + float(defined.sum()), number + len(defined))

    def mean(self, name: str) -> float:
        """Return the mean of a value over the answers that have it.

        Raises:
            EvaluationError: If no answer has it.
        """
        total, number = self._totals.get(name, (0.0, 0))
        if not number:
            raise EvaluationError(f"no answer has a value of {name}")
        return total / number


def mean_of(name: str) -> Callable[[VerdictSums], float]:
    """Return the function that gives the mean of a value."""

    def value(sums: VerdictSums) -> float:
        return sums.mean(name)

    return value


_METRICS = (
    Metric(
        "quality", True, 0, math.inf,
        "Mean quality of the answers, on a scale where the reference has 100 and a wrong answer 0.",
        NO_FEATURE, VerdictSums, mean_of("quality"),
    ),
    Metric(
        "of_best", True, 0, math.inf,
        "Size of the smallest structure known over that of the answer, in percent; 0 for a wrong answer. Samples "
        "without a known structure do not count.",
        NO_FEATURE, VerdictSums, mean_of("of_best"),
    ),
    Metric(
        "valid", True, 0, 1, "Share of answers that are well-formed, right or not.",
        NO_FEATURE, VerdictSums, mean_of("valid"),
    ),
    Metric("correct", True, 0, 1, "Share of answers that are right.", NO_FEATURE, VerdictSums, mean_of("correct")),
    Metric(
        "mean_ands", False, 0, math.inf, "Mean number of ANDs of the circuits that are right.",
        NO_FEATURE, VerdictSums, mean_of("mean_ands"),
    ),
    Metric(
        "mean_depth", False, 0, math.inf, "Mean number of levels of the circuits that are right.",
        NO_FEATURE, VerdictSums, mean_of("mean_depth"),
    ),
    Metric(
        "met", True, 0, 1, "Share of answers that meet their goal within the tolerance of the verifier.",
        NO_FEATURE, VerdictSums, mean_of("met"),
    ),
    Metric(
        "ratio_error", False, 0, math.inf,
        "Mean absolute difference of the conversion ratio from the wanted one, of designs that work.",
        NO_FEATURE, VerdictSums, mean_of("ratio_error"),
    ),
    Metric(
        "efficiency_loss", False, 0, 1,
        "Mean by which the efficiency falls short of the wanted one, of designs that work.",
        NO_FEATURE, VerdictSums, mean_of("efficiency_loss"),
    ),
    Metric(
        "mean_devices", False, 0, math.inf, "Mean number of devices of the designs that work.",
        NO_FEATURE, VerdictSums, mean_of("mean_devices"),
    ),
)  # fmt: skip

METRICS = {metric.name: metric for metric in _METRICS}
"""Name -> metric of this kind of task."""
