"""Texts: samples as strings, and scores of a split and of every problem size in it."""

import pytest

import graphbench
from graphbench.core.errors import CardError, EvaluationError
from graphbench.data.batches.text_batch import TextBatch
from graphbench.evaluation.groups import by_size, split_and_size
from graphbench.tasks.base import named_scores
from graphbench.tasks.registry import task_of
from graphbench.tasks.text.prompts import Prompts
from graphbench.tasks.text.task import TextTask

ID = "clrs_text/minimum"


@pytest.fixture(scope="module")
def splits(tmp_path_factory):
    return graphbench.Loader(ID, root=tmp_path_factory.mktemp("data"), limit=13, workers=1).load(())


def prompts_of(split):
    return Prompts.of(split, "prompt", "reference")


def test_samples_are_the_splits_strings(splits):
    samples = prompts_of(splits.test)
    assert len(samples) == 13
    assert [samples.prompts[3], samples.references[3]] == [splits.test[3].prompt, splits.test[3].reference]
    assert samples.sizes == list(range(4, 17))
    assert prompts_of(splits.test[2:5]).prompts == samples.prompts[2:5]
    assert len(prompts_of(splits.test[:0])) == 0
    few = samples.take([5, 1])
    assert (few.prompts, few.sizes) == ([samples.prompts[5], samples.prompts[1]], [9, 5])
    assert isinstance(task_of(splits.card), TextTask)
    assert not isinstance(task_of(graphbench.card("mst_easy")), TextTask)
    plain = graphbench.card("mst_easy")
    plain = plain.model_copy(update={"task": plain.task.model_copy(update={"rules": {}})})
    with pytest.raises(CardError, match=r"algoreas/mst_easy\): a text task"):
        TextTask(plain)


def test_scores_of_a_split_and_of_its_sizes(splits):
    samples = TextBatch(["a", "b", "c", "d"], ["1\n\n", "2\n\n", "3\n\n", "4\n\n"], [16, 5, 16, 4])
    evaluator = task_of(splits.card).evaluator()
    evaluator.update(samples, ["1", "2", "nothing", "5"])
    scores = named_scores("test", evaluator)
    assert {name: score.primary for name, score in scores.items()} == {
        "test": 0.5, "test_n4": 0.0, "test_n5": 1.0, "test_n16": 0.5
    }  # fmt: skip
    assert [score.graphs for score in scores.values()] == [4, 1, 1, 2]
    whole, sizes = by_size(scores)
    assert list(whole) == ["test"]
    assert [(size, list(own)) for size, own in sizes.items()] == [(4, ["test"]), (5, ["test"]), (16, ["test"])]
    assert sizes[16]["test"]["exact_match"] == 0.5


def test_sizes_are_known_from_batches_alone_and_forgotten_by_reset(splits):
    (batch,) = splits.test.batches(13)
    evaluator = graphbench.Evaluator(ID)
    evaluator.update(batch["reference"], batch["reference"])
    assert evaluator.groups() == {}
    evaluator.update(batch, batch["reference"])
    assert list(evaluator.groups()) == [f"n{size}" for size in range(4, 17)]
    evaluator.reset()
    assert evaluator.groups() == {}
    with pytest.raises(EvaluationError, match="one text per prompt"):
        evaluator.update(batch, batch["reference"], batch.batch)


def test_names_of_sizes_are_no_other_names():
    assert split_and_size("val_multi_n7") == ("val_multi", 7)
    for name in ("test", "n16", "val_multi_size", "test_n", "test_n1x"):
        assert split_and_size(name) == (name, None)
    assert by_size({"n16": {"f1": 1.0}, "test_n4": {"f1": 0.5}}) == ({"n16": {"f1": 1.0}, "test_n4": {"f1": 0.5}}, {})
