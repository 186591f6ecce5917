"""Datasets of circuits written as netlists for ngspice."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from graphbench.catalog.cards import Card
from graphbench.core.errors import ArgumentError
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.exporters import Exporter
from graphbench.domains.circuits.graphs import circuit_of, operation_of
from graphbench.domains.circuits.spice import to_spice
from graphbench.domains.circuits.transients import Settings

_LABELS = ("ratio", "efficiency", "settling")


def _write(card: Card, splits: Mapping[str, Samples], folder: Path, settings: Settings) -> list[Path]:
    """Write every split to a sub-folder: one netlist per circuit, and a table of labels."""
    if "kind" not in {f.name for f in card.graph_features}:
        raise ArgumentError(f"{card.address} holds no circuits, so there is nothing to write")
    for split, samples in splits.items():
        split_folder = folder / split
        split_folder.mkdir(parents=True)
        digits = len(str(max(len(samples) - 1, 0)))
        labels_present = [name for name in _LABELS if name in samples.values]
        with (folder / f"{split}.csv").open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(["netlist", "duty", "load", *labels_present])
            for i in range(len(samples)):
                operation = operation_of(samples, i)
                name = f"{i:0{digits}}.cir"
                text = to_spice(circuit_of(samples, i).devices, settings=settings, **operation.model_dump())
                (split_folder / name).write_text(text, encoding="utf-8")
                labels = [f"{float(samples.values[label][i]):.9g}" for label in labels_present]
                table.writerow([f"{split}/{name}", operation.duty, operation.load, *labels])
    return [folder / split for split in splits] + [folder / f"{split}.csv" for split in splits]


def _exact(card: Card, splits: Mapping[str, Samples], folder: Path) -> list[Path]:
    return _write(card, splits, folder, "exact")


def _paper(card: Card, splits: Mapping[str, Samples], folder: Path) -> list[Path]:
    return _write(card, splits, folder, "paper")


EXPORTERS: Mapping[str, Exporter] = {
    "spice": Exporter("circuits.spice", "one ngspice netlist per circuit, and tables of the labels", _exact),
    "spice_paper": Exporter("circuits.spice_paper", "the same with the dead time of the paper's simulations", _paper),
}
