"""The data that a run is trained on: a file of its folder, written before the first step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from pydantic import Field

from graphbench.catalog.cards import Card
from graphbench.catalog.names import card as find_card
from graphbench.core.errors import ArgumentError, ConfigError, StoreError, UnknownDataset
from graphbench.core.files import write_json
from graphbench.core.validation import StrictModel
from graphbench.data.components.source_choice import GENERATED, find_source, source_name, source_of
from graphbench.data.store.layout import data_fingerprint
from graphbench.loader import Loader, Splits
from graphbench.records.files import read_record
from graphbench.training.folders import read_facts

if TYPE_CHECKING:
    from graphbench.training.context import RunContext, TaskRun

DATA = "data.json"

_T = TypeVar("_T")


class DataFacts(StrictModel):
    """Which data one dataset of a run is.

    Attributes:
        dataset: Id.
        data_seed: Which draw.
        data_fingerprint: Fingerprint of parameters, generator and transforms that names the data folder.
        source: ``generated``, or the source of the files, such as ``official``.
        folder: Folder of the files.
    """

    dataset: str
    data_seed: int = 0
    data_fingerprint: str
    source: str = GENERATED
    folder: str | None = None

    @classmethod
    def of(cls, run: TaskRun) -> DataFacts:
        """Return the facts of a dataset of a run."""
        card = run.card
        folder = card.split("train").parameters.get("folder") if source_of(card) is not None else None
        return cls(
            dataset=card.address,
            data_seed=card.data_seed,
            data_fingerprint=run.val.data_fingerprint,
            source=source_name(card),
            folder=folder,
        )


class RunData(DataFacts):
    """The content of a run's ``data.json``: its first dataset, and the others.

    Attributes:
        run_fingerprint: Fingerprint of the run, which its stored weights share; empty where the run is of a version
            without it.
        others: The other datasets of a run on several.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    run_fingerprint: str = ""
    others: tuple[DataFacts, ...] = ()

    def about(self, dataset: str) -> DataFacts | None:
        """Return the facts of one dataset of the run; None where the run is not on it."""
        return next((facts for facts in (self, *self.others) if facts.dataset == dataset), None)


def write_run_data(context: RunContext) -> None:
    """Write the facts of the data that a run is trained on."""
    first, *others = (DataFacts.of(run) for run in context.runs.values())
    facts = RunData(**first.model_dump(), run_fingerprint=context.fingerprint, others=tuple(others))
    content = facts.model_dump(mode="json", by_alias=True)
    write_json(context.folder / DATA, {key: value for key, value in content.items() if key != "others" or value})


def read_run_data(folder: Path) -> RunData | None:
    """Return the facts of the data that a run is trained on; None where the run is of a version that did not write it.

    Raises:
        CheckpointError: If the file cannot be read.
    """
    return read_facts(folder / DATA, RunData, "train the model again")


def card_of_run(folder: Path, dataset: str) -> Card:
    """Return the card of a run's dataset. If the run used published files, the card describes these files.

    Raises:
        ConfigError: If the files are no longer there, or the module that registers dataset or reader is not loaded.
    """
    facts = _facts_of(folder, dataset)
    if facts is not None and facts.source != GENERATED:
        return _data_of_files(folder, facts).card
    return _registered(folder, dataset, lambda: find_card(dataset))


def _facts_of(folder: Path, dataset: str) -> DataFacts | None:
    run_data = read_run_data(folder)
    return None if run_data is None else run_data.about(dataset)


def data_of_run(folder: Path, dataset: str, data_seed: int, record: Path, **options: Any) -> Splits:
    """Return a dataset of a run, from where and in the draw it was trained on; it must not have changed since.

    Args:
        folder: The run's folder.
        dataset: Id.
        data_seed: Which draw.
        record: Where the run's record lies once it is finished.
        options: Of the loader.

    Raises:
        ConfigError: If the dataset's parameters, generator or files changed since the run.
    """
    facts = _facts_of(folder, dataset)
    if facts is not None and facts.source != GENERATED:
        data = _data_of_files(folder, facts, **options)
    else:
        data = cast(Splits, Loader(dataset, data_seed=data_seed, **options).load(()))
    changed = other_data(folder, record, data.card.address, data_fingerprint(data.card))
    if changed and source_of(data.card) is not None:
        raise ConfigError(f"{changed}; put the files it was trained on back there, or train the model again")
    if changed:
        raise ConfigError(
            f"{changed}; give the limit that the run had, if it had one; otherwise train the model again, or from "
            "Python pass data= to score it on these data anyway"
        )
    return data


def _registered(folder: Path, subject: str, find: Callable[[], _T]) -> _T:
    """Return the result of ``find``: a part of the data of a run, which a plug-in or a script may have registered.

    Raises:
        ConfigError: If it is not registered in this process.
    """
    try:
        return find()
    except (UnknownDataset, ArgumentError) as error:
        raise ConfigError(
            f"the run {folder} was trained on {subject}, which this process does not know: {error}; name the module "
            "that registers it in GRAPHBENCH_PLUGINS, or from Python import that module first or pass data="
        ) from error


def _data_of_files(folder: Path, facts: DataFacts, **options: Any) -> Splits:
    card = _registered(folder, facts.dataset, lambda: find_card(facts.dataset))
    _registered(folder, f"files (source={facts.source!r})", lambda: find_source(card, facts.source))
    try:
        files: dict[str, Any] = {"source": facts.source, "folder": facts.folder, "data_seed": facts.data_seed}
        return cast(Splits, Loader(facts.dataset, **files, **options).load(()))
    except (StoreError, ArgumentError) as error:
        raise ConfigError(
            f"the run {folder} was trained on files (source={facts.source!r}) that cannot be read from {facts.folder} "
            f"any more: {error}; put them back there, or from Python pass data= to score it on others"
        ) from error


def other_data(folder: Path, record: Path, dataset: str, fingerprint: str) -> str:
    """Return how data differ from the data of a run; an empty text if they agree or the run does not state its data.

    Args:
        folder: The run's folder.
        record: Where its record lies once it is finished.
        dataset: Id of the data.
        fingerprint: Fingerprint of the data.
    """
    run_data = read_run_data(folder)
    trained = None if run_data is None else run_data.about(dataset) or run_data
    facts = read_record(record) if record.is_file() else trained
    if facts is None or (facts.dataset, facts.data_fingerprint or fingerprint) == (dataset, fingerprint):
        return ""
    files = f" (files in {trained.folder})" if trained is not None and trained.source != GENERATED else ""
    return (
        f"the run {folder} was trained on {facts.dataset} {facts.data_fingerprint}{files}, these data are {dataset} "
        f"{fingerprint}, of other parameters, another generator, other files or another draw"
    )


def other_classes(folder: Path, card: Card) -> str:
    """Return how the classes of data differ from the classes that a run was trained on, or an empty text.

    The data may be generated or come from published files.

    Args:
        folder: The run's folder.
        card: The card of the data.
    """
    facts = _facts_of(folder, card.address)
    if facts is None:
        return ""
    try:
        card_of_training = find_card(facts.dataset) if facts.source == GENERATED else _data_of_files(folder, facts).card
    except (UnknownDataset, ConfigError):  # a user's dataset, or files that were deleted
        return ""
    classes = {feature.name: feature.classes for feature in card_of_training.features}
    differing = [
        f"{f.name} has {classes[f.name]} classes there and {f.classes} here"
        for f in card.features
        if f.name in classes and classes[f.name] != f.classes
    ]
    if not differing:
        return ""
    here = source_name(card)
    return (
        f"the run {folder} was trained on {_kind(facts.source)} of {card.address} and cannot be scored on "
        f"{_kind(here)}: {', '.join(differing)}; train a model on these data (source={here!r}), or score the run on "
        f"{_kind(facts.source)}"
    )


def _kind(source: str) -> str:
    return "generated data" if source == GENERATED else f"files (source={source!r})"
