"""Reanalysis from zarr stores: what is read is what lies there, and what is wrong is said in one line."""

from __future__ import annotations

import importlib
import shutil
import sys

import numpy as np
import pytest

from graphbench.catalog.names import catalog
from graphbench.core.errors import MissingDependency, StoreError
from graphbench.data.components.export import export_samples, find_exporter
from graphbench.domains.weather import ATMOSPHERE, CHANNELS, LEVELS, SURFACE
from graphbench.domains.weather.chunk_files import names_of_codecs
from graphbench.domains.weather.zarr_files import open_store, write_store
from graphbench.loader import Loader

zarr = pytest.importorskip("zarr")

LATITUDES = 16


@pytest.fixture
def card(small, monkeypatch):
    found = small()
    monkeypatch.setitem(catalog().cards, found.id, found)
    return found


@pytest.fixture(scope="module")
def written(recorded, tmp_path_factory):
    """Return a folder with a store per split, written by hand in the order of WeatherBench 2's dimensions."""
    states, hours = recorded
    place = tmp_path_factory.mktemp("written") / "stores"
    for split, first, last in (("train", 0, 9), ("val", 9, 13), ("test", 13, 17)):
        _write(place / f"{split}.zarr", states[first:last], hours[first:last])
    return place


@pytest.fixture
def folder(written, tmp_path):
    """Return a copy of these stores."""
    return shutil.copytree(written, tmp_path / "stores")


def _write(path, states, hours, fmt=2, **options):
    group = zarr.open_group(str(path), mode="w", zarr_format=fmt)
    cube = states.reshape(len(states), 32, LATITUDES, 83)

    def add(name, values, dimensions, **attributes):
        names = {"dimension_names": dimensions} if fmt == 3 else {}
        chunks = (4, *values.shape[1:]) if name not in ("level", "latitude", "longitude") else values.shape
        array = group.create_array(name, shape=values.shape, dtype=values.dtype, chunks=chunks, **names, **options)
        array[...] = values
        array.attrs.update({**({"_ARRAY_DIMENSIONS": list(dimensions)} if fmt == 2 else {}), **attributes})

    days = (np.asarray(hours) * 3600).astype(np.int64)
    add("time", days, ("time",), units="seconds since 1959-01-01", calendar="proleptic_gregorian")
    add("level", np.array(LEVELS[::-1]), ("level",), units="hPa")
    add("latitude", -90 + 11.25 * (np.arange(16) + 0.5), ("latitude",))
    add("longitude", 11.25 * np.arange(32), ("longitude",))
    for name, units in SURFACE.items():
        add(name, cube[..., CHANNELS.index(name)], ("time", "longitude", "latitude"), units=units)
    for name, units in ATMOSPHERE.items():
        stacked = np.stack([cube[..., CHANNELS.index(f"{name}_{level}")] for level in LEVELS[::-1]], axis=1)
        add(name, stacked, ("time", "level", "longitude", "latitude"), units=units)


def load(card, folder, root, **options):
    return Loader(card.id, source="official", folder=folder, root=root, workers=1, progress=False, **options).load()


@pytest.mark.parametrize("fmt", [2, 3])
def test_states_are_read_as_they_lie_there(recorded, tmp_path, fmt):
    states, hours = recorded
    _write(tmp_path / "one.zarr", states, hours, fmt)
    store = open_store(tmp_path / "one.zarr")
    np.testing.assert_array_equal(store.read(0, 17), states)
    np.testing.assert_array_equal(store.read(5, 7), states[5:7])
    np.testing.assert_array_equal(store.hours, hours)
    assert not store.runs.any()


def test_a_dataset_of_stores_is_that_of_the_states(card, folder, tmp_path):
    generated = Loader(card.id, root=tmp_path / "root", workers=1, progress=False).load()
    read = load(card, folder, tmp_path / "root")
    assert read.card.protocol == "official" and read.train.path != generated.train.path
    for split in ("train", "val", "test"):
        assert len(read[split]) == len(generated[split])
        for name in ("state", "clock", "time", "change"):
            np.testing.assert_array_equal(read[split][0][name], generated[split][0][name])


def test_exported_states_come_back(card, tmp_path):
    first = Loader(card.id, root=tmp_path / "root", workers=1, progress=False).load()
    samples = {name: first[name].samples for name in ("train", "val", "test")}
    written = export_samples(find_exporter(card, "weatherbench"), card, samples, tmp_path / "out")
    assert [path.name for path in written] == ["train.zarr", "val.zarr", "test.zarr"]
    again = load(card, tmp_path / "out", tmp_path / "root")
    for name, own in samples.items():
        for feature, values in again[name].samples.values.items():
            np.testing.assert_array_equal(values, own.values[feature])


def test_exported_stores_are_read_by_xarray(recorded, tmp_path):
    xarray = pytest.importorskip("xarray")
    states, hours = recorded
    runs = np.repeat([0, 1], [10, 7])
    write_store(tmp_path / "all.zarr", lambda a, b: states[a:b], hours, runs, LATITUDES)
    with xarray.open_zarr(tmp_path / "all.zarr") as data:
        assert data.temperature.dims == ("time", "level", "longitude", "latitude")
        assert str(data.time.values[1])[:13] == "2001-01-01T06"
        found = data.geopotential.sel(level=500).values.reshape(17, -1)
        np.testing.assert_array_equal(found, states[..., CHANNELS.index("geopotential_500")])
    assert open_store(tmp_path / "all.zarr").runs.tolist() == runs.tolist()


def test_one_store_is_divided_by_years(small, recorded, tmp_path, monkeypatch):
    years = {
        "train": {"begin": "2001-01-01", "end": "2001-01-02"},
        "val": {"begin": "2001-01-03", "end": "2001-01-03"},
        "test": {"begin": "2001-01-04", "end": "2001-01-05"},
    }
    card = small(
        generator="weather.reanalysis",
        splits={name: {"count": 4, "parameters": own} for name, own in years.items()},
    )
    monkeypatch.setitem(catalog().cards, card.id, card)
    states, hours = recorded
    _write(tmp_path / "stores" / "1959.zarr", states, hours)
    data = load(card, tmp_path / "stores", tmp_path / "root")
    assert [len(data[name].samples) for name in years] == [8, 4, 5]
    assert data.test.samples.values["time"].tolist() == hours[12:].tolist()
    with pytest.raises(StoreError, match="--source official --folder DIR"):
        Loader(card.id, root=tmp_path / "root", workers=1).load()


def test_a_gap_in_time_ends_a_run(recorded, tmp_path):
    states, hours = recorded
    kept = np.delete(np.arange(17), [6, 7])
    _write(tmp_path / "gap.zarr", states[kept], hours[kept])
    assert open_store(tmp_path / "gap.zarr").runs.tolist() == [0] * 6 + [1] * 9


def _rename(path):
    shutil.move(path / "temperature", path / "temprature")


def _truncate(path):
    file = next(f for f in sorted((path / "geopotential").iterdir()) if f.name.startswith("1."))
    file.write_bytes(file.read_bytes()[:200])


def _lose(path):
    next(f for f in sorted((path / "geopotential").iterdir()) if f.name.startswith("1.")).unlink()


def _attribute(name, key, value):
    def change(path):
        zarr.open_group(str(path), mode="r+")[name].attrs[key] = value

    return change


def _value(name, place, value):
    def change(path):
        zarr.open_group(str(path), mode="r+")[name][place] = value

    return change


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_rename, r"'temperature'.*'temprature'"),
        (_truncate, r"geopotential of .*2001-01-0\dT\d\d on.*chunk is damaged"),
        (_lose, r"geopotential.*0\.0 everywhere at 2001-01-02T00 at 50 hPa.*chunk"),
        (_value("2m_temperature", (5, 3, 2), np.nan), "2m_temperature of .* is nan at 2001-01-02T06"),
        (_attribute("temperature", "units", "degC"), "temperature.*'degC', not in 'K'"),
        (_attribute("time", "calendar", "noleap"), "calendar 'noleap'"),
        (_attribute("time", "units", "fortnights since 1959-01-01"), "in 'fortnights since 1959-01-01'"),
        (_attribute("time", "units", "days since 1959-01-01"), "hours apart"),
        (_attribute("temperature", "_ARRAY_DIMENSIONS", ["time", "level", "lon", "lat"]), "has the dimensions"),
        (_value("latitude", slice(None), np.linspace(90, -90, 16)), "the latitudes of .* ascending"),
        (_value("level", 3, 777), r"lacks the levels \[700\]"),
    ],
)
def test_what_is_wrong_with_a_store_is_said(card, folder, tmp_path, spoil, message):
    spoil(folder / "train.zarr")
    with pytest.raises(StoreError, match=message) as caught:
        load(card, folder, tmp_path / "root")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("fmt", [2, 3])
@pytest.mark.parametrize("left", [0, 10, 500, 0.5, -1])
def test_chunks_of_blosc_that_are_cut_off_are_refused(recorded, tmp_path, fmt, left):
    """Blosc itself would read beyond the end of such a file, and end the process."""
    states, hours = recorded
    path = tmp_path / "one.zarr"
    compressor = {"compressors": zarr.codecs.BloscCodec()} if fmt == 3 else {}
    _write(path, states, hours, fmt, **compressor)
    store = open_store(path)
    assert any("blosc" in name.lower() for name in names_of_codecs(store.arrays["temperature"]))
    np.testing.assert_array_equal(store.read(0, 5), states[:5])
    file = path / "temperature" / ("c/1/0/0/0" if fmt == 3 else "1.0.0.0")
    whole = file.read_bytes()
    file.write_bytes(whole[: int(left * len(whole)) if isinstance(left, float) else left])
    np.testing.assert_array_equal(store.read(0, 4), states[:4])
    with pytest.raises(StoreError, match=r"temperature.*2001-01-0\dT\d\d on.*cut off"):
        store.read(3, 5)


def test_wrong_folders_are_refused(card, folder, tmp_path):
    (tmp_path / "empty").mkdir()
    for place, message in (
        (tmp_path / "empty", "holds no zarr store"),
        (tmp_path / "none", "is not a folder"),
        (folder / "val.zarr", "does not divide one store into splits"),
    ):
        with pytest.raises(Exception, match=message):
            load(card, place, tmp_path / "root")
    with pytest.raises(StoreError, match=r"32 x 16.*64 x 32"):
        Loader("weather/sim_t21", source="official", folder=folder, root=tmp_path / "root").load()


def test_stores_are_read_at_addresses(card, folder, tmp_path):
    """An address is read through fsspec, whatever its protocol; the dataset is that of the folder."""
    fsspec = pytest.importorskip("fsspec")
    own = load(card, folder, tmp_path / "a")
    memory = fsspec.filesystem("memory")
    memory.put(str(folder), "/weather/stores", recursive=True)
    try:
        for address in (folder.as_uri(), "memory://weather/stores"):
            there = load(card, address, tmp_path / address[:4])
            for split in ("train", "val", "test"):
                assert there[split].content_hash == own[split].content_hash
    finally:
        memory.rm("/weather", recursive=True)


def test_addresses_that_cannot_be_read_are_refused(card, tmp_path, monkeypatch):
    pytest.importorskip("fsspec")
    with pytest.raises(StoreError, match="is no zarr store, and has no"):
        load(card, "memory://nothing/here", tmp_path)
    with pytest.raises(StoreError, match="xy://bucket/store is no folder"):
        load(card, "xy://bucket/store", tmp_path)
    known = importlib.import_module("fsspec.registry").known_implementations
    monkeypatch.setitem(known, "zz", {"class": "no_such_package.FS", "err": "Install zz"})
    with pytest.raises(MissingDependency, match=r"zz://bucket/store.*Install zz"):
        load(card, "zz://bucket/store", tmp_path)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingDependency, match="gs://bucket/store needs fsspec"):
        load(card, "gs://bucket/store", tmp_path)


def test_files_that_change_are_noticed(card, folder, recorded, tmp_path):
    loader = Loader(card.id, source="official", folder=folder, root=tmp_path / "root", workers=1)
    states, hours = recorded
    _write(folder / "val.zarr", states[8:13], hours[8:13])
    with pytest.raises(StoreError, match="changed since they were read"):
        loader.load("val")


def test_an_interrupted_build_goes_on_where_it_stopped(card, folder, tmp_path, monkeypatch):
    from graphbench.data.build.generation import ensure_split
    from graphbench.data.components.source_choice import sourced_card
    from graphbench.domains.weather import zarr_files

    own, read = sourced_card(card, "official", folder), []
    original = zarr_files.WeatherStore.read

    def counting(self, first, last):
        read.append((first, last))
        if len(read) == 2:
            raise KeyboardInterrupt
        return original(self, first, last)

    monkeypatch.setattr(zarr_files.WeatherStore, "read", counting)
    with pytest.raises(KeyboardInterrupt):
        ensure_split(own, "train", tmp_path / "root", workers=1, shard_size=4, progress=False)
    ensure_split(own, "train", tmp_path / "root", workers=1, shard_size=4, progress=False)
    assert read == [(0, 4), (4, 8), (4, 8), (8, 9)]
