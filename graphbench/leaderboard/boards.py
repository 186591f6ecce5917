"""Tables of ranked models from run records: records are grouped into tables, and within a table into models."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from graphbench.evaluation.metrics import METRICS, Metric
from graphbench.evaluation.metrics.bootstrap import LEAST_SAMPLES, Replicable
from graphbench.leaderboard.model import Board, Cost, Data, Row, Unranked
from graphbench.leaderboard.references import anchors, references
from graphbench.leaderboard.statistics import LEAST_RUNS, Ranking, Sample, interval_of, rank
from graphbench.records.aggregates import COSTS, Aggregate, Stat, absurd_number, aggregate
from graphbench.records.classes import BUDGET_CLASSES, BudgetClass, classes_of, core_seconds
from graphbench.records.provenance import PROVENANCES, Provenance
from graphbench.records.record import RunRecord
from graphbench.records.stated import OWN_MODEL
from graphbench.reports.beside import content_hash_of, graphs_scored, samples_of
from graphbench.reports.labels import Labels
from graphbench.reports.ood import grown_splits, known_cards, ood_splits
from graphbench.reports.published_files import card_of_files, is_of_files
from graphbench.reports.tables import hardware_text
from graphbench.tasks.registry import task_of
from graphbench.training.config import draws_seen
from graphbench.verification.reproduction import repeated_runs

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card

_OWN_SETTINGS = "a configuration of one's own"  # in labels of budgets
Place = tuple[str, str, str, BudgetClass, Data]
"""The key of a table: dataset, protocol, split, budget class, samples."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """Runs of one model that were scored on the same samples."""

    runs: Aggregate
    budget_class: BudgetClass
    setup_hash: str
    records: tuple[RunRecord, ...]
    sources: tuple[Provenance, ...]


@dataclass(slots=True)
class Tables:
    """Tables, and the cards and scores that means over datasets need.

    Attributes:
        boards: The tables.
        cards: Address -> card of the datasets.
        unknown: Datasets of records that have no card.
        refused: Records with numbers that cannot be averaged, in words.
        samples: (unit, budget class, label) -> scores, of tables of the test split that count in means.
        repeated: (path, start) of recorded runs that were repeated without a difference.
    """

    boards: list[Board]
    cards: dict[str, Card]
    unknown: list[str]
    refused: list[str]
    samples: dict[tuple[str, BudgetClass, str], Sample]
    repeated: frozenset[tuple[str, datetime]]


def tables_of(
    records: Iterable[RunRecord],
    cards: Mapping[str, Card] | None = None,
    repeated: Collection[tuple[str, datetime]] | None = None,
) -> Tables:
    """Return the tables of some records, without records of datasets that have no card and records of absurd numbers.

    Args:
        records: The records.
        cards: Address -> card; the catalogue's where it has none.
        repeated: (path, start) of recorded runs that were repeated without a difference; those among the package's
            reproductions when None.
    """
    tables = Tables([], {}, [], [], {}, frozenset(repeated_runs() if repeated is None else repeated))
    sound = []
    for record in records:
        if problem := absurd_number(record):
            tables.refused.append(f"{record.dataset}, {record.model}, seed {record.seed}: {problem}")
        else:
            sound.append(record)
    results = aggregate(sound)
    known, unknown = known_cards((runs.dataset for runs in results), cards)
    tables.cards.update(known)
    tables.unknown.extend(unknown)
    groups: dict[tuple[str, bool], list[Aggregate]] = {}
    for runs in results:
        if runs.dataset in tables.cards:
            groups.setdefault((runs.dataset, is_of_files(runs)), []).append(runs)
    for (dataset, of_files), group in sorted(groups.items()):
        card = tables.cards[dataset]
        _add_boards(tables, card_of_files(card, group) if of_files else card, group)
    return tables


def source_of(record: RunRecord, repeated: Collection[tuple[str, datetime]]) -> Provenance:
    """Return where the scores of a record are from.

    Args:
        record: The record.
        repeated: (path, start) of recorded runs that were repeated without a difference.
    """
    if record.verification is not None:
        return "verified"
    again = (record.relative_path.as_posix(), record.started) in repeated
    return "recomputed" if again or record.recomputed_from is not None else "stated"


def _add_boards(tables: Tables, card: Card, results: Sequence[Aggregate]) -> None:
    entries_of: dict[Place, list[_Entry]] = {}
    for runs in results:
        setup, classes = runs.records[0].setup_hash, classes_of(runs.distinct, card)
        for split in ood_splits(card, [runs]):
            for data, records in _by_data(runs, card, split).items():
                sources = tuple(source_of(record, tables.repeated) for record in records)
                entry = _Entry(runs, classes[0], setup, tuple(records), sources)
                for budget_class in classes:
                    key = (runs.dataset, runs.protocol or "", split, budget_class, data)
                    entries_of.setdefault(key, []).append(entry)
    mains = _mains(card, entries_of)
    splits, classes_in_order = ood_splits(card, results), list(BUDGET_CLASSES)

    def order(key: Place) -> tuple[object, ...]:
        dataset, protocol, split, name, data = key
        place = splits.index(split), classes_in_order.index(name), mains.get(key[:4]) != data
        return dataset, protocol, *place, -data.version, data.draw, data.hash

    boards: dict[Place, Board] = {}
    for key in sorted(entries_of, key=order):
        samples = [_sample(entry, key[2], card.metrics.primary, key[4]) for entry in entries_of[key]]
        labels = Labels([entry.runs for entry in entries_of[key]])
        names = [labels[entry.runs] for entry in entries_of[key]]
        board = boards[key] = _board(card, key, entries_of[key], samples, names, main=mains.get(key[:4]) == key[4])
        if board.counts:
            named_samples = zip(names, samples, strict=True)
            tables.samples.update({(board.unit, board.budget_class, name): sample for name, sample in named_samples})
    tables.boards += [_with_class_ranks(key, board, boards) for key, board in boards.items()]


def _with_class_ranks(key: Place, board: Board, boards: Mapping[Place, Board]) -> Board:
    """Return a table whose rows have their ranks in the tables of their tightest classes as well."""
    rows = []
    for row in board.rows:
        of_class = boards[(*key[:3], row.budget_class, key[4])]
        ranked = next(other for other in of_class.rows if other.config_hash == row.config_hash)
        rows.append(replace(row, class_rank=ranked.rank, class_worst_rank=ranked.worst_rank))
    return replace(board, rows=tuple(rows))


def _by_data(runs: Aggregate, card: Card, split: str) -> dict[Data, list[RunRecord]]:
    """Return the distinct runs that have the primary metric on a split, by the samples that were scored."""
    by_data: dict[Data, list[RunRecord]] = {}
    for record in runs.distinct:
        if card.metrics.primary in record.scores.get(split, {}):
            by_data.setdefault(_data(record, card, split), []).append(record)
    return by_data


def _data(record: RunRecord, card: Card, split: str) -> Data:
    graphs = graphs_scored(record, split)
    spec = card.all_splits.get(split)
    whole = graphs is None or spec is None or is_of_files(card) or graphs >= spec.count
    content = content_hash_of(record, card, split) or record.data_fingerprint
    return Data(record.dataset_version, record.data_seed, content, graphs, whole)


def _mains(card: Card, places: Mapping[Place, Sequence[_Entry]]) -> dict[tuple[str, str, str, BudgetClass], Data]:
    """Return the samples that count in means over datasets, per dataset, protocol, split and class."""
    mains: dict[tuple[str, str, str, BudgetClass], tuple[tuple[bool, int, int, str], Data]] = {}
    for (*table_key, data), entries in places.items():
        if data.version == card.version and data.draw == 0:
            key: tuple[str, str, str, BudgetClass] = tuple(table_key)  # type: ignore[assignment]
            worth = (data.whole, len(entries), data.graphs or 0, data.hash)
            if key not in mains or worth > mains[key][0]:
                mains[key] = worth, data
    return {key: data for key, (_, data) in mains.items()}


def _board(
    card: Card,
    key: Place,
    entries: Sequence[_Entry],
    samples: Sequence[Sample],
    names: Sequence[str],
    *,
    main: bool,
) -> Board:
    dataset, protocol, split, budget_class, data = key
    metric = card.metrics.primary
    higher = METRICS[metric].higher_is_better
    needed = needs_bootstrap(METRICS[metric], data)
    ranking = rank(samples, higher, needs_bootstrap=needed)
    rows = [_row(names[i], e, samples[i], ranking, i, METRICS[metric], needed) for i, e in enumerate(entries)]
    rows.sort(key=lambda row: (-row.mean if higher else row.mean, row.label))
    measured_here = data.version == card.version and data.draw == 0
    scored = samples_of(entries[0].records[0], card, split)
    return Board(
        dataset=dataset,
        protocol=protocol or None,
        title=card.title,
        split=split,
        metric=metric,
        higher_is_better=higher,
        budget_class=budget_class,
        data=data,
        samples=task_of(card).samples,
        main=main,
        rows=tuple(rows),
        references=references(card, dataset, protocol or None, split, scored) if measured_here else (),
        best=names[ranking.best],
        pairs_tested=ranking.pairs,
        anchors=anchors(card, scored, split) if measured_here else None,
        size=task_of(card).sample_size(split) if split in {*card.splits, *grown_splits(card)} else None,
    )


def _sample(entry: _Entry, split: str, metric: str, data: Data) -> Sample:
    return Sample(
        seeds=tuple(record.seed for record in entry.records),
        values=tuple(record.scores[split][metric] for record in entry.records),
        replicates=tuple(tuple(record.replicates.get(split, ())) for record in entry.records),
        deterministic=entry.runs.deterministic,
        test_samples=data.graphs,
    )


def needs_bootstrap(metric: Metric, data: Data) -> bool:
    """Return whether two models are compared only if both have bootstrap replicates.

    Replicates are not needed where there can be none: for metrics that are no sums over samples, and for splits with
    too few samples. In these cases the tests take the test samples as given.
    """
    enough = data.graphs is None or data.graphs >= LEAST_SAMPLES
    return enough and isinstance(metric.accumulator(), Replicable)


def _why_unranked(sample: Sample, needed: bool) -> Unranked:
    if not sample.deterministic and sample.counted < LEAST_RUNS:
        return "seeds"
    counted = sample.replicates[: 1 if sample.deterministic else LEAST_RUNS]
    if (needed or sample.deterministic) and not all(counted):
        return "bootstrap"
    return "alone"


def _row(label: str, entry: _Entry, sample: Sample, ranking: Ranking, i: int, metric: Metric, needed: bool) -> Row:
    first, model_rank = entry.records[0], ranking.ranks[i]
    draws = {record.data_seed for record in entry.records}
    own_model = first.config.get("kind") == OWN_MODEL
    return Row(
        label=label,
        model=first.model,
        config_hash=entry.runs.config_hash,
        setup_hash=entry.setup_hash,
        budget_class=entry.budget_class,
        own_settings=_OWN_SETTINGS in first.budget.label,
        seeds=sample.seeds,
        values=sample.values,
        copies=tuple(seed for seed, draw in entry.runs.copies if draw in draws),
        deterministic=sample.deterministic,
        mean=sample.mean,
        interval=interval_of(sample, metric.lowest, metric.highest),
        rank=None if model_rank is None else model_rank.best,
        worst_rank=None if model_rank is None else model_rank.worst,
        unranked=_why_unranked(sample, needed) if model_rank is None else None,
        against_best=ranking.against_best[i],
        replicates=len(sample.mean_replicates),
        budget=first.budget.label or entry.runs.caveat,
        cost=_cost(entry.records),
        versions=_distinct(record.graphbench_version for record in entry.records),
        notes=_distinct(record.remarks for record in entry.records),
        provenance=min(entry.sources, key=list(PROVENANCES).index),
        sources=entry.sources,
        sealed=tuple(record.verification.score for record in entry.records if record.verification is not None),
        algorithm=any(record.verification.algorithm for record in entry.records if record.verification is not None),
        in_steps=any(record.steps for record in entry.records),
        trained=not all(record.untrained for record in entry.records),
        own_model=own_model,
        blind=own_model or not draws & set(draws_seen(first.dataset, first.model)),
    )


def _cost(records: Sequence[RunRecord]) -> Cost:
    def mean(stated: Iterable[float | None]) -> float | None:
        values = [value for value in stated if value is not None]
        return Stat.of(values).mean if values else None

    machines = _distinct(hardware_text({k: v for k, v in r.hardware.items() if k != "torch"}) for r in records)
    parameters, seconds, memory, speed, latency, cpu_seconds, threads = (
        mean(getattr(record, name) for record in records) for name in COSTS
    )
    core = mean(map(core_seconds, records))
    return Cost(parameters, seconds, memory, speed, latency, machines, cpu_seconds, threads, core)


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))
