"""The registry of processors, and what malformed configurations and batches say."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import nn
from torch_geometric.data import Data

from graphbench.catalog.features import Feature, parse_features
from graphbench.core.errors import ConfigError, UnknownModel
from graphbench.models import processor_registry
from graphbench.models.build import ModelConfig, build_model
from graphbench.models.layers import Dropout, StochasticDepth
from graphbench.models.processor_registry import processor_class, processor_forms, register_processor
from graphbench.models.processors import Context, Processed, Processor, State

from .conftest import features_of, random_batch


def test_a_user_can_add_a_processor() -> None:
    @register_processor("doubling")
    class Doubling(Processor):
        uses_edges = False

        def __init__(self, config: ModelConfig, context: Context) -> None:
            super().__init__(config, context)
            self.factor = nn.Parameter(torch.tensor(float(config.options["factor"])))

        def forward(self, state: State) -> Processed:
            return Processed(state.nodes * self.factor)

    try:
        config = ModelConfig(processor="doubling", hidden=8, layers=1, options={"factor": 2})
        model = build_model(config, features_of("steiner_tree"), directed=False)
        batch = random_batch("steiner_tree")
        assert model(batch)["in_tree"].shape == (batch.edge_index.shape[1],)
        with pytest.raises(ValueError, match="taken"):
            register_processor("doubling")(processor_class("gin", "sparse"))
    finally:
        processor_registry._REGISTRIES["sparse"].remove("doubling")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda nodes: nodes, "Tensor; return Processed"),
        (lambda nodes: Processed(nodes[:, :3]), r"shape \[\d+, 3\].*shape \[\d+, 8\]"),
        (lambda nodes: Processed(nodes[1:]), r"nodes of shape \[\d+, 8\]"),
        (lambda nodes: Processed(None), r"returned nodes = None; expected"),
    ],
)
def test_what_a_processor_must_return(answer: Any, message: str) -> None:
    @register_processor("faulty")
    class Faulty(Processor):
        def forward(self, state: State) -> Any:
            return answer(state.nodes)

    try:
        config = ModelConfig(processor="faulty", hidden=8)
        model = build_model(config, features_of("steiner_tree"), directed=False)
        with pytest.raises(ConfigError, match=rf"^the processor 'faulty' \(.*Faulty\) .*{message}"):
            model(random_batch("steiner_tree"))
    finally:
        processor_registry._REGISTRIES["sparse"].remove("faulty")


@pytest.mark.parametrize("inverse", [False, True])
def test_a_processor_receives_the_values_of_the_inputs_it_reads(inverse: bool) -> None:
    seen: list[State] = []

    @register_processor("reader")
    class Reader(Processor):
        @classmethod
        def reads(cls, config: ModelConfig) -> tuple[Feature, ...]:
            return parse_features({"weight": ["input", "edge", "scalar"], "mark": ["input", "node", "mask"]})

        def forward(self, state: State) -> Processed:
            seen.append(state)
            return Processed(state.nodes)

    spec = {"mark": ["input", "node", "mask"], "weight": ["input", "edge", "scalar"], "t": ["output", "node", "mask"]}
    try:
        config = ModelConfig(processor="reader", hidden=8, inverse_edges=inverse, ignore=("mark",))
        model = build_model(config, parse_features(spec), directed=True)
        arcs = torch.tensor([[0, 2, 1], [1, 0, 2]])
        model(Data(edge_index=arcs, num_nodes=3, mark=torch.tensor([0, 1, 1]), weight=torch.tensor([5.0, 6.0, 7.0])))
        with pytest.raises(ConfigError, match=r"'reader'.*mark \(node mask\).*weight"):
            build_model(config.model_copy(update={"ignore": ()}), features_of("mst"), directed=True)
    finally:
        processor_registry._REGISTRIES["sparse"].remove("reader")
    assert seen[0].inputs["mark"].tolist() == [0, 1, 1] and set(seen[0].inputs) == {"mark", "weight"}
    weights = {frozenset((0, 1)): 5.0, frozenset((0, 2)): 6.0, frozenset((1, 2)): 7.0}
    ends = seen[0].layout.edge_index.t().tolist()
    assert len(ends) == (6 if inverse else 3)
    assert [weights[frozenset(pair)] for pair in ends] == seen[0].inputs["weight"].tolist()


def test_one_name_may_stand_for_several_kinds_of_input() -> None:
    assert set(processor_forms("gat")) == {"sparse", "dense"} and processor_forms("oak") == []
    assert processor_class("gat", "dense", "sparse") is not processor_class("gat", "sparse")
    assert processor_class("gin", "dense", "sparse") is processor_class("gin", "sparse")
    with pytest.raises(ValueError, match="consumes='trees' is unknown"):
        register_processor("oak", consumes="trees")  # type: ignore[arg-type]
    with pytest.raises(UnknownModel, match=r"'mpnn' consumes dense.*sparse"):
        build_model(ModelConfig(processor="mpnn"), features_of("mst"), directed=False)


def test_an_unknown_processor_is_named_and_a_near_one_suggested() -> None:
    with pytest.raises(UnknownModel, match=r"'deepset'.*did you mean 'deepsets'"):
        build_model(ModelConfig(processor="deepset"), features_of("mst"), directed=False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layer": 3}, "layer"),
        ({"positional": {"type": "rwpe"}}, "rwse"),
        ({"dropout": 1.0}, "dropout"),
        ({"processor": "gt", "hidden": 100, "heads": 16}, "not divisible"),
        ({"layers": 0}, "layers"),
    ],
)
def test_malformed_configurations(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ModelConfig.model_validate(settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"edge_tokens": True}, "edge tokens"), ({"pooling": "cls"}, "graph token")],
)
def test_settings_a_processor_cannot_follow(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_model(ModelConfig(processor="gin", **settings), features_of("mst"), directed=False)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"inputs": ["input", "node", "scalar"]}, "no output"),
        ({"p": ["input", "node", "pointer"], "t": ["output", "node", "mask"]}, "pointer"),
        ({"t": ["output", "edge", "pointer"]}, "no decoder"),
        ({"t": ["output", "graph", "mask_one"]}, "no decoder"),
    ],
)
def test_features_that_cannot_be_modelled(spec: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build_model(ModelConfig(hidden=8), parse_features(spec), directed=False)


def test_a_missing_input_is_named() -> None:
    model = build_model(ModelConfig(hidden=8, layers=1), features_of("mst"), directed=False)
    with pytest.raises(ConfigError, match="'weight'"):
        model(random_batch("bridges"))


def test_an_input_of_another_width_is_refused() -> None:
    model = build_model(ModelConfig(hidden=8, layers=1), features_of("mst"), directed=False)
    batch = random_batch("mst")
    batch.weight = torch.rand(batch.edge_index.shape[1], 3)
    with pytest.raises(ConfigError, match=r"scalar\(k\)"):
        model(batch)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.bool, torch.int64])
def test_masks_may_have_any_integer_type(dtype: torch.dtype) -> None:
    model = build_model(ModelConfig(hidden=8, layers=1), features_of("steiner_tree"), directed=False).eval()
    batch = random_batch("steiner_tree")
    expected = model(batch)["in_tree"]
    batch.is_terminal = batch.is_terminal.to(dtype)
    assert torch.equal(model(batch)["in_tree"], expected)


@pytest.mark.parametrize("pooling", ["mean", "sum", "cls"])
def test_graph_outputs_by_every_pooling(pooling: str) -> None:
    config = ModelConfig(processor="gt", hidden=8, heads=2, layers=1, pooling=pooling)
    model = build_model(config, features_of("flow"), directed=False)
    assert model(random_batch("flow"))["value"].shape == (4,)
    assert (model.processor.graph_token is not None) is (pooling == "cls")


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_dropout_drops_at_its_rate_and_keeps_the_mean(rate: float) -> None:
    layer = Dropout(rate)
    x = torch.ones(1001, 301, requires_grad=True)
    y = layer(x)
    assert float((y == 0).float().mean()) == pytest.approx(rate, abs=0.01)
    assert y.mean().item() == pytest.approx(1.0, abs=0.02)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert layer.eval()(x) is x


def test_stochastic_depth_drops_whole_graphs() -> None:
    y = StochasticDepth(0.25)(torch.ones(4000, 3, 2))
    assert all(len(set(row.flatten().tolist())) == 1 for row in y[:100])
    assert float((y[:, 0, 0] == 0).float().mean()) == pytest.approx(0.25, abs=0.04)
    assert float(y.mean()) == pytest.approx(1.0, abs=0.05)
