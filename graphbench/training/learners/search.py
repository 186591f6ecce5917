"""The learner behind searches: there is nothing to learn, so that a run only scores."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import torch

from graphbench.catalog.cards import Card
from graphbench.core.errors import ConfigError
from graphbench.models.search.model import SearchModel
from graphbench.training.config import RunConfig
from graphbench.training.context import RunContext, Watch
from graphbench.training.learners.base import FitSummary
from graphbench.training.learners.torch_learner import TorchPredictor, build_model


class SearchLearner(TorchPredictor):
    """Scores a search; the seed of the run is the seed of its random numbers."""

    files: ClassVar[tuple[str, ...]] = ()
    started = ""

    def __init__(self, context: RunContext) -> None:
        if context.world.size > 1:
            raise ConfigError(f"searches run in one process, not {context.world.size}; run without torchrun")
        self.context = context
        (self.run,) = context.runs.values()
        model = _built(context.config, {id_: run.card for id_, run in context.runs.items()})
        self.draws_nothing = model.config.method in model.problem.rules
        super().__init__(model, torch.device("cpu"))
        self.began = datetime.now(UTC).isoformat(timespec="seconds")

    def resume(self) -> bool:
        """Return False: nothing was learned that could be taken up again."""
        return False

    def describe(self) -> str:
        """Return a description of the run that begins."""
        return f"searching with {self.context.config.model_name} on {self.context.name}; output {self.context.folder}"

    def length(self) -> tuple[int, str]:
        """Return the number of units of work in fitting, and the noun for the units (plural)."""
        return 1, "searches"

    def seconds_ahead(self) -> float | None:
        """Return None: no time is spent before the splits are scored."""
        return None

    def fit(self, watch: Watch) -> None:
        """Do nothing."""
        watch.bar.update(1)

    def summary(self) -> FitSummary:
        """Return a summary without a training."""
        metric, upwards = self.run.task.selection
        return FitSummary(
            metric=metric,
            higher_is_better=upwards,
            curve=(),
            started=self.began,
            wall_seconds=0.0,
            cpu_seconds=0.0,
            threads=1,
            deterministic=self.draws_nothing,
            parameters=0,
            notes=("nothing was trained",),
        )

    @classmethod
    def load(
        cls, folder: Path, config: RunConfig, cards: dict[str, Card], mark: str, device: torch.device
    ) -> TorchPredictor:
        """Return the search of a run's configuration."""
        return TorchPredictor(_built(config, cards), torch.device("cpu"))


def _built(config: RunConfig, cards: dict[str, Card]) -> SearchModel:
    model = build_model(config, cards)
    assert isinstance(model, SearchModel)
    model.seed = config.training.seed
    return model.eval()
