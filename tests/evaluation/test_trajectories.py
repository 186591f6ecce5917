"""Scores of algorithms' outputs against the reference's own evaluation."""

from pathlib import Path

import numpy as np
import pytest

from graphbench import card
from graphbench.catalog.features import Kind
from graphbench.domains.clrs.algorithms import NAMES
from graphbench.errors import EvaluationError
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
    with pytest.raises(EvaluationError, match="predicted lacks the output 'topo_head'"):
        scores.update(truth, {"topo": np.zeros((2, 5))})
    with pytest.raises(EvaluationError, match=r"has the shape \(2, 4\)"):
        scores.update(truth, {"topo": np.zeros((2, 4)), "topo_head": np.zeros(2)})
    with pytest.raises(EvaluationError, match=r"holds NaN at \(1, 2\)"):
        bad = np.zeros((2, 5))
        bad[1, 2] = np.nan
        scores.update(truth, {"topo": bad, "topo_head": np.zeros(2)})


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
