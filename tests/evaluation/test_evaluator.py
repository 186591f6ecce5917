"""What the evaluator accepts, what it refuses and how it says so."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

import graphbench
from graphbench.catalog.features import Feature
from graphbench.core.errors import EvaluationError, UnknownDataset
from graphbench.evaluation.score import Score
from graphbench.tasks.evaluator import Evaluator

MASK = Feature.parse("in_tree", ["output", "edge", "mask"])
CLASS = Feature.parse("colour", ["output", "node", "categorical(3)"])
SCALAR = Feature.parse("value", ["output", "graph", "scalar"])
CHOICE = Feature.parse("root", ["output", "node", "mask_one"])
POINTER = Feature.parse("parent", ["output", "node", "pointer"])

TRUTH = np.array([1, 0, 1, 0])
BATCH = np.array([0, 0, 1, 1])


@pytest.fixture
def mask() -> Evaluator:
    return Evaluator.from_features(MASK)


def test_a_dataset_name_is_enough():
    evaluator = graphbench.Evaluator("algoreas/mst_easy")
    score = evaluator.evaluate(TRUTH, np.array([1, 0, 0, 0]))
    assert score.primary_name == "f1"
    assert score.higher_is_better
    assert score.primary == score["f1"] == pytest.approx(2 / 3)
    assert not graphbench.Evaluator("flow_easy").higher_is_better
    with pytest.raises(UnknownDataset, match="mst_easy"):
        graphbench.Evaluator("algoreas/mst_eazy")


def test_a_card_with_several_outputs_is_scored_on_all_or_on_one(card):
    second = Feature.parse("late", ["output", "edge", "mask"])
    double = card.model_copy(update={"features": (*card.features, second)})
    assert Evaluator(card).feature.name == "in_tree"
    assert Evaluator(double, output="late").feature == second
    assert list(Evaluator(double).parts) == ["in_tree", "late"]
    number = Feature.parse("length", ["output", "graph", "scalar"])
    metrics = card.metrics.model_copy(update={"also": ("accuracy", "mae", "r2")})
    mixed = card.model_copy(update={"features": (*card.features, number), "metrics": metrics})
    assert [m.name for m in Evaluator(mixed, output="length").metrics] == ["mae", "r2"]
    assert [m.name for m in Evaluator(mixed, output="in_tree").metrics] == ["f1", "accuracy"]
    with pytest.raises(EvaluationError, match="the metric 'f1' cannot score 'length'"):
        Evaluator(mixed.model_copy(update={"metrics": card.metrics}), output="length")
    with pytest.raises(EvaluationError, match="no output 'nope'"):
        Evaluator(card, output="nope")


def test_score_is_a_mapping_that_explains_itself(mask):
    score = mask.evaluate(TRUTH, TRUTH, BATCH)
    assert dict(score) == score.to_dict() == {"f1": 1.0, "accuracy": 1.0, "f1_per_graph": 1.0}
    assert json.loads(json.dumps(score.to_dict())) == score.to_dict()
    assert repr(score) == "Score(f1=1.0000 ↑, accuracy=1.0000, f1_per_graph=1.0000; 4 items, 2 graphs)"
    assert isinstance(score, Score)
    with pytest.raises(KeyError, match="'recall' was not computed"):
        score["recall"]


def test_a_score_as_json_has_all_there_is_to_say(mask):
    whole = mask.evaluate(TRUTH, TRUTH, BATCH).to_json_dict()
    assert whole == {
        "primary": "f1",
        "higher_is_better": True,
        "metrics": {"f1": 1.0, "accuracy": 1.0, "f1_per_graph": 1.0},
        "items": 4,
        "graphs": 2,
        "undefined": {},
    }
    constant = Evaluator.from_features(SCALAR).evaluate(np.ones(3), np.ones(3)).to_json_dict()
    assert list(constant["metrics"]) == ["mae", "rmse"] and "undefined" in constant["undefined"]["r2"]
    assert json.loads(json.dumps([whole, constant])) == [whole, constant]


def test_the_default_scale_follows_the_kind_of_task():
    for name, expected in (("mst_easy", "probability"), ("co/rb_small:mis", "logit"), ("clrs/bfs", "probability")):
        evaluator = graphbench.Evaluator(name)
        assert evaluator.scores == evaluator.default_scores == expected
        assert graphbench.Evaluator(name, scores="label").scores == "label"
    assert repr(Evaluator.from_features(CLASS)) == (
        "Evaluator(colour: node categorical(3); accuracy, macro_f1; scores='probability')"
    )
    assert repr(graphbench.Evaluator("co/rb_small:mis")).endswith("; scores='logit')")


def test_metrics_over_graphs_are_left_out_without_graphs(mask):
    score = mask.evaluate(TRUTH, TRUTH)
    assert list(score) == ["f1", "accuracy"]
    with pytest.raises(KeyError, match=r"'f1_per_graph'.*batch="):
        score["f1_per_graph"]
    with pytest.raises(EvaluationError, match="f1_per_graph needs the graphs"):
        Evaluator.from_features(MASK, "f1_per_graph").evaluate(TRUTH, TRUTH)


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray,
        torch.as_tensor,
        lambda values: torch.as_tensor(values).to(torch.bfloat16) if np.asarray(values).dtype.kind == "f" else values,
        lambda values: torch.tensor(values, dtype=torch.float32, requires_grad=True),
        list,
        lambda values: [values[:2], values[2:]],
        lambda values: [torch.as_tensor(values[:1]), torch.as_tensor(values[1:])],
    ],
)
def test_arrays_tensors_and_lists_score_the_same(mask, convert):
    predicted = np.array([0.75, 0.25, 0.25, 0.5])
    assert mask.evaluate(convert(TRUTH), convert(predicted))["f1"] == 0.5


def test_lists_give_the_graphs(mask):
    predicted = np.array([1, 0, 0, 1])
    as_lists = mask.evaluate([TRUTH[:2], TRUTH[2:]], [predicted[:2], predicted[2:]])
    assert as_lists.to_dict() == mask.evaluate(TRUTH, predicted, BATCH).to_dict()
    assert as_lists["f1_per_graph"] == 0.5


def test_graph_level_rows_are_graphs():
    score = Evaluator.from_features(SCALAR, expected_graphs=3).evaluate([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    assert score.graphs == 3
    assert score.primary == pytest.approx(1 / 3)


def test_thresholds_of_masks():
    edge = np.array([0.5, 0.49999, 1.0, 0.0])
    assert Evaluator.from_features(MASK).evaluate(np.array([1, 0, 1, 0]), edge)["accuracy"] == 1.0
    logits = np.array([0.0, -0.01, 9.0, -9.0])
    assert Evaluator.from_features(MASK, scores="logit").evaluate(TRUTH, logits)["accuracy"] == 1.0
    labels = np.array([1.0, 0.0, 1.0, 0.0])
    assert Evaluator.from_features(MASK, scores="label").evaluate(TRUTH, labels)["accuracy"] == 1.0


def test_logits_within_the_unit_interval_are_never_taken_for_probabilities():
    logits = np.array([0.1, 0.2, 0.3, 0.4])
    assert Evaluator.from_features(MASK, scores="logit").evaluate(TRUTH, logits)["f1"] == pytest.approx(2 / 3)
    assert Evaluator.from_features(MASK).evaluate(TRUTH, logits)["f1"] == 0.0


@pytest.mark.parametrize(("value", "shown"), [(1.5, "1.5"), (-0.25, "-0.25")])
def test_scores_outside_the_unit_interval_are_refused(mask, value, shown):
    with pytest.raises(EvaluationError, match=rf'y_pred holds {shown} at row 2; .*scores="logit"'):
        mask.evaluate(TRUTH, np.array([0.1, 0.2, value, 0.4]))


def test_classes_take_labels_or_scores():
    evaluator = Evaluator.from_features(CLASS)
    truth = np.array([2, 0])
    assert evaluator.evaluate(truth, np.array([2, 1])).primary == 0.5
    assert evaluator.evaluate(truth, np.array([[-5.0, 0.0, 7.0], [0.1, 0.2, 0.0]])).primary == 0.5
    with pytest.raises(EvaluationError, match=r"y_pred has 2 columns.*'colour' has 3"):
        evaluator.evaluate(truth, np.zeros((2, 2)))
    with pytest.raises(EvaluationError, match=r"y_pred has dtype float64.*integer labels"):
        evaluator.evaluate(truth, np.array([0.2, 0.3]))
    with pytest.raises(EvaluationError, match=r"y_pred holds 3 at row 1; .*class numbers 0 to 2"):
        evaluator.evaluate(truth, np.array([0, 3]))
    with pytest.raises(EvaluationError, match="y_true holds -1 at row 0"):
        evaluator.evaluate(np.array([-1, 0]), truth)


def test_mask_one_takes_the_highest_of_each_graph():
    evaluator = Evaluator.from_features(CHOICE)
    truth = np.array([0, 1, 1, 0, 0])
    scores = np.array([-3.0, -2.0, 0.4, 0.4, 9.0])
    batch = np.array([5, 5, 1, 1, 1])
    assert evaluator.evaluate(truth, scores, batch).primary == 0.5
    scores[4] = 0.0  # now two nodes tie: the first counts
    assert evaluator.evaluate(truth, scores, batch).primary == 1.0
    with pytest.raises(EvaluationError, match=r"mask_one\).*rows' graphs"):
        evaluator.evaluate(truth, scores)


def test_pointers_are_node_numbers():
    evaluator = Evaluator.from_features(POINTER)
    score = evaluator.evaluate(np.array([0, 0, 1, 0]), np.array([0, 1, 1, 0]), BATCH)
    assert score.to_dict() == {"accuracy": 0.75, "accuracy_per_graph": 0.5}
    with pytest.raises(EvaluationError, match="integer node numbers"):
        evaluator.evaluate(TRUTH, TRUTH / 2)


@pytest.mark.parametrize(
    ("truth", "predicted", "batch", "message"),
    [
        (TRUTH, TRUTH[:3], None, "y_pred has 3 rows and y_true 4"),
        (TRUTH, TRUTH[:, None], None, r"y_pred has shape \(4, 1\) but y_true has \(4,\).*squeeze"),
        (np.zeros((2, 2, 2)), np.zeros((2, 2, 2)), None, r"y_true has shape \(2, 2, 2\).*\[items\]"),
        (np.zeros(0), np.zeros(0), None, "nothing to score"),
        ([], [], None, "nothing to score"),
        (np.array(2.0), np.array(2.0), None, r"y_true has shape \(\)"),
        (TRUTH, np.array([0, 1, np.nan, 0]), None, "y_pred holds nan at row 2"),
        (TRUTH, np.array([0, 1, 0, np.inf]), BATCH, r"y_pred holds inf at row 3 \(graph 1\)"),
        (np.array([0, 1, np.nan, 0]), TRUTH, None, "y_true holds nan at row 2"),
        (TRUTH, np.array([0, 1, 2, 0]), None, "y_pred holds 2 at row 2.*'in_tree'"),
        (np.array([0, 1, 0, 5]), TRUTH, None, "y_true holds 5 at row 3.*'in_tree'"),
        (TRUTH, TRUTH, BATCH[:3], r"batch has shape \(3,\).*4 rows"),
        (TRUTH, TRUTH, BATCH / 1.0, "batch has dtype float64"),
        ([TRUTH], [TRUTH], BATCH, "given twice"),
        ([TRUTH, TRUTH], [TRUTH], None, "y_pred has 1 graphs and y_true 2"),
        ([TRUTH, TRUTH], [TRUTH, TRUTH[:2]], None, "graph 1 has 4 targets but 2 predictions"),
        ([TRUTH, TRUTH[:, None]], [TRUTH, TRUTH], None, "differ in their columns"),
        (TRUTH, np.array(list("abcd")), None, "y_pred has dtype <U1"),
        ([[1, 0], [1]], "no", None, "y_pred has dtype <U2"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_its_place(mask, truth, predicted, batch, message):
    with pytest.raises(EvaluationError, match=message):
        mask.evaluate(truth, predicted, batch)


def test_missing_graphs_are_an_error():
    evaluator = Evaluator.from_features(MASK, expected_graphs=3)
    evaluator.update(TRUTH, TRUTH, BATCH)
    with pytest.raises(EvaluationError, match=r"2 graphs.*3 are expected: 1 missing"):
        evaluator.compute()
    evaluator.update(TRUTH, TRUTH, np.zeros(4, dtype=int))
    assert evaluator.compute().graphs == 3
    evaluator.update(TRUTH, TRUTH, BATCH)
    with pytest.raises(EvaluationError, match="2 too many"):
        evaluator.compute()
    with pytest.raises(EvaluationError, match=r"3 graphs.*unknown"):
        evaluator.evaluate(TRUTH, TRUTH)
    with pytest.raises(EvaluationError, match="expected_graphs=0"):
        Evaluator.from_features(MASK, expected_graphs=0)


def test_compute_before_update_and_after_reset(mask):
    with pytest.raises(EvaluationError, match="before any update"):
        mask.compute()
    mask.update(TRUTH, 1 - TRUTH)
    assert mask.compute().primary == 0.0
    mask.reset()
    with pytest.raises(EvaluationError, match="before any update"):
        mask.compute()
    mask.update(TRUTH, TRUTH)
    assert mask.compute().primary == 1.0


def test_a_refused_update_and_evaluate_leave_the_running_score_alone(mask):
    mask.update(TRUTH, TRUTH, BATCH)
    with pytest.raises(EvaluationError):
        mask.update(TRUTH, np.array([np.nan, 0, 0, 0]), BATCH)
    with pytest.raises(EvaluationError, match="some updates name the graphs"):
        mask.update(TRUTH, TRUTH)
    mask.evaluate(TRUTH, 1 - TRUTH)
    score = mask.compute()
    assert (score.primary, score.items_scored, score.graphs) == (1.0, 4, 2)


def test_batches_are_never_averaged(mask):
    mask.update(np.array([1, 1, 1, 1]), np.array([1, 1, 1, 1]))
    mask.update(np.array([1, 0]), np.array([0, 1]))
    assert mask.compute().primary == pytest.approx(0.8)  # the mean of the batches' scores is 0.5


def test_kept_values_do_not_alias_the_callers_arrays():
    evaluator = Evaluator.from_features(SCALAR, "spearman")
    truth = np.array([1.0, 2.0, 3.0])
    predicted = truth.copy()
    evaluator.update(truth, predicted)
    predicted[:] = predicted[::-1].copy()
    assert evaluator.compute().primary == pytest.approx(1.0)


def test_unknown_score_scale():
    with pytest.raises(EvaluationError, match=r"'sigmoid'.*probability, logit, label"):
        Evaluator.from_features(MASK, scores="sigmoid")


def test_several_columns_of_masks_are_pooled():
    feature = MASK
    truth, predicted = np.array([[1, 0], [1, 1]]), np.array([[1, 0], [0, 0]])
    score = Evaluator.from_features(feature).evaluate(truth, predicted, np.array([0, 1]))
    assert score["f1"] == pytest.approx(0.5)
    assert score["f1_per_graph"] == 0.5
    assert score["accuracy"] == 0.5


def test_scoring_needs_no_torch():
    code = "import sys, graphbench.evaluation.evaluator, graphbench.records.record; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
