"""Transients against the steady state and ngspice, and the labels that the reference project's simulations give."""

import math
import shutil

import numpy as np
import pytest

from graphbench.core.errors import ArgumentError
from graphbench.domains.circuits import run_spice, steady_state, to_spice, transient
from graphbench.domains.circuits.transients import Transient

BUCK = [("Sa", "VIN", "x"), ("Sb", "x", "GND"), ("L", "x", "VOUT"), ("C", "VOUT", "GND")]
BOOST = [("L", "VIN", "x"), ("Sa", "x", "GND"), ("Sb", "x", "VOUT"), ("C", "VOUT", "GND")]
SEPIC = [("L", "VIN", "x"), ("Sa", "x", "GND"), ("C", "x", "y"), ("L", "y", "GND"), ("Sb", "y", "VOUT")]
SERIES = [("Sb", "VIN", "p"), ("Sa", "p", "VOUT")]  # conducts only while both do


def test_a_long_transient_ends_in_the_steady_state():
    for devices in (BUCK, BOOST, SEPIC):
        found, state = transient(devices, duty=0.4, seconds=0.5), steady_state(devices, duty=0.4)
        assert found.ratio == pytest.approx(state.ratio, rel=1e-9)
        assert found.efficiency == pytest.approx(state.efficiency, rel=1e-6)
        assert found.input_power == pytest.approx(state.input_power, rel=1e-6)
        assert abs(found.drift) < 1e-9


def test_a_short_transient_drifts_and_is_no_valid_label():
    found = transient(SEPIC, duty=0.4, seconds=5e-4)
    assert abs(found.ratio - steady_state(SEPIC, duty=0.4).ratio) > 0.01
    assert abs(found.drift) > 0.005 and found.paper_label == (0.0, 0.0, False)


def test_a_resistor_charges_a_capacitor_as_the_textbook_says():
    devices = [("Sa", "VIN", "VOUT"), ("Sb", "VIN", "VOUT")]  # 1 ohm at any time, 10 uF, behind 0.1 ohm
    found = transient(devices, duty=0.5, seconds=6e-5, vin=10.0)
    parallel = 1.0 / (1.0 + 1e-5)  # one switch conducts, beside 100 kOhm
    series, load = 0.1 + parallel, 100.0
    tau, final = 1e-5 * series * load / (series + load), load / (series + load)
    begin, end = 1e-5, 6e-5  # the last 50 periods
    mean = final * (1 - tau * (math.exp(-begin / tau) - math.exp(-end / tau)) / (end - begin))
    assert found.ratio == pytest.approx(mean, rel=1e-6)
    means = [
        final * (1 - tau * (math.exp(-a / tau) - math.exp(-b / tau)) / (b - a))
        for a, b in ((begin, 3.5e-5), (3.5e-5, end))
    ]
    assert found.drift == pytest.approx(means[1] - means[0], rel=1e-6)
    assert found.efficiency == pytest.approx(found.output_power / found.input_power)


def test_dead_time_and_overlap_are_mirror_images_to_first_order():
    exact, paper, overlap = (
        transient(BUCK, duty=0.3, load=50, settings=settings, off_resistance=1e3)
        for settings in ("exact", "paper", "overlap")
    )
    assert paper.efficiency < exact.efficiency and overlap.efficiency < exact.efficiency  # each costs power
    nothing, some = (transient(SERIES, duty=0.5, load=50, settings=settings) for settings in ("paper", "overlap"))
    assert nothing.ratio == pytest.approx(50 / (50 + 1e5), rel=0.02)
    # 1 ns of 1 us through 2.1 ohm into 50 ohm
    assert some.ratio == pytest.approx(1e-3 * 50 / 2.1 / (1 + 1e-3 * 50 / 2.1), rel=0.05)


def test_the_rules_of_the_reference_project():
    def label(ratio=0.5, output=1.0, source=2.0, drift=0.0):
        return Transient(ratio, output, source, drift, 100.0).paper_label

    assert label() == (0.5, pytest.approx(1.0 / 2.01), True)
    assert label(drift=0.0049)[2] and not label(drift=0.0051)[2]
    assert label(ratio=0.9, drift=0.0089)[2] and not label(ratio=0.9, drift=-0.0091)[2]
    assert not label(output=2.02)[2] and not label(output=1.0, source=-2.0)[2]
    assert not label(output=0.0, source=5e-4)[2]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"settings": "fast"}, "settings 'fast' is unknown"),
        ({"seconds": 1e-5}, "from 50 periods"),
        ({"settings": "paper", "duty": 1.0}, "leaves a switch no time"),
        ({"duty": 2.0}, "duty"),
    ],
)
def test_wrong_arguments_are_refused(values, message):
    with pytest.raises(ArgumentError, match=message):
        transient(BUCK, **{"duty": 0.5, **values})
    with pytest.raises(ArgumentError, match="not joined"):
        transient([("Sa", "VIN", "VOUT"), ("L", "p", "q")], duty=0.5)


@pytest.mark.skipif(shutil.which("ngspice") is None, reason="ngspice is not installed")
@pytest.mark.parametrize("settings", ["exact", "paper", "overlap"])
def test_ngspice_ends_where_the_transient_does(settings):
    for devices, duty in ((BUCK, 0.3), (SERIES, 0.5)):
        options = {"duty": duty, "seconds": 3e-4, "settings": settings}
        means, found = run_spice(to_spice(devices, **options)), transient(devices, **options)
        near = 1e-3 if settings == "exact" else 1e-2  # steps within an edge decide how long no switch conducts
        assert means["mean_vout"] / 100 == pytest.approx(found.ratio, abs=near)
        assert means["mean_pout"] == pytest.approx(found.output_power, rel=0.05, abs=0.1)
        assert np.isfinite(found.drift)
