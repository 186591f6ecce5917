"""The samples of published files keep their bytes: hashes of a folder with every kind of noise, drawn from a seed."""

import numpy as np
import pytest

from graphbench.catalog.names import card as card_of
from graphbench.data.arrays.hashing import samples_hash
from graphbench.data.components.domain import find
from graphbench.data.components.source_choice import sourced_card
from graphbench.domains.clutrr.relations import WORDS

from .test_official import cells, write

HASHES = {
    "gen_23": {
        "train": "f2079b3487e46a71",
        "val": "33b5aa3e30f61cc7",
        "test": "0ceb70b0b3303a57",
        "k2": "6d12ddba5e228b90",
        "k3": "2733f0e6de66d046",
        "k4": "35b37dbbbff46ef8",
        "k10": "d8592e27014146b2",
    },
    "rob_supporting": {
        "train": "e3005e60a5b0ff94",
        "val": "8afe45321da8216a",
        "test": "b246d2268d629774",
        "clean": "22f3bbf4f5e5c597",
        "supporting": "b246d2268d629774",
        "irrelevant": "95d88a6de6aa12f5",
        "disconnected": "2279f4caf88a07a9",
        "supporting_k2": "ac9ff14b02bf5f62",
        "supporting_k3": "6e0617c68e69a562",
        "mixed_k3": "dc8cf0a2707d045f",
    },
}


def noise_of(kind, k, rng):
    """The noise facts of a puzzle, and the number of people that they add to the path."""
    x, new = int(rng.integers(k)), k + 1
    supporting, irrelevant, apart = [(x, new), (new, x + 1)], [(x, new)], [(new, new + 1)]
    mixed = [*supporting, (x + 1, new + 1), (new + 2, new + 3)]
    return {1: ([], 0), 2: (supporting, 1), 3: (irrelevant, 1), 4: (apart, 2), 5: (mixed, 4)}[kind]


def drawn_rows(task, part, count, rng):
    """Rows of a task with random words, genders and noise; every third row tells the words of its noise."""
    kind, k = map(int, task.split("."))
    for number in range(count):
        words = [WORDS[i] for i in rng.integers(len(WORDS), size=k)]
        noise, more = noise_of(kind, k, rng)
        sexes = rng.integers(2, size=1 + k + more)
        sexes[1 : k + 1] = [WORDS.index(word) % 2 for word in words]
        genders = ",".join(f"Née{i}:{('male', 'female')[sex]}" for i, sex in enumerate(sexes))
        told = [WORDS[2 * int(rng.integers(11)) + sexes[y]] for _, y in noise] if number % 3 == 0 else []
        yield cells(words, WORDS[rng.integers(22)], genders, noise, kind, part, number, edge_types=repr(words + told))


def folder_of(folder, train, tests):
    rng = np.random.default_rng(5)
    trained = [row for task in train.split(",") for row in drawn_rows(task, "train", 15, rng)]
    write(folder, f"{train}_train.csv", *(row | {"": str(i)} for i, row in enumerate(trained)))
    for task in tests:
        write(folder, f"{task}_test.csv", *drawn_rows(task, "test", 12, rng))
    return folder


@pytest.mark.parametrize(
    ("name", "train", "tests"),
    [
        ("gen_23", "1.2,1.3", ["1.2", "1.3", "1.4", "1.10"]),
        ("rob_supporting", "2.2,2.3", ["2.2", "2.3", "1.3", "3.3", "4.3", "5.3"]),
    ],
)
def test_samples_of_published_files_keep_their_bytes(tmp_path, name, train, tests):
    card = sourced_card(card_of(f"clutrr/{name}"), "official", folder_of(tmp_path / "files", train, tests))
    hashes = {}
    for split, spec in card.all_splits.items():
        indices = np.arange(spec.count)
        samples = find("generator", card.generator).draw(card, split, indices, np.zeros_like(indices))
        hashes[split] = samples_hash(samples.arrays())[:16]
    assert hashes == HASHES[name]
