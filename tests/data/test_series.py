"""Samples that are times of a series, against samples made one by one from the states themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from graphbench.catalog.families import load_family
from graphbench.core.errors import ArgumentError, CardError, ChecksumMismatch, GenerationError, StoreError
from graphbench.data.arrays.quantisation import pack, unpack
from graphbench.data.arrays.samples import Samples
from graphbench.data.batches.dataset import GraphDataset
from graphbench.data.batches.series import pairs_of_runs
from graphbench.data.build.generation import draw_samples, ensure_split
from graphbench.data.components.domain import Domain, find, register_domain, topology_of, unregister
from graphbench.data.components.file_sources import file_source
from graphbench.data.components.generators import Generator
from graphbench.data.components.topologies import Topology
from graphbench.data.store.files import map_arrays
from graphbench.verification.measuring import describe

from .test_store import flip_byte

POINTS, NODES, RUN = 3, 5, 10


class Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    height: float = 0.0


class Wheel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    nodes: int = NODES


def states_of(indices, height=0.0):
    """State of time i at point p, channel c: a number that names all three."""
    points, channels = np.meshgrid(np.arange(POINTS), np.arange(2), indexing="ij")
    return np.concatenate([height + 10.0 * i + points + 100.0 * channels for i in indices]).astype(np.float32)


def generate(parameters, key, indices, attempts):
    count = len(indices)
    return Samples(
        np.full(count, POINTS),
        np.zeros(count, np.int64),
        np.empty((0, 2), np.int64),
        {
            "state": states_of(indices.tolist(), parameters.height),
            "clock": indices.astype(np.float32),
            "run": (indices // RUN).astype(np.float32),
        },
    )


def build(parameters):
    edges = np.array([(u, (u + 1) % parameters.nodes) for u in range(parameters.nodes)])
    order = np.lexsort((edges[:, 1], edges[:, 0]))
    return Samples(
        np.array([parameters.nodes]),
        np.array([parameters.nodes]),
        edges[order],
        {"grid": (np.arange(parameters.nodes) < POINTS).astype(np.uint8), "length": np.arange(parameters.nodes) / 8},
    )


CARD = {
    "version": 1,
    "title": "Counting",
    "summary": "How much a counter grows.",
    "generator": "counting.up",
    "directed": True,
    "features": {
        "state": ["input", "node", "scalar(2)"],
        "clock": ["input", "graph", "scalar"],
        "grid": ["input", "node", "mask"],
        "length": ["input", "edge", "scalar"],
        "run": ["meta", "graph", "scalar"],
        "change": ["output", "node", "scalar(2)"],
    },
    "packed": {"state": {"offset": [100, 200], "scale": [10, 10]}},
    "series": {
        "topology": "counting.wheel",
        "fixed": ["grid", "length"],
        "run": "run",
        "lead": 2,
        "changes": {"change": "state"},
    },
    "splits": {"train": {"count": 25}, "val": {"count": 12}, "test": {"count": 12}},
    "metrics": {"primary": "mse"},
    "licence": "Apache-2.0",
    "source": {"paper": "Toy"},
}


TASK = {"title": "Size", "summary": "How large it is.", "type": "predict", "metrics": {"primary": "mse"}}


@pytest.fixture
def make(tmp_path):
    """Return a function that gives the card, with other keys."""
    maker = Generator("counting.up", 1, Parameters, generate, None, lambda p, s: {}, lambda p: 7, unique=False)
    wheel = Topology("counting.wheel", Wheel, build)
    register_domain(Domain("counting", generators={"up": maker}, topologies={"wheel": wheel}))

    def card(**changes):
        path = tmp_path / "cards" / "counting" / "toy.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {key: value for key, value in {**CARD, **changes}.items() if value is not None}
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return load_family(path)[0]

    yield card
    unregister("counting")


def opened(card, root, split="train", limit=None):
    return GraphDataset(card, split, ensure_split(card, split, root, limit, workers=1, progress=False), limit=limit)


STARTS = [*range(8), *range(10, 18), *range(20, 23)]  # 25 times in runs of ten, of which the last is cut short


def test_a_state_is_stored_once_and_the_graph_never(make, tmp_path):
    card = make()
    arrays = map_arrays(ensure_split(card, "train", tmp_path, workers=1, progress=False))
    assert arrays["state"].shape == (25 * POINTS, 2)
    assert arrays["state"].dtype == np.float16
    assert set(arrays) == {"node_ptr", "edge_ptr", "edges", "state", "clock", "run"}
    assert len(arrays["edges"]) == 0


def test_samples_are_times_with_a_later_one_in_their_run(make, tmp_path):
    data = opened(make(), tmp_path)
    assert len(data) == len(STARTS)
    for sample, time in enumerate(STARTS):
        graph = data[sample]
        assert graph.num_nodes == NODES
        assert graph.edge_index.tolist() == [[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]]
        assert graph.clock.item() == time
        np.testing.assert_allclose(graph.state[:POINTS], states_of([time]), atol=0.2)  # 16 bits
        assert graph.state[POINTS:].tolist() == [[100, 200]] * (NODES - POINTS)  # the offsets of the packing
        np.testing.assert_allclose(graph.change[:POINTS], 20, atol=0.3)
        assert not graph.change[POINTS:].any()
        assert graph.grid.tolist() == [1, 1, 1, 0, 0]
        assert graph.y.shape == (NODES, 2)
        torch.testing.assert_close(graph.edge_attr, graph.length[:, None])


@pytest.mark.parametrize("chosen", [slice(3, 9), np.array([5, 0, 18, 5]), np.array([], np.int64)])
def test_batches_are_the_samples_joined(make, tmp_path, chosen):
    data = opened(make(), tmp_path)
    numbers = range(chosen.start, chosen.stop) if isinstance(chosen, slice) else chosen.tolist()
    batch = data.make_batch(chosen)
    assert batch.num_graphs == len(numbers)
    assert batch.num_nodes == NODES * len(numbers)
    for name in ("state", "change", "grid", "length", "clock", "run", "x", "y", "edge_attr"):
        parts = [data[i][name] for i in numbers]
        torch.testing.assert_close(batch[name], torch.cat(parts) if parts else batch[name][:0])
    edges = [data[i].edge_index + NODES * place for place, i in enumerate(numbers)]
    if edges:
        torch.testing.assert_close(batch.edge_index, torch.cat(edges, 1))
        torch.testing.assert_close(batch[1].change, data[numbers[1]].change)
    assert batch.batch.tolist() == [place for place in range(len(numbers)) for _ in range(NODES)]


def test_batches_of_a_size_share_the_tensors_of_the_graph(make, tmp_path):
    first, second, last = opened(make(), tmp_path).batches(8, shuffle=True)
    for name in ("edge_index", "batch", "ptr", "grid", "length", "edge_attr"):
        assert first[name].data_ptr() == second[name].data_ptr()
    assert last.num_graphs == 3
    assert first.state.data_ptr() != second.state.data_ptr()
    single = opened(make(), tmp_path)
    assert single[0].edge_index.data_ptr() != single[0].edge_index.data_ptr()  # a copy each


def test_limit_takes_the_first_times(make, tmp_path):
    data = opened(make(), tmp_path, limit=9)
    assert len(data) == 7
    assert len(data.samples) == 9
    with pytest.raises(ArgumentError, match=r"2 times.*2 steps"):
        opened(make(), tmp_path, limit=2)


def test_content_follows_the_states_behind_the_samples(make, tmp_path):
    whole, few = opened(make(), tmp_path / "a"), opened(make(), tmp_path / "b", limit=9)
    first = opened(make(), tmp_path / "a", limit=9)  # of the file that holds all states
    assert len(first) == len(few) < len(whole) and first.stored_graphs == few.stored_graphs == 9
    for number in range(len(few)):
        for name, value in few[number].to_dict().items():
            assert torch.equal(torch.as_tensor(first[number][name]), torch.as_tensor(value)), name
    assert opened(make(), tmp_path / "a", limit=9).content_hash == few.content_hash != whole.content_hash
    assert whole[[0, 1]].content_hash == opened(make(), tmp_path / "b")[[0, 1]].content_hash


def test_states_that_were_changed_in_place_have_no_hash(make, tmp_path):
    series = opened(make(), tmp_path)
    flip_byte(series.path, series.path.stat().st_size - 5)
    for chosen in (series, series[:2], series[[3, 1]]):
        with pytest.raises(ChecksumMismatch, match=str(series.path)):
            _ = chosen.content_hash


def test_stored_states_are_those_that_were_drawn(make, tmp_path):
    card = make()
    drawn, stored = draw_samples(card, "train", np.arange(25)), opened(card, tmp_path).samples
    for name, value in drawn.values.items():
        np.testing.assert_array_equal(value, stored.values[name])


def test_a_reader_gives_states_and_the_card_the_rest(make, tmp_path):
    card = make()

    def read(folder):
        return {split: generate(Parameters(), 0, np.arange(spec.count), None) for split, spec in card.splits.items()}

    def read_too_much(folder):
        return {
            split: replace(own, values={**own.values, "change": own.values["state"]})
            for split, own in read(folder).items()
        }

    source = file_source("mine.states", read)
    register_domain(Domain("mine", sources={"states": source}))
    try:
        drawn, given = opened(card, tmp_path / "drawn"), opened(source.card(card, tmp_path), tmp_path / "given")
    finally:
        unregister("mine")
    assert len(given) == len(STARTS)
    for number in (0, len(STARTS) - 1):
        expected = drawn[number].to_dict()
        assert given[number].to_dict().keys() == expected.keys()
        for name, value in expected.items():
            assert torch.equal(torch.as_tensor(given[number][name]), torch.as_tensor(value)), name
    with pytest.raises(StoreError, match="values change, clock, run, state"):
        file_source("mine.states", read_too_much).card(card, tmp_path)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6)), max_size=6), st.integers(1, 4))
def test_pairs_by_brute_force(parts, lead):
    runs = np.array([run for run, length in parts for _ in range(length)], np.float32)
    expected = [
        i for i in range(len(runs)) if i + lead < len(runs) and all(runs[i + k] == runs[i] for k in range(lead + 1))
    ]
    assert pairs_of_runs(runs, lead).tolist() == expected


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-6e4, 6e4), min_size=1, max_size=20), st.floats(-1e3, 1e3), st.floats(1.0, 1e3))
def test_packing_keeps_eleven_bits(values, offset, scale):
    from graphbench.catalog.series import PackSpec

    rows, spec = np.array(values)[:, None] * scale + offset, PackSpec(offset=(offset,), scale=(scale,))
    found = unpack(pack(rows, spec), spec)
    np.testing.assert_array_less(np.abs(found - rows), np.abs(rows - offset) * 2**-10 + scale * 1e-6 + 1e-2)


def test_packed_features_of_other_datasets(make_card, tmp_path):
    """A feature without a series may be packed as well: batches hold its values."""
    card = make_card(
        features={
            "weight": ["input", "edge", "scalar"],
            "in_tree": ["output", "edge", "mask"],
            "model": ["meta", "graph", "categorical(6)"],
        },
        packed={"weight": {"offset": [0.5], "scale": [0.25]}},
    )
    plain = make_card()
    found = GraphDataset(card, "val", ensure_split(card, "val", tmp_path, workers=1))
    expected = GraphDataset(plain, "val", ensure_split(plain, "val", tmp_path, workers=1))
    assert map_arrays(found.path)["weight"].dtype == np.float16
    torch.testing.assert_close(found[3].weight, expected[3].weight, atol=5e-3, rtol=0)
    torch.testing.assert_close(
        next(iter(found.batches(5))).weight, next(iter(expected.batches(5))).weight, atol=5e-3, rtol=0
    )


def test_values_too_large_for_16_bits_are_refused(make, tmp_path):
    card = make(packed={"state": {"scale": [1e-4, 1e-4]}})
    with pytest.raises(GenerationError, match="state has values too large for 16 bits"):
        opened(card, tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"packed": {"change": {}}}, "packed names 'change'"),
        ({"packed": {"state": {"offset": [1.0]}}}, r"packed.state.offset has 1 numbers, state has 2 columns"),
        ({"packed": {"state": {"scale": [1.0, 0.0]}}}, "greater than 0"),
        ({"directed": False}, "directed: true"),
        ({"series": {**CARD["series"], "lead": 0}}, "lead"),
        ({"series": {**CARD["series"], "run": "grid"}}, "series.run is 'grid'"),
        ({"series": {**CARD["series"], "fixed": ["grid"]}}, r"\['length'\] are features of edges"),
        ({"series": {**CARD["series"], "changes": {"change": "clock"}}}, "both must be the same"),
        ({"series": {**CARD["series"], "changes": {"change": "states"}}}, r"names \['states'\]"),
        ({"complete": True}, "remove complete"),
        (
            {"representations": {"other": {"title": "Other", "derived_by": "sat.literal_clause"}}},
            "remove representations",
        ),
        ({"features": {**CARD["features"], "step": ["hint", "graph", "scalar"]}}, "remove hints"),
        (
            {
                "labels": {"co.mis": {"features": {"size": ["meta", "graph", "scalar"]}}},
                "tasks": {"own": {**TASK, "labels": "co.mis", "outputs": ["size"]}},
                "metrics": None,
            },
            "remove labels",
        ),
    ],
)
def test_cards_that_do_not_fit_are_refused(make, changes, message):
    with pytest.raises(CardError, match=message):
        make(**changes)


def test_out_of_distribution_splits_are_series_as_well(make, tmp_path):
    """A split beside the three is made of states like them; its samples are pairs of its own runs."""
    ood = {"far": {"count": 12, "shift": "higher", "parameters": {"height": 500.0}}}
    card = make(ood=ood)
    data = opened(card, tmp_path, "far")
    assert len(data) == 8
    np.testing.assert_allclose(data[3].state[:POINTS], states_of([3], 500.0), atol=0.5)
    np.testing.assert_allclose(data[3].change[:POINTS], 20, atol=1)


def test_sizes_of_a_series_are_those_of_its_graph(make):
    """Statistics count the graph of the samples, and not the stored states, which have no edges."""
    card = make()
    graph = topology_of(card)
    maker = find("generator", card.generator)
    found = describe(maker, Parameters(), draw_samples(card, "train", np.arange(4)), graph)
    assert found == {"nodes": (NODES, 0), "edges": (NODES, 0)}
    plain = describe(maker, Parameters(), draw_samples(card, "train", np.arange(4)))
    assert plain == {"nodes": (POINTS, 0), "edges": (0, 0)}


@pytest.mark.parametrize(
    ("series", "message"),
    [
        ({"topology": "counting.weel"}, "did you mean"),
        ({"parameters": {"node": 3}}, "did you mean 'nodes'"),
    ],
)
def test_structures_that_do_not_fit_are_refused(make, tmp_path, series, message):
    with pytest.raises(CardError, match=message):
        opened(make(series={**CARD["series"], **series}), tmp_path)
