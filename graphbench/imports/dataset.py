"""Write a dataset of the user's own graphs: its card, a file per split, and what is measured on them."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from graphbench.catalog.cards import CORE_SPLITS, Card
from graphbench.catalog.families import load_family, measured_path
from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.catalog.names import catalog
from graphbench.catalog.resources import data_dir, own_folder, register_data
from graphbench.core.errors import CardError, DataImportError, StoreError
from graphbench.core.files import clear_errors, write_text
from graphbench.core.words import counted
from graphbench.data.arrays.hashing import sample_hashes
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.own_graphs import GENERATOR, file_of_split, files_of, write_samples
from graphbench.evaluation.metrics import default_metrics, metric
from graphbench.imports.columns import MASKS_OF_SPLITS, Choice, choose_columns
from graphbench.imports.graphs import Collected, Column, RawGraph, collect
from graphbench.imports.links import METRICS, TASK, LinkRule, folds_of_edges, notes_of_links, with_hidden_edges
from graphbench.imports.splits import SplitRule, divided
from graphbench.verification.measuring import update_measured
from graphbench.verification.verify import check_card

OWN_DOMAIN = "own"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_PAPER = "one's own data"


@dataclass(frozen=True)
class Facts:
    """What the card says besides the data.

    Attributes:
        title: A line; None makes one of the name.
        summary: What the dataset asks, in a sentence; None makes one of the target.
        licence: Licence of the data.
        citation: How to cite the data; None for nothing.
        url: Where the data are from; None for nothing.
        meanings: Column -> a line on its values, with the unit of numbers after a semicolon.
    """

    title: str | None = None
    summary: str | None = None
    licence: str = "not stated"
    citation: str | None = None
    url: str | None = None
    meanings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """How graphs become a dataset.

    Attributes:
        choice: The columns.
        rule: How samples are divided, where the user gives no splits.
        by: Group, time or size of every sample, or the name of a column of graphs that has it.
        metric: The metric that ranks models; None for the usual one of the target's type.
        also: Further metrics; None for the usual ones.
        directed: Whether edges are arcs; None finds it out.
        repair: Whether loops of undirected graphs and repeated edges are dropped.
        overlap: Whether splits may have equal graphs.
        links: Which edges are hidden, for ``task="link"``.
        facts: What the card says besides the data.
        folder: Folder of the dataset; None for the folder of the user's own datasets.
        replace: Whether a dataset of this name is replaced.
        progress: Whether to show a progress bar; None for terminals.
    """

    choice: Choice = field(default_factory=Choice)
    rule: SplitRule = field(default_factory=SplitRule)
    by: str | Sequence[Any] | None = None
    metric: str | None = None
    also: Sequence[str] | None = None
    directed: bool | None = None
    repair: bool = False
    overlap: bool = False
    links: LinkRule = field(default_factory=LinkRule)
    facts: Facts = field(default_factory=Facts)
    folder: Path | None = None
    replace: bool = False
    progress: bool | None = None

    @property
    def asks_links(self) -> bool:
        """Whether the dataset asks for hidden edges."""
        return self.choice.task == TASK


@dataclass(frozen=True)
class Imported:
    """A dataset that was written.

    Attributes:
        cards: Its card, or the card of every fold.
        path: The file of the card.
        notes: What the user should know, one sentence each.
    """

    cards: tuple[Card, ...]
    path: Path
    notes: tuple[str, ...]

    @property
    def card(self) -> Card:
        """The card, of the first fold where there are several."""
        return self.cards[0]

    @property
    def name(self) -> str:
        """The name of the dataset, which stands for all its folds."""
        return f"{self.card.domain}/{self.card.family}"

    def __repr__(self) -> str:
        """Return the name, the sizes of the splits, the target and the metric, in a line."""
        sizes = ", ".join(f"{name} {spec.count:,}" for name, spec in self.card.all_splits.items())
        targets = ", ".join(f"{f.name}: {f.location} {f.type_name}" for f in self.card.outputs)
        folds = f", {len(self.cards)} folds" if len(self.cards) > 1 else ""
        return f"Imported({self.name!r}; {sizes}{folds}; {targets}; {self.card.metrics.primary})"


def import_graphs(
    name: str,
    given: Mapping[str, Sequence[RawGraph]] | Sequence[RawGraph],
    settings: Settings,
    usual: Sequence[str] | None = None,
) -> Imported:
    """Write the dataset of some graphs, and measure it: the work behind ``from_pyg`` and the other functions.

    Args:
        name: ``<domain>/<name>``, or a name alone, which is put into the domain ``own``.
        given: Split -> its graphs, with ``train``, ``val`` and ``test``; other splits are out-of-distribution splits.
            Or all graphs, which the rule of the settings divides: a single graph by its nodes.
        settings: How the graphs become a dataset.
        usual: Columns that are inputs where the user names none; None for all that are nothing else.

    Raises:
        DataImportError: If the graphs cannot become a dataset; nothing is written then.
    """
    domain, family = _checked_name(name)
    home = own_folder() if settings.folder is None else settings.folder.expanduser().absolute()
    card_path = home / "datasets" / domain / f"{family}.yaml"
    version = _version(card_path, f"{domain}/{family}", settings)
    folds, notes, overlapping = _collected_folds(given, settings, usual)
    staging = home / f".importing-{secrets.token_hex(4)}"
    try:
        with clear_errors(home, "write", "choose another folder= (--folder) or set GRAPHBENCH_OWN"):
            staging.mkdir(parents=True)
        staged_path = staging / "datasets" / domain / f"{family}.yaml"
        _write_card(staged_path, folds, settings, version, overlapping=overlapping)
        for card in load_family(staged_path):
            check_card(card)
            update_measured(card, progress=settings.progress)
        cards = load_family(staged_path)
        _require_floors(cards)
        _move(staged_path, card_path, cards)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    if home != own_folder():
        register_data(home)
    return Imported(load_family(card_path), card_path, tuple(notes))


def _checked_name(name: str) -> tuple[str, str]:
    domain, slash, family = str(name).rpartition("/")
    domain = domain if slash else OWN_DOMAIN
    if not (_NAME.fullmatch(domain) and _NAME.fullmatch(family)):
        raise DataImportError(
            f"the name {name!r} is refused; write <domain>/<name> in small letters, digits and underscores, such as "
            "'mine/toy'"
        )
    if (data_dir("datasets") / domain).is_dir():
        raise DataImportError(
            f"the name {name!r} is refused: {domain!r} is a domain of the benchmark; choose a domain of your own, such "
            f"as 'mine/{family}'"
        )
    return domain, family


def _version(card_path: Path, name: str, settings: Settings) -> int:
    """Return the version of the card: one more than that of the dataset that it replaces."""
    if not card_path.is_file():
        known = next(
            (card for card in catalog().cards.values() if name in (card.id, f"{card.domain}/{card.family}")), None
        )
        if known is not None:
            raise DataImportError(f"{name!r} is the name of the dataset {known.path}; choose another name")
        return 1
    if not settings.replace:
        raise DataImportError(
            f"{name!r} is there already ({card_path}); choose another name, or say replace=True (--replace)"
        )
    try:
        return load_family(card_path)[0].version + 1
    except CardError:
        return 1


def _collected_folds(
    given: Mapping[str, Sequence[RawGraph]] | Sequence[RawGraph], settings: Settings, usual: Sequence[str] | None
) -> tuple[list[Collected], list[str], bool]:
    """Return the graphs of every fold, notes for the user, and whether splits share graphs."""
    _check_task(settings)
    graphs = [g for part in given.values() for g in part] if isinstance(given, Mapping) else list(given)
    if not graphs:
        raise DataImportError("there are no graphs; give at least one per split")
    choice = settings.choice.without_target() if settings.asks_links else settings.choice
    columns, notes = choose_columns(graphs, choice, usual, settings.by)
    how: dict[str, Any] = {"directed": settings.directed, "repair": settings.repair}
    if settings.asks_links and not isinstance(given, Mapping) and len(graphs) == 1:
        folds = _folds_of_edges(graphs[0], columns, settings, how, notes)
        return folds, notes + folds[0].notes, True
    if isinstance(given, Mapping):
        missing = [split for split in CORE_SPLITS if not given.get(split)]
        if missing:
            raise DataImportError(
                f"there are no graphs for {missing[0]!r}; give train, val and test, or all graphs together and a rule "
                "that divides them (split=)"
            )
        whole = collect(given, columns, **how)
        folds = _asking([whole], settings, notes)
        return folds, notes + whole.notes, _shares_graphs(whole, settings)
    if len(graphs) == 1 and columns[-1].location is Location.NODE:
        folds = _folds_of_nodes(graphs[0], columns, settings, how)
        return folds, notes + folds[0].notes, True
    whole = collect({"all": graphs}, columns, **how)
    folds = _asking(_folds_of_graphs(graphs, whole, settings, notes), settings, notes)
    return folds, notes + whole.notes, any(_shares_graphs(fold, settings) for fold in folds)


def _check_task(settings: Settings) -> None:
    """Refuse options of links that are wrong, or belong to another task than the one that is asked for."""
    choice = settings.choice
    if settings.asks_links:
        settings.links.spec()
        if choice.target != Choice().target:
            raise DataImportError(
                f"target={choice.target!r} and task='link' exclude each other: hidden edges are the target"
            )
    else:
        if (choice.task or "").split(" ")[0] in (TASK, Location.PAIR.value):
            raise DataImportError(f"task={choice.task!r} is unknown; say task='link' to hide edges and ask for them")
        if settings.links != LinkRule():
            raise DataImportError("hidden, negatives and queries are options of task='link', which is not asked for")


def _folds_of_edges(
    graph: RawGraph, columns: Sequence[Column], settings: Settings, how: Mapping[str, Any], notes: list[str]
) -> list[Collected]:
    if settings.by is not None and not isinstance(settings.by, str):
        raise DataImportError("by= of the edges of a graph is the name of a column; put the values into the graph")
    masks = [name for name in MASKS_OF_SPLITS if name in graph.values]
    if masks:
        notes.append(f"{', '.join(masks)} divide nodes; edges are divided by split={settings.rule.how!r}")
    folds = folds_of_edges(graph, columns, settings.rule, settings.links, settings.by, how)
    notes += notes_of_links(folds[0], settings.links.spec())
    return folds


def _asking(folds: list[Collected], settings: Settings, notes: list[str]) -> list[Collected]:
    """Return folds of several graphs with hidden edges, if the dataset asks for links; else the folds themselves."""
    if not settings.asks_links:
        return folds
    hidden = with_hidden_edges(folds, settings.rule, settings.links)
    notes += notes_of_links(hidden[0], settings.links.spec())
    return hidden


def _folds_of_graphs(
    graphs: Sequence[RawGraph], whole: Collected, settings: Settings, notes: list[str]
) -> list[Collected]:
    schema, samples = whole.schema, whole.samples["all"]
    by: Any = settings.by
    if isinstance(by, str):
        lacking = next((graph.name for graph in graphs if len(np.atleast_1d(graph.values.get(by, ()))) != 1), None)
        if lacking is not None:
            raise DataImportError(f"by={by!r}: {lacking} has no single value of this name; name a column of graphs")
        by = np.array([np.atleast_1d(graph.values[by])[0] for graph in graphs])
    elif by is None and settings.rule.how == "size":
        by = samples.num_nodes
    elif by is None:
        hashes = sample_hashes(samples, schema, unique_inputs=True)
        _, by = np.unique(hashes, axis=0, return_inverse=True)
        by = by.reshape(-1)
        copies = len(by) - len(np.unique(by))
        if copies and settings.rule.how == "random":
            notes.append(f"{counted(copies, 'graph')} equal others in edges and inputs; equal graphs are in one split")
        by = by if settings.rule.how == "random" else None
    return [
        Collected(
            whole.features,
            whole.classes,
            whole.directed,
            {split: samples.take(schema, numbers) for split, numbers in fold.items()},
            whole.notes,
        )
        for fold in divided(settings.rule, len(graphs), by)
    ]


def _folds_of_nodes(
    graph: RawGraph, columns: Sequence[Column], settings: Settings, how: Mapping[str, Any]
) -> list[Collected]:
    """Return every fold of a single graph: each split has the graph, with the labels of its own nodes alone."""
    whole = collect({"all": [graph]}, columns, **how)
    targets = [f for f in whole.features if f.stage is Stage.OUTPUT]
    numbers = [
        f.name for f in targets if f.kind not in (Kind.MASK, Kind.CATEGORICAL) or f.location is not Location.NODE
    ]
    if numbers:
        raise DataImportError(
            f"the target {numbers[0]!r} of a single graph cannot be divided by nodes: only masks and classes of nodes "
            "may be missing; give several graphs"
        )
    masks = {split: np.asarray(graph.values[mask]) for mask, split in MASKS_OF_SPLITS.items() if mask in graph.values}
    if masks and settings.rule == SplitRule() and settings.by is None:
        folds = _folds_of_masks(graph, masks)
    else:
        by = graph.values[settings.by] if isinstance(settings.by, str) else settings.by
        folds = divided(settings.rule, graph.num_nodes, by)
    samples = whole.samples["all"]
    return [
        Collected(
            whole.features,
            whole.classes,
            whole.directed,
            {split: _with_labels_at(samples, targets, nodes, split) for split, nodes in fold.items()},
            whole.notes,
        )
        for fold in folds
    ]


def _folds_of_masks(graph: RawGraph, masks: Mapping[str, Any]) -> list[dict[str, Any]]:
    if masks.keys() != set(CORE_SPLITS):
        raise DataImportError(
            f"{graph.name} has masks for {', '.join(masks)} alone; give train_mask, val_mask, test_mask"
        )
    tables = {split: mask.reshape(len(mask), -1).astype(bool) for split, mask in masks.items()}
    if any(len(table) != graph.num_nodes for table in tables.values()):
        raise DataImportError(f"the masks of {graph.name} have not one row per node; give [nodes] or [nodes, folds]")
    folds = []
    for k in range(next(iter(tables.values())).shape[1]):
        fold = {split: np.flatnonzero(table[:, min(k, table.shape[1] - 1)]) for split, table in tables.items()}
        if (np.bincount(np.concatenate(list(fold.values())), minlength=1) > 1).any():
            raise DataImportError(f"a node of {graph.name} is in two masks; give every node to one split")
        empty = [split for split, nodes in fold.items() if not nodes.size]
        if empty:
            raise DataImportError(f"the mask of {empty[0]} of {graph.name} has no node")
        folds.append(fold)
    return folds


def _with_labels_at(samples: Samples, targets: Sequence[Feature], nodes: Any, split: str) -> Samples:
    values = dict(samples.values)
    for feature in targets:
        kept = np.full_like(values[feature.name], -1)
        kept[nodes] = values[feature.name][nodes]
        if not (kept >= 0).any():
            raise DataImportError(f"no node of the split {split!r} has a label {feature.name!r}; choose other splits")
        values[feature.name] = kept
    return Samples(samples.num_nodes, samples.num_edges, samples.edges, values)


def _shares_graphs(collected: Collected, settings: Settings) -> bool:
    """Return whether splits have equal graphs.

    Raises:
        DataImportError: If they have, and the settings do not allow it.
    """
    schema = collected.schema
    known: dict[str, Any] = {}
    for split, samples in collected.samples.items():
        known[split] = np.unique(sample_hashes(samples, schema, unique_inputs=True), axis=0)
    names = list(known)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            both = np.concatenate([known[first], known[second]])
            common = len(both) - len(np.unique(both, axis=0))
            if common and not settings.overlap:
                raise DataImportError(
                    f"{counted(common, 'graph')} of {second!r} also occur in {first!r} (equal edges and inputs), so "
                    "scores there would reward remembering; remove the copies, let split='random' divide all graphs, "
                    "which keeps equal ones together, or say overlap=True (--overlap)"
                )
            if common:
                return True
    return False


def _write_card(path: Path, folds: Sequence[Collected], settings: Settings, version: int, *, overlapping: bool) -> None:
    """Write the files of all splits, and the card that names them."""
    first = folds[0]
    outputs = [f for f in first.features if f.stage is Stage.OUTPUT]
    primary, also = _metrics(outputs, settings)
    facts = settings.facts
    content: dict[str, Any] = {
        "version": version,
        "title": facts.title or path.stem.replace("_", " "),
        "summary": facts.summary or _summary(outputs, settings),
        "generator": GENERATOR,
        "directed": first.directed,
        "overlapping": overlapping,
        "features": {f.name: _words(f, facts, settings) for f in first.features},
        "metrics": {"primary": primary, "also": also},
        "licence": facts.licence,
        "source": {"paper": _PAPER, **_present(citation=facts.citation, url=facts.url)},
    }
    if settings.asks_links:
        content |= {"task": {"type": TASK}, "links": settings.links.spec().model_dump(exclude_none=True)}
    if first.classes:
        content["classes"] = first.classes
    sections = [_sections(path, fold, None if len(folds) == 1 else f"fold{k}") for k, fold in enumerate(folds)]
    if len(folds) == 1:
        content |= sections[0]
    else:
        content["variants"] = {f"fold{k}": section for k, section in enumerate(sections)}
    write_text(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None))


def _present(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _summary(outputs: Sequence[Feature], settings: Settings) -> str:
    if settings.asks_links:
        return "Rank the hidden edges among pairs of nodes without an edge."
    return f"Predict {', '.join(f.name for f in outputs)} of {outputs[0].location}s."


def _words(feature: Feature, facts: Facts, settings: Settings) -> list[str]:
    meaning = facts.meanings.get(feature.name)
    location = Location.PAIR if settings.asks_links and feature.stage is Stage.OUTPUT else feature.location
    words = [feature.stage.value, location.value, feature.type_name]
    return [*words, meaning] if meaning else words


def _metrics(outputs: Sequence[Feature], settings: Settings) -> tuple[str, list[str]]:
    primary, also = METRICS if settings.asks_links else default_metrics(outputs[0])
    if outputs[0].location is Location.GRAPH:  # every graph is one item
        also = tuple(name for name in also if not metric(name).needs_graphs)
    if settings.metric is not None:
        metric(settings.metric, outputs[0])
        also = tuple(name for name in (primary, *also) if name != settings.metric)
        primary = settings.metric
    return primary, list(also if settings.also is None else settings.also)


def _require_floors(cards: Sequence[Card]) -> None:
    """Refuse splits on which the metric that ranks models is undefined, such as ROC-AUC of targets of one kind."""
    for card in cards:
        for split, floor in card.floor.items():
            if not any(card.metrics.primary in scores for scores in floor.values()):
                raise DataImportError(
                    f"{card.metrics.primary} is undefined on the split {split!r} of {card.id}, whose targets are all "
                    "alike; choose other splits or another metric"
                )


def _sections(path: Path, fold: Collected, variant: str | None) -> dict[str, Any]:
    """Write the files of a fold, and return the sections of splits of its card."""
    found = {}
    for split, samples in fold.samples.items():
        content = write_samples(file_of_split(path, split, variant), samples)
        found[split] = {"count": len(samples), "parameters": {"content": content}}
    sections = {"splits": {split: found[split] for split in CORE_SPLITS}}
    ood = {split: spec for split, spec in found.items() if split not in CORE_SPLITS}
    return sections | ({"ood": ood} if ood else {})


def _move(staged: Path, card_path: Path, cards: Sequence[Card]) -> None:
    """Move a finished dataset to its place: files first, the card, which makes it known, last."""
    source, place = files_of(staged), files_of(card_path)
    with clear_errors(card_path, "write", "choose another folder= (--folder) or set GRAPHBENCH_OWN"):
        if place.exists():
            aside = staged.parents[2] / "replaced"
            place.rename(aside)
        place.parent.mkdir(parents=True, exist_ok=True)
        source.rename(place)
        for card in cards:
            name = card.id.split("/", 1)[1]
            measured = measured_path(card_path, name)
            measured.parent.mkdir(parents=True, exist_ok=True)
            measured_path(staged, name).replace(measured)
        staged.replace(card_path)


def remove(name: str, folder: Path | None = None) -> list[Path]:
    """Remove a dataset of the user's own: its card, its files and its measurements; return what was removed.

    Raises:
        StoreError: If there is no such dataset in the folder.
    """
    domain, family = _checked_name(name)
    home = own_folder() if folder is None else folder.expanduser().absolute()
    card_path = home / "datasets" / domain / f"{family}.yaml"
    if not card_path.is_file():
        raise StoreError(f"there is no dataset {domain}/{family} in {home}; `graphbench list` shows what there is")
    measured = [measured_path(card_path, card.id.split("/", 1)[1]) for card in load_family(card_path)]
    with clear_errors(card_path, "remove"):
        card_path.unlink()
        shutil.rmtree(files_of(card_path), ignore_errors=True)
        for path in measured:
            path.unlink(missing_ok=True)
    return [card_path, files_of(card_path), *measured]
