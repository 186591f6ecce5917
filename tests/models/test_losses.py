"""Losses and predictions of every output type, against torch's own."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Batch, Data

from graphbench.catalog.features import Feature, parse_features
from graphbench.core.errors import ConfigError
from graphbench.models.build import ModelConfig, build_model
from graphbench.models.graphs import segment_argmax, segment_log_softmax
from graphbench.models.losses import loss, loss_weights, losses, predictions

from .conftest import batch_of

SIZES = (3, 5, 4)


def batch_with(**fields: list[torch.Tensor]) -> Batch:
    graphs = []
    for i, n in enumerate(SIZES):
        pairs = torch.tensor([[0, 1], [1, 0]])
        graphs.append(Data(edge_index=pairs, num_nodes=n, **{k: v[i] for k, v in fields.items()}))
    return batch_of(graphs)


def feature(location: str, kind: str) -> tuple[Feature, ...]:
    return parse_features({"t": ["output", location, kind]})


def test_mask() -> None:
    targets = [torch.randint(0, 2, (n,), dtype=torch.uint8) for n in SIZES]
    batch, raw = batch_with(t=targets), torch.randn(sum(SIZES))
    expected = F.binary_cross_entropy_with_logits(raw, torch.cat(targets).float())
    torch.testing.assert_close(loss({"t": raw}, batch, feature("node", "mask")), expected)
    assert torch.equal(predictions({"t": raw}, feature("node", "mask"))["t"], raw.sigmoid())


@pytest.mark.parametrize("squared", [False, True])
def test_scalar_is_the_mean_absolute_or_squared_error(squared: bool) -> None:
    targets = [torch.randn(n) for n in SIZES]
    batch, raw = batch_with(t=targets), torch.randn(sum(SIZES))
    errors = raw - torch.cat(targets)
    expected = (errors * errors if squared else errors.abs()).mean()
    torch.testing.assert_close(loss({"t": raw}, batch, feature("node", "scalar"), squared=squared), expected)
    assert torch.equal(predictions({"t": raw}, feature("node", "scalar"))["t"], raw)


def test_a_scalar_target_of_another_shape_is_refused() -> None:
    batch = batch_with(t=[torch.randn(n, 2) for n in SIZES])
    with pytest.raises(ConfigError, match=r"\[12\].*\[12, 2\]"):
        loss({"t": torch.randn(12)}, batch, feature("node", "scalar"))


def test_categorical() -> None:
    targets = [torch.randint(0, 4, (1,)) for _ in SIZES]
    batch, raw = batch_with(t=targets), torch.randn(3, 4)
    torch.testing.assert_close(
        loss({"t": raw}, batch, feature("graph", "categorical(4)")), F.cross_entropy(raw, torch.cat(targets))
    )
    probability = predictions({"t": raw}, feature("graph", "categorical(4)"))["t"]
    torch.testing.assert_close(probability, raw.softmax(1))


def test_mask_one_and_graph_pointer_choose_among_a_graphs_nodes() -> None:
    chosen = [2, 4, 0]
    one_hot = [F.one_hot(torch.tensor(c), n) for c, n in zip(chosen, SIZES, strict=True)]
    raw = torch.randn(sum(SIZES))
    parts = raw.split(list(SIZES))
    expected = -torch.stack([p.log_softmax(0)[c] for p, c in zip(parts, chosen, strict=True)]).mean()
    mask_batch = batch_with(t=one_hot)
    torch.testing.assert_close(loss({"t": raw}, mask_batch, feature("node", "mask_one")), expected)
    pointer_batch = batch_with(t=[torch.tensor([c]) for c in chosen])
    torch.testing.assert_close(loss({"t": raw}, pointer_batch, feature("graph", "pointer")), expected)
    best = [int(p.argmax()) for p in parts]
    assert predictions({"t": raw}, feature("graph", "pointer"), pointer_batch)["t"].tolist() == best
    mask = predictions({"t": raw}, feature("node", "mask_one"), mask_batch)["t"]
    assert [int(m.argmax()) for m in mask.split(list(SIZES))] == best and mask.sum() == 3


def test_a_choice_needs_the_batch() -> None:
    with pytest.raises(ConfigError, match="batch="):
        predictions({"t": torch.randn(12)}, feature("node", "mask_one"))


@pytest.mark.parametrize("kind", ["pointer", "permutation"])
def test_node_pointers_stay_within_their_graph(kind: str) -> None:
    features = feature("node", kind)
    positional = {"type": "rwse", "k": 3, "hidden": 8}
    config = ModelConfig.model_validate({"layers": 1, "hidden": 16, "positional": positional})
    model = build_model(config, features, directed=False).eval()
    targets = [torch.randint(0, n, (n,)) for n in SIZES]
    batch = batch_with(t=targets)
    raw = model(batch)["t"]
    assert raw.shape == (sum(SIZES), max(SIZES))
    assert torch.isneginf(raw[:3, 3:]).all() and torch.isfinite(raw[:3, :3]).all()
    torch.testing.assert_close(loss({"t": raw}, batch, features), F.cross_entropy(raw, torch.cat(targets)))
    limits = torch.tensor(SIZES)[batch.batch]
    assert (predictions({"t": raw}, features)["t"] < limits).all()


def test_losses_of_several_outputs_add_up() -> None:
    features = parse_features({"a": ["output", "node", "mask"], "b": ["output", "graph", "scalar"]})
    batch = batch_with(a=[torch.ones(n) for n in SIZES], b=[torch.ones(1)] * 3)
    raw = {"a": torch.randn(12), "b": torch.randn(3)}
    parts = [loss(raw, batch, (f,)) for f in features]
    torch.testing.assert_close(loss(raw, batch, features), parts[0] + parts[1])
    assert set(predictions(raw, features)) == {"a", "b"}


def test_several_values_per_item() -> None:
    features = parse_features({"inputs": ["input", "node", "scalar(5)"], "t": ["output", "node", "scalar(2)"]})
    config = ModelConfig(layers=1, hidden=8, processor="mlp")
    model = build_model(config, features, directed=False)
    batch = batch_with(inputs=[torch.randn(n, 5) for n in SIZES], t=[torch.randn(n, 2) for n in SIZES])
    model.fit_normalisation(batch)
    outputs = model(batch)
    assert outputs["t"].shape == (12, 2)
    torch.testing.assert_close(loss(outputs, batch, features), (outputs["t"] - batch.t).abs().mean())


def test_segment_functions_agree_with_loops() -> None:
    segment = torch.tensor([0, 0, 2, 2, 2])
    values = torch.tensor([500.0, -500.0, 1.0, 3.0, 3.0])
    result = segment_log_softmax(values, segment, 3)
    torch.testing.assert_close(result[:2], values[:2].log_softmax(0))
    torch.testing.assert_close(result[2:], values[2:].log_softmax(0))
    assert segment_argmax(values, segment, 3)[[0, 2]].tolist() == [0, 3]


@pytest.mark.parametrize(
    ("location", "kind"),
    [
        ("node", "mask"), ("edge", "mask"), ("node", "scalar"), ("node", "scalar(2)"), ("graph", "scalar"),
        ("graph", "categorical(4)"), ("node", "mask_one"), ("graph", "pointer"), ("node", "pointer"),
    ],
)  # fmt: skip
def test_the_losses_of_parts_add_up_with_their_weights(location: str, kind: str) -> None:
    features = feature(location, kind)
    rows = {"node": list(SIZES), "edge": [2] * 3, "graph": [1] * 3}[location]
    width = features[0].width if features[0].width > 1 else None
    if kind == "mask_one":
        targets = [F.one_hot(torch.tensor(n - 1), n) for n in SIZES]
    elif kind == "mask":
        targets = [torch.randint(0, 2, (count,)) for count in rows]
    elif kind.startswith("scalar"):
        targets = [torch.randn(count, *([width] if width else [])) for count in rows]
    else:
        targets = [torch.randint(0, 3, (count,)) for count in rows]
    whole = batch_with(t=targets)
    items = list(SIZES) if kind in ("mask_one", "pointer") else rows
    columns = {"categorical(4)": [4], "scalar(2)": [2]}.get(
        kind, [max(SIZES)] if (location, kind) == ("node", "pointer") else []
    )
    raw = torch.randn(sum(items), *columns)
    parts = [whole[i] for i in range(3)]
    total = weights = 0.0
    for part, own in zip(parts, raw.split(items), strict=True):
        part = batch_of([part])
        weight = float(loss_weights(part, features)["t"])
        total += weight * losses({"t": own}, part, features)["t"]
        weights += weight
    assert weights == float(loss_weights(whole, features)["t"])
    torch.testing.assert_close(total / weights, losses({"t": raw}, whole, features)["t"])
