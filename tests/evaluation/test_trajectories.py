"""Scores of algorithms' outputs against the reference's own evaluation."""

from pathlib import Path

import numpy as np
import pytest
import torch

from graphbench import card
from graphbench.catalog.features import Kind
from graphbench.core.errors import EvaluationError
from graphbench.domains.clrs.algorithms import NAMES
from graphbench.evaluation.evaluator import Evaluator
from graphbench.evaluation.trajectories import OutputScores, trivial_outputs

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
    whole = OutputScores(outputs)
    whole.update(values["truth"], values["pred"])
    halves = OutputScores(outputs)
    for part in (slice(0, 3), slice(3, 8)):
        halves.update(*({k: v[part] for k, v in values[kind].items()} for kind in ("truth", "pred")))
    for scores in (whole.compute(), halves.compute()):
        assert scores.primary == pytest.approx(float(GOLDEN[f"{name}/score/score"]), abs=1e-12)
        assert scores.graphs == 8
        for f in outputs if len(outputs) > 1 else ():
            assert scores[f"score_{f.name}"] == pytest.approx(float(GOLDEN[f"{name}/score/{f.name}"]), abs=1e-12)


def test_bad_outputs_are_named():
    scores = OutputScores(card("clrs/topological_sort").outputs)
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
    with pytest.raises(EvaluationError, match="differ in their samples: 'topo' 2, 'topo_head' 3"):
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
        ("bfs", [[0, 0, 1]], [["0", "0", "1"]], "y_pred.* has dtype <U1; give booleans, integers or real numbers"),
        ("bfs", [[0, 0, 1]], np.zeros((1, 3), complex), "has dtype complex128"),
        ("bfs", [[0, 0, 1]], [[0, 0], [1]], "y_pred.* is no array"),
        ("bfs", [0, 0, 1], [0, 0, 1], r"y_true\['pi'\] has shape \(3,\); give \[B, n\]"),
        ("bfs", np.zeros((0, 3)), np.zeros((0, 3)), "there is nothing to score"),
        ("bfs", [[0, 5, 1]], [[0, 0, 1]], r"y_true\['pi'\] holds 5"),
        ("minimum", [1], [1.5], "holds 1.5 at row 0; 'min' .* takes node numbers from 0"),
        ("graham_scan", [[0, 1, 1]], [[0, 7, 1]], "holds 7 at row 0, column 1; labels of the mask 'in_hull'"),
        ("graham_scan", [[0, 1, 1]], [[0, -1, 1]], "holds -1 at row 0, column 1; labels of the mask"),
        ("graham_scan", [[0, 1, 1]], [[0.1, 3.2, 0.9]], "holds 3.2 at .* a probability lies in"),
        ("graham_scan", [[0, 1, 1]], [[0.1, np.inf, 0.9]], "holds inf at row 0, column 1"),
        ("graham_scan", [[0, 2, 1]], [[0, 1, 1]], r"y_true\['in_hull'\] holds 2 .* targets 0 and 1, and -1"),
        ("bridges", np.zeros((1, 2, 3)), np.zeros((1, 2, 3)), r"has shape \(1, 2, 3\); give \[B, n, n\]"),
        ("bridges", np.zeros((1, 2, 2)), np.full((1, 2, 2), -1), "holds -1 at row 0, column 0, 0; labels of the mask"),
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
    with pytest.raises(EvaluationError, match="no output 'topology'; it has topo, topo_head"):
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
    scores = OutputScores(card("clrs/bridges").outputs)
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
