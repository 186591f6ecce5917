"""The learner behind tabular models: it fits estimators once, without steps, gradients or a GPU."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar
from zipfile import ZipFile

import torch

from graphbench.catalog.cards import Card
from graphbench.core.damage import fault_of
from graphbench.core.errors import CheckpointError, ConfigError
from graphbench.core.files import atomic_path, default_mode, load_json, write_json
from graphbench.core.untrusted import require_regular
from graphbench.core.zip_files import require_stored_entries
from graphbench.models.base import TaskFeatures
from graphbench.models.registry import build_task_model
from graphbench.models.tabular.estimators import threads_of, trusted_types
from graphbench.models.tabular.model import TabularModel
from graphbench.models.tabular.selector_model import SelectorModel
from graphbench.records.machine import processor_seconds
from graphbench.records.memory import MemoryPeak
from graphbench.training.checkpoint import RUN, require_fingerprint
from graphbench.training.config import RunConfig
from graphbench.training.context import RunContext, Watch
from graphbench.training.folders import stated_settings
from graphbench.training.learners.base import FitSummary
from graphbench.training.learners.torch_learner import TorchPredictor

ESTIMATORS = "estimators.skops"
FACTS = "estimators.json"
_READING_BATCH = 1024


class TabularLearner(TorchPredictor):
    """Fits estimators on the training split and scores them on the validation split."""

    files: ClassVar[tuple[str, ...]] = (ESTIMATORS, FACTS)
    started = ""

    def __init__(self, context: RunContext) -> None:
        if context.world.size > 1:
            raise ConfigError(
                f"tabular models are fitted by one process, not {context.world.size}; run without torchrun"
            )
        self.context = context
        (self.id_, self.run), *_ = context.runs.items()
        if self.run.task.unlabelled:
            raise ConfigError(
                f"tabular models learn from targets, which {self.run.card.address} trains without; choose another task"
            )
        cards = {id_: run.card for id_, run in context.runs.items()}
        super().__init__(_built(context.config, cards), torch.device("cpu"))
        self.facts: dict[str, Any] = {}

    def resume(self) -> bool:
        """Take the fitted estimators of the folder, if it has any of this run, and return whether it had."""
        if not (self.context.folder / FACTS).is_file():
            return False
        self.model.estimators, self.facts = _read(self.context.folder, self.context.config, self.context.fingerprint)
        return True

    def describe(self) -> str:
        """Return a description of the fit that begins."""
        config = self.context.config
        return f"fitting {config.model_name} on {self.context.name}; output {self.context.folder}"

    def length(self) -> tuple[int, str]:
        """Return the number of units of work in fitting, and the noun for the units (plural)."""
        return 1, "fits"

    def seconds_ahead(self) -> float | None:
        """Return None: the time of fitting cannot be estimated."""
        return None

    def fit(self, watch: Watch) -> None:
        """Fit the estimators, unless they were read from the folder, and score them on the validation split."""
        if self.facts:
            return
        memory = MemoryPeak(self.device)
        settings, began, cpu_began = self.context.config.training, time.perf_counter(), processor_seconds()
        started = datetime.now(UTC).isoformat(timespec="seconds")
        rows = self.model.fit(self.run.train.batches(_READING_BATCH), settings.seed)
        seconds, cpu_seconds = time.perf_counter() - began, processor_seconds() - cpu_began
        watch.bar.update(1)
        metric, _ = self.run.task.selection
        curve = []
        if len(self.run.val):
            name = self.run.val.split
            scores = self.score(self.run.task, self.id_, self.run.val, name, settings.eval_batch_size, False)
            curve = [[0, scores[name].primary]]
            watch.board.add_scalar(f"val/{metric}", scores[name].primary, 0)
        self.facts = {
            "fingerprint": self.context.fingerprint,
            RUN: stated_settings(self.context.config),
            "started": started,
            "rows": rows,
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
            "threads": threads_of(self.model.config.processor, self.model.config.options, torch.get_num_threads()),
            "deterministic": self.model.draws_nothing,
            "curve": curve,
            "peak_memory_bytes": memory.bytes,
        }
        _write(self.context.folder, self.model, self.facts)

    def summary(self) -> FitSummary:
        """Return the summary of the fit."""
        metric, upwards = self.run.task.selection
        curve = tuple((int(step), float(value)) for step, value in self.facts.get("curve", ()))
        seconds = float(self.facts.get("seconds", 0.0))
        return FitSummary(
            metric=metric,
            higher_is_better=upwards,
            curve=curve,
            started=self.facts.get("started", datetime.now(UTC).isoformat(timespec="seconds")),
            curves={f"val_{metric}": list(curve)},
            wall_seconds=seconds,
            cpu_seconds=self.facts.get("cpu_seconds"),
            threads=self.facts.get("threads"),
            deterministic=self.facts.get("deterministic"),
            peak_memory_bytes=self.facts.get("peak_memory_bytes"),
            samples_per_second=self.run.train_size / seconds if seconds else None,
            notes=(f"fitted on {self.facts.get('rows', 0):,} rows",),
        )

    @classmethod
    def load(
        cls, folder: Path, config: RunConfig, cards: dict[str, Card], mark: str, device: torch.device
    ) -> TorchPredictor:
        """Return the fitted estimators of a run's folder.

        Raises:
            CheckpointError: If the files are missing or damaged, or another run has written them.
        """
        model = _built(config, cards)
        model.estimators, _ = _read(folder, config, mark)
        return TorchPredictor(model.eval(), torch.device("cpu"))


def _built(config: RunConfig, cards: dict[str, Card]) -> TabularModel | SelectorModel:
    model = build_task_model(
        config.model, {id_: TaskFeatures.of(card, config.training.task) for id_, card in cards.items()}
    )
    assert isinstance(model, (TabularModel, SelectorModel))
    return model


def _write(folder: Path, model: TabularModel | SelectorModel, facts: dict[str, Any]) -> None:
    import skops.io

    with atomic_path(folder / ESTIMATORS) as aside:
        skops.io.dump(model.estimators, aside)
        aside.chmod(default_mode())
    write_json(folder / FACTS, facts)


def _read(folder: Path, config: RunConfig, mark: str) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return the estimators and facts of a folder; only types that the registered estimators name are read."""
    import skops.io

    try:
        facts = dict(load_json(folder / FACTS))
        require_regular(folder / ESTIMATORS)
        with ZipFile(folder / ESTIMATORS) as archive:
            require_stored_entries(archive, folder / ESTIMATORS)
        estimators = skops.io.load(folder / ESTIMATORS, trusted=trusted_types())
    except FileNotFoundError as error:
        raise CheckpointError(f"{error.filename} is missing; train the model again") from None
    except Exception as error:  # a damaged archive makes the reader raise errors of many classes
        raise CheckpointError(f"the model in {folder / ESTIMATORS} {fault_of(error)}; train the model again") from error
    if mark:
        require_fingerprint(facts, mark, folder / ESTIMATORS, config)
    return estimators, facts
