import numpy as np
from graphbench.domains.toy.generators import nodes_on_triangles

from graphbench import Loader
from graphbench.testing import check_dataset


def test_a_triangle_with_a_tail_has_three_nodes_on_a_triangle():
    edges = np.array([[0, 1], [0, 2], [1, 2], [2, 3]])
    assert nodes_on_triangles(4, edges).tolist() == [True, True, True, False]


def test_every_conformance_check_passes(tmp_path):
    check_dataset("toy/triangles", samples=50, root=tmp_path)


def test_it_loads_like_any_other_dataset(tmp_path):
    splits = Loader("toy/triangles", root=tmp_path, limit=100, workers=1).load()
    data = splits.train[0]
    assert data.num_nodes == 12 and data.y.shape == (12,)
    labels = next(iter(splits.train.batches(100))).y
    assert set(labels.tolist()) == {0, 1}
