"""Assignments that satisfy as many clauses as possible: their graphs, decoder, objective and searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import DecodingError
from graphbench.data.components.problems import Problem
from graphbench.domains.sat.assignment_kernels import Bits, Clauses, by_conditional_expectation, walk
from graphbench.domains.sat.cnf import Cnf
from graphbench.domains.sat.formulas import IS_CLAUSE, NEGATED
from graphbench.domains.sat.incremental import first_best_assignment, is_satisfiable

_KEY = 0x77616C6B
_MOST_FLIPS = 200_000
_MOST_ALLOWED = 100_000_000  # flips, which take about ten seconds a formula
_NOISE = 0.5

Assignment = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class SignedGraphs:
    """The variable-clause graphs of a batch.

    Attributes:
        ptr: int64 ``[G + 1]``, first node of each graph.
        is_clause: bool ``[N]``, whether a node is a clause.
        variable: int64 ``[L]``, the node of the variable of each literal; literals are sorted by their clause.
        clause: int64 ``[L]``, the node of the clause of each literal.
        negated: bool ``[L]``, whether the literal is the negation of its variable.
    """

    ptr: NDArray[np.int64]
    is_clause: NDArray[np.bool_]
    variable: NDArray[np.int64]
    clause: NDArray[np.int64]
    negated: NDArray[np.bool_]

    def __len__(self) -> int:
        """Return the number of graphs."""
        return len(self.ptr) - 1

    @cached_property
    def graph(self) -> NDArray[np.int64]:
        """int64 ``[N]``, the graph of each node."""
        return np.repeat(np.arange(len(self)), np.diff(self.ptr))

    @cached_property
    def clauses(self) -> Clauses:
        """The clauses, and where variables occur, for compiled functions."""
        number = np.cumsum(self.is_clause) - 1  # of a clause, through the batch
        of_literal = number[self.clause]
        totals = np.concatenate([[0], np.cumsum(self.is_clause)])
        ptr = np.concatenate([[0], np.cumsum(np.bincount(of_literal, minlength=int(totals[-1])))])
        literal = np.argsort(self.variable, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(self.variable, minlength=int(self.ptr[-1])))])
        wanted = (~self.negated).astype(np.int8)
        return Clauses(self.ptr, totals[self.ptr], ptr, self.variable, wanted, first, literal, of_literal)

    def alone(self, g: int) -> SignedGraphs:
        """Return one graph."""
        first, last = self.ptr[g : g + 2].tolist()
        literal_slice = slice(*np.searchsorted(self.graph[self.clause], [g, g + 1]).tolist())
        literals = self.variable[literal_slice] - first, self.clause[literal_slice] - first, self.negated[literal_slice]
        return SignedGraphs(np.array([0, last - first]), self.is_clause[first:last], *literals)

    def formula(self) -> tuple[Cnf, NDArray[np.int64]]:
        """Return the formula of a single graph, and the node of each of its variables."""
        variables = np.flatnonzero(~self.is_clause)
        rank = (np.searchsorted(variables, self.variable) + 1).astype(np.int32)
        return Cnf(len(variables), np.where(self.negated, -rank, rank).astype(np.int32), self.clauses.ptr), variables


def checked_graphs(ptr: NDArray[Any], edge_index: NDArray[Any], fields: Mapping[str, NDArray[Any]]) -> SignedGraphs:
    """Return the variable-clause graphs of a batch.

    Args:
        ptr: int64 ``[G + 1]``, first node of each graph.
        edge_index: int64 ``[2, E]``, both directions of every edge.
        fields: ``is_clause`` ``[N]`` and ``negated`` ``[E]``.

    Raises:
        DecodingError: If a field is missing or has another length, or an edge does not join a variable to a clause.
    """
    nodes, arcs = int(ptr[-1]), edge_index.shape[-1]
    for name, count, rows in ((IS_CLAUSE, nodes, "node"), (NEGATED, arcs, "edge")):
        if name not in fields:
            raise DecodingError(f"the batch has no {name}; assignments need graphs of variables and clauses")
        if np.size(fields[name]) != count:
            raise DecodingError(f"{name} has shape {list(fields[name].shape)}; give one value per {rows}, {count}")
    is_clause, negated = np.reshape(fields[IS_CLAUSE], -1) != 0, np.reshape(fields[NEGATED], -1) != 0
    if arcs and (edge_index.min() < 0 or edge_index.max() >= nodes):
        raise DecodingError(f"edge_index names a node beyond the {nodes} of the batch; check how it was made")
    source, target = edge_index
    same = np.flatnonzero(is_clause[source] == is_clause[target])
    if len(same):
        kind = "clauses" if is_clause[source[same[0]]] else "variables"
        raise DecodingError(
            f"the edge {source[same[0]]}-{target[same[0]]} joins two {kind}; take the graph of variables and clauses "
            "(vcg, the stored one)"
        )
    forth = np.flatnonzero(is_clause[target])
    if 2 * len(forth) != arcs:
        raise DecodingError("some edges have no reverse; add them with torch_geometric.utils.to_undirected")
    order = forth[np.lexsort((source[forth], target[forth]))]
    ptr = np.ascontiguousarray(ptr, np.int64)
    return SignedGraphs(ptr, is_clause, source[order].astype(np.int64), target[order].astype(np.int64), negated[order])


def decode_assignments(
    graphs: SignedGraphs, scores: NDArray[Any], *, flips: int = 0, noise: float = _NOISE, seed: int = 0
) -> Assignment:
    """Return the values of variables, int32 ``[N]``: 1 for true; nodes that are clauses have 0.

    Args:
        graphs: The graphs.
        scores: Finite numbers ``[N]``: above 0 where a variable is more likely true.
        flips: Number of flips by which WalkSAT then improves the assignment of each formula.
        noise: Probability of a random flip of WalkSAT where every flip violates a clause.
        seed: Seed of the flips.

    Raises:
        DecodingError: If an argument is not as described.
    """
    check_options(flips=flips, noise=noise, seed=seed)
    if scores.shape != graphs.is_clause.shape:
        raise DecodingError(
            f"the scores have the shape {list(scores.shape)}; give [{len(graphs.is_clause)}], one row per node"
        )
    if scores.dtype.kind not in "biuf":
        raise DecodingError(f"the scores are {scores.dtype}; give real numbers")
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        node, g = int(wrong[0]), int(graphs.graph[wrong[0]])
        raise DecodingError(
            f"the score of node {node - graphs.ptr[g]} of graph {g} is {scores[node]}; check the model for overflow"
        )
    start = ((scores > 0) & ~graphs.is_clause).astype(np.int8)
    return _walked(graphs, start, flips, noise, seed).astype(np.int32) if flips else start.astype(np.int32)


def check_options(**options: Any) -> None:
    """Raise an error for an invalid value of a decoder's option.

    Raises:
        DecodingError: If a value is invalid; the message names the valid values.
    """
    for name, value in options.items():
        number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if name == "noise":
            fits, wanted = number and 0 <= value <= 1, "a number from 0 to 1"
        else:
            most = (1 << 63) - 1 if name == "seed" else _MOST_ALLOWED
            fits = number and value == value // 1 and 0 <= value <= most
            wanted = f"a whole number from 0 to {most:,}"
        if not fits:
            raise DecodingError(f"{name} is {value!r}; give {wanted}")


def satisfied_clauses(graphs: SignedGraphs, solution: NDArray[Any]) -> NDArray[np.int64]:
    """Return how many clauses of every formula hold, int64 ``[G]``; it shares no code with the searches.

    Args:
        graphs: The graphs.
        solution: Integers or booleans ``[N]``: 1 for true variables, 0 at clauses.

    Raises:
        DecodingError: If the solution has another form; the message names the node and its graph.
    """
    values = np.asarray(solution)
    if values.shape != graphs.is_clause.shape or values.dtype.kind not in "biu":
        raise DecodingError(
            f"the solution is {values.dtype} {list(values.shape)}; give integers "
            f"[{len(graphs.is_clause)}], one per node"
        )
    wrong = np.flatnonzero((values < 0) | (values > np.where(graphs.is_clause, 0, 1)))
    if len(wrong):
        node, g = int(wrong[0]), int(graphs.graph[wrong[0]])
        allowed = "a clause, which has 0" if graphs.is_clause[node] else "a variable, which has 0 or 1"
        raise DecodingError(
            f"node {node - graphs.ptr[g]} of graph {g} has the value {values[node]}, but it is {allowed}"
        )
    is_true = (values[graphs.variable] != 0) != graphs.negated
    holds = np.bincount(graphs.clause[is_true], minlength=int(graphs.ptr[-1])) > 0
    return np.bincount(graphs.graph[holds], minlength=len(graphs)).astype(np.int64)


def _walked(graphs: SignedGraphs, start: Bits, flips: int, noise: float, seed: int) -> Bits:
    return walk(graphs.clauses, start, int(flips), float(noise), 0, np.uint64(_KEY + int(seed)))


def greedy_assignments(graphs: SignedGraphs, seed: int = 0) -> Assignment:
    """Return the assignments of the method of conditional expectations (Johnson, 1974)."""
    return by_conditional_expectation(graphs.clauses).astype(np.int32)


def walked_assignments(
    graphs: SignedGraphs, seed: int = 0, *, flips: int = 10_000, noise: float = _NOISE
) -> Assignment:
    """Return the best assignments of a walk of WalkSAT from the greedy one."""
    start = by_conditional_expectation(graphs.clauses)
    return _walked(graphs, start, flips, noise, seed).astype(np.int32)


def best_assignment(graphs: SignedGraphs) -> tuple[Assignment, int]:
    """Return an assignment of one formula that violates as few clauses as possible, int32 ``[N]``, and their number.

    A solver says whether the formula is satisfiable. WalkSAT then walks from the greedy assignment until it violates no
    clause, or one of an unsatisfiable formula; where it takes too long, `first_best_assignment` answers. The bits
    depend on no solver's version.

    Raises:
        SolverError: If every assignment violates more than one clause.
        MissingDependency: If python-sat is not installed.
    """
    formula, variables = graphs.formula()
    fewest = 0 if is_satisfiable(formula) else 1
    start = by_conditional_expectation(graphs.clauses)
    assignment = walk(graphs.clauses, start, _MOST_FLIPS, _NOISE, fewest, np.uint64(_KEY)).astype(np.int32)
    if int(graphs.is_clause.sum()) - int(satisfied_clauses(graphs, assignment)[0]) > fewest:
        model, fewest = first_best_assignment(formula)
        assignment[variables] = model
    return assignment, fewest


def solved_assignments(graphs: SignedGraphs, seed: int = 0) -> Assignment:
    """Return the assignments of the search that makes the labels."""
    return np.concatenate([best_assignment(graphs.alone(g))[0] for g in range(len(graphs))])


PROBLEMS: Mapping[str, Problem] = {
    "assignment": Problem(
        name="sat.assignment",
        objective="satisfied_clauses",
        maximise=True,
        output=("output", "node", "mask"),
        value="assignment_value",
        bound="assignment_bound",
        checked=checked_graphs,
        decode=decode_assignments,
        check_options=check_options,
        objectives=satisfied_clauses,
        surrogate="clauses",
        fields=(IS_CLAUSE, NEGATED),
        searches={"greedy": greedy_assignments, "walksat": walked_assignments, "solver": solved_assignments},
        rules=frozenset({"greedy", "solver"}),
    )
}
