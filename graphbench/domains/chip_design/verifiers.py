"""The verifier of generated circuits, and the programs that provide reference circuits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.data.arrays.samples import Samples
from graphbench.data.components.verifiers import Verdict, Verifier
from graphbench.domains.chip_design.aig import Aig, Circuits
from graphbench.domains.chip_design.best_known import best_known
from graphbench.domains.chip_design.graphs import TABLE, decoded, tables_of, tables_of_texts
from graphbench.domains.chip_design.labellers import ANDS, REFERENCE
from graphbench.domains.chip_design.scoring import and_ratio, score_circuits
from graphbench.domains.chip_design.search import circuits_by_search
from graphbench.domains.chip_design.shannon import circuits_of_tables
from graphbench.domains.chip_design.submissions import FORMS, GRAPH_FIELDS, REASONS, Submission
from graphbench.domains.chip_design.synthesis import optimise, synthesise
from graphbench.domains.chip_design.truth_tables import from_text

_SHANNON, _SEARCH = "shannon_", "play_outs"
PROGRAMS = (
    *("strash", "resyn", "compress2", "resyn2rs", "dc2", "reference"),
    *(f"{_SHANNON}{script}" for script in ("reference", "deepsyn")),
    _SEARCH,
)
"""Reference programs. Most are scripts of ABC (``synthesis.SCRIPTS``): the programs of table 5 of GraphBench start from
the truth table, as the reference does; ``shannon_<script>`` starts from the circuit of the Shannon decomposition.
``play_outs`` is the smallest of four circuits of :func:`~.search.circuits_by_search`."""
_VARIANTS = range(4)


def _verdict(fields: Mapping[str, Any], answers: Any) -> Verdict:
    """Return the scores of circuits; the parts of the samples are the numbers of inputs and outputs, as ``n6m1``."""
    submission = Submission.of(answers)
    scores = score_circuits(submission, *tables_of_texts(fields[TABLE]), fields[ANDS])
    smallest = best_known().num_ands(fields[TABLE])
    return Verdict(
        {
            "quality": 100 * scores.ratios,
            "of_best": np.where(np.isnan(smallest) | scores.correct, 100 * and_ratio(smallest, scores.ands), 0.0),
            "valid": scores.well_formed.astype(np.float64),
            "correct": scores.correct.astype(np.float64),
            "mean_ands": np.where(scores.correct, scores.ands, np.nan),
            "mean_depth": np.where(scores.correct, scores.depths, np.nan),
        },
        scores.reasons,
        REASONS,
        [f"n{n}m{m}" for n, m in scores.shapes.tolist()],
        submission.details,
    )


def _arrays(answers: Any) -> Mapping[str, NDArray[Any]]:
    return Submission.of(answers).arrays()


def _floors(samples: Samples) -> Mapping[str, Circuits]:
    """Return the structurally hashed circuits of the Shannon decompositions."""
    return {"shannon": circuits_of_tables(*tables_of(samples))}


def circuits_by(program: str, texts: Sequence[str], references: Sequence[str]) -> Sequence[Aig]:
    """Return the circuits of a program of :data:`PROGRAMS`.

    Args:
        program: Its name.
        texts: Truth tables as text.
        references: Reference circuits as text, equal to ``reference``.
    """
    if program == "reference":
        return [decoded(text) for text in references]
    if program == _SEARCH:
        return circuits_by_search(texts, variants=_VARIANTS)
    if program.startswith(_SHANNON):
        return optimise(list(circuits_of_tables(*tables_of_texts(texts))), program.removeprefix(_SHANNON))
    return synthesise([from_text(text) for text in texts], program)


def _solvers(samples: Samples) -> Mapping[str, Sequence[Aig]]:
    texts, references = (samples.values[name].strings() for name in (TABLE, REFERENCE))
    return {program: circuits_by(program, texts, references) for program in PROGRAMS}


VERIFIERS: Mapping[str, Verifier] = {
    "circuits": Verifier(
        name="chip_design.circuits",
        answers="circuits",
        forms=FORMS,
        graph_fields=GRAPH_FIELDS,
        fields=(TABLE, ANDS),
        metrics=("quality", "of_best", "valid", "correct", "mean_ands", "mean_depth"),
        endings=(".aig", ".aag"),
        verify=_verdict,
        arrays=_arrays,
        floors=_floors,
        solvers=_solvers,
    )
}
