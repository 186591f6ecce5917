"""The facts that the scores of a run depend on: a file, ``fingerprint.json``, with which later uses are compared.

Cards, configuration, defaults of options, code of plug-ins and hashes of the data stand there by name, so that a
message can say which of them changed. The version of the package is recorded and not compared.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, Field

from graphbench._version import __version__
from graphbench.catalog.cards import Card
from graphbench.core.errors import CheckpointError, ConfigError, ResultError
from graphbench.core.files import load_json, write_json
from graphbench.core.sources import Code, changed_code, code_of
from graphbench.core.validation import StrictModel
from graphbench.core.words import first_of
from graphbench.models.tabular.config import SelectorModelConfig, TabularModelConfig
from graphbench.models.tabular.estimators import estimator_parameters
from graphbench.records.earlier_names import card_in_current_names, config_in_current_names
from graphbench.records.files import read_record
from graphbench.training.config import RunConfig, without_influence
from graphbench.training.folders import CONFIG, RESTART, read_facts, record_path, short
from graphbench.training.overrides import flat
from graphbench.training.settings import TrainingConfig

if TYPE_CHECKING:
    from graphbench.training.context import RunContext, TaskRun

logger = logging.getLogger(__name__)

IDENTITY = "fingerprint.json"
_NAMED_CHANGES = 6
_CARD_KEYS = {"directed", "complete", "protocol", "classes", "channels", "class_aliases", "task", "metrics", "series"}
_TEXTS = {"task": {"title", "summary"}}
_NOTHING = "nothing"


class RunIdentity(StrictModel):
    """The facts that the scores of a run depend on.

    Attributes:
        graphbench_version: Version that wrote the file; it is not compared.
        from_start: Whether the run was begun by a version that writes this file.
        config: The content of ``config.json``, with all defaults.
        options: Options of the model that the configuration leaves to their defaults: of processors, by the name of
            the module, and parameters of estimators.
        cards: Dataset -> features, task, metrics and protocol of its card.
        code: The code of plug-ins and scripts, see :func:`graphbench.core.sources.code_of`.
        data: Dataset -> hashes of the splits that are trained and validated on, their transforms, and facts of the
            training split that scores refer to.
        transforms: The code of the transforms.
        unchecked: Code that has no source to compare.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    graphbench_version: str = __version__
    from_start: bool = True
    config: dict[str, Any]
    options: dict[str, Any]
    cards: dict[str, dict[str, Any]]
    code: dict[str, str]
    data: dict[str, dict[str, Any]] = Field(default_factory=dict)
    transforms: dict[str, str] = Field(default_factory=dict)
    unchecked: tuple[str, ...] = ()


def identity_of(config: RunConfig, cards: Mapping[str, Card], model: Any, runs: Mapping[str, TaskRun]) -> RunIdentity:
    """Return the facts that the scores of a run depend on.

    Args:
        config: Its configuration.
        cards: Its datasets.
        model: The model, freshly built or fitted.
        runs: Its splits by dataset; empty where a finished run is scored.
    """
    code = code_of_run(config, cards.values())
    splits = [split for run in runs.values() for split in run.stored.values()]
    transforms = code_of((), (split.transform for split in splits if split.transform is not None))
    content = {
        "config": config.to_dict(),
        "options": _options_of(config, model),
        "cards": {id_: card_meaning(card) for id_, card in cards.items()},
        "code": code.hashes,
        "data": {id_: _data_of(run) for id_, run in runs.items()},
        "transforms": transforms.hashes,
        "unchecked": (*code.unchecked, *transforms.unchecked),
    }
    return RunIdentity.model_validate(json.loads(json.dumps(content)))


def card_meaning(card: Card) -> dict[str, Any]:
    """Return the facts of a card that scores depend on, beside the data: no texts, no counts."""
    values = card.model_dump(mode="json", include=_CARD_KEYS, exclude=_TEXTS)
    values["features"] = {f.name: f"{f.stage} {f.location} {f.type_name}" for f in card.features}
    if card.representation is not None:
        values["representation"] = card.representations[card.representation].derived_by
    return {key: value for key, value in values.items() if value not in (None, {}, [])}


def code_of_run(config: RunConfig, cards: Iterable[Card]) -> Code:
    """Return the code of plug-ins and scripts that a configuration and cards name."""
    names = set(_texts(config.to_dict()))
    for card in cards:
        names |= {card.domain, card.generator, *card.labellers, *_texts(card_meaning(card))}
    return code_of(names)


def write_identity(folder: Path, identity: RunIdentity) -> None:
    """Write the facts that the scores of a run depend on."""
    write_json(folder / IDENTITY, identity.model_dump(mode="json", by_alias=True))


def read_identity(folder: Path) -> RunIdentity | None:
    """Return the facts that the scores of a run depend on; None where an earlier version, without them, wrote the run.

    Raises:
        CheckpointError: If the file cannot be read.
    """
    identity = read_facts(folder / IDENTITY, RunIdentity, f"put the file back, or train the model again with {RESTART}")
    return None if identity is None else in_current_names(identity)


def in_current_names(identity: RunIdentity) -> RunIdentity:
    """Return the facts of a run that an earlier version may have written, with the names of this version."""
    cards = {id_: card_in_current_names(card) for id_, card in identity.cards.items()}
    return identity.model_copy(update={"config": config_in_current_names(identity.config), "cards": cards})


def continued_identity(context: RunContext, now: RunIdentity) -> RunIdentity:
    """Return the identity of a run that continues from its folder, after a comparison with its earlier identity.

    Args:
        context: The run.
        now: The facts that its scores depend on now.

    Raises:
        CheckpointError: If something changed; the message names it with its values before and now.
    """
    folder = context.folder
    before = read_identity(folder)
    if before is None:
        changes = _other_selection(context)
    else:
        changes = [*edited_settings(folder, before), *_changes(before, now, context.config)]
    if changes:
        raise CheckpointError(
            f"{folder} belongs to another run (its scores have another meaning): {in_words(changes)}; "
            f"undo the change, choose another output folder, or pass {RESTART} to start again and overwrite it"
        )
    _warn_of_unchecked(folder, before, now)
    return now.model_copy(update={"from_start": before is not None and before.from_start})


def require_finished_identity(folder: Path, config: RunConfig, cards: Mapping[str, Card], *, data_given: bool) -> None:
    """Refuse a finished run that would be scored with another meaning than it was trained with.

    Args:
        folder: Its folder.
        config: Its configuration, as ``config.json`` says.
        cards: Its datasets as they are now.
        data_given: Whether the caller gave the data: cards and code may then differ, with a warning.

    Raises:
        ConfigError: If ``config.json`` was edited, or a card or the code of a plug-in changed.
        CheckpointError: If the folder's ``fingerprint.json`` cannot be read.
    """
    before = read_identity(folder)
    if before is None:
        _warn_of_unchecked(folder, None, None)
        return
    if edited := edited_settings(folder, before):
        raise ConfigError(
            f"{folder / CONFIG} was edited since the model was trained: {in_words(edited)}; put the values back, or "
            "train the model again with the new ones"
        )
    _require_unchanged(folder, changed_meaning(before, config, cards), data_given)
    _warn_of_unchecked(folder, before, None)


def require_finished_model(
    folder: Path, config: RunConfig, cards: Mapping[str, Card], model: Any, *, data_given: bool
) -> None:
    """Refuse a finished run whose model has other defaults of options now, or lacks code that it was trained with.

    Args:
        folder: Its folder.
        config: Its configuration.
        cards: Its datasets.
        model: The model.
        data_given: As for :func:`require_finished_identity`.

    Raises:
        ConfigError: If an option differs, or code is gone.
        CheckpointError: If the folder's ``fingerprint.json`` cannot be read.
    """
    before = read_identity(folder)
    if before is not None:
        _require_unchanged(folder, changed_model(before, config, cards, model), data_given)


def changed_meaning(
    before: RunIdentity, config: RunConfig, cards: Mapping[str, Card], unread: Collection[str] = ()
) -> list[str]:
    """Return in words which cards and which code of plug-ins have changed; code that is missing does not count.

    Args:
        before: The facts at the end of training.
        config: The configuration of the run.
        cards: Its datasets as they are now.
        unread: Sections of a card that do not matter to the caller, such as ``metrics``.
    """
    meanings = {id_: card_meaning(card) for id_, card in cards.items()}
    then, now = (
        {id_: {key: value for key, value in facts.items() if key not in unread} for id_, facts in by_dataset.items()}
        for by_dataset in (before.cards, meanings)
    )
    code = code_of_run(config, cards.values())
    return [*_changed_cards(then, now), *changed_code(before.code, code.hashes, missing=False)]


def changed_model(before: RunIdentity, config: RunConfig, cards: Mapping[str, Card], model: Any) -> list[str]:
    """Return in words which options of a rebuilt model differ, and which code of plug-ins is gone.

    Args:
        before: The facts at the end of training.
        config: The configuration of the run.
        cards: Its datasets.
        model: The model, built by the present code.
    """
    options = _differing(before.options, json.loads(json.dumps(_options_of(config, model))), "option ")
    code = code_of_run(config, cards.values()).hashes
    gone = {name: digest for name, digest in before.code.items() if name not in code}
    return [*options, *changed_code(gone, code)]


def edited_settings(folder: Path, before: RunIdentity) -> list[str]:
    """Return how ``config.json`` differs from the configuration that the run wrote, e.g. ``training.lr 0.1 -> 0.2``."""
    try:
        content = load_json(folder / CONFIG)
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        return [f"{CONFIG} cannot be read ({error})"]
    if not isinstance(content, dict) or not isinstance(content.get("training", {}), dict):
        return [f"{CONFIG} is no mapping with a section training"]
    return _differing(_whole(before.config), _whole(content), f"{CONFIG} ", _free_settings(before.config))


def _changes(before: RunIdentity, now: RunIdentity, config: RunConfig) -> list[str]:
    """Return everything that differs, in words."""
    return [
        *_differing(_whole(before.config), _whole(now.config), "", _free_settings(now.config)),
        *_differing(before.options, now.options, "option "),
        *_changed_cards(before.cards, now.cards),
        *changed_code(before.code, now.code),
        *_differing(before.data, now.data, "data "),
        *changed_code(before.transforms, now.transforms),
    ]


def _changed_cards(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    several = len(before) > 1
    return [
        words
        for id_ in before.keys() & now.keys()
        for words in _differing(before[id_], now[id_], f"card of {id_}: " if several else "card ")
    ]


def _differing(before: Mapping[str, Any], now: Mapping[str, Any], kind: str, free: Iterable[str] = ()) -> list[str]:
    """Return the values that differ, e.g. ``card metrics.primary f1 -> accuracy``."""
    old, new = flat(before), flat(now)
    return [
        f"{kind}{key} {short(old.get(key, _NOTHING))} -> {short(new.get(key, _NOTHING))}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key, _NOTHING) != new.get(key, _NOTHING) and key not in free
    ]


def _whole(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of ``config.json`` with the settings that it leaves out while they have their defaults."""
    config = config_in_current_names(config)
    training = {**TrainingConfig().model_dump(mode="json"), **config.get("training", {})}
    return {"datasets": [], "overridden": [], "data_seed": 0, **config, "training": training}


def _free_settings(config: Mapping[str, Any]) -> set[str]:
    return {f"training.{name}" for name in without_influence(config["training"])} | {
        "model_name",
        "overridden",
        "reference_steps",
        "small",
    }


def _require_unchanged(folder: Path, changes: list[str], data_given: bool) -> None:
    if not changes:
        return
    words = f"the run {folder} was trained with another meaning of its scores: {in_words(changes)}"
    if not data_given:
        raise ConfigError(
            f"{words}; undo the change, train the model again, or from Python pass data= to score it as it is anyway"
        )
    logger.warning("%s", words)


def _other_selection(context: RunContext) -> list[str]:
    """Return how the metric of validation differs from the metric in the record of a run without an identity file."""
    changes = []
    for id_, run in context.runs.items():
        try:
            record = read_record(record_path(context.folder, id_ if len(context.runs) > 1 else None))
        except ResultError:
            continue
        before = [name.removeprefix("val_") for name in record.curves if name.startswith("val_")]
        now = run.task.selection[0]
        if len(context.runs) == 1 and before and now not in before:
            changes.append(f"metric of validation {before[0]} -> {now}")
    return changes


def _warn_of_unchecked(folder: Path, before: RunIdentity | None, now: RunIdentity | None) -> None:
    """Warn in one line of facts that could not be compared with the facts at the beginning of the run."""
    unchecked = {*(before.unchecked if before is not None else ()), *(now.unchecked if now is not None else ())}
    if before is None or not before.from_start:
        logger.warning(
            "the run %s was begun by a version without %s: it could not be checked that cards, options, the code of "
            "plug-ins and %s are unchanged since its training",
            folder,
            IDENTITY,
            CONFIG,
        )
    elif unchecked:
        logger.warning(
            "whether the run %s was trained with the same code could not be checked of %s, which has no source to read",
            folder,
            ", ".join(sorted(unchecked)),
        )


def _options_of(config: RunConfig, model: Any) -> dict[str, Any]:
    """Return the effective options of a model, defaults included."""
    if isinstance(config.model, TabularModelConfig | SelectorModelConfig):
        return {config.model.processor: estimator_parameters(config.model.processor, config.model.options)}
    modules = model.named_modules() if hasattr(model, "named_modules") else ()
    return {
        name or type(module).__name__: options.model_dump(mode="json")
        for name, module in modules
        if isinstance(options := getattr(module, "options", None), BaseModel)
    }


def _data_of(run: TaskRun) -> dict[str, Any]:
    """Return the facts that distinguish the data of a dataset of a run from other data."""
    values: dict[str, Any] = {"fingerprint": run.val.data_fingerprint}
    for name, split in run.stored.items():
        values[name] = split.content_hash
        if split.transform is not None:
            values[f"transform of {name}"] = _described(split.transform)
    return values | ({"facts": dict(run.task.facts)} if run.task.facts else {})


def _described(thing: Any) -> Any:
    """Return JSON values that tell a transform from others: its name, or its class with the values that it holds."""
    if hasattr(thing, "__qualname__"):
        return f"{thing.__module__}.{thing.__qualname__}"
    if isinstance(thing, list | tuple):
        return [_described(item) for item in thing]
    if isinstance(thing, bool | int | float | str | None):
        return thing
    values = {name: _described(value) for name, value in sorted(getattr(thing, "__dict__", {}).items())}
    return {"class": f"{type(thing).__module__}.{type(thing).__qualname__}", **values}


def in_words(changes: Sequence[str]) -> str:
    """Return the first changes as part of a message."""
    return first_of(changes, _NAMED_CHANGES)


def _texts(value: Any) -> Iterable[str]:
    """Yield all texts in nested mappings and lists, but keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)
