"""Augmentations of circuits: each changed circuit has the labels of the circuit it was made of, computed anew."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

import graphbench
from graphbench.core.errors import ConfigError, PluginError
from graphbench.data.components.augmentations import Augmentation, BatchArrays
from graphbench.data.components.domain import find
from graphbench.domains.circuits.converters import Elements
from graphbench.domains.circuits.converters import steady_state as exact
from graphbench.domains.circuits.graphs import KINDS, OPERATION, circuit_of, devices_to_sample
from graphbench.loader import Loader
from graphbench.training.augmentation import augmented
from graphbench.training.run import train

NAMES = ("circuits.phases", "circuits.series")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("circuits")
    return Loader("circuits/converters_10", root=root, limit=60, progress=False, workers=1).load()


def changed(data, *names: str, seed: int = 0):
    (batch,) = data.train.batches(60)
    augmentations = {name: find("augmentation", name) for name in names}
    return batch, augmented(batch, augmentations, torch.Generator().manual_seed(seed))


def labels(graph):
    """Return ratio and efficiency of a graph, from its devices and the duty cycle that it states."""
    operation = dict(zip(OPERATION, graph.operation.reshape(-1).tolist(), strict=True))
    values = {name: operation[name] for name in ("vin", "load", *Elements.model_fields)}
    state = exact(circuit_of(graph).devices, duty=float(graph.duty), **values)
    return state.ratio, state.efficiency


@pytest.mark.parametrize("names", [NAMES[:1], NAMES[1:], NAMES])
def test_a_changed_circuit_has_the_labels_of_the_circuit(data, names):
    batch, other = changed(data, *names)
    differing = 0
    for before, after in zip(batch.to_data_list(), other.to_data_list(), strict=True):
        assert torch.equal(before.edge_index, after.edge_index)
        differing += not (torch.equal(before.kind, after.kind) and torch.equal(before.duty, after.duty))
        assert labels(after) == pytest.approx((float(before.ratio), float(before.efficiency)), rel=1e-5, abs=1e-5)
    assert differing >= 15


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_is_not_changed_itself_and_a_seed_gives_one_result(data, name):
    batch, first = changed(data, name)
    before = batch.kind.clone()
    _, second = changed(data, name)
    _, third = changed(data, name, seed=1)
    assert torch.equal(batch.kind, before)
    assert torch.equal(first.kind, second.kind) and torch.equal(first.duty, second.duty)
    assert not torch.equal(first.kind, third.kind)
    assert first.kind.dtype == batch.kind.dtype and first.duty.dtype == batch.duty.dtype


def test_the_share_of_conduction_of_a_switch_fits_the_duty_cycle_after_all_changes(data):
    _, other = changed(data, *NAMES)
    duty = other.duty.reshape(-1)[other.batch]
    kind, conducting = other.kind.reshape(-1), other.conducting.reshape(-1)
    expected = torch.where(kind == KINDS.index("Sa"), duty, torch.where(kind == KINDS.index("Sb"), 1 - duty, 0.0))
    torch.testing.assert_close(conducting.double(), expected.double(), atol=1e-6, rtol=0)


def test_half_of_the_circuits_exchange_their_phases(data):
    (batch,) = data.train.batches(60)
    augmentations, generator = {NAMES[0]: find("augmentation", NAMES[0])}, torch.Generator().manual_seed(4)
    seen = batch.duty != 0.5  # a duty cycle of 0.5 does not show whether the phases were exchanged
    results = [augmented(batch, augmentations, generator).duty for _ in range(50)]
    shares = [float((duty != batch.duty)[seen].double().mean()) for duty in results]
    assert np.mean(shares) == pytest.approx(0.5, abs=0.05)


def test_a_chain_of_three_devices_gets_each_of_its_six_orders_and_other_devices_stay():
    devices = [("L", "VIN", "a"), ("Sa", "a", "b"), ("C", "b", "VOUT"), ("Sb", "VIN", "GND"), ("L", "VOUT", "GND")]
    samples = devices_to_sample(devices, duty=0.3)
    nodes, edges = int(samples.num_nodes[0]), samples.edges.T.astype(np.int64)
    graph = BatchArrays(
        np.zeros(nodes, np.int64), 1, np.concatenate([edges, edges[::-1]], axis=1), dict(samples.values)
    )
    apply, random = find("augmentation", "circuits.series").apply, np.random.default_rng(0)
    orders = Counter(tuple(apply(graph, random)["kind"].tolist()) for _ in range(300))
    chain = [node for node in range(nodes) if len({kinds[node] for kinds in orders}) > 1]
    assert len(orders) == 6 and len(chain) == 3 and min(orders.values()) > 25
    assert sorted(next(iter(orders))[node] for node in chain) == sorted(KINDS.index(kind) for kind in ("L", "Sa", "C"))


def test_training_with_augmentations_differs_continues_with_the_same_bits_and_scores_unchanged_graphs(data, tmp_path):
    settings = {
        "model.hidden": 8,
        "model.positional.hidden": 8,
        "training.batch_size": 16,
        "training.augment": list(NAMES),
        "training.schedule_steps": 6,
    }
    how = {"data": data, "evaluate": "test", "progress": False, "device": "cpu"}
    whole = train(None, "gin_small", steps=6, overrides=settings, output=tmp_path / "whole", **how)
    train(None, "gin_small", steps=3, overrides=settings, output=tmp_path / "parts", **how)
    parts = train(None, "gin_small", steps=6, overrides=settings, output=tmp_path / "parts", **how)
    plain = {key: value for key, value in settings.items() if key != "training.augment"}
    without = train(None, "gin_small", steps=6, overrides=plain, output=tmp_path / "plain", **how)
    assert whole.record.weights_hash == parts.record.weights_hash != without.record.weights_hash
    assert whole.record.config["training"]["augment"] == list(NAMES)
    assert "augment" not in without.record.config["training"]


@pytest.mark.parametrize(
    ("dataset", "model", "name", "message"),
    [
        ("circuits/converters_5", "gin_small", "circuits.phase", "did you mean 'phases'"),
        ("circuits/converters_5", "gin_small", "phases", "not of the form"),
        (
            "algoreas/mst_easy",
            "gin_small",
            "circuits.phases",
            "changes duty, kind, and the inputs of algoreas/mst_easy are weight",
        ),
        ("social/sim_replies_small", "gradient_boosting", "circuits.phases", "fitted without steps"),
    ],
)
def test_an_augmentation_that_cannot_be_applied_is_refused_before_data_are_generated(
    dataset, model, name, message, tmp_path
):
    with pytest.raises(ConfigError, match=message):
        graphbench.train(dataset, model, overrides={"training.augment": [name]}, root=tmp_path, output=tmp_path / "run")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"kind": np.zeros(3, np.uint8)}, r"other.one returned uint8 \[3\] as kind; it has to be as before"),
        ({"duty": np.zeros(60, np.float32)}, "other.one returned duty, and says that it changes kind"),
    ],
)
def test_an_augmentation_that_returns_something_else_is_refused_by_its_name(data, result, message):
    (batch,) = data.train.batches(60)
    wrong = Augmentation("Returns something else.", ("kind",), lambda graphs, random: result)
    with pytest.raises(PluginError, match=message):
        augmented(batch, {"other.one": wrong}, torch.Generator())
