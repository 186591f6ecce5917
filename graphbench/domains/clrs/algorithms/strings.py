"""String matching (Cormen et al., chapter 32). Nodes are the letters of the haystack, then of the needle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphbench.domains.clrs.algorithm import algorithm
from graphbench.domains.clrs.algorithms.dynamic_programming import two_strings
from graphbench.domains.clrs.arguments import ArgumentError, Instances, Prepared
from graphbench.domains.clrs.recording import GraphMask, Log, NodeMask, NodeMaskOne, NodePointer, record

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


class NaiveStringMatcherHints(NamedTuple):
    """The hints of ``naive_string_matcher``."""

    pred_h: NodePointer
    s: NodeMaskOne
    i: NodeMaskOne
    j: NodeMaskOne


@algorithm(_haystack_and_needle, inputs=_INPUTS, hints=NaiveStringMatcherHints, outputs="match:node/mask_one")
def naive_string_matcher(
    log: Log, T: NDArray[np.int64], P: NDArray[np.int64], hints: NaiveStringMatcherHints, match: NDArray[np.int32]
) -> None:
    """The naive algorithm (section 32.1): try every alignment; one step per alignment and per letter that agrees.

    Without a match the output is the needle's first letter.
    """
    n, m = T.shape[0], P.shape[0]
    for node in range(n + m):
        hints.pred_h[node] = node if node in (0, n) else node - 1
    match[0] = n
    for alignment in range(n - m + 1):
        hints.s[0] = hints.i[0] = alignment
        hints.j[0] = n
        record(log)
        while T[hints.i[0]] == P[hints.j[0] - n]:
            if hints.j[0] == n + m - 1:
                match[0] = alignment
                return
            hints.i[0] += 1
            hints.j[0] += 1
            record(log)


class KmpMatcherHints(NamedTuple):
    """The hints of ``kmp_matcher``."""

    pred_h: NodePointer
    pi: NodePointer
    is_reset: NodeMask
    k: NodeMaskOne
    k_reset: GraphMask
    q: NodeMaskOne
    q_reset: GraphMask
    s: NodeMaskOne
    i: NodeMaskOne
    phase: GraphMask


@algorithm(_haystack_and_needle, inputs=_INPUTS, hints=KmpMatcherHints, outputs="match:node/mask_one")
def kmp_matcher(
    log: Log, T: NDArray[np.int64], P: NDArray[np.int64], hints: KmpMatcherHints, match: NDArray[np.int32]
) -> None:
    """Knuth-Morris-Pratt (section 32.4): the prefix function (phase 0), then the scan (phase 1).

    One step per letter and per fall-back. A state before the first letter, -1 in the textbook, is shown as the needle's
    first node with the mask ``..._reset`` set. Without a match the output is that node too.
    """
    n, m = T.shape[0], P.shape[0]
    for node in range(n + m):
        hints.pred_h[node] = node if node in (0, n) else node - 1
        hints.pi[node] = node
    prefix = np.full(m, -1)  # length - 1 of the longest prefix that ends here
    hints.is_reset[n] = 1
    hints.k[0] = n
    hints.q[0] = min(n + 1, n + m - 1)
    hints.k_reset[0] = hints.q_reset[0] = 1
    record(log)
    matched = -1
    for letter in range(1, m):
        hints.q[0] = n + letter
        while matched >= 0 and P[matched + 1] != P[letter]:
            matched = prefix[matched]
            hints.k[0], hints.k_reset[0] = n + max(matched, 0), 1 if matched < 0 else 0
            record(log)
        if P[matched + 1] == P[letter]:
            matched += 1
        hints.k[0], hints.k_reset[0] = n + max(matched, 0), 1 if matched < 0 else 0
        prefix[letter] = matched
        hints.pi[n + letter], hints.is_reset[n + letter] = n + max(matched, 0), 1 if matched < 0 else 0
        record(log)
    hints.phase[0] = 1
    match[0] = n
    matched = -1
    for position in range(n):
        hints.i[0], hints.s[0] = position, max(position - m + 1, 0)
        hints.q[0], hints.q_reset[0] = n + max(matched, 0), 1 if matched < 0 else 0
        record(log)
        while matched >= 0 and P[matched + 1] != T[position]:
            matched = prefix[matched]
            hints.q[0], hints.q_reset[0] = n + max(matched, 0), 1 if matched < 0 else 0
            record(log)
        if P[matched + 1] == T[position]:
            matched += 1
        if matched == m - 1:
            match[0] = position - m + 1
            return
