"""Outputs of algorithms in files, as the command line scores them."""

import numpy as np
import pytest

import graphbench
from graphbench.cli.predictions import score_predictions
from graphbench.core.errors import EvaluationError

LIMIT = 5


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


def truth(dataset, split, root):
    data = graphbench.Loader(dataset, root=root, limit=LIMIT, workers=1).load(())[split]
    (batch,) = data.batches(LIMIT)
    return {name: values.numpy() for name, values in batch.outputs.items()}


def scored(dataset, split, path, root, scores="probability"):
    return score_predictions(dataset, [split], path, scores, root=root, limit=LIMIT)[0][split]


def test_one_output_in_an_array(root, tmp_path):
    (pointers,) = truth("clrs/bfs", "val", root).values()
    np.save(tmp_path / "whole.npy", pointers)
    np.save(tmp_path / "flat.npy", pointers.ravel())
    np.savez(tmp_path / "named.npz", pi=pointers)
    np.savez(tmp_path / "plain.npz", y_pred=pointers)
    for name in ("whole.npy", "flat.npy", "named.npz", "plain.npz"):
        score = scored("clrs/bfs", "val", tmp_path / name, root)
        assert (score.primary, score.graphs) == (1, LIMIT)
    wrong = pointers.copy()
    wrong[0, 0] = (wrong[0, 0] + 1) % wrong.shape[1]
    np.save(tmp_path / "wrong.npy", wrong.ravel())
    assert scored("clrs/bfs", "val", tmp_path / "wrong.npy", root).primary == pytest.approx(1 - 1 / wrong.size)


def test_several_outputs_in_arrays_of_their_names(root, tmp_path):
    outputs = truth("clrs/topological_sort", "val", root)
    np.savez(tmp_path / "all.npz", **outputs)
    score = scored("clrs/topological_sort", "val", tmp_path / "all.npz", root)
    assert dict(score) == {"score": 1, "score_topo": 1, "score_topo_head": 1}
    np.savez(tmp_path / "one.npz", topo=outputs["topo"])
    np.save(tmp_path / "alone.npy", outputs["topo"])
    for name, held in (("one.npz", "'topo'"), ("alone.npy", "'y_pred'")):
        missing = f"has no array .*'topo_head', only {held}; save one array per output: numpy.savez"
        with pytest.raises(EvaluationError, match=missing):
            scored("clrs/topological_sort", "val", tmp_path / name, root)


def test_scores_of_masks_may_be_logits(root, tmp_path):
    (mask,) = truth("clrs/graham_scan", "val", root).values()
    np.save(tmp_path / "logits.npy", np.where(mask == 1, 3.0, -3.0))
    assert scored("clrs/graham_scan", "val", tmp_path / "logits.npy", root, "logit").primary == 1
    with pytest.raises(EvaluationError, match="a probability lies in"):
        scored("clrs/graham_scan", "val", tmp_path / "logits.npy", root)


def test_splits_of_several_sizes_take_flat_outputs(root, tmp_path):
    data = graphbench.Loader("clrs/bfs", root=root, limit=LIMIT, workers=1).load(("train_multi_size",))[
        "train_multi_size"
    ]
    parts = [batch.outputs["pi"].numpy().ravel() for batch in data.batches(1)]
    assert len({len(part) for part in parts}) > 1
    np.save(tmp_path / "flat.npy", np.concatenate(parts))
    assert scored("clrs/bfs", "train_multi_size", tmp_path / "flat.npy", root).primary == 1


@pytest.mark.parametrize("change", [lambda a: a[:-1], lambda a: a.ravel()[:-1], lambda a: np.append(a, a[0])])
def test_missing_and_further_values_are_refused(change, root, tmp_path):
    (pointers,) = truth("clrs/bfs", "val", root).values()
    np.save(tmp_path / "bad.npy", change(pointers))
    with pytest.raises(EvaluationError, match=r"'pi'.*5 samples of clrs/bfs val"):
        scored("clrs/bfs", "val", tmp_path / "bad.npy", root)
