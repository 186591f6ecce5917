"""Checks of the labels of a task: the part of `verification` that is for cards with tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from graphbench.catalog.cards import Card
from graphbench.core.errors import GraphBenchError
from graphbench.data.checks import CheckFailed, CheckSkipped, Row, random_numbers
from graphbench.data.labels import label_samples, labeller_of, with_labels
from graphbench.data.layout import find_file, label_folder
from graphbench.data.samples import Samples
from graphbench.data.shards import stored_samples
from graphbench.data.store import Manifest
from graphbench.evaluation.shares import means_text
from graphbench.verification.measuring_labels import (
    FIRST_LABELS,
    describe_labels,
    labelled,
    labelled_first,
    labels_hash,
)

_LABEL_NODES = 4_000  # nodes of stored graphs that are labelled anew, per split: a solver takes seconds for these
_SIGMAS = 5.0
_ROUNDING = 1e-6  # the card's numbers have six digits


class LabelChecks:
    """All checks of the labels of one split."""

    def __init__(self, card: Card, split: str, folder: Path, samples: int | None) -> None:
        self.card, self.split, self.folder, self.samples = card, split, folder, samples
        self.labeller = labeller_of(card)

    @cached_property
    def first(self) -> Samples:
        """First draws of the first samples, with labels."""
        return labelled_first(self.card, self.split, self.samples)

    def rows(self) -> Iterator[Row]:
        """Yield one row per check."""
        name = self.labeller.name
        checks: tuple[tuple[str, Callable[[], str]], ...] = (
            (f"first labels, {name}", self.first_labels),
            (f"solutions, {name}", self.solutions),
            (f"stored labels, {name}", self.stored_labels),
            (f"statistics, {name}", self.statistics),
        )
        for what, check in checks:
            try:
                yield Row(self.split, what, True, check())
            except CheckSkipped as reason:
                yield Row(self.split, what, True, str(reason), "skipped")
            except (CheckFailed, GraphBenchError) as failure:
                yield Row(self.split, what, False, str(failure))

    def first_labels(self) -> str:
        """Compare the labels of the first samples, bit for bit, with the hash on the card."""
        found, count = labels_hash(self.card, self.first), len(self.first)
        measured = self.card.measured.labels.get(self.labeller.name) if self.card.measured else None
        pinned = measured.first_samples.get(self.split) if measured else None
        if pinned is None:
            raise CheckSkipped(f"{count} graphs, no hash on the card{'' if self.card.data_seed else ' yet'}")
        of_card = min(FIRST_LABELS, self.card.split(self.split).count)
        if count < of_card:
            raise CheckSkipped(f"{count} graphs; the hash on the card is of the first {of_card}")
        if pinned != found:
            raise CheckFailed(f"hash {found[:12]} of the first {count} labels, the card has {pinned[:12]}")
        return f"{count} graphs, bit for bit as on the card ({found[:12]})"

    def solutions(self) -> str:
        """Check the labels of the first samples by the labeller's independent checker; none may have failed."""
        return self._checked(self.first)

    def _checked(self, samples: Samples) -> str:
        known = labelled(self.card, samples)
        if not known.all():
            raise CheckFailed(f"the labeller failed on {int((~known).sum())} of {len(samples)} graphs")
        for i in range(len(samples)):
            one = samples.part(self.card, i, i + 1)
            problems = self.labeller.check(one.part(self.card.graphs, 0, 1), _values_of(self.card, one))
            if problems:
                raise CheckFailed(f"graph {i}: {problems[0]}")
        return f"{len(samples)} graphs checked independently of the solver"

    def stored_labels(self) -> str:
        """Check the file's checksum; check a random sample of its labels, and compare these with labels found anew."""
        folder = label_folder(self.card, self.folder)
        name, graphs = (find_file(self.card, self.split, 1, place) for place in (folder, self.folder))
        if name is None or graphs is None:
            raise CheckSkipped("not generated here")
        Manifest(folder).check(name, full=True)
        labels = stored_samples(self.card.only_labels, folder / name)
        drawn = stored_samples(self.card.graphs, self.folder / graphs)
        count = min(len(labels), len(drawn))
        size = min(count, self.samples or max(2, int(_LABEL_NODES / float(drawn.num_nodes.mean()))))
        chosen = np.sort(random_numbers(self.card, self.split, count, size))
        anew = label_samples(self.card, self.split, chosen, drawn, chosen)
        for position, index in enumerate(chosen.tolist()):
            stored = labels.part(self.card.only_labels, index, index + 1)
            found = anew.part(self.card.only_labels, position, position + 1)
            if labels_hash(self.card, stored) != labels_hash(self.card, found):
                raise CheckFailed(f"the stored label {index} is not what the labeller finds; delete {folder / name}")
            with_labels(self.card, drawn.part(self.card.graphs, index, index + 1), stored)
        return f"checksum right, {size} of {count} labels found again and equal"

    def statistics(self) -> str:
        """Compare mean statistics with the card's, in standard errors."""
        found, count = describe_labels(self.labeller, self.first), len(self.first)
        measured = self.card.measured.labels.get(self.labeller.name) if self.card.measured else None
        words = means_text(self.card.features, {name: mean for name, (mean, _) in found.items()})
        if measured is None or self.split not in measured.statistics:
            raise CheckSkipped(f"{words}; nothing on the card to compare with")
        n = measured.statistics_samples[self.split]
        for name, (mean, deviation) in measured.statistics[self.split].items():
            if name not in found:
                raise CheckFailed(f"{name}: no graph has a label")
            error = deviation * np.sqrt(1 / n + 1 / count) + _ROUNDING * abs(mean)
            if abs(found[name][0] - mean) > _SIGMAS * error:
                raise CheckFailed(f"{name} is {found[name][0]:.5g}, the card has {mean:.5g} (error {error:.2g})")
        return words


def _values_of(card: Card, one: Samples) -> dict[str, object]:
    """Return the label of a single graph, as the labeller gives it."""
    graph_wide = {f.name for f in card.label_features if f.location == "graph"}
    return {f.name: one.values[f.name][0] if f.name in graph_wide else one.values[f.name] for f in card.label_features}
