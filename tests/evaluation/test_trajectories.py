"""Scores of algorithms' outputs against the reference's own evaluation."""

from pathlib import Path

import numpy as np
import pytest
import sklearn.metrics as sk
import torch

from graphbench import card
from graphbench.catalog.features import Feature, Kind
from graphbench.core.errors import EvaluationError
from graphbench.domains.clrs.names import NAMES
from graphbench.tasks.evaluator import Evaluator
from graphbench.tasks.trace.evaluator import TraceEvaluator, trivial_outputs

GOLDEN = np.load(Path(__file__).parents[1] / "domains" / "clrs" / "golden" / "eval.npz")


def in_batch_form(feature, value):
    if feature.kind is Kind.MASK_ONE:
        return value.argmax(-1)
    if feature.kind is Kind.CATEGORICAL:
        return np.where((value == -1).any(-1), -1, value.argmax(-1))
    return value


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_the_reference_s(name):
    outputs = card(f"clrs/{name}").outputs
    values = {
        kind: {f.name: in_batch_form(f, GOLDEN[f"{name}/{kind}/{f.name}"]) for f in outputs}
        for kind in ("truth", "pred")
    }
    whole = TraceEvaluator(outputs)
    whole.update(values["truth"], values["pred"])
    halves = TraceEvaluator(outputs)
    for part in (slice(0, 3), slice(3, 8)):
        halves.update(*({k: v[part] for k, v in values[kind].items()} for kind in ("truth", "pred")))
    for scores in (whole.compute(), halves.compute()):
        assert scores.primary == pytest.approx(float(GOLDEN[f"{name}/score/score"]), abs=1e-12)
        assert scores.graphs == 8
        for f in outputs if len(outputs) > 1 else ():
            assert scores[f"score_{f.name}"] == pytest.approx(float(GOLDEN[f"{name}/score/{f.name}"]), abs=1e-12)


def one_hot(feature, value, nodes):
    """Return numbers in the reference's form: one axis more, all -1 where masked."""
    rows = np.eye(feature.classes or nodes)[np.maximum(value, 0).astype(int)]
    return np.where((value == -1)[..., None], -1.0, rows)


@pytest.mark.parametrize("name", NAMES)
def test_outputs_in_the_reference_s_one_hot_form_score_as_numbers_do(name):
    outputs = card(f"clrs/{name}").outputs
    golden = {kind: {f.name: GOLDEN[f"{name}/{kind}/{f.name}"] for f in outputs} for kind in ("truth", "pred")}
    numbers = {kind: {f.name: in_batch_form(f, own[f.name]) for f in outputs} for kind, own in golden.items()}
    rows = {
        kind: {
            f.name: one_hot(f, own[f.name], 8) if f.kind in (Kind.POINTER, Kind.PERMUTATION) else golden[kind][f.name]
            for f in outputs
        }
        for kind, own in numbers.items()
    }
    evaluator = Evaluator(f"clrs/{name}")
    expected = evaluator.evaluate(numbers["truth"], numbers["pred"])
    assert expected.primary == pytest.approx(float(GOLDEN[f"{name}/score/score"]), abs=1e-12)
    assert evaluator.evaluate(golden["truth"], golden["pred"]) == expected
    assert evaluator.evaluate(rows["truth"], rows["pred"]) == expected
    assert evaluator.evaluate(numbers["truth"], rows["pred"]) == expected
    shifted = {f.name: rows["pred"][f.name] - (0 if f.kind is Kind.MASK else 1) for f in outputs}
    assert evaluator.evaluate(rows["truth"], shifted) == expected  # scores, of which the highest counts


def test_one_hot_rows_that_are_no_rows_of_the_output_are_refused():
    truth = np.array([[[0, 1], [-1, 3]]])
    evaluator = Evaluator("clrs/lcs_length")
    (feature,) = card("clrs/lcs_length").outputs
    rows = one_hot(feature, truth, 2)
    assert (rows == -1).all(axis=-1).sum() == 1
    other = rows.copy()
    other[0, 1, 0] = [0.0, 1.0, 0.0, 0.0]  # a prediction where nothing counts
    assert evaluator.evaluate(rows, other).primary == evaluator.evaluate(truth, rows).primary == 1
    marked = np.where((rows == -1).all(axis=-1, keepdims=True), [0.0, 0.0, 0.0, -1.0], rows)  # the reference's way
    assert evaluator.evaluate(marked, rows) == evaluator.evaluate(marked, marked) == evaluator.evaluate(truth, truth)
    for wrong, message in (
        (rows[..., :3], "has 3 values per item; 'b' has 4 classes, one each"),
        (np.where(rows == 1, np.nan, rows), "holds nan at row 0"),
        (rows[:, :1], r"has shape \(1, 1, 2\); give \[B, n, n\]"),
    ):
        with pytest.raises(EvaluationError, match=message):
            evaluator.evaluate(truth, wrong)
    with pytest.raises(EvaluationError, match="holds -1 at row 0, column 0, 1"):
        evaluator.evaluate(truth, np.where(np.eye(2, dtype=bool)[None, ::-1, :, None], -1.0, rows))


def test_further_metrics_of_traces_equal_scikit_learn():
    (feature,) = card("clrs/graham_scan").outputs
    rng = np.random.default_rng(4)
    truth, predicted = rng.integers(0, 2, (12, 5)), rng.integers(0, 2, (12, 5))
    predicted[:3] = truth[:3]
    truth[rng.random(truth.shape) < 0.2] = -1
    truth[5] = -1  # nothing counts in this sample, so it is none of accuracy_per_graph
    counted = truth != -1
    metrics = ("f1", "precision", "recall", "accuracy", "accuracy_per_graph")
    evaluator = TraceEvaluator([feature], "score", metrics)
    for part in (slice(0, 4), slice(4, 12)):
        evaluator.update({feature.name: truth[part]}, {feature.name: predicted[part]})
    found = evaluator.compute()
    assert list(found) == ["score", *metrics] and found.graphs == 12
    pair = (truth[counted], predicted[counted])
    assert found["score"] == found["f1"] == pytest.approx(sk.f1_score(*pair), rel=1e-12)
    assert found["precision"] == pytest.approx(sk.precision_score(*pair), rel=1e-12)
    assert found["recall"] == pytest.approx(sk.recall_score(*pair), rel=1e-12)
    assert found["accuracy"] == pytest.approx(sk.accuracy_score(*pair), rel=1e-12)
    own = [sk.accuracy_score(t[c], p[c]) == 1 for t, p, c in zip(truth, predicted, counted, strict=True) if c.any()]
    assert found["accuracy_per_graph"] == pytest.approx(np.mean(own)) and 0 < np.mean(own) < 1


def test_further_metrics_of_several_outputs_and_weights():
    outputs = card("clrs/topological_sort").outputs
    rng = np.random.default_rng(5)
    truth = {"topo": rng.integers(0, 4, (9, 4)), "topo_head": rng.integers(0, 4, 9)}
    wrong = {"topo": truth["topo"].copy(), "topo_head": np.where(np.arange(9) < 4, truth["topo_head"], 3)}
    wrong["topo"][2:5, 1] = (wrong["topo"][2:5, 1] + 1) % 4
    score = TraceEvaluator(outputs, "score", ("accuracy", "accuracy_per_graph")).evaluate(truth, wrong)
    expected = {
        name: sk.accuracy_score(truth[name].ravel(), wrong[name].ravel()) for name in ("topo", "topo_head")
    }  # fmt: skip
    assert {name: score[f"accuracy_{name}"] for name in expected} == pytest.approx(expected)
    assert score["accuracy"] == score["score"] == pytest.approx(np.mean(list(expected.values())))
    assert score["accuracy_per_graph_topo"] == pytest.approx(6 / 9)
    weighted = TraceEvaluator(outputs, weights={"topo": 3.0}).evaluate(truth, wrong)
    assert weighted.primary == pytest.approx((3 * expected["topo"] + expected["topo_head"]) / 4)
    with pytest.raises(EvaluationError, match="'macro_f1' cannot score 'topo'"):
        TraceEvaluator(outputs, "score", ("macro_f1",))


def test_the_registered_score_is_f1_of_masks():
    mask = Feature.parse("m", ["output", "node", "mask"])
    evaluator = Evaluator.from_features(mask, "score", ("f1", "accuracy"))
    truth, predicted = np.array([1, 1, 0, 0, 0]), np.array([1, 0, 1, 0, 0])
    score = evaluator.evaluate(truth, predicted)
    assert score.primary == score["f1"] == pytest.approx(sk.f1_score(truth, predicted)) != score["accuracy"]
    nothing = np.zeros(4, int)
    empty = evaluator.evaluate(nothing, nothing)
    assert (empty.primary, empty["f1"]) == (1, 0)  # the reference's convention, and that of F1 alone
    assert evaluator.evaluate(nothing, nothing + 1).primary == 0
    both = {"in_hull": np.zeros((2, 3), int)}
    assert Evaluator("clrs/graham_scan").evaluate(both, both).primary == 1
    pointer = Feature.parse("p", ["output", "node", "pointer"])
    assert Evaluator.from_features(pointer, "score").evaluate([0, 1, 2], [0, 1, 1]).primary == pytest.approx(2 / 3)
    with pytest.raises(EvaluationError, match="'score' cannot score 'v'"):
        Evaluator.from_features(Feature.parse("v", ["output", "node", "scalar"]), "score")


def test_bad_outputs_are_named():
    scores = TraceEvaluator(card("clrs/topological_sort").outputs)
    with pytest.raises(EvaluationError, match="before any update"):
        scores.compute()
    truth = {"topo": np.zeros((2, 5)), "topo_head": np.zeros(2)}
    bad = np.zeros((2, 5))
    bad[1, 2] = np.nan
    refused = {
        "y_pred lacks the output 'topo_head'; it has topo": {"topo": np.zeros((2, 5))},
        r"y_pred\['topo'\] has shape \(2, 4\) but": {"topo": np.zeros((2, 4)), "topo_head": np.zeros(2)},
        r"y_pred\['topo'\] holds nan at row 1, column 2 .*; check the model": {"topo": bad, "topo_head": np.zeros(2)},
        "y_pred is a ndarray; give a mapping": np.zeros((2, 5)),
    }
    for message, predicted in refused.items():
        with pytest.raises(EvaluationError, match=message):
            scores.update(truth, predicted)
    with pytest.raises(EvaluationError, match="samples: 'topo' 2, 'topo_head' 3"):
        scores.update(truth | {"topo_head": np.zeros(3)}, truth | {"topo_head": np.zeros(3)})


def test_an_update_that_raises_changes_nothing():
    evaluator = Evaluator("clrs/topological_sort")
    truth = {"topo": np.array([[1, 2, 2], [0, 0, 1]]), "topo_head": np.array([0, 2])}
    wrong = {"topo": np.zeros((2, 3), int)}
    for bad in (wrong, wrong | {"topo_head": np.array([0, 3])}, wrong | {"topo_head": np.zeros(3, int)}):
        with pytest.raises(EvaluationError):
            evaluator.update(truth, bad)
    evaluator.update(truth, truth)
    assert evaluator.compute().primary == 1
    assert evaluator.compute().graphs == 2


@pytest.mark.parametrize(
    ("dataset", "truth", "predicted", "message"),
    [
        ("bfs", [[0, 0, 1]], [[0, 0, 99]], "holds 99 at row 0, column 2; 'pi' .* takes node numbers 0 to 2"),
        ("bfs", [[0, 0, 1]], [[0, 3.3, 1]], "holds 3.3 at row 0, column 1"),
        ("bfs", [[0, 0, 1]], [[0, -1, 1]], "holds -1 at row 0, column 1"),
        ("bfs", [[0, 0, 1]], [["0", "0", "1"]], "dtype <U1"),
        ("bfs", [[0, 0, 1]], np.zeros((1, 3), complex), "has dtype complex128"),
        ("bfs", [[0, 0, 1]], [[0, 0], [1]], "y_pred.* is no array"),
        ("bfs", [0, 0, 1], [0, 0, 1], r"y_true\['pi'\] has shape \(3,\).*\[B, n\]"),
        ("bfs", np.zeros((0, 3)), np.zeros((0, 3)), "there is nothing to score"),
        ("bfs", [[0, 5, 1]], [[0, 0, 1]], r"y_true\['pi'\] holds 5"),
        ("minimum", [1], [1.5], "1.5 at row 0.*'min'"),
        ("graham_scan", [[0, 1, 1]], [[0, 7, 1]], "7 at row 0, column 1.*'in_hull'"),
        ("graham_scan", [[0, 1, 1]], [[0, -1, 1]], "-1 at row 0, column 1; labels"),
        ("graham_scan", [[0, 1, 1]], [[0.1, 3.2, 0.9]], "holds 3.2 at .* a probability lies in"),
        ("graham_scan", [[0, 1, 1]], [[0.1, np.inf, 0.9]], "holds inf at row 0, column 1"),
        ("graham_scan", [[0, 2, 1]], [[0, 1, 1]], r"y_true\['in_hull'\] holds 2 .* targets 0 and 1, and -1"),
        ("bridges", np.zeros((1, 2, 3)), np.zeros((1, 2, 3)), r"has shape \(1, 2, 3\); give \[B, n, n\]"),
        ("bridges", np.zeros((1, 2, 2)), np.full((1, 2, 2), -1), "-1 at row 0, column 0, 0"),
        ("lcs_length", np.zeros((1, 2, 2)), np.full((1, 2, 2), 4), "holds 4 at .* takes class numbers 0 to 3"),
    ],
)  # fmt: skip
def test_values_that_no_output_has_are_refused(dataset, truth, predicted, message):
    with pytest.raises(EvaluationError, match=message):
        Evaluator(f"clrs/{dataset}").evaluate(truth, predicted)


def test_arguments_that_mean_nothing_are_refused():
    with pytest.raises(EvaluationError, match="expected_graphs=-1 must be positive"):
        Evaluator("clrs/bfs", expected_graphs=-1)
    with pytest.raises(EvaluationError, match="scores='logits' is unknown"):
        Evaluator("clrs/bfs", scores="logits")
    with pytest.raises(EvaluationError, match=r"output 'topology'.*topo_head"):
        Evaluator("clrs/topological_sort", output="topology")
    with pytest.raises(EvaluationError, match="leave batch out"):
        Evaluator("clrs/bfs").evaluate([[0, 0]], [[0, 0]], batch=3)


def test_floats_of_masks_mean_what_scores_says():
    truth = [[0, 1, 1, 0]]
    assert Evaluator("clrs/graham_scan").evaluate(truth, [[0.4, 0.5, 0.9, 0.1]]).primary == 1
    assert Evaluator("clrs/graham_scan", scores="logit").evaluate(truth, [[-0.1, 0.0, 7.0, -9.0]]).primary == 1
    assert Evaluator("clrs/graham_scan", scores="label").evaluate(truth, [[0.0, 1.0, 1.0, 0.0]]).primary == 1
    half = torch.tensor([[0.4, 0.5, 0.9, 0.1]], dtype=torch.bfloat16)
    assert Evaluator("clrs/graham_scan").evaluate(torch.tensor(truth), half).primary == 1


def test_one_output_is_scored_alone():
    truth = {"topo": np.array([[1, 2, 2], [0, 0, 1]]), "topo_head": np.array([0, 2])}
    evaluator = Evaluator("clrs/topological_sort", output="topo")
    score = evaluator.evaluate(truth, {"topo": np.array([[1, 2, 2], [0, 0, 0]])})
    assert dict(score) == {"score": pytest.approx(5 / 6)}
    assert evaluator.evaluate(truth["topo"], truth["topo"]).primary == 1


def test_what_is_masked_may_be_predicted_masked():
    truth = np.array([[[-1, 1], [0, -1]]])
    assert Evaluator("clrs/bridges").evaluate(truth, truth).primary == 1
    assert Evaluator("clrs/lcs_length").evaluate(truth, truth).primary == 1


def test_a_mask_without_positives_scores_one_as_in_the_reference():
    scores = TraceEvaluator(card("clrs/bridges").outputs)
    nothing = {"is_bridge": np.full((1, 3, 3), -1)}
    scores.update(nothing, {"is_bridge": np.zeros((1, 3, 3))})
    assert scores.compute().primary == 1
    scores.update(nothing, {"is_bridge": np.ones((1, 3, 3))})
    assert scores.compute().primary == 1  # masked positions count neither way


def test_the_evaluator_of_an_algorithm_takes_all_its_outputs():
    truth = {"topo": np.array([[1, 2, 2], [0, 0, 1]]), "topo_head": np.array([0, 2])}
    wrong = {"topo": np.array([[1, 2, 2], [0, 0, 0]]), "topo_head": np.array([0, 0])}
    evaluator = Evaluator("clrs/topological_sort", expected_graphs=2)
    score = evaluator.evaluate(truth, wrong)
    assert score.primary == pytest.approx((5 / 6 + 1 / 2) / 2)
    assert score["score_topo"] == pytest.approx(5 / 6)
    evaluator.update(truth, truth)
    assert evaluator.compute().primary == 1
    evaluator.reset()
    with pytest.raises(EvaluationError, match="give a mapping"):
        evaluator.evaluate(truth["topo"], truth["topo"])
    with pytest.raises(EvaluationError, match="1 missing"):
        evaluator.evaluate({k: v[:1] for k, v in truth.items()}, {k: v[:1] for k, v in truth.items()})
    assert Evaluator("clrs/bfs").evaluate(truth["topo"], wrong["topo"]).primary == pytest.approx(5 / 6)


@pytest.mark.parametrize("name", NAMES)
def test_trivial_outputs_have_the_form_of_outputs(name):
    for feature in card(f"clrs/{name}").outputs:
        truth = in_batch_form(feature, GOLDEN[f"{name}/truth/{feature.name}"]).astype(int)
        found = trivial_outputs(feature, 0.5 if feature.kind is Kind.MASK else 1, truth)
        assert set(found) == {"initial", "random"}
        assert all(values.shape == truth.shape for values in found.values())
