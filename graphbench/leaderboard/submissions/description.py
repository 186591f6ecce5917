"""``submission.yaml``: the description of a submission by its authors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from graphbench.catalog.resources import read_yaml
from graphbench.core.errors import CardError, ResultError
from graphbench.core.untrusted import limited_text, shown, text_fault
from graphbench.core.validation import StrictModel, explain
from graphbench.core.yaml_text import require_plain_structure
from graphbench.records.record import MODEL_NAME
from graphbench.records.stated import Stated, StatedCost, stated_machine

MOST_BYTES = 65_536
UNNAMED = "unnamed"
"""Name of the model of a submission without a description."""

_MOST_LEVELS = 20
_MOST_COUNT = 10**12


def _line(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    if fault := text_fault(text, 10_000):
        raise ValueError(f"it is {fault}")
    return text


def _lines(text: str) -> str:
    if fault := text_fault(text, 10_000, lines=True):
        raise ValueError(f"it is {fault}")
    return text


Line = Annotated[str, Field(max_length=200), AfterValidator(_line)]
Count = Annotated[int, Field(ge=0, le=_MOST_COUNT)]
Address = Annotated[str, Field(max_length=300, pattern=r"^https?://[A-Za-z0-9][A-Za-z0-9._~:/?#@!$&()*+,;=%-]*$")]


class _Strict(StrictModel):
    model_config = ConfigDict(allow_inf_nan=False, strict=True)


class StatedBudget(_Strict):
    """The statements of a submission on the training on one dataset.

    Attributes:
        steps: Optimizer steps.
        batch_size: Samples per step.
        parameters: Number of trained parameters.
        training_seconds: Time of training in seconds, of one run.
        cpu_seconds: Processor time of training in seconds, of all cores together, of one run.
        cpu: Name of the processor.
        gpu: Name of the GPU that was trained on.
        gpus: Number of GPUs.
        limit: Number of samples per split, if only the first samples of each split have predictions.
        scores: Kind of floating-point predictions (``logit``, ...); None for the default of the kind of task.
        protocol: Which data was trained on, where a benchmark has several ways; None for the dataset's split ``train``.
        deterministic: Whether neither seed nor chance has any influence on the scores; None where not stated.
    """

    steps: Annotated[Count, Field(ge=1)] | None = None
    batch_size: Annotated[Count, Field(ge=1)] | None = None
    parameters: Count | None = None
    training_seconds: Annotated[float, Field(gt=0, le=1e10)] | None = None
    cpu_seconds: Annotated[float, Field(gt=0, le=1e12)] | None = None
    cpu: Line | None = None
    gpu: Line | None = None
    gpus: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    limit: Annotated[Count, Field(ge=1)] | None = None
    scores: Literal["probability", "logit", "label"] | None = None
    protocol: Line | None = None
    deterministic: bool | None = None

    @property
    def hardware(self) -> dict[str, str | int | float | None]:
        """The machine, as records describe it; empty where nothing is said."""
        return stated_machine(self.cpu, self.gpu, self.gpus) if self.cpu or self.gpu else {}


class Description(_Strict):
    """The description of a submission by its authors.

    Attributes:
        schema_version: Version of this format (key ``schema`` in the file).
        model: Name of the model: letters, digits, dots, dashes and underscores.
        authors: Names of the authors.
        licence: Licence under which the records and predictions are given.
        description: Description of the model, in a few sentences.
        code: Address of the code.
        paper: Address of a paper.
        datasets: Id of a dataset -> the statements on the training on it.
    """

    model_config = ConfigDict(populate_by_name=True)

    schema_version: Literal[1] = Field(alias="schema")
    model: Annotated[str, Field(max_length=60, pattern=rf"^{MODEL_NAME.pattern}$")]
    authors: Annotated[tuple[Line, ...], Field(min_length=1, max_length=200, strict=False)]
    licence: Line
    description: Annotated[str, Field(max_length=2000), AfterValidator(_lines)] = ""
    code: Address | None = None
    paper: Address | None = None
    datasets: Annotated[dict[str, StatedBudget | None], Field(max_length=1000, default_factory=dict)]

    def budget(self, dataset: str) -> StatedBudget | None:
        """Return the statements on the training on a dataset; None if the submission makes none."""
        return self.datasets.get(dataset)

    @property
    def notes(self) -> str:
        """The line that records of the submission repeat: description, authors and links."""
        about = " ".join(self.description.split())
        parts = [about, f"by {', '.join(self.authors)}"]
        parts += [f"{name} {value}" for name, value in (("code", self.code), ("paper", self.paper)) if value]
        return "; ".join(part for part in parts if part)


def statement_of(description: Description | None, seed: int, budget: StatedBudget, config: Mapping[str, Any]) -> Stated:
    """Return a submission's statements on the model of one seed, from which the record of the seed is made.

    Args:
        description: The description; None for a submission without one, whose records are never written.
        seed: The seed.
        budget: The statements on the training.
        config: Settings that distinguish configurations of one name.
    """
    cost = StatedCost(budget.training_seconds, budget.cpu_seconds, hardware=budget.hardware)
    return Stated(
        UNNAMED if description is None else description.model,
        seed=seed,
        steps=budget.steps,
        batch_size=budget.batch_size,
        parameters=budget.parameters,
        notes="" if description is None else description.notes,
        config=config,
        protocol=budget.protocol,
        deterministic=budget.deterministic,
        cost=cost,
    )


def read_description(path: Path) -> Description:
    """Return the description of a submission.

    Raises:
        ResultError: If the file is absent, too large, no YAML, has aliases, or says something that is refused.
    """
    try:
        require_plain_structure(limited_text(path, MOST_BYTES), levels=_MOST_LEVELS, repeated=0)
        content: Any = read_yaml(path)
    except FileNotFoundError:
        raise ResultError(
            f"there is no {path.name}, which names model and authors; `graphbench submit init` writes one"
        ) from None
    except (OSError, ValueError, CardError) as error:
        words = " ".join(str(error).split())
        raise ResultError(f"it cannot be read: {shown(words, 300)}") from error
    if not isinstance(content, dict):
        raise ResultError("it holds no keys; `graphbench submit init` writes one with all of them")
    try:
        return Description.model_validate(content)
    except ValidationError as error:
        try:
            words = explain(error, Description)
        except ValueError:  # Python prints no number of more than 4,300 digits
            words = "it has a number of thousands of digits"
        raise ResultError(words) from error
