"""Trajectory models: shapes, equivariance, hints, frozen outputs, and that they learn."""

import numpy as np
import pytest
import torch

from graphbench import card
from graphbench.catalog.features import Kind, Location, Stage
from graphbench.core.errors import ConfigError, UnknownModel
from graphbench.data.batches.trajectory_batch import TrajectoryBatch, batch_of_samples
from graphbench.data.build.generation import draw_samples
from graphbench.models.base import TaskFeatures
from graphbench.models.processors import processor_names
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.encoders import Encoder, PairVectors, dense
from graphbench.models.trajectory.model import TrajectoryModel
from graphbench.models.trajectory.processors.message_passing import max_plus

OTHERS = ("mlp", "bipartite", "typed", "staged", "residual_grid", "replicator")
PROCESSORS = [  # mlp sees no pairs; four read inputs of the stored graph; replicator draws numbers by the nodes' order
    name for name in processor_names("dense", "sparse") if name not in OTHERS
]


def batch_of(name, count=3, split="train"):
    about = card(f"clrs/{name}")
    return about.features, batch_of_samples(draw_samples(about, split, np.arange(count)), about.features)


def build(features, **options):
    torch.manual_seed(0)
    config = TrajectoryModelConfig(**{"hidden": 16, "heads": 2, "permutations": False, **options})
    return TrajectoryModel(config, {"a": TaskFeatures(features)})


def relabelled(features, batch, order):
    """Return the batch with node ``order[i]`` in place of node i."""
    place = torch.argsort(order)

    def change(feature, value):
        lead = 1 if feature.stage is Stage.HINT else 0
        if feature.kind is Kind.MASK_ONE:
            return place[value.long()]
        if feature.location is not Location.GRAPH:
            value = value.index_select(lead + 1, order)
        if feature.location is Location.EDGE:
            value = value.index_select(lead + 2, order)
        return place[value.long()] if feature.kind in (Kind.POINTER, Kind.PERMUTATION) else value

    parts = {Stage.INPUT: batch.inputs, Stage.HINT: batch.hints, Stage.OUTPUT: batch.outputs}
    changed = {
        stage: {f.name: change(f, part[f.name]) for f in features if f.stage is stage} for stage, part in parts.items()
    }
    return TrajectoryBatch(changed[Stage.INPUT], changed[Stage.HINT], changed[Stage.OUTPUT], batch.lengths, 16)


@pytest.mark.parametrize(
    "name",
    [
        *("dijkstra", "floyd_warshall", "insertion_sort"),
        *(pytest.param(long, marks=pytest.mark.slow) for long in ("bridges", "strongly_connected_components")),
    ],
)
@pytest.mark.parametrize("processor", PROCESSORS)
def test_every_processor_runs_and_learns_from_every_feature(name, processor):
    features, batch = batch_of(name)
    model = build(features, processor=processor)
    loss = model.loss(batch, "a")
    loss.backward()
    assert loss.isfinite()
    unused = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.isfinite().all()]
    assert not unused
    predicted = model.eval().predict(batch, "a")
    for feature in card(f"clrs/{name}").outputs:
        assert predicted[feature.name].shape == batch.outputs[feature.name].shape


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("name", ["bellman_ford", "mst_kruskal", "floyd_warshall"])
@pytest.mark.thorough
def test_relabelling_the_nodes_relabels_the_predictions(name, processor):
    features, batch = batch_of(name)
    model = build(features, processor=processor, hint_repred_mode="soft").eval()
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    before, after = model(batch, "a"), model(relabelled(features, batch, order), "a")
    for feature in card(f"clrs/{name}").outputs:
        raw = before.outputs[feature.name]
        raw = raw.index_select(1, order)
        if feature.location is Location.EDGE:
            raw = raw.index_select(2, order)
        if feature.kind is Kind.POINTER:
            raw = raw.index_select(-1, order)
        torch.testing.assert_close(after.outputs[feature.name], raw, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(model.loss(relabelled(features, batch, order), "a"), model.loss(batch, "a"))


def test_pointers_from_triplets_are_equivariant_and_learn():
    features, batch = batch_of("floyd_warshall")
    model = build(features, edge_pointers="triplets")
    model.loss(batch, "a").backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert sum("sides" in name for name in model.state_dict()) == 8  # weights and biases, of a hint and an output
    order = torch.randperm(16, generator=torch.Generator().manual_seed(1))
    model.eval()
    before, after = model(batch, "a"), model(relabelled(features, batch, order), "a")
    raw = before.outputs["Pi"].index_select(1, order).index_select(2, order).index_select(3, order)
    torch.testing.assert_close(after.outputs["Pi"], raw, rtol=1e-3, atol=1e-4)


def test_outputs_are_those_of_a_sample_s_own_last_step():
    features, batch = batch_of("bfs", 8)
    assert len(set(batch.lengths.tolist())) > 1
    model = build(features).eval()
    together = model(batch, "a").outputs["pi"]
    for i in range(8):
        one = TrajectoryBatch(
            {k: v[i : i + 1] for k, v in batch.inputs.items()},
            {k: v[: batch.lengths[i], i : i + 1] for k, v in batch.hints.items()},
            {k: v[i : i + 1] for k, v in batch.outputs.items()},
            batch.lengths[i : i + 1],
            batch.num_nodes,
        )
        torch.testing.assert_close(model(one, "a").outputs["pi"][0], together[i], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["encoded_decoded", "decoded_only", "none"])
def test_hint_modes(mode):
    features, batch = batch_of("bfs")
    model = build(features, hint_mode=mode)
    predicted = model(batch, "a")
    assert set(predicted.hints) == (set() if mode == "none" else {"reach_h", "pi_h"})
    changed = TrajectoryBatch(
        batch.inputs, {**batch.hints, "reach_h": 1 - batch.hints["reach_h"]}, batch.outputs, batch.lengths, 16
    )
    differ = not torch.equal(model(changed, "a").outputs["pi"], predicted.outputs["pi"])
    assert differ == (mode == "encoded_decoded")


def test_teacher_forcing_feeds_the_truth_in_training_alone():
    features, batch = batch_of("bfs")
    forced, free = build(features, hint_teacher_forcing=1.0), build(features)
    assert not torch.equal(forced(batch, "a").outputs["pi"], free(batch, "a").outputs["pi"])
    torch.testing.assert_close(forced.eval()(batch, "a").outputs["pi"], free.eval()(batch, "a").outputs["pi"])
    # With the truth fed, later hints matter; without, the first alone does.
    later = {k: v.clone() for k, v in batch.hints.items()}
    later["reach_h"][1:] = 1 - later["reach_h"][1:]
    changed = TrajectoryBatch(batch.inputs, later, batch.outputs, batch.lengths, 16)
    assert torch.equal(free(changed, "a").outputs["pi"], free(batch, "a").outputs["pi"])
    forced.train()
    assert not torch.equal(forced(changed, "a").outputs["pi"], forced(batch, "a").outputs["pi"])


def test_hard_hints_carry_no_gradient():
    features, batch = batch_of("bfs")
    for mode, flows in (("soft", True), ("hard", False)):
        model = build(features, hint_repred_mode=mode)
        torch.autograd.backward(model(batch, "a").outputs["pi"].sum())
        gradients = [p.grad for n, p in model.named_parameters() if "hint_decoders" in n]
        assert all((g is not None and bool(g.abs().sum() > 0)) == flows for g in gradients[:1])


def test_several_algorithms_share_the_processor_alone():
    names = ("bfs", "minimum")
    known = {name: batch_of(name) for name in names}
    model = TrajectoryModel(
        TrajectoryModelConfig(hidden=16), {name: TaskFeatures(features) for name, (features, _) in known.items()}
    )
    model.loss(known["bfs"][1], "bfs").backward()
    touched = {n.split(".")[1] for n, p in model.named_parameters() if p.grad is not None and n.startswith("heads")}
    assert touched == {"bfs"}
    assert all(p.grad is not None for p in model.processor.parameters())
    with pytest.raises(ConfigError, match=r"'dfs'.*bfs, minimum"):
        model(known["bfs"][1], "dfs")


def test_sorting_outputs_are_permutations():
    features, batch = batch_of("insertion_sort")
    model = build(features, permutations=True)
    raw = model(batch, "a").outputs
    assert set(raw) == {"pred", "pred_mask"}
    torch.testing.assert_close(raw["pred"].exp().sum(-2), torch.ones(3, 16), rtol=1e-3, atol=1e-3)
    found = model.eval().predict(batch, "a")["pred"]
    assert ((found == torch.arange(16)).sum(1) >= 1).all()


def test_pair_vectors_are_composed_not_made():
    columns = torch.randn(2, 4, 4, 3)
    encoder, linear = torch.nn.Linear(3, 8), torch.nn.Linear(8, 5)
    pairs = PairVectors(columns, encoder.weight, encoder.bias)
    torch.testing.assert_close(pairs.project(linear), linear(encoder(columns)))
    torch.testing.assert_close(pairs.full(), encoder(columns))


def test_one_linear_map_is_the_sum_of_one_per_feature():
    features, batch = batch_of("dijkstra")
    inputs = [f for f in features if f.stage is Stage.INPUT and f.location is Location.NODE]
    encoder = Encoder(inputs, 8)
    values = {f.name: dense(f, batch.inputs[f.name], 16) for f in inputs}
    linear = encoder.linear(Location.NODE)
    expected = linear.bias + sum(values[f.name].unsqueeze(-1) * linear.weight[:, i] for i, f in enumerate(inputs))
    torch.testing.assert_close(linear(encoder.columns(values)[Location.NODE]), expected)


def test_max_plus_and_its_gradient():
    left, right = (torch.randn(2, 5, 5, 3, dtype=torch.double, requires_grad=True) for _ in range(2))
    expected = (left.unsqueeze(3) + right.unsqueeze(2)).amax(1)
    torch.testing.assert_close(max_plus(left, right), expected)
    weights = torch.randn_like(expected)
    ours = torch.autograd.grad((max_plus(left, right) * weights).sum(), (left, right))
    theirs = torch.autograd.grad((expected * weights).sum(), (left, right))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)


def test_unknown_processors_are_named():
    features, _ = batch_of("bfs")
    with pytest.raises(UnknownModel, match="did you mean 'triplet_gmpnn'"):
        build(features, processor="triplet_gmpn")


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["mpnn", "triplet_gmpnn"])
def test_a_model_learns_breadth_first_search(processor):
    features, batch = batch_of("bfs", 32)
    model = build(features, processor=processor, hidden=32)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    first = None
    for _ in range(60):
        loss = model.loss(batch, "a")
        first = first or loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = (model.eval().predict(batch, "a")["pi"] == batch.outputs["pi"]).float().mean()
    assert loss < first / 3
    assert right > 0.9
