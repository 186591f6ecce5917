"""Data of a run: its dataset, the splits it trains on, validates on and scores, and how many samples of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphbench.catalog.cards import Card
from graphbench.catalog.names import Selector, catalog
from graphbench.core.errors import ConfigError
from graphbench.training.config import RunConfig

if TYPE_CHECKING:
    from graphbench.data.dataset import GraphDataset
    from graphbench.loader import Splits


def card_of(dataset: str | None, data: Splits | None, data_seed: int | None = None) -> Card:
    """Return the card of a dataset that is named, loaded already, or both.

    Args:
        dataset: Id or alias.
        data: The loaded dataset.
        data_seed: Which draw; None for that of ``data``, else the canonical one.

    Raises:
        UnknownDataset: If no dataset has that name.
        CardError: If ``data_seed`` is not a whole number from 0 on.
        ConfigError: If nothing or a group is named, or the two are different datasets or draws.
    """
    if data is None:
        if dataset is None:
            raise ConfigError("neither dataset nor data is given; name a dataset, e.g. train('algoreas/mst_easy')")
        return _single_card(dataset).with_data_seed(data_seed or 0)
    own = data.card
    if data_seed not in (None, own.data_seed):
        raise ConfigError(f"data_seed={data_seed} is given, but data are of data seed {own.data_seed}; leave it out")
    names = (own.address, *(own.aliases if own.task_name is None else ()))
    if dataset is not None and dataset not in names and _single_card(dataset).address != own.address:
        raise ConfigError(f"the dataset {dataset!r} is not the one of data, {own.address}; leave one of the two out")
    return own


def _single_card(dataset: Selector) -> Card:
    ids = catalog().resolve(dataset)
    if len(ids) == 1:
        return catalog().card(ids[0])
    if all(catalog().card(id_).hints for id_ in ids):
        remedy = "graphbench.train_together, or `graphbench train` with a group, trains one model on all of them"
    else:
        remedy = "train them one after the other"
    raise ConfigError(f"train takes one dataset, {dataset!r} stands for {len(ids)}; {remedy}")


def split_names(card: Card, names: str | Sequence[str] | None) -> list[str]:
    """Return the splits that names stand for, each once.

    ``ood`` stands for every out-of-distribution split; None and ``none`` alone for no split.

    Raises:
        ConfigError: If a split does not exist.
    """
    found: dict[str, None] = {}
    listed = [names] if isinstance(names, str) else list(names or ())
    for name in [] if listed == ["none"] else listed:
        if name not in ("ood", *card.all_splits):
            known = ", ".join(card.all_splits)
            raise ConfigError(f"unknown split {name!r}; {card.address} has {known}, and ood for all shifted ones")
        found |= dict.fromkeys(card.ood if name == "ood" else [name])
    return list(found)


def choose_splits(data: Splits, names: str | Sequence[str]) -> dict[str, GraphDataset]:
    """Return splits by name, with labels, generated if they are not there yet. See :func:`split_names`."""
    return {name: data.labelled(name) for name in split_names(data.card, names)}


def require_own_splits(config: RunConfig, card: Card) -> None:
    """Refuse to train or to select models on a split that is there for something else.

    Raises:
        ConfigError: If ``training.train_split`` is no training split of the card, or ``training.val_split`` none for
            validation.
    """
    for key, kind in (("train_split", "train"), ("val_split", "val")):
        chosen = getattr(config.training, key)
        fitting = [name for name in card.all_splits if name == kind or (card.hints and name.startswith(f"{kind}_"))]
        if chosen not in fitting:
            raise ConfigError(
                f"training.{key}={chosen} is refused: {card.address} has {' and '.join(fitting) or 'none'} for that; "
                "scores on data that were trained on or selected by say nothing"
            )


def split_limits(
    config: RunConfig, card: Card, limit: int | None, eval_limit: int | None, val_limit: int | None = None
) -> dict[str, int] | None:
    """Return split -> most samples, or None where all are taken.

    ``limit`` is for all splits, ``val_limit`` for the one validated on, ``eval_limit`` for all that the run neither
    trains nor validates on.
    """
    own = {config.training.val_split: val_limit, config.training.train_split: None}
    wanted = {s: [n for n in (limit, own.get(s, eval_limit)) if n is not None] for s in card.all_splits}
    return {split: min(numbers) for split, numbers in wanted.items() if numbers} or None
