"""The metric of torchmetrics against the evaluator, in one process and in two."""

import copy
import pickle

import pytest
import torch
from torch import multiprocessing

import graphbench
from graphbench.core.errors import ArgumentError, EvaluationError

torchmetrics = pytest.importorskip("torchmetrics", reason="pip install 'graphbench[metrics]'")

from graphbench.interop import EvaluatorMetric  # noqa: E402 (needs it)


def predictions(split, size=7):
    generator = torch.Generator().manual_seed(0)
    return [(batch, torch.rand(batch.num_edges, generator=generator)) for batch in split.batches(size)]


def as_floats(found):
    return {name: value.item() for name, value in found.items()}


def test_the_numbers_are_those_of_the_evaluator(small):
    updates = predictions(small("algoreas/mst_easy").train)
    ours, theirs = EvaluatorMetric("mst_easy"), graphbench.Evaluator("mst_easy")
    assert isinstance(ours, torchmetrics.Metric) and ours.higher_is_better
    for batch, predicted in updates:
        ours.update(batch, predicted)
        theirs.update(batch, predicted)
    assert as_floats(ours.compute()) == theirs.compute().to_dict()
    assert next(iter(ours.compute())) == "f1"
    alone = torchmetrics.classification.BinaryF1Score()
    alone.update(torch.cat([p for _, p in updates]), torch.cat([b.y for b, _ in updates]))
    assert as_floats(ours.compute())["f1"] == pytest.approx(alone.compute().item())
    ours.reset()
    ours.update(*updates[0])
    assert as_floats(ours.compute()) == theirs.evaluate(*updates[0]).to_dict()


def test_a_call_scores_the_batch_and_adds_to_the_sums(small):
    updates = predictions(small("algoreas/mst_easy").train)
    metric, evaluator = EvaluatorMetric("mst_easy"), graphbench.Evaluator("mst_easy")
    for batch, predicted in updates:
        assert as_floats(metric(batch, predicted)) == evaluator.evaluate(batch, predicted).to_dict()
        assert as_floats(metric._forward_cache) == evaluator.evaluate(batch, predicted).to_dict()  # read by Lightning
        evaluator.update(batch, predicted)
    assert as_floats(metric.compute()) == evaluator.compute().to_dict()


def test_a_share_without_graphs_adds_nothing(small):
    split = small("algoreas/mst_easy").train[:21]
    full, empty = split.batches(20, share=(1, 2))
    metric = EvaluatorMetric("mst_easy")
    metric.update(full, torch.ones(full.num_edges))
    before = as_floats(metric.compute())
    metric.update(empty, torch.ones(0))
    assert metric(empty, torch.ones(0))["f1"].isnan()
    assert as_floats(metric.compute()) == before


def test_metrics_of_one_evaluator_have_sums_of_their_own(small):
    (batch, predicted), *_ = predictions(small("algoreas/mst_easy").train)
    evaluator = graphbench.Evaluator("mst_easy")
    first, second = EvaluatorMetric(evaluator), EvaluatorMetric(evaluator)
    first.update(batch, predicted)
    second.update(batch, torch.zeros_like(predicted))
    assert as_floats(first.compute()) == evaluator.evaluate(batch, predicted).to_dict()


def test_one_metric_alone_in_a_collection(small):
    updates = predictions(small("algoreas/mst_easy").train)
    collection = torchmetrics.MetricCollection(
        {name: EvaluatorMetric("mst_easy", only=name) for name in ("f1", "accuracy")}, compute_groups=False
    )
    for update in updates:
        collection.update(*update)
    evaluator = graphbench.Evaluator("mst_easy")
    for update in updates:
        evaluator.update(*update)
    assert as_floats(collection.compute()) == {name: evaluator.compute()[name] for name in ("accuracy", "f1")}
    assert EvaluatorMetric("flow_easy", only="primary").higher_is_better is False
    with pytest.raises(ArgumentError, match=r"'f2'.*f1, accuracy"):
        EvaluatorMetric("mst_easy", only="f2")


def test_copies_are_independent(small):
    (first, second, *_) = predictions(small("algoreas/mst_easy").train)
    metric = EvaluatorMetric("mst_easy")
    metric.update(*first)
    for twin in (copy.deepcopy(metric), metric.clone(), pickle.loads(pickle.dumps(metric))):
        twin.update(*second)
        assert as_floats(twin.compute()) != as_floats(metric.compute())
    with pytest.raises(EvaluationError, match="y_pred has"):
        metric.update(first[0], first[1][:3])


def _score(rank, path, updates, queue):
    torch.distributed.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2)
    metric = EvaluatorMetric("mst_easy")
    for update in updates[rank::2]:
        metric.update(*update)
    queue.put((rank, as_floats(metric.compute()), metric.score().graphs))
    torch.distributed.destroy_process_group()


def test_two_processes_score_all_graphs_together(small, tmp_path):
    updates = predictions(small("algoreas/mst_easy").train)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    arguments = (tmp_path / "meeting", updates, queue)
    workers = [context.Process(target=_score, args=(rank, *arguments)) for rank in (0, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    whole = graphbench.Evaluator("mst_easy")
    for update in updates:
        whole.update(*update)
    for _ in workers:
        _, found, graphs = queue.get()
        assert found == whole.compute().to_dict() and graphs == 40
