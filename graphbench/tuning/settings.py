"""The settings of a tuning run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from graphbench.core.errors import ConfigError
from graphbench.core.validation import StrictModel, explain
from graphbench.tuning.budgets import ladder
from graphbench.tuning.space import describe, space_from
from graphbench.tuning.space_file import with_space_file

Method = Literal["smac", "hyperband", "random"]


def _refuse_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("expected a number")
    return value


Count = Annotated[int, BeforeValidator(_refuse_bool)]
Limit = Annotated[float, BeforeValidator(_refuse_bool), Field(gt=0, allow_inf_nan=False)]


class OptimizationArgs(StrictModel):
    """The settings of a tuning run.

    Attributes:
        space: The search space: a ``ConfigSpace.ConfigurationSpace``; a mapping from names to hyperparameters, e.g.
            ``{"lr": {"type": "float", "range": [1e-6, 0.1], "log": True}}`` (see
            :func:`graphbench.tuning.space.space_from`); the name of a file in ``hpo/``, e.g. ``algoreas/gin``; or the
            path of a file of this form. A file also gives budgets, eta, fidelity and trials unless they are given here.
            The space is stored as a ``ConfigurationSpace``.
        min_budget: Smallest budget of a trial.
        max_budget: Largest budget of a trial.
        fidelity: The unit of a budget, for displays and reports: optimizer ``steps`` or training ``samples``.
        trials: Total number of trials, over all restarts.
        walltime_limit: Seconds of the run, over all restarts, after which no trial is started and running ones are
            ended; None for no limit.
        eta: Ratio of neighbouring budgets; one of ``eta`` configurations is promoted.
        seed: Seed of the search.
        workers: Processes on this machine that train at the same time.
        cluster: Address of a Dask scheduler, the scheduler file it wrote (``.json``), or a ``dask.distributed.Client``,
            instead of processes on this machine.
        output: Folder of the run; a run with the same folder is continued.
        trial_limit: Seconds that a trial may take; None for no limit.
        memory_limit: GiB that a worker may use; None for no limit.
        method: ``smac`` (Hyperband, with configurations proposed by a model of their costs), ``hyperband``
            (configurations sampled at random), or ``random`` (sampled at random, always with the largest budget).
        worst_cost: Smallest cost that the search algorithm gets for a failed trial; None for the largest cost so far,
            or 1.0 before any.
        retry_failed: Run the trials that failed in earlier starts of this run again, once.
        space_file: The file that ``space`` was read from; it is set automatically.
    """

    space: Any
    min_budget: Count = Field(ge=1)
    max_budget: Count = Field(ge=1)
    fidelity: Literal["steps", "samples"] = "steps"
    trials: Count = Field(100, ge=1)
    walltime_limit: Limit | None = None
    eta: Count = Field(3, ge=2)
    seed: Count = Field(0, ge=0, lt=2**32)
    workers: Count = Field(1, ge=1)
    cluster: Any = None
    output: Path
    trial_limit: Limit | None = None
    memory_limit: Limit | None = None
    method: Method = "smac"
    worst_cost: Annotated[float, BeforeValidator(_refuse_bool), Field(allow_inf_nan=False)] | None = None
    retry_failed: bool = False
    space_file: str | None = None

    @classmethod
    def of(cls, settings: Any) -> OptimizationArgs:
        """Return the settings in a mapping, a dataclass or any object with attributes of these names.

        Raises:
            ConfigError: If a setting is unknown, missing or refused; the message names it, its value and the remedy.
        """
        if isinstance(settings, OptimizationArgs):
            return settings
        try:
            return cls.model_validate(with_space_file(_as_mapping(settings)))
        except ValidationError as error:
            raise ConfigError(explain(error, cls, where="optimization_args")) from None

    @property
    def budgets(self) -> list[int]:
        """The budgets of trials, rising."""
        return ladder(self.min_budget, self.max_budget, self.eta)

    @field_validator("space", mode="after")
    @classmethod
    def _as_configuration_space(cls, value: Any) -> Any:
        space = space_from(value)
        describe(space)  # refuses values that no record of the run could hold
        return space

    @field_validator("cluster", mode="after")
    @classmethod
    def _is_a_cluster(cls, value: Any) -> Any:
        if value is None or hasattr(value, "submit"):
            return value
        if isinstance(value, str) and (":" in value or value.endswith(".json")):
            return value
        raise ValueError(
            "expected an address such as tcp://host:8786, a scheduler file (.json) or a dask.distributed.Client"
        )

    @model_validator(mode="after")
    def _consistent(self) -> OptimizationArgs:
        if self.max_budget < self.min_budget:
            raise ValueError(f"max_budget {self.max_budget} is below min_budget {self.min_budget}; swap them")
        if self.cluster is not None and self.workers > 1:
            raise ValueError(
                f"workers {self.workers} and cluster {self.cluster!r} exclude each other: a cluster brings "
                "workers; give one of the two"
            )
        return self


def _as_mapping(settings: Any) -> dict[str, Any]:
    if isinstance(settings, Mapping):
        return {str(key): value for key, value in settings.items()}
    if dataclasses.is_dataclass(settings) and not isinstance(settings, type):
        return {field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)}
    if hasattr(settings, "__dict__") and not isinstance(settings, type):
        return {key: value for key, value in vars(settings).items() if not key.startswith("_")}
    raise ConfigError(
        f"optimization_args: expected a mapping, a dataclass or an object with attributes, got {settings!r}; "
        f"it holds {', '.join(OptimizationArgs.model_fields)}"
    )
