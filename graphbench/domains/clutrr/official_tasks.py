"""Which dataset a folder of published files stands for, by the tasks that it trains and tests on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from graphbench.catalog.cards import Card
from graphbench.catalog.names import catalog
from graphbench.domains.clutrr.official import published_tasks
from graphbench.errors import StoreError

_NOISE_OF_TASK = {"none": 1, "supporting": 2, "irrelevant": 3, "disconnected": 4}
Tasks = frozenset[str]


def require_own_tasks(card: Card, folder: Path) -> None:
    """Raise if published files stand for another dataset than the one asked for.

    The training tasks must be those of the dataset. Where it shares them with others, whose files differ by their test
    tasks alone, these decide.

    Args:
        card: The dataset asked for.
        folder: Where the files lie.

    Raises:
        StoreError: If they stand for another dataset; the message names it.
    """
    train, test = published_tasks(folder).values()
    all_cards = catalog().cards.values()
    cards = [other for other in all_cards if (other.domain, other.generator) == (card.domain, card.generator)]
    trained = [other for other in cards if train == _of_splits(other, ["train"])]
    fitting = [other for other in trained if test <= _of_splits(other, other.ood)] or trained
    if card.id in [other.id for other in fitting]:
        return
    names = " or ".join(other.id for other in fitting)
    remedy = f"the folder stands for {names}: load it as that" if names else "the folder stands for no dataset of ours"
    own = _of_splits(card, ["train"])
    raise StoreError(
        f"{folder} holds training puzzles of the tasks {_listed(train)} and test puzzles of {_listed(test)}; {card.id} "
        f"is trained on {_listed(own)} and tested on {_listed(_of_splits(card, card.ood))}; {remedy}"
    )


def _of_splits(card: Card, splits: Iterable[str]) -> Tasks:
    """Return the published names of what splits of generated puzzles hold: 2.3 is three facts, supporting noise."""
    found = set()
    for split in splits:
        parameters = card.split(split).parameters
        noise = _NOISE_OF_TASK[parameters.get("noise", "none")]
        found |= {f"{noise}.{k}" for k in parameters["lengths"]}
    return frozenset(found)


def _listed(tasks: Tasks) -> str:
    return ", ".join(sorted(tasks, key=lambda task: [int(number) for number in task.split(".")]))
