"""Write the table of datasets into the README: ``python docs/_ext/readme_tables.py``."""

from __future__ import annotations

from markdown_text import code, table
from overview_text import by_domain, metrics, sizes, task
from page_text import is_text
from readme_block import README, replaced

from graphbench.catalog.cards import Card
from graphbench.catalog.names import catalog


def datasets_table() -> str:
    """Return one line per family of the catalogue."""
    rows = []
    for families in by_domain(catalog().cards.values()).values():
        if all(card.hints for members in families.values() for card in members):
            rows.append(_trajectories([card for members in families.values() for card in members]))
            continue
        if all(is_text(card) for members in families.values() for card in members):
            rows.append(_prompts([card for members in families.values() for card in members]))
            continue
        for members in families.values():
            first = members[0]
            rows.append([first.summary.rstrip("."), task(first), sizes(first), metrics(first), _names(members)])
    return table(["question", "asked for", "nodes: train; test; larger", "metric", "datasets"], rows)


def _trajectories(cards: list[Card]) -> list[str]:
    """Return one line for all algorithms of a domain."""
    question = f"What {len(cards)} textbook algorithms do, step by step"
    usual = max((sizes(card) for card in cards), key=[sizes(card) for card in cards].count)
    return [question, "hints and outputs of every type", usual, code(cards[0].metrics.primary), _pattern(cards)]


def _prompts(cards: list[Card]) -> list[str]:
    """Return one line for all algorithms of a domain of texts."""
    question = f"What {len(cards)} textbook algorithms do, described in words and numbers"
    return [question, "text", "from 4 on", code(cards[0].metrics.primary), _pattern(cards)]


def _pattern(cards: list[Card]) -> str:
    """Return the pattern that finds all datasets of a domain."""
    return code(f"{cards[0].domain}/*")


def _names(cards: list[Card]) -> str:
    """Return a name of every dataset by which it is found: the short one where that is an alias."""
    short = [(card, card.id.split("/", 1)[1]) for card in cards]
    return ", ".join(code(name if name in card.aliases else card.id) for card, name in short)


if __name__ == "__main__":
    README.write_text(replaced("datasets", datasets_table(), README.read_text(encoding="utf-8")), encoding="utf-8")
