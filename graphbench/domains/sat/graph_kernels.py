"""Compiled steps that build the graphs of formulas, without any sort by comparisons.

Many formulas are handled at once, as one formula with disjoint variables: variable ``v`` of formula ``s`` has the
number ``v - 1`` plus the number of variables of all earlier formulas. The code of a positive literal is twice the
number of its variable, and the code of a negative literal is 1 more, so ``code ^ 1`` is the negation.

A relation is a pair ``(first, items)``: ``items[first[i]:first[i + 1]]`` are the items of ``i``, distinct, ascending.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel

VARIABLE, CLAUSE, LITERAL = 0, 1, 2
"""The values of the node array ``type``."""

Relation = tuple[NDArray[np.int64], NDArray[np.int32]]


@kernel
def literal_codes(
    num_variables: NDArray[np.int64],
    num_clauses: NDArray[np.int64],
    ptr: NDArray[np.int64],
    literals: NDArray[np.int32],
) -> tuple[NDArray[np.int32], int]:
    """Return the codes of the literals, int32 ``[L]``, and the position of a literal without a variable, or -1."""
    codes = np.empty(len(literals), np.int32)
    before = clause = 0
    for s in range(len(num_variables)):
        for k in range(ptr[clause], ptr[clause + num_clauses[s]]):
            literal = np.int64(literals[k])  # the absolute value of the smallest int32 does not fit into int32
            if literal == 0 or abs(literal) > num_variables[s]:
                return codes, k
            codes[k] = 2 * (before + abs(literal) - 1) + (1 if literal < 0 else 0)
        before += num_variables[s]
        clause += num_clauses[s]
    return codes, -1


@kernel
def occurrences(codes: NDArray[np.int32], ptr: NDArray[np.int64], num_codes: int) -> Relation:
    """Return the clauses that hold each literal."""
    first = np.zeros(num_codes + 1, np.int64)
    latest = np.full(num_codes, -1, np.int32)
    for j in range(len(ptr) - 1):
        for k in range(ptr[j], ptr[j + 1]):
            if latest[codes[k]] != j:
                latest[codes[k]] = j
                first[codes[k] + 1] += 1
    for code in range(num_codes):
        first[code + 1] += first[code]
    after = first[:-1].copy()
    clauses = np.empty(first[num_codes], np.int32)
    latest[:] = -1
    for j in range(len(ptr) - 1):
        for k in range(ptr[j], ptr[j + 1]):
            if latest[codes[k]] != j:
                latest[codes[k]] = j
                clauses[after[codes[k]]] = j
                after[codes[k]] += 1
    return first, clauses


@kernel
def variable_occurrences(
    first: NDArray[np.int64], clauses: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8]]:
    """Merge the clauses of the two literals of every variable.

    Args:
        first: int64 ``[2n + 1]``, from `occurrences`.
        clauses: int32, the items of the relation.

    Returns:
        The clauses that hold each variable, and the sign of the variable in each: 1, -1, or 0 where a clause holds
        both literals.
    """
    n = len(first) // 2
    starts = np.zeros(n + 1, np.int64)
    merged, signs = np.empty(len(clauses), np.int32), np.empty(len(clauses), np.int8)
    size = 0
    for v in range(n):
        p, n_p = first[2 * v], first[2 * v + 1]
        q, n_q = first[2 * v + 1], first[2 * v + 2]
        while p < n_p or q < n_q:
            if q == n_q or (p < n_p and clauses[p] < clauses[q]):
                merged[size], signs[size] = clauses[p], 1
                p += 1
            elif p == n_p or clauses[q] < clauses[p]:
                merged[size], signs[size] = clauses[q], -1
                q += 1
            else:
                merged[size], signs[size] = clauses[p], 0
                p += 1
                q += 1
            size += 1
        starts[v + 1] = size
    return starts, merged[:size].copy(), signs[:size].copy()


@kernel
def canonical_codes(
    num_variables: NDArray[np.int64],
    num_clauses: NDArray[np.int64],
    ptr: NDArray[np.int64],
    literals: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32], bool]:
    """Return the codes of the literals and how often each code occurs, if all formulas are in canonical form.

    Returns:
        The codes, int32 ``[L]``; the number of clauses that hold each literal, int32 ``[2n]`` over the variables of
        all formulas; and whether ``ptr`` never falls and never exceeds L, and the variables of every clause ascend
        strictly and are variables of their formula. If not, the arrays have no meaning.
    """
    codes, counts = np.empty(len(literals), np.int32), np.zeros(2 * num_variables.sum(), np.int32)
    before = clause = last = 0
    for s in range(len(num_variables)):
        for j in range(clause, clause + num_clauses[s]):
            first, last = last, ptr[j + 1]
            if last < first or last > len(literals):
                return codes, counts, False
            latest = np.int64(0)
            for k in range(first, last):
                literal = np.int64(literals[k])
                variable = abs(literal)
                if variable <= latest or variable > num_variables[s]:
                    return codes, counts, False
                latest = variable
                code = 2 * (before + variable - 1) + (1 if literal < 0 else 0)
                codes[k] = code
                counts[np.uint64(code)] += 1
        before += num_variables[s]
        clause += num_clauses[s]
    return codes, counts, True


@kernel
def incidence_graphs(
    num_variables: NDArray[np.int64],
    num_clauses: NDArray[np.int64],
    ptr: NDArray[np.int64],
    codes: NDArray[np.int32],
    counts: NDArray[np.int32],
    of_literals: bool,
    links: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int8], NDArray[np.int8], NDArray[np.int32]]:
    """Return the graphs that join the clauses of formulas in canonical form to their variables or literals.

    Args:
        num_variables: int64 ``[S]``.
        num_clauses: int64 ``[S]``.
        ptr: int64 ``[m + 1]``, where the literals of every clause begin.
        codes: int32 ``[L]``, from `canonical_codes`.
        counts: int32 ``[2n]``, from `canonical_codes`.
        of_literals: Whether the nodes on the left are literals; else they are variables.
        links: Whether every literal is joined with its negation.

    Returns:
        ``num_edges int64[S]``; ``edges int32[E, 2]``, the node ids of every formula begin at 0; ``marks int8[E]``: for
        variables the sign of the literal, for literals 1 for a link and 0 for another edge; and the node arrays
        ``type int8[N]`` and ``occurrences int32[N, 2]``.
    """
    per_variable, shift = (2, 0) if of_literals else (1, 1)
    num_left = per_variable * (len(counts) // 2)
    total = len(codes) + (len(counts) // 2 if links else 0)
    num_edges = np.zeros(len(num_variables), np.int64)
    edges, marks = np.empty((total, 2), np.int32), np.empty(total, np.int8)
    num_nodes = num_left + len(ptr) - 1
    occurrences, types = np.empty((num_nodes, 2), np.int32), np.full(num_nodes, CLAUSE, np.int8)
    after = np.empty(num_left, np.int64)  # the next edge of every node on the left
    row = clause = node = before = 0
    for s in range(len(num_variables)):
        first_row = row
        for v in range(before, before + num_variables[s]):
            positive, negative = counts[2 * v], counts[2 * v + 1]
            occurrences[node, 0], occurrences[node, 1], types[node] = positive, negative, VARIABLE
            if of_literals:
                occurrences[node + 1, 0], occurrences[node + 1, 1] = negative, positive
                types[node], types[node + 1] = LITERAL, LITERAL
                if links:
                    edges[row, 0], edges[row, 1], marks[row] = 2 * (v - before), 2 * (v - before) + 1, 1
                    row += 1
                after[2 * v], after[2 * v + 1] = row, row + positive
            else:
                after[v] = row
            node += per_variable
            row += positive + negative
        num_edges[s] = row - first_row
        left = per_variable * num_variables[s]
        for j in range(num_clauses[s]):
            first, last = ptr[clause], ptr[clause + 1]
            negatives = 0
            for k in range(first, last):
                negated = codes[k] & 1
                u = np.uint64(codes[k] >> shift)
                at = np.uint64(after[u])
                after[u] += 1
                edges[at, 0], edges[at, 1] = np.int64(u) - per_variable * before, left + j
                marks[at] = 0 if of_literals else 1 - 2 * negated
                negatives += negated
            occurrences[node, 0], occurrences[node, 1] = last - first - negatives, negatives
            clause += 1
            node += 1
        before += num_variables[s]
    return num_edges, edges, marks, types, occurrences


@kernel
def variable_graphs(
    num_variables: NDArray[np.int64],
    num_clauses: NDArray[np.int64],
    ptr: NDArray[np.int64],
    literals: NDArray[np.int32],
    pairs_per_literal: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], bool]:
    """Return the variable graphs if all formulas are in canonical form with short clauses.

    Args:
        num_variables: int64 ``[S]``.
        num_clauses: int64 ``[S]``.
        ptr: int64 ``[m + 1]``, where the literals of every clause begin.
        literals: int32 ``[L]``.
        pairs_per_literal: Number of pairs of literals of a clause, per literal, above which no graph is built.

    Returns:
        The arrays of `joined_pairs`; the number of clauses that hold each literal, int32 ``[2n]``; and whether the
        formulas are in canonical form as `canonical_codes` tests it, with so few pairs. If not, the arrays have no
        meaning.
    """
    n = num_variables.sum()
    variables, counts = np.empty(len(literals), np.int32), np.zeros(2 * n, np.int32)
    partners = np.zeros((n + 1, 2), np.int64)
    before = clause = last = total = 0
    is_canonical = True
    for s in range(len(num_variables)):
        for j in range(clause, clause + num_clauses[s]):
            first, last = last, ptr[j + 1]
            if last < first or last > len(literals):
                is_canonical = False
                break
            total += (last - first) * (last - first - 1) // 2
            latest = np.int64(0)
            for k in range(first, last):
                literal = np.int64(literals[k])
                variable = abs(literal)
                if variable <= latest or variable > num_variables[s]:
                    is_canonical = False
                    break
                latest = variable
                u = np.uint64(before + variable - 1)
                variables[k] = u
                counts[np.uint64(2) * u + np.uint64(literal < 0)] += 1
                partners[u, 0] += k - first
                partners[u, 1] += last - 1 - k
        before += num_variables[s]
        clause += num_clauses[s]
    if not is_canonical or total > pairs_per_literal * len(literals):
        return num_variables, np.empty((0, 2), np.int32), counts[:0], counts, False
    num_edges, edges, shared = _sorted_pairs(num_variables, ptr, variables, *_sums_before(partners))
    return num_edges, edges, shared, counts, True


@kernel
def transposed(first: NDArray[np.int64], items: NDArray[np.int32], num_items: int) -> Relation:
    """Return the inverse relation: for each item, the ``i`` that have it."""
    starts = np.zeros(num_items + 1, np.int64)
    for item in items:
        starts[item + 1] += 1
    for i in range(num_items):
        starts[i + 1] += starts[i]
    after = starts[:-1].copy()
    result = np.empty(len(items), np.int32)
    for i in range(len(first) - 1):
        for k in range(first[i], first[i + 1]):
            result[after[items[k]]] = i
            after[items[k]] += 1
    return starts, result


@kernel
def joined(
    first: NDArray[np.int64],
    groups: NDArray[np.int32],
    group_first: NDArray[np.int64],
    members: NDArray[np.int32],
    flip: int,
    max_edges: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], bool]:
    """Join every two nodes u < v where u is a member of ``g ^ flip`` for a group g of v.

    Args:
        first: int64 ``[nodes + 1]``, where the groups of every node begin in ``groups``.
        groups: int32, the groups of every node.
        group_first: int64 ``[groups + 1]``, where the nodes of every group begin in ``members``.
        members: int32, the nodes of every group.
        flip: 0 joins nodes of the same group; 1 joins the nodes of group 2i to the nodes of group 2i + 1.
        max_edges: Number of edges above which the edges are not stored.

    Returns:
        The larger neighbours of every node as ``first`` and ``items``, the number of groups by which each pair is
        joined, and whether the number of edges is within the limit.
    """
    n = len(first) - 1
    starts = np.zeros(n + 1, np.int64)
    latest = np.full(n, -1, np.int32)
    total = 0
    for v in range(n):
        for k in range(first[v], first[v + 1]):
            g = groups[k] ^ flip
            for at in range(group_first[g], group_first[g + 1]):
                u = members[at]
                if u >= v:
                    break
                if latest[u] != v:
                    latest[u] = v
                    starts[u + 1] += 1
                    total += 1
        if total > max_edges:
            return starts, np.empty(0, np.int32), np.empty(0, np.int32), False
    for u in range(n):
        starts[u + 1] += starts[u]
    after = starts[:-1].copy()
    larger, counts = np.empty(total, np.int32), np.empty(total, np.int32)
    for v in range(n):
        for k in range(first[v], first[v + 1]):
            g = groups[k] ^ flip
            for at in range(group_first[g], group_first[g + 1]):
                u = members[at]
                if u >= v:
                    break
                slot = after[u] - 1
                if slot >= starts[u] and larger[slot] == v:
                    counts[slot] += 1
                else:
                    larger[slot + 1], counts[slot + 1] = v, 1
                    after[u] += 1
    return starts, larger, counts, True


@kernel
def count_pairs(group_first: NDArray[np.int64]) -> int:
    """Return the number of pairs of members, summed over all groups."""
    total = 0
    for g in range(len(group_first) - 1):
        size = group_first[g + 1] - group_first[g]
        total += size * (size - 1) // 2
    return total


@kernel
def joined_pairs(
    left: NDArray[np.int64], group_first: NDArray[np.int64], members: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Join the members of each group, as `joined` does with flip 0, by sorting all pairs; faster for short groups.

    Args:
        left: int64 ``[S]``, the number of nodes of each formula.
        group_first: int64 ``[groups + 1]``, where the nodes of every group begin in ``members``.
        members: int32, the nodes of every group, ascending.

    Returns:
        ``num_edges int64[S]``, ``edges int32[E, 2]`` with node ids that begin at 0 in every formula, and the number of
        groups that join each pair, int32 ``[E]``.
    """
    partners = np.zeros((left.sum() + 1, 2), np.int64)
    for g in range(len(group_first) - 1):
        first, last = group_first[g], group_first[g + 1]
        for at in range(first, last):
            partners[members[at], 0] += at - first
            partners[members[at], 1] += last - 1 - at
    return _sorted_pairs(left, group_first, members, *_sums_before(partners))


@inner
def _sums_before(partners: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where the pairs of every node begin in lists of all pairs by larger and by smaller node, int64 ``[n+1]``.

    Args:
        partners: int64 ``[n + 1, 2]``: in how many pairs a node is the larger and the smaller one; the last row is 0.
    """
    as_larger, as_smaller = np.empty(len(partners), np.int64), np.empty(len(partners), np.int64)
    larger = smaller = 0
    for u in range(len(partners)):
        as_larger[u], as_smaller[u] = larger, smaller
        larger += partners[u, 0]
        smaller += partners[u, 1]
    return as_larger, as_smaller


@inner
def _sorted_pairs(
    left: NDArray[np.int64],
    group_first: NDArray[np.int64],
    members: NDArray[np.int32],
    as_larger: NDArray[np.int64],
    as_smaller: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Return the results of `joined_pairs`.

    The pairs are sorted by counting, by their larger node and then by their smaller one. Positions are unsigned, as
    Numba adds a test for negative positions to each signed one.

    Args:
        left: As for `joined_pairs`.
        group_first: As for `joined_pairs`.
        members: As for `joined_pairs`.
        as_larger: int64 ``[nodes + 1]``, where the pairs of every node begin in a list of all pairs by larger node.
        as_smaller: int64 ``[nodes + 1]``, the same for a list by smaller node.
    """
    smaller = _smaller_partners(as_larger, group_first, members)
    larger, after = np.empty(len(smaller), np.int32), as_smaller.copy()
    for v in range(len(as_larger) - 1):
        for k in range(as_larger[v], as_larger[v + 1]):
            u = np.uint64(smaller[k])
            larger[np.uint64(after[u])] = v
            after[u] += 1
    return _merged_pairs(left, as_smaller, larger)


@inner
def _smaller_partners(
    as_larger: NDArray[np.int64], group_first: NDArray[np.int64], members: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return the smaller nodes of all pairs of `_sorted_pairs`, by their larger nodes, int32 ``[pairs]``."""
    smaller, after = np.empty(as_larger[-1], np.int32), as_larger.copy()
    for g in range(len(group_first) - 1):
        first, last = group_first[g], group_first[g + 1]
        if last - first == 3:  # most clauses: the same as below, without loops
            x, y, z = members[first], np.uint64(members[first + 1]), np.uint64(members[first + 2])
            smaller[np.uint64(after[y])] = x
            after[y] += 1
            slot = np.uint64(after[z])
            smaller[slot], smaller[slot + np.uint64(1)] = x, members[first + 1]
            after[z] += 2
        else:
            for at in range(first + 1, last):
                u = np.uint64(members[at])
                slot = np.uint64(after[u])
                for k in range(first, at):
                    smaller[slot] = members[k]
                    slot += np.uint64(1)
                after[u] += at - first
    return smaller


@inner
def _merged_pairs(
    left: NDArray[np.int64], as_smaller: NDArray[np.int64], larger: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
    """Return the results of `joined_pairs` from the sorted larger nodes of all pairs, by their smaller nodes."""
    num_edges = np.zeros(len(left), np.int64)
    edges, counts = np.empty((len(larger) + 1, 2), np.int32), np.empty(len(larger) + 1, np.int32)
    size = before = 0
    for s in range(len(left)):
        begin = size
        for u in range(left[s]):
            latest, count = -1, 0
            for k in range(as_smaller[before + u], as_smaller[before + u + 1]):  # no branch to mispredict
                v = larger[k]
                size += 1 if v != latest else 0
                count = 1 if v != latest else count + 1
                latest = v
                row = np.uint64(size)
                edges[row, 0], edges[row, 1], counts[row] = u, v - before, count
        num_edges[s] = size - begin
        before += left[s]
    return num_edges, edges[1 : size + 1].copy(), counts[1 : size + 1].copy()


@kernel
def edge_rows(
    first: NDArray[np.int64], others: NDArray[np.int32], left: NDArray[np.int64], right: NDArray[np.int64], links: bool
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the edges of every formula; the node ids of every formula begin at 0.

    Args:
        first: int64 ``[nodes + 1]``, where the neighbours of every node of all formulas begin in ``others``.
        others: int32, the larger neighbours of every node.
        left: int64 ``[S]``, the number of nodes of each formula.
        right: int64 ``[S]``, the number of neighbours of each formula if neighbours are nodes of another kind, numbered
            after the nodes; int64 ``[0]`` if nodes and neighbours are of one kind.
        links: Whether nodes 2i and 2i + 1 are also joined, by an edge before the other edges of node 2i.

    Returns:
        ``num_edges int64[S]`` and ``edges int32[E, 2]``.
    """
    bipartite = len(right) == len(left)
    num_edges = np.zeros(len(left), np.int64)
    edges = np.empty((len(others) + ((len(first) - 1) // 2 if links else 0), 2), np.int32)
    row = first_left = first_right = 0
    for s in range(len(left)):
        begin = row
        shift = left[s] - first_right if bipartite else -first_left
        for i in range(first_left, first_left + left[s]):
            if links and i % 2 == 0:
                edges[row, 0], edges[row, 1] = i - first_left, i - first_left + 1
                row += 1
            for k in range(first[i], first[i + 1]):
                edges[row, 0], edges[row, 1] = i - first_left, others[k] + shift
                row += 1
        num_edges[s] = row - begin
        first_left += left[s]
        first_right += right[s] if bipartite else 0
    return num_edges, edges


@kernel
def sign_counts(first: NDArray[np.int64], clauses: NDArray[np.int32], num_clauses: int) -> NDArray[np.int32]:
    """Return how many positive and negative literals every clause holds, int32 ``[m, 2]``."""
    counts = np.zeros((num_clauses, 2), np.int32)
    for code in range(len(first) - 1):
        for k in range(first[code], first[code + 1]):
            counts[clauses[k], code & 1] += 1
    return counts
