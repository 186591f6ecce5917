"""Score reference programs on chip_design/aig, and write a record of each: ``python -m benchmarks.chip_programs``.

The records stand beside table 5 of GraphBench in reports. They hold the scores of the test split and of its parts by
numbers of inputs and outputs.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

DATASET = "chip_design/aig:generate"


def main() -> None:
    """Score the programs, and print a line for each."""
    import graphbench
    from graphbench.domains.chip_design.graphs import tables_of_texts
    from graphbench.domains.chip_design.judging import PROGRAMS, circuits_by
    from graphbench.domains.chip_design.shannon import circuits_of_tables
    from graphbench.domains.chip_design.synthesis import find_abc
    from graphbench.evaluation.results import RunRecord, save_record
    from graphbench.tasks.base import named_scores

    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--limit", type=int, default=600, help="functions of the test split")
    options.add_argument("--records", type=Path, default=Path(__file__).resolve().parents[1] / "baselines" / "results")
    options.add_argument("--root", type=Path, default=None, help="folder of the datasets")
    given = options.parse_args()
    split = graphbench.Loader(DATASET, root=given.root, limit=given.limit).load(("test",)).test
    texts, references = list(split.table), list(split.reference)
    fields = {"table": texts, "reference_ands": split.reference_ands}
    for program in ("shannon", *PROGRAMS):
        started = _seconds()
        if program == "shannon":
            circuits = circuits_of_tables(*tables_of_texts(texts))
        else:
            circuits = circuits_by(program, texts, references)
        spent = (_seconds() - started) / len(texts)
        evaluator = graphbench.Evaluator(DATASET, expected_graphs=len(texts))
        evaluator.update(fields, circuits)
        scores = named_scores("test", evaluator)
        if program == "shannon":
            notes = "Structurally hashed circuit of the Shannon decomposition; the stored graph."
        elif program == "reference":
            notes = "The reference circuits, which the score is relative to."
        else:
            start = "the Shannon circuit" if program.startswith("shannon") else "the truth table"
            notes = f"ABC of {find_abc().tool}, from {start}; {1e3 * spent:.2g} ms of CPU time per circuit."
        record = RunRecord.from_scores({"test": split}, scores, model=program, parameters=0, notes=notes)
        save_record(record, given.records)
        print(program, {name: round(score.primary, 2) for name, score in scores.items()}, notes, flush=True)


def _seconds() -> float:
    """Return the CPU time of this process and of its finished children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    main()
