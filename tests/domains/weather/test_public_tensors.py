"""The file of the public package: its channels in another order, read without unpickling and without copying it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graphbench.catalog.names import catalog
from graphbench.core.errors import StoreError
from graphbench.data.sources.torch_files import read_torch_file
from graphbench.domains.weather import CHANNELS, LEVELS, public_tensors
from graphbench.domains.weather.official_source import content_of, stores_of
from graphbench.loader import Loader

COUNT = 17


@pytest.fixture
def states(recorded):
    """Return the recorded states at 64 x 32 points, float32 [17, 2048, 83]."""
    cube = recorded[0].reshape(COUNT, 32, 16, 83)
    return np.ascontiguousarray(cube.repeat(2, axis=1).repeat(2, axis=2).reshape(COUNT, 2048, 83))


@pytest.fixture
def file(states, tmp_path):
    """Return a file as the public package reads it, its channels put in order by hand."""
    column = {name: states[..., c] for c, name in enumerate(CHANNELS)}
    ordered = [column[n] for n in ("2m_temperature", "mean_sea_level_pressure", "10m_v_component_of_wind",
                                   "10m_u_component_of_wind", "total_precipitation_6hr")]  # fmt: skip
    for name in ("temperature", "geopotential", "u_component_of_wind", "v_component_of_wind", "vertical_velocity",
                 "specific_humidity"):  # fmt: skip
        ordered += [column[f"{name}_{level}"] for level in LEVELS]
    path = tmp_path / "files" / "weather_64.pt"
    path.parent.mkdir()
    torch.save({"grid_features": torch.from_numpy(np.stack(ordered, axis=-1))}, path)
    return path


def test_states_are_those_of_the_file(file, states):
    found = public_tensors.open_tensors(file, COUNT)
    np.testing.assert_array_equal(found.read(0, COUNT), states)
    np.testing.assert_array_equal(found.read(5, 7), states[5:7])
    whole, first = file.read_bytes(), found.states[0, 0, 0].tobytes()
    with file.open("r+b") as opened:  # the states are those of the file even later: they were not copied
        opened.seek(whole.index(first + found.states[0, 0, 1].tobytes()))
        opened.write(np.float32(250).tobytes())
    assert found.states[0, 0, 0] == 250
    assert found.hours[:3].tolist() == [0, 6, 12]


def test_mapped_tensors_are_those_that_are_read(file):
    mapped, read = (read_torch_file(file, mapped=flag)["grid_features"] for flag in (True, False))
    np.testing.assert_array_equal(mapped, read)


def test_the_file_is_divided_by_years(file, states, monkeypatch, tmp_path):
    """The states of the card's years are those of the file, which begins with 1959."""
    monkeypatch.setattr(public_tensors, "TIMES", COUNT)
    monkeypatch.setattr(public_tensors.open_tensors, "__defaults__", (COUNT,))
    days = {"train": ("1959-01-01", "1959-01-02"), "val": ("1959-01-03", "1959-01-03"),
            "test": ("1959-01-04", "1959-01-05")}  # fmt: skip
    card = catalog().cards["weather/era5_64x32"]
    splits = {
        name: spec.model_copy(update={"parameters": dict(zip(("begin", "end"), days[name], strict=True))})
        for name, spec in card.splits.items()
    }
    monkeypatch.setitem(catalog().cards, card.id, card.model_copy(update={"splits": splits}))
    data = Loader(card.id, source="official", folder=file.parent, root=tmp_path, workers=1, progress=False).load()
    assert [len(data[name].samples) for name in days] == [8, 4, 5]
    scale = np.array(card.packed["state"].scale)
    assert (np.abs(data.val[0].state[:2048].numpy() - states[8]) / scale).max() < 0.01
    assert data.test.samples.values["time"].tolist() == [72, 78, 84, 90, 96]


def test_what_is_wrong_is_said(file, states, tmp_path):
    with pytest.raises(StoreError, match=r"\[17, 2048, 83\].*\[93544"):
        public_tensors.open_tensors(file)
    torch.save({"grid_features": torch.from_numpy(states)}, file)  # channels in the order of this package
    with pytest.raises(StoreError, match=r"release 0\.2\.0"):
        public_tensors.open_tensors(file, COUNT).read(0, 2)
    torch.save([1, 2], file)
    with pytest.raises(StoreError, match="has no grid_features"):
        public_tensors.open_tensors(file)
    torch.save({"grid_features": np.zeros(3)}, file)
    with pytest.raises(StoreError, match="it holds an object of numpy"):
        public_tensors.open_tensors(file)


def test_cut_off_files_are_refused(file):
    whole = file.read_bytes()
    for left in (0, 100, len(whole) // 2, len(whole) - 30):
        file.write_bytes(whole[:left])
        with pytest.raises(StoreError, match="is damaged"):
            public_tensors.open_tensors(file, COUNT)


def test_the_file_is_found_by_its_name(file):
    assert stores_of(file) == stores_of(file.parent) == file
    before = content_of(file)
    file.write_bytes(file.read_bytes() + b" ")
    assert content_of(file) != before
