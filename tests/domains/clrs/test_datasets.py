"""The CLRS datasets: the reference's samples through cards, shards, files and batches."""

import numpy as np
import pytest
import torch
from torch_geometric.loader import DataLoader

from graphbench import card
from graphbench.catalog.features import Kind, Stage
from graphbench.catalog.names import catalog
from graphbench.core.errors import CardError, GraphBenchError
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.batches.trajectory_batch import batch_of_samples
from graphbench.data.build.generation import draw_samples, ensure_split
from graphbench.data.components.domain import find
from graphbench.domains.clrs import sample, trace
from graphbench.domains.clrs.algorithm import find_algorithm
from graphbench.domains.clrs.generators import RENAMED
from graphbench.domains.clrs.names import NAMES
from graphbench.tasks.trace.stream import TrajectoryStream
from graphbench.verification.measuring import arrays_hash

MULTIPLIERS = {
    "quickselect": 64,
    "minimum": 64,
    "binary_search": 64,
    "naive_string_matcher": 64,
    "kmp_matcher": 64,
    "segments_intersect": 64,
    "find_maximum_subarray_kadane": 32,
}


def in_batch_form(feature, value):
    """Return an array of a trace as batches hold it."""
    if feature.kind is Kind.MASK_ONE:
        return value.argmax(-1)
    if feature.kind is Kind.CATEGORICAL:
        return np.where((value == -1).any(-1), -1, value.argmax(-1))
    return value


@pytest.mark.parametrize("name", NAMES)
def test_cards_have_the_features_of_their_algorithm(name):
    features = find_algorithm(name).features
    expected = [
        (RENAMED.get(f.name, f.name) if f.stage is Stage.INPUT else f.name, f.stage, f.location, f.type_name)
        for f in features
    ]
    assert [(f.name, f.stage, f.location, f.type_name) for f in card(f"clrs/{name}").features] == expected


def test_the_canonical_set_has_the_reference_s_sizes():
    ids = catalog().resolve("clrs30")
    assert ids == [f"clrs/{name}" for name in NAMES]
    cards = [catalog().cards[id_] for id_ in ids]
    assert sum(c.split("train").count for c in cards) == 30_000
    for split in ("val", "test"):
        assert sum(c.split(split).count for c in cards) == 14_048
        for c in cards:
            assert c.split(split).count == 32 * MULTIPLIERS.get(c.family, 1)


@pytest.mark.parametrize("name", NAMES)
def test_stored_samples_are_the_traces_of_the_reference_s_draws(name):
    about = card(f"clrs/{name}")
    chosen = np.array([2, 0, 5])
    batch = batch_of_samples(draw_samples(about, "train", chosen), about.features)
    drawn = sample(name, 16, 6, 1)
    steps = []
    for place, index in enumerate(chosen):
        expected = trace(name, *drawn[index])
        inputs = {RENAMED.get(k, k): v for k, v in expected.inputs.items()}
        for feature in about.features:
            if feature.stage is Stage.HINT:
                value = in_batch_form(feature, expected.hints[feature.name])
                found = batch.hints[feature.name][:, place].numpy()
                steps.append(len(value))
                assert batch.lengths[place] == len(value)
                np.testing.assert_array_equal(
                    found[len(value) :], np.broadcast_to(found[-1], found[len(value) :].shape)
                )
                found = found[: len(value)]
            else:
                values = inputs if feature.stage is Stage.INPUT else expected.outputs
                value = in_batch_form(feature, values[feature.name])
                found = batch[feature.name][place].numpy()
            if feature.kind is Kind.SCALAR:
                value = value.astype(np.float32)
            np.testing.assert_array_equal(found, value, err_msg=feature.name)
    assert batch.steps == max(steps)


@pytest.mark.parametrize("name", ["bridges", "lcs_length", "heapsort"])
def test_files_do_not_depend_on_shards(name, tmp_path):
    about = card(f"clrs/{name}")
    contents = []
    for shard_size in (40, 7):
        path = ensure_split(about, "train", tmp_path / str(shard_size), 40, workers=1, shard_size=shard_size)
        contents.append(GraphDataset(about, "train", path).content_hash)
        again = GraphDataset(about, "train", path)
        assert again[3].num_nodes == 16
    assert contents[0] == contents[1]


@pytest.fixture(scope="module")
def bridges(tmp_path_factory):
    about = card("clrs/bridges")
    return GraphDataset(about, "train", ensure_split(about, "train", tmp_path_factory.mktemp("clrs"), 50, workers=1))


def test_items_are_pyg_data_with_hints_over_time(bridges):
    data = bridges[7]
    steps = len(data.pi_h)
    assert data.edge_index.shape == (2, 256)
    assert data.edge_index[:, 17].tolist() == [1, 1]
    assert (data.adj.view(16, 16).diagonal() == 1).all()
    assert data.is_bridge_h.shape == (steps, 16, 16)
    assert data.y.shape == (256,)
    assert set(data.y.tolist()) <= {-1, 0, 1}
    torch.testing.assert_close(data.is_bridge_h[-1].flatten().long(), data.y)


def test_batches_are_dense_and_shuffle_by_seed_alone(bridges):
    batches = list(bridges.batches(8, shuffle=True, seed=3))
    assert [b.num_graphs for b in batches] == [8] * 6 + [2]
    assert batches[0].inputs["A"].shape == (8, 16, 16)
    assert batches[0].inputs["A"].dtype == torch.float32
    assert batches[0].hints["is_bridge_h"].shape == (batches[0].steps, 8, 16, 16)
    again = next(iter(bridges.batches(8, shuffle=True, seed=3)))
    torch.testing.assert_close(again.inputs["A"], batches[0].inputs["A"])
    other = next(iter(bridges.batches(8, shuffle=True, seed=4)))
    assert not torch.equal(other.inputs["A"], batches[0].inputs["A"])
    with pytest.raises(KeyError, match="no feature 'weight'"):
        batches[0]["weight"]


def test_node_ids_in_batches_are_indices():
    about = card("clrs/bfs")
    batch = batch_of_samples(draw_samples(about, "val", np.arange(3)), about.features)
    assert batch.outputs["pi"].dtype == batch.inputs["s"].dtype == torch.int64
    nodes = torch.arange(16)
    assert torch.equal(nodes[batch.outputs["pi"][0]], batch.outputs["pi"][0])


def test_pyg_s_loader_takes_trajectories_one_by_one(bridges):
    single = next(iter(DataLoader(bridges, batch_size=1)))
    assert torch.equal(single.is_bridge_h, bridges[0].is_bridge_h)
    with pytest.raises(GraphBenchError, match=r"4 trajectories of clrs/bridges cannot be collated.*use"):
        next(iter(DataLoader(bridges, batch_size=4)))


def test_batches_refuse_transforms_that_would_not_reach_them(bridges):
    changed = GraphDataset(bridges.card, "train", bridges.path, transform=lambda data: data)
    with pytest.raises(GraphBenchError, match="load without transform"):
        next(iter(changed.batches(4)))


def test_a_stream_is_endless_and_a_function_of_its_numbers():
    about = card("clrs/bfs")
    stream = TrajectoryStream(about, "train_multi_size")
    sizes = [batch.num_nodes for batch, _ in zip(stream.batches(3), range(7), strict=False)]
    assert sizes == [4, 7, 11, 13, 16, 4, 7]
    first, resumed = stream.batch(6, 3), next(stream.batches(3, start=6))
    torch.testing.assert_close(first.inputs["A"], resumed.inputs["A"])
    assert not torch.equal(stream.batch(0, 3).inputs["A"], stream.batch(5, 3).inputs["A"])
    assert not torch.equal(
        stream.batch(0, 3).inputs["A"], TrajectoryStream(about, "train_multi_size", 1).batch(0, 3).inputs["A"]
    )
    with pytest.raises(CardError, match="has no lengths"):
        TrajectoryStream(about, "train")


def test_sparser_and_denser_graphs_in_the_multi_size_protocol():
    samples = draw_samples(card("clrs/bfs"), "train_multi_size", np.arange(4, 1000, 5))
    density = samples.values["A"].reshape(-1, 256).mean(1)
    assert density.min() < 0.05
    assert density.max() > 0.7


@pytest.mark.parametrize("name", NAMES)
def test_checks_accept_the_outputs_and_find_damage(name):
    about = card(f"clrs/{name}")
    generator = find("generator", about.generator)
    parameters = generator.parse(about, "train")
    samples = draw_samples(about, "train", np.arange(12))
    assert generator.check(parameters, samples) == []
    before = arrays_hash(samples)
    for feature in about.outputs:
        whole = samples.values[feature.name]
        damaged = whole.copy()
        rows = samples.rows(feature.location, 0, 1)
        part = damaged[rows]
        part[...] = part[::-1] if feature.kind in (Kind.MASK_ONE, Kind.POINTER, Kind.PERMUTATION) else 1 - part
        if np.array_equal(damaged, whole):
            part[...] = np.roll(part, 1)
        object.__setattr__(samples, "values", {**samples.values, feature.name: damaged})
        assert len(generator.check(parameters, samples)) == 1, feature.name
        object.__setattr__(samples, "values", {**samples.values, feature.name: whole})
    assert arrays_hash(samples) == before
