"""Configurations of a training run: the files under ``baselines/<domain>/``, overrides, and their validation."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError

from graphbench.catalog.resources import baselines_dir, read_yaml
from graphbench.core.errors import CardError, ConfigError, UnknownModel
from graphbench.models.config import ModelConfig
from graphbench.models.language_config import TextModelConfig
from graphbench.models.story.config import StoryModelConfig
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.training.overrides import changed_keys, merged, pair_of, with_arguments, with_scaled_warmup
from graphbench.training.settings import TrainingConfig

Overrides = Mapping[str, Any] | Sequence[str]


_KINDS = ("graph", "trajectory", "story", "text")  # what pydantic puts between "model" and a key


def _kind_of_model(value: Any) -> str:
    return str(value.get("kind", "graph") if isinstance(value, Mapping) else getattr(value, "kind", "graph"))


AnyModelConfig = Annotated[
    Annotated[ModelConfig, Tag("graph")]
    | Annotated[TrajectoryModelConfig, Tag("trajectory")]
    | Annotated[StoryModelConfig, Tag("story")]
    | Annotated[TextModelConfig, Tag("text")],
    Discriminator(_kind_of_model),
]
"""A model for single graphs, or, with ``kind: trajectory``, ``story`` or ``text``, one for trajectories or texts."""
_Schema = TypeVar("_Schema", bound=BaseModel)

_SCHEMAS: tuple[type[BaseModel], ...] = (TextModelConfig, StoryModelConfig, TrajectoryModelConfig, ModelConfig)
_DEFAULT_MODELS = {"clrs": "mpnn", "clrs_text": "transformer_small", "clutrr": "gat"}  # of other domains: gin
_NOT_MODELS = ("published", "results")
_WITHOUT_INFLUENCE = ("log_every", "checkpoint_every", "eval_batch_size")


class RunConfig(BaseModel):
    """Everything that decides a run's result, apart from the data.

    Attributes:
        dataset: Id of the dataset; of several that are trained together, the first or the one a record is about.
        datasets: Ids that are trained together, in the order of their turns; empty for a single one.
        model_name: Name of the configuration file, e.g. ``gin``.
        model: The model's configuration.
        training: How it is trained.
        reference_steps: The file's own budget in steps; a run with fewer is a small run. None for a file that is not
            one of the package's: its budget is compared with nothing.
        overridden: Keys that were changed and make the run another one than its file's, e.g. ``model.hidden``. Not
            among them: seed, steps, precision, compile, and the intervals and batch size of validation.
        small: True for a small configuration for demonstrations: a file whose name ends in ``_small``.
        limit: Samples per split that were used; None for all.
        data_seed: Which draw of the dataset was used; 0 for the canonical one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    dataset: str
    datasets: tuple[str, ...] = ()
    model_name: str
    model: AnyModelConfig
    training: TrainingConfig
    reference_steps: int | None = None
    overridden: tuple[str, ...] = ()
    small: bool = False
    limit: int | None = None
    data_seed: int = Field(0, ge=0)

    @property
    def is_small(self) -> bool:
        """Whether the run has less budget or data than its configuration file asks for, or a configuration of its own.

        A file's budget is that of one dataset: several that are trained together need as much each.
        """
        if self.small or self.limit is not None or self.reference_steps is None or self.overridden:
            return True
        return self.training.steps < self.reference_steps * max(1, len(self.datasets))

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON files hold; facts that only some runs have are left out of the others'."""
        values = self.model_dump(mode="json")
        if not self.training.eval_at:
            values["training"].pop("eval_at")
        return {
            key: value for key, value in values.items() if value or key not in ("datasets", "overridden", "data_seed")
        }


class _Task(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: dict[str, Any] = {}
    training: dict[str, Any] = {}


class _File(_Task):
    title: str = ""
    note: str = ""
    source: str | dict[str, Any] = ""
    tasks: dict[str, _Task] = {}
    parameters: dict[str, float] = {}


def list_configs(domain: str | None = None) -> list[str]:
    """Return the model configurations that ship with the package, as ``<domain>/<model>``, sorted."""
    files = baselines_dir().glob(f"{domain or '*'}/*.yaml")
    return sorted(f"{f.parent.name}/{f.stem}" for f in files if f.parent.name not in _NOT_MODELS)


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
        model: Name of a file in ``baselines/<domain>/``, or the path of a YAML file of your own; None for the domain's
            default: ``gin``, of trajectories ``mpnn``, of texts ``transformer_small``, of kinship ``gat``.
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
    path = _config_path(domain, model if model is not None else _DEFAULT_MODELS.get(domain, "gin"))
    file = _validated(_File, _read(path), f"{path.name}")
    task = file.tasks.get(family or "", _Task())
    own = merged({"model": file.model, "training": file.training}, {"model": task.model, "training": task.training})
    reference = own["training"].get("steps")
    changes = with_arguments(parse_overrides(overrides), steps=steps, seed=seed)
    changes["model"] = _of_one_kind(own["model"], changes.get("model", {}), path.stem)
    own["model"] = _without_default_kind(own["model"])
    values = with_scaled_warmup(merged(own, changes), changes, reference)
    shipped = path.resolve().is_relative_to(baselines_dir().resolve())
    facts = {"dataset": dataset, "model_name": path.stem, "limit": limit, "data_seed": data_seed}
    facts |= {"reference_steps": reference if shipped else None, "small": path.stem.endswith("_small")}
    where = f"{dataset} with {path.stem}"
    config = _validated(RunConfig, {**values, **facts}, where)
    if not shipped:
        return config
    unchanged = _validated(RunConfig, {**own, **facts}, where)
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
    training = config.to_dict()["training"]
    for key in _WITHOUT_INFLUENCE:
        training.pop(key)
    if config.training.schedule_steps is not None:
        training.pop("steps")
    data = [config.dataset, data_hash, config.limit]
    content = {"data": data, "model": config.model.model_dump(mode="json"), "training": training}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def run_config_from_json(text: str, where: str) -> RunConfig:
    """Return the configuration a run folder's ``config.json`` holds.

    Raises:
        ConfigError: If the text is not a valid configuration.
    """
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"{where} is not valid JSON: {error}") from error
    return _validated(RunConfig, values, where)


def graph_model_config(config: RunConfig) -> ModelConfig | StoryModelConfig:
    """Return the model's configuration of a run on single graphs, or on stories that come with them.

    Raises:
        ConfigError: If it is one for trajectories, or one that writes texts.
    """
    if not isinstance(config.model, ModelConfig | StoryModelConfig):
        kind = config.model.kind
        made_for = "a model for trajectories" if kind == "trajectory" else "a model that writes texts"
        raise ConfigError(
            f"{config.model_name} is {made_for}, which {config.dataset} does not ask for; "
            f"leave kind: {kind} out of the model section, or choose another configuration"
        )
    return config.model


def _of_one_kind(model: Mapping[str, Any], changes: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the overrides of a model section without the kind, which they cannot change."""
    kind = _kind_of_model(model)
    asked = changes.get("kind", kind)
    if asked != kind:
        raise ConfigError(f"model.kind={asked} is refused: {name} is of kind {kind}; choose another configuration")
    return {key: value for key, value in changes.items() if key != "kind"}


def _without_default_kind(model: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in model.items() if (key, value) != ("kind", "graph")}


def _config_path(domain: str, model: str | Path) -> Path:
    path = Path(model)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise UnknownModel(f"the configuration file {str(path)!r} does not exist")
        return path
    known = {name.split("/")[1]: name for name in list_configs(domain)}
    if str(model) in known:
        return baselines_dir() / f"{known[str(model)]}.yaml"
    near = difflib.get_close_matches(str(model), known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    there = ", ".join(known) or "none"
    raise UnknownModel(
        f"unknown model {str(model)!r} for domain {domain!r}{hint} (configurations there: {there}; "
        "or give the path of a .yaml file)"
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
    """Return the key that was meant by one whose section is unknown, as a part of a message."""
    if not rest:
        return "" if section in ("model", "training") else _suggestion(section)
    near = difflib.get_close_matches(section, ("model", "training"), n=1)
    return f"; did you mean {'.'.join([*near, *rest])!r}?" if near else _suggestion(rest[-1])


def _suggestion(key: str, refused: str = "") -> str:
    names = {name: f"training.{name}" for name in TrainingConfig.model_fields}
    names |= {name: f"model.{name}" for schema in _SCHEMAS for name in schema.model_fields}
    near = difflib.get_close_matches(key, [name for name, full in names.items() if full != refused], n=1)
    return f"; did you mean {names[near[0]]!r}?" if near else ""


def _validated(schema: type[_Schema], values: Mapping[str, Any], where: str) -> _Schema:
    try:
        return schema.model_validate(values)
    except ValidationError as error:
        raise ConfigError("; ".join(_complaints(error, where))) from error


def _complaints(error: ValidationError, where: str) -> Iterable[str]:
    for item in error.errors(include_url=False):
        key = ".".join(str(part) for place, part in enumerate(item["loc"]) if place != 1 or part not in _KINDS)
        if item["type"] == "extra_forbidden":
            yield f"{where}: unknown key {key!r}{_suggestion(str(item['loc'][-1]), key)}"
        elif item["type"] == "value_error" and isinstance(item["input"], Mapping):
            yield f"{where}: {key}: {item['msg'].removeprefix('Value error, ')}"
        else:
            yield f"{where}: {key} = {item['input']!r} is refused: {item['msg']}"
