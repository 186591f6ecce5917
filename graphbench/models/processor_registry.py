"""The registry of processors, by name and by kind of input. This module loads no torch.

======== ================================================= ====================================================
consumes base class                                        map
======== ================================================= ====================================================
sparse   :class:`graphbench.models.processors.Processor`   node and arc vectors of a batch of graphs to the same
dense    :class:`graphbench.models.trajectory.processors.\
DenseProcessor`                                            node, pair and graph vectors of a step to node vectors
tokens   (no built-in one)                                 sequences of tokens
======== ================================================= ====================================================
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, TypeVar, get_args

from graphbench.core.errors import PluginError, UnknownModel
from graphbench.core.plugins import BUILT_IN, about_broken, owner_of
from graphbench.core.registry import Registry
from graphbench.core.suggestions import closest

Consumes = Literal["sparse", "dense", "tokens"]

_REGISTRIES: dict[str, Registry[type[Any]]] = {kind: Registry("processor", UnknownModel) for kind in get_args(Consumes)}
"""Kind of input -> the registry of the processors that consume it."""

_BUILT_IN = ("graphbench.models.processors", "graphbench.models.trajectory.processors")
"""Packages that register the built-in processors; the first look-up or registration of a name imports them."""

_P = TypeVar("_P", bound=type[Any])


def register_processor(name: str, consumes: Consumes = "sparse") -> Callable[[_P], _P]:
    """Return a class decorator that registers a processor under a name for the configurations of models.

    One name may stand for several classes, one for each kind of input.

    Args:
        name: The name.
        consumes: The kind of input: ``sparse`` graphs, ``dense`` pairs of nodes, or ``tokens``.

    Raises:
        PluginError: If another class already has the name, or the kind of input is unknown.
    """
    if consumes not in _REGISTRIES:
        raise PluginError(f"consumes={consumes!r} is unknown; a processor consumes {' or '.join(_REGISTRIES)}")

    def register(cls: _P) -> _P:
        if owner_of(cls.__module__) != BUILT_IN:
            _import_built_in()
        registry = _REGISTRIES[consumes]
        if registry.owner(name) is not None and _path_of(registry[name]) != _path_of(cls):
            raise PluginError(
                f"processor name {name!r} is taken by {'.'.join(_path_of(registry[name]))}; choose another"
            )
        registry.add(name, cls, cls.__module__)
        return cls

    return register


def processor_class(name: str, *consumes: Consumes) -> type[Any]:
    """Return the class of a processor for the first of the given kinds of input that the processor consumes.

    Args:
        name: Name of the processor.
        consumes: The kinds of input that a model can feed, in order of preference.

    Raises:
        UnknownModel: If no processor has the name, or no processor of that name consumes an input that the model feeds.
    """
    forms = processor_forms(name)
    if not forms:
        names = processor_names(*consumes)
        raise UnknownModel(
            f"unknown processor {name!r}{closest(name, names)} (known: {', '.join(names)}; register_processor adds a "
            f"new one){about_broken()}"
        )
    for kind in consumes:
        if kind in forms:
            return _REGISTRIES[kind][name]
    raise UnknownModel(
        f"the processor {name!r} consumes {' and '.join(forms)} inputs, this kind of model feeds "
        f"{' or '.join(consumes)}; choose one of {', '.join(processor_names(*consumes))}, or another kind of model"
    )


def processor_forms(name: str) -> list[str]:
    """Return the kinds of input that the processors with a name consume; empty if no processor has the name."""
    _import_built_in()
    return [kind for kind, registry in _REGISTRIES.items() if name in registry]


def processor_names(*consumes: Consumes) -> list[str]:
    """Return the sorted names of the processors that consume one of the given kinds of input."""
    _import_built_in()
    return sorted({name for kind in consumes for name in _REGISTRIES[kind]})


def _import_built_in() -> None:
    for package in _BUILT_IN:
        import_module(package)


def _path_of(cls: type[Any]) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__
