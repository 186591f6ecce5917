"""Real ERA5: four times of two variables, in the sources of cfgrib 0.9.15.1, against units, signs and grids here."""

from __future__ import annotations

import subprocess
import sys
import tarfile

import numpy as np
import pytest

import graphbench
from graphbench.domains.weather import ATMOSPHERE, CHANNELS, grid_latitudes, grid_longitudes, latitude_weights, regrid
from graphbench.domains.weather.vertical import DRY_AIR

VERSION = "0.9.15.1"
FILE = f"cfgrib-{VERSION}/tests/sample-data/era5-levels-members.grib"
NAMES = {"t": "temperature", "z": "geopotential"}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """Return the fields of the sample: short name, level, member, time, units and values [longitudes, latitudes]."""
    eccodes = pytest.importorskip("eccodes")
    folder = tmp_path_factory.mktemp("cfgrib")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
    command += ["--no-binary", ":all:", "--dest", str(folder), f"cfgrib=={VERSION}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    archives = list(folder.glob("*.tar.gz"))
    if done.returncode or not archives:
        pytest.skip(f"cfgrib {VERSION} cannot be downloaded: {done.stderr.strip()[-200:]}")
    with tarfile.open(archives[0]) as archive:
        source = archive.extractfile(FILE)
        assert source is not None
        path = folder / "sample.grib"
        path.write_bytes(source.read())
    return list(_messages(eccodes, path))


def _messages(eccodes, path):
    with path.open("rb") as file:
        while (message := eccodes.codes_grib_new_from_file(file)) is not None:
            keys = ("shortName", "level", "number", "dataDate", "dataTime", "units", "Ni", "Nj", "jScansPositively")
            facts = {key: eccodes.codes_get(message, key) for key in keys}
            values = eccodes.codes_get_values(message).reshape(facts["Nj"], facts["Ni"])
            eccodes.codes_release(message)
            yield facts, (values if facts["jScansPositively"] else values[::-1]).T  # latitudes ascending


@pytest.fixture(scope="module")
def fields(messages):
    """Return name and level -> float64 [fields, 64, 32] on the grid of the datasets."""
    source = 3.0 * np.arange(120), -90 + 3.0 * np.arange(61)
    target = grid_longitudes(64), grid_latitudes(32)
    found = {}
    for facts, values in messages:
        assert values.shape == (120, 61)
        found.setdefault((NAMES[facts["shortName"]], facts["level"]), []).append(regrid(values, source, target))
    return {key: np.stack(own) for key, own in found.items()}


def test_the_sample_has_ten_members_at_four_times(messages):
    assert len(messages) == 2 * 2 * 10 * 4
    assert {(facts["dataDate"], facts["dataTime"]) for facts, _ in messages} == {
        (20170101, 0), (20170101, 1200), (20170102, 0), (20170102, 1200)
    }  # fmt: skip


def test_units_are_those_of_the_channels(messages):
    for facts, _ in messages:
        assert facts["units"] == ATMOSPHERE[NAMES[facts["shortName"]]]


def test_geopotential_and_temperature_are_in_hydrostatic_balance(fields):
    """Thickness from 850 to 500 hPa follows from the mean temperature of the layer: units and signs are ours."""
    thickness = fields["geopotential", 500] - fields["geopotential", 850]
    mean = (fields["temperature", 500] + fields["temperature", 850]) / 2
    ratio = thickness / (DRY_AIR * mean * np.log(850 / 500))
    assert ratio.min() > 0.98 and ratio.max() < 1.03  # humid air is thicker, and temperature is not linear


def test_latitudes_ascend(fields):
    """The tropics are warmer than both poles, and in January the southern hemisphere than the northern."""
    warmth = fields["temperature", 850].mean(axis=(0, 1))
    tropics = np.abs(grid_latitudes(32)) < 15
    assert warmth[tropics].mean() > warmth[:3].mean() + 20 and warmth[tropics].mean() > warmth[-3:].mean() + 20
    assert warmth[grid_latitudes(32) < -30].mean() > warmth[grid_latitudes(32) > 30].mean()


def test_the_simulation_resembles_it(fields):
    """Global means are near those of the packing, which is that of the simulated channels."""
    packing = graphbench.card("weather/era5_64x32").packed["state"]
    weights = latitude_weights(grid_latitudes(32), kind="area")
    for (name, level), own in fields.items():
        place = CHANNELS.index(f"{name}_{level}")
        mean = own.mean(axis=(0, 1)) @ weights / len(weights)
        assert abs(mean - packing.offset[place]) < packing.scale[place]
        assert np.abs((own - packing.offset[place]) / packing.scale[place]).max() < 6


def test_persistence_of_twelve_hours_is_worse_than_that_of_table_19(fields, messages):
    """Two to four times: the table's persistence looks like that of six hours."""
    from graphbench.records.published import published

    table = {s.metric: s.value for s in published("weather/era5_64x32") if s.model == "persistence"}
    for name, level in (("temperature", 850), ("geopotential", 500)):
        facts = [f for f, _ in messages if (NAMES[f["shortName"]], f["level"]) == (name, level)]
        order = np.argsort([f["number"] * 10**10 + f["dataDate"] * 100 + f["dataTime"] // 100 for f in facts])
        runs = fields[name, level][order].reshape(10, 4, 64, 32)
        assert 2 < (np.diff(runs, axis=1) ** 2).mean() / table[f"mse_{name}_{level}"] < 4
