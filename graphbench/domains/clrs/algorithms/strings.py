"""String matching (Cormen et al., chapter 32). Nodes are the letters of the haystack, then of the needle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.algorithms.dynamic_programming import two_strings
from graphbench.domains.clrs.arguments import ArgumentError, Instances, Prepared
from graphbench.domains.clrs.recording import Log, record

_INPUTS = "string:node/mask, pos:node/scalar, key:node/categorical(4)"


def _haystack_and_needle(T: Instances, P: Instances) -> Prepared:
    """Prepare a haystack ``T`` and a needle ``P``, which is not longer."""
    prepared = two_strings("T", T, "P", P)
    haystack, needle = (stack.shape[1] for stack in prepared.arguments)
    if needle > haystack:
        raise ArgumentError(
            f"the needle P has {needle} letters, the haystack T {haystack}; give a needle that is not longer"
        )
    return prepared


@algorithm(
    _haystack_and_needle,
    inputs=_INPUTS,
    hints="pred_h:node/pointer, s:node/mask_one, i:node/mask_one, j:node/mask_one",
    outputs="match:node/mask_one",
)
def naive_string_matcher(
    log: Log,
    T: NDArray[np.int64],
    P: NDArray[np.int64],
    pred_h: NDArray[np.int32],
    s: NDArray[np.int32],
    i: NDArray[np.int32],
    j: NDArray[np.int32],
    match: NDArray[np.int32],
) -> None:
    """The naive algorithm (section 32.1): try every alignment; one step per alignment and per letter that agrees.

    Without a match the output is the needle's first letter.
    """
    n, m = T.shape[0], P.shape[0]
    for node in range(n + m):
        pred_h[node] = node if node in (0, n) else node - 1
    match[0] = n
    for alignment in range(n - m + 1):
        s[0] = i[0] = alignment
        j[0] = n
        record(log)
        while T[i[0]] == P[j[0] - n]:
            if j[0] == n + m - 1:
                match[0] = alignment
                return
            i[0] += 1
            j[0] += 1
            record(log)


@algorithm(
    _haystack_and_needle,
    inputs=_INPUTS,
    hints="""pred_h:node/pointer, pi:node/pointer, is_reset:node/mask, k:node/mask_one, k_reset:graph/mask,
             q:node/mask_one, q_reset:graph/mask, s:node/mask_one, i:node/mask_one, phase:graph/mask""",
    outputs="match:node/mask_one",
)
def kmp_matcher(
    log: Log,
    T: NDArray[np.int64],
    P: NDArray[np.int64],
    pred_h: NDArray[np.int32],
    pi: NDArray[np.int32],
    is_reset: NDArray[np.int32],
    k: NDArray[np.int32],
    k_reset: NDArray[np.int32],
    q: NDArray[np.int32],
    q_reset: NDArray[np.int32],
    s: NDArray[np.int32],
    i: NDArray[np.int32],
    phase: NDArray[np.int32],
    match: NDArray[np.int32],
) -> None:
    """Knuth-Morris-Pratt (section 32.4): the prefix function (phase 0), then the scan (phase 1).

    One step per letter and per fall-back. A state before the first letter, -1 in the textbook, is shown as the needle's
    first node with the mask ``..._reset`` set. Without a match the output is that node too.
    """
    n, m = T.shape[0], P.shape[0]
    for node in range(n + m):
        pred_h[node] = node if node in (0, n) else node - 1
        pi[node] = node
    prefix = np.full(m, -1)  # length - 1 of the longest prefix that ends here
    is_reset[n] = 1
    k[0] = n
    q[0] = min(n + 1, n + m - 1)
    k_reset[0] = q_reset[0] = 1
    record(log)
    matched = -1
    for letter in range(1, m):
        q[0] = n + letter
        while matched >= 0 and P[matched + 1] != P[letter]:
            matched = prefix[matched]
            k[0], k_reset[0] = n + max(matched, 0), 1 if matched < 0 else 0
            record(log)
        if P[matched + 1] == P[letter]:
            matched += 1
        k[0], k_reset[0] = n + max(matched, 0), 1 if matched < 0 else 0
        prefix[letter] = matched
        pi[n + letter], is_reset[n + letter] = n + max(matched, 0), 1 if matched < 0 else 0
        record(log)
    phase[0] = 1
    match[0] = n
    matched = -1
    for position in range(n):
        i[0], s[0] = position, max(position - m + 1, 0)
        q[0], q_reset[0] = n + max(matched, 0), 1 if matched < 0 else 0
        record(log)
        while matched >= 0 and P[matched + 1] != T[position]:
            matched = prefix[matched]
            q[0], q_reset[0] = n + max(matched, 0), 1 if matched < 0 else 0
            record(log)
        if P[matched + 1] == T[position]:
            matched += 1
        if matched == m - 1:
            match[0] = position - m + 1
            return
