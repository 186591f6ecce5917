"""How the cost of a trial is shown: as the validation metric in its natural direction, where one is known."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """What people read instead of a cost.

    Attributes:
        metric: The metric of validation, or ``loss``; None where the cost is all that is known.
    """

    metric: str | None = None

    @property
    def higher_is_better(self) -> bool:
        """Direction of what :meth:`score` returns."""
        return self.score(1.0) < self.score(0.0)

    @property
    def name(self) -> str:
        """What :meth:`score` returns: ``validation f1``, or ``cost``."""
        return f"validation {self.metric}" if self.metric else "cost"

    @property
    def head(self) -> str:
        """The name with its direction: ``validation f1 ↑``."""
        return f"{self.name} {'↑' if self.higher_is_better else '↓'}"

    def score(self, cost: float) -> float:
        """Return the score in its natural direction that has a cost."""
        if self.metric is None:
            return cost
        from graphbench.tuning.method import cost_of

        return cost_of(cost, self.metric)  # its own inverse

    def text(self, cost: float, named: bool = True) -> str:
        """Return the score of a cost with four digits, after its name or alone."""
        score = self.score(cost)
        number = f"{score:.4f}" if score == 0 or 1e-3 <= abs(score) < 1e4 else f"{score:.4g}"
        return f"{self.name} {number}" if named else number
