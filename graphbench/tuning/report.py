"""The report of a tuning run: how the best configuration was found and what it cost, as Markdown and as one page."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.core.errors import TuningError
from graphbench.reports.pages import Embed, counted, duration, embed_for, environment
from graphbench.reports.tables import hardware_text, signed
from graphbench.tuning import report_tables as tables
from graphbench.tuning.history import History
from graphbench.tuning.importance import TRUSTED_R2, Importance, importance
from graphbench.tuning.incumbent import FILE, incumbent_text, train_command
from graphbench.tuning.parallel import parallel_figure
from graphbench.tuning.plots import best_figure, budget_figure, importance_figure
from graphbench.tuning.records import unreached_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from graphbench.tuning.trials import Trial

logger = logging.getLogger(__name__)

PAGES = ("report.md", "report.html")


def write_report(result: Mapping[str, Any], folder: Path) -> Path:
    """Write the report of a tuning run and return the path of its page.

    It holds the incumbent beside the default configuration, the best so far over steps and time, the use of the budget,
    parallel coordinates, the importance of the hyperparameters, the ten best configurations, and all failures.

    Args:
        result: The content of the run's ``result.json``; nothing else is read.
        folder: Receives ``report.md`` with ``figures/*.png``, ``report.html``, which needs no other file, and
            ``incumbent.yaml``, a configuration ready for training.

    Returns:
        The path of ``report.html``.

    Raises:
        TuningError: If the result is malformed or the folder cannot be written.
    """
    history = History(result)
    context = _context(history)
    folder = Path(folder)
    with _clear_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name in PAGES:
            path = folder / name
            pictures = _pictures(history, context["importance"], embed_for(path))
            template = environment(path.suffix == ".html", ["graphbench.tuning"]).get_template(
                f"tuning{path.suffix}.j2"
            )
            path.write_text(template.render(context, **pictures), encoding="utf-8")
        if history.incumbent is not None:
            (folder / FILE).write_text(incumbent_text(history, history.incumbent), encoding="utf-8")
    logger.info("wrote %s", folder / PAGES[-1])
    return folder / PAGES[-1]


@contextmanager
def _clear_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TuningError(f"cannot write the report to {folder}: {error}; choose another folder") from error


def _context(history: History) -> dict[str, Any]:
    best, rungs = history.incumbent, history.rungs()
    found = importance(history.parameters, history.trials, seed=int(history.what.get("seed") or 0))
    return {
        "title": str(history.result.get("title") or "Tuning"),
        "summary": _summary(history),
        "measure": history.measure,
        "incumbent": None if best is None else tables.incumbent_grid(history, best),
        "comparison": "" if best is None else _comparison(history, best),
        "file": FILE,
        "command": train_command(history),
        "rungs": tables.rung_grid(history, rungs),
        "saved": _saved_text(history),
        "importance": found,
        "importance_notes": _importance_notes(found),
        "effects": tables.importance_grid(found),
        "best": tables.best_grid(history),
        "failed": tables.failure_text(history) if history.failures else "",
        "failures": tables.failure_grid(history),
        "provenance": tables.provenance_grid(history),
    }


def _pictures(history: History, found: Importance, embed: Embed) -> dict[str, str]:
    """Return the text that shows each figure; empty where there is nothing to draw."""
    figures: dict[str, tuple[Figure | None, str]] = {
        "best": (best_figure(history), "Best so far over optimizer steps and time"),
        "budget": (budget_figure(history.rungs()), "Trials and optimizer steps at each budget"),
        "parallel": (parallel_figure(history), "Parallel coordinates of all configurations"),
        "importance": (importance_figure(found), "Importance of the hyperparameters"),
    }
    return {
        f"{name}_figure": "" if figure is None else embed(figure, name, title)
        for name, (figure, title) in figures.items()
    }


def _summary(history: History) -> list[str]:
    """Return what came out and how it was obtained, in sentences."""
    what, result, best = history.what, history.result, history.incumbent
    if best is None:
        found = f"No trial succeeded in {counted(len(history.trials), 'trial')}."
    else:
        score = history.measure.text(best.measured)
        at = counted(best.budget, "optimizer step")
        found = f"Best configuration: {score} at {at} (trial {best.number})."
    seconds: Mapping[str, Any] = result.get("seconds") or {}
    steps = sum(trial.steps for trial in history.trials)
    failed = f", {len(history.failures)} failed" if history.failures else ""
    wall = f" in {duration(seconds['wall'])}" if "wall" in seconds else ""
    done = f"{counted(len(history.trials), 'trial')}{failed}, {counted(steps, 'optimizer step')}{wall}"
    unreached = unreached_text(result)
    sentences = [
        found,
        *([f"Warning: {unreached}."] if unreached else []),
        f"Found by {tables.search_text(what)}, seed {what.get('seed')}: {done}.",
    ]
    if isinstance(result.get("hardware"), dict):
        sentences.append(f"Hardware: {hardware_text(result['hardware'])}.")
    if what.get("data"):
        sentences.append(f"Data: {what['dataset']}, {what['data']}.")
    return sentences


def _comparison(history: History, best: Trial) -> str:
    """Return how the default configuration did beside the incumbent, at the largest budget that both have."""
    own = {trial.budget: trial.measured for trial in history.successes if trial.config_id == best.config_id}
    own[best.budget] = best.measured
    default = {trial.budget: trial.measured for trial in history.default_trials}
    told = history.result.get("default") or {}
    if isinstance(told.get("cost"), int | float) and told.get("budget") is not None:
        default.setdefault(int(told["budget"]), float(told["cost"]))
    shared = [budget for budget in default if budget in own]
    lost = history.default_failures
    failed = (
        f"The default configuration failed at {counted(lost[-1].budget, 'step')}: {lost[-1].reason}" if lost else ""
    )
    if not shared:
        return failed or "The default configuration was not measured at a budget of the incumbent."
    budget, measure = max(shared), history.measure
    difference = signed(measure.score(own[budget]) - measure.score(default[budget]))
    scores = f"{measure.text(own[budget])}, the default {measure.text(default[budget], named=False)} ({difference})"
    if default[budget] == own[budget] and best.config_id in {t.config_id for t in history.default_trials}:
        at = counted(best.budget, "step")
        return f"The default configuration is the incumbent: {measure.text(best.measured)} at {at}."
    if budget == best.budget:
        return f"At {counted(budget, 'step')} the incumbent reaches {scores}."
    reached = f"At {counted(best.budget, 'step')} the incumbent reaches {measure.text(best.measured, named=False)}."
    if lost and lost[-1].budget > budget:
        return f"{failed.rstrip('.')}. At {counted(budget, 'step')} the incumbent had reached {scores}. {reached}"
    return (
        f"The default configuration was stopped at {counted(budget, 'step')}; there the incumbent had reached "
        f"{scores}. {reached}"
    )


def _saved_text(history: History) -> str:
    """Return what continuing promoted configurations from their checkpoints saved."""
    steps: Mapping[str, Any] = history.result.get("steps") or {}
    done, alone = steps.get("done"), steps.get("without_continuing")
    if not done or not alone or alone <= done:
        return ""
    return (
        f"Configurations that were promoted continued from their checkpoints: {counted(done, 'optimizer step')} "
        f"instead of {alone:,}, {1 - done / alone:.0%} saved."
    )


def _importance_notes(found: Importance) -> list[str]:
    if found.refusal:
        return [f"Not computed: {found.refusal}."]
    known = f"{counted(found.trials, 'successful trial')} of {counted(found.configurations, 'configuration')}"
    quality = "unknown" if found.r2 is None else f"{found.r2:.2f}"
    notes = [
        "Shares of the variance of the cost over the whole space at the largest budget, as random forests fitted to "
        f"{known} predict it ({found.at_budget} at {counted(found.budget, 'step')}; the forests learn from smaller "
        "budgets what they tell of it). Alone: what a parameter explains by itself. With all interactions: what would "
        "be lost if it were unknown. ± is the standard error by bootstrap over configurations.",
        f"Out-of-bag R2 of the forests: {quality} (of configurations not seen, against the mean cost of their budget). "
        "Shares speak of the whole space, not of the surroundings of the incumbent, and failed trials are left out.",
    ]
    if found.r2 is None:
        notes.append("R2 is unknown, as no cost of a configuration not seen differs: the order may mean nothing.")
    elif not found.trusted:
        notes.append(f"R2 is below {TRUSTED_R2}: the forests explain too little for the order to mean much.")
    if found.capped:
        outliers = counted(found.capped, "cost")
        notes.append(f"{outliers} far above the others (Tukey's outer fence) counted as the limit.")
    return notes
