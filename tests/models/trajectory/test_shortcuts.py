"""What is computed in a cheaper way than it is written: the same values and gradients as written out."""

import pytest
import torch
import torch.nn.functional as F

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.models.trajectory import decoders
from graphbench.models.trajectory.config import TrajectoryModelConfig
from graphbench.models.trajectory.decoders import DecoderInput, FeatureDecoder, excess_over, relu_of_triples
from graphbench.models.trajectory.encoders import PairVectors, adjacency
from graphbench.models.trajectory.layers import linear, thin_linear
from graphbench.models.trajectory.processors import maxima
from graphbench.models.trajectory.processors.base import Step
from graphbench.models.trajectory.processors.maxima import max_over_senders, max_plus
from graphbench.models.trajectory.processors.message_passing import DeepSets, MessagePassing, TripletMessagePassing

B, N, H = 2, 5, 8


def random(*shape):
    return torch.randn(*shape, dtype=torch.double, requires_grad=True)


def assert_same_with_gradients(found, expected, sources):
    torch.testing.assert_close(found, expected)
    weights = torch.randn_like(expected)
    ours = torch.autograd.grad((found * weights).sum(), sources, retain_graph=True)
    theirs = torch.autograd.grad((expected * weights).sum(), sources)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b)


@pytest.fixture(params=[1, 1 << 20], ids=["in many pieces", "at once"])
def _pieces(request, monkeypatch):
    for module in (maxima, decoders):
        monkeypatch.setattr(module, "cells_at_once", lambda device: request.param)


def test_max_over_senders():
    messages = random(B, N, N, H)
    assert_same_with_gradients(max_over_senders(messages), messages.max(1).values, (messages,))
    assert torch.equal(max_over_senders(messages.detach()), messages.max(1).values)


def test_equal_messages_share_no_gradient_twice():
    messages = torch.ones(1, 3, 1, 1, requires_grad=True)
    max_over_senders(messages).sum().backward()
    assert messages.grad.sum() == 1


def test_messages_that_are_no_numbers_stay_so():
    messages = torch.full((1, 3, 1, 1), torch.nan, requires_grad=True)
    found = max_over_senders(messages)
    assert found.isnan().all()
    found.sum().backward()


@pytest.mark.usefixtures("_pieces")
def test_max_plus():
    left, right = random(B, N, N, 3), random(B, N, N, 3)
    expected = (left.unsqueeze(3) + right.unsqueeze(2)).max(1).values
    assert_same_with_gradients(max_plus(left, right), expected, (left, right))
    with torch.no_grad():
        torch.testing.assert_close(max_plus(left, right), expected)


@pytest.mark.usefixtures("_pieces")
def test_excess_over():
    sources, targets, weight = random(B, N, N, H), random(B, N, H), random(H)
    expected = F.relu(targets[:, None, None] - sources.unsqueeze(3)) @ weight
    assert_same_with_gradients(excess_over(sources, targets, weight), expected, (sources, targets, weight))
    with torch.no_grad():
        torch.testing.assert_close(excess_over(sources, targets, weight), expected)


@pytest.mark.usefixtures("_pieces")
def test_relu_of_triples():
    ends, firsts, seconds, weight = random(B, N, N, H), random(B, N, N, H), random(B, N, N, H), random(H)
    expected = F.relu(ends.unsqueeze(3) + firsts.unsqueeze(2) + seconds.unsqueeze(1)) @ weight
    assert_same_with_gradients(
        relu_of_triples(ends, firsts, seconds, weight), expected, (ends, firsts, seconds, weight)
    )
    with torch.no_grad():
        torch.testing.assert_close(relu_of_triples(ends, firsts, seconds, weight), expected)


@pytest.mark.parametrize("name", ["mpnn", "triplet_mpnn"])
def test_pointers_of_edges_from_triplets(name):
    kind = TripletMessagePassing if name == "triplet_mpnn" else MessagePassing
    step = step_of(processor := processor_of(kind, name))
    feature = Feature("p", Stage.OUTPUT, Location.EDGE, Kind.POINTER)
    decoder = FeatureDecoder(feature, H, messages=kind.makes_messages, triplets=True).double()
    state = DecoderInput(step, random(B, N, H), processor)
    pairs = step.pairs.full()
    if kind.makes_messages:
        pairs = torch.cat([pairs, state.messages], -1)
    expected = torch.empty(B, N, N, N, dtype=torch.double)
    for i in range(N):
        for j in range(N):
            for k in range(N):
                total = (
                    decoder.first(state.nodes[:, i]) + decoder.second(state.nodes[:, j]) + decoder.pair(pairs[:, i, j])
                )
                total = total + decoder.third(state.nodes[:, k])
                total = total + decoder.sides[0](pairs[:, i, k]) + decoder.sides[1](pairs[:, k, j])
                expected[:, i, j, k] = decoder.last(F.relu(total)).squeeze(-1)
    sources = (step.nodes, step.pairs.columns, *decoder.parameters())
    assert_same_with_gradients(decoder(state), expected, sources)


def test_thin_linear():
    columns, layer = random(B, N, N, 3), torch.nn.Linear(3, H).double()
    weight = layer.weight.t().contiguous()
    assert_same_with_gradients(thin_linear(columns, weight, layer.bias), layer(columns), (columns, *layer.parameters()))


def step_of(processor):
    pairs = PairVectors(random(B, N, N, 3), random(H, 3), random(H))
    return Step(random(B, N, 2 * H), pairs, random(B, H), torch.rand(B, N, N) > 0.5)


def processor_of(kind, name):
    torch.manual_seed(0)
    return kind(TrajectoryModelConfig(processor=name, hidden=H, nb_triplet_features=3)).double()


def written_out_messages(processor, step):
    """Return ``[B, sender, receiver, h]``: a network of sender, receiver, pair and graph side by side."""
    shape = (B, N, N, -1)
    parts = (step.nodes.unsqueeze(2), step.nodes.unsqueeze(1), step.pairs.full(), step.graph[:, None, None])
    layers = (processor.sender, processor.receiver, processor.pair, processor.graph)
    joined = torch.cat([part.expand(shape) for part in parts], -1)
    total = joined @ torch.cat([layer.weight for layer in layers], 1).t() + sum(layer.bias for layer in layers)
    return processor.outer(F.relu(processor.inner(F.relu(total))))


@pytest.mark.parametrize("name", ["mpnn", "pgn"])
def test_messages(name):
    processor = processor_of(MessagePassing, name)
    step = step_of(processor)
    messages = written_out_messages(processor, step)
    if name == "pgn":
        messages = messages.masked_fill(~step.neighbours.unsqueeze(-1), -1e6)
    sources = (step.nodes, step.pairs.columns, step.graph, processor.inner.weight, processor.pair.weight)
    assert_same_with_gradients(processor.aggregate(step), messages.max(1).values, sources)


def test_messages_of_nodes_to_themselves():
    processor = processor_of(DeepSets, "deepsets")
    step = step_of(processor)
    expected = written_out_messages(processor, step).diagonal(dim1=1, dim2=2).transpose(1, 2)
    assert_same_with_gradients(processor.aggregate(step), expected, (step.nodes, step.pairs.columns, step.graph))


def test_triplets():
    processor = processor_of(TripletMessagePassing, "triplet_mpnn")
    step = step_of(processor)
    nodes, pairs = step.nodes, step.pairs.full()
    i, j, k = (corner(nodes) for corner in processor.corners)
    ij, ik, jk = (side(pairs) for side in processor.sides)
    triples = i[:, :, None, None] + j[:, None, :, None] + k[:, None, None] + ij.unsqueeze(3) + ik.unsqueeze(2)
    triples = triples + jk.unsqueeze(1) + processor.of_graph(step.graph)[:, None, None, None]
    found = processor.triplets(step)
    assert_same_with_gradients(found, triples.max(1).values, (nodes, step.pairs.columns, step.graph))


@pytest.mark.parametrize("name", ["mpnn", "triplet_mpnn"])
@pytest.mark.parametrize("location", [Location.NODE, Location.EDGE])
def test_pointers(location, name):
    kind = TripletMessagePassing if name == "triplet_mpnn" else MessagePassing
    processor = processor_of(kind, name)
    step = step_of(processor)
    feature = Feature("p", Stage.OUTPUT, location, Kind.POINTER)
    decoder = FeatureDecoder(feature, H, messages=kind.makes_messages).double()
    state = DecoderInput(step, random(B, N, H), processor)
    pairs = step.pairs.full()
    if kind.makes_messages:
        pairs = torch.cat([pairs, state.messages], -1)
    first, second, pair = decoder.first(state.nodes), decoder.second(state.nodes), decoder.pair(pairs)
    if location is Location.NODE:
        largest = torch.maximum(first.unsqueeze(2), second.unsqueeze(1) + pair.transpose(1, 2))
    else:
        ends = first.unsqueeze(2) + second.unsqueeze(1) + pair
        largest = torch.maximum(ends.unsqueeze(3), decoder.third(state.nodes)[:, None, None])
    expected = decoder.last(largest).squeeze(-1)
    sources = (step.nodes, step.pairs.columns, *decoder.parameters())
    assert_same_with_gradients(decoder(state), expected, sources)


def test_neighbours_are_strong_pointers_and_any_edge():
    pointer = Feature("p", Stage.HINT, Location.NODE, Kind.POINTER)
    mask = Feature("m", Stage.HINT, Location.EDGE, Kind.MASK)
    value = torch.zeros(1, 3, 3)
    value[0, 0, 1], value[0, 1, 0], value[0, 1, 2], value[0, 2, 0] = 0.3, 0.3, 0.4, -1
    joined = adjacency([pointer], {"p": value})[0]
    assert joined.tolist() == [[False, True, False], [True, False, False], [False, False, False]]
    joined = adjacency([mask], {"m": value})[0]
    assert joined.tolist() == [[False, True, False], [True, False, True], [False, True, False]]
    assert adjacency([Feature("d", Stage.HINT, Location.EDGE, Kind.SCALAR)], {"d": value}) is None


def test_weights_start_as_in_the_reference():
    torch.manual_seed(0)
    layer = linear(400, 300)
    assert layer.bias.abs().max() == 0
    assert layer.weight.abs().max() <= 2 / 20
    assert layer.weight.std().item() == pytest.approx(0.8796 / 20, rel=0.01)  # cutting at 2 deviations narrows it
