"""What every dataset costs at its full size, and how the work splits over cores, from measured rates.

A shard is the unit of work, and splits are built one after the other. Joining the shards of a split, looking for
duplicates and hashing are done by one process after the last shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markdown_text import code, table
from page_text import page_name

from graphbench.catalog.cards import Card
from graphbench.catalog.costs import SplitCost, split_costs
from graphbench.core.words import human_bytes

CORES = (1, 10, 100, 1000)
UNKNOWN = "not measured"


def cost_page(cards: Iterable[Card], rates: Mapping[str, Mapping[str, Any]]) -> str:
    """Return one table per domain, as Markdown."""
    domains: dict[str, list[Card]] = {}
    for card in cards:
        domains.setdefault(card.domain, []).append(card)
    return "\n\n".join(_domain(name, members, rates) for name, members in domains.items())


def _domain(name: str, cards: Sequence[Card], rates: Mapping[str, Mapping[str, Any]]) -> str:
    parts = [(card, labeller) for card in cards for labeller in (None, *card.labels)]
    known = {(card.id, labeller): split_costs(card, rates, labeller) for card, labeller in parts}
    if not any(known.values()):
        number = f"{len(cards)} datasets" if len(cards) > 1 else "1 dataset"
        return f"**{code(name)}**: {number}, {UNKNOWN}; `python -m benchmarks.costs {name}` measures."
    rows = [
        [_link(card) + (f", labels {code(labeller)}" if labeller else ""), *_cells(known[card.id, labeller])]
        for card, labeller in parts
    ]
    measured = [split for splits in known.values() for split in splits or ()]
    missing = sum(splits is None for splits in known.values())
    samples = sum(split.count for (_, labeller), splits in known.items() if not labeller for split in splits or ())
    rows.append([f"all{f' but {missing}' if missing else ''}", f"{samples:,}", *_cells(measured)[1:]])
    walls = [f"{cores:,} core{'s' if cores > 1 else ''}" for cores in CORES]
    head = ["dataset", "samples", "CPU hours", "on disk", "shards", "longest shard", "one process alone", *walls]
    return f"**{code(name)}**. {_where(rates[name])}\n\n" + table(head, rows, right=range(1, len(head)))


def _cells(splits: Sequence[SplitCost] | None) -> list[str]:
    if splits is None:
        return [UNKNOWN, *([""] * (5 + len(CORES)))]
    return [
        f"{sum(split.count for split in splits):,}",
        hours(sum(split.wall(1) for split in splits)),
        human_bytes(sum(split.count * split.bytes for split in splits)),
        f"{sum(split.shards for split in splits):,}",
        duration(max(split.longest for split in splits)),
        duration(sum(split.alone for split in splits)),
        *(duration(sum(split.wall(cores) for split in splits)) for cores in CORES),
    ]


def _link(card: Card) -> str:
    return f"[{card.id.split('/', 1)[1]}](datasets/generated/{page_name(card)}.md)"


def _where(rates: Mapping[str, Any]) -> str:
    machine = rates["machine"]
    return (
        f"Measured on {rates['date'][:10]} on one core: {machine['cpu']}, Python {machine['python']}, "
        f"NumPy {machine['numpy']}, Numba {machine['numba']}; load average {rates['load_average_at_start']:g} on "
        f"{machine['cores']} cores."
    )


def hours(seconds: float) -> str:
    """Return a number of hours with two significant digits, without an exponent."""
    value = seconds / 3600
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}" if value >= 0.0001 else f"{value:.5f}"


def duration(seconds: float) -> str:
    """Return a time for people, with two or three significant digits."""
    if seconds < 0.01:
        return "< 0.01 s"
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes = seconds / 60
    if minutes < 100:
        return f"{minutes:.3g} min"
    return f"{minutes / 60:.3g} h" if minutes < 60_000 else f"{minutes / 60:,.0f} h"
