"""The incumbent of a tuning run as a file: a configuration ready for training."""

from __future__ import annotations

import yaml

from graphbench.reports.pages import counted
from graphbench.tuning.history import History
from graphbench.tuning.records import unreached_text
from graphbench.tuning.report_tables import search_text
from graphbench.tuning.trials import Trial

FILE = "incumbent.yaml"


def incumbent_text(history: History, incumbent: Trial) -> str:
    """Return the incumbent as YAML, with a comment on how it was found.

    For a model of ours it is the result's ``baseline``, a file such as those in ``baselines/<domain>/``: the tuned
    configuration with the overrides of the run and the incumbent's values, trained to the budget it was scored at. For
    other
    training methods it is the plain configuration.
    """
    sections = history.result.get("baseline")
    style = None if sections else False  # lists and inner mappings of sections stand in one line, as in our files
    content = dict(sections or incumbent.config)
    body = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110, default_flow_style=style)
    return "".join(f"# {line}\n" for line in _comment(history, incumbent)) + body


def train_command(history: History) -> str | None:
    """Return the command that trains the incumbent's file; None where the training method is not ours."""
    what = history.what
    if not _is_ours(history) or "baseline" not in history.result:
        return None
    limit = f" --limit {what['limit']}" if what.get("limit") else ""
    return f"graphbench train {what['dataset']} --model {FILE} --seed {what.get('seed', 0)}{limit}"


def _is_ours(history: History) -> bool:
    return bool(history.what.get("dataset") and history.what.get("model"))


def _comment(history: History, incumbent: Trial) -> list[str]:
    what = history.what
    about = f"{what['model']} tuned on {what['dataset']}" if _is_ours(history) else "The incumbent"
    found = f"{about}: {history.measure.text(incumbent.measured)} at {counted(incumbent.budget, 'step')}, the best of"
    lines = [f"{found} {counted(len(history.trials), 'trial')}", f"({search_text(what)}, seed {what.get('seed')})."]
    if unreached := unreached_text(history.result):
        lines.append(f"{unreached[0].upper()}{unreached[1:]}.")
        lines += ["It is trained to the budget that was reached."] if "baseline" in history.result else []
    return [*lines, f"Data: {what['data']}."] if what.get("data") else lines
