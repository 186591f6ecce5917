"""Files of search spaces: ``hpo/<domain>/<model>.yaml`` and files of users. Errors name the line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml
from pydantic import BaseModel, Field, PrivateAttr, ValidationError, create_model, model_validator

from graphbench.catalog.resources import NOT_MODELS, StrictLoader, data_files, data_files_for, folder_with
from graphbench.core.damage import FileFault
from graphbench.core.errors import ConfigError, UnknownModel
from graphbench.core.plugins import about_broken
from graphbench.core.suggestions import closest
from graphbench.core.validation import Place, StrictModel, explain
from graphbench.core.yaml_text import YamlFault, loaded_yaml, yaml_text
from graphbench.training.config import RunConfig, load_config
from graphbench.training.fidelity import STEPS
from graphbench.training.learners.base import fidelity_of
from graphbench.tuning.budgets import ladder
from graphbench.tuning.space import Source, build_space, values_of
from graphbench.tuning.written_space import Range, WrittenSpace, listed

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace
    from ConfigSpace.hyperparameters import Hyperparameter

    Parameter = Hyperparameter[Any, Any]

YAML_SUFFIXES = (".yaml", ".yml")

_COUNTED_IN_STEPS = ("training.warmup",)
_NOT_SPACES = ("results",)
SET_BY_THE_SEARCH = {
    "training.steps": "the budgets say how long is trained",
    "training.schedule_steps": "the schedule ends at the largest budget",
    "training.eval_at": "every budget is validated",
    "training.train_limit": "a limit, or budgets in samples, say how many samples are trained on",
    "training.seed": "the search sets the seed",
}
_FIXED = {
    "training.train_split": "all trials must be trained on the same data",
    "training.val_split": "costs of trials must be comparable",
    "model.kind": "it follows from the model",
}


class Budget(StrictModel):
    """Budgets of the smallest and the largest trial, and how many trials of one budget share one promotion."""

    min: int = Field(ge=1)
    max: int = Field(ge=1)
    eta: int = Field(3, ge=2)

    @model_validator(mode="after")
    def _rises(self) -> Budget:
        if self.max < self.min:
            raise ValueError(f"max {self.max} is below min {self.min}; swap them")
        return self


class TuningFile(WrittenSpace):
    """One search space with its budget, as a YAML file holds it.

    Attributes:
        title: The tuned model and its domain, in one line.
        source: Source of the ranges.
        model: The configuration that is tuned: its name in ``baselines/<domain>/``, or ``<domain>/<name>`` in a file
            outside a domain's folder. The names in ``space`` are then dotted keys of the configuration, as in
            ``graphbench train --set``. None for another training method; the names are then free.
        space: name -> hyperparameter, see :func:`graphbench.tuning.space.space_from`, as are the next two.
        conditions: Conditions under which hyperparameters exist.
        forbidden: Combinations that never occur.
        fidelity: The unit of a budget: optimizer ``steps``, or training ``samples`` of models without steps.
        budget: Smallest and largest budget and ``eta``.
        trials: Number of trials of a search.
        note: Further remarks.
    """

    title: str
    source: str | dict[str, Any] = ""
    model: str | None = None
    fidelity: Literal["steps", "samples"] = "steps"
    budget: Budget
    trials: int = Field(100, ge=1)
    note: str = ""
    _source: Source = PrivateAttr(default_factory=Source)
    _domain: str = PrivateAttr(default="")

    @property
    def name(self) -> str:
        """The file, for messages and records: ``hpo/algoreas/gin.yaml``, or the path of a user's file."""
        return self._source.name

    @property
    def domain(self) -> str:
        """The domain of the tuned model."""
        return self._domain

    @property
    def budgets(self) -> list[int]:
        """The budgets of trials, rising."""
        return ladder(self.budget.min, self.budget.max, self.budget.eta)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a search in the file, except the space."""
        budget = self.budget
        ladder = {"min_budget": budget.min, "max_budget": budget.max, "eta": budget.eta}
        return {**ladder, "fidelity": self.fidelity, "trials": self.trials}

    def configuration_space(self) -> ConfigurationSpace:
        """Return the search space.

        Raises:
            ConfigError: If the parts of the file do not fit together, the model's budget has another unit, a name is no
                key of the model's configuration, or a key refuses one of its values. The message names file, line,
                value and remedy.
        """
        space = build_space(self, self._source)
        if self.model is not None:
            config = self._configuration(self.model)
            counted = fidelity_of(config).name
            if self.fidelity != counted:
                self._source.refuse(("fidelity",), f"the budget of {self.model} counts {counted}; write {counted}")
            for name in self.space:
                if fault := _fault_of_key(space[name], config, counted, self.model):
                    self._source.refuse(("space", name), fault)
        return space

    def for_budget(self, largest: int, smallest: int | None = None) -> TuningFile:
        """Return the file for other budgets.

        The range of the warm-up counts steps. If the largest budget shrinks, the range shrinks in proportion, as a
        baseline's warm-up does in shorter runs, so that every configuration still fits. A larger budget does not change
        the range.

        Args:
            largest: Largest budget.
            smallest: Smallest budget; None to keep the file's share of the largest.

        Raises:
            ConfigError: If the budgets are not valid.
        """
        if largest < 1 or (smallest is not None and not 1 <= smallest <= largest):
            raise ConfigError(f"budgets from {smallest or 1} to {largest} are none; give 1 <= smallest <= largest")
        if smallest is None:
            smallest = max(1, self.budget.min * largest // self.budget.max)
        share = min(1.0, largest / self.budget.max)
        scaled = {
            name: parameter.scaled(share, largest - 1)
            for name, parameter in self.space.items()
            if name in _COUNTED_IN_STEPS and share < 1 and isinstance(parameter, Range) and parameter.type == "int"
        }
        budget = self.budget.model_copy(update={"min": smallest, "max": largest})
        return self.model_copy(update={"budget": budget, "space": {**self.space, **scaled}})

    def _configuration(self, model: str) -> RunConfig:
        domain, _, name = model.rpartition("/") if Path(model).suffix not in YAML_SUFFIXES else ("", "", model)
        try:
            return load_config(f"{domain or self._domain}/any", name)
        except UnknownModel as error:
            self._source.refuse(("model",), f"{error}; or write <domain>/<model>")


def list_spaces(domain: str | None = None) -> list[str]:
    """Return the search spaces of the package and of plug-ins, as ``<domain>/<model>``, sorted."""
    return list(data_files("hpo", domain, _NOT_SPACES))


def load_tuning_file(name: str | Path, domain: str | None = None) -> TuningFile:
    """Return a search space's file; ``configuration_space`` checks whether its parts fit together and fit the model.

    Args:
        name: ``<domain>/<model>``, or ``<model>`` where the domain is given; or the path of a YAML file.
        domain: Domain of the dataset that is tuned on; None for the domain in the name, or the folder of a path.

    Raises:
        ConfigError: If the file does not exist or is malformed; the message names file, line, value and remedy.
    """
    path = _path_of(name, domain)
    home = folder_with("hpo", path)
    shown = str(path) if home is None else str(path.resolve().relative_to(home.parent))
    content, lines = _read_with_lines(path, shown)
    source = Source(shown, lines)
    if not isinstance(content, dict):
        raise ConfigError(
            f"{shown}: expected a mapping with the keys {listed(TuningFile.model_fields)}, got {content!r}"
        )
    try:
        file = TuningFile.model_validate(content)
    except ValidationError as error:
        raise ConfigError(explain(error, TuningFile, at=source.at)) from None
    parent = path.resolve().parent.name
    file._source, file._domain = source, domain or (parent if data_files("baselines", parent, NOT_MODELS) else "")
    return file


def with_space_file(settings: Mapping[str, Any], domain: str | None = None, most: int | None = None) -> dict[str, Any]:
    """Return the settings of a search, completed from the file that the setting ``space`` names.

    The file gives the space, and budgets, eta, fidelity and trials where the settings do not.

    Args:
        settings: The settings; returned as they are where the space is not a name.
        domain: Domain of the dataset that is tuned on; None for the domain in the name.
        most: Limit on the largest budget of the file; None for no limit.

    Raises:
        ConfigError: If the file is refused, or budgets of the settings and of the file count different things.
    """
    name = settings.get("space")
    if not isinstance(name, str | Path):
        return dict(settings)
    file = load_tuning_file(name, domain)
    largest, smallest = settings.get("max_budget"), settings.get("min_budget")
    if most is not None and largest is None:
        largest = min(file.budget.max, most)
    if all(value is None or type(value) is int for value in (largest, smallest)) and (largest or smallest):
        file = file.for_budget(largest or file.budget.max, smallest)
    space = file.configuration_space()
    counted = settings.get("fidelity", file.fidelity)
    if counted != file.fidelity:
        raise ConfigError(f"{file.name} has budgets in {file.fidelity}, not in {counted}; choose another space")
    explicit = {key: value for key, value in settings.items() if value is not None or key not in file.settings}
    return {**file.settings, **explicit, "space": space, "space_file": file.name}


def _read_with_lines(path: Path, shown: str) -> tuple[Any, dict[Place, int]]:
    """Return the content of a YAML file and the line, from 1, of every key and list item.

    Raises:
        ConfigError: If the file cannot be read, is not YAML, or holds a key twice.
    """
    try:
        text = yaml_text(path)
        return loaded_yaml(text, _Loader), dict(_lines(yaml.compose(text, Loader=_Loader), ()))
    except FileFault as error:
        raise ConfigError(f"{shown}: {error}; is it a search space?") from None
    except YamlFault as error:
        raise ConfigError(f"{shown}{'' if error.line is None else f':{error.line}'}: {error.reason}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{shown}: cannot be read: {error}") from None


class _Loader(StrictLoader):
    """A strict YAML loader that reads ``1e-6`` as a number, as YAML 1.2 does; PyYAML reads it as text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def _lines(node: yaml.Node | None, place: Place) -> Iterator[tuple[Place, int]]:
    items: list[tuple[str | int, yaml.Node, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        items = [(str(key.value), key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        items = [(index, value, value) for index, value in enumerate(node.value)]
    for part, start, value in items:
        yield (*place, part), start.start_mark.line + 1
        yield from _lines(value, (*place, part))


def _path_of(name: str | Path, domain: str | None) -> Path:
    path = Path(name)
    if path.suffix in YAML_SUFFIXES:
        if not path.is_file():
            raise ConfigError(f"the search space {str(path)!r} does not exist; `hpo/` holds {listed(list_spaces())}")
        return path
    wanted = str(name) if domain is None or "/" in str(name) else f"{domain}/{name}"
    spaces = data_files("hpo", without=_NOT_SPACES)
    if wanted not in spaces and domain is not None:
        fitting = data_files_for("hpo", domain, _NOT_SPACES)
        if str(name) in fitting:
            return fitting[str(name)]
    if wanted not in spaces:
        home = wanted.partition("/")[0]
        there = listed(space for space in spaces if space.startswith(f"{home}/"))
        guess = closest(wanted, spaces) if there else f", and none for {home}"
        raise ConfigError(
            f"unknown search space {wanted!r}{guess} (there are {there or listed(spaces)}; "
            f"or give the path of a .yaml file){about_broken()}"
        )
    return spaces[wanted]


def _fault_of_key(parameter: Parameter, config: RunConfig, counted: str, model: str) -> str | None:
    """Return why a hyperparameter does not fit the key of its name in a configuration; None if it fits.

    Args:
        parameter: The hyperparameter.
        config: The configuration.
        counted: The unit that budgets count.
        model: The name of the configuration as the file writes it, for the message.
    """
    name = parameter.name
    if why := {**SET_BY_THE_SEARCH, **_FIXED}.get(name):
        return f"this key cannot be tuned: {why}"
    keys = dict(_keys_of(type(config.model), "model."))
    if counted == STEPS.name:  # learners without steps read no key of the section that could be tuned
        keys |= _keys_of(type(config.training), "training.")
    owner = next((key for key in keys if name == key or name.startswith(f"{key}.")), None)
    if owner is None:
        section = any(key.startswith(f"{name}.") for key in keys)
        fault = f"a section of {model}, not a key" if section else f"no key of {model}"
        return f"{name!r} is {fault}{closest(name, keys)}"
    if owner != name:
        is_open = keys[owner].annotation == dict[str, Any]
        return None if is_open else f"{owner!r} holds a value, which has no keys; tune {owner!r} itself"
    probe = create_model("Probe", value=(keys[name].annotation, keys[name]))
    for value in values_of(parameter) or _some_of(parameter):
        try:
            probe.model_validate({"value": value})
        except ValidationError as error:
            return f"the value {value!r} is refused: {error.errors()[0]['msg']}"
    return None


def _keys_of(schema: type[BaseModel], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys that hold values in a configuration's schema, with their fields."""
    for name, field in schema.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _keys_of(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field


def _some_of(parameter: Any) -> list[float]:
    """Return the bounds of a range and a value between them, which is whole only in a range of integers."""
    inside = parameter.lower + (parameter.upper - parameter.lower) / 3**0.5
    return [parameter.lower, type(parameter.default_value)(inside), parameter.upper]
