"""Resolve names of datasets: ids, aliases, groups, globs, and suggestions for misspelt names."""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from graphbench.catalog.cards import Card
from graphbench.catalog.families import MEASURED_FOLDER, load_family
from graphbench.catalog.resources import OWN, DataFolder, data_folders
from graphbench.core.errors import ArgumentError, CardError, UnknownDataset
from graphbench.core.plugins import BUILT_IN, about_broken, blaming
from graphbench.core.suggestions import did_you_mean, nearest
from graphbench.core.words import first_of

logger = logging.getLogger(__name__)

Selector = str | Sequence[str]
_MAX_SUGGESTIONS = 4


class Catalog:
    """All cards, by id, with their aliases, groups and families."""

    def __init__(self, cards: Iterable[Card]) -> None:
        self.cards: dict[str, Card] = {}
        self.aliases: dict[str, str] = {}
        self.groups: dict[str, list[str]] = {}
        self.families: dict[str, dict[str, list[str]]] = {}  # family -> domain -> ids
        for card in cards:
            self._add(card)
        for group in self.groups:
            if group in self.cards or group in self.aliases:
                raise CardError(f"{group!r} names a group and also {self.resolve(group)[0]!r}; rename one of them")

    def _add(self, card: Card) -> None:
        if card.id in self.cards or card.id in self.aliases:
            other = self.cards.get(card.id) or self.cards[self.aliases[card.id]]
            raise CardError(f"two cards carry the name {card.id!r}: {other.path} and {card.path}")
        self.cards[card.id] = card
        for alias in card.aliases:
            if alias in self.aliases or alias in self.cards:
                raise CardError(f"{card.path}: the alias {alias!r} is taken by {self.aliases.get(alias, alias)}")
            self.aliases[alias] = card.id
        for group in card.all_groups:
            self.groups.setdefault(group, []).append(card.id)
        self.families.setdefault(card.family, {}).setdefault(card.domain, []).append(card.id)

    def resolve(self, selector: Selector) -> list[str]:
        """Return the datasets that a selector matches, without repeats, in the selector's order.

        Args:
            selector: An id, alias, group, family such as ``algoreas/mst`` (all its variants; ``mst`` where one domain
                alone has this family), glob such as ``algoreas/*_easy``, or a list of these. Each may be followed by
                ``:<task>``, a task or a glob over the tasks of the cards, and by ``@<representation>``.

        Returns:
            Ids, as ``<id>:<task>`` if tasks were named, and followed by ``@<representation>`` if one was named.

        Raises:
            UnknownDataset: If a part of the selector matches nothing; the message suggests the nearest name.
            ArgumentError: If the selector is neither a string nor a list of strings.
        """
        if not isinstance(selector, str):
            if not isinstance(selector, Iterable) or isinstance(selector, bytes):
                raise ArgumentError(
                    f"a dataset is named by a string such as 'algoreas/mst_easy' or a list of these, got {selector!r}"
                )
            ids = [id_of_part for part in selector for id_of_part in self.resolve(part)]
            if not ids:
                raise UnknownDataset("the list of datasets is empty; name at least one (`graphbench list`)")
            return list(dict.fromkeys(ids))
        whole, at, representation = selector.strip().partition("@")
        name, colon, task = whole.partition(":")
        ids = self._ids(name, colon + task + at + representation)
        addresses = self._addresses(ids, task, self.is_single(name)) if colon else ids
        if at:
            for address in addresses:
                self.card(address).with_representation(representation)
        return [address + at + representation for address in addresses]

    def card(self, name: str) -> Card:
        """Return the card of a name that :meth:`resolve` returned.

        Raises:
            UnknownDataset: If the card lacks the named task or representation.
        """
        whole, _, representation = name.partition("@")
        id_, _, task = whole.partition(":")
        card = self.cards[id_].with_task(task) if task else self.cards[id_]
        return card.with_representation(representation) if representation else card

    def _addresses(self, ids: Sequence[str], task: str, single: bool) -> list[str]:
        """Return ``id:task`` for all tasks that a name or glob matches; a single dataset must have the named task."""
        if single and not _is_glob(task):
            return [self.cards[ids[0]].with_task(task).address]
        addresses = [f"{id_}:{name}" for id_ in ids for name in fnmatch.filter(self.cards[id_].tasks, task)]
        if not addresses:
            tasks = dict.fromkeys(name for id_ in ids for name in self.cards[id_].tasks)
            raise UnknownDataset(
                f"no task {task!r} of {', '.join(ids[:3])}{', ...' * (len(ids) > 3)}; "
                f"{'there are ' + ', '.join(tasks) if tasks else 'these datasets have no tasks'}"
            )
        return addresses

    def _ids(self, name: str, ending: str) -> list[str]:
        """Return the ids that a name without its task matches; ``ending`` is the rest of the user's text."""
        if name in self.cards:
            return [name]
        if name in self.aliases:
            return [self.aliases[name]]
        if name in self.groups:
            return list(self.groups[name])
        if variants := self._variants(name):
            return variants
        if _is_glob(name):
            matches = [id_ for id_ in self.cards if fnmatch.fnmatchcase(id_, name)]
            if matches:
                return matches
        raise UnknownDataset(self._unknown(name, ending))

    def _variants(self, name: str) -> list[str]:
        """Return the ids of a family's variants, named with or without its domain; none if the name is ambiguous."""
        domain, _, family = name.rpartition("/")
        domains = self.families.get(family, {})
        if not domain and len(domains) == 1:
            domain = next(iter(domains))
        return [id_ for id_ in domains.get(domain, ()) if id_ != f"{domain}/{family}"]

    def is_single(self, selector: Selector) -> bool:
        """Return whether a selector is the id or an alias of one dataset, not a group, glob or list."""
        if not isinstance(selector, str):
            return False
        name, _, task = selector.strip().partition("@")[0].partition(":")
        return (name in self.cards or name in self.aliases) and not _is_glob(task)

    def _unknown(self, name: str, ending: str) -> str:
        if _is_glob(name):
            hint = self._pattern_hint(name)
        else:
            near = [f"{domain}/{name}" for domain in self.families.get(name, ())] or self._nearest(name)
            hint = did_you_mean([candidate + ending for candidate in near])
        domain = name.split("/", 1)[0]
        if domain in self.groups:
            listed = sum(card.domain == domain for card in self.cards.values())
            shown = f"graphbench list '{domain}/*' shows {listed}"
        else:
            shown = f"graphbench list shows {len(self.cards)}"
        return f"unknown dataset {name!r}{hint} ({shown}){about_broken()}"

    def _pattern_hint(self, pattern: str) -> str:
        """Return the advice for a glob that matches no dataset; the nearest single name would not help."""
        if "[" in pattern and "]" not in pattern[pattern.rindex("[") :]:
            return "; close its bracket, as in '[ab]'"
        if fnmatch.filter(self.cards, f"*/{pattern}"):
            return f"; did you mean '*/{pattern}'? Ids begin with their domain"
        return "; no dataset matches this pattern"

    def _nearest(self, name: str) -> list[str]:
        families = [f"{domain}/{family}" for family, domains in self.families.items() for domain in domains]
        near = nearest(name, (*self.cards, *self.aliases, *self.groups, *families))
        variants = self._variants(near[0]) if near and name.startswith(f"{near[0]}_") else []
        return nearest(name, variants, _MAX_SUGGESTIONS, cutoff=0) or near


def _is_glob(name: str) -> bool:
    return any(mark in name for mark in "*?[")


def catalog() -> Catalog:
    """Return the catalogue of all cards: of the package, of registered folders, and the user's own; read once.

    Raises:
        CardError: If a card is malformed or has a name that is taken; a plug-in's cards are then left out as a whole.
    """
    return _catalog(data_folders("datasets"))


@lru_cache(maxsize=2)
def _catalog(folders: tuple[DataFolder, ...]) -> Catalog:
    merged = Catalog(())
    for folder in folders:
        if folder.owner == OWN:
            merged = _with_own_cards(merged, folder.path)
            continue
        with blaming(folder.owner):
            cards = _cards_of_package(folder.path) if folder.owner == BUILT_IN else _cards_in(folder.path)
            merged = Catalog((*merged.cards.values(), *cards))
    return merged


def _card_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*/*.yaml")) if path.parent.name != MEASURED_FOLDER]


def _cards_in(folder: Path) -> tuple[Card, ...]:
    return tuple(card for path in _card_files(folder) for card in load_family(path))


@lru_cache(maxsize=2)
def _cards_of_package(folder: Path) -> tuple[Card, ...]:
    """Return the cards of the package, which are read once, however often datasets of the user's own come and go."""
    return _cards_in(folder)


def _with_own_cards(merged: Catalog, folder: Path) -> Catalog:
    """Return the catalogue with the user's own cards; a wrong one is left out with a warning, and stops nothing."""
    for path in _card_files(folder):
        try:
            merged = Catalog((*merged.cards.values(), *load_family(path)))
        except CardError as error:
            logger.warning("a dataset of your own is left out: %s", error)
    return merged


def list_datasets(selector: Selector | None = None) -> list[str]:
    """Return the ids of all datasets, or of the datasets that a selector matches.

    Args:
        selector: An id, alias, group, family, glob, or a list of these; None for all. With the suffix
            ``:<task>`` (a task, or a glob as in ``co/*:*``) the result has ``<id>:<task>``, likewise with
            ``@<representation>``.
    """
    return list(catalog().cards) if selector is None else catalog().resolve(selector)


def card(name: str) -> Card:
    """Return the card of one dataset.

    Args:
        name: An id or an alias, followed by ``:<task>`` for another task than the card's first, and by
            ``@<representation>`` for another representation of the graphs than the stored one.

    Raises:
        UnknownDataset: If no dataset, or more than one, has that name, or the dataset lacks the task or representation.
    """
    ids = catalog().resolve(name)
    if len(ids) != 1:
        raise UnknownDataset(f"{name!r} stands for {len(ids)} datasets ({first_of(ids, 3)}); name one")
    return catalog().card(ids[0])
