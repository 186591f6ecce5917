"""Scores of generated circuits, as GraphBench defines them (section 3.2.1, equation 1).

The score of N circuits is ``100 / N`` times the sum of (reference ANDs / generated ANDs) over the correct ones. ANDs
are counted as they are, dead and duplicate ANDs included. For a function that needs no AND, the equation divides by 0:
if either count is 0, the ratio is (reference ANDs + 1) / (generated ANDs + 1). So a circuit without ANDs scores 100 if
the reference has no ANDs either, and every additional AND lowers the score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import EvaluationError
from graphbench.core.kernels import kernel
from graphbench.domains.chip_design.aig_kernels import (
    Ints,
    Literals,
    Words,
    depths_run,
    hashed_one,
    simulate_one,
    simulation_space,
    words_per_output,
)
from graphbench.domains.chip_design.submissions import (
    NOT_EQUIVALENT,
    WRONG_INPUTS,
    WRONG_OUTPUTS,
    Submission,
    counted,
)
from graphbench.domains.chip_design.truth_tables import MOST_INPUTS

_INPUTS, _OUTPUTS, _OTHER = WRONG_INPUTS, WRONG_OUTPUTS, NOT_EQUIVALENT


@dataclass(frozen=True, eq=False)
class CircuitScores:
    """Scores of generated circuits.

    Attributes:
        reasons: uint8 ``[S]``, the reason why a circuit scores 0, a position in ``submissions.REASONS``; 0 for a
            correct circuit.
        ratios: float64 ``[S]``, reference over generated ANDs of correct circuits, 0 for others.
        ands: int64 ``[S]``, ANDs of well-formed circuits, 0 for others.
        depths: int64 ``[S]``, levels of well-formed circuits, 0 for others.
        dead: int64 ``[S]``, ANDs of well-formed circuits that no output needs.
        duplicates: int64 ``[S]``, ANDs of well-formed circuits that structural hashing replaces.
        well_formed: bool ``[S]``, whether it is a circuit of the right numbers of inputs and outputs.
        shapes: int64 ``[S, 2]``, numbers of inputs and outputs of the functions.
    """

    reasons: NDArray[np.uint8]
    ratios: NDArray[np.float64]
    ands: NDArray[np.int64]
    depths: NDArray[np.int64]
    dead: NDArray[np.int64]
    duplicates: NDArray[np.int64]
    well_formed: NDArray[np.bool_]
    shapes: NDArray[np.int64]

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the circuit computes its truth table, bool ``[S]``."""
        return self.reasons == 0

    @property
    def failures(self) -> Mapping[str, int]:
        """Reason -> number of circuits that score 0 for this reason, the most frequent reason first."""
        return counted(self.reasons)

    @property
    def score(self) -> float:
        """Equation (1) of GraphBench: 0 to 100, and above where circuits are smaller than the reference."""
        return 100 * float(self.ratios.mean())

    def by_shape(self) -> Mapping[tuple[int, int], float]:
        """Return the score of each pair of numbers of inputs and outputs, as in table 5 of GraphBench."""
        pairs, group = np.unique(self.shapes, axis=0, return_inverse=True)
        group = group.ravel()
        totals = np.bincount(group, self.ratios, len(pairs)) / np.bincount(group, minlength=len(pairs))
        return {(n, m): 100 * total for (n, m), total in zip(pairs.tolist(), totals.tolist(), strict=True)}

    def metrics(self) -> dict[str, float]:
        """Return the score, the shares of well-formed and of correct circuits, and means.

        ``mean_ands`` and ``mean_depth`` are means over correct circuits, ``mean_dead`` and ``mean_duplicates`` over
        well-formed ones; nan where there are none.
        """
        return {
            "score": self.score,
            "valid": float(self.well_formed.mean()),
            "correct": float(self.correct.mean()),
            "mean_ands": _mean(self.ands[self.correct]),
            "mean_depth": _mean(self.depths[self.correct]),
            "mean_dead": _mean(self.dead[self.well_formed]),
            "mean_duplicates": _mean(self.duplicates[self.well_formed]),
        }


def _mean(values: NDArray[np.int64]) -> float:
    return float(values.mean()) if values.size else math.nan


def and_ratio(reference: NDArray[Any], generated: NDArray[Any]) -> NDArray[np.float64]:
    """Return reference over generated ANDs; with 1 added to both where either is 0.

    Args:
        reference: Whole numbers ``[S]``; nan where there is none, which gives nan.
        generated: Whole numbers ``[S]``.
    """
    extra = ((reference == 0) | (generated == 0)).astype(np.int64)
    return (reference + extra) / (generated + extra)


def score_circuits(
    submission: Submission,
    num_inputs: NDArray[np.int64],
    num_outputs: NDArray[np.int64],
    words: Words,
    reference_ands: NDArray[np.int64],
) -> CircuitScores:
    """Return the scores of generated circuits. No circuit raises an error, however malformed.

    Args:
        submission: One circuit per function, in their order.
        num_inputs: int64 ``[S]``, of the functions.
        num_outputs: int64 ``[S]``.
        words: uint64, the truth tables as words, function by function, output by output.
        reference_ands: integers ``[S]``, ANDs of the reference circuits.

    Raises:
        EvaluationError: If there are not as many circuits and references as functions, none at all, or a reference is
            missing.
    """
    submission = Submission.of(submission)
    count, reference = len(num_inputs), np.asarray(reference_ands)
    if not count or len(submission) != count or reference.shape != (count,):
        raise EvaluationError(
            f"there are {len(submission):,} circuits and {reference.size:,} reference circuits of {count:,} functions; "
            "give one of each for every function, and at least one"
        )
    if not np.isfinite(reference).all() or reference.min() < 0:
        wrong = int(np.argmax(~(reference >= 0)))
        raise EvaluationError(f"function {wrong} has no reference circuit; leave it out of the evaluation")
    tables = _checked_tables(num_inputs, num_outputs, words)
    run = submission.circuits
    arrays = run.arrays
    reasons = _reasons(*arrays, submission.faults, *tables)
    well_formed = (reasons == 0) | (reasons == NOT_EQUIVALENT)
    dead, duplicates = _surplus(*arrays)
    ratios = np.where(reasons == 0, and_ratio(reference.astype(np.int64), run.num_ands), 0.0)

    def where_formed(values: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(well_formed, values, 0)

    return CircuitScores(
        reasons,
        ratios,
        where_formed(run.num_ands),
        where_formed(depths_run(*arrays)),
        where_formed(dead),
        where_formed(duplicates),
        well_formed,
        np.stack([num_inputs, num_outputs], axis=1),
    )


def _checked_tables(num_inputs: Any, num_outputs: Any, words: Any) -> tuple[Ints, Ints, Words]:
    """Return truth tables as the compiled function takes them.

    Raises:
        EvaluationError: If there are not as many words as the tables have, or a table has too many inputs.
    """
    arrays = [np.asarray(array) for array in (num_inputs, num_outputs, words)]
    inputs, outputs, words = arrays
    kinds = all(array.dtype.kind in "iu" and array.ndim == 1 for array in arrays) and words.dtype == np.uint64
    if not kinds or inputs.shape != outputs.shape:
        forms = ", ".join(f"{array.dtype} {list(array.shape)}" for array in arrays)
        raise EvaluationError(f"the truth tables are {forms}; give integers [S] and [S] and words uint64 [W]")
    if inputs.min() < 0 or inputs.max() > MOST_INPUTS or outputs.min() < 0 or outputs.max() > words.size:
        raise EvaluationError(
            f"truth tables have {inputs.min()} to {inputs.max()} inputs and {outputs.min()} to {outputs.max()} "
            f"outputs in {words.size:,} words; give 0 to {MOST_INPUTS} inputs"
        )
    inputs, outputs = inputs.astype(np.int64), outputs.astype(np.int64)
    total = int((outputs << np.maximum(inputs - 6, 0)).sum())
    if total != words.size:
        raise EvaluationError(f"the truth tables have {words.size:,} words, but {total:,} by their inputs and outputs")
    return inputs, outputs, np.ascontiguousarray(words)


@kernel
def _reasons(
    num_inputs: Ints,
    and_ptr: Ints,
    fanins: Literals,
    output_ptr: Ints,
    outputs: Literals,
    faults: NDArray[np.uint8],
    table_inputs: Ints,
    table_outputs: Ints,
    words: Words,
) -> NDArray[np.uint8]:
    """Return the reason of every circuit, 0 for a correct one; circuits of the right shape are simulated."""
    count = num_inputs.shape[0]
    reasons = faults.copy()
    nodes, largest = np.int64(1), np.int64(1)
    for s in range(count):
        largest = max(largest, table_outputs[s] * words_per_output(table_inputs[s]))
        if num_inputs[s] == table_inputs[s]:
            nodes = max(nodes, 1 + num_inputs[s] + and_ptr[s + 1] - and_ptr[s])
    values, table = simulation_space(nodes), np.empty(largest, np.uint64)
    at = np.int64(0)
    for s in range(count):
        size = table_outputs[s] * words_per_output(table_inputs[s])
        if reasons[s] == 0 and num_inputs[s] != table_inputs[s]:
            reasons[s] = _INPUTS
        if reasons[s] == 0 and output_ptr[s + 1] - output_ptr[s] != table_outputs[s]:
            reasons[s] = _OUTPUTS
        if reasons[s] == 0:
            circuit_outputs = outputs[output_ptr[s] : output_ptr[s + 1]]
            simulate_one(num_inputs[s], fanins[and_ptr[s] : and_ptr[s + 1]], circuit_outputs, values, table)
            for w in range(size):
                if table[w] != words[at + w]:
                    reasons[s] = _OTHER
                    break
        at += size
    return reasons


@kernel
def _surplus(
    num_inputs: Ints, and_ptr: Ints, fanins: Literals, output_ptr: Ints, outputs: Literals
) -> tuple[Ints, Ints]:
    """Return the numbers of dead and of duplicate ANDs of every circuit, int64 ``[S]``."""
    count = num_inputs.shape[0]
    dead, duplicates = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for s in range(count):
        circuit_outputs = outputs[output_ptr[s] : output_ptr[s + 1]]
        _, _, dead[s], duplicates[s] = hashed_one(num_inputs[s], fanins[and_ptr[s] : and_ptr[s + 1]], circuit_outputs)
    return dead, duplicates
