"""Circuits that the reference project simulated, as a source of samples, and a comparison of their labels with ours.

A folder holds one or more of the project's JSON files (:mod:`~.reference_files`). Circuits are assigned to splits by
the number of their topology, with the limits of the generated datasets, so a topology that is trained on there is
trained on here, too. Labels are computed as for generated circuits; the labels of the files are stored as references.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import CORE_SPLITS, Card
from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.core.errors import ArgumentError, StoreError
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.checks import Row
from graphbench.data.components.file_sources import FileParameters, FileSource, file_source
from graphbench.domains.circuits.converters import Operation, steady_table
from graphbench.domains.circuits.devices import Circuit, read_devices
from graphbench.domains.circuits.graphs import circuits_as_samples
from graphbench.domains.circuits.periodic import EFFICIENCY, RATIO
from graphbench.domains.circuits.reference_files import SimulatedCircuit, read_simulated_circuits
from graphbench.domains.circuits.topology import canonical_form, topology_number
from graphbench.domains.circuits.transients import transient

NAME = "circuits.official"
RATIO_OF_FILE = Feature(
    "reference_ratio", Stage.META, Location.GRAPH, Kind.SCALAR, meaning="conversion ratio that the file states; no unit"
)
EFFICIENCY_OF_FILE = Feature(
    "reference_efficiency", Stage.META, Location.GRAPH, Kind.SCALAR, meaning="efficiency that the file states; no unit"
)
VAL_FROM, TEST_FROM = 0.7, 0.8  # limits of topology numbers between the splits, as in the generated datasets
AGREEING = 0.01  # ratios that differ by less agree
_NOTHING = 1e-3  # ratio below which a file's label counts as 0

Floats = NDArray[np.float64]


def read_official(folder: Path) -> dict[str, Samples]:
    """Return the circuits of all JSON files of a folder by split.

    Raises:
        StoreError: If there is no file, one cannot be read, a circuit is malformed, or circuits differ in the number of
            their devices.
    """
    split: dict[str, list[tuple[SimulatedCircuit, Circuit]]] = {name: [] for name in CORE_SPLITS}
    for simulated in _simulated(folder):
        circuit = _canonical(simulated)
        number = topology_number(circuit.types, circuit.nets)
        split["test" if number >= TEST_FROM else "val" if number >= VAL_FROM else "train"].append((simulated, circuit))
    sizes = {len(circuit.types) for circuits in split.values() for _, circuit in circuits}
    if len(sizes) > 1:
        raise StoreError(
            f"{folder} has circuits of {', '.join(map(str, sorted(sizes)))} devices; put files of one size into it"
        )
    empty = [name for name, circuits in split.items() if not circuits]
    if empty:
        raise StoreError(f"{folder} has no circuit for {empty[0]}: it holds too few; add files of the same size")
    return {name: _as_samples(circuits) for name, circuits in split.items()}


def _simulated(folder: Path) -> list[SimulatedCircuit]:
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise StoreError(
            f"{folder} holds no JSON file; give the folder with the JSON files of the reference project, which hold "
            "netlists and labels"
        )
    return [circuit for path in paths for circuit in read_simulated_circuits(path)]


def _canonical(simulated: SimulatedCircuit) -> Circuit:
    try:
        circuit = read_devices(simulated.devices)
    except ArgumentError as error:
        raise StoreError(f"a circuit of the files is malformed: {error}") from error
    types, nets = canonical_form(circuit.types, circuit.nets, circuit.num_nets)
    return Circuit(types, nets, circuit.names)


def _operation(simulated: SimulatedCircuit) -> Operation:
    return Operation.read(
        {
            "duty": simulated.duty,
            "load": simulated.load,
            "frequency": simulated.frequency,
            "output_capacitance": simulated.output_capacitance,
        }
    )


def _as_samples(circuits: Sequence[tuple[SimulatedCircuit, Circuit]]) -> Samples:
    samples = circuits_as_samples(
        np.stack([circuit.types for _, circuit in circuits]),
        np.stack([circuit.nets for _, circuit in circuits]),
        np.array([circuit.num_nets for _, circuit in circuits], np.int64),
        [_operation(simulated) for simulated, _ in circuits],
    )
    extra_values = {
        RATIO_OF_FILE.name: np.array([simulated.ratio for simulated, _ in circuits]),
        EFFICIENCY_OF_FILE.name: np.array([simulated.efficiency for simulated, _ in circuits]),
    }
    return replace(samples, values={**samples.values, **extra_values})


def compare(circuits: Sequence[SimulatedCircuit]) -> dict[str, int]:
    """Return the numbers of circuits that agree with the steady state, and of others by explanation.

    The first that holds counts: ``agree`` (ratios differ by less than 0.01), ``zero`` (the file says 0, as for all
    simulations that failed or were called invalid), ``transient`` (the file has the end of a transient of 4 ms in which
    the switches overlap, see :func:`~.transients.transient`) and ``other``. ``efficiency`` counts the circuits of
    ``agree`` whose efficiencies differ by less than 0.01.
    """
    pairs = [(simulated, read_devices(simulated.devices), _operation(simulated)) for simulated in circuits]
    table = steady_table([circuit for _, circuit, _ in pairs], [operation for _, _, operation in pairs])
    counts = dict.fromkeys(("agree", "zero", "transient", "other", "efficiency"), 0)
    for (simulated, _, operation), row in zip(pairs, table, strict=True):
        if abs(row[RATIO] - simulated.ratio) < AGREEING:
            counts["agree"] += 1
            counts["efficiency"] += bool(abs(row[EFFICIENCY] - simulated.efficiency) < AGREEING)
        elif abs(simulated.ratio) < _NOTHING:
            counts["zero"] += 1
        else:
            values = operation.model_dump(exclude={"duty"})
            end = transient(simulated.devices, duty=simulated.duty, settings="overlap", **values)
            counts["transient" if abs(end.ratio - simulated.ratio) < AGREEING else "other"] += 1
    return counts


def _report(card: Card, splits: Sequence[str]) -> Iterator[Row]:
    """Yield the comparison of the files' labels with ours."""
    folder = Path(FileParameters.model_validate(card.split("train").parameters).folder)
    circuits = _simulated(folder)
    counts, count = compare(circuits), len(circuits)
    yield Row(
        "all files",
        "labels of the files",
        True,
        f"{counts['agree']} of {count} ratios agree within {AGREEING:g}; {counts['zero']} are 0 in the files alone, "
        f"{counts['transient']} are ratios of a transient of 4 ms with overlapping switches, "
        f"{counts['other']} are others",
        "noted" if counts["agree"] < count else "",
    )
    yield Row(
        "all files",
        "efficiencies of the files",
        True,
        f"{counts['efficiency']} of these {counts['agree']} circuits also agree in efficiency",
        "noted" if counts["efficiency"] < counts["agree"] else "",
    )


_FILES = file_source(NAME, read_official, also=(RATIO_OF_FILE, EFFICIENCY_OF_FILE))

SOURCES: Mapping[str, FileSource] = {"official": replace(_FILES, report=_report)}
