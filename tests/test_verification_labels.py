"""`graphbench verify` checks labels of tasks, and `--update` measures them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graphbench.catalog.cards import Card
from graphbench.catalog.families import load_family
from graphbench.catalog.names import catalog
from graphbench.core.errors import CardError
from graphbench.data.arrays.hashing import samples_hash
from graphbench.data.build.generation import ensure_split
from graphbench.data.store.files import map_arrays, write_arrays
from graphbench.data.store.layout import Manifest, label_folder
from graphbench.domains.co import labellers
from graphbench.verification import check_card, verify
from graphbench.verification.measuring import measure, update_measured


@pytest.fixture
def toy(make_labelled, monkeypatch):
    """Return a function that puts the toy card, with what was measured of it, into the catalogue."""

    def put(measured: bool = True, **changes) -> Card:
        card = make_labelled(**changes)
        if measured:
            update_measured(card, progress=False)
            (card,) = load_family(card.path)
        monkeypatch.setitem(catalog().cards, card.id, card)
        return card

    return put


def rows_of(name, root, **options):
    return verify(name, root=root, progress=False, **options).rows


def failed(name, root, splits=("train",)):
    return {row.check: row.detail for row in rows_of(name, root, splits=splits) if not row.passed}


def test_sound_labels_pass(toy, tmp_path):
    card = toy()
    path = ensure_split(card, "train", tmp_path, workers=1)
    rows = [row for row in rows_of("co/toy:mis", tmp_path) if "co.mis" in row.check]
    assert all(row.passed for row in rows), rows
    train = {row.check: row.detail for row in rows if row.split == "train"}
    assert train["first labels, co.mis"].startswith("40 graphs, bit for bit as on the card")
    assert train["solutions, co.mis"] == "40 graphs checked independently of the solver"
    assert train["stored labels, co.mis"] == "checksum right, 40 of 40 labels computed again and equal"
    assert train["statistics, co.mis"].startswith("mean_mis_value ")
    assert {row.detail for row in rows if row.check.startswith("stored") and row.split != "train"} == {
        "not generated here"
    }
    assert path.is_file()


def test_labels_without_facts_on_the_card_are_checked_all_the_same(toy, tmp_path):
    toy(measured=False)
    rows = rows_of("co/toy", tmp_path, splits=("val",))
    assert all(row.passed for row in rows)
    assert any(
        row.detail == "10 graphs, no hash on the card yet; `graphbench verify --update` writes it"
        for row in rows
        if row.check == "first labels, co.mis"
    )


def test_other_labels_than_the_cards_are_found(toy, tmp_path, monkeypatch):
    toy()
    real = labellers.LABELLERS["mis"]

    def label(effort, number, graph):
        values = dict(real.label(effort, number, graph))
        return {**values, "mis_steps": values["mis_steps"] + 1}

    monkeypatch.setattr(labellers, "LABELLERS", {**labellers.LABELLERS, "mis": replace(real, label=label)})
    assert set(failed("co/toy", tmp_path)) == {"first labels, co.mis"}


def test_failures_and_wrong_solutions_are_found(toy, tmp_path, monkeypatch):
    toy(measured=False)
    real = labellers.LABELLERS["mis"]

    def label(effort, number, graph):
        if graph.num_nodes[0] == 9:
            raise TimeoutError
        return real.label(effort, number, graph)

    monkeypatch.setattr(labellers, "LABELLERS", {**labellers.LABELLERS, "mis": replace(real, label=label)})
    found = failed("co/toy", tmp_path)
    assert set(found) == {"solutions, co.mis"}
    assert "the labeller failed on 4 of 40 graphs" in found["solutions, co.mis"]


def test_a_spoiled_label_of_a_file_with_a_right_checksum_is_found(toy, tmp_path):
    card = toy()
    path = ensure_split(card, "train", tmp_path, workers=1)
    folder = label_folder(card, card.labellers[0], path.parent)
    arrays = {name: np.array(array) for name, array in map_arrays(folder / "train.h5").items()}
    arrays["mis_bound"][30] += 1
    write_arrays(folder / "train.h5", arrays)
    manifest = Manifest(folder)
    entry = manifest.entry("train.h5")
    assert "stored labels, co.mis" in failed("co/toy", tmp_path)  # the checksum
    manifest.add_file("train.h5", {**entry, "content": samples_hash(arrays)}, {})
    found = failed("co/toy", tmp_path)
    assert set(found) == {"stored labels, co.mis"}
    assert found["stored labels, co.mis"].startswith("the stored label 30 differs from the labeller's; delete")


def test_shifted_statistics_are_found(toy, tmp_path, monkeypatch):
    card = toy()
    own = card.measured.labels["co.mis"]
    mean, deviation = own.statistics["train"]["mean_mis_value"]
    shifted = {**own.statistics, "train": {"mean_mis_value": (mean + 3 * deviation, deviation)}}
    labels = {"co.mis": own.model_copy(update={"statistics": shifted})}
    changed = card.model_copy(update={"measured": card.measured.model_copy(update={"labels": labels})})
    monkeypatch.setitem(catalog().cards, card.id, changed)
    assert set(failed("co/toy", tmp_path)) == {"statistics, co.mis"}


def test_another_draw_has_labels_of_its_own(toy, tmp_path):
    toy()
    rows = rows_of("co/toy", tmp_path, splits=("val",), data_seed=2)
    assert all(row.passed for row in rows)
    assert any(row.detail == "10 graphs, no hash on the card" for row in rows if row.check == "first labels, co.mis")


def test_what_is_measured_of_tasks(toy):
    card = toy()
    found = measure(card, progress=False)
    assert found == measure(card.with_task("mis"), progress=False)
    assert found.floor == found.solvers == {}
    assert set(found.labels["co.mis"].statistics["val"]) == {
        "mean_mis_value",
        "mean_mis_bound",
        "proved",
        "value_to_bound",
    }
    assert found.labels["co.mis"].statistics_samples == {"train": 40, "val": 10, "test": 10}
    size, problem = found.tasks["mis_size"], found.tasks["mis"]
    assert set(size.floor) == {"val", "test"} and set(size.floor["test"]) == {"mean", "median"}
    assert set(size.floor["test"]["mean"]) == {"mae"} and size.solvers == {}
    scores = {**problem.floor["test"], **problem.solvers["test"]}
    assert set(scores) == {"greedy", "random", "labels"}
    mean = found.labels["co.mis"].statistics["test"]["mean_mis_value"][0]
    assert scores["labels"]["set_size"] == pytest.approx(mean)
    assert scores["random"]["set_size"] <= scores["greedy"]["set_size"] <= scores["labels"]["set_size"]
    assert card.with_task("mis").floor["test"]["greedy"] == pytest.approx(scores["greedy"], rel=1e-5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"effort": {"stesp": 1}}, r"labels co\.mis\): unknown key 'stesp'.*'steps'"),
        ({"labeller": "co.msi"}, "labeller 'co.msi' does not exist"),
    ],
)
def test_labels_that_do_not_fit_their_labeller_are_found(make_labelled, changes, words):
    check_card(make_labelled())
    with pytest.raises(CardError, match=words):
        check_card(make_labelled(**changes))


@pytest.mark.parametrize(
    ("task", "metric", "words"),
    [
        ("mis_size", "f1", r"co/toy:mis_size.*'f1' cannot score 'mis_value'"),
        ("mis", "f1", r"co/toy:mis\).*'f1' scores predictions"),
        ("mis", "set_sise", r"co/toy:mis\).*'set_sise'.*'set_size'"),
        ("mis_size", "set_size", "'set_size' cannot score 'mis_value'"),
    ],
)
def test_metrics_of_every_task_are_checked(make_labelled, task, metric, words):
    card = make_labelled()
    specs = {**card.tasks, task: card.tasks[task].model_copy(update={"metrics": replace_primary(card, task, metric)})}
    with pytest.raises(CardError, match=words):
        check_card(card.model_copy(update={"tasks": specs}))


def replace_primary(card, task, metric):
    return card.tasks[task].metrics.model_copy(update={"primary": metric})


def test_an_update_of_one_task_keeps_the_facts_of_the_others(make_labelled):
    card = make_labelled()
    update_measured(card, progress=False)
    before = load_family(card.path)[0].measured
    altered = before.model_copy(
        update={"tasks": {name: task.model_copy(update={"floor": {}}) for name, task in before.tasks.items()}}
    )
    update_measured(card.model_copy(update={"measured": altered}), progress=False, tasks=["mis"])
    after = load_family(card.path)[0].measured
    assert after.tasks["mis"] == before.tasks["mis"] and after.labels == before.labels
    assert [name for name, task in after.tasks.items() if not task.floor] == [n for n in before.tasks if n != "mis"]
