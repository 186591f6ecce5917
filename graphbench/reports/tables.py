"""The report's tables as rows of text, the same for Markdown and HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from graphbench.core.words import counted, duration, fact_text
from graphbench.data.components.domain import rules_of
from graphbench.evaluation.metrics import METRICS
from graphbench.evaluation.references import SplitReferences
from graphbench.evaluation.shares import class_shares, share_names
from graphbench.evaluation.trivial import best_of
from graphbench.records.aggregates import Aggregate, Stat
from graphbench.records.budgets import PARTLY_SCORED
from graphbench.records.published import PublishedScore, published
from graphbench.records.stated import OWN_MODEL
from graphbench.reports.beside import APART, Beside, beside
from graphbench.reports.comparison import (
    architecture,
    compared_with,
    notes_on,
    reference_scores,
    same_splits,
    scores_on_test,
)
from graphbench.reports.labels import Labels, named
from graphbench.reports.ood import ood_metric, ood_splits, ood_table, split_nodes
from graphbench.reports.pages import ABSENT, Grid
from graphbench.reports.plots import LATENCY, simplest
from graphbench.reports.published_files import anchor_of, heading_of
from graphbench.tasks.registry import task_of

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.data.components.rules import Rule

SOLVERS = (
    "A solver is a reference program with knowledge of the task, such as an exact algorithm or a table of rules "
    "extracted from the training data. It is not a trained model; its score shows the level of such programs."
)


@dataclass(frozen=True, slots=True)
class OverviewRow:
    """One model on one dataset, next to the expected scores."""

    dataset: str
    anchor: str
    metric: str
    model: str
    ours: str
    runs: str
    caveat: str
    trivial: str
    published: str
    difference: str


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One predictor of a dataset's score table.

    Attributes:
        name: Name of the predictor.
        kind: ``trivial``, ``rule``, ``solver``, ``ours`` or ``published``.
        caveat: Why the row is not compared with other rows; empty if it is.
        values: One score per metric, and the time of an answer where it counts, as text.
        basis: The origin of the scores: seeds and budget, a rule, or a reference to a paper.
    """

    name: str
    kind: str
    caveat: str
    values: tuple[str, ...]
    basis: str

    def apart(self, note: str) -> ScoreRow:
        """Return the row marked as standing apart, with a note on its samples; the row itself if the note is empty."""
        if not note:
            return self
        caveat = ", ".join(part for part in (self.caveat, APART) if part)
        return replace(self, caveat=caveat, basis="; ".join(part for part in (self.basis, note) if part))


def metric_heads(card: Card) -> list[str]:
    """Return the card's metrics with their direction, the primary one first."""
    return [metric_head(name) for name in (card.metrics.primary, *card.metrics.also)]


def score_heads(card: Card) -> list[str]:
    """Return the heads of the columns of :func:`score_rows`: the metrics, and the time of an answer where it counts."""
    return metric_heads(card) + ([] if task_of(card).metric_beside_time is None else ["time per sample"])


def metric_head(name: str) -> str:
    """Return e.g. ``f1 ↑``."""
    return name + (" ↑" if METRICS[name].higher_is_better else " ↓")


def overview_rows(card: Card, results: Sequence[Aggregate]) -> list[OverviewRow]:
    """Return a row per model: its primary test score, the best of a trivial predictor or rule, the published score."""
    primary, labels = card.metrics.primary, Labels(results)
    rows = []
    for runs in results:
        score = runs.score("test", primary)
        printed = compared_with(runs, card, "test", primary)
        rows.append(
            OverviewRow(
                dataset=heading_of(runs.dataset, card),
                anchor=anchor_of(runs.dataset, card),
                metric=metric_head(primary),
                model=labels[runs],
                ours=stat_text(score),
                runs=f"{_runs_text(runs)}, {_steps_text(runs)}" + (f", {PARTLY_SCORED}" if runs.partly_scored else ""),
                caveat=runs.caveat,
                trivial=_best_trivial(beside(card, "test", [runs]), primary),
                published=_published_text(printed),
                difference=_difference(runs, card, score, printed),
            )
        )
    return rows


def _best_trivial(shown: Beside, metric: str) -> str:
    """Return the best score of a trivial predictor or rule; a dash and a note if it is of other samples."""
    floor = None if shown.references is None else best_of(shown.references.floor, metric)
    if floor is None:
        return ABSENT
    if shown.reference_note:
        return f"{ABSENT} ({shown.reference_note}: {number(floor[1])}, {_predictor_name(floor[0])})"
    return f"{number(floor[1])} ({_predictor_name(floor[0])})"


def _difference(runs: Aggregate, card: Card, score: Stat | None, printed: PublishedScore | None) -> str:
    if runs.dataset_version != card.version:
        return f"old data, version {runs.dataset_version}"
    if not runs.comparable:
        return "not comparable" if runs.small else runs.caveat
    splits = same_splits(card, "test")
    if printed is None and any(s.model == architecture(runs) and s.split in splits for s in published(runs.dataset)):
        return "other protocol"
    if score is None or printed is None or printed.value is None:
        return ABSENT
    if printed.not_comparable:
        return "not comparable"
    return signed(score.mean - printed.value)


def split_rows(card: Card) -> Grid:
    """Return the splits: size, nodes, measured means, largest classes, and their shift from training."""
    statistics = card.measured.statistics if card.measured is not None else {}
    measured_names = dict.fromkeys(name for split in statistics.values() for name in split)
    facts = [name for name in measured_names if name != "nodes"]
    shares = share_names(card.features, facts)
    names = [name for name in facts if not any(name in share_facts for share_facts in shares.values())]
    different = card.measured.different if card.measured is not None else {}
    counted = list(dict.fromkeys(noun for counts in different.values() for noun in counts))
    rows = []
    for name, spec in card.all_splits.items():
        nodes, measured = card.nodes(name), statistics.get(name, {})
        classes = [
            str(class_shares(feature, {n: measured[n][0] for n in share_facts}))
            if share_facts[0] in measured
            else ABSENT
            for feature, share_facts in shares.items()
        ]
        rows.append(
            (
                name,
                f"{spec.count:,}",
                f"{nodes:g}" if nodes is not None else ABSENT,
                *(fact_text(*f) if (f := measured.get(fact)) else ABSENT for fact in names),
                *(f"{different.get(name, {}).get(noun, ABSENT)}" for noun in counted),
                *classes,
                spec.shift or ("none" if name in ("train", "val") else ABSENT),
            )
        )
    largest = (f"largest class of {feature}" for feature in shares)
    return Grid(
        (
            *("split", "graphs", "nodes", *(name.replace("_", " ") for name in names)),
            *(f"different {noun}" for noun in counted),
            *(*largest, "shift from training"),
        ),
        tuple(rows),
    )


def score_rows(card: Card, results: Sequence[Aggregate]) -> list[ScoreRow]:
    """Return the test scores: trivial baselines, reference solvers, our models, published models.

    Where the time of an answer counts (``Task.metric_beside_time``), it follows the scores of our models. Rows that
    were scored on other samples than most rows come last, with a note on their samples.
    """
    names = (card.metrics.primary, *card.metrics.also)
    shown, labels = beside(card, "test", results), Labels(results)
    timed = task_of(card).metric_beside_time is not None

    def with_time(row: ScoreRow, time: str = ABSENT) -> ScoreRow:
        return replace(row, values=(*row.values, time)) if timed else row

    references = measured_rows(card, shown.references, names, rules_of(card))
    rows = [with_time(row.apart(shown.reference_note)) for row in references]
    for runs in results:
        values = tuple(stat_text(runs.score("test", name)) for name in names)
        basis = f"{_runs_text(runs)}, {_budget(runs)}"
        row = ScoreRow(labels[runs], "ours", runs.caveat, values, basis).apart(shown.note(runs))
        rows.append(with_time(row, _mean(runs.measure(LATENCY), _milliseconds)))
    rows += map(with_time, published_rows(scores_on_test(card, results[0].dataset), names))
    return sorted(rows, key=lambda row: row.caveat.endswith(APART))


def measured_rows(
    card: Card,
    measured: SplitReferences | None,
    names: Sequence[str],
    rules: Mapping[str, Rule] = MappingProxyType({}),
) -> list[ScoreRow]:
    """Return the scores of the trivial baselines and the reference solvers on a split, one value per metric.

    Args:
        card: The dataset's card.
        measured: The scores; None gives no rows.
        names: The metrics.
        rules: Predictor -> its rule, which the row describes; its kind is ``rule``.
    """
    if measured is None:
        return []
    rows = []
    for name, scores in measured.floor.items():
        twin = name != "majority" and scores == measured.floor.get("majority")
        if name == "majority" and any(scores == other for key, other in measured.floor.items() if key != name):
            continue
        values = tuple(_optional(scores.get(m)) for m in names)
        basis = rules[name].description.rstrip(".") if name in rules else ""
        kind = "rule" if name in rules else "trivial"
        rows.append(ScoreRow(_predictor_name(name) + (" (majority)" if twin else ""), kind, "", values, basis))
    solver_basis = task_of(card).solver_basis()
    for solver, scores in measured.solvers.items():
        values = tuple(_optional(scores.get(m)) for m in names)
        rows.append(ScoreRow(_predictor_name(solver), "solver", "", values, solver_basis))
    return rows


def published_rows(scores: Sequence[PublishedScore], names: Sequence[str]) -> list[ScoreRow]:
    """Return the published scores by one of the metrics, one value per metric."""
    rows = []
    for score in (score for score in scores if score.metric in names):
        values = tuple(_published_text(score) if name == score.metric else ABSENT for name in names)
        rows.append(ScoreRow(named(score.model, score.protocol), "published", "", values, _basis_of(score)))
    return rows


def _basis_of(score: PublishedScore) -> str:
    seeds = f", {counted(score.seeds, 'seed')}" if score.seeds else ""
    where = "" if score.split == "test" else f"; of {score.split}, drawn as test is"
    return score.reference + seeds + where


def ood_grid(card: Card, results: Sequence[Aggregate]) -> Grid | None:
    """Return `ood_metric` per split and model; None if the card has no out-of-distribution split or none was scored."""
    metric, splits = ood_metric(card), ood_splits(card, results)
    if not any(runs.score(split, metric) for runs in results for split in splits[1:]):
        return None
    size = task_of(card).size_name
    columns = [(size, [f"{n:g}" if (n := split_nodes(card, s)) is not None else ABSENT for s in splits])]
    printed: set[str] = set()
    labels, shown = Labels(results), [beside(card, split, results) for split in splits]
    for runs in results:
        rows, name = ood_table(runs, card, metric, splits), named(architecture(runs), runs.protocol)
        head = labels[runs] + runs.mark
        cells = zip(rows, shown, strict=True)
        texts = [noted(stat_text(runs.score(row.split, metric)), split.note(runs)) for row, split in cells]
        columns.append((head, texts))
        if name not in printed and any(row.published is not None for row in rows):
            columns.append((f"{name}, published", [_optional(row.published) for row in rows]))
            printed.add(name)
    for person, scores in reference_scores(results[0].dataset, metric, splits).items():
        columns.append((f"{_predictor_name(person)}, published", [_published_text(scores.get(s)) for s in splits]))
    solved = [{} if split.references is None else split.references.solvers for split in shown]
    for solver in dict.fromkeys(name for by_solver in solved for name in by_solver):
        values = [by_solver.get(solver, {}).get(metric) for by_solver in solved]
        columns.append((f"{_predictor_name(solver)} (solver)", _reference_cells(values, shown)))
    floors = [None if split.references is None else best_of(split.references.floor, metric) for split in shown]
    columns.append((simplest(card), _reference_cells([floor[1] if floor else None for floor in floors], shown)))
    by_split = zip(*(values for _, values in columns), strict=True)
    rows_text = tuple((split, *row) for split, row in zip(splits, by_split, strict=True))
    return Grid((f"split ({metric_head(metric)})", *(head for head, _ in columns)), rows_text)


def _reference_cells(values: Sequence[float | None], shown: Sequence[Beside]) -> list[str]:
    return [noted(_optional(value), split.reference_note) for value, split in zip(values, shown, strict=True)]


def noted(text: str, note: str) -> str:
    """Return a score with a note on its samples in brackets, if there is a note and a score."""
    return f"{text} [{note}]" if note and text != ABSENT else text


def efficiency_rows(results: Sequence[Aggregate]) -> Grid:
    """Return the cost of the runs, as means over the seeds."""
    latency = ("latency, one graph", "latency, in batch")
    heads = ("model", "parameters", "training time", "CPU time", "threads", "peak memory", "graphs/s", *latency)
    rows, labels = [], Labels(results)
    for runs in results:
        rows.append(
            (
                labels[runs] + runs.mark,
                _mean(runs.measure("parameters"), parameters_text),
                _mean(runs.measure("wall_seconds"), duration),
                _mean(runs.measure("cpu_seconds"), duration),
                _mean(runs.measure("threads"), "{:g}".format),
                _mean(runs.measure("peak_memory_bytes"), bytes_text),
                _mean(runs.measure("throughput_graphs_per_s"), "{:,.0f}".format),
                _mean(runs.measure("latency_ms"), _milliseconds),
                _mean(runs.measure(LATENCY), _milliseconds),
            )
        )
    return Grid(heads, tuple(rows))


def _milliseconds(value: float) -> str:
    return f"{value:.3g} ms"


def provenance_rows(card: Card, results: Sequence[Aggregate]) -> Grid:
    """Return the provenance of each score: budget, seeds, machine, data and code."""
    heads = ("model", "configuration", "budget", "seeds", "hardware", "data", "code", "started", "notes")
    rows, labels = [], Labels(results)
    for runs in results:
        last = runs.records[-1]
        stale = "" if runs.dataset_version == card.version else f" (the card is at {card.version})"
        hashes = ", ".join(f"{split} {value[:8]}" for split, value in last.data_hashes.items())
        draws = "" if runs.data_seeds == (0,) else _listed("data seed", runs.data_seeds)
        data = [f"version {runs.dataset_version}{stale}", draws, last.data_fingerprint, hashes]
        code = [last.graphbench_version, (last.git_version or "")[:10]]
        rows.append(
            (
                labels[runs],
                f"{runs.config_hash}, setup {last.setup_hash}",
                _budget_text(runs),
                ", ".join(map(str, runs.seeds)),
                hardware_text(last.hardware),
                "; ".join(part for part in data if part),
                " ".join(part for part in code if part) or ABSENT,
                f"{last.started:%Y-%m-%d}",
                "; ".join(dict.fromkeys(record.remarks for record in runs.records if record.remarks)) or ABSENT,
            )
        )
    return Grid(heads, tuple(rows))


def hardware_text(facts: dict[str, str | int | float | None]) -> str:
    """Return a machine's description in one line."""
    gpus = facts.get("gpus") or 1
    gpu = f"{gpus} x {facts['gpu']}" if facts.get("gpu") else ""
    cores = f", {counted(facts['cores'], 'core')}" if facts.get("cores") else ""
    cpu = f"{facts['cpu']}{cores}" if facts.get("cpu") else ""
    torch = f"torch {facts['torch']}" if facts.get("torch") else ""
    return "; ".join(part for part in (gpu, cpu, torch) if part) or ABSENT


def draw_notes(card: Card, results: Sequence[Aggregate]) -> list[str]:
    """Return the seeds and draws of the data behind each mean, if there are draws other than the canonical one."""
    metric, labels, notes = card.metrics.primary, Labels(results), []
    for runs in results:
        if runs.data_seeds == (0,):
            continue
        count = f"{counted(len(runs.records), 'run')} with {_listed('training seed', runs.seeds)}"
        error = _standard_error(runs, metric, f"; standard error of {metric} on test: ")
        notes.append(f"{labels[runs]}: mean over {count} and {_listed('data seed', runs.data_seeds)}{error}")
    if notes and card.measured is not None:
        notes.append("Statistics of splits, and scores of trivial predictors and solvers, are of data seed 0")
    return notes


def _standard_error(runs: Aggregate, metric: str, words: str) -> str:
    """Return the standard error of a mean in words; with several draws of the data, each draw counts once."""
    by_draw: dict[int, list[float]] = {}
    for record in runs.records:
        if (value := record.scores.get("test", {}).get(metric)) is not None:
            by_draw.setdefault(record.data_seed, []).append(value)
    if not by_draw:
        return ""
    means = [Stat.of(scores).mean for scores in by_draw.values()]
    stat = Stat.of(means if len(means) > 1 else next(iter(by_draw.values())))
    return "" if stat.std is None else f"{words}{number(stat.std / math.sqrt(stat.n))}"


def _listed(noun: str, seeds: Sequence[int]) -> str:
    return f"{counted(len(seeds), noun)} ({', '.join(map(str, seeds))})"


def published_notes(card: Card, results: Sequence[Aggregate]) -> list[str]:
    """Return the notes on the published tables from which the report of a dataset shows numbers."""
    dataset, primary = results[0].dataset, card.metrics.primary
    shown = scores_on_test(card, dataset)
    if ood_grid(card, results) is not None:
        splits = ood_splits(card, results)
        beside = [compared_with(runs, card, split, primary, study="ood") for runs in results for split in splits]
        shown += [score for score in beside if score is not None and score.value is not None]
        shown += [s for scores in reference_scores(dataset, primary, splits).values() for s in scores.values()]
    return notes_on(shown)


def stat_text(stat: Stat | None) -> str:
    """Return ``mean ± std``, or the mean alone for one run, or a dash."""
    return ABSENT if stat is None else score_text(stat.mean, stat.std)


def score_text(mean: float, std: float | None) -> str:
    """Return ``mean ± std``, or the mean alone if there is no deviation."""
    return number(mean) + ("" if std is None else f" ± {number(std)}")


def number(value: float) -> str:
    """Return a score with four decimals; from 1000 on, with one decimal."""
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:,.1f}"


def signed(value: float) -> str:
    """Return a difference with its sign, with a typographic minus."""
    return f"{value:+.4f}".replace("-", "−")  # noqa: RUF001


def _optional(value: float | None) -> str:
    return ABSENT if value is None else number(value)


def _published_text(score: PublishedScore | None) -> str:
    if score is None or score.value is None:
        return ABSENT
    return score_text(score.value, score.std)


def _predictor_name(name: str) -> str:
    return name.replace("_", " ")


def _runs_text(runs: Aggregate) -> str:
    """Return the runs of a mean: ``2 seeds``, ``2 seeds of data seed 3`` or ``6 runs (2 seeds, 3 data seeds)``."""
    seeds = counted(len(runs.seeds), "seed")
    if len(runs.data_seeds) > 1:
        return f"{len(runs.records)} runs ({seeds}, {len(runs.data_seeds)} data seeds)"
    return f"{seeds} of data seed {runs.data_seeds[0]}" if runs.data_seeds[0] else seeds


def _steps_text(runs: Aggregate) -> str:
    steps = sorted({record.steps for record in runs.records if record.steps is not None})
    if not steps:
        stated = all(record.config.get("kind") != OWN_MODEL for record in runs.records)
        return "no steps" if stated else "steps not stated"
    return (f"{steps[0]:,}" if len(steps) == 1 else f"{steps[0]:,} to {steps[-1]:,}") + " steps"


def _budget_text(runs: Aggregate) -> str:
    sizes = ", ".join(
        str(size) for size in sorted({record.batch_size for record in runs.records if record.batch_size is not None})
    )
    return _budget(runs, f" of {sizes} graphs") + runs.mark


def _budget(runs: Aggregate, batches: str = "") -> str:
    """Return the budget in words, and whether some runs were scored on fewer graphs than others."""
    text = runs.label or _steps_text(runs) + batches
    is_said = PARTLY_SCORED in text or not runs.partly_scored
    return text if is_said else f"{text}, {PARTLY_SCORED}"


def _mean(stat: Stat | None, text: Callable[[float], str]) -> str:
    return ABSENT if stat is None else text(stat.mean)


def parameters_text(count: float) -> str:
    """Return a number of parameters, in millions from a million on."""
    return f"{count / 1e6:.2f} M" if count >= 1e6 else f"{count:,.0f}"


def bytes_text(count: float) -> str:
    """Return an amount of memory in MiB or GiB."""
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
