"""Files of the reference project as a source, and datasets written as netlists."""

import csv
import json
import shutil

import numpy as np
import pytest

import graphbench
from graphbench.core.errors import StoreError
from graphbench.data.build.generation import draw_samples
from graphbench.data.components.export import export_samples, find_exporter
from graphbench.domains.circuits import read_simulated_circuits, run_spice, sample_to_devices, steady_state
from graphbench.domains.circuits.devices import TYPES, net_names
from graphbench.domains.circuits.drawing import draw_topologies
from graphbench.domains.circuits.official_source import compare, read_official
from graphbench.verification.verify import verify

# Netlists, V and efficiency as they stand in the project's public file dataset_5_05_cleaned_label_small.json
# (Apache-2.0), at a duty cycle of 0.5 and a load of 50 ohm.
CIRCUITS = [
    ("Sa0:OUT:IN Sa1:a:0 L0:a:IN L1:IN:a C0:IN:0", 95.9385721406715, 0.8489428945234304),
    ("Sa0:0:a Sb1:IN:OUT Sb0:IN:OUT L1:OUT:a L0:a:OUT", 97.37999656434418, 0.8647083903540805),
    ("Sa2:0:a Sa1:b:IN Sa0:IN:OUT L1:b:a L0:a:b", 95.73370070775657, 0.8469210890609149),
    ("Sa2:OUT:a Sa1:0:b Sa0:IN:a L1:OUT:b L0:OUT:b", 91.35581527468386, 0.8111021878699396),
    ("Sa0:OUT:IN Sb1:a:b Sb0:b:a C1:0:b C0:IN:a", 95.78139418208188, 0.9570004534130557),
    ("Sb1:IN:a L0:OUT:a C1:a:b Sb0:b:c C0:0:c", 6.033809056536602, 0.06025930672892681),
    ("Sb0:OUT:a L2:b:a C0:0:b L1:b:IN L0:IN:a", 11.192684586066223, 0.10957165745659905),
    ("Sa0:OUT:a Sb1:b:c Sb0:IN:a C1:0:c C0:OUT:b", 2.3636214155784447, 0.011880011735427742),
    ("Sa0:OUT:a L2:IN:a C0:OUT:a L1:a:0 L0:0:a", 8.590987587944734e-11, 0.0),
]


def entry(netlist, vout, efficiency):
    devices = [part.split(":") for part in netlist.split()]
    return {"netlist": devices, "duty_cycle": 0.5, "rout": 50, "cout": 10, "freq": 1, "vout": vout, "eff": efficiency}


def drawn(count):
    """Return circuits with their steady states as labels."""
    indices = np.arange(count)
    types, nets, num_nets, _ = draw_topologies(np.uint64(3), indices, np.zeros_like(indices), 5, 0.0, 1.0)
    for own, ends, size in zip(types, nets, num_nets, strict=True):
        names = ["0", "IN", "OUT", *(f"n{i}" for i in range(size))]
        parts = [f"{TYPES[t]}{i}:{names[a]}:{names[b]}" for i, (t, (a, b)) in enumerate(zip(own, ends, strict=True))]
        devices = [(TYPES[t], net_names(size)[a], net_names(size)[b]) for t, (a, b) in zip(own, ends, strict=True)]
        state = steady_state(devices, duty=0.5, load=50.0)
        yield " ".join(parts), 100 * state.ratio, state.efficiency


@pytest.fixture(scope="module")
def circuits():
    return [*CIRCUITS, *drawn(25)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, circuits):
    place = tmp_path_factory.mktemp("files")
    content = {str(i): entry(*circuit) for i, circuit in enumerate(circuits)}
    (place / "circuits.json").write_text(json.dumps(content))
    return place


def test_labels_of_the_project_agree_or_are_explained(folder):
    found = compare(read_simulated_circuits(folder / "circuits.json")[: len(CIRCUITS)])
    # 2.36 V need switches that conduct at the same time for a nanosecond of every period
    assert found["agree"] == 8 and found["transient"] == 1 and found["other"] == found["zero"] == 0
    assert found["efficiency"] >= 7


def test_circuits_of_files_are_samples_with_their_labels(folder, circuits, tmp_path):
    splits = read_official(folder)
    assert {name: len(own) for name, own in splits.items()}.keys() == {"train", "val", "test"}
    loaded = graphbench.Loader(
        "circuits/converters_5", root=tmp_path / "root", source="official", folder=folder, workers=1
    ).load()
    count = 0
    for split in (loaded.train, loaded.val, loaded.test):
        for data in (split[i] for i in range(len(split))):
            expected = steady_state(sample_to_devices(data), duty=0.5, load=50.0)
            assert float(data.ratio) == pytest.approx(expected.ratio, rel=1e-5, abs=1e-8)
            labels = [vout / 100 for _, vout, _ in circuits]
            assert min(abs(float(data.reference_ratio) - label) for label in labels) < 1e-6
            count += 1
    assert count == len(circuits)


def test_verify_tells_what_the_files_say(folder, tmp_path):
    outcome = verify("circuits/converters_5", root=tmp_path, source="official", folder=folder, progress=False)
    assert outcome.passed, outcome.failures
    (row,) = [row for row in outcome.rows if row.check == "labels of the files"]
    assert row.mark == "noted" and "33 of 34 ratios agree" in row.detail


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "holds no JSON file"),
        ({"a": entry("Sa0:IN:a L0:a:OUT C0:OUT:0", 1, 1), "b": entry("Sa0:IN:a L0:a:b C0:b:OUT C1:a:0", 1, 1)}, "3, 4"),
        ({"a": entry("Sa0:IN:a L0:a:OUT C0:OUT:0", 1, 1)}, "has no circuit for"),
        ({"a": entry("Sa0:IN:IN", 1, 1)}, "malformed"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, content, message):
    if content is not None:
        (tmp_path / "circuits.json").write_text(json.dumps(content))
    with pytest.raises(StoreError, match=message):
        read_official(tmp_path)


@pytest.mark.parametrize("form", ["spice", "spice_paper"])
def test_a_dataset_is_written_as_netlists(tmp_path, form):
    card = graphbench.card("circuits/converters_5")
    samples = draw_samples(card, "test", range(3))
    export_samples(find_exporter(card, form), card, {"test": samples}, tmp_path / "out")
    with (tmp_path / "out" / "test.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["netlist"] for row in rows] == ["test/0.cir", "test/1.cir", "test/2.cir"]
    for i, row in enumerate(rows):
        assert float(row["ratio"]) == pytest.approx(float(samples.values["ratio"][i]), rel=1e-6, abs=1e-9)
        text = (tmp_path / "out" / row["netlist"]).read_text()
        assert text.endswith(".end\n") and ("uic" in text) == (form == "spice")
    if shutil.which("ngspice") and form == "spice":
        i = min(range(3), key=lambda i: float(rows[i]["settling"]))
        text = (tmp_path / "out" / rows[i]["netlist"]).read_text()
        if float(rows[i]["settling"]) < 1e-3:
            assert run_spice(text)["mean_vout"] / 100 == pytest.approx(float(rows[i]["ratio"]), abs=0.01)
