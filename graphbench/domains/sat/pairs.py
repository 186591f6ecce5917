"""Pairs of formulas, one of them satisfiable, that differ in the sign of one literal.

Selsam et al. (2019, "Learning a SAT solver from single-bit supervision") add random clauses to a formula until it is
unsatisfiable. Every assignment that satisfies the clauses before the last one violates all literals of the last one, so
the formula with one of these literals negated is satisfiable. Half of all formulas are satisfiable by construction, no
statistic of sizes tells which, and a single clause more than can be satisfied is the whole difference.

Which clause is the last one is a fact about the sequence of clauses and not about a solver, so every solver gives the
same formulas. The sequence is the one of SR(n), of uniform random k-SAT, or of community attachment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from graphbench.core.rng import below, seed, uniform
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.generators import Generator
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.disguise import disguise
from graphbench.domains.sat.families import Share, chosen, read_families
from graphbench.domains.sat.formula_checks import structural_problems
from graphbench.domains.sat.formulas import formulas_as_samples
from graphbench.domains.sat.incremental import clauses_until_unsatisfiable
from graphbench.domains.sat.instances import CommunityParameters, CountRange, ShareRange, UniformParameters
from graphbench.domains.sat.random_clauses import Formula, draw_community, draw_mixed, draw_uniform

FAMILIES = ("sr", "uniform", "community")
_FAMILY_STREAM, _PAIR_STREAM, _MEMBER_STREAM = 97, 98, 1
_SHARD_VARIABLES = 40_000
_FIRST_RATIO = 8.0  # clauses per variable that are drawn at first; mixed lengths need about 5.5


class MixedPair(StrictModel):
    """The sequence of SR(n): 1 + Bernoulli(0.7) + Geometric(0.4) distinct variables in a clause.

    Attributes:
        family: "sr".
        variables: Range of the number n of variables.
    """

    family: Literal["sr"] = "sr"
    variables: CountRange

    def draw(self, key: np.uint64, index: int, attempt: int, ratio: float) -> Formula:
        """Return the first clauses, ``ratio`` per variable."""
        return draw_mixed(key, index, attempt, self.variables, (ratio, ratio))

    @property
    def first_ratio(self) -> float:
        """Clauses per variable that are drawn at first."""
        return _FIRST_RATIO


class UniformPair(StrictModel):
    """The sequence of uniform random k-SAT: k distinct variables in a clause.

    Attributes:
        family: "uniform".
        variables: Range of the number n of variables.
        clause_length: Number k of literals in a clause, at most 8.
    """

    family: Literal["uniform"] = "uniform"
    variables: CountRange
    clause_length: Annotated[int, Field(ge=2, le=8)] = 3

    @model_validator(mode="after")
    def _check_sizes(self) -> UniformPair:
        UniformParameters(variables=self.variables, ratio=(1, 1), clause_length=self.clause_length)
        return self

    def draw(self, key: np.uint64, index: int, attempt: int, ratio: float) -> Formula:
        """Return the first clauses, ``ratio`` per variable."""
        return draw_uniform(key, index, attempt, self.variables, (ratio, ratio), self.clause_length)

    @property
    def first_ratio(self) -> float:
        """Clauses per variable that are drawn at first: 1.5 times what satisfies no assignment on average."""
        return _above_threshold(self.clause_length)


class CommunityPair(StrictModel):
    """The sequence of community attachment (Giraldez-Cru and Levy 2016).

    Attributes:
        family: "community".
        variables: Range of the number n of variables.
        communities: Range of the number c of communities.
        modularity: Range of the modularity Q; a clause lies in one community with probability Q + 1/c, at most 1.
        clause_length: Number k of literals in a clause, at most 8.
    """

    family: Literal["community"] = "community"
    variables: CountRange
    communities: CountRange
    modularity: ShareRange
    clause_length: Annotated[int, Field(ge=2, le=8)] = 3

    @model_validator(mode="after")
    def _check_sizes(self) -> CommunityPair:
        CommunityParameters(
            variables=self.variables,
            communities=self.communities,
            ratio=(1, 1),
            modularity=self.modularity,
            clause_length=self.clause_length,
        )
        return self

    def draw(self, key: np.uint64, index: int, attempt: int, ratio: float) -> Formula:
        """Return the first clauses, ``ratio`` per variable."""
        sizes = (self.variables, self.communities, (ratio, ratio), self.modularity)
        return draw_community(key, index, attempt, *sizes, self.clause_length)

    @property
    def first_ratio(self) -> float:
        """Clauses per variable that are drawn at first: 1.5 times what satisfies no assignment on average."""
        return _above_threshold(self.clause_length)


def _above_threshold(clause_length: int) -> float:
    """Return 1.5 times the clauses per variable above which a formula has no model on average (first moment)."""
    return 1.5 * math.log(2) * 2.0**clause_length


class PairShare(StrictModel):
    """A family of pairs and its share.

    Attributes:
        share: Weight of the family; shares need not add up to 1.
        parameters: Parameters of the family.
    """

    share: Share
    parameters: Annotated[MixedPair | UniformPair | CommunityPair, Field(discriminator="family")]


class PairParameters(StrictModel):
    """The distribution of the pairs of a split.

    Attributes:
        families: The families and their shares.

    Samples 2p and 2p + 1 are the formulas of pair p, in random order.
    """

    families: Annotated[tuple[PairShare, ...], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _read_families(cls, value: Any) -> Any:
        return read_families(value)


@dataclass(frozen=True)
class Pair:
    """The clauses of a pair.

    Attributes:
        family: Name of the family.
        unsatisfiable: The formula of the clauses up to the first that cannot be satisfied together with those before.
        negated: Position in ``unsatisfiable.literals`` of the literal whose negation makes the formula satisfiable.
        satisfiable_first: Whether the satisfiable formula is the first one of the pair.
    """

    family: str
    unsatisfiable: Cnf
    negated: int
    satisfiable_first: bool

    @property
    def satisfiable(self) -> Cnf:
        """The formula with one literal of the last clause negated."""
        literals = self.unsatisfiable.literals.copy()
        literals[self.negated] *= -1
        return Cnf(self.unsatisfiable.num_variables, literals, self.unsatisfiable.ptr)


def draw_pair(parameters: PairParameters, key: np.uint64, number: int, attempt: int) -> Pair:
    """Draw a pair; it is a function of the arguments alone.

    Raises:
        MissingDependency: If python-sat is not installed.
    """
    family = chosen(parameters.families, uniform(seed(key, number, attempt, _FAMILY_STREAM))).parameters
    ratio, last = family.first_ratio, None
    while last is None:  # a longer sequence begins with the shorter one
        cnf = Cnf(*family.draw(key, number, attempt, ratio))
        last = clauses_until_unsatisfiable(cnf)
        ratio *= 2
    ptr = cnf.ptr[: last + 1]
    state = seed(key, number, attempt, _PAIR_STREAM)
    place = int(ptr[-2]) + below(state, int(ptr[-1] - ptr[-2]))
    formula = Cnf(cnf.num_variables, cnf.literals[: ptr[-1]], ptr)
    return Pair(family.family, formula, place, below(state, 2) == 0)


def draw_member(parameters: PairParameters, key: np.uint64, index: int, attempt: int) -> tuple[str, Cnf, bool]:
    """Return the family of one sample, its formula, and whether the formula is satisfiable.

    Variables and clauses are renumbered at random, and the signs of variables are changed at random, for each of the
    two formulas of a pair on its own: no number tells which clause came last.
    """
    pair = draw_pair(parameters, key, index // 2, attempt)
    is_satisfiable = (index % 2 == 0) == pair.satisfiable_first
    cnf = pair.satisfiable if is_satisfiable else pair.unsatisfiable
    state = seed(key, index, attempt, _MEMBER_STREAM)
    literals, ptr, _ = disguise(state, cnf.num_variables, cnf.literals, cnf.ptr, True)
    return pair.family, Cnf(cnf.num_variables, literals, ptr).without_unused_variables(), is_satisfiable


def _generate(
    parameters: PairParameters, key: np.uint64, indices: NDArray[np.int64], attempts: NDArray[np.int64]
) -> Samples:
    drawn = [draw_member(parameters, key, i, a) for i, a in zip(indices.tolist(), attempts.tolist(), strict=True)]
    numbers = np.array([FAMILIES.index(family) for family, _, _ in drawn], np.int64)
    return formulas_as_samples([cnf for _, cnf, _ in drawn], numbers)


def _check(parameters: PairParameters, samples: Samples) -> list[str]:
    """Return the formulas with a wrong structure; which ones are satisfiable is a label, with a check of its own."""
    return structural_problems(samples)


def _statistics(parameters: PairParameters, samples: Samples) -> dict[str, NDArray[np.float64]]:
    clauses = np.add.reduceat(np.asarray(samples.values["is_clause"], np.float64), samples.node_ptr[:-1])
    variables = samples.num_nodes - clauses
    return {"variables": variables, "clauses": clauses, "ratio": clauses / variables}


def _shard_size(parameters: PairParameters) -> int:
    largest = max(family.parameters.variables[1] for family in parameters.families)
    return max(2, _SHARD_VARIABLES // largest)


PAIRS = Generator(
    name="sat.pairs",
    version=1,
    parameters=PairParameters,
    generate=_generate,
    check=_check,
    statistics=_statistics,
    shard_size=_shard_size,
)
