"""The labeller of chip design: the reference circuit of a truth table, made by ABC for many tables together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from graphbench.core.errors import CircuitError, SolverError
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.generators import Labeller
from graphbench.domains.chip_design.aig import Aig
from graphbench.domains.chip_design.checks import python_values
from graphbench.domains.chip_design.graphs import TABLE, decoded, encoded
from graphbench.domains.chip_design.synthesis import BATCH, SCRIPTS, SETTING, find_abc, try_synthesise
from graphbench.domains.chip_design.truth_tables import from_text

REFERENCE, ANDS, DEPTH, FAILED = "reference", "reference_ands", "reference_depth", "reference_failed"


def _checked_script(name: str) -> str:
    if name not in SCRIPTS:
        raise ValueError(f"there is no script {name!r}; there are {', '.join(SCRIPTS)}")
    return name


class ReferenceEffort(StrictModel):
    """How reference circuits are made.

    Attributes:
        script: Name of a script of ABC (``synthesis.SCRIPTS``).
        tool: Name and version of ABC, as ``synthesis.find_abc().tool`` gives it: circuits depend on it.
        seconds: Guard of processor time per circuit, in seconds.
        memory_mb: Guard of the memory of ABC, in MiB.
    """

    script: Annotated[str, AfterValidator(_checked_script)] = "reference"
    tool: str
    seconds: Annotated[float, Field(gt=0, le=100_000)] = 20.0
    memory_mb: Annotated[int, Field(ge=256, le=1 << 20)] = 4096


def _label_many(
    effort: ReferenceEffort, numbers: Sequence[int], graphs: Samples
) -> list[Mapping[str, Any] | Exception]:
    """Return the labels of graphs; they depend on the truth tables alone, not on the numbers of the graphs.

    A table at which ABC meets a guard or crashes has a RuntimeError, which concerns its graph alone.

    Raises:
        SolverError: If another version of ABC is installed.
        MissingDependency: If ABC is not installed.
    """
    installed = find_abc().tool
    if installed != effort.tool:
        raise SolverError(
            f"the reference circuits are made by {effort.tool}, but the installed version is {installed}; install "
            f"{effort.tool.replace(' ', '==')} and unset {SETTING}, or write tool: {installed} on the card"
        )
    tables = [from_text(text) for text in graphs.values[TABLE].strings()]
    circuits = try_synthesise(tables, effort.script, seconds=effort.seconds, memory_mb=effort.memory_mb)
    return [RuntimeError(circuit) if isinstance(circuit, str) else _label_of(circuit) for circuit in circuits]


def _label_of(circuit: Aig) -> Mapping[str, Any]:
    return {REFERENCE: encoded(circuit), ANDS: circuit.num_ands, DEPTH: circuit.depth}


def _label(effort: ReferenceEffort, number: int, graph: Samples) -> Mapping[str, Any]:
    label = _label_many(effort, [number], graph)[0]
    if isinstance(label, Exception):
        raise label
    return label


def _check(graph: Samples, values: Mapping[str, Any]) -> list[str]:
    """Return the problems of a label; its circuit is evaluated in plain Python."""
    try:
        circuit = decoded(str(values[REFERENCE]))
    except CircuitError as error:
        return [str(error)]
    outputs, depth = python_values(circuit.num_inputs, circuit.fanins.tolist(), circuit.outputs.tolist())
    numbers = graph.values[TABLE].strings()[0].split()
    if 4 * len(numbers[0]) != 1 << circuit.num_inputs or outputs != [int(number, 16) for number in numbers]:
        return ["the reference circuit does not compute the truth table"]
    if (circuit.num_ands, depth) != (int(values[ANDS]), int(values[DEPTH])):
        return [
            f"the reference circuit has {circuit.num_ands} ANDs and {depth} levels, but the label says "
            f"{int(values[ANDS])} and {int(values[DEPTH])}"
        ]
    return []


def _statistics(samples: Samples) -> dict[str, NDArray[np.float64]]:
    labelled = samples.values[FAILED] == 0
    return {name: np.where(labelled, samples.values[name], np.nan).astype(np.float64) for name in (ANDS, DEPTH)}


def _baselines(samples: Samples) -> Mapping[str, NDArray[np.float64]]:
    return {}


def _shard_size(effort: ReferenceEffort) -> int:
    return BATCH


LABELLERS: Mapping[str, Labeller] = {
    "reference": Labeller(
        name="chip_design.reference",
        version=1,
        effort=ReferenceEffort,
        label=_label,
        check=_check,
        failed=FAILED,
        statistics=_statistics,
        baselines=_baselines,
        shard_size=_shard_size,
        label_many=_label_many,
    )
}
