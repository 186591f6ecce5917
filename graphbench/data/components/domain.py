"""Domains: objects that list generators, labellers, sources, verifiers, environments and other parts of a domain.

A built-in domain is a package ``graphbench.domains.<name>``, which is imported when first needed; its module
``domain`` has the object as ``DOMAIN``. Other domains are registered by a plug-in or a script:
``graphbench.register_domain(Domain(...))``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from graphbench.core.errors import CardError, PluginError
from graphbench.core.plugins import BUILT_IN, calling_module, is_plugin, owner_in_words, place_of
from graphbench.core.registry import Registry
from graphbench.core.suggestions import closest

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.data.components.environments import Builder, Spelling
    from graphbench.data.components.exporters import Exporter
    from graphbench.data.components.field_conventions import FieldConvention
    from graphbench.data.components.file_sources import FileSource
    from graphbench.data.components.generators import Generator, Labeller
    from graphbench.data.components.problems import Problem
    from graphbench.data.components.representations import View
    from graphbench.data.components.rules import Rule
    from graphbench.data.components.topologies import Structure
    from graphbench.data.components.verifiers import Judge

T = TypeVar("T")

Listing = Mapping[str, T] | str
"""Objects by their names in the domain, or ``module:NAME`` of the mapping, which is imported when first needed."""

Kind = Literal[
    "generator",
    "labeller",
    "source",
    "problem",
    "rule",
    "judge",
    "builder",
    "spelling",
    "structure",
    "view",
    "exporter",
    "convention",
]


@dataclass(frozen=True)
class Domain:
    """The parts of a domain; cards name each as ``<domain>.<name>``.

    Attributes:
        name: Name of the domain, an identifier; ids of its datasets begin with it.
        generators: The generators of its datasets.
        labellers: The labellers, which compute costly labels.
        sources: Readers of files (e.g. published files) with samples of its datasets.
        problems: The combinatorial problems that tasks name.
        rules: The trivial predictors that read the inputs of a graph and that tasks name.
        judges: The verifiers of generated structures that tasks name.
        builders: The environments that build structures, which configurations of models name.
        spellings: The tokenizers of structures, which configurations of models name.
        structures: Topologies: graphs that all samples of a dataset share.
        views: Graph representations that are derived from the stored graphs.
        exporters: Formats of other tools that its datasets can be written in.
        conventions: Conventions of the fields that forecast tasks predict.
        words: Parameter of generators -> its label in figures, where the name alone would not be clear.
    """

    name: str
    generators: Listing[Generator] = field(default_factory=dict)
    labellers: Listing[Labeller] = field(default_factory=dict)
    sources: Listing[FileSource] = field(default_factory=dict)
    problems: Listing[Problem] = field(default_factory=dict)
    rules: Listing[Rule] = field(default_factory=dict)
    judges: Listing[Judge] = field(default_factory=dict)
    builders: Listing[Builder] = field(default_factory=dict)
    spellings: Listing[Spelling] = field(default_factory=dict)
    structures: Listing[Structure] = field(default_factory=dict)
    views: Listing[View] = field(default_factory=dict)
    exporters: Listing[Exporter] = field(default_factory=dict)
    conventions: Listing[FieldConvention] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    def parts(self, kind: Kind) -> Mapping[str, Any]:
        """Return the parts of one kind by their names in the domain."""
        listing: Listing[Any] = getattr(self, f"{kind}s")
        if not isinstance(listing, str):
            return listing
        module, _, name = listing.partition(":")
        parts: Mapping[str, Any] = getattr(importlib.import_module(module), name)
        return parts


def _built_in() -> dict[str, str]:
    """Return the domains that are packages of ``graphbench.domains``, and where their objects are."""
    return _packages(tuple(importlib.import_module("graphbench.domains").__path__))


@cache
def _packages(folders: tuple[str, ...]) -> dict[str, str]:
    """Return the packages in the folders; reading a folder takes long, and names are looked up often."""
    names = [module.name for module in pkgutil.iter_modules(folders) if module.ispkg]
    return {name: f"graphbench.domains.{name}.domain:DOMAIN" for name in names}


_DOMAINS: Registry[Domain] = Registry("domain", CardError, _built_in)


def register_domain(domain: Domain) -> Domain:
    """Register a domain of a plug-in or a script, and return it.

    Generation in worker processes needs a domain that they can load: registered by a plug-in, or by a module that they
    can import. Datasets of a domain that a script's main module registers are generated in the script's process.

    Raises:
        PluginError: If the name is no identifier, or another domain has it.
    """
    if not isinstance(domain, Domain):
        raise PluginError(f"register_domain takes a Domain, got {type(domain).__name__}")
    if not domain.name.isidentifier():
        raise PluginError(f"the domain name {domain.name!r} is no identifier; use letters, digits and underscores")
    _DOMAINS.add(domain.name, domain, calling_module())
    return domain


def unregister(name: str) -> None:
    """Remove a registered domain, if there is one of that name."""
    _DOMAINS.remove(name)


def find_domain(name: str) -> Domain:
    """Return a domain by name.

    Raises:
        CardError: If no domain has this name; the message suggests the nearest name.
    """
    return _DOMAINS.find(name)


def list_domains() -> tuple[str, ...]:
    """Return the names of all domains, built-in ones first."""
    return tuple(_DOMAINS)


def domain_module(name: str) -> str | None:
    """Return the module that registered a domain; workers must import it, and cannot import ``__main__``.

    None for built-in domains and domains of plug-ins, which workers load themselves.
    """
    owner = _DOMAINS.owner(name)
    return None if owner is None or owner == BUILT_IN or is_plugin(owner) else owner


def fault_of(maker: Generator | Labeller, error: Exception | None = None) -> str:
    """Return the end of a message about a failure of a generator or labeller: who must mend it, and where it is.

    Args:
        maker: The generator or labeller.
        error: The exception that it raised.
    """
    owner = _DOMAINS.owner(maker.name.partition(".")[0])
    if owner is None or owner == BUILT_IN:
        return "this is a fault of the generator, please report it"
    source_line = None if error is None else place_of(error)
    return f"this is a fault of {owner_in_words(owner)}" + (f" ({source_line})" if source_line else "")


def find_part(kind: Kind, name: str) -> Any:
    """Return a part of a domain by the name a card gives, ``<domain>.<name>``.

    Raises:
        CardError: If the domain or the part does not exist; the message suggests the nearest name.
    """
    domain, _, short = name.partition(".")
    if not (domain.isidentifier() and short.isidentifier()):
        raise CardError(f"{kind} {name!r} is not of the form <domain>.<name>")
    try:
        parts = find_domain(domain).parts(kind)
    except CardError as error:
        raise CardError(f"{kind} {name!r}: {error}") from error
    if short not in parts and kind == "generator":  # a source of files brings a generator
        sources = find_domain(domain).parts("source")
        if short in sources:
            return sources[short].generator
    if short not in parts:
        listed = ", ".join(sorted(parts)) or f"no {kind}s"
        raise CardError(f"{kind} {name!r} does not exist; {domain} has {listed}{closest(short, parts)}")
    return parts[short]


def all_parts(kind: Kind) -> Iterator[tuple[str, Any]]:
    """Yield ``<domain>.<name>`` and the part, of all parts of one kind."""
    for domain in list_domains():
        for short, part in find_domain(domain).parts(kind).items():
            yield f"{domain}.{short}", part


def find_labeller(name: str) -> Labeller:
    """Return a registered labeller by the name a card gives, ``<domain>.<name>``.

    Raises:
        CardError: If the domain or the labeller does not exist.
    """
    labeller: Labeller = find_part("labeller", name)
    return labeller


def find_generator(name: str) -> Generator:
    """Return a registered generator by the name a card gives, ``<domain>.<name>``.

    Raises:
        CardError: If the domain or the generator does not exist.
    """
    generator: Generator = find_part("generator", name)
    return generator


def view_of(card: Card) -> View | None:
    """Return the registered graph representation of a card; None for the card of stored graphs.

    Raises:
        CardError: If the graph representation does not exist.
    """
    if card.view is None:
        return None
    view: View = find_part("view", card.views[card.view].view)
    return view


def find_structure(name: str) -> Structure:
    """Return a registered topology by the name a card gives, ``<domain>.<name>``.

    Raises:
        CardError: If the domain or the topology does not exist.
    """
    structure: Structure = find_part("structure", name)
    return structure


def find_judge(name: str) -> Judge:
    """Return a registered verifier by the name a card gives, ``<domain>.<name>``.

    Raises:
        CardError: If the domain or the verifier does not exist.
    """
    judge: Judge = find_part("judge", name)
    return judge


def rules_of(card: Card) -> dict[str, Rule]:
    """Return the rules that a card names, by the names of their scores; empty if the card names none.

    Raises:
        CardError: If a rule does not exist; the message names the card and suggests the nearest rule.
    """
    rules: dict[str, Rule] = {}
    for name, rule in card.task.rules.items():
        try:
            rules[name] = find_part("rule", rule)
        except CardError as error:
            raise CardError(f"{card.path} ({card.address}): task.rules.{name}: {error}") from error
    return rules


def find_builder(name: str) -> Builder:
    """Return a registered environment by the name a configuration gives, ``<domain>.<name>``.

    Raises:
        CardError: If the domain or the environment does not exist.
    """
    builder: Builder = find_part("builder", name)
    return builder


def find_spelling(name: str) -> Spelling:
    """Return a registered tokenizer by the name a configuration gives, ``<domain>.<name>``.

    Raises:
        CardError: If the domain or the tokenizer does not exist.
    """
    spelling: Spelling = find_part("spelling", name)
    return spelling


def find_problem(name: str) -> Problem:
    """Return a problem by its name on cards, ``<domain>.<name>``, or without the domain if only one domain has it.

    Raises:
        CardError: If no domain has the problem, or several domains have a problem of this name.
    """
    if "." in name:
        problem: Problem = find_part("problem", name)
        return problem
    problems = dict(all_parts("problem"))
    fitting = [full for full in problems if full.partition(".")[2] == name]
    if len(fitting) == 1:
        chosen: Problem = problems[fitting[0]]
        return chosen
    if fitting:
        raise CardError(f"the problem {name!r} exists in several domains; write {' or '.join(fitting)}")
    raise CardError(f"there is no problem {name!r}{closest(name, problems)} (there are {', '.join(problems)})")


def find_convention(name: str) -> FieldConvention:
    """Return the conventions of forecast fields by the name that a card gives, ``<domain>.<name>``.

    A domain alone stands for its only conventions.

    Raises:
        CardError: If the domain or the conventions do not exist, or a domain alone has none or several.
    """
    if "." not in name:
        conventions: Mapping[str, FieldConvention] = find_domain(name).parts("convention")
        if len(conventions) != 1:
            raise CardError(
                f"the domain {name} has {len(conventions)} conventions of fields "
                f"({', '.join(conventions) or 'none'}); name one as convention: {name}.<name>"
            )
        return next(iter(conventions.values()))
    convention: FieldConvention = find_part("convention", name)
    return convention
