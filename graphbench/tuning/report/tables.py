"""The tuning report's tables as rows of text, the same for Markdown and HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from graphbench.core.words import counted, duration
from graphbench.reports.pages import ABSENT, Grid
from graphbench.reports.tables import hardware_text
from graphbench.tuning.history import History, Rung
from graphbench.tuning.parameters import config_text, short_names, value_text
from graphbench.tuning.report.importance import Importance
from graphbench.tuning.report.sentences import search_text
from graphbench.tuning.trial import Status, Trial

BEST = 10


def incumbent_grid(history: History, incumbent: Trial) -> Grid:
    """Return a table of the incumbent and the default configuration."""
    rows = [
        (
            parameter.name,
            parameter.range_text,
            value_text(parameter.default) if parameter.has_default else ABSENT,
            _value_in(incumbent.config, parameter.name),
        )
        for parameter in history.parameters
    ]
    return Grid(("parameter", "range", "default", "incumbent"), tuple(rows))


def rung_grid(history: History, rungs: Sequence[Rung]) -> Grid:
    """Return a table of the trials at each budget, with totals."""
    measure, fidelity = history.measure, history.fidelity
    saved = (f"{fidelity.name} saved",) if fidelity.is_continued else ()
    heads = ("budget", "trials", "failed", fidelity.spent, *saved, "time", f"best {measure.head}", "median")
    rows = [
        (
            f"{rung.budget:,}",
            *_shared_cells((rung.trials, rung.failed, rung.steps, rung.saved)[: 3 + len(saved)], rung.seconds),
            ABSENT if rung.best is None else measure.text(rung.best, named=False),
            ABSENT if rung.median is None else measure.text(rung.median, named=False),
        )
        for rung in rungs
    ]
    if rungs:
        counts = [sum(values) for values in zip(*((r.trials, r.failed, r.steps, r.saved) for r in rungs), strict=True)]
        rows.append(("all", *_shared_cells(counts[: 3 + len(saved)], sum(rung.seconds for rung in rungs)), "", ""))
    return Grid(heads, tuple(rows))


def _shared_cells(counts: Sequence[int], seconds: float) -> tuple[str, ...]:
    trials, failed, *spent = counts
    share = f"{failed} ({failed / trials:.0%})" if failed else "0"
    return f"{trials:,}", share, *(f"{count:,}" for count in spent), duration(seconds)


def best_grid(history: History) -> Grid:
    """Return a table of the ten best configurations, each at its largest budget, larger budgets first."""
    parameters = [parameter for parameter in history.parameters if parameter.varies]
    names = short_names([parameter.name for parameter in parameters])
    heads = ("rank", history.measure.head, "budget", "configuration", *(names[p.name] for p in parameters), "time")
    rows = [
        (
            str(rank),
            history.measure.text(trial.measured, named=False),
            f"{trial.budget:,}",
            str(trial.config_id),
            *(_value_in(trial.config, parameter.name) for parameter in parameters),
            duration(trial.seconds),
        )
        for rank, trial in enumerate(history.ranking(BEST), 1)
    ]
    return Grid(heads, tuple(rows))


def failure_grid(history: History) -> Grid:
    """Return a table of the failed trials with their reasons."""
    heads = ("trial", "configuration", "budget", "what happened", "reason", "values", "time")
    rows = [
        (
            str(trial.number),
            str(trial.config_id),
            f"{trial.budget:,}",
            _words(trial.status),
            " ".join(trial.reason.split()) or ABSENT,
            config_text(trial.config),
            duration(trial.seconds),
        )
        for trial in history.failures
    ]
    return Grid(heads, tuple(rows))


def failure_text(history: History) -> str:
    """Return how many trials failed, by kind of failure, in a sentence."""
    counts = Counter(_words(trial.status) for trial in history.failures)
    parts = ", ".join(f"{count} {words}" for words, count in counts.most_common())
    return f"{len(history.failures)} of {counted(len(history.trials), 'trial')} failed: {parts}."


def importance_grid(importance: Importance) -> Grid:
    """Return the share of variance of each parameter."""
    rows = [(effect.name, f"{effect.alone:.3f}", f"{effect.total:.3f}") for effect in importance.effects]
    return Grid(("parameter", "alone", "with all interactions"), tuple(rows))


def provenance_grid(history: History) -> Grid:
    """Return a table of the provenance: search, budget, data, machine and code."""
    identity, result = history.identity, history.result
    seconds: Mapping[str, Any] = result.get("seconds") or {}
    overhead = seconds.get("overhead_per_trial")
    retried = sum(trial.tries - 1 for trial in history.trials)
    facts = {
        "search": search_text(identity),
        "seed": identity.get("seed"),
        "space": identity.get("space_file"),
        "dataset": identity.get("dataset"),
        "data": identity.get("data"),
        "samples": _samples_text(identity),
        "model": identity.get("model"),
        "fixed": config_text(identity.get("overrides") or {}) or None,
        "trials": f"{len(history.trials)}, of {len({trial.config_id for trial in history.trials})} configurations",
        "notes": _notes_text(history),
        "repeated": f"{counted(retried, 'trial')} started again after a worker was lost" if retried else None,
        "worker processes": len({trial.worker for trial in history.trials if trial.worker}) or None,
        "training time": duration(seconds["training"]) if "training" in seconds else None,
        "wall time": duration(seconds["wall"]) if "wall" in seconds else None,
        "overhead": None if overhead is None else f"{duration(overhead)} per trial",
        "hardware": hardware_text(result["hardware"]) if isinstance(result.get("hardware"), dict) else None,
        "code": f"graphbench {result['graphbench_version']}" if result.get("graphbench_version") else None,
        "started": _moment(result.get("started")),
        "finished": _moment(result.get("finished")),
    }
    return Grid(("", "what"), tuple((name, str(value)) for name, value in facts.items() if value is not None))


def _value_in(config: Mapping[str, Any], name: str) -> str:
    return value_text(config[name]) if name in config else "inactive"


def _samples_text(identity: Mapping[str, Any]) -> str | None:
    limits = {"of each split": identity.get("limit"), "in validation": identity.get("val_limit")}
    parts = [f"{limit:,} {where}" for where, limit in limits.items() if limit is not None]
    return ", ".join(parts) or ("all" if identity.get("dataset") else None)


def _notes_text(history: History) -> str | None:
    noted = [trial for trial in history.trials if trial.note]
    more = f" (and {counted(len(noted) - 1, 'other')})" if len(noted) > 1 else ""
    return f"trial {noted[0].number}: {noted[0].note}{more}" if noted else None


def _moment(text: Any) -> str | None:
    return None if text is None else f"{str(text)[:16].replace('T', ' ')} UTC"


def _words(status: Status) -> str:
    words = {Status.RAISED: "raised an error", Status.TIMEOUT: "out of time"}
    return words.get(status, str(status).replace("_", " "))
