"""The check of samples: circuits are evaluated in plain Python, which shares no code with the compiled functions."""

from __future__ import annotations

from typing import Any

from graphbench.catalog.features import Location
from graphbench.data.arrays.samples import Samples


def check_samples(parameters: Any, samples: Samples) -> list[str]:
    """Return the problems of circuits: a wrong form, or an output that differs from the truth table.

    The values of a node at all assignments are the bits of one whole number.
    """
    return [f"graph {i}: {problem}" for i in range(len(samples)) if (problem := _problem(samples, i))]


def _problem(samples: Samples, index: int) -> str:
    gates = samples.values["gate"][samples.rows(Location.NODE, index, index + 1)].tolist()
    rows = samples.rows(Location.EDGE, index, index + 1)
    arcs = zip(samples.edges[rows].tolist(), samples.values["inverted"][rows].tolist(), strict=True)
    drivers: list[list[tuple[int, bool]]] = [[] for _ in gates]
    for (source, target), inverted in arcs:
        drivers[target].append((source, bool(inverted)))
    numbers = samples.values["table"][index : index + 1].strings()[0].split()
    n = gates.count(0)
    if gates != sorted(gates) or gates.count(2) != len(numbers) or 4 * len(numbers[0]) != 1 << n:
        return f"{n} inputs and {gates.count(2)} outputs do not fit the table"
    everywhere = (1 << (1 << n)) - 1
    values: list[int] = []
    for v, (gate, literals) in enumerate(zip(gates, drivers, strict=True)):
        if len(literals) != (0, 2, 1, 0)[gate]:
            return f"node {v} is driven by {len(literals)} nodes"
        if gate == 0:
            values.append(sum(1 << x for x in range(1 << n) if x >> v & 1))
        elif gate == 3:
            values.append(0)
        else:
            values.append(0)
            if any(source >= v and gates[source] != 3 for source, _ in literals):
                return f"node {v} comes before a node that drives it"
            conjunction = everywhere
            for source, inverted in literals:  # the constant comes last and has the value 0
                conjunction &= (0 if gates[source] == 3 else values[source]) ^ (everywhere if inverted else 0)
            values[v] = conjunction
    outputs = [value for value, gate in zip(values, gates, strict=True) if gate == 2]
    wrong = [j for j, (value, number) in enumerate(zip(outputs, numbers, strict=True)) if value != int(number, 16)]
    return f"output {wrong[0]} differs from the table" if wrong else ""


def python_values(n: int, fanins: list[list[int]], outputs: list[int]) -> tuple[list[int], int]:
    """Return the truth tables of the outputs of a circuit, as whole numbers, and its depth.

    Args:
        n: Number of inputs.
        fanins: The fan-ins of every AND, as literals (:mod:`~graphbench.domains.chip_design.aig`).
        outputs: The literals of the outputs.
    """
    everywhere = (1 << (1 << n)) - 1
    values, levels = [0], [0] * (1 + n)
    for i in range(n):  # 2^i zeros and 2^i ones in turn
        block = ((1 << (1 << i)) - 1) << (1 << i)
        values.append(block * (everywhere // ((1 << (2 << i)) - 1)))
    for a, b in fanins:
        left, right = values[a >> 1], values[b >> 1]
        values.append((left ^ everywhere if a & 1 else left) & (right ^ everywhere if b & 1 else right))
        levels.append(1 + max(levels[a >> 1], levels[b >> 1]))
    tables = [values[o >> 1] ^ (everywhere if o & 1 else 0) for o in outputs]
    return tables, max((levels[o >> 1] for o in outputs), default=0)
