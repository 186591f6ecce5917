"""Published files as splits: the files of each split, their order, and the card of the files."""

import logging

import pytest

from graphbench import Loader
from graphbench.catalog.names import card as card_of
from graphbench.cli.show import verification
from graphbench.core.errors import StoreError
from graphbench.data.components.source_choice import sourced_card
from graphbench.verification import verify

from .test_official import PEOPLE, cells, write

NOISY = PEOPLE + ",Di:male,Ed:male,Flo:female"
NOISE = {1: [], 2: [(0, 4), (4, 1)], 3: [(1, 4)], 4: [(4, 5)]}
WORDS = {2: (("father", "brother"), "uncle"), 3: (("brother", "father", "brother"), "uncle")}


def rows(task, part, count, first=0):
    kind, k = map(int, task.split("."))
    words, target = WORDS.get(k, (("brother",) * k, "brother"))
    people = NOISY if k < 4 else ",".join(f"P{i}:male" for i in range(k + 1))
    return [
        cells(
            words,
            target,
            people,
            NOISE[kind],
            kind,
            part,
            number=first + i,
            story=f"[{people.split(':')[0]}] {task} {i}",
        )
        for i in range(count)
    ]


def folder_of(folder, train, tests):
    """A folder of published files: test task -> number of its rows."""
    write(
        folder,
        f"{train}_train.csv",
        *(row for n, task in enumerate(train.split(",")) for row in rows(task, "train", 5, 5 * n)),
    )
    for task, count in tests.items():
        write(folder, f"{task}_test.csv", *rows(task, "test", count))
    return folder


def stories(split):
    return [sample.story.split(" ", 1)[1] for sample in split]


@pytest.fixture
def noisy(tmp_path):
    return folder_of(tmp_path / "files", "2.2,2.3", {"2.2": 2, "1.3": 2, "2.3": 4, "3.3": 2, "4.3": 2})


def test_test_holds_the_tasks_of_training_in_turn(tmp_path):
    folder = folder_of(tmp_path / "files", "1.2,1.3", {"1.2": 2, "1.3": 4, "1.4": 3, "1.10": 1})
    splits = Loader("clutrr/gen_23", source="official", folder=folder, root=tmp_path).load("all")
    assert stories(splits.test) == ["1.2 0", "1.3 0", "1.2 1", "1.3 1", "1.3 2", "1.3 3"]
    assert {name: len(split) for name, split in splits.ood.items()} == {"k2": 2, "k3": 4, "k4": 3, "k10": 1}
    few = Loader("clutrr/gen_23", source="official", folder=folder, root=tmp_path / "few", limit=3).load(["test"])
    assert stories(few.test) == ["1.2 0", "1.3 0", "1.2 1"]
    more = folder_of(tmp_path / "more", "1.2,1.3,1.4", {"1.2": 1, "1.4": 2, "1.5": 1})
    own = Loader("clutrr/gen_234", source="official", folder=more, root=tmp_path).load(["test"])
    assert stories(own.test) == ["1.2 0", "1.4 0", "1.4 1"]


def test_noise_has_the_names_of_the_card(noisy, tmp_path):
    splits = Loader("clutrr/rob_supporting", source="official", folder=noisy, root=tmp_path).load("all")
    assert list(splits.ood) == ["clean", "supporting", "irrelevant", "disconnected", "supporting_k2", "supporting_k3"]
    assert (
        stories(splits["supporting"]) == ["2.2 0", "2.3 0", "2.2 1", "2.3 1", "2.3 2", "2.3 3"] == stories(splits.test)
    )
    assert stories(splits["clean"]) == ["1.3 0", "1.3 1"] and stories(splits["supporting_k2"]) == ["2.2 0", "2.2 1"]
    shifts = {name: spec.shift for name, spec in splits.card.all_splits.items()}
    assert (shifts["train"], shifts["test"]) == (None, "published test tasks 2.2, 2.3")
    assert (shifts["clean"], shifts["supporting_k3"]) == ("published test task 1.3", "published test task 2.3")


def test_files_that_are_not_there_are_named(noisy, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        sourced_card(card_of("clutrr/rob_supporting"), "official", noisy)
    assert "has no test file" not in caplog.text
    for task in ("1.3", "2.2", "4.3"):
        (noisy / f"{task}_test.csv").unlink()
    for _ in range(2):
        sourced_card(card_of("clutrr/rob_supporting"), "official", noisy)
    assert caplog.text.count(f"{noisy} has no test file of the tasks 1.3, 2.2, 4.3; take the folder as published") == 1
    (noisy / "2.3_test.csv").unlink()
    with pytest.raises(StoreError, match=r"tasks 2\.2, 2\.3.*clutrr/rob_s"):
        sourced_card(card_of("clutrr/rob_supporting"), "official", noisy)


@pytest.mark.parametrize("name", ["rob_supporting", "paper_rob_supporting"])
def test_the_card_speaks_of_the_files(name, noisy):
    own = card_of(f"clutrr/{name}")
    card = sourced_card(own, "official", noisy)
    assert card.licence.startswith("CC BY-NC 4.0") and own.licence == "Apache-2.0"
    assert card.source.paper == own.source.paper and not set(card.source.deviations) & set(own.source.deviations)
    assert card.description != own.description and "published files" in card.description
    assert card.measured is None and card.floor == {} and card.solvers == {}
    (relation,), (generated,) = ([f for f in c.features if f.name == "relation"] for c in (card, own))
    assert (relation.classes, generated.classes) == (23, 22)
    assert relation.meaning == f"{generated.meaning}, or 22 if the file does not state it"


def test_published_files_are_verified_without_a_reference(noisy, tmp_path, capsys):
    wrong = [row | {"target": "son"} for row in rows("1.3", "test", 1)]
    write(noisy, "1.3_test.csv", *wrong, *rows("1.3", "test", 1, 1))
    outcome = verify("clutrr/rob_supporting", source="official", folder=noisy, root=tmp_path, splits=("clean", "test"))
    assert outcome.passed
    skipped = [(row.split, row.check) for row in outcome.rows if row.mark == "skipped"]
    checks = ["first samples", "stored file", "structure and labels", "uniqueness", "statistics"]
    assert skipped == [(split, check) for split in ("clean", "test") for check in checks]
    verification(outcome)
    printed = capsys.readouterr().out
    assert "skipped" in printed and f"{len(outcome.rows) - 10} checks passed, 10 skipped" in printed
