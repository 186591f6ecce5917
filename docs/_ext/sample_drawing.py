"""Draw one small sample of a dataset, its label highlighted, by the locations and types of its features alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import networkx as nx
import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.data.arrays.samples import Samples
from graphbench.data.build.generation import draw_samples
from graphbench.data.components.domain import find

MASKS = (Kind.MASK, Kind.MASK_ONE)
CANDIDATES = 64
SHARES = ((0.1, 0.75), (0.0, 1.0))  # of positive labels; the first range that any candidate meets counts
INK, GREY, ACCENT, PALE = "#1f3a5f", "#b5bcc6", "#d1603d", "#e8edf3"
MARKS = ("#1f8a70", "#8e44ad", "#c79a00")


@dataclass(frozen=True)
class Sample:
    """One graph of a split: its number, node count, edges ``[m, 2]`` and the rows of its features."""

    index: int
    nodes: int
    edges: NDArray[np.int64]
    values: Mapping[str, NDArray[Any]]
    card: Card

    def features(self, stage: Stage, location: Location) -> list[Feature]:
        """Return the features of one stage at one location."""
        return [f for f in self.card.features if f.stage is stage and f.location is location]


def has_picture(card: Card) -> bool:
    """Return whether samples of a dataset can be drawn as pictures: not those of files or series, nor a large graph."""
    generator = find("generator", card.generator)
    return generator.drawn and generator.limited is None and card.series is None


def candidates(card: Card, split: str = "train") -> int:
    """Return the number of samples that a picture is chosen from: fewer where samples take long to draw."""
    generator = find("generator", card.generator)
    share = generator.shard_size(generator.parse(card, split)) // 4  # whose cost is about constant
    return max(1, min(CANDIDATES, card.split(split).count, share))


def pick_sample(card: Card, split: str = "train") -> Sample:
    """Return a sample that is easy to read: few edges, mask labels neither rare nor everywhere.

    Of the first samples of the split with informative labels, it is the one at the lower quartile of edges: the
    sparsest ones are often trees, on which many tasks are trivial.
    """
    drawn = draw_samples(card, split, np.arange(candidates(card, split)))
    samples = [_one(card, drawn, i) for i in range(len(drawn))]
    masks = [f.name for f in card.outputs if f.kind in MASKS]
    for low, high in SHARES:
        informative = [s for s in samples if all(low < s.values[name].mean() < high for name in masks)]
        if informative:
            return sorted(informative, key=lambda s: len(s.edges))[len(informative) // 4]
    return samples[0]


def _one(card: Card, drawn: Samples, i: int) -> Sample:
    one = drawn.part(card.stored_schema, i, i + 1)
    return Sample(i, int(one.num_nodes[0]), one.edges.astype(np.int64), one.values, card)


def draw(sample: Sample, path: Path) -> None:
    """Write the picture of a sample; the file's bytes depend on the sample alone."""
    figure = Figure(figsize=(6.6, 4.7), layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    graph = nx.DiGraph() if sample.card.directed else nx.Graph()
    graph.add_nodes_from(range(sample.nodes))
    graph.add_edges_from(sample.edges.tolist())
    places = nx.kamada_kawai_layout(graph.to_undirected())
    legend = [*_draw_edges(axes, graph, places, sample), *_draw_nodes(axes, graph, places, sample)]
    title = _graph_labels(sample)
    if title:
        axes.set_title(title, fontsize=11, color=ACCENT, fontweight="bold")
    axes.margins(0.08)
    if legend:
        figure.legend(handles=legend, loc="outside lower center", ncols=3, frameon=False, fontsize=8.5)
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": sample.card.id, "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None, "Creator": None})


def _draw_edges(axes: Any, graph: nx.Graph, places: Mapping[int, Any], sample: Sample) -> list[Line2D]:
    edges = [tuple(edge) for edge in sample.edges.tolist()]
    labels = [f for f in sample.features(Stage.OUTPUT, Location.EDGE) if f.kind in MASKS]
    marked = sample.values[labels[0].name].astype(bool) if labels else np.zeros(len(edges), bool)
    plain = [e for e, hit in zip(edges, marked, strict=True) if not hit]
    hits = [e for e, hit in zip(edges, marked, strict=True) if hit]
    style = {"arrowsize": 11, "node_size": 260} if sample.card.directed else {}
    nx.draw_networkx_edges(graph, places, edgelist=plain, ax=axes, edge_color=GREY, width=1.2, **style)
    nx.draw_networkx_edges(graph, places, edgelist=hits, ax=axes, edge_color=ACCENT, width=3.2, **style)
    legend = [Line2D([], [], color=ACCENT, linewidth=3.2, label=f"{labels[0].name} = 1")] if labels else []
    scalars = [f for f in sample.features(Stage.INPUT, Location.EDGE) if f.kind is Kind.SCALAR]
    if scalars and len(edges) <= 60:
        legend.append(_edge_numbers(axes, graph, places, sample, edges, scalars[0]))
    return legend


def _edge_numbers(
    axes: Any, graph: nx.Graph, places: Mapping[int, Any], sample: Sample, edges: Iterable[Any], feature: Feature
) -> Line2D:
    rows = np.atleast_2d(sample.values[feature.name].T).T
    text = {edge: " / ".join(f"{v:.1f}" for v in row) for edge, row in zip(edges, rows, strict=True)}
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.85}
    nx.draw_networkx_edge_labels(
        graph, places, text, ax=axes, font_size=7, font_color="#444444", rotate=False, bbox=box
    )
    note = " (u to v / v to u, u < v)" if rows.shape[1] == 2 else ""
    return Line2D([], [], linestyle="none", label=f"numbers: {feature.name}{note}")


def _draw_nodes(axes: Any, graph: nx.Graph, places: Mapping[int, Any], sample: Sample) -> list[Line2D]:
    colours, legend = _node_colours(sample)
    rings = [INK] * sample.nodes
    widths = [1.0] * sample.nodes
    marks = [f for f in sample.features(Stage.INPUT, Location.NODE) if f.kind in MASKS]
    for feature, colour in zip(marks, MARKS, strict=False):
        for node in np.flatnonzero(sample.values[feature.name]):
            rings[node], widths[node] = colour, 3.4
        legend.append(_dot(PALE, colour, f"{feature.name} = 1"))
    nx.draw_networkx_nodes(
        graph, places, ax=axes, node_color=colours, edgecolors=rings, linewidths=widths, node_size=260
    )
    dark = [_is_dark(colour) for colour in colours]
    for shade, ink in ((True, "white"), (False, INK)):
        names = {v: str(v) for v in range(sample.nodes) if dark[v] is shade}
        nx.draw_networkx_labels(graph, places, names, ax=axes, font_size=7.5, font_color=ink)
    scalars = [f for f in sample.features(Stage.INPUT, Location.NODE) if f.kind is Kind.SCALAR]
    if scalars:
        below = {v: (x, y - 0.105) for v, (x, y) in places.items()}
        text = {v: f"{value:.2f}" for v, value in enumerate(sample.values[scalars[0].name].tolist())}
        nx.draw_networkx_labels(graph, below, text, ax=axes, font_size=7, font_color="#444444")
        legend.append(Line2D([], [], linestyle="none", label=f"numbers: {scalars[0].name}"))
    return legend


def _node_colours(sample: Sample) -> tuple[list[Any], list[Line2D]]:
    """Return one colour per node from the label, and its legend."""
    outputs = sample.features(Stage.OUTPUT, Location.NODE)
    if not outputs:
        return [PALE] * sample.nodes, []
    feature = outputs[0]
    values = sample.values[feature.name]
    if feature.kind in MASKS:
        return [ACCENT if hit else PALE for hit in values], [_dot(ACCENT, INK, f"{feature.name} = 1")]
    low, high = float(values.min()), float(values.max())
    scale = colormaps["viridis"]
    shares = (values - low) / max(high - low, 1e-12)
    ends = [(0.0, low), (1.0, high)]
    legend = [_dot(scale(share), INK, f"{feature.name} = {value:g}") for share, value in ends]
    return [scale(float(share)) for share in shares], legend


def _dot(face: Any, ring: Any, label: str) -> Line2D:
    width = 1.0 if ring == INK else 2.6
    return Line2D(
        [], [], linestyle="none", marker="o", markersize=9, color=face, markeredgecolor=ring,
        markeredgewidth=width, label=label,
    )  # fmt: skip


def _is_dark(colour: Any) -> bool:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue < 0.55


def _graph_labels(sample: Sample) -> str:
    outputs = sample.features(Stage.OUTPUT, Location.GRAPH)
    return ", ".join(f"{f.name} {_in_words(f, sample.values[f.name])}" for f in outputs)


def _in_words(feature: Feature, values: Any) -> str:
    """Return the value of a graph; of a text its length, as it may be long."""
    if feature.kind is Kind.TEXT:
        return f"of {len(values.strings()[0]):,} characters"
    return f"= {float(values[0]):.4g}"
