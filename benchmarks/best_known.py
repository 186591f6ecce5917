"""Search for small circuits of the first functions of the splits of ``chip_design/aig``, and keep the smallest.

``python -m benchmarks.best_known --minutes 30`` continues from ``datasets/chip_design/best_known.npz`` and writes it
after every round; a circuit is replaced by a smaller one alone. A round builds every function with its inputs in
another random order, every candidate of every choice played out, and improves the circuit by ABC's reference script,
and by ``&deepsyn`` where it comes close to the smallest one. The first round also takes the circuits of all reference
programs.
"""

from __future__ import annotations

import argparse
import time
from itertools import count
from pathlib import Path
from typing import Any

from graphbench.records.machine import processor_seconds

FUNCTIONS = 256
"""Functions of a split, as many as the scores of the programs are measured on."""
CLOSE = 1.04
"""Largest ratio to the smallest circuit from which ``&deepsyn`` begins."""
CHUNK = 128
ROUNDS = 4
"""Play-outs per candidate."""


def main() -> None:
    """Search for as long as the options say."""
    from graphbench.catalog.resources import datasets_dir
    from graphbench.domains.chip_design.best_known import FILE, BestKnown
    from graphbench.domains.chip_design.search import circuits_by_search
    from graphbench.domains.chip_design.synthesis import optimise

    parser = argparse.ArgumentParser(prog="python -m benchmarks.best_known", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="processor time, after which no round begins")
    parser.add_argument("--root", type=Path, default=None, help="folder of generated data")
    options = parser.parse_args()
    path = datasets_dir() / FILE
    best = BestKnown.read(path) if path.is_file() else BestKnown({})
    samples = functions(options.root)
    tables = [table for table, _ in samples]
    if missing := [sample for sample in samples if sample[0] not in best.circuits]:
        best = with_programs(best, missing)
        best.write(path)
    print(f"{len(tables):,} functions with {total(best, tables):,} ANDs", flush=True)
    started = processor_seconds()
    for number in count(int(time.time())):
        if processor_seconds() - started > 60 * options.minutes:
            break
        for first in range(0, len(tables), CHUNK):
            part = tables[first : first + CHUNK]
            circuits = optimise(circuits_by_search(part, variants=[number], rounds=ROUNDS), "reference")
            best = best.improved(part, circuits)
            known = best.num_ands(part)
            close = [i for i, circuit in enumerate(circuits) if circuit.num_ands <= CLOSE * known[i]]
            if close:
                best = best.improved([part[i] for i in close], optimise([circuits[i] for i in close], "deepsyn"))
        best.write(path)
        print(f"{total(best, tables):,} ANDs", flush=True)


def functions(root: Path | None) -> list[tuple[str, str]]:
    """Return the truth tables and the reference circuits, as text, of the first functions of the splits."""
    from graphbench import Loader, card

    names = [name for name in card("chip_design/aig:generate").all_splits if name != "train"]
    loaded: Any = Loader("chip_design/aig:generate", root=root, limit=FUNCTIONS).load(names)
    return [(sample.table, sample.reference) for name in names for sample in loaded[name]]


def with_programs(best: Any, samples: list[tuple[str, str]]) -> Any:
    """Return the circuits with those of all reference programs."""
    from graphbench.domains.chip_design.verifiers import PROGRAMS, circuits_by

    tables, references = [table for table, _ in samples], [reference for _, reference in samples]
    for program in PROGRAMS:
        best = best.improved(tables, circuits_by(program, tables, references))
        print(f"{program}: {total(best, tables):,} ANDs of {len(tables):,} functions", flush=True)
    return best


def total(best: Any, tables: list[str]) -> int:
    """Return the number of ANDs of all circuits."""
    return int(best.num_ands(tables).sum())


if __name__ == "__main__":
    main()
