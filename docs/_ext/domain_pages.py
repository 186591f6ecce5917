"""The text of the page of one domain: what it asks, its datasets with the scores to compare with, and their cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from cost_tables import hours
from markdown_text import code, number, table
from page_text import page_name
from records import BestScore, best_score
from task_text import task_cards

from graphbench.catalog.cards import Card
from graphbench.catalog.costs import read_rates, split_costs
from graphbench.core.words import human_bytes
from graphbench.evaluation.metrics import METRICS
from graphbench.leaderboard.bar import Mark, bar

TEXTS = Path(__file__).resolve().parents[1] / "datasets" / "domains.yaml"
SPLIT = "test"
KINDS = {"trivial": "trivial", "best run": "recorded", "reference": "solver", "published": "published"}
MEANINGS = {
    "trivial": "the best predictor that has learned nothing",
    "best run": "the best mean over seeds among the records of this project",
    "reference": "the best solver that knows the task or is given a part of the answer",
    "published": "the best score that a paper prints for the dataset, where the question is the same",
}
_NOTES = {"minutes": " *minutes*", "paper": " *paper*", "open": ""}


@cache
def domain_texts() -> dict[str, dict[str, Any]]:
    """Return domain -> its ``title``, ``guides`` (pages), and the texts ``asks`` and ``known``."""
    return dict(yaml.safe_load(TEXTS.read_text(encoding="utf-8")))


def domain_title(domain: str) -> str:
    """Return the heading of a domain's page."""
    return str(domain_texts().get(domain, {}).get("title", domain))


def domain_page(domain: str, families: Mapping[str, Sequence[Card]]) -> str:
    """Return the Markdown page of a domain; ``families`` are its datasets in the order of the catalogue."""
    cards = [card for members in families.values() for card in members]
    texts = domain_texts().get(domain, {})
    guides = list(texts.get("guides", {}).items())
    more = ", ".join(f"[{title}](../{name}.md)" for name, title in guides)
    parts = [
        "---\nhtml_theme.sidebar_secondary.remove: true\n---",
        f"# {domain_title(domain)}",
        _index(domain, families),
        str(texts.get("asks", "")).strip(),
        f"Read on: {more}." if guides else "",
        "## Datasets and scores",
        score_table(cards),
        _legend(cards),
        "## What is known" if texts.get("known") else "",
        str(texts.get("known", "")).strip(),
        "## Cost",
        cost_table(cards),
        _tree(guides, families),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def score_table(cards: Iterable[Card]) -> str:
    """Return one line per dataset and task: the metric, and the best score of every kind on the test split.

    A kind of which no dataset has a score has no column.
    """
    rows = []
    for card in cards:
        for own in task_cards(card):
            metric = own.metrics.primary
            arrow = "↑" if METRICS[metric].higher_is_better else "↓"
            link = f"[{_short(own.address)}](generated/{page_name(card)}.md)"
            rows.append([link, card.title, f"{code(metric)} {arrow}", *_scores(own)])
    head = ["dataset", "question", "metric", *KINDS]
    shown = [i for i in range(len(head)) if i < 3 or any(row[i] for row in rows)]
    return table([head[i] for i in shown], [[row[i] for i in shown] for row in rows], right=range(3, len(shown)))


def _scores(card: Card) -> list[str]:
    best = best_score(card)
    marks = {mark.kind: mark for mark in bar(card, best)}
    rule, plain = marks.pop("rule", None), marks.get("trivial")
    if rule is not None and (plain is None or _is_better(card, rule, plain)):  # a rule has learned nothing either
        marks["trivial"] = rule
    return ["" if kind not in marks else _shown(marks[kind], best) for kind in KINDS.values()]


def _is_better(card: Card, first: Mark, second: Mark) -> bool:
    sign = 1 if METRICS[card.metrics.primary].higher_is_better else -1
    return sign * first.value > sign * second.value


def _shown(mark: Mark, best: BestScore | None) -> str:
    note = _NOTES[best.budget_class] if mark.kind == "recorded" and best is not None else ""
    part = "" if mark.samples is None else f", {mark.samples:,} scored"
    return f"{number(mark.value)} {code(mark.name)}{note}{part}"


def _legend(cards: Sequence[Card]) -> str:
    own_cards = [own for card in cards for own in task_cards(card)]
    run = any(best_score(own) is not None for own in own_cards)
    kinds = ", ".join(f"*{kind}* is {meaning}" for kind, meaning in MEANINGS.items())
    text = f"All scores are of the split {code(SPLIT)}; ↑ means that higher is better. In the columns, {kinds}."
    note = " Behind a run stands its [budget class](../leaderboard.md): *minutes* of one core, or that of the *paper*."
    return text + note * run


def cost_table(cards: Iterable[Card]) -> str:
    """Return one line per dataset: samples of all splits, CPU hours on one core and bytes, of labels too."""
    rates = read_rates()
    rows = []
    for card in cards:
        for labeller in (None, *card.labels):
            splits = split_costs(card, rates, labeller)
            what = _short(card.id) + (f", labels {code(labeller)}" if labeller else "")
            samples = sum(spec.count for spec in card.all_splits.values())
            cells = ["not measured", ""]
            if splits is not None:
                size = human_bytes(sum(split.count * split.bytes for split in splits))
                cells = [hours(sum(split.wall(1) for split in splits)), size]
            rows.append([what, f"{samples:,}", *cells])
    text = (
        "What it takes to generate everything; `limit` takes the first samples only. [Costs](../costs.md) says how\n"
        "this was measured, and how long it takes on several cores."
    )
    return f"{text}\n\n" + table(["dataset", "samples", "CPU hours", "on disk"], rows, right=(1, 2, 3))


def _tree(guides: Sequence[tuple[str, str]], families: Mapping[str, Sequence[Card]]) -> str:
    lines = [f"{title} <../{name}>" for name, title in guides]
    lines += [f"{_short(card.id)} <generated/{page_name(card)}>" for cards in families.values() for card in cards]
    return "```{toctree}\n:hidden:\n\n" + "\n".join(lines) + "\n```"


def _index(domain: str, families: Mapping[str, Sequence[Card]]) -> str:
    """Return the entries of the index, by which the search finds the page: the domain and its families."""
    return "```{index} " + ", ".join([f"! {domain}", *(f"{domain}/{name}" for name in families)]) + "\n```"


def _short(address: str) -> str:
    return address.split("/", 1)[1]
