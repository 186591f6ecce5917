"""Cards with several tasks on the same graphs: what they say, and how they are addressed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from graphbench.catalog.cards import Card
from graphbench.catalog.families import load_family, measured_path
from graphbench.catalog.features import Stage
from graphbench.catalog.names import Catalog
from graphbench.core.errors import CardError, UnknownDataset

WriteFamily = Callable[..., tuple[Card, ...]]

LABELS: dict[str, Any] = {
    "co.mis": {
        "effort": {"steps": 100},
        "features": {"mis": ["meta", "node", "mask"], "mis_value": ["meta", "graph", "scalar"]},
    },
    "co.max_cut": {"features": {"max_cut_value": ["meta", "graph", "scalar"]}},
}
TASKS: dict[str, Any] = {
    "mis_size": {
        "title": "Size",
        "summary": "How many.",
        "type": "predict",
        "labels": "co.mis",
        "outputs": ["mis_value"],
        "metrics": {"primary": "mae", "also": ["rmse"]},
    },
    "mis": {
        "title": "Set",
        "summary": "Which.",
        "type": "solve",
        "labels": "co.mis",
        "outputs": ["mis"],
        "metrics": {"primary": "f1"},
    },
    "max_cut_size": {
        "title": "Cut",
        "summary": "How many edges.",
        "type": "predict",
        "labels": "co.max_cut",
        "outputs": ["max_cut_value"],
        "metrics": {"primary": "mae"},
    },
}


@pytest.fixture
def write_tasks(write_family: WriteFamily) -> WriteFamily:
    """Return a function that writes a family with tasks; keyword arguments replace keys of it."""

    def write(name: str = "toy", **changes: Any) -> tuple[Card, ...]:
        weight = {"weight": ["input", "edge", "scalar"]}
        return write_family(name, **{"features": weight, "metrics": None, "labels": LABELS, "tasks": TASKS} | changes)

    return write


@pytest.fixture
def pets(write_tasks: WriteFamily, write_family: WriteFamily) -> Catalog:
    variants = {"cat": {"aliases": ["tom"]}, "dog": {"groups": ["loud"]}}
    own = {name: TASKS[name] for name in ("max_cut_size",)}
    bird = write_tasks("bird", tasks=own, labels={"co.max_cut": LABELS["co.max_cut"]}, groups=["loud"])
    return Catalog([*write_tasks("pets", variants=variants), *bird, *write_family("fish")])


def test_the_first_task_is_that_of_the_id(write_tasks: WriteFamily) -> None:
    (card,) = write_tasks()
    assert (card.id, card.task_name, card.address) == ("algoreas/toy", "mis_size", "algoreas/toy:mis_size")
    assert [(f.name, f.stage) for f in card.features] == [
        ("weight", Stage.INPUT),
        ("mis", Stage.META),
        ("mis_value", Stage.OUTPUT),
    ]
    assert (card.metrics.primary, card.task.type, card.labellers) == ("mae", "predict", ("co.mis",))


def test_another_task_has_its_own_outputs_and_metrics(write_tasks: WriteFamily) -> None:
    (card,) = write_tasks()
    other = card.with_task("mis")
    assert (other.id, other.address, other.task.type) == ("algoreas/toy", "algoreas/toy:mis", "solve")
    assert [f.name for f in other.outputs] == ["mis"]
    assert other.metrics.primary == "f1"
    assert other.label_features == card.label_features
    assert other.with_task("mis_size") == card
    cut = other.with_task("max_cut_size")
    assert [f.name for f in cut.features] == ["weight", "max_cut_value"]
    assert cut.labellers == ("co.max_cut",)


def test_a_card_without_tasks_is_its_own(write_family: WriteFamily) -> None:
    (card,) = write_family()
    assert (card.address, card.task_name, card.task.type, card.labellers) == (card.id, None, "predict", ())
    assert card.graphs is card
    assert card.label_features == ()


def test_tasks_share_the_graphs(write_tasks: WriteFamily, write_family: WriteFamily) -> None:
    (card,) = write_tasks()
    views = [card.with_task(name) for name in card.tasks]
    assert len({view.fingerprint(1) for view in views}) == 1
    assert all(view.graphs == card.graphs for view in views)
    assert [f.name for f in card.graphs.features] == ["weight"]
    assert (card.graphs.task_name, card.graphs.tasks, card.graphs.address) == (None, {}, card.id)
    (more,) = write_tasks(tasks={"mis": TASKS["mis"]}, labels={"co.mis": LABELS["co.mis"]})
    assert more.fingerprint(1) == card.fingerprint(1)


def test_labels_differ_by_effort_version_and_features(write_tasks: WriteFamily) -> None:
    (card,) = write_tasks()
    size, solution = card, card.with_task("mis")
    assert size.label_fingerprint(size.labellers[0], 1) == solution.label_fingerprint(solution.labellers[0], 1)
    assert len({size.label_fingerprint(size.labellers[0], 1), size.label_fingerprint(size.labellers[0], 2)}) == 2
    harder = {**LABELS, "co.mis": {**LABELS["co.mis"], "effort": {"steps": 101}}}
    (other,) = write_tasks(labels=harder)
    assert other.label_fingerprint(other.labellers[0], 1) != card.label_fingerprint(card.labellers[0], 1)
    assert other.with_task("max_cut_size").label_fingerprint(
        other.with_task("max_cut_size").labellers[0], 1
    ) == card.with_task("max_cut_size").label_fingerprint(card.with_task("max_cut_size").labellers[0], 1)


def test_a_draw_keeps_the_task(write_tasks: WriteFamily) -> None:
    card = write_tasks()[0].with_task("mis").with_data_seed(3)
    assert (card.task_name, card.data_seed, card.graphs.data_seed) == ("mis", 3, 3)


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("algoreas/pets_cat:mis", ["pets_cat:mis"]),
        (" tom:mis ", ["pets_cat:mis"]),
        ("algoreas/pets_cat", ["pets_cat"]),
        ("pets:mis", ["pets_cat:mis", "pets_dog:mis"]),
        ("algoreas/*:mis", ["pets_cat:mis", "pets_dog:mis"]),
        ("loud:*", ["pets_dog:mis_size", "pets_dog:mis", "pets_dog:max_cut_size", "bird:max_cut_size"]),
        ("algoreas/pets_cat:*_size", ["pets_cat:mis_size", "pets_cat:max_cut_size"]),
        ("algoreas:max*", ["pets_cat:max_cut_size", "pets_dog:max_cut_size", "bird:max_cut_size"]),
        (["tom:mis", "algoreas/fish", "algoreas/pets_cat:mis"], ["pets_cat:mis", "fish"]),
    ],
)
def test_addresses(pets: Catalog, selector: str | list[str], expected: list[str]) -> None:
    found = [name.removeprefix("algoreas/") for name in pets.resolve(selector)]
    assert found == expected
    for name in pets.resolve("loud:*"):
        assert pets.card(name).address == name


def test_an_address_is_single_and_a_glob_of_tasks_is_not(pets: Catalog) -> None:
    assert pets.is_single("tom:mis")
    assert not pets.is_single("tom:*")
    assert not pets.is_single("pets:mis")
    assert pets.card("algoreas/pets_cat").address == "algoreas/pets_cat:mis_size"


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        (
            "tom:mis_siez",
            ["'algoreas/pets_cat:mis_siez'", "did you mean 'algoreas/pets_cat:mis_size'?", "mis_size, mis"],
        ),
        ("tom:", ["'algoreas/pets_cat:'", "its tasks are mis_size, mis, max_cut_size"]),
        ("algoreas/fish:mis", ["'algoreas/fish:mis' names a task", "has none", "leave ':mis' out"]),
        ("algoreas/pets_cta:mis", ["'algoreas/pets_cta'", "did you mean 'algoreas/pets_cat:mis'?"]),
        ("loud:colour*", ["no task 'colour*' of algoreas/pets_dog, algoreas/bird", "there are mis_size, mis, max_cut"]),
        ("algoreas/fi*:mis", ["no task 'mis' of algoreas/fish", "these datasets have no tasks"]),
    ],
)
def test_unknown_tasks(pets: Catalog, selector: str, words: list[str]) -> None:
    with pytest.raises(UnknownDataset) as caught:
        pets.resolve(selector)
    for word in words:
        assert word in str(caught.value)


def without(mapping: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name != key}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metrics": {"primary": "f1"}}, ["metrics belongs to each task"]),
        ({"tasks": None}, ["labels ['co.max_cut', 'co.mis'] belong to no task"]),
        ({"tasks": {}}, ["tasks", "at least 1"]),
        (
            {"tasks": {**TASKS, "mis": {**TASKS["mis"], "lables": "x"}}},
            ["'tasks.mis.lables'", "did you mean 'labels'"],
        ),
        ({"tasks": {**TASKS, "mis": {**TASKS["mis"], "type": "Both Kinds"}}}, ["tasks.mis.type", "'Both Kinds'"]),
        ({"tasks": {**TASKS, "mis": without(TASKS["mis"], "metrics")}}, ["'tasks.mis.metrics' is missing"]),
        (
            {"tasks": {**TASKS, "mis": {**TASKS["mis"], "labels": "co.msi"}}},
            ["tasks.mis", "'co.msi'", "co.mis, co.max_cut"],
        ),
        ({"tasks": {**TASKS, "mis": {**TASKS["mis"], "outputs": ["set"]}}}, ["['set']", "there are mis, mis_value"]),
        ({"tasks": {**TASKS, "mis": {**TASKS["mis"], "outputs": []}}}, ["tasks.mis.outputs", "at least 1"]),
        ({"tasks": {**TASKS, "a b": TASKS["mis"]}}, ["'a b' is not an identifier"]),
        ({"tasks": without(TASKS, "max_cut_size")}, ["labels ['co.max_cut'] belong to no task"]),
        (
            {"labels": {**LABELS, "co.mis": {"features": {"mis": ["output", "node", "mask"]}}}},
            ["labels.co.mis", "'mis' is output", "write meta"],
        ),
        (
            {"labels": {**LABELS, "co.mis": {"features": {"mis": ["meta", "node", "text"]}}}},
            ["labels.co.mis", "'mis' is a text at a node", "only of graphs"],
        ),
        (
            {"labels": {**LABELS, "co.mis": {"features": {"mis": ["meta", "node", "pointer"]}}}},
            ["labels.co.mis", "'mis' is a pointer", "scalars, masks, classes and texts"],
        ),
        ({"labels": {**LABELS, "co.mis": {"features": {}}}}, ["labels.co.mis", "features is empty"]),
        ({"labels": {**LABELS, "co.mis": {"efort": {}}}}, ["'labels.co.mis.efort'", "keys: effort, splits, features"]),
        ({"features": {"mis": ["input", "node", "mask"]}}, ["['mis'] are defined several times"]),
        ({"task_name": "mis"}, ["'task_name'", "not for authors"]),
    ],
)
def test_malformed_tasks_say_where(write_tasks: WriteFamily, changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(CardError) as caught:
        write_tasks(**changes)
    for word in ["toy.yaml", *words]:
        assert word in str(caught.value)


def test_measured_scores_are_those_of_the_task(write_tasks: WriteFamily) -> None:
    (card,) = write_tasks()
    facts = measured_path(card.path, "toy")
    facts.parent.mkdir()
    facts.write_text('{"version": 1, "tasks": {"mis": {"floor": {"test": {"greedy": {"f1": 0.5}}}}}}')
    (card,) = load_family(card.path)
    assert card.with_task("mis").floor == {"test": {"greedy": {"f1": 0.5}}}
    assert card.floor == {}
    assert card.with_task("mis").solvers == {}
