"""Domains: objects that list generators, labellers, sources, verifiers, environments and other components.

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
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, overload

from pydantic import ValidationError

from graphbench.core.errors import CardError, PluginError
from graphbench.core.plugins import BUILT_IN, calling_module, is_plugin, owner_in_words, place_of
from graphbench.core.registry import Registry
from graphbench.core.suggestions import closest
from graphbench.core.validation import explain

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.data.arrays.samples import Samples
    from graphbench.data.components.augmentations import Augmentation
    from graphbench.data.components.environments import Environment, Tokenizer
    from graphbench.data.components.exporters import Exporter
    from graphbench.data.components.field_conventions import FieldConvention
    from graphbench.data.components.file_sources import FileSource
    from graphbench.data.components.generators import Generator, Labeller
    from graphbench.data.components.measures import Measure
    from graphbench.data.components.problems import Problem
    from graphbench.data.components.representations import Representation
    from graphbench.data.components.rules import Rule
    from graphbench.data.components.topologies import Topology
    from graphbench.data.components.verifiers import Verifier

T = TypeVar("T")

Listing = Mapping[str, T] | str
"""Objects by their names in the domain, or ``module:NAME`` of the mapping, which is imported when first needed."""

Kind = Literal[
    "generator",
    "labeller",
    "source",
    "problem",
    "rule",
    "measure",
    "verifier",
    "environment",
    "tokenizer",
    "topology",
    "representation",
    "exporter",
    "convention",
    "augmentation",
]
_FIELDS = {kind: "topologies" if kind == "topology" else f"{kind}s" for kind in get_args(Kind)}
"""Kind -> the attribute of :class:`Domain` that lists its components."""


@dataclass(frozen=True)
class Domain:
    """The components of a domain; cards name each as ``<domain>.<name>``.

    Attributes:
        name: Name of the domain, an identifier; ids of its datasets begin with it.
        generators: The generators of its datasets.
        labellers: The labellers, which compute costly labels.
        sources: Readers of files (e.g. published files) with samples of its datasets.
        problems: The combinatorial problems that tasks name.
        rules: The trivial predictors that read the inputs of a graph and that tasks name.
        measures: The measures of sets of nodes that tasks name.
        verifiers: The verifiers of generated structures that tasks name.
        environments: The environments that build structures, which configurations of models name.
        tokenizers: The tokenizers of structures, which configurations of models name.
        topologies: Graphs that all samples of a dataset share.
        representations: Graph representations that are derived from the stored graphs.
        exporters: Formats of other tools that its datasets can be written in.
        conventions: Conventions of the fields that forecast tasks predict.
        augmentations: Changes of training graphs that keep their labels, which configurations name.
        words: Parameter of generators -> its label in figures, where the name alone would not be clear.
    """

    name: str
    generators: Listing[Generator] = field(default_factory=dict)
    labellers: Listing[Labeller] = field(default_factory=dict)
    sources: Listing[FileSource] = field(default_factory=dict)
    problems: Listing[Problem] = field(default_factory=dict)
    rules: Listing[Rule] = field(default_factory=dict)
    measures: Listing[Measure] = field(default_factory=dict)
    verifiers: Listing[Verifier] = field(default_factory=dict)
    environments: Listing[Environment] = field(default_factory=dict)
    tokenizers: Listing[Tokenizer] = field(default_factory=dict)
    topologies: Listing[Topology] = field(default_factory=dict)
    representations: Listing[Representation] = field(default_factory=dict)
    exporters: Listing[Exporter] = field(default_factory=dict)
    conventions: Listing[FieldConvention] = field(default_factory=dict)
    augmentations: Listing[Augmentation] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    def components(self, kind: Kind) -> Mapping[str, Any]:
        """Return the components of one kind by their names in the domain."""
        listing: Listing[Any] = getattr(self, _FIELDS[kind])
        if not isinstance(listing, str):
            return listing
        module, _, name = listing.partition(":")
        components: Mapping[str, Any] = getattr(importlib.import_module(module), name)
        return components


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


def domain_of(card: Card) -> Domain:
    """Return the domain of a dataset; one without components for a domain that is a name alone, as of own graphs."""
    return _DOMAINS.get(card.domain) or Domain(card.domain)


def list_domains() -> tuple[str, ...]:
    """Return the names of all domains, built-in ones first."""
    return tuple(_DOMAINS)


def registered_domains() -> tuple[Domain, ...]:
    """Return the domains that plug-ins and scripts have registered."""
    return tuple(domain for _, domain, _ in _DOMAINS.owned())


def domain_module(name: str) -> str | None:
    """Return the module that registered a domain; workers must import it, and cannot import ``__main__``.

    None for built-in domains and domains of plug-ins, which workers load themselves.
    """
    owner = _DOMAINS.owner(name)
    return None if owner is None or owner == BUILT_IN or is_plugin(owner) else owner


def fault_of(maker: Generator | Labeller, error: Exception | None = None) -> str:
    """Return the end of the message for a failure of a generator or labeller: who must mend it, and where it is.

    Args:
        maker: The generator or labeller.
        error: The exception that it raised.
    """
    owner = _DOMAINS.owner(maker.name.partition(".")[0])
    if owner is None or owner == BUILT_IN:
        return "this is a fault of the generator, please report it"
    source_line = None if error is None else place_of(error)
    return f"this is a fault of {owner_in_words(owner)}" + (f" ({source_line})" if source_line else "")


@overload
def find(kind: Literal["generator"], name: str) -> Generator: ...
@overload
def find(kind: Literal["labeller"], name: str) -> Labeller: ...
@overload
def find(kind: Literal["source"], name: str) -> FileSource: ...
@overload
def find(kind: Literal["problem"], name: str) -> Problem: ...
@overload
def find(kind: Literal["rule"], name: str) -> Rule: ...
@overload
def find(kind: Literal["measure"], name: str) -> Measure: ...
@overload
def find(kind: Literal["verifier"], name: str) -> Verifier: ...
@overload
def find(kind: Literal["environment"], name: str) -> Environment: ...
@overload
def find(kind: Literal["tokenizer"], name: str) -> Tokenizer: ...
@overload
def find(kind: Literal["topology"], name: str) -> Topology: ...
@overload
def find(kind: Literal["representation"], name: str) -> Representation: ...
@overload
def find(kind: Literal["convention"], name: str) -> FieldConvention: ...
@overload
def find(kind: Literal["exporter"], name: str) -> Exporter: ...
@overload
def find(kind: Literal["augmentation"], name: str) -> Augmentation: ...
def find(kind: Kind, name: str) -> Any:
    """Return a component of a domain by the name that cards and configurations give, ``<domain>.<name>``.

    A source of files brings a generator of its name, unless the domain lists a generator of this name.

    Raises:
        CardError: If the domain or the component does not exist; the message suggests the nearest name.
    """
    if kind not in _FIELDS:
        raise CardError(
            f"there is no kind of component {kind!r}{closest(kind, _FIELDS)} (there are {', '.join(_FIELDS)})"
        )
    domain, _, short = str(name).partition(".")
    if not (domain.isidentifier() and short.isidentifier()):
        raise CardError(f"{kind} {name!r} is not of the form <domain>.<name>")
    try:
        components = find_domain(domain).components(kind)
    except CardError as error:
        raise CardError(f"{kind} {name!r}: {error}") from error
    if short in components:
        return components[short]
    if kind == "generator" and short in (sources := find_domain(domain).components("source")):
        return sources[short].generator
    listed = ", ".join(sorted(components)) or f"no {_FIELDS[kind]}"
    raise CardError(f"{kind} {name!r} does not exist; {domain} has {listed}{closest(short, components)}")


def all_components(kind: Kind) -> Iterator[tuple[str, Any]]:
    """Yield ``<domain>.<name>`` and the component, of all components of one kind."""
    for domain in list_domains():
        for short, component in find_domain(domain).components(kind).items():
            yield f"{domain}.{short}", component


def full_name(kind: Kind, short: str) -> str:
    """Return ``<domain>.<name>`` of the only component that has a name without a domain.

    Raises:
        CardError: If no domain has a component of this name, or several domains have one.
    """
    names = [name for name, _ in all_components(kind)]
    matching = [name for name in names if name.partition(".")[2] == short]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise CardError(f"the {kind} {short!r} exists in several domains; write {' or '.join(matching)}")
    raise CardError(f"there is no {kind} {short!r}{closest(short, names)} (there are {', '.join(names)})")


def only_name(kind: Kind, domain: str) -> str:
    """Return ``<domain>.<name>`` of the only component of one kind in a domain.

    Raises:
        CardError: If the domain does not exist, or has no component or several components of this kind.
    """
    components = find_domain(domain).components(kind)
    if len(components) != 1:
        listed = ", ".join(components) or "none"
        raise CardError(f"the domain {domain} has {len(components)} {_FIELDS[kind]} ({listed}); name one of them")
    return f"{domain}.{next(iter(components))}"


def representation_of(card: Card) -> Representation | None:
    """Return the registered graph representation of a card; None for the card of stored graphs.

    Raises:
        CardError: If the graph representation does not exist.
    """
    return (
        None
        if card.representation is None
        else find("representation", card.representations[card.representation].derived_by)
    )


def rules_of(card: Card) -> dict[str, Rule]:
    """Return the rules that a card names, by the names of their scores; empty if the card names none.

    Raises:
        CardError: If a rule does not exist; the message names the card and suggests the nearest rule.
    """
    rules: dict[str, Rule] = {}
    for name, rule in card.task.rules.items():
        try:
            rules[name] = find("rule", rule)
        except CardError as error:
            raise CardError(f"{card.path} ({card.address}): task.rules.{name}: {error}") from error
    return rules


def topology_of(card: Card) -> Samples:
    """Return the graph that all samples of a card with a series share, as its topology builds it.

    Raises:
        CardError: If the topology does not exist, or a parameter is unknown or out of range.
    """
    assert card.series is not None
    topology = find("topology", card.series.topology)
    try:
        parameters = topology.parameters.model_validate(card.series.parameters)
    except ValidationError as error:
        raise CardError(f"{card.path} ({card.id}, series): {explain(error, topology.parameters)}") from error
    return topology.build(parameters)
