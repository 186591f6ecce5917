"""Checks of scores against the splits they are given for, before a record names the measured samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from graphbench.catalog.features import Kind
from graphbench.core.errors import ResultError
from graphbench.core.suggestions import closest
from graphbench.evaluation.metrics import bootstrap, range_problem
from graphbench.evaluation.score import Score
from graphbench.tasks.registry import task_of

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.data.batches.dataset import GraphDataset
    from graphbench.data.batches.sample_ids import SampleIds

_SCORING_BATCH = 1024
_REMEDY = (
    "score every sample of the split once with update(batch, predictions), or give the samples that were scored as the "
    "split, such as splits.test[:100]"
)


def check_scores(splits: Mapping[str, GraphDataset], scores: Mapping[str, Mapping[str, float]]) -> None:
    """Refuse scores that do not belong to the splits, as far as can be seen.

    The check compares the names, the metrics, and of a :class:`~graphbench.evaluation.score.Score` the samples that its
    evaluator was given. Numbers alone, in a plain mapping, are taken as they are stated.

    Args:
        splits: Name -> split, as it was loaded; splits without a score are not looked at.
        scores: Name of a split, or of a part of one (``test_n16``) -> metric -> value.

    Raises:
        ResultError: With the split, the actual value and the expected one.
    """
    owners = {name: scored_split(name, splits) for name in scores}
    for name, split in splits.items():
        if split.split != name:
            raise ResultError(
                f"the split given as {name!r} is {split.split!r} of {split.card.address}; give it as {split.split!r}"
            )
    datasets = {splits[owner].split_id[:3] for owner in owners.values()}
    if len(datasets) > 1:
        named = " and ".join(sorted(f"{dataset} version {version} ({data})" for dataset, version, data in datasets))
        raise ResultError(f"the splits are of different data: {named}; make one record for each")
    for name, score in scores.items():
        split = splits[owners[name]]
        _check_metrics(name, score, split.card)
        if isinstance(score, Score):
            _check_samples(name, score, split)
            _check_count(name, score, split, is_part=name != owners[name])
            _check_replicates(name, score, split)
            if name == owners[name]:
                _check_targets(name, score, split)


def scored_split(name: str, splits: Mapping[str, GraphDataset]) -> str:
    """Return the split that a name of scores stands for: the split itself, or the split that the named part belongs to.

    Raises:
        ResultError: If no such split is given.
    """
    if name in splits:
        return name
    names = {split for loaded in splits.values() for split in loaded.card.all_splits}
    parts = [] if name in names else [split for split in splits if name.startswith(f"{split}_")]
    if not parts:
        raise ResultError(
            f"there is a score of {name!r}, but the splits that are given are {', '.join(splits) or 'none'}"
            f"{closest(name, splits)}; give the split that was scored as well"
        )
    return max(parts, key=len)


def _check_metrics(name: str, score: Mapping[str, float], card: Card) -> None:
    """Refuse metrics that the card does not have, for the outputs together or for a single output or channel."""
    metrics = (card.metrics.primary, *card.metrics.also)
    detailed = task_of(card).detailed_scores()
    for metric, value in score.items():
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ResultError(f"{name}: {metric} is {value!r:.80}; give a number")
        if problem := range_problem(metric, value):
            raise ResultError(f"{name}: {problem}")
        if metric not in metrics and metric not in detailed:
            raise ResultError(
                f"{name}: {metric!r} is no metric of {card.address}, which has {', '.join(metrics)}"
                f"{closest(metric, metrics)}; leave it out"
            )
    if not score:
        raise ResultError(f"{name} has no score of any metric; {card.address} has {', '.join(metrics)}")


def _check_samples(name: str, score: Score, split: GraphDataset) -> None:
    """Refuse a score that lists its samples, if these are not the samples of the split, each once."""
    for ids in score.samples:
        if ids.split != split.split_id:
            raise ResultError(
                f"the score of {name} was measured on {_in_words(ids)}, and the split that is given is {split.split} "
                f"of {split.card.address} ({split.data_fingerprint}); {_REMEDY}"
            )
        numbers, times = np.unique(ids.numbers, return_counts=True)
        if times.max(initial=0) > 1:
            raise ResultError(
                f"the score of {name} counts sample {numbers[times.argmax()]} {times.max()} times "
                f"({len(ids.numbers):,} samples were scored, {len(numbers):,} different ones); {_REMEDY}"
            )
        expected = split.graph_numbers
        expected = np.arange(len(split)) if expected is None else np.unique(expected)
        if not np.array_equal(numbers, expected):
            other = np.setxor1d(numbers, expected)[0]
            side = "was scored and is not in the split" if other in numbers else "was not scored"
            raise ResultError(
                f"the score of {name} is of {len(numbers):,} samples, and the split that is given has "
                f"{len(expected):,}: sample {other} {side}; {_REMEDY}"
            )


def _check_count(name: str, score: Score, split: GraphDataset, *, is_part: bool) -> None:
    """Refuse a score of another number of samples than the split has; a part has at most as many."""
    expected = len(split)
    if score.graphs is not None and (score.graphs > expected if is_part else score.graphs != expected):
        raise ResultError(
            f"the score of {name} is of {score.graphs:,} samples, the split that is given has {expected:,}; {_REMEDY}"
        )


def _check_targets(name: str, score: Score, split: GraphDataset) -> None:
    """Refuse a score of other targets than the split has, such as a part of its edges, or targets that were scaled."""
    if not score.targets:
        return
    stored = copy(split)
    stored.transform = None
    evaluator = task_of(split.card).evaluator()
    for batch in stored.batches(_SCORING_BATCH):
        targets = {
            f.name: batch[f.name].float() if f.kind is Kind.MASK else batch[f.name]  # scores, for metrics that rank
            for f in split.card.outputs
        }
        evaluator.update(batch, targets if len(targets) > 1 else next(iter(targets.values())))
    for output, expected in evaluator.compute().targets.items():
        scored = score.targets.get(output)
        if scored is not None and not scored.agree_with(expected):
            raise ResultError(
                f"the score of {name} is of {scored.count:,} values of {output} with the sum {scored.total:.6g}, the "
                f"split has {expected.count:,} with the sum {expected.total:.6g}; score all targets as stored, "
                "change neither edges nor targets of a batch, and predict in the unit of the targets"
            )


def _check_replicates(name: str, score: Score, split: GraphDataset) -> None:
    """Refuse bootstrap replicates that so many samples cannot have, or that cannot be paired with other records'."""
    replicates = score.replicates
    if not replicates:
        return
    if len(replicates) != bootstrap.REPLICATES or (score.resampled or 0) < bootstrap.LEAST_SAMPLES:
        raise ResultError(
            f"the score of {name} has {len(replicates)} bootstrap replicates and is of {score.resampled or 'unknown'} "
            f"samples; there are {bootstrap.REPLICATES} for {bootstrap.LEAST_SAMPLES} samples or more, else none"
        )
    seed = bootstrap.replicate_seed(split.card.address, split.split)
    if score.replicate_seed != seed:
        raise ResultError(
            f"the score of {name} has bootstrap replicates of the seed {score.replicate_seed}, and the replicates of "
            f"records of {split.card.address} {split.split} have the seed {seed}; call draw_replicates() without a seed"
        )
    wrong = [value for value in replicates if not math.isfinite(value)]
    if wrong or any(range_problem(score.primary_name, value) for value in replicates):
        raise ResultError(f"the score of {name} has bootstrap replicates outside the range of {score.primary_name}")


def _in_words(ids: SampleIds) -> str:
    return f"{ids.split.split} of {ids.split.dataset} ({ids.split.data})"
