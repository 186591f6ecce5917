"""The panel of a dataset's page that writes the lines of code for a task, a model and a language."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from task_text import task_cards

from graphbench.catalog.cards import Card
from graphbench.catalog.names import catalog
from graphbench.training.config import models_for

TEMPLATES = {  # language -> lines; {quick} is empty for a run with the budget of the configuration
    "command line": (
        "graphbench train {address} --model {model} --output runs/mine{quick}\n"
        "graphbench evaluate runs/mine --splits {test}\n"
        "graphbench report --records runs/mine --output report"
    ),
    "Python": (
        "import graphbench\n\n"
        'result = graphbench.train("{address}", "{model}", output="runs/mine"{quick})\n'
        'print(result.scores["{test}"])'
    ),
}
QUICK = {
    "command line": " \\\n    --steps 20 --limit 200 --evaluate val,test",
    "Python": ',\n                          steps=20, limit=200, evaluate=["val", "test"]',
}


def panel(card: Card) -> str:
    """Return the panel as raw HTML in Markdown; empty where no configuration fits the dataset."""
    facts = panel_facts(card)
    if not facts["models"]:
        return ""
    first = filled(facts, facts["addresses"][0], facts["models"][0], "command line", quick=True)
    fields = [
        _choice("dataset", facts["addresses"]),
        _choice("model", facts["models"]),
        _choice("language", list(TEMPLATES)),
    ]
    quick = '<label><input type="checkbox" data-part="quick" checked> a quick try</label>'
    return "\n".join(
        [
            "```{raw} html",
            f'<div class="gb-panel" data-facts="{escape(json.dumps(facts), quote=True)}">',
            f'<p class="gb-choices"><b>Your code</b> {" ".join(fields)} {quick}</p>',
            f'<div class="highlight-text notranslate"><div class="highlight"><pre>{escape(first)}</pre></div></div>',
            "</div>",
            "```",
        ]
    )


def panel_facts(card: Card) -> dict[str, Any]:
    """Return what the panel of a dataset chooses from: addresses, models, the test split, and templates."""
    variants = [one for one in catalog().cards.values() if (one.domain, one.family) == (card.domain, card.family)]
    ordered = [card, *(one for one in variants if one.id != card.id)]
    addresses = [task.address for one in ordered for task in task_cards(one)]
    return {
        "addresses": addresses,
        "models": _models(card),
        "test": "test" if "test" in card.splits else next(iter(card.splits)),
        "templates": TEMPLATES,
        "quick": QUICK,
    }


def filled(facts: dict[str, Any], address: str, model: str, language: str, *, quick: bool) -> str:
    """Return the lines for some choices, as the script of the page fills them in."""
    text: str = facts["templates"][language].replace("{quick}", facts["quick"][language] if quick else "")
    return text.replace("{address}", address).replace("{model}", model).replace("{test}", facts["test"])


def _models(card: Card) -> list[str]:
    """Return the configurations that fit the dataset's first task, models for a CPU first."""
    return sorted(models_for(task_cards(card)[0]), key=lambda model: (not model.endswith("_small"), model))


def _choice(part: str, names: list[str]) -> str:
    options = "".join(f"<option>{escape(name)}</option>" for name in names)
    return f'<label>{part} <select data-part="{part}">{options}</select></label>'
