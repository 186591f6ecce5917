"""A registry: things by name, of this package, of plug-ins and of scripts, without two of one name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from graphbench.core.errors import PluginError, UnknownName
from graphbench.core.plugins import about_broken, load_plugins, on_broken, owner_in_words, owner_of
from graphbench.core.suggestions import closest

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """Things of one kind by name, a mapping that others may add to.

    Args:
        kind: What they are called in messages, e.g. ``metric``.
        error: Class of the error that :meth:`find` raises.
    """

    def __init__(self, kind: str, error: type[Exception] = UnknownName) -> None:
        self.kind, self.error = kind, error
        self._entries: dict[str, tuple[T, str]] = {}  # name -> thing, owner
        on_broken(self._forget)

    def add(self, name: str, thing: T, module: str) -> None:
        """Register a thing; its owner may register another one in its place.

        Args:
            name: Its name.
            thing: The thing.
            module: Name of the module that brings it (:func:`graphbench.core.plugins.calling_module`).

        Raises:
            PluginError: If somebody else has registered a thing of that name.
        """
        owner = owner_of(module)
        taken = self.owner(name)
        if taken not in (None, owner):
            raise PluginError(
                f"{owner_in_words(owner)} registers the {self.kind} {name!r}, which {owner_in_words(str(taken))} has "
                "registered already; choose another name"
            )
        self._entries[name] = (thing, owner)

    def owner(self, name: str) -> str | None:
        """Return who registered a name; None where nobody has, as far as plug-ins are loaded."""
        return self._entries[name][1] if name in self._entries else None

    def find(self, name: str) -> T:
        """Return the thing of a name; plug-ins are loaded where it is not known yet.

        Raises:
            UnknownName: If there is none (or another class, see ``error``); the message suggests the nearest name, and
                names broken plug-ins.
        """
        if name in self:
            return self._entries[name][0]
        raise self.error(
            f"unknown {self.kind} {name!r}{closest(name, self._entries)} "
            f"(known: {', '.join(sorted(self._entries)) or 'none'}){about_broken()}"
        )

    def __getitem__(self, name: str) -> T:
        """Return the thing of a name, as a mapping does: ``KeyError`` where there is none."""
        if name not in self:
            raise KeyError(name)
        return self._entries[name][0]

    def __contains__(self, name: object) -> bool:
        """Return whether there is a thing of that name; plug-ins are loaded where it is not known yet."""
        if name not in self._entries:
            load_plugins()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        """Yield all names, those of plug-ins included."""
        load_plugins()
        return iter(tuple(self._entries))

    def __len__(self) -> int:
        """Return the number of things, those of plug-ins included."""
        load_plugins()
        return len(self._entries)

    def registered(self) -> Iterator[tuple[str, T, str]]:
        """Yield name, thing and owner of what is registered so far; no plug-in is loaded for it."""
        for name, (thing, owner) in tuple(self._entries.items()):
            yield name, thing, owner

    def owned(self) -> Iterator[tuple[str, T, str]]:
        """Yield name, thing and owner of all there are, those of plug-ins included, in the order of registration."""
        load_plugins()
        yield from self.registered()

    def remove(self, name: str) -> None:
        """Remove a thing; nothing happens where there is none."""
        self._entries.pop(name, None)

    def _forget(self, owner: str) -> None:
        for name in [name for name, (_, of) in self._entries.items() if of == owner]:
            del self._entries[name]
