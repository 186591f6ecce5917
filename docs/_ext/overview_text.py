"""The tables of all datasets, one line per family, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from domain_pages import domain_title
from markdown_text import code, table
from page_text import page_name

from graphbench.catalog.cards import Card


def by_domain(cards: Iterable[Card]) -> dict[str, dict[str, list[Card]]]:
    """Return domain -> family -> its datasets."""
    domains: dict[str, dict[str, list[Card]]] = {}
    for card in cards:
        domains.setdefault(card.domain, {}).setdefault(card.family, []).append(card)
    return domains


def overview(cards: Iterable[Card]) -> str:
    """Return the tables of all datasets as Markdown, and the hidden tree of the pages of domains."""
    parts, pages = [], []
    for domain, families in by_domain(cards).items():
        count = sum(map(len, families.values()))
        numbers = [_counted(count, "dataset", "datasets"), _counted(len(families), "family", "families")]
        parts.append(f"**[{domain_title(domain)}]({domain}.md)**, {code(f'{domain}/*')}: {' in '.join(numbers)}")
        parts.append(family_table(families, lambda card: f"generated/{page_name(card)}.md"))
        pages.append(f"{domain_title(domain)} <{domain}>")
    parts.append("```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```")
    return "\n\n".join(parts) + "\n"


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def family_table(families: Mapping[str, list[Card]], link: Callable[[Card], str]) -> str:
    """Return one line per family: its task, the sizes of its graphs, its metric, and links to its datasets."""
    rows = []
    for members in families.values():
        first = members[0]
        links = ", ".join(f"[{card.variant or card.family}]({link(card)})" for card in members)
        rows.append([first.title, links, task(first), sizes(first), metrics(first)])
    return table(["family", "datasets", "asked for", "nodes: train; test; larger", "metric"], rows)


def task(card: Card) -> str:
    """Return what a dataset asks for, e.g. ``edge mask``; of several tasks, their names."""
    if card.tasks:
        return ", ".join(code(name) for name in card.tasks)
    return ", ".join(f"{f.location.value} {f.type_name}" for f in card.outputs)


def sizes(card: Card) -> str:
    """Return the node counts of train, test and the out-of-distribution splits, where they are known."""
    nodes_of = {name: _rounded(nodes) for name in card.all_splits if (nodes := card.nodes(name)) is not None}
    larger = [nodes_of[name] for name in card.ood if name in nodes_of]
    core = [nodes_of[name] for name in ("train", "test") if name in nodes_of]
    return "; ".join([*core, *([", ".join(larger)] if larger else [])])


def _rounded(nodes: float) -> str:
    return f"{nodes:.0f}" if nodes >= 100 else f"{nodes:.3g}"


def metrics(card: Card) -> str:
    """Return what a dataset's models are ranked by, of several tasks every metric once."""
    names = [task.metrics.primary for task in card.tasks.values()] or [card.metrics.primary]
    return ", ".join(code(name) for name in dict.fromkeys(names))
