"""The report of a tuning run, as Markdown and as one self-contained page."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from graphbench.core.errors import TuningError
from graphbench.core.files import clear_errors, write_text
from graphbench.core.words import counted
from graphbench.reports.pages import Embed, embed_for, environment
from graphbench.tuning.history import History
from graphbench.tuning.report import tables
from graphbench.tuning.report.expected import Expected, expected_grid, expected_notes, expected_of
from graphbench.tuning.report.importance import Importance, importance
from graphbench.tuning.report.parallel import parallel_figure
from graphbench.tuning.report.plots import best_figure, budget_figure, importance_figure
from graphbench.tuning.report.sentences import (
    comparison_text,
    importance_notes,
    saved_text,
    search_text,
    summary,
    unreached_text,
    warnings_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from graphbench.tuning.trial import Trial


logger = logging.getLogger(__name__)

PAGES = ("report.md", "report.html")
FILE = "incumbent.yaml"


def write_report(result: Mapping[str, Any], folder: Path) -> Path:
    """Write the report of a tuning run and return the path of its page.

    The report holds the incumbent next to the default configuration and the expected scores (of trivial baselines,
    solvers and papers), the best so far over budget and time, the use of the budget, parallel coordinates, the
    importance of the hyperparameters, the ten best configurations, and all failures.

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
    folder = Path(folder)
    with clear_errors(folder, "write the report to", "choose another folder", TuningError):
        write_incumbent(history, folder)  # first: the page may fail
        expected = expected_of(history)
        context = _context(history, expected)
        folder.mkdir(parents=True, exist_ok=True)
        for name in PAGES:
            path = folder / name
            pictures = _pictures(history, expected, context["importance"], embed_for(path))
            template = environment(path.suffix == ".html").get_template(f"tuning{path.suffix}.j2")
            write_text(path, template.render(context, **pictures))
    logger.info("wrote %s", folder / PAGES[-1])
    return folder / PAGES[-1]


def _context(history: History, expected: Expected | None) -> dict[str, Any]:
    best, rungs = history.incumbent, history.rungs()
    effects = importance(history.parameters, history.trials, seed=int(history.identity.get("seed") or 0))
    return {
        "title": str(history.result.get("title") or "Tuning"),
        "summary": summary(history),
        "measure": history.measure,
        "incumbent": None if best is None else tables.incumbent_grid(history, best),
        "comparison": "" if best is None else comparison_text(history, best),
        "expected": None if best is None or expected is None else expected_grid(history, best, expected),
        "expected_notes": [] if expected is None else expected_notes(history, expected),
        "file": FILE,
        "command": train_command(history),
        "rungs": tables.rung_grid(history, rungs),
        "saved": saved_text(history),
        "importance": effects,
        "importance_notes": importance_notes(effects, history.fidelity),
        "effects": tables.importance_grid(effects),
        "best": tables.best_grid(history),
        "failed": tables.failure_text(history) if history.failures else "",
        "failures": tables.failure_grid(history),
        "provenance": tables.provenance_grid(history),
    }


def _pictures(history: History, expected: Expected | None, effects: Importance, embed: Embed) -> dict[str, str]:
    """Return the text that embeds each figure; empty where there is nothing to draw."""
    figures: dict[str, tuple[Figure | None, str]] = {
        "best": (best_figure(history, expected), f"Best so far over {history.fidelity.full_unit}s and time"),
        "budget": (
            budget_figure(history.rungs(), history.fidelity),
            f"Trials and {history.fidelity.full_unit}s at each budget",
        ),
        "parallel": (parallel_figure(history), "Parallel coordinates of all configurations"),
        "importance": (importance_figure(effects), "Importance of the hyperparameters"),
    }
    return {
        f"{name}_figure": "" if figure is None else embed(figure, name, title)
        for name, (figure, title) in figures.items()
    }


def write_incumbent(history: History, folder: Path) -> None:
    """Write the best configuration to ``incumbent.yaml`` in a folder, ready for training; no file without one."""
    if history.incumbent is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / FILE, incumbent_text(history, history.incumbent))


def incumbent_text(history: History, incumbent: Trial) -> str:
    """Return the incumbent as YAML, with a comment on the search.

    For a model of this package, the text is the result's ``baseline``, in the format of the files in
    ``baselines/<domain>/``: the tuned configuration with the overrides of the run, the incumbent's values and the
    budget at which it was scored. For other training methods, the text is the plain configuration.
    """
    sections = history.result.get("baseline")
    style = None if sections else False  # lists and inner mappings of sections are in one line, as in baselines/
    content = dict(sections or incumbent.config)
    body = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110, default_flow_style=style)
    return "".join(f"# {line}\n" for line in _comment(history, incumbent)) + body


def train_command(history: History) -> str | None:
    """Return the command that trains the incumbent; None for training methods of the user."""
    identity = history.identity
    if not _is_ours(history) or "baseline" not in history.result:
        return None
    limit = f" --limit {identity['limit']}" if identity.get("limit") else ""
    return f"graphbench train {identity['dataset']} --model {FILE} --seed {identity.get('seed', 0)}{limit}"


def _is_ours(history: History) -> bool:
    return bool(history.identity.get("dataset") and history.identity.get("model"))


def _comment(history: History, incumbent: Trial) -> list[str]:
    identity = history.identity
    subject = f"{identity['model']} tuned on {identity['dataset']}" if _is_ours(history) else "The incumbent"
    score, budget = history.measure.text(incumbent.measured), history.fidelity.text(incumbent.budget)
    headline = f"{subject}: {score} at {budget}, the best of"
    lines = [
        f"{headline} {counted(len(history.trials), 'trial')}",
        f"({search_text(identity)}, seed {identity.get('seed')}).",
    ]
    lines += [f"{warning[0].upper()}{warning[1:]}." for warning in warnings_of(history)]
    if unreached_text(history.result) and "baseline" in history.result:
        lines.append("It is trained to the budget that was reached.")
    return [*lines, f"Data: {identity['data']}."] if identity.get("data") else lines
