"""Records of users' scores: which scores are refused, and that Python and the command line make the same record."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
import torch
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import Constant

import graphbench
from graphbench.cli import main
from graphbench.core.errors import ResultError
from graphbench.data.batches.sample_ids import ids_of
from graphbench.evaluation.metrics.bootstrap import LEAST_SAMPLES
from graphbench.records.files import load_records
from graphbench.records.published import published_budget
from graphbench.records.record import RunRecord
from graphbench.tasks.base import named_scores
from graphbench.tasks.registry import task_of
from graphbench.training.evaluate import evaluate_model

TREES, LIMIT = "algoreas/mst_easy", 12


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def trees(root):
    return graphbench.Loader(TREES, root=root, limit=LIMIT, workers=1).load(["val", "test"])


def score_of(batches, dataset=TREES):
    """Return the score of edges that are all taken, batch after batch."""
    evaluator = graphbench.Evaluator(dataset)
    for batch in batches:
        graphs = batch if not isinstance(batch, list) else next(iter(DataLoader(batch, batch_size=len(batch))))
        evaluator.update(batch, torch.ones(graphs.edge_index.shape[1], dtype=torch.bool))
    return evaluator.compute()


def record_of(split, score, name="test", **stated):
    return RunRecord.from_scores({name: split}, {name: score}, model="mine", **stated)


def all_ways(split):
    """Return name -> batches of a split, by every way to load it."""
    return {
        "fast path": split.batches(5),
        "shuffled": split.batches(5, shuffle=True, seed=3),
        "one by one": [split[i] for i in range(len(split))],
        "lists": [[split[i] for i in range(len(split))]],
        "loader": DataLoader(split, batch_size=5, shuffle=True),
        "worker processes": DataLoader(split, batch_size=5, num_workers=1),
    }


def test_all_ways_to_load_a_split_tell_which_samples_were_scored(trees):
    for name, batches in all_ways(trees.test).items():
        score = score_of(batches)
        (ids,) = score.samples
        assert sorted(ids.numbers.tolist()) == list(range(LIMIT)) and ids.split == trees.test.split_id, name
        assert record_of(trees.test, score).graphs_scored == {"test": LIMIT}, name


def test_what_pyg_does_with_batches_keeps_their_samples(trees, root):
    for batch in (next(iter(trees.test.batches(3))), next(iter(DataLoader(trees.test, batch_size=3)))):
        fields = set(batch.keys())
        for same in (copy.copy(batch), copy.deepcopy(batch), batch.clone(), batch.to("cpu"), Constant()(batch)):
            assert ids_of(same).numbers.tolist() == [0, 1, 2]
        assert ids_of(pickle.loads(pickle.dumps(batch))).numbers.tolist() == [0, 1, 2]
        assert ids_of(Constant()(batch)).split == trees.test.split_id and set(batch.keys()) == fields
    assert ids_of(batch.x) is None and ids_of([batch.x]) is None and ids_of(3) is None
    changed = graphbench.Loader(TREES, pre_transform=Constant(), root=root, limit=LIMIT, workers=1).load("test").test
    chosen = changed[[4, 2]]
    for batches in (chosen.batches(2), DataLoader(chosen, batch_size=2)):
        assert ids_of(next(iter(batches))).numbers.tolist() == [4, 2]
    assert record_of(chosen, score_of(DataLoader(chosen, batch_size=1))).graphs_scored == {"test": 2}


def test_fields_of_a_sample_are_saved_and_loaded_without_unpickling(trees, tmp_path):
    graph = trees.test[2]
    torch.save(graph.to_dict(), tmp_path / "graph.pt")
    fields = torch.load(tmp_path / "graph.pt", weights_only=True)
    assert fields["num_nodes"] == graph.num_nodes and fields["num_nodes"].number == 2


def test_nothing_of_a_sample_changes_but_its_number_of_nodes_knows_it(trees):
    graph = trees.test[1]
    assert type(graph.num_nodes) is int and sorted(graph.keys()) == sorted(graph.clone().keys())
    assert "sample_ids" not in graph and "sample_ids" not in next(iter(trees.test.batches(3)))


def test_five_samples_are_never_recorded_as_the_split(trees):
    five = trees.test[:5]
    for batches in all_ways(five).values():
        score = score_of(batches)
        with pytest.raises(ResultError, match=rf"5 samples.*{LIMIT}.*splits\.test\[:100\]"):
            record_of(trees.test, score)
        record = record_of(five, score)
        assert record.graphs_scored == {"test": 5} and record.budget.small is True
    others = trees.test[5:10]
    with pytest.raises(ResultError, match=r"sample 0.*not in the split"):
        record_of(others, score)


def test_five_samples_without_graphs_are_never_recorded_as_the_split(trees):
    batch = next(iter(trees.test.batches(5)))
    owners = batch.batch[batch.edge_index[0]]
    for arguments in ((batch.in_tree, batch.in_tree), (batch.in_tree, batch.in_tree, owners)):
        score = graphbench.Evaluator(TREES).evaluate(*arguments)
        assert score.samples == ()
        with pytest.raises(ResultError, match=r"the split( that is given)? has"):
            record_of(trees.test, score)
    whole = next(iter(trees.test.batches(LIMIT)))
    record = record_of(trees.test, graphbench.Evaluator(TREES).evaluate(whole.in_tree, whole.in_tree))
    assert record.scores_stated == ("test",)  # as nothing says which edges these are


def test_a_batch_that_was_scored_several_times_counts_once(trees):
    for batches in ([next(iter(trees.test.batches(3)))] * 4, list(DataLoader(trees.test[:3], batch_size=3)) * 4):
        score = score_of(batches)
        assert score.graphs == LIMIT  # the number alone would pass
        with pytest.raises(ResultError, match="sample 0 4 times"):
            record_of(trees.test, score)


def test_a_score_of_another_split_is_refused(trees, root):
    for batches in (trees.val.batches(5), DataLoader(trees.val, batch_size=5)):
        score = score_of(batches)
        assert score.graphs == LIMIT
        with pytest.raises(ResultError, match=r"score of test.*val of algoreas/mst_easy"):
            record_of(trees.test, score)
    with pytest.raises(ResultError, match="'test' is 'val' of algoreas/mst_easy"):
        record_of(trees.val, score)
    mixed = score_of([*trees.val[:6].batches(6), *trees.test[:6].batches(6)])
    with pytest.raises(ResultError, match="was measured on val"):
        record_of(trees.test, mixed)
    drawn = graphbench.Loader(TREES, root=root, limit=LIMIT, workers=1, data_seed=1).load("test").test
    with pytest.raises(ResultError, match="draw1"):
        record_of(trees.test, score_of(drawn.batches(5)))
    with pytest.raises(ResultError, match="the splits are of different data"):
        RunRecord.from_scores(
            {"val": trees.val, "test": drawn}, {"val": {"f1": 0.5}, "test": {"f1": 0.5}}, model="mine"
        )


def test_splits_that_were_not_given_are_refused_and_others_leave_no_trace(trees):
    score, given = score_of(trees.test.batches(5)), {"val": trees.val, "test": trees.test}
    for name in ("n192", "tset", "train", "val"):
        with pytest.raises(ResultError, match=f"'{name}'.*splits.*test"):
            RunRecord.from_scores({"test": trees.test}, {"test": score, name: {"f1": 0.5}}, model="mine")
    record = RunRecord.from_scores(given, {"test": score}, model="mine")
    assert record.data_hashes.keys() == record.graphs_scored.keys() == record.scores.keys() == {"test"}
    with pytest.raises(ResultError, match="no split was scored"):
        RunRecord.from_scores(given, {}, model="mine")


def test_metrics_that_the_card_does_not_have_are_refused(trees):
    for scores in ({"f1": 0.5, "made_up": 0.5}, {"r2": 0.5}, {"f1_in_tree": 0.5}):
        with pytest.raises(ResultError, match=f"'{[*scores][-1]}'.*algoreas/mst_easy, which has f1"):
            record_of(trees.test, scores)
    with pytest.raises(ResultError, match="has no score of any metric"):
        record_of(trees.test, {})


def test_replicates_that_do_not_fit_the_number_of_samples_are_refused(trees):
    score = score_of(trees.test.batches(5))
    score.replicates = (0.5,) * 200
    with pytest.raises(ResultError, match=f"200 bootstrap.*{LIMIT}"):
        record_of(trees.test, score)


def test_numbers_alone_are_taken_as_they_are_stated(trees):
    record = record_of(trees.test, {"f1": 0.5}, notes="by hand")
    assert record.scores_stated == ("test",) and record.remarks == "by hand; scores of test as stated"
    assert '"scores_stated"' in record.to_json()
    measured = record_of(trees.test, score_of(trees.test.batches(5)), notes="by hand")
    assert measured.scores_stated == () and measured.remarks == "by hand"


def test_the_smallest_published_budget_is_looked_up(trees):
    least = published_budget(trees.card)
    assert least is not None
    whole = trees.card.model_copy(
        update={"splits": {n: s.model_copy(update={"count": LIMIT}) for n, s in trees.card.splits.items()}}
    )
    split = copy.copy(trees.test)
    split.card = whole
    sizes = {"below": (least - 1, True), "enough": (least, False)}
    for steps, small in sizes.values():
        assert record_of(split, {"f1": 0.5}, steps=steps, batch_size=1).budget.small is small
    assert record_of(split, {"f1": 0.5}, steps=5, batch_size=1, published_samples=5).budget.small is False
    assert record_of(split, {"f1": 0.5}, steps=5, batch_size=1, published_samples=6).budget.small is True


def test_scores_on_a_smaller_network_are_those_of_a_small_run(root):
    name = "social/sim_replies_small"
    split = graphbench.Loader(name, root=root, limit=500, workers=1).load("test").test
    evaluator = graphbench.Evaluator(name)
    for batch in split.batches(1):
        evaluator.update(batch, {f.name: np.zeros_like(batch[f.name].numpy()) for f in split.card.outputs})
    record = record_of(split, evaluator.compute(), steps=10**6, batch_size=1, published_samples=1)
    assert record.budget.small is True and record.budget.label.endswith("fewer users than the dataset has")
    assert record.graphs_scored == {"test": split.card.split("test").count}


def answers_of(dataset, batch):
    """Return some predictions for a batch, in the form of files of the task."""
    if dataset.startswith("clrs_text/"):
        return list(batch.references)
    if dataset.startswith("co/"):
        return np.linspace(-1, 1, batch.num_nodes).astype(np.float32)
    return {name: batch[name].numpy() for name in [f.name for f in graphbench.card(dataset).outputs]}


@pytest.mark.parametrize("dataset", [TREES, "clutrr/gen_23", "clrs/bfs", "co/rb_small:mis", "clrs_text/bfs"])
def test_the_same_statement_makes_the_same_record_from_python_and_the_command_line(dataset, root, tmp_path, capsys):
    splits = graphbench.Loader(dataset, root=root, limit=LIMIT, workers=1).load(["val", "test"])
    task, scores = task_of(splits.card), {}
    for name in ("val", "test"):
        batches = list(task.file_batches(splits[name], LIMIT))
        answers = [answers_of(dataset, batch) for batch in batches]
        (tmp_path / "predictions").mkdir(exist_ok=True)
        task.write_predictions(tmp_path / "predictions" / name, answers)
        evaluator = graphbench.Evaluator(dataset)
        for batch, predictions in zip(batches, answers, strict=True):
            evaluator.update(batch, predictions)
        scores |= named_scores(name, evaluator)
    by_hand = RunRecord.from_scores(
        {name: splits[name] for name in ("val", "test")},
        scores,
        model="mine",
        seed=4,
        steps=5,
        batch_size=4,
        deterministic=True,
    )
    arguments = ["evaluate", dataset, "--predictions", tmp_path / "predictions", "--root", root, "--limit", LIMIT,
                 "--model-name", "mine", "--seed", 4, "--steps", 5, "--batch-size", 4, "--deterministic",
                 "--records", tmp_path / "records"]  # fmt: skip
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert end.value.code == 0, capsys.readouterr()
    (by_command,) = load_records("*", tmp_path / "records")
    first, second = json.loads(by_hand.to_json()), json.loads(by_command.to_json())
    for content in (first, second):
        content.pop("started"), content.pop("digest")
        content.pop("predictions", None)  # hashes of files, which Python's scores have none of
        for values in content["scores"].values():
            values.pop("seconds_per_graph", None)  # a time
    assert first == second
    assert first["budget"]["small"] is True and first["deterministic"] is True and not first.get("scores_stated")
    assert set(first["scores"]) >= {"val", "test"}
    if dataset == "clrs_text/bfs":
        parts = [name for name in first["scores"] if name.startswith("test_n")]
        assert parts and sum(first["graphs_scored"][name] for name in parts) == LIMIT


def test_scores_of_a_function_and_of_its_predictions_share_their_replicates(root, tmp_path, capsys):
    limit = LEAST_SAMPLES + 3
    split = graphbench.Loader(TREES, root=root, limit=limit, workers=1).load(["test"]).test

    def light(batch):
        return batch.weight < 0.3

    by_hand = record_of(split, evaluate_model(light, split, device="cpu"), name="test")
    predictions = np.concatenate([light(batch).numpy() for batch in split.batches(7)])
    np.savez(tmp_path / "test.npz", y_pred=predictions)
    arguments = ["evaluate", TREES, "--predictions", tmp_path / "test.npz", "--root", root, "--limit", limit,
                 "--model-name", "mine", "--records", tmp_path / "records"]  # fmt: skip
    with pytest.raises(SystemExit):
        main([str(argument) for argument in arguments])
    (by_command,) = load_records("*", tmp_path / "records")
    assert by_command.replicates and by_command.predictions.keys() == {"test"}
    assert by_command.model_copy(update={"started": by_hand.started, "predictions": {}}) == by_hand


def test_parts_belong_to_the_split_whose_samples_they_are(root):
    dataset = "clrs_text/bfs"
    splits = graphbench.Loader(dataset, root=root, limit=LIMIT, workers=1).load(["val", "test"])
    scores = {}
    for name in ("val", "test"):
        evaluator = graphbench.Evaluator(dataset)
        for batch in task_of(splits.card).scoring_batches(splits[name], 5):  # by length
            evaluator.update(batch, list(batch.references))
        scores |= named_scores(name, evaluator)
    part = next(name for name in scores if name.startswith("test_n"))
    record = RunRecord.from_scores({"test": splits.test}, {"test": scores["test"], part: scores[part]}, model="mine")
    assert record.graphs_scored[part] == scores[part].graphs < LIMIT
    other = next(score for name, score in scores.items() if name.startswith("val_n"))
    with pytest.raises(ResultError, match="was measured on val"):
        RunRecord.from_scores({"test": splits.test}, {"test": scores["test"], part: other}, model="mine")
    with pytest.raises(ResultError, match=f"'{part}'.*splits.*val"):
        RunRecord.from_scores({"val": splits.val}, {part: scores[part]}, model="mine")


def test_a_part_of_the_edges_is_not_recorded_as_the_split(trees):
    evaluator = graphbench.Evaluator(TREES)
    for batch in trees.test.batches(5):
        kept = batch.in_tree > 0
        batch.edge_index, batch.in_tree = batch.edge_index[:, kept], batch.in_tree[kept]
        evaluator.update(batch, torch.ones(int(kept.sum()), dtype=torch.bool))
    score = evaluator.compute()
    assert score.primary == 1.0
    with pytest.raises(ResultError, match=r"values of in_tree .* the split has"):
        record_of(trees.test, score)


def test_other_targets_are_not_recorded_as_those_of_the_split(trees):
    evaluator = graphbench.Evaluator(TREES)
    for batch in trees.test.batches(5):
        batch.in_tree[:] = 1
        evaluator.update(batch, torch.ones(batch.edge_index.shape[1], dtype=torch.bool))
    with pytest.raises(ResultError, match="score all targets as stored"):
        record_of(trees.test, evaluator.compute())


def test_targets_that_a_transform_changes_are_refused(root):
    def scaled(data):
        data.in_tree = 1 - data.in_tree
        return data

    splits = graphbench.Loader(TREES, transform=scaled, root=root, limit=LIMIT, workers=1).load(["test"])
    with pytest.raises(ResultError, match="score all targets as stored"):
        record_of(splits.test, score_of(splits.test.batches(5)))


def test_replicates_of_python_are_those_of_records_in_any_order(root):
    limit = LEAST_SAMPLES + 4
    test = graphbench.Loader(TREES, root=root, limit=limit, workers=1).load(["test"]).test
    expected = evaluate_model(lambda batch: torch.ones(batch.edge_index.shape[1], dtype=torch.bool), test).replicates
    assert len(set(expected)) > 1
    for name, batches in all_ways(test).items():
        score = score_of(batches)
        assert score.replicates == pytest.approx(expected), name
        assert record_of(test, score).replicates["test"] == pytest.approx(list(expected)), name
    (whole,) = test.batches(limit)
    ones = torch.ones(whole.edge_index.shape[1], dtype=torch.bool)
    assert graphbench.Evaluator(TREES).evaluate(whole, ones).replicates == pytest.approx(expected)


def test_replicates_of_another_seed_cannot_be_paired(root):
    test = graphbench.Loader(TREES, root=root, limit=LEAST_SAMPLES, workers=1).load(["test"]).test
    evaluator = graphbench.Evaluator(TREES)
    evaluator.draw_replicates(7)
    for batch in test.batches(5):
        evaluator.update(batch, torch.ones(batch.edge_index.shape[1], dtype=torch.bool))
    with pytest.raises(ResultError, match=r"seed 7.*draw_replicates\(\)"):
        record_of(test, evaluator.compute())


def test_without_the_samples_there_are_no_replicates(root):
    test = graphbench.Loader(TREES, root=root, limit=LEAST_SAMPLES, workers=1).load(["test"]).test
    evaluator = graphbench.Evaluator(TREES)
    first, second = test.batches(LEAST_SAMPLES // 2)
    evaluator.update(first, first.in_tree)
    owners = second.batch[second.edge_index[0]]
    evaluator.update(second.in_tree, second.in_tree, owners)
    assert evaluator.compute().replicates == ()


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"seed": -1}, "seed"),
        ({"steps": 0}, "steps"),
        ({"steps": True}, "steps"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"parameters": -3}, "parameters"),
        ({"notes": b"x"}, "notes"),
        ({"notes": "half \ud800"}, "surrogate"),
        ({"config": {"a": float("nan")}}, "config"),
        ({"published_samples": 0}, "published_samples"),
    ],
)
def test_python_refuses_what_the_command_line_refuses(trees, stated, words):
    with pytest.raises(ResultError, match=words):
        record_of(trees.test, {"f1": 0.5}, **stated)


@pytest.mark.parametrize("value", ["1", None, True])
def test_scores_are_numbers(trees, value):
    with pytest.raises(ResultError, match="give a number"):
        record_of(trees.test, {"f1": value})
