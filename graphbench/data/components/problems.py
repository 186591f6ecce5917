"""Combinatorial problems: the functions of a domain that decode, check and score solutions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import ConfigError, DecodingError
from graphbench.core.suggestions import closest

Array = NDArray[Any]


class Graphs(Protocol):
    """The checked graphs of a batch; other attributes are specific to the problem."""

    def __len__(self) -> int:
        """Return the number of graphs."""


@dataclass(frozen=True)
class Problem:
    """One problem.

    Attributes:
        name: ``<domain>.<name>``, as cards write it.
        objective: The metric of the objective.
        maximise: Whether larger objectives are better.
        output: The type of a solution, as cards write it.
        value: Field of the graphs with the objective of the best known solution; -1 where a graph has none.
        bound: Field with the proved bound of the objective; -1 where a graph has none.
        fields: Further fields of a batch that :attr:`checked` uses if the batch has them.
        searches: Method -> ``(graphs, seed, **options) -> solution``: searches that learn nothing; the defaults of
            their keyword arguments are the defaults of their options.
        rules: The searches that draw no random number, so that no seed changes a solution.
        checked: ``(ptr, edge_index, fields) -> graphs`` of a batch: int64 ``[G + 1]``, the first node of each graph;
            int64 ``[2, E]``; and the named fields that the batch has. Raises ``DecodingError`` for graphs on
            which the problem is not defined.
        decode: ``(graphs, scores, **options) -> solution``: feasible solutions made from a model's scores, int32 with
            one row per item; the defaults of its keyword arguments are the defaults of the options.
        check_options: ``(**options) -> None``: raises ``DecodingError`` for an invalid value.
        objectives: ``(graphs, solution) -> int64 [G]``: the objectives of feasible solutions; raises ``DecodingError``
            for an infeasible one. It shares no code with :attr:`decode`.
        surrogate: Name of the loss that trains without solutions (``graphbench.models.surrogates``), or None.
    """

    name: str
    objective: str
    maximise: bool
    output: tuple[str, str, str]
    value: str
    bound: str
    checked: Callable[[Array, Array, Mapping[str, Array]], Any]
    decode: Callable[..., NDArray[np.int32]]
    check_options: Callable[..., None]
    objectives: Callable[[Any, Array], NDArray[np.int64]]
    surrogate: str | None = None
    fields: tuple[str, ...] = ()
    searches: Mapping[str, Callable[..., NDArray[np.int32]]] = field(default_factory=dict)
    rules: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse rules that are no searches."""
        if unknown := sorted(self.rules - self.searches.keys()):
            raise ConfigError(f"the problem {self.name} has no search {unknown[0]!r}, which its rules name")

    @property
    def short_name(self) -> str:
        """The name without the domain."""
        return self.name.partition(".")[2]

    @property
    def options(self) -> Mapping[str, Any]:
        """Option of the decoder -> its default."""
        return _defaults(self.decode)

    def require_options(self, options: Mapping[str, Any]) -> None:
        """Refuse options that the decoder does not have, and values that it does not take.

        Raises:
            DecodingError: If there is one; the message names it.
        """
        fault = _unknown_option(options, self.options)
        if fault:
            raise DecodingError(f"the decoder of {self.short_name} {fault}")
        self.check_options(**options)

    def search(self, method: str, options: Mapping[str, Any]) -> Callable[..., NDArray[np.int32]]:
        """Return a search of the problem with its options, ``(graphs, seed) -> solution``.

        Args:
            method: Its name.
            options: Options for it, which are checked: whole numbers from 1 on where the default is one, and numbers
                above 0 elsewhere.

        Raises:
            ConfigError: If the problem has no such search, or the search no such option or value.
        """
        if method not in self.searches:
            hint = closest(method, self.searches) or f"; it has {', '.join(self.searches) or 'none'}"
            raise ConfigError(f"the problem {self.short_name} has no search {method!r}{hint}")
        defaults = _defaults(self.searches[method])
        fault = _unknown_option(options, defaults)
        if fault:
            raise ConfigError(f"the search {method} of {self.short_name} {fault}")
        for name, value in options.items():
            whole = isinstance(defaults[name], int)
            if isinstance(value, bool) or not 0 < value < float("inf") or (whole and value != int(value)):
                wanted = "a whole number from 1 on" if whole else "a number above 0"
                raise ConfigError(f"model.options.{name} is {value!r}; give {wanted}")
        return partial(self.searches[method], **{name: type(defaults[name])(value) for name, value in options.items()})


def _defaults(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the defaults of a function's keyword arguments; of a wrapped function, the ones of the function inside."""
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is not p.empty}


def _unknown_option(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """Return which option has no default, in words; empty if all of them have one."""
    unknown = sorted(set(options) - set(defaults))
    if not unknown:
        return ""
    hint = closest(unknown[0], defaults) or f"; it has {', '.join(defaults) or 'none'}"
    return f"has no option {unknown[0]!r}{hint}"
