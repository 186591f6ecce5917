"""The options that all functions of the room share, as keyword arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from graphbench.core.arguments import checked_path
from graphbench.core.errors import ArgumentError
from graphbench.core.suggestions import closest
from graphbench.imports.columns import Choice
from graphbench.imports.links import LinkRule
from graphbench.imports.settings import Facts, Settings
from graphbench.imports.splits import SplitRule


class ImportOptions(TypedDict, total=False):
    """Keyword arguments of ``from_pyg`` and the other functions; all may be left out.

    Attributes:
        target: Name of the target column, or of several; ``y`` from PyG.
        task: Where the target is and its type, such as ``graph mask``, ``node categorical`` or ``edge scalar``; or
            ``link``, which hides edges and asks for them, without a target.
        inputs: Names of the columns that models read.
        meta: Names of columns that are stored and that no model reads.
        types: Column -> ``scalar``, ``mask``, ``categorical``, ``categorical(5)`` or ``text``.
        metric: The metric that ranks models, such as ``roc_auc``.
        also: Further metrics.
        split: Rule that divides the samples: ``random``, ``group``, ``time`` or ``size``.
        fractions: Shares of training, validation and test samples.
        seed: Seed of the random rules.
        by: Group, time or size of every sample, or the name of a column of graphs that has it.
        folds: Number of folds; the datasets are ``<name>_fold0``, ``<name>_fold1``, ...
        directed: Whether edges are arcs; found out where it is left out.
        repair: Whether to drop loops of undirected graphs and repeated edges.
        overlap: Whether splits may share graphs.
        hidden: Share of the edges that ``task="link"`` hides in training graphs, 0.3 by default.
        negatives: Rule -> number of negatives of every link: ``uniform``, ``degree``, ``near`` and ``ends``.
        queries: Most links of a graph that are asked for when it is scored; None for all.
        title: Title of the dataset.
        summary: What the dataset asks, in a sentence.
        licence: Licence of the data.
        citation: How to cite the data.
        url: Where the data are from.
        meanings: Feature -> a line on its values.
        folder: Folder of the dataset; the folder of the user's own datasets where it is left out.
        replace: Whether to replace a dataset of this name; its version is raised.
        progress: Whether to show a progress bar.
    """

    target: str | Sequence[str]
    task: str | None
    inputs: Sequence[str] | None
    meta: Sequence[str]
    types: Mapping[str, str]
    metric: str | None
    also: Sequence[str] | None
    split: str
    fractions: Sequence[float]
    seed: int
    by: str | Sequence[Any] | None
    folds: int | None
    directed: bool | None
    repair: bool
    overlap: bool
    hidden: float
    negatives: Mapping[str, int]
    queries: int | None
    title: str | None
    summary: str | None
    licence: str
    citation: str | None
    url: str | None
    meanings: Mapping[str, str]
    folder: str | Path | None
    replace: bool
    progress: bool | None


_OF_CHOICE = {"target", "task", "inputs", "meta", "types"}
_OF_RULE = {"split": "how", "fractions": "fractions", "seed": "seed", "folds": "folds"}
_OF_LINKS = {"hidden", "negatives", "queries"}
_OF_FACTS = {"title", "summary", "licence", "citation", "url", "meanings"}


def settings_of(options: ImportOptions, **defaults: Any) -> Settings:
    """Return the settings of keyword arguments.

    Args:
        options: The arguments that the user gave.
        **defaults: Values of arguments that the source suggests, such as the target.

    Raises:
        ArgumentError: If an argument is unknown.
    """
    known = ImportOptions.__annotations__
    unknown = next((name for name in options if name not in known), None)
    if unknown is not None:
        raise ArgumentError(
            f"the argument {unknown!r} is unknown{closest(unknown, known)}; there are {', '.join(known)}"
        )
    given: dict[str, Any] = {**defaults, **options}
    folder = given.pop("folder", None)
    choice = Choice(**{name: given.pop(name) for name in list(given) if name in _OF_CHOICE})
    rule = SplitRule(**{_OF_RULE[name]: given.pop(name) for name in list(given) if name in _OF_RULE})
    links = LinkRule(**{name: given.pop(name) for name in list(given) if name in _OF_LINKS})
    facts = Facts(**{name: given.pop(name) for name in list(given) if name in _OF_FACTS})
    place = None if folder is None else checked_path("folder", folder)
    return Settings(choice=choice, rule=rule, links=links, facts=facts, folder=place, **given)
