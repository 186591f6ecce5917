"""Lowest eigenpairs of graph Laplacians on the CPU, compiled.

Several graphs are solved side by side, one per lane of the vector registers: the last axis of every work array is the
lane, and all lanes take the same steps. For one lane the method is the textbook one (Golub and Van Loan, Matrix
Computations, 4th ed., sections 8.3 and 5.1):

1. Householder reflections turn ``L`` into a tridiagonal ``T`` (float64: in float32 the repeated eigenvalues of dense
   graphs drift by 1e-4 and more).
2. QL sweeps with Wilkinson's shift give the eigenvalues of ``T`` (float64, no vectors).
3. The sweeps are repeated with these eigenvalues as shifts, so that nearly each one splits off a wanted pair. The
   rotations are kept, and applied backwards to the first columns of the identity: only wanted vectors are computed.
4. The reflections map the eigenvectors of ``T`` to eigenvectors of ``L`` (float32, as are the rotations).

The vectors are products of rotations and reflections, hence orthonormal for any spectrum, however degenerate.
The sweeps are explicit (``T - shift = QL``, ``T <- LQ + shift``): an off-diagonal entry that is zero splits the
matrix by itself, so a lane that is ahead of the others, or holds a smaller graph, needs no special treatment.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.core.kernels import inner, kernel
from graphbench.models._vectors import LANES, empty_vectors, load, splat, sqrt, store, where_less

_SWEEPS = 8  # at most, per node; two on average give the values, and one the vectors
_VALUE_TOLERANCE = 1e-12  # entries beside the diagonal below this (relative to the norm) count as zero: eigenvalues,
_VECTOR_TOLERANCE = 1e-8  # and vectors
_NO_TAIL = 1e-20  # squared norm, relative to the matrix's, of a column that counts as zero


@inner
def _fill_laplacians(
    matrix: NDArray[np.float64],
    norm: NDArray[np.float64],
    members: NDArray[np.int64],
    ptr: NDArray[np.int64],
    starts: NDArray[np.int64],
    neighbours: NDArray[np.int64],
) -> None:
    """Write one Laplacian per lane and a bound on its norm; padded rows get an eigenvalue above all others."""
    size = matrix.shape[0]
    for i in range(size * size):
        store(matrix, i, splat(0.0))
    for t in range(members.size):
        first = ptr[members[t]]
        for u in range(ptr[members[t] + 1] - first):
            for j in range(starts[first + u], starts[first + u + 1]):
                v = neighbours[j] - first
                if u != v:
                    matrix[u, v, t] = -1.0
                    matrix[v, u, t] = -1.0
    largest = splat(0.0)
    for u in range(size):
        degree = splat(0.0)
        for v in range(size):
            degree -= load(matrix, u * size + v)
        store(matrix, u * size + u, degree)
        largest = where_less(largest, degree, degree, largest)
    store(norm, 0, splat(2.0) * largest + splat(1.0))
    for t in range(LANES):
        real = ptr[members[t] + 1] - ptr[members[t]] if t < members.size else 0
        for u in range(real, size):
            matrix[u, u, t] = norm[t]


@inner
def _reflect_column(
    matrix: NDArray[np.float64],
    j: int,
    norm: NDArray[np.float64],
    off_diagonal: NDArray[np.float64],
    factor: NDArray[np.float64],
) -> None:
    """Replace ``matrix[j, j+1:]`` by ``v``, so that ``1 - factor v v^T`` maps it to a multiple of a unit vector."""
    size, zero, tail = matrix.shape[0], splat(0.0), splat(0.0)
    for i in range(j + 2, size):
        entry = load(matrix, j * size + i)
        tail += entry * entry
    head, bound = load(matrix, j * size + j + 1), load(norm, 0)
    bound = bound * bound * splat(_NO_TAIL)
    length = sqrt(head * head + tail)
    image = where_less(zero, head, zero - length, length)
    lead = head - image
    store(matrix, j * size + j + 1, lead)
    store(factor, j, where_less(bound, tail, splat(2.0) / (lead * lead + tail), zero))
    store(off_diagonal, j, where_less(bound, tail, image, head))


@inner
def _times_symmetric(
    matrix: NDArray[np.float64], begin: int, vector: NDArray[np.float64], product: NDArray[np.float64]
) -> None:
    """Write ``matrix[begin:, begin:] @ vector[begin:]``; only the upper triangle is read."""
    size = matrix.shape[0]
    for i in range(begin, size):
        store(product, i, splat(0.0))
    for i in range(begin, size):
        entry = load(vector, i)
        row_sum = load(product, i) + load(matrix, i * size + i) * entry
        for c in range(i + 1, size):
            element = load(matrix, i * size + c)
            row_sum += element * load(vector, c)
            store(product, c, load(product, c) + element * entry)
        store(product, i, row_sum)


@inner
def _tridiagonalise(
    matrix: NDArray[np.float64],
    norm: NDArray[np.float64],
    diagonal: NDArray[np.float64],
    off_diagonal: NDArray[np.float64],
    factor: NDArray[np.float64],
    reflections: NDArray[np.float32],
) -> None:
    """Reduce to tridiagonal form; row ``j`` of ``reflections`` holds the vector of reflection ``j`` from ``j+1`` on."""
    size = matrix.shape[0]
    product = empty_vectors(2 * size).view(np.float64)
    for j in range(size - 2):
        vector = matrix[j]
        _reflect_column(matrix, j, norm, off_diagonal, factor)
        _times_symmetric(matrix, j + 1, vector, product)
        scale, overlap = load(factor, j), splat(0.0)
        for i in range(j + 1, size):
            overlap += load(product, i) * load(vector, i)
        overlap = overlap * scale * splat(0.5)
        for i in range(j + 1, size):
            store(product, i, scale * (load(product, i) - overlap * load(vector, i)))
        for i in range(j + 1, size):
            store(reflections, j * size + i, load(vector, i))
            left, right = load(vector, i), load(product, i)
            for c in range(i, size):
                element = load(matrix, i * size + c)
                store(matrix, i * size + c, element - left * load(product, c) - right * load(vector, c))
    store(off_diagonal, size - 1, splat(0.0))
    if size > 1:
        store(off_diagonal, size - 2, load(matrix, (size - 1) * size - 1))
    for i in range(size):
        store(diagonal, i, load(matrix, i * size + i))


@inner
def _sweep(
    diagonal: NDArray[np.float64],
    off_diagonal: NDArray[np.float64],
    begin: int,
    shifts: NDArray[np.float64],
    rotations: NDArray[np.float32],
    kept: int,
) -> None:
    """Do one QL step on ``T[begin:, begin:]``; rotation ``i``, of rows ``i`` and ``i+1``, is kept at ``kept + i``."""
    size, tiny, shift = diagonal.shape[0], splat(1e-30), load(shifts, 0)
    pivot = load(diagonal, size - 1) - shift
    cosine, sine = splat(1.0), splat(0.0)
    for i in range(size - 2, begin - 1, -1):
        beside, entry = load(off_diagonal, i), load(diagonal, i) - shift
        pivot = where_less(pivot * pivot + beside * beside, tiny * tiny, tiny, pivot)
        length = sqrt(pivot * pivot + beside * beside)
        store(off_diagonal, i + 1, sine * length)
        across, along = cosine * beside, cosine * pivot
        cosine, sine = pivot / length, beside / length
        store(diagonal, i + 1, along + sine * (cosine * across + sine * entry) + shift)
        pivot = cosine * entry - sine * across
        store(rotations, 2 * (kept + i), cosine)
        store(rotations, 2 * (kept + i) + 1, sine)
    store(off_diagonal, begin, sine * pivot)
    store(diagonal, begin, cosine * pivot + shift)


@inner
def _wilkinson(first: float, beside: float, second: float) -> float:
    """Return the eigenvalue of ``[[first, beside], [beside, second]]`` that is closer to ``first``."""
    half = (second - first) / 2.0
    correction = beside * beside / (abs(half) + np.sqrt(half * half + beside * beside))
    return float(first - correction if half >= 0 else first + correction)


@inner
def _sorted_eigenvalues(
    diagonal: NDArray[np.float64], off_diagonal: NDArray[np.float64], norm: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the eigenvalues of ``T`` [lanes, size], ascending; lanes that fail to converge are caught later."""
    size = diagonal.shape[0]
    d, e = diagonal.copy(), off_diagonal.copy()
    rotations = empty_vectors(2 * size)
    low = np.zeros(LANES, np.int64)
    shift = np.zeros(LANES)
    for _ in range(_SWEEPS * size):
        begin = size - 1
        for t in range(LANES):
            i = low[t]
            while i < size - 1 and abs(e[i, t]) <= _VALUE_TOLERANCE * norm[t]:
                e[i, t] = 0.0
                i += 1
            low[t] = i
            begin = min(begin, i)
            if i < size - 1:
                shift[t] = _wilkinson(d[i, t], e[i, t], d[i + 1, t])
        if begin == size - 1:
            break
        _sweep(d, e, begin, shift, rotations, 0)
    values = np.empty((LANES, size))
    for t in range(LANES):
        for i in range(size):
            _insert(values[t], i, d[i, t])
    return values


@inner
def _insert(ascending: NDArray[np.float64], count: int, value: float) -> int:
    """Insert a value among the first ``count`` values and return its position."""
    i = count
    while i > 0 and ascending[i - 1] > value:
        ascending[i] = ascending[i - 1]
        i -= 1
    ascending[i] = value
    return i


@inner
def _tick_off(values: NDArray[np.float64], used: NDArray[np.bool_], begin: int, eigenvalue: float, slack: float) -> int:
    """Mark the first unused value that equals ``eigenvalue`` up to ``slack``; return the next unused index."""
    for i in range(begin, values.size):
        if not used[i] and values[i] >= eigenvalue - slack:
            used[i] = values[i] <= eigenvalue + slack
            break
    while begin < values.size and used[begin]:
        begin += 1
    return begin


@inner
def _split_off_lowest(
    d: NDArray[np.float64],
    e: NDArray[np.float64],
    norm: NDArray[np.float64],
    values: NDArray[np.float64],
    wanted: NDArray[np.int64],
    rotations: NDArray[np.float32],
    begins: NDArray[np.int64],
    split: NDArray[np.int64],
) -> int:
    """Sweep until the ``wanted[t]`` lowest pairs of every lane are among the first ``split[t]`` rows of ``T``.

    Returns:
        The number of sweeps; -1 if they did not suffice.
    """
    size, sweeps = d.shape[0], 0
    low, tries = np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    following = np.zeros(LANES, np.int64)  # index of the first value that has not split off
    used = np.zeros((LANES, size), np.bool_)
    shift = np.zeros(LANES)
    split[:] = 0
    while True:
        begin, finished = size, True
        for t in range(LANES):
            tolerance = _VECTOR_TOLERANCE * norm[t]
            i = low[t]
            while i < size and (i == size - 1 or abs(e[i, t]) <= tolerance):
                e[i, t] = 0.0
                following[t] = _tick_off(values[t], used[t], following[t], d[i, t], 10.0 * tolerance)
                tries[t] = 0
                i += 1
                if split[t] == 0 and (following[t] >= wanted[t] or i == size):
                    split[t] = i
            low[t] = i
            finished &= split[t] > 0
            begin = min(begin, i)
            if i < size:
                shift[t] = (
                    values[t, min(following[t], size - 1)]
                    if tries[t] == 0
                    else _wilkinson(d[i, t], e[i, t], d[i + 1, t])
                )
            tries[t] += 1
        if finished:
            return sweeps
        if sweeps == begins.size:
            return -1
        _sweep(d, e, begin, shift, rotations, sweeps * size)
        begins[sweeps] = begin
        sweeps += 1


@inner
def _vectors_of_tridiagonal(
    vectors: NDArray[np.float32],
    sweeps: int,
    rotations: NDArray[np.float32],
    begins: NDArray[np.int64],
) -> None:
    """Apply the kept rotations, last first, to the first columns of the identity; fills [size, columns, lanes]."""
    size, columns = vectors.shape[:2]
    for i in range(size):
        for c in range(columns):
            store(vectors, i * columns + c, splat(np.float32(1.0 if i == c else 0.0)))
    for k in range(sweeps - 1, -1, -1):
        for i in range(begins[k], size - 1):
            cosine, sine = load(rotations, 2 * (k * size + i)), load(rotations, 2 * (k * size + i) + 1)
            for c in range(begins[k], columns):
                above, below = load(vectors, i * columns + c), load(vectors, (i + 1) * columns + c)
                store(vectors, i * columns + c, cosine * above + sine * below)
                store(vectors, (i + 1) * columns + c, cosine * below - sine * above)


@inner
def _reflect_back(vectors: NDArray[np.float32], reflections: NDArray[np.float32], factors: NDArray[np.float64]) -> None:
    """Turn the eigenvectors of ``T`` into eigenvectors of ``L``."""
    size, columns = vectors.shape[:2]
    overlap, factor = empty_vectors(columns), empty_vectors(size)
    for j in range(size):
        store(factor, j, load(factors, j))
    for j in range(size - 3, -1, -1):
        for c in range(columns):
            store(overlap, c, splat(np.float32(0.0)))
        for i in range(j + 1, size):
            entry = load(reflections, j * size + i)
            for c in range(columns):
                store(overlap, c, load(overlap, c) + entry * load(vectors, i * columns + c))
        scale = load(factor, j)
        for i in range(j + 1, size):
            entry = scale * load(reflections, j * size + i)
            for c in range(columns):
                store(vectors, i * columns + c, load(vectors, i * columns + c) - entry * load(overlap, c))


@inner
def _write_pairs(
    values: NDArray[np.float32],
    vectors: NDArray[np.float32],
    members: NDArray[np.int64],
    ptr: NDArray[np.int64],
    wanted: NDArray[np.int64],
    split: NDArray[np.int64],
    diagonal: NDArray[np.float64],
    basis: NDArray[np.float32],
) -> None:
    """Write the lowest pairs of every lane, in ascending order, to the rows of its graph's nodes."""
    ascending, order = np.empty(diagonal.shape[0]), np.empty(diagonal.shape[0], np.int64)
    for t in range(members.size):
        for i in range(split[t]):
            position = _insert(ascending, i, diagonal[i, t])
            for later in range(i, position, -1):
                order[later] = order[later - 1]
            order[position] = i
        first, last = ptr[members[t]], ptr[members[t] + 1]
        for v in range(first, last):
            for c in range(wanted[t]):
                values[v, c] = max(ascending[c], 0.0)
                vectors[v, c] = basis[v - first, order[c], t]


@inner
def _workspace(
    size: int,
) -> tuple[
    NDArray[np.float64],
    NDArray[np.float32],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float64],
    NDArray[np.float32],
    NDArray[np.int64],
]:
    """Return empty arrays: matrix, reflections, their factors, diagonal, off-diagonal, rotations, starts of sweeps."""
    return (
        empty_vectors(2 * size * size).view(np.float64).reshape(size, size, LANES),
        empty_vectors(size * size),
        np.empty((size, LANES)),
        np.empty((size, LANES)),
        np.empty((size, LANES)),
        empty_vectors(2 * _SWEEPS * size * size),
        np.empty(_SWEEPS * size, np.int64),
    )


@kernel
def lowest_pairs(
    starts: NDArray[np.int64], neighbours: NDArray[np.int64], ptr: NDArray[np.int64], by_size: NDArray[np.int64], k: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], bool]:
    """Return the k lowest eigenpairs of the Laplacian ``D - A`` of every graph, arcs counted as undirected edges.

    Args:
        starts: int64 [N+1], where the neighbours of each node begin.
        neighbours: int64 [E], the nodes that arcs lead to, numbered through the batch.
        ptr: int64 [B+1], graph ``g`` holds the nodes ``ptr[g] .. ptr[g+1]-1``.
        by_size: int64 [B], the graphs in the order in which they share lanes; similar sizes side by side are fastest.
        k: Number of pairs.

    Returns:
        Eigenvalues float32 [N, k] (ascending, the same for all nodes of a graph), entries of the eigenvectors float32
        [N, k], both zero beyond the number of nodes, and whether all graphs converged.
    """
    values, vectors = np.zeros((ptr[-1], k), np.float32), np.zeros((ptr[-1], k), np.float32)
    norm, wanted, split = np.empty(LANES), np.zeros(LANES, np.int64), np.zeros(LANES, np.int64)
    matrix, reflections, factor, diagonal, off_diagonal, rotations, begins = _workspace(1)
    for group in range(0, by_size.size, LANES):
        members = by_size[group : group + LANES]
        wanted[:] = 0
        size = 1
        for t in range(members.size):
            nodes = ptr[members[t] + 1] - ptr[members[t]]
            wanted[t], size = min(k, nodes), max(size, nodes)
        if size != matrix.shape[0]:
            matrix, reflections, factor, diagonal, off_diagonal, rotations, begins = _workspace(size)
        _fill_laplacians(matrix, norm, members, ptr, starts, neighbours)
        _tridiagonalise(matrix, norm, diagonal, off_diagonal, factor, reflections)
        ordered = _sorted_eigenvalues(diagonal, off_diagonal, norm)
        sweeps = _split_off_lowest(diagonal, off_diagonal, norm, ordered, wanted, rotations, begins, split)
        if sweeps < 0:
            return values, vectors, False
        basis = empty_vectors(size * split.max()).reshape(size, split.max(), LANES)
        _vectors_of_tridiagonal(basis, sweeps, rotations, begins)
        _reflect_back(basis, reflections, factor)
        _write_pairs(values, vectors, members, ptr, wanted, split, diagonal, basis)
    return values, vectors, True
