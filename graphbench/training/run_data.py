"""What data a run is trained on: a file of its folder, there from the first step on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphbench.catalog.cards import Card
from graphbench.catalog.names import card as find_card
from graphbench.core.errors import CheckpointError, ConfigError, StoreError
from graphbench.core.files import write_json
from graphbench.data.layout import data_fingerprint
from graphbench.evaluation.results import read_record
from graphbench.loader import Loader, Splits

DATA = "data.json"


class RunData(BaseModel):
    """What a run's ``data.json`` says.

    Attributes:
        dataset: Id.
        data_seed: Which draw.
        data_fingerprint: Fingerprint of parameters, generator and transforms that names the data folder.
        source: ``generated``, or ``official``: published files.
        folder: Folder of the published files.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    dataset: str
    data_seed: int = 0
    data_fingerprint: str
    source: Literal["generated", "official"] = "generated"
    folder: str | None = None


def write_run_data(folder: Path, data: Splits) -> None:
    """Write what a run in ``folder`` is trained on."""
    card = data.card
    place = card.split("train").parameters.get("folder") if card.protocol == "official" else None
    facts = RunData(
        dataset=card.address,
        data_seed=card.data_seed,
        data_fingerprint=data.val.data_fingerprint,
        source="generated" if place is None else "official",
        folder=place,
    )
    write_json(folder / DATA, facts.model_dump(mode="json", by_alias=True))


def read_run_data(folder: Path) -> RunData | None:
    """Return what a run is trained on; None where the run is of a version that did not write it.

    Raises:
        CheckpointError: If the file cannot be read.
    """
    path = folder / DATA
    if not path.is_file():
        return None
    try:
        return RunData.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise CheckpointError(f"{path} cannot be read ({reason}); train the model anew") from error


def card_of_run(folder: Path, dataset: str) -> Card:
    """Return the card of a run's dataset, of published files that of the files.

    Raises:
        ConfigError: If the files are no longer there.
    """
    facts = read_run_data(folder)
    if facts is None or facts.source == "generated":
        return find_card(dataset)
    return _official_data(folder, facts).card


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
    facts = read_run_data(folder)
    if facts is not None and facts.source == "official":
        data = _official_data(folder, facts, **options)
    else:
        data = cast(Splits, Loader(dataset, data_seed=data_seed, **options).load(()))
    changed = other_data(folder, record, data.card.address, data_fingerprint(data.card))
    if changed and data.card.protocol == "official":
        raise ConfigError(f"{changed}; put the files it was trained on back there, or train the model anew")
    if changed:
        raise ConfigError(
            f"{changed}; train the model anew, or from Python pass data= to score it on these data all the same"
        )
    return data


def _official_data(folder: Path, facts: RunData, **options: Any) -> Splits:
    try:
        return cast(Splits, Loader(facts.dataset, source="official", folder=facts.folder, **options).load(()))
    except StoreError as error:
        raise ConfigError(
            f"the run {folder} was trained on published files that cannot be read from {facts.folder} any more: "
            f"{error}; put them back there, or from Python pass data= to score it on others"
        ) from error


def other_data(folder: Path, record: Path, dataset: str, fingerprint: str) -> str:
    """Return how data differ from those of a run; nothing where they agree or the run does not say.

    Args:
        folder: The run's folder.
        record: Where its record lies once it is finished.
        dataset: Id of the data.
        fingerprint: Fingerprint of the data.
    """
    facts = read_record(record) if record.is_file() else read_run_data(folder)
    if facts is None or (facts.dataset, facts.data_fingerprint or fingerprint) == (dataset, fingerprint):
        return ""
    place = read_run_data(folder)
    files = f" (published files in {place.folder})" if place is not None and place.source == "official" else ""
    return (
        f"the run {folder} was trained on {facts.dataset} {facts.data_fingerprint}{files}, these data are {dataset} "
        f"{fingerprint}, of other parameters, another generator, other files or another draw"
    )


def other_classes(folder: Path, card: Card) -> str:
    """Return where data have other classes than those a run was trained on, generated ones and published files.

    Args:
        folder: The run's folder.
        card: The card of the data.
    """
    facts = read_run_data(folder)
    if facts is None or facts.dataset != card.address:
        return ""
    own = find_card(facts.dataset) if facts.source == "generated" else _official_data(folder, facts).card
    known = {feature.name: feature.classes for feature in own.features}
    differing = [
        f"{f.name} has {known[f.name]} classes there and {f.classes} here"
        for f in card.features
        if f.name in known and known[f.name] != f.classes
    ]
    if not differing:
        return ""
    kinds = {"generated": "generated data", "official": "published files"}
    here = "official" if card.protocol == "official" else "generated"
    return (
        f"the run {folder} was trained on {kinds[facts.source]} of {card.address} and cannot be scored on "
        f"{kinds[here]}: {', '.join(differing)}; train a model on these data (source={here!r}), or score it on its own"
    )
