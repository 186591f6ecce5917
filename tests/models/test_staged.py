"""Interaction networks in stages, against the formula written out."""

from __future__ import annotations

import pytest
import torch

from graphbench.core.errors import ConfigError
from graphbench.models.config import ModelConfig
from graphbench.models.processors.base import Context, State
from graphbench.models.processors.staged import InteractionLayer, Staged

from .conftest import layout_of

CONTEXT = Context(directed=True, edge_tokens=False, graph_token=False)
ARCS = torch.tensor([[0, 1, 2, 3, 2, 3], [2, 2, 3, 2, 0, 1]])  # grid 0, 1; mesh 2, 3
KINDS = torch.tensor([1, 1, 0, 0, 2, 2])


def config(stages: list[int], **options: object) -> ModelConfig:
    given = {"by": "relation", "classes": 3, "stages": stages, **options}
    return ModelConfig(processor="staged", hidden=8, layers=len(stages), dropout=0.0, options=given)


def state(nodes: torch.Tensor, edges: torch.Tensor) -> State:
    return State(nodes, edges, None, layout_of(ARCS, 4), {"relation": KINDS})


def test_a_layer_is_the_formula_written_out() -> None:
    layer = InteractionLayer(config([0])).eval()
    nodes, edges, arcs = torch.randn(4, 8), torch.randn(3, 8), torch.tensor([[0, 1, 3], [2, 2, 1]])
    found, found_edges = layer(nodes, edges, arcs, torch.tensor([1, 2]))
    expected, messages = nodes.clone(), []
    for a, (u, v) in enumerate(arcs.t().tolist()):
        messages.append(layer.message(layer.edge(edges[a]) + layer.sender(nodes[u]) + layer.receiver(nodes[v])))
    for v in (1, 2):
        total = sum(m for m, target in zip(messages, arcs[1].tolist(), strict=True) if target == v)
        expected[v] = nodes[v] + layer.update(layer.own(nodes[v]) + layer.received(total))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found_edges, edges + torch.stack(messages), atol=1e-5, rtol=1e-4)


def test_stages_use_the_arcs_of_their_class_alone() -> None:
    nodes, edges = torch.randn(4, 8), torch.randn(6, 8)
    encoded = Staged(config([1]), CONTEXT).eval()(state(nodes, edges)).nodes
    same = [torch.equal(a, b) for a, b in zip(encoded, nodes, strict=True)]
    assert same == [True, True, False, True]  # only node 2 has arcs of class 1 into it
    whole = Staged(config([1, 0, 2]), CONTEXT).eval()
    changed = nodes.clone()
    changed[1] = torch.randn(8)
    one, two = (whole(state(given, edges)).nodes for given in (nodes, changed))
    assert not torch.isclose(one[0], two[0]).all()  # from 1 to the mesh, along the mesh to and fro, and to 0


def test_edges_of_a_class_keep_what_its_stages_gave_them() -> None:
    torch.manual_seed(1)
    model = Staged(config([0, 0]), CONTEXT).eval()
    nodes, edges = torch.randn(4, 8), torch.randn(6, 8)
    arcs, own, receivers = ARCS[:, 2:4], edges[2:4], torch.tensor([2, 3])
    middle, after = model.layers[0](nodes, own, arcs, receivers)
    expected, _ = model.layers[1](middle, after, arcs, receivers)
    torch.testing.assert_close(model(state(nodes, edges)).nodes, expected)
    alike = torch.randn(1, 8)  # one embedding for all edges
    torch.testing.assert_close(model(state(nodes, alike)).nodes, model(state(nodes, alike.expand(6, 8))).nodes)


def test_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="stages names the class 3"):
        Staged(config([1, 3]), CONTEXT)
    (feature,) = Staged.reads(config([0]))
    assert (feature.name, feature.classes) == ("relation", 3)


@pytest.mark.parametrize("layers", [1, 2, 6])
def test_the_number_of_layers_is_the_number_of_stages(layers: int) -> None:
    other = config([1, 0, 2]).model_copy(update={"layers": layers})
    for build in (Staged.reads, lambda config: Staged(config, CONTEXT)):
        with pytest.raises(ConfigError, match=f"model.layers is {layers}, but model.options.stages has 3 stages"):
            build(other)
    assert len(Staged(config([1, 0, 2]), CONTEXT).layers) == 3
