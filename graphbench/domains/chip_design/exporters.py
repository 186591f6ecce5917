"""Reference circuits written as AIGER files, with their truth tables."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from graphbench.catalog.cards import Card
from graphbench.core.errors import ArgumentError
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.exporters import Exporter
from graphbench.domains.chip_design.graphs import TABLE, decoded
from graphbench.domains.chip_design.labellers import REFERENCE

_COLUMNS = ("file", "table", "ands", "depth")


def _write(card: Card, splits: Mapping[str, Samples], folder: Path) -> list[Path]:
    """Write every split to a sub-folder of its name, a binary file per circuit, and a table of all functions."""
    if any(name not in samples.values for samples in splits.values() for name in (TABLE, REFERENCE)):
        raise ArgumentError(f"{card.address} holds no truth tables with reference circuits; name a task that has them")
    for split, samples in splits.items():
        split_folder = folder / split
        split_folder.mkdir(parents=True)
        texts, references = (samples.values[name].strings() for name in (TABLE, REFERENCE))
        with (folder / f"{split}.csv").open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(_COLUMNS)
            for i, (text, reference) in enumerate(zip(texts, references, strict=True)):
                if not reference:  # the labeller failed
                    table.writerow(["", text, "", ""])
                    continue
                circuit, name = decoded(reference), f"{i}.aig"
                (split_folder / name).write_bytes(circuit.to_aiger())
                table.writerow([f"{split}/{name}", text, circuit.num_ands, circuit.depth])
    return [folder / split for split in splits] + [folder / f"{split}.csv" for split in splits]


EXPORTERS: Mapping[str, Exporter] = {
    "aiger": Exporter("chip_design.aiger", "a binary file per reference circuit, and tables of functions", _write)
}
