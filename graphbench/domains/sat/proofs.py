"""Proofs of unsatisfiability: a solver writes them, and a checker of our own follows every step.

A proof is a sequence of clauses, the last of which is empty. A step holds if unit propagation alone, on the formula and
the steps before, leads to a conflict when all literals of the step are false (reverse unit propagation; Goldberg and
Novikov, 2003). The checker shares no code with any solver.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.incremental import assignment_of, opened_solver

_PROVER = "glucose4"  # its proofs have no steps but those of reverse unit propagation
_PROVED, _OPEN = -1, -2

_Ints = NDArray[np.int32]
_Pointers = NDArray[np.int64]
_Values = NDArray[np.int8]


def decide(cnf: Cnf) -> tuple[NDArray[np.bool_] | None, list[list[int]]]:
    """Return what the solver Glucose 4 finds: a model, bool ``[n]``, or None and the clauses of a proof.

    Raises:
        MissingDependency: If python-sat is not installed.
    """
    with opened_solver(_PROVER, bootstrap_with=list(cnf.clauses()), with_proof=True) as solver:
        if solver.solve():
            return assignment_of(solver.get_model(), cnf.num_variables), []
        lines = [line.split() for line in solver.get_proof()]
    return None, [[int(literal) for literal in line[:-1]] for line in lines if line[0] != "d"]


def contradiction(cnf: Cnf, is_satisfiable: bool) -> str | None:
    """Return why a claim about a formula is wrong or unproved, as a text; None if a model or a proof supports it.

    Raises:
        MissingDependency: If python-sat is not installed.
    """
    model, proof = decide(cnf)
    if (model is not None) != is_satisfiable:
        return f"another solver finds it {'unsatisfiable' if model is None else 'satisfiable'}"
    if model is None:
        fault = check_proof(cnf, proof)
        return None if fault is None else f"the proof that it is unsatisfiable is wrong: {fault}"
    return None if cnf.is_satisfied_by(model) else "the model of another solver does not satisfy it"


def check_proof(cnf: Cnf, steps: Sequence[Sequence[int]]) -> str | None:
    """Follow a proof of unsatisfiability.

    Args:
        cnf: The formula.
        steps: The clauses that are derived one after the other; the empty clause at the end may be left out. Variables
            that the formula does not have are refused.

    Returns:
        None if the steps prove that the formula is unsatisfiable, else the reason why they do not, as a text.
    """
    literals, ptr = cnf.checked()
    learned = Cnf.from_clauses(steps)
    if learned.num_variables > cnf.num_variables:
        return f"the proof has the variable {learned.num_variables}, but the formula has {cnf.num_variables}"
    joined = np.concatenate([literals, learned.literals])
    starts = np.concatenate([ptr, ptr[-1] + learned.ptr[1:]])
    outcome = _follow(cnf.num_variables, joined, starts, cnf.num_clauses)
    if outcome == _PROVED:
        return None
    if outcome == _OPEN:
        return f"the {len(steps)} steps of the proof hold, but do not lead to a contradiction"
    return f"step {outcome - cnf.num_clauses} of the proof, {list(steps[outcome - cnf.num_clauses])}, does not follow"


@inner
def _value(values: _Values, literal: int) -> int:
    """Return 1 if a literal is true, -1 if it is false, and 0 if its variable has no value."""
    return values[literal - 1] if literal > 0 else -values[-literal - 1]


@inner
def _code(literal: int) -> int:
    return 2 * (literal - 1) if literal > 0 else 2 * (-literal - 1) + 1


@inner
def _assign(values: _Values, trail: _Ints, size: int, literal: int) -> int:
    """Make a literal true; the trail has one literal more afterwards."""
    values[abs(literal) - 1] = 1 if literal > 0 else -1
    trail[size] = literal
    return size + 1


@inner
def _watch(clause: int, place: int, literal: int, heads: _Pointers, following: _Pointers) -> None:
    """Put a clause on the list of a literal; ``place`` is the position of the literal in the clause, 0 or 1."""
    node = 2 * clause + place
    following[node] = heads[_code(literal)]
    heads[_code(literal)] = node


@inner
def _propagate(
    literals: _Ints,
    ptr: _Pointers,
    values: _Values,
    trail: _Ints,
    done: int,
    size: int,
    heads: _Pointers,
    following: _Pointers,
) -> tuple[int, bool]:
    """Assign what follows from single clauses, and return the size of the trail and whether a clause is violated."""
    while done < size:
        false = -trail[done]
        done += 1
        node = heads[_code(false)]
        heads[_code(false)] = -1
        while node >= 0:
            clause, place, after = node // 2, node % 2, following[node]
            first = ptr[clause]
            other = literals[first + 1 - place]
            moved = False
            if _value(values, other) != 1:
                for k in range(first + 2, ptr[clause + 1]):
                    if _value(values, literals[k]) != -1:
                        literals[first + place], literals[k] = literals[k], literals[first + place]
                        _watch(clause, place, literals[first + place], heads, following)
                        moved = True
                        break
            if not moved:
                _watch(clause, place, false, heads, following)
                if _value(values, other) == -1:
                    while after >= 0:  # the rest of the list stays
                        node, after = after, following[after]
                        following[node] = heads[_code(false)]
                        heads[_code(false)] = node
                    return size, True
                if _value(values, other) == 0:
                    size = _assign(values, trail, size, other)
            node = after
    return size, False


@kernel
def _follow(num_variables: int, literals: _Ints, ptr: _Pointers, given: int) -> int:
    """Return `_PROVED`, `_OPEN`, or the number of the first clause from number ``given`` on that does not follow."""
    values, trail = np.zeros(num_variables, np.int8), np.empty(num_variables, np.int32)
    heads = np.full(2 * num_variables, -1, np.int64)
    following = np.full(2 * (len(ptr) - 1), -1, np.int64)
    size = 0
    for clause in range(len(ptr) - 1):
        first, last = ptr[clause], ptr[clause + 1]
        if clause >= given:
            kept, conflict = size, False
            for k in range(first, last):
                value = _value(values, literals[k])
                if value == 1:
                    conflict = True
                    break
                if value == 0:
                    size = _assign(values, trail, size, -literals[k])
            if not conflict:
                size, conflict = _propagate(literals, ptr, values, trail, kept, size, heads, following)
            while size > kept:
                size -= 1
                values[abs(trail[size]) - 1] = 0
            if not conflict:
                return clause
        at = first
        for k in range(first, last):  # literals that are not false come first
            if at < first + 2 and _value(values, literals[k]) != -1:
                literals[at], literals[k] = literals[k], literals[at]
                at += 1
        if at == first:
            return _PROVED
        if last - first >= 2:
            _watch(clause, 0, literals[first], heads, following)
            _watch(clause, 1, literals[first + 1], heads, following)
        if at == first + 1 and _value(values, literals[first]) == 0:
            kept = size
            size = _assign(values, trail, size, literals[first])
            size, conflict = _propagate(literals, ptr, values, trail, kept, size, heads, following)
            if conflict:
                return _PROVED
    return _OPEN
