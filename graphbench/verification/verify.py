"""Verify a dataset: regenerate samples from its card, and check bytes, labels, statistics and leakage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphbench.catalog.cards import Card
from graphbench.catalog.names import catalog
from graphbench.catalog.sections import Measured
from graphbench.core.arguments import whole_number
from graphbench.core.errors import CardError, EvaluationError, GraphBenchError
from graphbench.core.files import default_root
from graphbench.core.progress import progress_bar
from graphbench.data.arrays.hashing import sample_hashes
from graphbench.data.arrays.quantisation import unpacked
from graphbench.data.arrays.samples import Samples
from graphbench.data.build.generation import draw_samples
from graphbench.data.components.checks import CheckFailed, CheckSkipped, Row, random_numbers
from graphbench.data.components.domain import find, topology_of
from graphbench.data.components.generators import Generator
from graphbench.data.components.source_choice import source_of, sourced_card
from graphbench.data.store.layout import Manifest, dataset_folder, find_file
from graphbench.data.store.shards import SplitTask, stored_samples
from graphbench.tasks.registry import task_of
from graphbench.verification.comparing import ask, compare_hash, compare_statistics, rows_of
from graphbench.verification.labels import LabelChecks
from graphbench.verification.measuring import FIRST, arrays_hash, describe, first_samples, statistics_size

_NODE_BUDGET = 40_000  # nodes whose labels are recomputed per split: networkx needs seconds for these
_REDRAWS = 20


@dataclass(frozen=True)
class Verification:
    """The outcome for one dataset.

    Attributes:
        id: Its id, with its task where it has any.
        rows: The checks.
    """

    id: str
    rows: tuple[Row, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(row.passed for row in self.rows)

    @property
    def failures(self) -> tuple[Row, ...]:
        """The checks that failed."""
        return tuple(row for row in self.rows if not row.passed)


def verify(
    name: str,
    *,
    root: str | Path | None = None,
    samples: int | None = None,
    splits: tuple[str, ...] | None = None,
    progress: bool | None = None,
    data_seed: int = 0,
    source: str = "generated",
    folder: str | Path | None = None,
) -> Verification:
    """Regenerate samples of a dataset, and check them against its card, its files, and independent implementations.

    The card: its metrics can score its outputs, its generator accepts every split, and edges are directed as declared.
    Per split: the bytes of the first samples against the card; the first samples and a random subset of the stored file
    (if there is one) against regenerated ones, and its checksum; structure and labels against networkx and SciPy; the
    hold-outs of training; uniqueness; mean statistics against the card's. For tasks with labellers, also: bytes and
    statistics of the labels against the card's, all solutions with an independent checker, and a random subset of the
    stored labels against recomputed ones. Between splits: no common graphs.

    Args:
        name: Id or alias of the dataset, with ``:<task>`` for another task than the first.
        root: Folder of all datasets; default as for ``Loader``.
        samples: Graphs per split whose labels are recomputed; None depends on their size.
        splits: Splits to check; None for all.
        progress: Show a progress bar; None for terminals only.
        data_seed: Draw of the dataset; the card's hashes and statistics belong to the canonical one, 0.
        source: ``generated``, or the source of files, such as ``official``: their card has no measurements, and further
            rows report findings in the files.
        folder: Folder of the files.
    """
    listed_card = catalog().card(catalog().resolve(name)[0]).with_data_seed(data_seed)
    card = sourced_card(listed_card, source, folder, root=root)
    most = None if samples is None else whole_number("samples", samples, 1)
    place = dataset_folder(card, default_root() if root is None else Path(root).expanduser())
    chosen = splits or tuple(card.all_splits)
    rows: list[Row] = [_card_row(card)]
    shared = None if card.series is None else topology_of(card)
    checks: dict[str, _SplitChecks] = {}
    with progress_bar(len(chosen) + 1, f"verify {card.address}", unit="splits", enabled=progress) as bar:
        for split in chosen:
            checks[split] = _SplitChecks(card, split, place, most, shared)
            rows += checks[split].rows()
            first = checks[split].first
            rows += [
                row
                for labeller in card.labellers
                for row in LabelChecks(card, labeller, split, place, most, first).rows()
            ]
            bar.update()
        try:
            rows += _leakage(card.graphs, {split: checks[split] for split in chosen if split in card.splits})
        except GraphBenchError as failure:
            rows.append(Row("all", "leakage", False, str(failure)))
        files = source_of(card)
        if files is not None and files.report is not None:
            rows += files.report(card, chosen)
        bar.update()
    return Verification(card.address, tuple(rows))


def check_card(card: Card) -> None:
    """Check a card against its generator, its labellers and the registered metrics.

    Raises:
        CardError: If a metric does not exist or scores no output, if the generator or a labeller does not exist or
            refuses a split's parameters or an effort, or if the generator draws directed graphs and the card says
            undirected, or vice versa.
    """
    for view in [card.with_task(task) for task in card.tasks] or [card]:
        _check_metrics(view)
        for labeller in (find("labeller", name) for name in view.labellers):
            for split in view.all_splits:
                labeller.parse(view, split)
    generator = find("generator", card.generator)
    for split in card.all_splits:
        directed = getattr(generator.parse(card, split), "directed", card.directed)
        if directed != card.directed:
            raise CardError(
                f"{card.path} ({card.id}): directed is {str(card.directed).lower()}, but {generator.name} draws "
                f"{'directed' if directed else 'undirected'} graphs; write directed: {str(directed).lower()}"
            )


def _check_metrics(card: Card) -> None:
    try:
        task_of(card).evaluator()
    except EvaluationError as error:
        raise CardError(f"{card.path} ({card.address}): metrics: {error}") from error


def _card_row(card: Card) -> Row:
    try:
        check_card(card)
    except CardError as failure:
        return Row("all", "card", False, str(failure))
    return Row("all", "card", True, "metrics, parameters and edges as its generator and outputs need them")


class _SplitChecks:
    """All checks of one split."""

    def __init__(self, card: Card, split: str, folder: Path, samples: int | None, shared: Samples | None) -> None:
        self.series, card = card.series, card.graphs
        self.card, self.split, self.folder, self.shared = card, split, folder, shared
        self.generator: Generator = find("generator", card.generator)
        self.parameters = self.generator.parse(card, split)
        self.count = card.split(split).count
        self.first = first_samples(card, split)
        nodes = float(self.first.num_nodes.mean())
        work = self.generator.shard_size(self.parameters)  # a number of graphs whose cost is nearly constant
        self.sample_size = min(self.count, samples or max(4, min(int(_NODE_BUDGET / nodes), 4 * work)))
        self.statistics_size = statistics_size(card, split, self.generator, self.first)

    @cached_property
    def many(self) -> Samples:
        """First draws of the samples that statistics are taken from."""
        return draw_samples(self.card, self.split, np.arange(self.statistics_size))

    @cached_property
    def other_bits(self) -> bool:
        """Whether the first samples differ from the card's in a way that another machine or version explains."""
        pinned = self.measured.first_samples.get(self.split)
        return self.generator.environment is not None and pinned not in (None, arrays_hash(self.first))

    @cached_property
    def sample(self) -> Samples:
        """First draws of a random sample, whose labels are checked."""
        return draw_samples(self.card, self.split, np.sort(self._random(self.count, self.sample_size)))

    def rows(self) -> Iterator[Row]:
        """Yield one row per check."""
        drawn = ("first samples", self.first_samples), ("stored file", self.stored_file)
        yield from rows_of(self.split, (*drawn, ("structure and labels", self.labels)))
        yield from self.hold_outs()
        yield from rows_of(self.split, (("uniqueness", self.uniqueness), ("statistics", self.statistics)))

    @property
    def measured(self) -> Measured:
        """The measurements on the card."""
        return self.card.measured or Measured(version=self.card.version)

    def first_samples(self) -> str:
        """Compare the first samples, bit for bit, with the hash on the card."""
        if self.other_bits:
            raise CheckSkipped("other bits than on the card, as other machines and versions give; statistics tell")
        may_follow = not self.card.data_seed and source_of(self.card) is None
        pinned = self.measured.first_samples.get(self.split)
        return compare_hash(arrays_hash(self.first), pinned, len(self.first), may_follow)

    def stored_file(self) -> str:
        """Check the file's checksum; compare its first graphs with the card, these and random ones with a new draw."""
        name = find_file(self.card.stored_name(self.split), 1, self.folder)
        if name is None:
            raise CheckSkipped("not generated here")
        Manifest(self.folder).check(name, full=True)
        path = self.folder / name
        self._require_environment(name)
        samples = stored_samples(self.card.graph_schema, path)
        few = min(FIRST, len(samples))
        drawn = self._random(len(samples), min(self.sample_size, len(samples)))
        chosen = np.union1d(np.arange(few), drawn)
        fresh = draw_samples(self.card, self.split, chosen)
        redraws = []
        for position, index in enumerate(chosen.tolist()):
            stored = samples.part(self.card.graph_schema, index, index + 1)
            if arrays_hash(stored) != arrays_hash(fresh.part(self.card.graph_schema, position, position + 1)):
                self._must_be_redraw(index, stored, path)
                redraws.append(index)
        first_drawn = not any(index < few for index in redraws)
        recomputed = arrays_hash(samples.part(self.card.graph_schema, 0, few))
        pinned = self.measured.first_samples.get(self.split, recomputed)
        if first_drawn and few == len(self.first) and recomputed != pinned and not self.other_bits:
            raise CheckFailed(f"the first {few} stored graphs differ from the graphs of the card; delete {path}")
        return f"checksum right, {len(chosen)} of {len(samples)} graphs regenerated and equal"

    def _require_environment(self, name: str) -> None:
        """Skip the comparison of bits for a file of a generator whose bits depend on more than its parameters."""
        here = {} if self.generator.environment is None else dict(self.generator.environment())
        there = dict((Manifest(self.folder).entry(name) or {}).get("environment", {}))
        if here != there:
            other = ", ".join(f"{key} {there.get(key, 'unknown')}" for key in here if there.get(key) != here[key])
            raise CheckSkipped(f"checksum right; drawn with {other or 'more'}, so its bits cannot be drawn again here")

    def _must_be_redraw(self, index: int, stored: Samples, path: Path) -> None:
        """Accept a stored sample that is a later attempt of its index (its first draw was a duplicate)."""
        task = SplitTask(self.card, self.split)
        attempts = np.arange(1, _REDRAWS + 1)
        again = task.draw(np.full(_REDRAWS, index), attempts)
        wanted = arrays_hash(stored)
        if not any(arrays_hash(again.part(self.card.graph_schema, a, a + 1)) == wanted for a in range(_REDRAWS)):
            raise CheckFailed(f"stored graph {index} is not the card's graph; delete {path} and it will be rebuilt")

    def labels(self) -> str:
        """Check structure and labels of a random sample against independent implementations."""
        if self.generator.check is None:
            raise CheckSkipped("taken from the files, not checked")
        sample = unpacked(self.card.graph_schema, self.sample)
        problems = ask(f"check of {self.generator.name}", self.generator.check, self.parameters, sample)
        if problems:
            raise CheckFailed(f"{len(problems)} of {len(self.sample)} graphs wrong, e.g. {problems[0]}")
        return f"{len(self.sample)} graphs checked against independent implementations"

    def hold_outs(self) -> Iterator[Row]:
        """Yield one row per thing that the split holds out of training."""
        if self.generator.hold_outs is None:
            return
        try:
            count, name = len(self.sample), f"hold-out check of {self.generator.name}"
            sample = unpacked(self.card.graph_schema, self.sample)
            claims = ask(name, self.generator.hold_outs, self.parameters, sample)
        except (CheckFailed, GraphBenchError) as failure:
            yield Row(self.split, "hold-outs", False, str(failure))
            return
        for what, (claim, problems) in claims.items():
            detail = (
                f"{len(problems)} of {count} graphs do otherwise, e.g. {problems[0]}" if problems else f"{count} graphs"
            )
            yield Row(self.split, what, not problems, f"{claim}: {detail}")

    def uniqueness(self) -> str:
        """Check that no two graphs of the split have the same nodes and edges."""
        if not self.generator.unique:
            raise CheckSkipped("duplicates are allowed")
        samples, where = self.stored_or_drawn
        hashes = sample_hashes(samples, self.card.graph_schema, self.generator.unique_inputs)
        repeats = len(hashes) - len(np.unique(hashes, axis=0))
        if repeats and where == "stored":
            raise CheckFailed(f"{repeats} of {len(hashes)} stored graphs repeat another one")
        extra = f", {repeats} first draws repeat and are redrawn when built" if repeats else ""
        return f"{len(hashes)} {where} graphs, all different" if not repeats else f"{len(hashes)} {where} graphs{extra}"

    def statistics(self) -> str:
        """Compare mean statistics with the card's, in standard errors.

        If the bits of a dataset depend on the machine, as for simulated series, the card's statistics are of all
        samples; the first samples need not resemble them. Where the bits are others than the card's, the samples of a
        run count as one, because the states of a run resemble each other and the runs of two machines do not.
        """
        drawn, where = (self.many, "drawn") if self.generator.environment is None else self.stored_or_drawn
        if self.generator.environment is not None and where == "drawn" and len(drawn) < self.count:
            raise CheckSkipped("the card's statistics are of all samples; build the split first: graphbench generate")
        many = unpacked(self.card.graph_schema, drawn)
        maker = self.generator
        recomputed = ask(f"statistics of {maker.name}", describe, maker, self.parameters, many, self.shared)
        known = self.measured.statistics.get(self.split)
        count, known_count = len(drawn), self.measured.statistics_samples.get(self.split, 1)
        if self.other_bits and self.series is not None:
            count = known_count = len(np.unique(drawn.values[self.series.run]))
            if count == 1:
                raise CheckSkipped("one run, and other bits than on the card: the means of single runs differ")
        return compare_statistics(self.card, recomputed, count, known, known_count)

    def _random(self, population: int, size: int) -> NDArray[np.int64]:
        return random_numbers(self.card, self.split, population, size)

    @property
    def stored_or_drawn(self) -> tuple[Samples, str]:
        """All stored samples, or the samples drawn for the statistics if none are stored; and a word for the source."""
        name = find_file(self.card.stored_name(self.split), 1, self.folder)
        return (
            (self.many, "drawn")
            if name is None
            else (stored_samples(self.card.graph_schema, self.folder / name), "stored")
        )


def _leakage(card: Card, checks: Mapping[str, _SplitChecks]) -> Iterator[Row]:
    """Yield one row per pair of splits of equal graph size: graphs they have in common."""
    known: dict[str, tuple[NDArray[np.uint64], set[int], str]] = {}
    splits = list(checks)
    for split in splits:
        samples, where = checks[split].stored_or_drawn
        hashes = np.unique(sample_hashes(samples, card.graph_schema, checks[split].generator.unique_inputs), axis=0)
        known[split] = hashes, set(np.unique(samples.num_nodes).tolist()), where
    for i, first in enumerate(splits):
        for second in splits[i + 1 :]:
            a, sizes_a, where_a = known[first]
            b, sizes_b, where_b = known[second]
            pair = f"{first} / {second}"
            if not sizes_a & sizes_b:
                yield Row(pair, "leakage", True, "no graph size in common")
                continue
            common = len(a) + len(b) - len(np.unique(np.concatenate([a, b]), axis=0))
            detail = f"{common} graphs in common ({len(a)} {where_a}, {len(b)} {where_b})"
            if common and card.overlapping:
                detail += "; the splits are drawn independently, as published"
            yield Row(pair, "leakage", common == 0 or card.overlapping, detail, "noted" if common else "")
