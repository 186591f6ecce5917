"""What it costs to generate a dataset: rates per sample that were measured on one machine, in ``costs.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphbench.catalog.cards import Card
from graphbench.catalog.resources import datasets_dir

RATES = "costs.json"


@dataclass(frozen=True)
class SplitCost:
    """What one split costs.

    Attributes:
        count: Samples.
        shard: Samples in a shard.
        draw: CPU seconds per sample in a shard.
        join: CPU seconds per sample of what one process does with all shards.
        bytes: Per sample in the finished file.
    """

    count: int
    shard: int
    draw: float
    join: float
    bytes: float

    @property
    def shards(self) -> int:
        """The number of shards."""
        return -(-self.count // self.shard)

    @property
    def longest(self) -> float:
        """Seconds of the longest shard."""
        return min(self.shard, self.count) * self.draw

    @property
    def alone(self) -> float:
        """Seconds in which one process works alone."""
        return self.count * self.join

    def wall(self, cores: int) -> float:
        """Return the seconds until the split is finished: rounds of full shards, a shorter last one, one process."""
        full, rest = divmod(self.count, self.shard)
        rounds = -(-full // cores) * self.shard * self.draw
        is_parallel = full % cores > 0  # an idle core of the last round takes the shorter shard
        return rounds + (0.0 if is_parallel else rest * self.draw) + self.alone


def read_rates(folder: Path | None = None) -> dict[str, dict[str, Any]]:
    """Return domain -> content of its file of rates, for those that have one."""
    paths = sorted((folder or datasets_dir()).glob(f"*/{RATES}"))
    return {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def split_costs(
    card: Card, rates: Mapping[str, Mapping[str, Any]], labeller: str | None = None
) -> list[SplitCost] | None:
    """Return the costs of all splits of a dataset, or of their labels; None where one is not measured.

    Rates of another version of the card do not count.
    """
    all_costs = [_split_cost(card, name, rates, labeller) for name in card.all_splits]
    costs = [cost for cost in all_costs if cost is not None]
    return costs if len(costs) == len(all_costs) else None


def _split_cost(
    card: Card, split: str, rates: Mapping[str, Mapping[str, Any]], labeller: str | None
) -> SplitCost | None:
    measured = rates.get(card.domain, {}).get("rates", {}).get(card.id.split("/", 1)[1])
    if measured is None or measured["version"] != card.version:
        return None
    of_splits = measured["splits"] if labeller is None else measured.get("labels", {}).get(labeller, {})
    if split not in of_splits:
        return None
    rate = of_splits[split]
    return SplitCost(card.split(split).count, rate["shard"], rate["draw"], rate["join"], rate["bytes"])


def seconds_to_draw(card: Card, split: str, limit: int | None = None) -> float | None:
    """Return the processor seconds that the samples of a split and their labels cost; None if they are not measured.

    Args:
        card: The card, of any draw.
        split: Name of the split.
        limit: Number of its first samples; None for all.
    """
    rates, total = read_rates(), 0.0
    for labeller in (None, *card.labellers):
        cost = _split_cost(card, split, rates, labeller)
        if cost is None:
            return None
        count = cost.count if limit is None else min(limit, cost.count)
        total += count * (cost.draw + cost.join)
    return total
