"""Which dataset a folder of published files stands for, and which of its files which split holds, by their tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from graphbench.catalog.cards import Card
from graphbench.catalog.names import catalog
from graphbench.core.errors import StoreError
from graphbench.domains.clutrr.official import published_tasks

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
        f"{folder} holds training puzzles of the tasks {listed(train)} and test puzzles of {listed(test)}; {card.id} "
        f"is trained on {listed(own)} and tested on {listed(_of_splits(card, card.ood))}; {remedy}"
    )


def splits_of_parts(card: Card, tasks: Mapping[str, str], folder: Path) -> dict[str, tuple[str, ...]]:
    """Return split -> the test parts of a folder that it holds.

    ``test`` and the out-of-distribution splits of the card come first, each with the parts of its own tasks. A part
    that is no such split alone is one more split, under its own name.

    Args:
        card: The dataset that the files stand for.
        tasks: Part -> its task: ``k2`` -> 1.2, ``supporting_k3`` -> 2.3.
        folder: Where the files lie, for the message.

    Raises:
        StoreError: If no part is of a task of ``test``.
    """
    wanted = {split: _of_splits(card, [split]) for split in ("test", *card.ood)}
    held = {split: tuple(part for part, task in tasks.items() if task in own) for split, own in wanted.items()}
    if not held["test"]:
        raise StoreError(
            f"{folder} has no test file of the tasks {listed(wanted['test'])}, which are the test split of {card.id}; "
            "take the folder as published"
        )
    alone = {parts for split, parts in held.items() if split != "test" and len(parts) == 1}
    return {
        **{split: parts for split, parts in held.items() if parts},
        **{part: (part,) for part in tasks if (part,) not in alone},
    }


def missing_tasks(card: Card, tasks: Iterable[str]) -> str:
    """Return the test tasks of a dataset's published files that are not among ``tasks``, in words; empty if none.

    The files test the tasks that are trained on, and of every shift the longest paths.
    """
    shifted = [_of_splits(card, [split]) for split in card.ood]
    published = _of_splits(card, ["train"]).union(max(own, key=_numbers) for own in shifted)
    return listed(published - set(tasks))


def listed(tasks: Iterable[str]) -> str:
    """Return tasks in their order: ``1.2, 1.3, 1.10``."""
    return ", ".join(sorted(tasks, key=_numbers))


def _of_splits(card: Card, splits: Iterable[str]) -> Tasks:
    """Return the published names of what splits of generated puzzles hold: 2.3 is three facts, supporting noise."""
    found = set()
    for split in splits:
        parameters = card.split(split).parameters
        noise = _NOISE_OF_TASK[parameters.get("noise", "none")]
        found |= {f"{noise}.{k}" for k in parameters["lengths"]}
    return frozenset(found)


def _numbers(task: str) -> list[int]:
    return [int(number) for number in task.split(".")]
