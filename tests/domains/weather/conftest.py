"""Shared by the tests of weather: states that were simulated once, and a card whose small grid they have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from pydantic import BaseModel, ConfigDict

import graphbench
from graphbench.catalog.families import load_family
from graphbench.catalog.names import catalog
from graphbench.data.arrays.quantisation import unpack
from graphbench.data.components.domain import Domain, register_domain, unregister
from graphbench.data.components.generators import Generator
from graphbench.domains.weather.checks import check_states, describe_states
from graphbench.domains.weather.generators import states_as_samples
from graphbench.loader import Loader
from graphbench.tasks.registry import task_of

LATITUDES, LONGITUDES = 16, 32
SPLITS = {"train": 9, "val": 4, "test": 4}


@pytest.fixture(scope="session")
def recorded():
    """Return states of four days, float32 [17, 512, 83], and their hours; their file says where they come from."""
    with np.load(Path(__file__).with_name("data") / "t21.npz") as file:
        packed, hours = np.moveaxis(file["state"], 0, 2), file["time"]
    return unpack(packed, graphbench.card("weather/sim_t21").packed["state"]), hours


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    first: int = 0


@pytest.fixture
def small(tmp_path, recorded):
    """Return a function that gives a card like ``weather/sim_t21`` on a grid of 32 x 16, with other keys.

    Its generator returns the recorded states, in runs of nine for training and of four otherwise.
    """
    states, hours = recorded

    def generate(parameters, key, indices, attempts):
        places = indices + parameters.first
        return states_as_samples(states[places], hours[places], np.zeros(len(places), np.int64))

    maker = Generator(
        "recorded.weather",
        1,
        Part,
        generate,
        lambda p, s: check_states(s, LATITUDES),
        lambda p, s: describe_states(s, LATITUDES),
        lambda p: 5,
        unique=False,
        unique_inputs=True,
    )
    register_domain(Domain("recorded", generators={"weather": maker}))
    path = Path(graphbench.card("weather/sim_t21").path)
    content = yaml.safe_load(path.read_text())
    for key in ("variants", "description"):
        del content[key]
    grid = {"latitudes": LATITUDES, "longitudes": LONGITUDES}
    content |= {"generator": "recorded.weather", "task": {"type": "forecast", "options": {"latitudes": LATITUDES}}}
    content["series"] |= {"parameters": {"refinements": 2, **grid}}
    firsts = {"train": 0, "val": 9, "test": 13}
    content["splits"] = {name: {"count": n, "parameters": {"first": firsts[name]}} for name, n in SPLITS.items()}

    def make(**changes):
        place = tmp_path / "cards" / "weather" / "small.yaml"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(yaml.safe_dump({**content, **changes}, sort_keys=False))
        return load_family(place)[0]

    yield make
    unregister("recorded")


@pytest.fixture
def load(small, tmp_path, monkeypatch):
    """Return a function that loads the splits of such a card, with other keys."""

    def loaded(**changes):
        card = small(**changes)
        monkeypatch.setitem(catalog().cards, card.id, card)
        return Loader(card.id, root=tmp_path / "root", progress=False, workers=1).load()

    return loaded


@pytest.fixture
def task(data):
    """Return the task of a module's ``data``, which knows its training split."""
    found = task_of(data.card)
    found.read_training(data)
    return found


@pytest.fixture(scope="session")
def states():
    """Return a function that gives the states of a split as an evaluator sees them, float64 [times, points, 83]."""
    return lambda split: task_of(split.card)._at(split.samples, np.arange(len(split.samples))).astype(np.float64)
