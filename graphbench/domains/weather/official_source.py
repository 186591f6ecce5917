"""ERA5 in WeatherBench 2's grid, and exported simulations, as a source of samples.

A folder, or an address of an object store, is or holds one zarr store, which the card splits by date; or it holds the
stores ``train.zarr``, ``val.zarr`` and ``test.zarr``, or the file of the public package. States are read a year at
a time, and an interrupted build continues with the next year.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import CORE_SPLITS, Card
from graphbench.catalog.sections import SplitSpec
from graphbench.core.errors import CardError, StoreError
from graphbench.core.validation import StrictModel
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.file_sources import FileSource, refuse_other_draws
from graphbench.data.components.generators import Generator
from graphbench.domains.weather.channels import CHANNELS
from graphbench.domains.weather.checks import check_states, describe_states
from graphbench.domains.weather.generators import YearParameters, refuse_generation, states_as_samples
from graphbench.domains.weather.places import Place, below, content, files_of, place_of
from graphbench.domains.weather.public_tensors import NAMES as TENSORS
from graphbench.domains.weather.public_tensors import PublicTensors, open_tensors
from graphbench.domains.weather.times import hours_since_epoch
from graphbench.domains.weather.zarr_files import WeatherStore, is_store, open_store

NAME = "weather.official"
_YEAR = 4 * 365  # states read as one unit of work
_READ_BATCH = 100  # number of states read from a store at once


class StoreParameters(StrictModel):
    """The part of a store that a split consists of.

    Attributes:
        folder: The store, a path or an address.
        content: SHA-256 of the store's metadata, and of the names and sizes of its files.
        first: Index in the store of the first state of the split.
        latitudes: Number of latitudes of the grid.
        longitudes: Number of longitudes of the grid.
    """

    folder: str
    content: str
    first: int
    latitudes: int
    longitudes: int


class _StoreGenerator(Generator):
    """Returns states of a store."""

    def draw(self, card: Card, split: str, indices: NDArray[np.int64], attempts: NDArray[np.int64]) -> Samples:
        """Return states of a split.

        Raises:
            StoreError: If the store has changed since the card was derived, or cannot be read.
        """
        parameters: StoreParameters = self.parse(card, split)
        path = place_of(parameters.folder)
        if content_of(path) != parameters.content:
            raise StoreError(f"the files in {path} changed since they were read; load them again")
        store, places = _opened(path, parameters.content), indices + parameters.first
        points = parameters.latitudes * parameters.longitudes
        states = np.empty((len(places), points, len(CHANNELS)), np.float32)
        ends = np.flatnonzero(np.diff(places) != 1) + 1
        for part in np.split(np.arange(len(places)), ends):
            for first in range(0, len(part), _READ_BATCH):
                batch = part[first : first + _READ_BATCH]
                states[batch] = store.read(int(places[batch[0]]), int(places[batch[-1]]) + 1)
        return states_as_samples(states, store.hours[places], store.runs[places])


@lru_cache(maxsize=4)
def _opened(path: Place, content_hash: str) -> WeatherStore | PublicTensors:
    return open_tensors(path) if isinstance(path, Path) and path.name in TENSORS else open_store(path)


def content_of(store: Place) -> str:
    """Return a hash of a store's metadata and coordinates, and of the names and sizes of all its files.

    The hash does not cover the content of chunks, because reading it takes hours. A changed value in a chunk of the
    same size is not noticed.
    """
    digest = hashlib.sha256()
    if isinstance(store, Path) and store.is_file():
        digest.update(f"{store.name} {store.stat().st_size} {store.stat().st_mtime_ns}".encode())
        return digest.hexdigest()
    for name, size in files_of(store).items():
        digest.update(f"{name} {size}\n".encode())
        folder, _, last = name.rpartition("/")
        if last.startswith(".z") or last == "zarr.json" or folder.rpartition("/")[2] == "time":
            digest.update(content(store, name))
    return digest.hexdigest()


def stores_of(root: Place) -> dict[str, Place] | Place:
    """Return the store of every split, or the single store that is split by date.

    An address is either a store, or holds the stores of the three splits.

    Raises:
        StoreError: If there is neither.
    """
    if isinstance(root, Path):
        files = [root, *(root / name for name in TENSORS)]
        tensors = next((path for path in files if path.name in TENSORS and path.is_file()), None)
        if tensors is not None:
            return tensors
    if isinstance(root, Path) and not root.is_dir():
        raise StoreError(f"{root} is not a folder; give the one that holds the zarr store")
    if is_store(root):
        return root
    split_stores = {split: below(root, f"{split}.zarr") for split in CORE_SPLITS}
    if all(is_store(path) for path in split_stores.values()):
        return split_stores
    if not isinstance(root, Path):
        raise StoreError(
            f"{root} is no zarr store, and has no train.zarr, val.zarr and test.zarr; give the store's address"
        )
    stores = sorted(root.glob("*.zarr"))
    if len(stores) != 1:
        contents = f"{len(stores)} zarr stores" if stores else "no zarr store"
        raise StoreError(
            f"{root} holds {contents}; give a zarr store, a folder with one, or one with train.zarr, val.zarr, "
            "test.zarr"
        )
    return stores[0]


def _card_of_stores(card: Card, folder: Path) -> Card:
    stores = stores_of(place_of(folder))
    paths = stores if isinstance(stores, dict) else dict.fromkeys(CORE_SPLITS, stores)
    contents = {path: content_of(path) for path in set(paths.values())}
    specs = {}
    for split, path in paths.items():
        store = _opened(path, contents[path])
        _require_grid(card, store)
        first, last = (0, len(store.hours)) if isinstance(stores, dict) else _years(card, split, store)
        parameters = {"folder": str(path), "content": contents[path], "first": first, **store.grid}
        specs[split] = SplitSpec(count=last - first, shift=card.split(split).shift, parameters=parameters)
    return _describe(card).with_splits(specs).model_copy(update={"generator": NAME})


def _require_grid(card: Card, store: WeatherStore | PublicTensors) -> None:
    """Refuse a store on another grid than the card's.

    Raises:
        StoreError: If the grids differ; the message gives both sizes.
    """
    wanted = {} if card.series is None else {key: card.series.parameters.get(key, n) for key, n in store.grid.items()}
    if store.grid != wanted:
        size, expected_size = (
            " x ".join(str(g[key]) for key in ("longitudes", "latitudes")) for g in (store.grid, wanted)
        )
        raise StoreError(f"{store.path} has a grid of {size} points; {card.id} needs {expected_size}")


def _years(card: Card, split: str, store: WeatherStore | PublicTensors) -> tuple[int, int]:
    """Return the first and one past the last state of a split in a store that is split by date.

    Raises:
        CardError: If the card does not say which years belong to the split.
        StoreError: If the store has no states of these years, or its times do not ascend.
    """
    parameters = card.split(split).parameters
    if set(parameters) != {"begin", "end"}:
        raise CardError(f"{card.id} does not divide one store into splits; give train.zarr, val.zarr and test.zarr")
    years = YearParameters.model_validate(parameters)
    if (np.diff(store.hours) <= 0).any():
        raise StoreError(f"the times of {store.path} do not ascend; give train.zarr, val.zarr and test.zarr")
    begin, end = hours_since_epoch(np.array([years.begin, years.end], "datetime64[D]")).tolist()
    first, last = np.searchsorted(store.hours, [begin, end + 24]).tolist()
    if last - first < 1:
        raise StoreError(f"{store.path} has no times from {years.begin} to {years.end}, which {card.id} {split} needs")
    return first, last


def _describe(card: Card) -> Card:
    return card.model_copy(update={"protocol": NAME.partition(".")[2], "measured": None, "overlapping": True})


_GENERATOR = _StoreGenerator(
    name=NAME,
    version=1,
    parameters=StoreParameters,
    generate=refuse_generation,
    check=lambda parameters, samples: check_states(samples, parameters.latitudes),
    statistics=lambda parameters, samples: describe_states(samples, parameters.latitudes),
    shard_size=lambda parameters: _YEAR,
    stored_bytes=lambda parameters: 2 * len(CHANNELS) * parameters.latitudes * parameters.longitudes,
    unique=False,
    unique_inputs=True,
    redraw=refuse_other_draws,
)

SOURCES: Mapping[str, FileSource] = {"official": FileSource(NAME, _card_of_stores, _GENERATOR, _describe)}
