"""Checks of the runs that a submission has on one dataset, taken together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphbench.catalog.cards import Card
from graphbench.core.words import counted, first_of
from graphbench.evaluation.metrics import METRICS
from graphbench.evaluation.references import whole_split
from graphbench.evaluation.score import replicates_of
from graphbench.evaluation.trivial import best_floor
from graphbench.leaderboard.submissions.description import StatedBudget
from graphbench.leaderboard.submissions.findings import Level, SubmittedDataset
from graphbench.leaderboard.submissions.folder import LAYOUT
from graphbench.records.budgets import BUDGET_NOT_STATED, not_stated
from graphbench.records.copies import copied_runs, key_of, repeatable_scores
from graphbench.records.published import published_budget
from graphbench.records.record import RunRecord, is_deterministic
from graphbench.records.stated import OWN_MODEL

SEEDS_FOR_INTERVAL = 3
RANKED = "test"  # the split by which models are ranked
_AGREE = {"rel_tol": 1e-6, "abs_tol": 1e-9}  # sums in another order, on another machine
_MOST_NAMED = 4


def check_group(entry: SubmittedDataset, card: Card, stated: StatedBudget | None, notes: str | None = None) -> None:
    """Add the faults and gaps of the runs on a dataset to its findings.

    Args:
        entry: The dataset, with its records.
        card: Its card.
        stated: The statements of the submission on the training.
        notes: The line that records of the submission repeat, see :attr:`Description.notes`; None if there is no
            description.
    """
    if not entry.records:
        return
    _check_seeds(entry)
    _check_configurations(entry)
    _check_splits(entry, card)
    _check_against_trivial(entry, card)
    _check_budget(entry, card, stated)
    _check_notes(entry, notes)


def difference(record: RunRecord, computed: Mapping[str, Mapping[str, float]]) -> str | None:
    """Return the first score of a record, or replicate of it, that predictions do not give; None where all agree.

    Splits and metrics that only one of the two has are not compared, nor are times.
    """
    for split, metrics in computed.items():
        for name, value in repeatable_scores(metrics).items():
            stated = record.scores.get(split, {}).get(name)
            if stated is not None and not math.isclose(stated, value, **_AGREE):
                return f"{name} of {split} is {stated:.6g} in the record, the predictions give {value:.6g}"
    for split, values in replicates_of(computed).items():
        stated_values = record.replicates.get(split, values)
        pairs = zip(stated_values, values, strict=False)
        if len(stated_values) != len(values) or not all(math.isclose(a, b, **_AGREE) for a, b in pairs):
            return f"the bootstrap replicates of {split} in the record differ from the predictions'"
    return None


def _check_seeds(entry: SubmittedDataset) -> None:
    seen: set[tuple[str, int, int]] = set()
    twice: dict[int, None] = {}
    for record in entry.records:
        run = (record.config_hash, record.seed, record.data_seed)
        if run in seen:
            twice[record.seed] = None
        seen.add(run)
    if twice:
        entry.add(Level.REFUSED, f"two records of {_seeds_text([*twice])}; keep one of them")
    _check_copies(entry)
    other = sorted({record.data_seed for record in entry.records} - {0})
    if other:
        entry.add(
            Level.REMARK, f"runs on the draws {first_of(other, _MOST_NAMED)} of the data, whose canonical draw is 0"
        )
    count = len(entry.seeds)
    if count < SEEDS_FOR_INTERVAL:
        entry.add(
            Level.MISSING, f"{counted(count, 'seed')}; with {SEEDS_FOR_INTERVAL} or more the mean has an interval"
        )


def _check_copies(entry: SubmittedDataset) -> None:
    """Refuse runs of a learner that are one run under several seeds, and a deterministic model whose runs differ."""
    ordered = sorted(entry.records, key=key_of)
    copies = copied_runs(ordered)
    stated = [record for record in ordered if is_deterministic(record)]
    distinct = {record.data_seed: record.seed for record in reversed(stated) if key_of(record) not in copies}
    for record in stated:
        if key_of(record) not in copies and distinct[record.data_seed] != record.seed:
            entry.add(
                Level.REFUSED,
                f"{_seeds_text([distinct[record.data_seed], record.seed])} are said to be of a deterministic model and "
                "have different scores; correct the statement, which records have as deterministic",
            )
    trained = [record for record in ordered if record.deterministic and not is_deterministic(record)]
    if trained:
        entry.add(
            Level.REFUSED,
            f"{_seeds_text([record.seed for record in trained])} are said to be of a deterministic model, and were "
            "trained in steps, which depend on the seed; correct the statement",
        )
    if stated and all(record.config.get("kind") == OWN_MODEL for record in stated):
        entry.add(Level.REMARK, "the model is stated to be deterministic, which nothing here can confirm")
    copied = [(seed, copies[seed, draw][0]) for seed, draw in copies if (seed, draw) not in map(key_of, stated)]
    if copied:
        pairs = first_of([f"seed {seed} equals seed {original}" for seed, original in copied], _MOST_NAMED)
        entry.add(
            Level.REFUSED,
            f"runs are copies of others, with the same scores and replicates on every split: {pairs}; submit runs of "
            "different seeds, or state deterministic: true if no seed has an influence on the model",
        )


def _check_configurations(entry: SubmittedDataset) -> None:
    """Refuse runs of several configurations under one name."""
    hashes = {record.config_hash: record for record in entry.records}
    if len(hashes) < 2 or len({record.model for record in entry.records}) > 1:  # several models are refused as such
        return
    contents = [_settings(record) for record in hashes.values()]
    keys = dict.fromkeys(key for content in contents for key in content)
    absent = object()
    differing = [key for key in keys if any(c.get(key, absent) != contents[0].get(key, absent) for c in contents)]
    named = first_of(differing, _MOST_NAMED)
    entry.add(
        Level.REFUSED,
        f"the runs have {len(hashes)} configurations, which differ in {named or 'their data'}; submit the runs of one, "
        "or each under a separate model name",
    )


def _settings(record: RunRecord) -> dict[str, Any]:
    budget = {"steps": record.steps_asked, "batch_size": record.batch_size, "budget.small": record.budget.small}
    return dict(_flat(record.config, "config")) | budget


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield (dotted key, value) of all values that are no mappings; seeds are left out."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key not in ("seed", "data_seed"):
                yield from _flat(item, f"{name}.{key}")
    else:
        yield name, value


def _check_splits(entry: SubmittedDataset, card: Card) -> None:
    if RANKED not in entry.complete:
        entry.add(Level.REFUSED, f"no scores of {RANKED}, by which models are ranked; score it as well")
    partly = []
    for split, complete in entry.complete.items():
        scored = [record for record in entry.records if split in record.scores]
        if len(scored) < len(entry.records):
            without = [record.seed for record in entry.records if split not in record.scores]
            entry.add(Level.REMARK, f"{split} was not scored for {_seeds_text(without)}")
        full = card.split(split).count
        if not complete and any(record.graphs_scored.get(split, full) < full for record in scored):
            counts = sorted({record.graphs_scored.get(split, 0) for record in scored})
            few = " or ".join(f"{count:,}" for count in counts[:_MOST_NAMED])
            partly.append(f"{split} {few} of {full:,}")
    if partly:
        small = "; it stands among the small runs" if any(record.budget.small for record in entry.records) else ""
        entry.add(Level.REMARK, f"scored in part: {', '.join(partly)}{small}")
    left_out = [split for split in card.ood if split not in entry.complete]
    if left_out:
        entry.add(Level.MISSING, f"not scored: {', '.join(left_out)}")
    unknown = [split for split, where in entry.hashes.items() if not where]
    if unknown:
        entry.add(
            Level.REFUSED if RANKED in unknown else Level.REMARK,
            f"the data hash of {', '.join(unknown)} was compared with nothing, as the data are not on this machine; "
            "add --generate",
        )


def _check_against_trivial(entry: SubmittedDataset, card: Card) -> None:
    """Remark on a mean score below the score of a trivial predictor; often the order or a sign is wrong.

    Rules that read the graph do not count: an honest model may be worse than such a rule.
    """
    values = entry.values(RANKED)
    floor = best_floor(card, RANKED, entry.primary, whole_split(card, RANKED), rules=False)
    if not values or floor is None or not entry.complete.get(RANKED, False):
        return
    name, value = floor
    mean = sum(values) / len(values)
    if (mean < value) if METRICS[entry.primary].higher_is_better else (mean > value):
        entry.add(
            Level.REMARK,
            f"{entry.primary} of {RANKED} is {mean:.4g}, worse than the score of the best trivial predictor "
            f"({name.replace('_', ' ')}, {value:.4g}); check the order and the kind of the predictions",
        )


def _check_budget(entry: SubmittedDataset, card: Card, stated: StatedBudget | None) -> None:
    first = entry.records[0]
    least = published_budget(card)
    for record in entry.records:
        samples = (record.steps_asked or 0) * (record.batch_size or 0)
        if record.budget.small is False and least and 0 < samples < least:
            entry.add(
                Level.REFUSED,
                f"the record of seed {record.seed} does not count as small, but was trained on {samples:,} samples "
                f"({record.steps_asked:,} steps of {record.batch_size:,}); published budgets begin at {least:,}",
            )
    if stated is not None:
        _compare_budgets(entry, stated)
    if any(BUDGET_NOT_STATED in r.budget.label or not_stated(r.steps, r.batch_size) for r in entry.records):
        is_own = any("not stated" in record.budget.label for record in entry.records)
        missing = not_stated(first.steps, first.batch_size)
        if is_own and missing:
            entry.add(Level.MISSING, f"{missing}; without it the scores are not compared with published ones")
    lacking = ["hardware"] * (not all(record.hardware for record in entry.records))
    lacking += ["training time"] * any(record.wall_seconds is None for record in entry.records)
    lacking += ["parameters"] * (any(r.parameters is None for r in entry.records) and "hardware" in lacking)
    if lacking:
        entry.add(Level.MISSING, f"not stated: {', '.join(lacking)}; their columns stay empty")
    _check_predictions(entry)


def _check_predictions(entry: SubmittedDataset) -> None:
    """Report the scores that were taken from the records, as the submission has no predictions for them."""
    without = [seed for seed in entry.seeds if not entry.recomputed.get(seed)]
    if without:
        entry.add(
            Level.MISSING,
            f"no predictions of {_seeds_text(without)}, so the scores come from the records; files such as {LAYOUT} "
            "would be scored",
        )
    for split in entry.complete:
        scored = [record.seed for record in entry.records if split in record.scores]
        lacking = sorted({seed for seed in scored if split not in entry.recomputed.get(seed, (split,))})
        if lacking:
            entry.add(
                Level.REMARK if split == RANKED else Level.MISSING,
                f"no predictions of {split} of {_seeds_text(lacking)}, so its scores come from the records",
            )


def _compare_budgets(entry: SubmittedDataset, stated: StatedBudget) -> None:
    for record in entry.records:
        recorded: dict[str, Any] = {
            "steps": record.steps_asked,
            "batch_size": record.batch_size,
            "parameters": record.parameters,
        }
        is_own = record.config.get("kind") == OWN_MODEL
        if is_own:  # all of it came from the description, as it was when the record was written
            machine = {name: record.hardware.get(name) for name in ("cpu", "gpu")}
            recorded |= {"training_seconds": record.wall_seconds, **machine}
        for name, there in recorded.items():
            said = getattr(stated, name)
            if said is None or said == there or (there is None and not is_own):
                continue
            has = "does not state it" if there is None else f"has {there}"
            entry.add(
                Level.REFUSED,
                f"submission.yaml says {name}: {said}, the record of seed {record.seed} {has}; correct one, or remove "
                "the record and write it again, which --records does where there are predictions",
            )


def _check_notes(entry: SubmittedDataset, notes: str | None) -> None:
    """Remark on records that repeat an earlier description of the model."""
    noted_records = [record for record in entry.records if record.config.get("kind") == OWN_MODEL and record.notes]
    old = [record.seed for record in noted_records if record.notes != notes]
    if notes is not None and old:
        entry.add(
            Level.REMARK,
            f"submission.yaml says other things of the model than the records of {_seeds_text(old)}; remove these, and "
            "--records writes them again from the predictions",
        )


def _seeds_text(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {first_of(seeds, _MOST_NAMED)}"
