"""The page on costs: its arithmetic is that of a schedule, and its rates are of the datasets there are."""

from __future__ import annotations

import heapq
import importlib
import json
import sys
from pathlib import Path

import pytest

from graphbench.catalog import costs, names
from graphbench.catalog.resources import datasets_dir

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "_ext"))
cost_tables = importlib.import_module("cost_tables")


def scheduled(count: int, shard: int, draw: float, cores: int) -> float:
    """Return when the last of the shards ends that are handed, in order, to the first core that is free."""
    sizes = [min(shard, count - first) for first in range(0, count, shard)]
    free = [0.0] * cores
    for size in sizes:
        heapq.heappush(free, heapq.heappop(free) + size * draw)
    return max(free)


@pytest.mark.parametrize("count", [1, 7, 16, 17, 160, 165, 1000])
@pytest.mark.parametrize("cores", [1, 2, 3, 10, 100])
def test_the_time_is_that_of_a_schedule(count, cores):
    cost = costs.SplitCost(count, shard=16, draw=0.5, join=0.25, bytes=3.0)
    assert cost.wall(cores) == pytest.approx(scheduled(count, 16, 0.5, cores) + 0.25 * count)
    assert cost.shards == len(range(0, count, 16))
    assert cost.longest == 0.5 * min(16, count)
    assert cost.wall(10**6) == pytest.approx(cost.longest + cost.alone)


def rates_of(card, version=None, without=()):
    splits = {
        name: {"samples": 10, "shard": spec.count, "draw": 0.36, "join": 0.0, "bytes": 100.0}
        for name, spec in card.all_splits.items()
        if name not in without
    }
    machine = {"cpu": "A CPU", "cores": 2, "python": "3.11.0", "numpy": "2.0", "numba": "0.60"}
    found = {card.id.split("/", 1)[1]: {"version": version or card.version, "splits": splits}}
    return {
        card.domain: {"date": "2026-01-01T00:00:00", "load_average_at_start": 0.5, "machine": machine, "rates": found}
    }


def test_a_table_shows_hours_bytes_and_what_is_not_measured():
    card, other = (names.catalog().cards[f"algoreas/mst_{kind}"] for kind in ("easy", "hard"))
    text = cost_tables.cost_page([card, other], rates_of(card))
    count = sum(spec.count for spec in card.all_splits.values())
    first, second, total = text.splitlines()[-3:]
    assert first.startswith(
        f"| [mst_easy](datasets/generated/algoreas-mst_easy.md) | {count:,} | {count / 1e4:,.0f} | "
    )
    assert "| 102 MB | 9 | 100 h | < 0.01 s | 102 h |" in first
    assert second.startswith("| [mst_hard](datasets/generated/algoreas-mst_hard.md) | not measured |")
    assert total.startswith(f"| all but 1 | {count:,} |")
    assert "A CPU, Python 3.11.0" in text


def test_labels_have_costs_of_their_own():
    card = next(card for card in names.catalog().cards.values() if len(card.labels) > 1)
    rates = rates_of(card)
    known, unknown = list(card.labels)[:2]
    of_graphs = rates[card.domain]["rates"][card.id.split("/", 1)[1]]
    of_graphs["labels"] = {known: {split: {**rate, "draw": 3.6} for split, rate in of_graphs["splits"].items()}}
    count = sum(spec.count for spec in card.all_splits.values())
    text = cost_tables.cost_page([card], rates)
    assert f", labels `{known}` | {count:,} | {count / 1e3:,.0f} | " in text
    assert f", labels `{unknown}` | not measured |" in text
    assert f"| all but {len(card.labels) - 1} | {count:,} | {count / 1e4 + count / 1e3:,.0f} | " in text


@pytest.mark.parametrize("changes", [{"version": 99}, {"without": ("val",)}])
def test_rates_of_another_version_or_of_some_splits_do_not_count(changes):
    card = names.catalog().cards["algoreas/mst_easy"]
    assert costs.split_costs(card, rates_of(card, **changes)) is None
    text = cost_tables.cost_page([card], rates_of(card, **changes))
    assert text == "**`algoreas`**: 1 dataset, not measured; `python -m benchmarks.costs algoreas` measures."


def test_shipped_rates_are_of_datasets_there_are():
    found = costs.read_rates()
    assert found
    ids = set(names.catalog().cards)
    for domain, content in found.items():
        assert content == json.loads((datasets_dir() / domain / "costs.json").read_text())
        for name, measured in content["rates"].items():
            assert f"{domain}/{name}" in ids
            for rate in measured["splits"].values():
                assert rate["draw"] > 0 and rate["bytes"] > 0 and rate["join"] >= 0
                assert rate["samples"] >= 1 and rate["shard"] >= 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.001, "< 0.01 s"),
        (0.25, "0.25 s"),
        (9.96, "10 s"),
        (99, "99 s"),
        (150, "2.5 min"),
        (7200, "2 h"),
        (9e6, "2,500 h"),
    ],
)
def test_durations(seconds, text):
    assert cost_tables.duration(seconds) == text
