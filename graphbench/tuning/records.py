"""The records of a run: ``settings.json``, written at its start, and ``result.json``, written whenever it stops."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphbench._version import __version__
from graphbench.core.errors import ConfigError
from graphbench.core.sources import changed_code, code_of
from graphbench.records.machine import hardware
from graphbench.training.fidelity import STEPS
from graphbench.tuning.budgets import ladder, trials_until_largest
from graphbench.tuning.history import DEFAULT_ID, SCHEMA
from graphbench.tuning.journal import EventKind, Journal, utc_now
from graphbench.tuning.report.sentences import title_of
from graphbench.tuning.settings import OptimizationArgs
from graphbench.tuning.space import describe
from graphbench.tuning.trial import Trial, incumbent_of

logger = logging.getLogger(__name__)

SETTINGS = "settings.json"

_SEARCH = ("method", "seed", "min_budget", "max_budget", "eta", "worst_cost", "space_file")
_LIMITS = ("trials", "walltime_limit", "workers", "trial_limit", "memory_limit")
_UNIMPORTANT = ("space_file",)  # keys that do not identify a run: the content of the space counts, not its file


def settings_record(args: OptimizationArgs, method: Any) -> dict[str, Any]:
    """Return the settings of a run: ``what`` and ``space`` identify the run, ``limits`` may change.

    Args:
        args: The settings.
        method: The training method; if it has a mapping ``description``, the mapping is part of ``what``.
    """
    description = getattr(method, "description", None)
    if not isinstance(description, Mapping):
        name = getattr(method, "__qualname__", None) or type(method).__qualname__
        description = {"training_method": name}
    fidelity = {} if args.fidelity == STEPS.name else {"fidelity": args.fidelity}
    return {
        "schema": SCHEMA,
        "what": {**description, **{key: getattr(args, key) for key in _SEARCH}, **fidelity},
        "space": describe(args.space),
        "limits": {key: getattr(args, key) for key in _LIMITS}
        | {"cluster": args.cluster if isinstance(args.cluster, str | None) else repr(args.cluster)},
        "code": method.code if hasattr(method, "code") else dict(code_of((), [method]).hashes),
        "graphbench_version": __version__,
    }


def check_identity(journal: Journal, settings: Mapping[str, Any], output: Path, *, retry_failed: bool = False) -> None:
    """Compare the settings of a run with the settings in its journal.

    The code may be corrected while no trial has succeeded, and where failed trials are run again. The code of a user's
    training method may change at any time, with a warning.

    Args:
        journal: The run's journal.
        settings: From :func:`settings_record`.
        output: The run's folder.
        retry_failed: Whether the trials that failed are run again.

    Raises:
        ConfigError: If the settings identify another search, or trials have succeeded with other code; the message
            names all differences.
    """
    first = next((event for event in journal.past if event["event"] == EventKind.OPENED), None)
    if first is None:
        return
    before = {key: first["settings"][key] for key in ("what", "space")}
    now = json.loads(json.dumps({key: settings[key] for key in ("what", "space")}))
    opened = journal.of_kind(EventKind.OPENED)[-1]["settings"]
    unchecked = [key for key, there in (("card", before["what"]), ("code", opened)) if key not in there]
    is_ours = "card" in settings["what"]
    if is_ours and unchecked:
        logger.warning(
            "%s was begun by a version that did not record the %s of a search: whether it changed could not be checked",
            output,
            " and the ".join(unchecked),
        )
    if "card" in unchecked:
        now["what"].pop("card", None)
    if changes := _differences(before, now):
        raise ConfigError(
            f"{output} holds another tuning run: {'; '.join(changes)}. Choose another output folder, or the settings "
            "as they were; trials, workers and limits may change"
        )
    changes = changed_code(opened.get("code", {}), settings["code"])
    _check_code(journal, changes, output, refused=is_ours and not retry_failed)


def _check_code(journal: Journal, changes: list[str], output: Path, *, refused: bool) -> None:
    """Refuse trials that succeeded with other code, or warn of them."""
    if not changes or not _has_success(journal):
        return
    if not refused:
        logger.warning("the trials in %s that succeeded were run with other code: %s", output, ", ".join(changes))
        return
    raise ConfigError(
        f"{output} holds trials of other code: {', '.join(changes)}. Undo the change, or choose another output folder; "
        "retry_failed=True keeps the trials that succeeded and runs the others with the new code"
    )


def _has_success(journal: Journal) -> bool:
    """Return whether a trial has succeeded since the search last began."""
    succeeded = False
    for event in journal.past:
        if event["event"] == EventKind.FINISHED:
            succeeded = succeeded or Trial.from_json(event["trial"]).succeeded
        elif event["event"] == EventKind.RESTARTED:
            succeeded = False
    return succeeded


def _differences(before: Any, now: Any, key_path: str = "") -> list[str]:
    """Return the values that differ, by dotted key; a mapping that is new or gone counts as one value."""
    if not (isinstance(before, Mapping) and isinstance(now, Mapping)):
        return [] if before == now else [f"{key_path} was {before!r}, is now {now!r}"]
    return [
        text
        for key in {**before, **now}
        if key not in _UNIMPORTANT
        for text in _differences(before.get(key, "nothing"), now.get(key, "nothing"), f"{key_path}.{key}".lstrip("."))
    ]


def result_record(
    settings: Mapping[str, Any],
    trials: Sequence[Trial],
    journal: Journal,
    lanes: int,
    forgotten: float,
    baseline: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the content of ``result.json``.

    Args:
        settings: From :func:`settings_record`.
        trials: All finished trials.
        journal: The run's journal.
        lanes: The largest number of trials that ran at once; wall time of a lane without a trial is overhead.
        forgotten: Seconds of failed trials that were run again.
        baseline: The incumbent as a configuration file, for models of this package.
    """
    best = incumbent_of(trials)
    defaults = [trial for trial in trials if trial.config_id == DEFAULT_ID and trial.succeeded]
    training = sum(trial.seconds for trial in trials)
    wall = journal.seconds
    idle = wall * lanes - training - forgotten
    return {
        "schema": SCHEMA,
        "title": title_of(settings["what"]),
        "what": settings["what"],
        "space": settings["space"],
        "incumbent": _short(best),
        "largest_budget": largest_budget(settings["what"], best),
        "default": _short(max(defaults, key=lambda trial: trial.budget, default=None)),
        "trials": [trial.to_json() for trial in sorted(trials, key=lambda trial: trial.number)],
        "steps": _steps(trials),
        "seconds": {
            "training": round(training, 3),
            "overhead_per_trial": round(max(0.0, idle) / len(trials), 3) if trials else None,
            "wall": round(wall, 3),
        },
        "hardware": hardware(),
        "graphbench_version": __version__,
        "started": journal.begun or utc_now(),
        "finished": utc_now(),
        **({} if baseline is None else {"baseline": dict(baseline)}),
    }


def largest_budget(identity: Mapping[str, Any], best: Trial | None) -> dict[str, int]:
    """Return the largest budget of a run, the largest that was reached, and how many trials are needed to reach it.

    Args:
        identity: The identity of the run: the tuned model, its data and the settings of the search.
        best: The incumbent, which is at the largest budget that was reached; None before the first success.
    """
    rungs = ladder(identity["min_budget"], identity["max_budget"], identity["eta"])
    needed = 1 if identity["method"] == "random" else trials_until_largest(len(rungs), identity["eta"])
    return {"budget": rungs[-1], "reached": 0 if best is None else best.budget, "trials_needed": needed}


def _steps(trials: Sequence[Trial]) -> dict[str, Any]:
    done = sum(trial.steps for trial in trials)
    alone = sum(trial.steps + trial.continued_from for trial in trials)
    return {"done": done, "without_continuing": alone, "saved_share": round(1 - done / alone, 4) if alone else 0.0}


def _short(trial: Trial | None) -> dict[str, Any] | None:
    if trial is None:
        return None
    record = trial.to_json()
    return {key: record[key] for key in ("config_id", "config", "cost", "budget", "metrics")}
