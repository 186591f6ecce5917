"""The generator of formulas: it draws families in fixed shares, preprocesses formulas and enforces limits of size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from graphbench.core.errors import GenerationError
from graphbench.core.rng import seed, uniform
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.generators import Generator
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.families import Share, chosen, read_families
from graphbench.domains.sat.formula_checks import check_formulas
from graphbench.domains.sat.formulas import formula_of, formulas_as_samples
from graphbench.domains.sat.instances import FormulaParameters, draw_formula
from graphbench.domains.sat.pairs import PAIRS
from graphbench.domains.sat.preprocessing import is_decided, preprocess
from graphbench.domains.sat.scenario_samples import SYNTHETIC

FAMILIES = ("community", "fuzz", "preimage", "uniform", "pigeonhole", "parity", "coloring")
_FAMILY_STREAM = 97
_MAX_TRIES = 1 << 12  # draws per formula until one lies within the limits
_SHARD_VARIABLES = 50_000


class FamilyShare(StrictModel):
    """A family of formulas and its share.

    Attributes:
        share: Weight of the family; shares need not add up to 1.
        parameters: Parameters of the family.
    """

    share: Share
    parameters: FormulaParameters


_Bounds = tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=1)]]


class SatParameters(StrictModel):
    """The distribution of the formulas of a split.

    Attributes:
        families: The families and their shares.
        preprocess: Whether formulas are simplified by the preprocessor (:func:`~.preprocessing.preprocess`).
        variables: Range in which the number of variables must lie, after preprocessing.
        clauses: Range in which the number of clauses must lie, after preprocessing.

    If a formula lies outside the ranges, or the preprocessor decides it, another formula of its family is drawn.
    """

    families: Annotated[tuple[FamilyShare, ...], Field(min_length=1)]
    preprocess: bool = True
    variables: _Bounds = (1, 10_000_000)
    clauses: _Bounds = (1, 100_000_000)

    @model_validator(mode="before")
    @classmethod
    def _read_families(cls, value: Any) -> Any:
        return read_families(value)

    @model_validator(mode="after")
    def _check_ranges(self) -> SatParameters:
        for name in ("variables", "clauses"):
            low, high = getattr(self, name)
            if low > high:
                raise ValueError(f"{name} {[low, high]} is empty; give the lower end first")
        return self


def draw_sample(parameters: SatParameters, key: np.uint64, index: int, attempt: int) -> tuple[str, Cnf]:
    """Return the family and the formula of one sample, in canonical form and without unused variables.

    Raises:
        GenerationError: If no draw lies within the limits.
        MissingDependency: If ``parameters.preprocess`` is set and python-sat is not installed.
    """
    family = chosen(parameters.families, uniform(seed(key, index, attempt, _FAMILY_STREAM)))
    for again in range(_MAX_TRIES):
        cnf = draw_formula(family.parameters, key, index, attempt * _MAX_TRIES + again)
        cnf = preprocess(cnf) if parameters.preprocess else cnf.canonical().without_unused_variables()
        if not is_decided(cnf) and _within(parameters, cnf):
            return family.parameters.family, cnf
    raise GenerationError(
        f"{_MAX_TRIES:,} formulas of the family {family.parameters.family} are decided by the preprocessor or outside "
        f"variables {list(parameters.variables)}, clauses {list(parameters.clauses)}; widen these ranges, or change "
        "the parameters of the family"
    )


def _within(parameters: SatParameters, cnf: Cnf) -> bool:
    (low, high), (fewest, most) = parameters.variables, parameters.clauses
    return low <= cnf.num_variables <= high and fewest <= cnf.num_clauses <= most


def _generate(
    parameters: SatParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    drawn = [draw_sample(parameters, key, i, a) for i, a in zip(indices.tolist(), attempts.tolist(), strict=True)]
    numbers = np.array([FAMILIES.index(family) for family, _ in drawn], np.int64)
    return formulas_as_samples([cnf for _, cnf in drawn], numbers)


def _statistics(parameters: SatParameters, samples: Samples) -> dict[str, NDArray[np.float64]]:
    formulas = [formula_of(samples, i) for i in range(len(samples))]
    variables = np.array([cnf.num_variables for cnf in formulas], np.float64)
    clauses = np.array([cnf.num_clauses for cnf in formulas], np.float64)
    return {"variables": variables, "clauses": clauses, "ratio": clauses / variables}


def _shard_size(parameters: SatParameters) -> int:
    return max(1, _SHARD_VARIABLES // min(parameters.variables[1], _SHARD_VARIABLES))


GENERATORS: Mapping[str, Generator] = {
    "formulas": Generator(
        name="sat.formulas",
        version=1,
        parameters=SatParameters,
        generate=_generate,
        check=check_formulas,
        statistics=_statistics,
        shard_size=_shard_size,
    ),
    "pairs": PAIRS,
    "synthetic_scenario": SYNTHETIC,
}
