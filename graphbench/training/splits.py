"""Data of a run: its dataset, the splits it trains on, validates on and scores, and how many samples of each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from graphbench.catalog.cards import Card
from graphbench.catalog.names import Selector, catalog
from graphbench.core.arguments import whole_number
from graphbench.core.errors import ConfigError
from graphbench.training.config import RunConfig

if TYPE_CHECKING:
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.loader import Splits
    from graphbench.tasks.base import Task


def cards_of(
    dataset: Selector | None, data: Splits | Mapping[str, Splits] | None, data_seed: int | None = None
) -> tuple[dict[str, Card], bool, str]:
    """Return the cards of the datasets of a run, whether several were asked for, and the name of the group.

    Args:
        dataset: An id or alias; a list, group or glob for several datasets.
        data: The loaded dataset, or a mapping id -> loaded dataset.
        data_seed: Which draw; None for the draw of ``data``, else the canonical one.

    Raises:
        UnknownDataset: If no dataset has that name.
        CardError: If ``data_seed`` is not a whole number from 0 on.
        ConfigError: If nothing is named, or the two are different datasets or draws.
    """
    if data is None:
        if dataset is None:
            raise ConfigError("neither dataset nor data is given; name a dataset, e.g. train('algoreas/mst_easy')")
        ids = catalog().resolve(dataset)
        cards = [catalog().card(id_).with_data_seed(data_seed or 0) for id_ in ids]
        return {card.address: card for card in cards}, not catalog().is_single(dataset), _group_name(dataset, ids)
    loaded = data if isinstance(data, Mapping) else {data.card.address: data}
    if not loaded:
        raise ConfigError("data is an empty mapping; give id -> loaded dataset")
    loaded_cards = {splits.card.address: splits.card for splits in loaded.values()}
    for card in loaded_cards.values():
        if data_seed not in (None, card.data_seed):
            raise ConfigError(
                f"data_seed={data_seed} is given, but data are of data seed {card.data_seed}; leave it out"
            )
    if dataset is not None:
        _require_same(dataset, loaded_cards)
    return loaded_cards, isinstance(data, Mapping), _group_name(list(loaded_cards), list(loaded_cards))


def _require_same(dataset: Selector, cards: Mapping[str, Card]) -> None:
    """Refuse a name that stands for other datasets than the given ones."""
    if len(cards) == 1 and isinstance(dataset, str):
        (card,) = cards.values()
        if dataset in (card.address, *(card.aliases if card.task_name is None else ())):
            return  # a card that is in no catalogue
    wanted = [catalog().card(id_).address for id_ in catalog().resolve(dataset)]
    if wanted != list(cards):
        raise ConfigError(
            f"the dataset {dataset!r} is not the one of data, {', '.join(cards)}; leave one of the two out"
        )


def _group_name(dataset: Selector, ids: Sequence[str]) -> str:
    """Return the name that a folder has for several datasets."""
    if isinstance(dataset, str) and dataset.isidentifier():
        return dataset
    return f"{ids[0].replace('/', '-').replace(':', '-')}-and-more"


def choose_splits(data: Splits, names: str | Sequence[str], others: Collection[str] = ()) -> dict[str, GraphDataset]:
    """Return splits by name, with labels, generated if they are not there yet. See ``Card.select_splits``."""
    return {name: data.labelled(name) for name in data.card.select_splits(names, others)}


def validate_train_val_splits(config: RunConfig, task: Task) -> None:
    """Refuse to train or to select models on a split that is there for something else.

    Raises:
        ConfigError: If ``training.train_split`` is no training split of the dataset, or ``training.val_split`` none for
            validation, or ``training.train_limit`` limits data that are drawn while training.
    """
    for key, role in (("train_split", "train"), ("val_split", "val")):
        chosen, fitting = getattr(config.training, key), task.splits_for(role)
        if chosen not in task.card.all_splits:
            raise ConfigError(
                f"training.{key}={chosen}: {task.card.address} has no split of this name; set it to "
                f"{' or '.join(fitting) or 'none'}"
            )
        if chosen not in fitting:
            raise ConfigError(
                f"training.{key}={chosen} is refused: {task.card.address} has {' and '.join(fitting) or 'none'} for "
                "that; scores on data used for training or model selection are not comparable"
            )
    if config.training.train_limit is not None and not task.is_stored(config.training.train_split):
        raise ConfigError(
            f"training.train_limit={config.training.train_limit} is refused: {config.training.train_split} of "
            f"{task.card.address} is drawn while training and has no number of samples; leave it out"
        )


def require_eval_limit(eval_limit: int | Mapping[str, int] | None, splits: Collection[str]) -> None:
    """Check the most samples that are scored.

    Raises:
        ConfigError: If a number is below 1, or ``eval_limit`` names a split that is not in ``splits``.
    """
    for split, number in eval_limit.items() if isinstance(eval_limit, Mapping) else ():
        if split not in splits:
            raise ConfigError(f"eval_limit names {split!r}, which is no split; the splits are {', '.join(splits)}")
        whole_number(f"eval_limit of {split}", number, 1, error=ConfigError)
    if eval_limit is not None and not isinstance(eval_limit, Mapping):
        whole_number("eval_limit", eval_limit, 1, error=ConfigError)


def split_limits(
    config: RunConfig,
    task: Task,
    limit: int | None,
    eval_limit: int | Mapping[str, int] | None,
    val_limit: int | None = None,
) -> dict[str, int] | None:
    """Return split -> most samples, or None where all are taken.

    ``limit`` is for all splits, ``val_limit`` for the one validated on, ``training.train_limit`` for the one trained
    on, ``eval_limit`` for all others but ``train`` and ``val``, or for the splits that it names.
    """
    others = [split for split in task.card.all_splits if split not in ("train", "val")]
    named = dict.fromkeys(others, eval_limit) if isinstance(eval_limit, int) else dict(eval_limit or {})
    limits = {config.training.val_split: val_limit, config.training.train_split: config.training.train_limit}
    wanted = {s: [n for n in (limit, limits.get(s, named.get(s))) if n is not None] for s in task.card.all_splits}
    return {split: min(numbers) for split, numbers in wanted.items() if numbers} or None
