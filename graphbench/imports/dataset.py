"""Write a dataset of the user's own graphs: its card, a file per split, and what is measured on them."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from graphbench.catalog.cards import CORE_SPLITS, Card
from graphbench.catalog.families import load_family, measured_path
from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.catalog.names import catalog
from graphbench.catalog.resources import data_dir, own_folder, register_data
from graphbench.core.errors import CardError, DataImportError, StoreError
from graphbench.core.files import clear_errors, write_text
from graphbench.core.suggestions import closest
from graphbench.data.components.own_graphs import GENERATOR, file_of_split, files_of, write_samples
from graphbench.evaluation.metrics import default_metrics, metric
from graphbench.imports.collect import Collected
from graphbench.imports.folds import collected_folds
from graphbench.imports.graphs import RawGraph
from graphbench.imports.links import METRICS, TASK
from graphbench.imports.settings import Facts, Settings
from graphbench.verification.measuring import update_measured
from graphbench.verification.verify import check_card

OWN_DOMAIN = "own"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_LONGEST_NAME = 100
_PAPER = "one's own data"


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
    folds, notes, overlapping = collected_folds(given, settings, usual)
    if len(folds) > 1:
        _require_free([f"{domain}/{family}_fold{k}" for k in range(len(folds))], card_path)
    _require_labels(folds)
    features = [f.name for f in folds[0].features]
    wrong = next((name for name in settings.facts.meanings if name not in features), None)
    if wrong is not None:
        raise DataImportError(f"meanings names {wrong!r}{closest(wrong, features)}; there are {', '.join(features)}")
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
    if max(len(domain), len(family)) > _LONGEST_NAME:
        raise DataImportError(f"the name {name!r:.60}... is refused: it has more than {_LONGEST_NAME} letters")
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


def _require_labels(folds: Sequence[Collected]) -> None:
    """Refuse splits in which all labels of a target are missing."""
    for fold in folds:
        for feature in fold.features:
            if feature.stage is Stage.OUTPUT and feature.kind in (Kind.MASK, Kind.CATEGORICAL):
                for split, samples in fold.samples.items():
                    if not (samples.values[feature.name] >= 0).any():
                        raise DataImportError(
                            f"all labels {feature.name!r} of the split {split!r} are missing; choose other splits"
                        )


def _require_free(names: Sequence[str], card_path: Path) -> None:
    """Refuse folds whose names other datasets have."""
    for name in names:
        known = catalog().cards.get(name)
        if known is not None and Path(known.path) != card_path:
            raise DataImportError(
                f"the fold {name!r} would have the name of the dataset {known.path}; choose another name"
            )


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
    kinds = {feature.kind: feature for feature in outputs}
    if len(kinds) > 1:
        first, second = list(kinds.values())[:2]
        raise DataImportError(
            f"the targets {first.name!r} ({first.type_name}) and {second.name!r} ({second.type_name}) are of different "
            "types, which no metric scores together; import one dataset for each type"
        )
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
    specs = {}
    for split, samples in fold.samples.items():
        content = write_samples(file_of_split(path, split, variant), samples)
        specs[split] = {"count": len(samples), "parameters": {"content": content}}
    sections = {"splits": {split: specs[split] for split in CORE_SPLITS}}
    ood = {split: spec for split, spec in specs.items() if split not in CORE_SPLITS}
    return sections | ({"ood": ood} if ood else {})


def _move(staged: Path, card_path: Path, cards: Sequence[Card]) -> None:
    """Move a finished dataset to its place: files first, the card, which makes it known, last."""
    source, place = files_of(staged), files_of(card_path)
    before: set[Path] = set()
    if card_path.is_file():
        with suppress(CardError):  # of a damaged card, which is replaced
            before = {*_measured_files(card_path, load_family(card_path))}
    with clear_errors(card_path, "write", "choose another folder= (--folder) or set GRAPHBENCH_OWN"):
        if place.exists():
            aside = staged.parents[2] / "replaced"
            place.rename(aside)
        place.parent.mkdir(parents=True, exist_ok=True)
        source.rename(place)
        measured = _measured_files(card_path, cards)
        for source_file, file in zip(_measured_files(staged, cards), measured, strict=True):
            file.parent.mkdir(parents=True, exist_ok=True)
            source_file.replace(file)
        staged.replace(card_path)
        for path in before - {*measured}:  # of folds that are no more
            path.unlink(missing_ok=True)


def _measured_files(card_path: Path, cards: Sequence[Card]) -> list[Path]:
    """Return the files of the measurements of a dataset, one for every fold."""
    return [measured_path(card_path, card.id.split("/", 1)[1]) for card in cards]


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
    measured = _measured_files(card_path, load_family(card_path))
    with clear_errors(card_path, "remove"):
        card_path.unlink()
        shutil.rmtree(files_of(card_path), ignore_errors=True)
        for path in measured:
            path.unlink(missing_ok=True)
    return [card_path, files_of(card_path), *measured]
