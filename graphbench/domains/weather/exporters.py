"""States written as zarr stores of WeatherBench 2's layout, which the official source reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.core.errors import ArgumentError
from graphbench.data.arrays.quantisation import unpack
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.exporters import Exporter
from graphbench.domains.weather.zarr_files import write_store


def _write(card: Card, splits: Mapping[str, Samples], folder: Path) -> list[Path]:
    """Write ``<split>.zarr`` for every split."""
    if card.series is None or "state" not in {f.name for f in card.graph_features}:
        raise ArgumentError(f"{card.address} holds no states of the atmosphere, so there is nothing to write")
    latitudes = int(card.series.parameters["latitudes"])
    folder.mkdir(parents=True, exist_ok=True)
    for split, samples in splits.items():
        rows = samples.values["state"].reshape(len(samples), -1, samples.values["state"].shape[-1])

        def states(first: int, last: int, rows: NDArray[np.float16] = rows) -> NDArray[np.float32]:
            part = rows[first:last]
            return unpack(part, card.packed["state"]) if "state" in card.packed else part.astype(np.float32)

        hours, runs = (np.rint(samples.values[name]).astype(np.int64) for name in ("time", "run"))
        write_store(folder / f"{split}.zarr", states, hours, runs, latitudes)
    return [folder / f"{split}.zarr" for split in splits]


EXPORTERS: Mapping[str, Exporter] = {
    "weatherbench": Exporter("weather.weatherbench", "one zarr store per split, in WeatherBench 2's layout", _write)
}
