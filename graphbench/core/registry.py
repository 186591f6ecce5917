"""A registry of named objects of this package, of plug-ins and of scripts; every name is unique."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from graphbench.core.errors import PluginError, UnknownName
from graphbench.core.foreign import class_name, text_of
from graphbench.core.plugins import BUILT_IN, about_broken, load_plugins, on_broken, owner_in_words, owner_of
from graphbench.core.suggestions import closest
from graphbench.core.untrusted import text_fault

_MOST_OF_A_NAME = 200  # characters
T = TypeVar("T")

_REGISTRIES: WeakValueDictionary[int, Registry[Any]] = WeakValueDictionary()


def registries() -> tuple[Registry[Any], ...]:
    """Return all registries of this process."""
    return tuple(_REGISTRIES.values())


class Registry(Mapping[str, T]):
    """Mapping from names to objects of one kind, to which plug-ins and scripts may add.

    Args:
        kind: Name of the kind in messages, e.g. ``metric``.
        error: Class of the error that :meth:`find` raises.
        built_in: Returns name -> ``module:NAME`` of objects of this package that are imported when first needed, or
            ``module:NAME[key]`` of the values of a dictionary.
        typed: Whether people type the names, which must then be printable; False for paths.
    """

    def __init__(
        self,
        kind: str,
        error: type[Exception] = UnknownName,
        built_in: Callable[[], Mapping[str, str]] = dict,
        *,
        typed: bool = True,
    ) -> None:
        self.kind, self.error, self.built_in, self.typed = kind, error, built_in, typed
        self._entries: dict[str, tuple[T, str]] = {}  # name -> thing, owner
        _REGISTRIES[id(self)] = self
        on_broken(self._forget)

    def add(self, name: str, thing: T, module: str) -> None:
        """Register an object, given the name of the :func:`~.plugins.calling_module`; its owner may replace it.

        Raises:
            PluginError: If another owner has registered the name, or it is no text that can be printed on one line.
        """
        owner = owner_of(module)
        if self.typed and (fault := _name_fault(name)):
            raise PluginError(
                f"{owner_in_words(owner)} registers a {self.kind} under the name '{text_of(name, _MOST_OF_A_NAME)}', "
                f"which is {fault}; choose a short name of printable characters"
            )
        taken = self.owner(name)
        if taken not in (None, owner):
            raise PluginError(
                f"{owner_in_words(owner)} registers the {self.kind} {name!r}, which {owner_in_words(str(taken))} has "
                "registered already; choose another name"
            )
        self._entries[name] = (thing, owner)

    def owner(self, name: str) -> str | None:
        """Return the owner of a name; None if it is not registered. No plug-in is loaded for it."""
        if name in self.built_in():
            return BUILT_IN
        return self._entries[name][1] if name in self._entries else None

    def find(self, name: str) -> T:
        """Return the object of a name; plug-ins are loaded if the name is not registered yet.

        Raises:
            UnknownName: If the name is unknown (or another class, see ``error``); the message suggests the nearest name
                and lists broken plug-ins.
        """
        if name in self:
            return self[name]
        raise self.error(
            f"unknown {self.kind} {name!r}{closest(name, self)} "
            f"(known: {', '.join(sorted(self)) or 'none'}){about_broken()}"
        )

    def __getitem__(self, name: str) -> T:
        """Return the object of a name; raise ``KeyError`` if the name is unknown."""
        if name not in self._entries:
            module, _, attribute = self.built_in().get(name, "").partition(":")
            if module:
                attribute, _, key = attribute.removesuffix("]").partition("[")
                loaded: Any = getattr(import_module(module), attribute)
                thing: T = loaded[key] if key else loaded
                return thing
            load_plugins()
        return self._entries[name][0]

    def __contains__(self, name: object) -> bool:
        """Return whether a name is registered; plug-ins are loaded if it is not registered yet."""
        if name in self._entries or name in self.built_in():
            return True
        load_plugins()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        """Yield all names, plug-ins included."""
        load_plugins()
        return iter((*self.built_in(), *self._entries))

    def __len__(self) -> int:
        """Return the number of objects, plug-ins included."""
        load_plugins()
        return len(self.built_in()) + len(self._entries)

    def registered(self) -> Iterator[tuple[str, T, str]]:
        """Yield name, object and owner of every entry that is registered so far, without loading plug-ins."""
        for name, (thing, owner) in tuple(self._entries.items()):
            yield name, thing, owner

    def owned(self) -> Iterator[tuple[str, T, str]]:
        """Yield name, object and owner of all entries, plug-ins included, in the order of registration."""
        load_plugins()
        yield from self.registered()

    def remove(self, name: str) -> None:
        """Remove an entry, if there is one."""
        self._entries.pop(name, None)

    def _forget(self, owner: str) -> None:
        for name in [name for name, (_, of) in self._entries.items() if of == owner]:
            del self._entries[name]


def _name_fault(name: object) -> str | None:
    """Return why a name is refused, or None."""
    if not isinstance(name, str):
        return f"a {class_name(name)}"
    return text_fault(name, _MOST_OF_A_NAME) if name else "empty"
