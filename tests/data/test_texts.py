"""Features of type text: from strings to the file and back, in samples, batches, hashes and scores."""

import pickle
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature
from graphbench.core.errors import CardError, EvaluationError, GenerationError, StoreError
from graphbench.core.ragged import offsets
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import Texts
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.build.generation import ensure_split
from graphbench.data.components.domain import find
from graphbench.data.store import shards
from graphbench.data.store.layout import Manifest
from graphbench.evaluation.trivial import most_frequent_answer, trivial_scores
from graphbench.tasks.evaluator import Evaluator

STRINGS = st.lists(st.text(max_size=8), min_size=1, max_size=9)
COUNT = 23


def story(index: int) -> str:
    return f"Tale {index}: " + "äé €😀 "[: index % 7] * (index % 3)


@given(STRINGS)
def test_strings_come_back(strings: list[str]) -> None:
    texts = Texts.of(strings)
    assert len(texts) == len(strings)
    assert texts.strings() == strings
    assert texts.content.nbytes == sum(len(s.encode()) for s in strings)


@settings(deadline=None)  # the first run compiles
@given(STRINGS, st.data())
def test_rows_are_chosen_as_from_a_list(strings: list[str], data: st.DataObject) -> None:
    texts = Texts.of(strings)
    first, last = data.draw(st.tuples(*[st.integers(0, len(strings))] * 2))
    assert texts[first:last].strings() == strings[first:last]
    rows = data.draw(st.lists(st.integers(0, len(strings) - 1)))
    assert texts[np.array(rows, np.int64)].strings() == [strings[row] for row in rows]
    counts = np.array([last - first if last > first else 0, len(strings) - last], np.int64)
    runs = texts.take(np.array([first, last]), offsets(counts))
    assert runs.strings() == [*strings[first:last], *strings[last:]]


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(StoreError, match=r"not UTF-8.*delete its file"):
        Texts(np.array([0xFF, 0xFE], np.uint8), np.array([0, 2])).strings()


@pytest.mark.parametrize("words", [["input", "edge", "text"], ["hint", "graph", "text"]])
def test_where_text_does_not_belong(words: list[str]) -> None:
    with pytest.raises(CardError, match="texts belong to nodes or graphs"):
        Feature.parse("story", words)


@pytest.fixture
def texts_card(make_card: Callable[..., Card], monkeypatch: pytest.MonkeyPatch) -> Card:
    """The toy trees with a story per graph, which is the output, and a name per node."""
    real = find("generator", "algoreas.mst")

    def generate(parameters: Any, key: Any, indices: Any, attempts: Any) -> Samples:
        samples = real.generate(parameters, key, indices, attempts)
        stories = Texts.of(story(i) for i in indices.tolist())
        names = Texts.of(
            f"n{i}/{u}" for i, n in zip(indices.tolist(), samples.num_nodes, strict=True) for u in range(n)
        )
        return replace(samples, values={"weight": samples.values["weight"], "story": stories, "name": names})

    monkeypatch.setattr(shards, "find", lambda kind, name: replace(real, generate=generate))
    features = {
        "weight": ["input", "edge", "scalar"],
        "story": ["output", "graph", "text"],
        "name": ["meta", "node", "text"],
    }
    return make_card(COUNT, features=features, metrics={"primary": "exact_match"})


def opened(card: Card, root: Path, **options: Any) -> GraphDataset:
    return GraphDataset(card, "train", ensure_split(card, "train", root, workers=1, shard_size=5), **options)


def test_samples_hold_their_own_texts(texts_card: Card, tmp_path: Path) -> None:
    dataset = opened(texts_card, tmp_path)
    for i in (0, 7, COUNT - 1):
        assert dataset[i].story == dataset[i].y == story(i)
        assert dataset[i].name == [f"n{i}/{u}" for u in range(8)]
    assert dataset[[3, 1]][0].story == story(3)
    assert dataset.story == [story(i) for i in range(COUNT)]
    assert pickle.loads(pickle.dumps(dataset))[4].story == story(4)


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_of_texts_are_those_of_pyg(
    texts_card: Card, tmp_path: Path, shuffle: bool, assert_equal_batches: Callable[[Batch, Batch], None]
) -> None:
    dataset = opened(texts_card, tmp_path)
    seen = []
    for batch in dataset.batches(10, shuffle=shuffle):
        numbers = [int(text[5:].split(":")[0]) for text in batch.story]
        seen += numbers
        assert_equal_batches(batch, Batch.from_data_list([dataset[i] for i in numbers]))
        assert batch[2].story == story(numbers[2])
        assert batch[2].name == [f"n{numbers[2]}/{u}" for u in range(8)]
        assert list(batch.to(dataset[0].weight.device).story) == [story(i) for i in numbers]
    assert Counter(seen) == Counter(range(COUNT))
    assert not dataset.make_batch(np.zeros(0, np.int64)).story
    (loaded,) = DataLoader(dataset, batch_size=COUNT)
    assert_equal_batches(next(iter(dataset.batches(COUNT))), loaded)


def test_any_shards_and_executor_write_the_same_bytes(
    texts_card: Card, tmp_path: Path, facts_of: Callable[[Path], dict[str, Any]]
) -> None:
    whole = facts_of(ensure_split(texts_card, "train", tmp_path / "a", workers=1))
    with ThreadPoolExecutor(2) as executor:
        parts = facts_of(ensure_split(texts_card, "train", tmp_path / "b", executor=executor, shard_size=4))
    assert whole == parts


def test_the_first_samples_hash_like_the_small_file(texts_card: Card, tmp_path: Path) -> None:
    part = opened(texts_card, tmp_path / "long", limit=6)
    short = ensure_split(texts_card, "train", tmp_path / "short", limit=6, workers=1)
    assert part.content_hash == Manifest(short.parent).entry(short.name)["content"]  # type: ignore[index]


def test_a_text_for_each_graph(texts_card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = shards.find("generator", "")

    def generate(*arguments: Any) -> Samples:
        samples = broken.generate(*arguments)
        return replace(samples, values={**samples.values, "story": samples.values["story"][:1]})

    monkeypatch.setattr(shards, "find", lambda kind, name: replace(broken, generate=generate))
    with pytest.raises(GenerationError, match=r"story has 1 rows, not \d+"):
        ensure_split(texts_card, "train", tmp_path, workers=1)


STORY = Feature.parse("answer", ["output", "graph", "text"])


def test_texts_are_scored_by_their_last_answer() -> None:
    evaluator = Evaluator.from_features(STORY)
    score = evaluator.evaluate(["[0 1] | [1 2]\n\n", "3", "yes"], ["I think it is [1 2].", "[3 4]", " yes\n"])
    assert score["exact_match"] == pytest.approx(2 / 3)
    assert (score.graphs, score.items_scored) == (3, 3)
    evaluator.update(["[1]"], ["[1]"])
    evaluator.update(["[1]", "2"], ["[2]", "2"])
    assert evaluator.compute().primary == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("truth", "predicted", "words"),
    [
        (["1", "2"], ["1"], "y_pred has 1 texts and y_true 2.*answer"),
        ([], [], "nothing to score"),
        (["1"], [None], r"y_pred\[0\] is None, no string"),
        ([1.0], ["1"], r"y_true\[0\] is 1.0, no string"),
        (None, ["1"], r"y_true\[0\] is None, no string"),
    ],
)
def test_predictions_that_are_no_texts(truth: Any, predicted: Any, words: str) -> None:
    with pytest.raises(EvaluationError, match=words):
        Evaluator.from_features(STORY).evaluate(truth, predicted)


def test_the_trivial_answer() -> None:
    train = ["0 | 5\n\n", "7", "1, 2 | 5\n\n", "7", "9"]
    assert most_frequent_answer(train) == "5"
    assert trivial_scores(STORY, train, ["| 5\n\n", "6"], None, ["exact_match"]) == {"majority": {"exact_match": 0.5}}
