"""Configurations of a training run: the files under ``baselines/<domain>/``, overrides, and their validation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, ValidationError, field_validator

from graphbench.catalog.names import card as card_of
from graphbench.catalog.resources import NOT_MODELS, data_files, data_files_for, folder_with, read_yaml
from graphbench.core.errors import CardError, ConfigError, DecodingError, UnknownDataset, UnknownModel
from graphbench.core.files import parse_json
from graphbench.core.plugins import about_broken
from graphbench.core.suggestions import closest, did_you_mean, nearest
from graphbench.core.validation import StrictModel, explain, section_below
from graphbench.models.registry import DEFAULT_KIND, Architecture, architecture, architectures
from graphbench.records.earlier_names import config_for_digests, config_in_current_names
from graphbench.tasks.registry import task_of
from graphbench.training.overrides import changed_keys, merged, pair_of, with_arguments, with_scaled_warmup
from graphbench.training.parts import why_not_in_parts
from graphbench.training.settings import TrainingConfig

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card

Overrides = Mapping[str, Any] | Sequence[str]


_Schema = TypeVar("_Schema", bound=BaseModel)

_WITHOUT_INFLUENCE = ("log_every", "checkpoint_every", "eval_batch_size")


class RunConfig(StrictModel):
    """Everything that decides a run's result, apart from the data.

    Attributes:
        dataset: Id of the dataset. If several datasets are trained together, this is the first one, or the one that a
            record describes.
        datasets: Ids that are trained together, in the order of their turns; empty for a single one.
        model_name: Name of the configuration file, e.g. ``gin``.
        model: The model's configuration.
        training: How it is trained.
        reference_steps: The budget in steps that the file asks for; a run with fewer steps is a small run. None for a
            file that does not belong to the package, which has no reference budget. 0 for a learner without steps.
        overridden: Keys that were changed and make the run another one than its file's, e.g. ``model.hidden``. Not
            among them: seed, steps, precision, compile, and the intervals and batch size of validation.
        small: True for a small configuration for demonstrations: a file whose name ends in ``_small``.
        limit: Samples per split that were used; None for all.
        data_seed: Which draw of the dataset was used; 0 for the canonical one.
    """

    model_config = ConfigDict(protected_namespaces=())

    dataset: str
    datasets: tuple[str, ...] = ()
    model_name: str
    model: SerializeAsAny[BaseModel]
    training: TrainingConfig
    reference_steps: int | None = None
    overridden: tuple[str, ...] = ()
    small: bool = False
    limit: int | None = None
    data_seed: int = Field(0, ge=0)

    @field_validator("model", mode="before")
    @classmethod
    def _by_kind(cls, value: Any) -> Any:
        return architecture(kind_of(value)).config.model_validate(value) if isinstance(value, Mapping) else value

    @property
    def kind(self) -> str:
        """The kind of the model's architecture."""
        return kind_of(self.model)

    @property
    def is_small(self) -> bool:
        """Whether the run has less budget or data than its configuration file asks for, or a user's configuration.

        A file's budget is for one dataset: each of several datasets that are trained together needs as much.
        """
        return self.why_small is not None

    @property
    def why_small(self) -> str | None:
        """The first reason for which the run is a small one, in words; None if it is not."""
        if self.limit is not None:
            return f"its splits were limited to {self.limit} samples"
        if self.overridden:
            return "it changed keys of its configuration (overridden)"
        if self.small:
            return f"{self.model_name} is a small configuration"
        if self.reference_steps is None:
            return f"{self.model_name} is none of graphbench's configurations"
        least = self.reference_steps * max(1, len(self.datasets))
        if self.training.steps < least:
            return f"it has {self.training.steps:,} steps, and {self.model_name} {least:,}"
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the content of JSON files; facts that only some runs have are left out for other runs."""
        values = self.model_dump(mode="json")
        left_out: dict[str, Any] = {
            "eval_at": [],
            "mixture": "turns",
            "train_limit": None,
            "neighbours": None,
            "start": None,
            "augment": [],
        }
        for key, default in left_out.items():
            if values["training"][key] == default:
                values["training"].pop(key)
        return {
            key: value for key, value in values.items() if value or key not in ("datasets", "overridden", "data_seed")
        }


class _Task(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: dict[str, Any] = Field(default_factory=dict)
    training: dict[str, Any] = Field(default_factory=dict)


class _File(_Task):
    title: str = ""
    note: str = ""
    source: str | dict[str, Any] = ""
    tasks: dict[str, _Task] = Field(default_factory=dict)
    parameters: dict[str, float] = Field(default_factory=dict)
    seen: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    default: bool = False


def kind_of(model: Any) -> str:
    """Return the kind that a model section or a model's configuration says."""
    kind = model.get("kind", DEFAULT_KIND) if isinstance(model, Mapping) else getattr(model, "kind", DEFAULT_KIND)
    return str(kind)


def default_model(domain: str) -> str:
    """Return the model that is trained on a domain's datasets where none is named.

    It is the configuration whose file says ``default: true``, else ``gin``, else the first one: of the domain's own, or
    of those for any domain where it has none.

    Raises:
        UnknownModel: If the domain has no configuration.
    """
    names = _names_for(domain)
    if not names:
        raise UnknownModel(f"there is no model configuration for {domain!r}; give the path of a .yaml file")
    marked = [name for name in names if _read(_config_path(domain, name)).get("default")]
    return marked[0] if marked else "gin" if "gin" in names else names[0]


def models_for(card: Card) -> list[str]:
    """Return the configurations of a dataset's domain whose models can serve it: the default first, the others sorted.

    Files with an error are left out.
    """
    names = [name for name in _names_for(card.domain) if _serves(name, card)]
    try:
        default = default_model(card.domain)
    except (ConfigError, UnknownModel):
        return names
    return sorted(names, key=lambda name: name != default)


def _serves(name: str, card: Card) -> bool | None:
    """Return whether the models of a configuration can serve a dataset; None for a file with an error."""
    try:
        config = load_config(card.address, name, family=card.family)
    except (ConfigError, UnknownModel):
        return None
    if config.training.neighbours is not None and why_not_in_parts(card):
        return False
    try:
        task_of(card, config.training.task)
    except (ConfigError, DecodingError):
        return False
    return architecture(config.kind).serves(config.model, card)


def _default_for(dataset: str) -> str:
    """Return the default of the domain, or the first configuration that can serve where the default cannot."""
    default = default_model(dataset.split("/")[0])
    try:
        card = card_of(dataset)
    except UnknownDataset:  # a card that is not in the catalogue
        return default
    return default if _serves(default, card) is not False else next(iter(models_for(card)), default)


def _names_for(domain: str) -> list[str]:
    names = [name.split("/")[1] for name in list_configs(domain)]
    return names or list(data_files_for("baselines", domain, NOT_MODELS))


def list_configs(domain: str | None = None) -> list[str]:
    """Return the model configurations of the package and of plug-ins, as ``<domain>/<model>``, sorted."""
    return list(data_files("baselines", domain, NOT_MODELS))


@cache
def draws_seen(dataset: str, model: str) -> tuple[int, ...]:
    """Return the draws of a dataset whose test splits had a part in the choice of a configuration's settings.

    The file says so under ``seen``. Scores on these draws are not blind. No draw for models without a configuration.

    Args:
        dataset: Dataset id, with or without a task.
        model: Name of a file in ``baselines/<domain>/``.
    """
    try:
        path = _config_path(dataset.split("/")[0], model)
        return _validated(_File, _read(path), path.name).seen.get(dataset, ())
    except (ConfigError, UnknownModel):
        return ()


def load_config(
    dataset: str,
    model: str | Path | None = None,
    *,
    family: str | None = None,
    steps: int | None = None,
    seed: int | None = None,
    limit: int | None = None,
    data_seed: int = 0,
    overrides: Overrides | None = None,
) -> RunConfig:
    """Return the validated configuration of one run.

    The file's ``model`` and ``training`` sections come first, then its ``tasks[family]`` section, then ``overrides``,
    then ``steps`` and ``seed``. A budget below the file's keeps the warm-up's share of the run, unless the overrides
    set ``training.warmup``. A file that is not one of the package's has no published budget.

    Args:
        dataset: Dataset id, e.g. ``algoreas/mst_easy``; its first part is the domain.
        model: Name of a file in ``baselines/<domain>/``, or the path of a user's YAML file; None for the domain's
            default, see :func:`default_model`, or the first one whose models can serve the dataset where those of the
            default cannot.
        family: The card family whose overrides apply, e.g. ``mst``.
        steps: Budget in optimizer updates instead of the file's.
        seed: Seed of the run.
        limit: Samples per split, recorded with the run.
        data_seed: Which draw of the dataset, recorded with the run.
        overrides: Nested mapping, mapping with dotted keys, or ``key=value`` strings, e.g. ``training.lr=3e-4``.

    Raises:
        UnknownModel: If no such configuration exists; the message suggests the nearest one.
        ConfigError: If a key is unknown, a value is refused, or ``steps`` or ``seed`` contradicts an override; the
            message names the key.
    """
    domain = dataset.split("/")[0]
    path = _config_path(domain, model if model is not None else _default_for(dataset))
    file = _validated(_File, _read(path), f"{path.name}")
    task = file.tasks.get(family or "", _Task())
    sections, of_family = (
        config_in_current_names({"model": part.model, "training": part.training}) for part in (file, task)
    )
    base = merged(sections, of_family)
    reference = base["training"].get("steps")
    changes = with_arguments(config_in_current_names(parse_overrides(overrides)), steps=steps, seed=seed)
    changes["model"] = _of_one_kind(base["model"], changes.get("model", {}), path.stem)
    base["model"] = _without_default_kind(base["model"])
    values = with_scaled_warmup(merged(base, changes), changes, reference)
    shipped = folder_with("baselines", path) is not None
    facts = {"dataset": dataset, "model_name": path.stem, "limit": limit, "data_seed": data_seed}
    where = f"{dataset} with {path.stem}"
    if not _architecture_of(base["model"], where).has_steps:
        reference = 0
    facts |= {"reference_steps": reference if shipped else None, "small": path.stem.endswith("_small")}
    config = _validated_run({**values, **facts}, where)
    if not shipped:
        return config
    unchanged = _validated_run({**base, **facts}, where)
    return config.model_copy(update={"overridden": changed_keys(unchanged.model_dump(), config.model_dump(), changes)})


def parse_overrides(overrides: Overrides | None) -> dict[str, Any]:
    """Return overrides as one nested mapping.

    Raises:
        ConfigError: If a string has no ``=`` or a key does not start with ``model.`` or ``training.``.
    """
    if overrides is None:
        return {}
    if isinstance(overrides, str):
        raise ConfigError(f"overrides must be a mapping or a list of 'key=value' strings, got {overrides!r}")
    pairs = overrides.items() if isinstance(overrides, Mapping) else [pair_of(text) for text in overrides]
    nested: dict[str, Any] = {}
    for key, value in pairs:
        first, *rest = str(key).split(".")
        if first not in ("model", "training") or (not rest and not isinstance(value, Mapping)):
            hint = _suggested_key(first, rest)
            raise ConfigError(f"override {key!r} must start with 'model.' or 'training.'{hint}")
        for part in reversed(rest):
            value = {part: value}
        nested = merged(nested, {first: value})
    return nested


def fingerprint(config: RunConfig, data_hash: str) -> str:
    """Return the hash that a checkpoint must share with the run that continues it.

    Budget and reporting intervals that do not change the weights at a given step are left out: ``steps`` where
    ``schedule_steps`` is set, the logging and checkpoint intervals and the evaluation batch size.
    """
    settings = config_for_digests(config.to_dict())
    training = settings["training"]
    for key in without_influence(training):
        training.pop(key)
    data = [config.dataset, data_hash, config.limit]
    content = {"data": data, "model": settings["model"], "training": training}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def without_influence(training: Mapping[str, Any]) -> set[str]:
    """Return the settings of a section ``training`` that do not change the weights at a given step."""
    return {*_WITHOUT_INFLUENCE, *(["steps"] if training.get("schedule_steps") is not None else [])}


def run_config_from_json(text: str, where: str) -> RunConfig:
    """Return the configuration a run folder's ``config.json`` holds.

    Raises:
        ConfigError: If the text is not a valid configuration.
    """
    return _validated_run(parse_json(text, where, ConfigError), where)


def _of_one_kind(model: Mapping[str, Any], changes: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the overrides of a model section without the kind, which they cannot change."""
    kind = kind_of(model)
    requested = changes.get("kind", kind)
    if requested != kind:
        raise ConfigError(f"model.kind={requested} is refused: {name} is of kind {kind}; choose another configuration")
    return {key: value for key, value in changes.items() if key != "kind"}


def _without_default_kind(model: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in model.items() if (key, value) != ("kind", DEFAULT_KIND)}


def is_config_file(model: str | Path) -> bool:
    """Return whether a model is given by the path of its configuration file, not by name."""
    return Path(model).suffix in (".yaml", ".yml")


def _config_path(domain: str, model: str | Path) -> Path:
    path = Path(model)
    if is_config_file(path):
        if not path.is_file():
            raise UnknownModel(f"the configuration file {str(path)!r} does not exist")
        return path
    files = data_files_for("baselines", domain, NOT_MODELS)
    if str(model) in files:
        return files[str(model)]
    there = ", ".join(files) or "none"
    raise UnknownModel(
        f"unknown model {str(model)!r} for domain {domain!r}{closest(model, files)} (configurations there: {there}; "
        f"or give the path of a .yaml file){about_broken()}"
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        content = read_yaml(path)
    except CardError as error:
        raise ConfigError(str(error)) from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path.name}: expected a mapping with the keys model and training")
    return content


def _suggested_key(section: str, rest: Sequence[str]) -> str:
    """Return the intended key for a key with an unknown section, as a part of a message."""
    if not rest:
        return "" if section in ("model", "training") else _suggestion(section)
    near = nearest(section, ("model", "training"))
    return did_you_mean([".".join([*near, *rest])]) if near else _suggestion(rest[-1])


def _known_keys() -> list[str]:
    names = [f"training.{name}" for name in TrainingConfig.model_fields]
    return names + [f"model.{name}" for registered in architectures() for name in registered.config.model_fields]


def _architecture_of(section: Any, where: str) -> Architecture:
    """Return the kind of model that a model section says.

    Raises:
        ConfigError: If there is none.
    """
    try:
        return architecture(kind_of(section))
    except UnknownModel as error:
        raise ConfigError(f"{where}: model.kind is refused: {error}") from error


def _validated(schema: type[_Schema], values: Mapping[str, Any], where: str) -> _Schema:
    try:
        return schema.model_validate(values)
    except ValidationError as error:
        raise ConfigError(explain(error, schema, where=where, suggest=_suggestion)) from error


def _validated_run(values: Any, where: str) -> RunConfig:
    """Return the configuration of a run, after its model section was checked against the schema of its kind.

    Raises:
        ConfigError: With all problems of both.
    """
    if not isinstance(values, Mapping) or not isinstance(values.get("model", {}), Mapping):
        raise ConfigError(f"{where}: expected a mapping with the keys model and training, got {values!r:.80}")
    values = config_in_current_names(values)
    problems, section = [], values.get("model", {})
    schema = _architecture_of(section, where).config
    section_schema = section_below(schema, "model")
    model = schema.model_construct()
    try:
        model = section_schema.model_validate({"model": section}).model  # type: ignore[attr-defined]
    except ValidationError as error:
        problems.append(explain(error, section_schema, where=where, suggest=_suggestion))
    try:
        config = RunConfig.model_validate({**values, "model": model})
    except ValidationError as error:
        problems.append(explain(error, RunConfig, where=where, suggest=_suggestion))
    if problems:
        raise ConfigError("; ".join(problems))
    return config


def _suggestion(key: str) -> str:
    """Return which kinds of models have a key, or the key with the most similar last part, in any section."""
    section, _, name = key.rpartition(".")
    kinds = [registered.kind for registered in architectures() if name in registered.config.model_fields]
    if section == "model" and kinds:
        return f"; it is a key of models of kind {', '.join(kinds)}"
    others = {name.rpartition(".")[2]: name for name in _known_keys() if name != key}
    return closest(key.rpartition(".")[2], (), aliases=others)
