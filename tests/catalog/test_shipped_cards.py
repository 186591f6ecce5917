"""The cards that come with the package, against the numbers of the paper (tables 14 and 15)."""

from typing import Any

import pytest

from graphbench.catalog.names import catalog, list_datasets
from graphbench.data.components.domain import find

TASKS = ("topological_sort", "mst", "bridges", "steiner_tree", "max_clique", "flow", "max_matching")
DIFFICULTIES = ("easy", "medium", "hard")

# Table 14, one column per task: er p | nws k, p | ba m | dba m1, m2, p | pc p, m | sbm within, between
TABLE_14: dict[str, tuple[Any, ...]] = {
    "topological_sort": (0.3, (2, 0.2), 2, (3, 2, 0.5), (0.1, 3), (0.5, 0.2)),
    "mst": (0.19, (4, 0.2), 3, (4, 2, 0.3), (0.4, 1), (0.4, 0.4)),
    "mst (shift)": (0.17, (2, 0.15), 2, (2, 1, 0.05), (0.35, 5), (0.31, 0.01)),
    "bridges": (0.11, None, 1, (3, 1, 0.07), (0.5, 1), (0.5, 0.01)),
    "steiner_tree": (0.14, (4, 0.12), 2, (3, 1, 0.4), (0.7, 3), (0.4, 0.4)),
    "max_clique": (0.9, (4, 0.6), 8, (4, 2, 0.3), (0.5, 9), (0.75, 0.75)),
    "flow": (0.16, (4, 0.2), 3, (4, 2, 0.3), (0.5, 5), (0.35, 0.3)),
    "max_matching": (0.08, (6, 0.18), 3, (4, 2, 0.2), (0.5, 8), (0.31, 0.1)),
}
TABLE_15 = {
    "train": {"easy": {"er", "nws", "dba"}, "medium": {"er"}, "hard": {"er"}},
    "test": {
        "easy": {"er", "pc", "nws", "ba", "dba", "sbm"},
        "medium": {"er", "pc", "nws", "ba", "dba", "sbm"},
        "hard": {"pc", "nws", "ba", "dba", "sbm"},
    },
}


def models_of(column: str) -> dict[str, dict[str, Any]]:
    er, nws, ba, (m1, m2, p), (triangle, m), (within, between) = TABLE_14[column]
    models = {
        "er": {"p": er},
        "ba": {"m": ba},
        "dba": {"m1": m1, "m2": m2, "p": p},
        "pc": {"m": m, "p": triangle},
        "sbm": {"p": [[within, between], [between, within]], "sizes": [0.5, 0.5]},
    }
    return models if nws is None else {**models, "nws": {"k": nws[0], "p": nws[1]}}


def test_all_seven_tasks_in_three_difficulties() -> None:
    assert set(list_datasets("algoreas")) == {f"algoreas/{task}_{d}" for task in TASKS for d in DIFFICULTIES}


@pytest.mark.parametrize("id_", list_datasets())
def test_generator_accepts_every_split(id_: str) -> None:
    card = catalog().cards[id_]
    generator = find("generator", card.generator)
    for split in card.all_splits:
        assert generator.shard_size(generator.parse(card, split)) >= 1
    assert len(card.fingerprint(generator.version)) == 12


@pytest.mark.parametrize("id_", list_datasets())
def test_card_says_what_a_reader_needs(id_: str) -> None:
    card = catalog().cards[id_]
    assert card.summary.endswith(".")
    assert card.licence
    assert card.source.citation
    as_in_training = (
        "chip_design",
        "circuits",
        "co",
        "sat",
        "weather",
    )  # domains whose test graphs are drawn like those of training
    assert card.split("test").shift is not None or card.domain in as_in_training


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_models_are_those_of_table_14(task: str, difficulty: str) -> None:
    card = catalog().cards[f"algoreas/{task}_{difficulty}"]
    for name, spec in {**card.splits, **card.ood}.items():
        shifted = task == "mst" and name not in ("train", "val")
        assert spec.parameters["models"] == models_of("mst (shift)" if shifted else task), name
        assert spec.parameters.get("connect", 1) == 1


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_mixtures_are_those_of_table_15(task: str, difficulty: str) -> None:
    card = catalog().cards[f"algoreas/{task}_{difficulty}"]
    absent = {"nws"} if task == "bridges" else set()
    for name, spec in {**card.splits, **card.ood}.items():
        column = "train" if name in ("train", "val") else "test"
        assert set(spec.parameters["mixture"]) == TABLE_15[column][difficulty] - absent, name
        assert set(spec.parameters["mixture"].values()) == {1}


@pytest.mark.parametrize("id_", list_datasets("algoreas"))
def test_larger_validation_graphs_follow_the_distribution_of_training(id_: str) -> None:
    card = catalog().cards[id_]
    train, larger = card.split("train").parameters, card.split("val_large").parameters
    assert larger == {**train, "nodes": larger["nodes"]}
    assert train["nodes"] < larger["nodes"] < card.split("test").parameters["nodes"]


@pytest.mark.parametrize("id_", list_datasets("algoreas"))
def test_sizes_are_those_of_the_paper(id_: str) -> None:
    card = catalog().cards[id_]
    assert {name: spec.count for name, spec in card.splits.items()} == {
        "train": 1_000_000,
        "val": 10_000,
        "test": 10_000,
    }
    nodes = {name: spec.parameters["nodes"] for name, spec in {**card.splits, **card.ood}.items()}
    if card.family == "flow":
        assert nodes == {"train": 16, "val": 16, "test": 64}
    else:
        assert nodes == {"train": 16, "val": 16, "test": 128, "n192": 192, "n256": 256, "n384": 384, "n512": 512}
    assert {spec.count for spec in card.ood.values()} <= {1000}


@pytest.mark.parametrize(
    ("id_", "inputs", "outputs", "primary"),
    [
        ("algoreas/topological_sort_easy", {"priority"}, {"rank"}, "mae"),
        ("algoreas/mst_easy", {"weight"}, {"in_tree"}, "f1"),
        ("algoreas/bridges_easy", set(), {"is_bridge"}, "f1"),
        ("algoreas/steiner_tree_easy", {"weight", "is_terminal"}, {"in_tree"}, "f1"),
        ("algoreas/max_clique_easy", set(), {"in_clique"}, "f1"),
        ("algoreas/flow_easy", {"capacity", "source", "sink"}, {"value"}, "mae"),
        ("algoreas/max_matching_easy", {"weight"}, {"matched"}, "f1"),
    ],
)
def test_features_and_metric(id_: str, inputs: set[str], outputs: set[str], primary: str) -> None:
    card = catalog().cards[id_]
    assert {f.name for f in card.inputs} == inputs
    assert {f.name for f in card.outputs} == outputs
    assert card.metrics.primary == primary
    assert card.directed is (card.family == "topological_sort")


@pytest.mark.parametrize(
    ("published", "id_"),
    [
        ("algoreas_bipartitematching_easy", "algoreas/max_matching_easy"),
        ("algoreas_steinertree_hard", "algoreas/steiner_tree_hard"),
        ("algoreas_topologicalorder_medium", "algoreas/topological_sort_medium"),
        ("algoreas_maxclique_easy", "algoreas/max_clique_easy"),
        ("algoreas_mst_easy", "algoreas/mst_easy"),
        ("flow_hard", "algoreas/flow_hard"),
    ],
)
def test_names_of_earlier_packages_still_work(published: str, id_: str) -> None:
    assert list_datasets(published) == [id_]


def test_groups_hold_one_difficulty() -> None:
    assert set(list_datasets("algoreas_easy")) == {f"algoreas/{task}_easy" for task in TASKS}
    assert list_datasets("algoreas_hard") == list_datasets("algorithmic_reasoning_hard")
