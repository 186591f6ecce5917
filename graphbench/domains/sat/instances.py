"""Random formulas of seven families: community attachment, circuits, preimages of hash functions, and four controls.

GraphBench (section 3.3.1) draws formulas of the first three families. `draw_formula` gives a formula as it comes from
its generator, before any preprocessing. A formula is a function of ``(parameters, key, index, attempt)`` alone.

Variables and clauses of the structured families (fuzz, preimage, pigeonhole, parity, coloring) are renumbered at random
(`disguise`); the signs of variables are changed at random, too, for fuzz and parity. In formulas by community
attachment the communities are intervals of variables, as in the formulas of the published generator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, model_validator

from graphbench.core.errors import GenerationError
from graphbench.core.rng import seed
from graphbench.core.validation import StrictModel
from graphbench.domains.sat.circuits import draw_fuzz
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.controls import draw_colouring, draw_parity, draw_pigeonhole, parity_clauses
from graphbench.domains.sat.disguise import disguise, disguise_rows, renamed_model
from graphbench.domains.sat.hash_functions import MESSAGE_BITS, ROUNDS, HashName
from graphbench.domains.sat.preimages import draw_preimage
from graphbench.domains.sat.random_clauses import Formula, draw_community, draw_uniform


def _ordered(bounds: tuple[Any, Any]) -> tuple[Any, Any]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"{list(bounds)} is empty; give the lower end first")
    return bounds


_Count = Annotated[int, Field(ge=1, le=10_000_000)]
_Ratio = Annotated[float, Field(ge=0, le=1000)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Length = Annotated[int, Field(ge=2, le=32)]
CountRange = Annotated[tuple[_Count, _Count], AfterValidator(_ordered)]
"""Whole numbers drawn uniformly, both ends included."""
RatioRange = Annotated[tuple[_Ratio, _Ratio], AfterValidator(_ordered)]
"""Numbers, not negative, drawn uniformly."""
ShareRange = Annotated[tuple[_Share, _Share], AfterValidator(_ordered)]
"""Numbers from 0 to 1, drawn uniformly."""
LengthRange = Annotated[tuple[_Length, _Length], AfterValidator(_ordered)]
"""Numbers of literals in a clause, drawn uniformly, both ends included."""


class CommunityParameters(StrictModel):
    """Community attachment (Giraldez-Cru and Levy 2016).

    Attributes:
        family: "community".
        variables: Range of the number n of variables.
        communities: Range of the number c of communities.
        ratio: Range of the number of clauses per variable, m / n.
        modularity: Range of the modularity Q; a clause lies in one community with probability Q + 1/c, at most 1.
        clause_length: Number k of literals in a clause.
    """

    family: Literal["community"] = "community"
    variables: CountRange
    communities: CountRange
    ratio: RatioRange
    modularity: ShareRange
    clause_length: _Length = 3

    @model_validator(mode="after")
    def _check_sizes(self) -> CommunityParameters:
        k = self.clause_length
        if self.communities[0] < k:
            raise ValueError(
                f"communities {list(self.communities)} with clauses of {k} literals, which may come from as many "
                f"communities; give {k} communities or more"
            )
        if self.variables[0] < self.communities[1] * k:
            raise ValueError(
                f"{self.variables[0]} variables in {self.communities[1]} communities: some community would have fewer "
                f"than the {k} variables of a clause; give {self.communities[1] * k} variables or more"
            )
        return self


class FuzzParameters(StrictModel):
    """Random circuits with random clauses, as FuzzSAT draws them (Brummayer, Lonsing and Biere 2010).

    Attributes:
        family: "fuzz".
        inputs: Range of the number v of inputs of the circuit.
        references: Range of t: gates are added until every input is an operand at least t times.
        clause_length: Range of the number of literals in a random clause; it is the same for all clauses of a formula.
        clause_ratio: Range of the number of random clauses per variable.
        ite: Whether there are gates "if a then b else c" in addition to and, or, exclusive or, and equivalence.
        most_gates: A circuit that needs more gates than this is drawn again, together with v and t. About a third as
            many gates are added when the circuit's roots are joined.
    """

    family: Literal["fuzz"] = "fuzz"
    inputs: CountRange
    references: CountRange
    clause_length: LengthRange
    clause_ratio: RatioRange
    ite: bool = False
    most_gates: _Count = 1_000_000

    @model_validator(mode="after")
    def _check_sizes(self) -> FuzzParameters:
        if self.inputs[0] < max(self.clause_length[1], 3):
            raise ValueError(
                f"inputs {list(self.inputs)} for clauses of {self.clause_length[1]} literals; give "
                f"{max(self.clause_length[1], 3)} inputs or more"
            )
        return self


class PreimageParameters(StrictModel):
    """Preimage attacks: find a message with a given digest. Every formula is satisfiable.

    Attributes:
        family: "preimage".
        hash: The hash function, or several, from which one is drawn.
        rounds: Range of the number of rounds (steps) of the hash function.
        fixed_bits: Range of the number of known bits among the 512 bits of the message; their positions are uniform.
    """

    family: Literal["preimage"] = "preimage"
    hash: HashName | Annotated[tuple[HashName, ...], Field(min_length=1)]
    rounds: CountRange
    fixed_bits: Annotated[tuple[int, int], AfterValidator(_ordered)]

    @property
    def hashes(self) -> tuple[HashName, ...]:
        """The hash functions from which one is drawn."""
        return self.hash if isinstance(self.hash, tuple) else (self.hash,)

    @model_validator(mode="after")
    def _check_sizes(self) -> PreimageParameters:
        for name in self.hashes:
            if self.rounds[1] > ROUNDS[name]:
                raise ValueError(f"rounds {list(self.rounds)}, but {name} has {ROUNDS[name]}; lower the upper end")
        if self.fixed_bits[0] < 0 or self.fixed_bits[1] >= MESSAGE_BITS:
            raise ValueError(
                f"fixed_bits {list(self.fixed_bits)} of the {MESSAGE_BITS} of a message; give 0 to {MESSAGE_BITS - 1}"
            )
        return self


class UniformParameters(StrictModel):
    """Uniform random k-SAT: clauses of k distinct variables with random signs, drawn independently.

    Attributes:
        family: "uniform".
        variables: Range of the number n of variables.
        ratio: Range of the number of clauses per variable, m / n.
        clause_length: Number k of literals in a clause.
    """

    family: Literal["uniform"] = "uniform"
    variables: CountRange
    ratio: RatioRange
    clause_length: _Length = 3

    @model_validator(mode="after")
    def _check_sizes(self) -> UniformParameters:
        if self.variables[0] < self.clause_length:
            raise ValueError(
                f"variables {list(self.variables)} for clauses of {self.clause_length} literals; give "
                f"{self.clause_length} variables or more"
            )
        return self


class PigeonholeParameters(StrictModel):
    """The pigeonhole principle: h + 1 pigeons in h holes. Every formula is unsatisfiable.

    Attributes:
        family: "pigeonhole".
        holes: Range of the number h of holes.
    """

    family: Literal["pigeonhole"] = "pigeonhole"
    holes: Annotated[tuple[int, int], AfterValidator(_ordered)]

    @model_validator(mode="after")
    def _check_sizes(self) -> PigeonholeParameters:
        if self.holes[0] < 1 or self.holes[1] > 200:
            raise ValueError(f"holes {list(self.holes)}; give 1 to 200 holes")
        return self


class ParityParameters(StrictModel):
    """Random equations modulo 2 of few variables, consistent or not; one of w variables gives 2^(w-1) clauses.

    Attributes:
        family: "parity".
        variables: Range of the number n of variables.
        ratio: Range of the number of equations per variable; m is rounded up.
        width: Range of the number w of variables in an equation; it is the same for all equations of a formula.
        flipped: Probability that the system is made inconsistent, by negating one right side.
    """

    family: Literal["parity"] = "parity"
    variables: CountRange
    ratio: RatioRange
    width: LengthRange = (3, 5)
    flipped: _Share = 0.5

    @model_validator(mode="after")
    def _check_sizes(self) -> ParityParameters:
        if self.width[1] > min(12, self.variables[0]):
            raise ValueError(
                f"width {list(self.width)} with variables {list(self.variables)}; give a width of at most 12 and at "
                "most the number of variables"
            )
        if self.flipped > 0 and self.ratio[0] <= 1:
            raise ValueError(
                f"ratio {list(self.ratio)} with flipped = {self.flipped}: equations that are not more than the "
                "variables may all be independent, so that none can be negated; give a ratio above 1 or flipped 0"
            )
        return self


class ColoringParameters(StrictModel):
    """Colouring the nodes of a uniform random graph G(n, m) with k colours, adjacent ones differently.

    Attributes:
        family: "coloring".
        nodes: Range of the number n of nodes.
        ratio: Range of the number of edges per node, m / n; m is at most the number of pairs.
        colors: Number k of colours.
    """

    family: Literal["coloring"] = "coloring"
    nodes: CountRange
    ratio: RatioRange
    colors: Annotated[int, Field(ge=1, le=100)]

    @model_validator(mode="after")
    def _check_sizes(self) -> ColoringParameters:
        if self.nodes[1] > 10_000:
            raise ValueError(f"nodes {list(self.nodes)}; give at most 10000 nodes")
        return self


FormulaParameters = Annotated[
    CommunityParameters
    | FuzzParameters
    | PreimageParameters
    | UniformParameters
    | PigeonholeParameters
    | ParityParameters
    | ColoringParameters,
    Field(discriminator="family"),
]
"""The parameters of any family, told apart by ``family``."""


@dataclass(frozen=True, eq=False)
class Instance:
    """A formula with the facts about it that follow from its construction.

    Attributes:
        formula: The formula.
        satisfiable: Whether the formula is satisfiable; None if unknown.
        model: bool ``[n]``, a satisfying assignment; None if none is known.
    """

    formula: Cnf
    satisfiable: bool | None = None
    model: NDArray[np.bool_] | None = None


def draw_formula(parameters: FormulaParameters, key: np.uint64, index: int, attempt: int) -> Cnf:
    """Return the formula of `draw_instance`."""
    return draw_instance(parameters, key, index, attempt).formula


def draw_instance(parameters: FormulaParameters, key: np.uint64, index: int, attempt: int) -> Instance:
    """Draw a formula; it is a function of the arguments alone.

    The literals of a clause are distinct and sorted by variable. A formula may hold a clause twice.

    Args:
        parameters: Family and ranges.
        key: Key of the split, from ``graphbench.data.arrays.seeds.stream_key``.
        index: Position in the split.
        attempt: 0 for the first draw, 1, 2, ... for redraws of a duplicate.

    Raises:
        GenerationError: If 1000 circuits in a row have more than ``most_gates`` gates.
    """
    match parameters:
        case CommunityParameters(variables=n, communities=c, ratio=ratio, modularity=q, clause_length=k):
            return Instance(Cnf(*draw_community(key, index, attempt, n, c, ratio, q, k)))
        case UniformParameters(variables=n, ratio=ratio, clause_length=k):
            return Instance(Cnf(*draw_uniform(key, index, attempt, n, ratio, k)))
        case PreimageParameters(hashes=names, rounds=rounds, fixed_bits=fixed):
            encoded = draw_preimage(key, index, attempt, names, rounds, fixed).encoded
            size, model = len(encoded.values), encoded.values
            literals, ptr, renaming = disguise_rows(seed(key, index, attempt, 1), size, encoded.clauses)
            return Instance(Cnf(size, literals, ptr), True, renamed_model(renaming, model))
        case ParityParameters(variables=n, ratio=ratio, width=w, flipped=flipped):
            size, equations, sides, model, consistent = draw_parity(key, index, attempt, n, ratio, w, flipped)
            formula = parity_clauses(size, equations, sides)
            return _disguised(key, index, attempt, formula, True, consistent, model)
        case PigeonholeParameters(holes=holes):
            return _disguised(key, index, attempt, draw_pigeonhole(key, index, attempt, holes), False, False)
        case ColoringParameters(nodes=n, ratio=ratio, colors=k):
            return _disguised(key, index, attempt, draw_colouring(key, index, attempt, n, ratio, k), False)
    formula = _draw_fuzz(parameters, key, index, attempt)
    return _disguised(key, index, attempt, formula, True)


def _draw_fuzz(p: FuzzParameters, key: np.uint64, index: int, attempt: int) -> Formula:
    formula = draw_fuzz(
        key, index, attempt, p.inputs, p.references, p.clause_length, p.clause_ratio, p.most_gates, p.ite
    )
    if formula[0] == 0:
        raise GenerationError(
            f"none of 1000 circuits with inputs {list(p.inputs)} and references {list(p.references)} has at most "
            f"{p.most_gates} gates; raise most_gates, or lower inputs or references"
        )
    return formula


def _disguised(
    key: np.uint64,
    index: int,
    attempt: int,
    formula: Formula,
    flip: bool,
    satisfiable: bool | None = None,
    model: NDArray[np.bool_] | None = None,
) -> Instance:
    """Return a formula under random names; a model is renamed with it if the formula is satisfiable."""
    literals, ptr, names = disguise(seed(key, index, attempt, 1), *formula, flip)
    renamed = renamed_model(names, model) if satisfiable and model is not None else None
    return Instance(Cnf(formula[0], literals, ptr), satisfiable, renamed)
