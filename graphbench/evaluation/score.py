"""The return value of evaluators: the value of each metric, the primary one first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphbench.core.errors import EvaluationError
from graphbench.core.plugins import owner_in_words
from graphbench.core.words import counted
from graphbench.data.batches.sample_ids import SampleIds
from graphbench.evaluation.metrics import METRICS, range_problem
from graphbench.evaluation.metrics.items import TargetSums


class Score(Mapping[str, float]):
    """The value of each metric, the primary one first.

    Attributes:
        primary_name: Name of the metric that ranks models.
        higher_is_better: Direction of the primary metric.
        items_scored: Number of values scored.
        graphs: Number of graphs covered; None if the graphs were not given.
        undefined: Metric -> why it has no value for these targets; such metrics are left out.
        failures: Reason -> number of answers that are wrong for it, for tasks with a verifier of answers.
        replicates: Values of the primary metric under bootstrap weights of the samples; empty unless they were drawn.
        samples: The samples that were scored, by split and with repetitions, in a part's score the samples that the
            part was taken from; empty unless every update was given graphs that know them, as batches of a dataset do.
        replicate_seed: Seed of the replicates; None where there are none.
        resampled: What the replicates weigh, a number: the graphs, or the queries of links; None where it is unknown.
        targets: Output -> sums over the targets that were scored, of features that are predicted; else empty.
    """

    def __init__(
        self,
        values: Mapping[str, float],
        primary_name: str,
        *,
        items: int = 0,
        graphs: int | None = None,
        undefined: Mapping[str, str] | None = None,
        failures: Mapping[str, int] | None = None,
    ) -> None:
        """Hold the values; ``primary_name`` is one of them.

        Raises:
            EvaluationError: If a value is not finite, or outside the range of its metric.
        """
        self._values = dict(values)
        for name, value in self._values.items():
            if problem := range_problem(name, value):
                owner = METRICS.owner(name)
                by = f"; the metric is registered by {owner_in_words(owner)}" if owner else ""
                raise EvaluationError(f"{problem}{by}")
        self.primary_name = primary_name
        self.higher_is_better = METRICS[primary_name].higher_is_better
        self.items_scored = items
        self.graphs = self.resampled = graphs
        self.undefined = dict(undefined or {})
        self.failures = dict(failures or {})
        self.replicates: tuple[float, ...] = ()
        self.replicate_seed: int | None = None
        self.samples: tuple[SampleIds, ...] = ()
        self.targets: Mapping[str, TargetSums] = {}

    @property
    def primary(self) -> float:
        """Value of the primary metric."""
        return self._values[self.primary_name]

    def __getitem__(self, name: str) -> float:
        """Return one metric's value.

        Raises:
            KeyError: If it was not computed; metrics that need the graphs are left out when these were not given, and
                so are metrics that are undefined for the targets.
        """
        if name in self._values:
            return self._values[name]
        if name in self.undefined:
            raise KeyError(f"{name!r} was left out: {self.undefined[name]}")
        if name in METRICS and METRICS[name].needs_graphs and self.graphs is None:
            raise KeyError(f"{name!r} needs the graphs; pass batch= or a list of per-graph arrays")
        raise KeyError(f"{name!r} was not computed; the score has {', '.join(self._values)}")

    def __iter__(self) -> Iterator[str]:
        """Iterate over the metrics' names."""
        return iter(self._values)

    def __len__(self) -> int:
        """Return the number of metrics."""
        return len(self._values)

    def __repr__(self) -> str:
        """Return e.g. ``Score(f1=0.8566 ↑, accuracy=0.9012; 24,000 items, 1,000 graphs)``."""
        arrow = "↑" if self.higher_is_better else "↓"
        shown = ", ".join(
            f"{name}={value:.4f}" + (f" {arrow}" if name == self.primary_name else "")
            for name, value in self._values.items()
        )
        size = counted(self.items_scored, "item") + (
            "" if self.graphs is None else f", {counted(self.graphs, 'graph')}"
        )
        return f"Score({shown}; {size})"

    def to_dict(self) -> dict[str, float]:
        """Return the metrics as a plain dictionary, ready for JSON: metric -> value, the primary one first."""
        return dict(self._values)

    def to_json_dict(self) -> dict[str, Any]:
        """Return the metrics and everything that describes them as a plain dictionary, ready for JSON.

        Returns:
            ``primary`` (name of the metric that ranks models), ``higher_is_better``, ``metrics`` (as
            :meth:`to_dict`), ``items`` (values scored), ``graphs`` (None where unknown) and ``undefined`` (metric ->
            why it has no value); ``failures`` (reason -> number of answers) where there are any.
        """
        return {
            "primary": self.primary_name,
            "higher_is_better": self.higher_is_better,
            "metrics": self.to_dict(),
            "items": self.items_scored,
            "graphs": self.graphs,
            "undefined": dict(self.undefined),
            **({"failures": dict(self.failures)} if self.failures else {}),
        }


def replicates_of(scores: Mapping[str, Mapping[str, float]]) -> dict[str, list[float]]:
    """Return split -> replicates of its primary metric, of the scores that have them."""
    return {name: list(s.replicates) for name, s in scores.items() if isinstance(s, Score) and s.replicates}
