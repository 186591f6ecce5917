"""Checks of the labels of one labeller, for cards with tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Kind, Location
from graphbench.catalog.schema import Schema
from graphbench.catalog.sections import MeasuredLabels
from graphbench.data.arrays.samples import Samples
from graphbench.data.build.generation import add_labels
from graphbench.data.build.labelling import label_samples
from graphbench.data.components.checks import CheckFailed, CheckSkipped, Row, random_numbers
from graphbench.data.components.domain import find
from graphbench.data.store.labels import with_labels
from graphbench.data.store.layout import Manifest, find_file, label_folder
from graphbench.data.store.shards import stored_samples
from graphbench.verification.comparing import ask, compare_hash, compare_statistics, rows_of
from graphbench.verification.measuring import FIRST, describe_labels, labels_hash

_LABEL_NODES = 4_000  # nodes of stored graphs that are labelled again, per split: a solver takes seconds for these


class LabelChecks:
    """All checks of the labels of one labeller in one split.

    ``graphs`` are first draws of the first `FIRST` samples of the split, without labels.
    """

    def __init__(
        self, card: Card, labeller: str, split: str, folder: Path, samples: int | None, graphs: Samples
    ) -> None:
        self.card, self.split, self.folder, self.samples, self.graphs = card, split, folder, samples, graphs
        self.labeller, self.schema = find("labeller", labeller), card.label_schemas[labeller]
        self.stored_schema = replace(card.graph_schema, features=(*card.graph_features, *self.schema.features))

    @cached_property
    def first(self) -> Samples:
        """First draws of the first samples, with labels."""
        count = min(self.samples or FIRST, len(self.graphs))
        graphs = self.graphs.part(self.card.graph_schema, 0, count)
        return add_labels(self.card, self.split, np.arange(count), graphs, (self.labeller.name,))

    def rows(self) -> Iterator[Row]:
        """Yield one row per check."""
        name = self.labeller.name
        checks = (
            (f"first labels, {name}", self.first_labels),
            (f"solutions, {name}", self.solutions),
            (f"stored labels, {name}", self.stored_labels),
            (f"statistics, {name}", self.statistics),
        )
        return rows_of(self.split, checks)

    @property
    def measured(self) -> MeasuredLabels:
        """The measurements of the labels on the card."""
        known = {} if self.card.measured is None else self.card.measured.labels
        return known.get(self.labeller.name, MeasuredLabels())

    def first_labels(self) -> str:
        """Compare the labels of the first samples, bit for bit, with the hash on the card."""
        pinned, count = self.measured.first_samples.get(self.split), len(self.first)
        of_card = min(FIRST, self.card.split(self.split).count)
        if pinned is not None and count < of_card:
            raise CheckSkipped(f"{count} graphs; the hash on the card is of the first {of_card}")
        return compare_hash(labels_hash(self.schema, self.first), pinned, count, not self.card.data_seed)

    def solutions(self) -> str:
        """Check the labels of the first samples with the labeller's independent checker; none may have failed."""
        samples = self.first
        failed = int((samples.values[self.labeller.failed] != 0).sum())
        if failed:
            raise CheckFailed(f"the labeller failed on {failed} of {len(samples)} graphs")
        for i in range(len(samples)):
            one = samples.part(self.stored_schema, i, i + 1)
            graph, values = one.part(self.card.graph_schema, 0, 1), _values_of(self.schema, one)
            problems = ask(f"check of {self.labeller.name}", self.labeller.check, graph, values)
            if problems:
                raise CheckFailed(f"graph {i}: {problems[0]}")
        return f"{len(samples)} graphs checked independently of the solver"

    def stored_labels(self) -> str:
        """Check the file's checksum; check a random sample of its labels, and compare these with new labels."""
        folder = label_folder(self.card, self.labeller.name, self.folder)
        stem = self.card.stored_name(self.split)
        name, graphs = (find_file(stem, 1, place) for place in (folder, self.folder))
        if name is None or graphs is None:
            raise CheckSkipped("not generated here")
        Manifest(folder).check(name, full=True)
        labels = stored_samples(self.schema, folder / name)
        drawn = stored_samples(self.card.graph_schema, self.folder / graphs)
        count = min(len(labels), len(drawn))
        size = min(count, self.samples or max(2, int(_LABEL_NODES / float(drawn.num_nodes.mean()))))
        chosen = np.sort(random_numbers(self.card, self.split, count, size))
        again = label_samples(self.card, self.labeller.name, self.split, chosen, drawn, chosen)
        for position, index in enumerate(chosen.tolist()):
            stored = labels.part(self.schema, index, index + 1)
            regenerated = again.part(self.schema, position, position + 1)
            if labels_hash(self.schema, stored) != labels_hash(self.schema, regenerated):
                raise CheckFailed(f"the stored label {index} differs from the labeller's; delete {folder / name}")
            graph = drawn.part(self.card.graph_schema, index, index + 1)
            with_labels(self.card, self.labeller.name, graph, stored)
        return f"checksum right, {size} of {count} labels computed again and equal"

    def statistics(self) -> str:
        """Compare mean statistics with the card's, in standard errors."""
        recomputed = ask(f"statistics of {self.labeller.name}", describe_labels, self.labeller, self.first)
        known = self.measured.statistics.get(self.split)
        known_count = self.measured.statistics_samples.get(self.split, 1)
        return compare_statistics(self.card, recomputed, len(self.first), known, known_count)


def _values_of(schema: Schema, one: Samples) -> dict[str, object]:
    """Return the label of a single graph, in the form that the labeller returns."""
    values: dict[str, object] = {}
    for f in schema.features:
        rows = one.values[f.name].strings() if f.kind is Kind.TEXT else one.values[f.name]
        values[f.name] = rows[0] if f.location is Location.GRAPH else rows
    return values
