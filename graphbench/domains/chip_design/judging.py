"""The judge of generated circuits, and the programs whose circuits stand beside a model's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.data.judges import Judge, Judgement
from graphbench.data.samples import Samples
from graphbench.domains.chip_design.aig import Circuits
from graphbench.domains.chip_design.graphs import TABLE, tables_of, tables_of_texts
from graphbench.domains.chip_design.labellers import ANDS
from graphbench.domains.chip_design.scoring import score_circuits
from graphbench.domains.chip_design.shannon import circuits_of_tables
from graphbench.domains.chip_design.submissions import FORMS, GRAPH_FIELDS, REASONS, Submission


def _judged(fields: Mapping[str, Any], answers: Any) -> Judgement:
    """Return the scores of circuits; the parts of the samples are the numbers of inputs and outputs, as ``n6m1``."""
    submission = Submission.of(answers)
    found = score_circuits(submission, *tables_of_texts(fields[TABLE]), fields[ANDS])
    return Judgement(
        {
            "quality": 100 * found.ratios,
            "valid": found.well_formed.astype(np.float64),
            "correct": found.correct.astype(np.float64),
            "mean_ands": np.where(found.correct, found.ands, np.nan),
            "mean_depth": np.where(found.correct, found.depths, np.nan),
        },
        found.reasons,
        REASONS,
        [f"n{n}m{m}" for n, m in found.shapes.tolist()],
        submission.details,
    )


def _arrays(answers: Any) -> Mapping[str, NDArray[Any]]:
    return Submission.of(answers).arrays()


def _floors(samples: Samples) -> Mapping[str, Circuits]:
    """Return the structurally hashed circuits of the Shannon decompositions."""
    return {"shannon": circuits_of_tables(*tables_of(samples))}


JUDGES: Mapping[str, Judge] = {
    "circuits": Judge(
        name="chip_design.circuits",
        answers="circuits",
        forms=FORMS,
        graph_fields=GRAPH_FIELDS,
        fields=(TABLE, ANDS),
        metrics=("quality", "valid", "correct", "mean_ands", "mean_depth"),
        endings=(".aig", ".aag"),
        judge=_judged,
        arrays=_arrays,
        floors=_floors,
    )
}
