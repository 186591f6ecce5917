"""Small searches for tests: spaces, training methods that take no time, and trials run in this process."""

import math
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

from graphbench.tuning.journal import JOURNAL, Event, parse_events
from graphbench.tuning.search import Search
from graphbench.tuning.trial import Status, Trial
from graphbench.tuning.trials import Asked, TrialResult
from graphbench.tuning.worker import Job, Outcome, run_job

RUNGS = (1, 3, 9, 27)
SPACE = {
    "lr": {"type": "float", "range": [1e-4, 0.1], "log": True},
    "layers": {"type": "int", "range": [1, 6]},
    "kind": {"type": "categorical", "choices": ["a", "b", "c"]},
}


def read_journal(folder: Path) -> list[Event]:
    """Return the events of a run, which may be going on; a torn last line is left out."""
    content = (folder / JOURNAL).read_bytes()
    return parse_events(content[: content.rfind(b"\n") + 1], folder / JOURNAL)


def conditional_space() -> ConfigurationSpace:
    space = ConfigurationSpace()
    space.add(
        [
            Float("lr", (1e-6, 1e-1), log=True),
            Integer("hidden", (8, 256), log=True),
            Categorical("act", ["relu", "gelu", "silu"]),
            Categorical("opt", ["adam", "sgd"]),
            Float("momentum", (0, 0.99)),
        ]
    )
    space.add(EqualsCondition(space["momentum"], space["opt"], "sgd"))
    return space


def smooth_cost(config: Any, budget: int) -> float:
    far = abs(math.log10(config["lr"]) + 3) + abs(math.log2(config["hidden"]) - 6) / 4
    return far + 0.3 * (config["act"] != "gelu") + abs(config.get("momentum", 0.5) - 0.5) + 1 / budget


def finished(asked: Asked, cost: float | None, status: Status = Status.SUCCESS, **changes: Any) -> Trial:
    values: dict[str, Any] = {"continued_from": 0, "seconds": 0.0, "steps": asked.budget, "started": "", **changes}
    return Trial(
        asked.number, asked.config_id, asked.config, asked.budget, seed=asked.seed, status=status, cost=cost, **values
    )


def run_search(
    search: Search, count: int, cost: Callable[[Any, int], float] = smooth_cost, lanes: int = 1
) -> list[Trial]:
    """Ask and tell; with several lanes the oldest of as many running trials ends next. A cost of NaN is a failure."""
    running: deque[Asked] = deque()
    trials: list[Trial] = []
    started = 0
    while True:
        while len(running) < lanes and started < count and (asked := search.ask()) is not None:
            running.append(asked)
            started += 1
        if not running:
            return trials
        ended = running.popleft()
        found = cost(ended.config, ended.budget)
        failed = math.isnan(found)
        trials.append(finished(ended, None if failed else found, Status.RAISED if failed else Status.SUCCESS))
        search.tell(trials[-1])


class InProcess:
    """Runs trials here, one after the other, the oldest first."""

    def __init__(self, method: Callable[..., Any], capacity: int = 1) -> None:
        self.method, self.capacity = method, capacity
        self.jobs: deque[Job] = deque()

    def start(self, job: Job) -> None:
        self.jobs.append(job)

    def wait(self, seconds: float) -> list[tuple[Job, Outcome]]:
        job = self.jobs.popleft()
        return [(job, run_job(self.method, job))]

    def close(self) -> None:
        self.jobs.clear()


def continuing(seconds: float = 0.0, fails: bool = False) -> Callable[..., TrialResult]:
    """Return a training method that continues from its checkpoint and gives a model."""

    def train(
        config: dict[str, Any], seed: int, budget: int, checkpoint: Path | None = None, folder: Path | None = None
    ) -> TrialResult:
        time.sleep(seconds)
        if fails and config["lr"] > 0.05:
            raise ValueError("diverged")
        assert folder is not None
        start = 0 if checkpoint is None else int(checkpoint.read_text())
        path = folder / "steps.txt"
        path.write_text(str(budget))
        cost = abs(math.log10(config["lr"]) + 2) + config["layers"] / 100 + 1 / budget
        return TrialResult(cost, {"start": start}, {"process": os.getpid(), **config}, path, budget - start)

    return train


def settings(output: Path, **changes: Any) -> dict[str, Any]:
    return {"space": SPACE, "min_budget": 1, "max_budget": 27, "trials": 30, "output": output, **changes}


def essence(trials: Sequence[Trial]) -> list[tuple[Any, ...]]:
    """Return what two runs of the same search have in common, by number."""
    ordered = sorted(trials, key=lambda trial: trial.number)
    return [
        (t.number, t.config_id, tuple(sorted(t.config.items())), t.budget, t.continued_from, t.seed, t.status, t.cost)
        for t in ordered
    ]
