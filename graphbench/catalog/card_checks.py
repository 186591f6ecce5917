"""Checks of a dataset card that concern several of its keys at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from graphbench.catalog.features import Feature, Kind, Location, Stage
from graphbench.catalog.sections import LabelSpec, NamedTask


def check_trajectories(features: Iterable[Feature], complete: bool) -> None:
    """Check that inputs and outputs of a card with hints can be batched over time as dense arrays of numbers.

    Raises:
        ValueError: If a feature cannot be batched.
    """
    for feature in features:
        if feature.location is Location.EDGE and not complete:
            raise ValueError(
                f"{feature.name} is a feature of edges on a card with hints, whose graphs must be complete; write "
                "complete: true and directed: true"
            )
        if feature.kind is Kind.TEXT:
            raise ValueError(f"{feature.name} is a text on a card with hints; trajectories hold numbers only")


def check_names(key: str, named: Mapping[str, tuple[str, ...]], counts: Mapping[str, int], kind: str) -> None:
    """Check the names of classes or channels.

    Args:
        key: The card's key.
        named: Feature -> names.
        counts: Feature -> number of its classes or channels, of all features that have any.
        kind: Type of these features, for messages.

    Raises:
        ValueError: If a named feature has no classes or channels, or not one distinct name for each.
    """
    for feature, words in named.items():
        if feature not in counts:
            raise ValueError(f"{key} names {feature!r}; the {kind} features are {', '.join(counts) or 'none'}")
        if len(set(words)) != counts[feature] or len(words) != counts[feature]:
            raise ValueError(
                f"{key}.{feature} has {len(set(words))} different names, {feature} {counts[feature]} {key}"
            )


def staged(labels: Mapping[str, LabelSpec], task: NamedTask) -> tuple[Feature, ...]:
    """Return the features of a task's labels; the features that the task names become its inputs and outputs.

    Raises:
        ValueError: If a labeller or a feature does not exist, or a feature is input and output.
    """
    for name in task.labels:
        if name not in labels:
            raise ValueError(f"there are no labels {name!r}; there are {', '.join(labels) or 'none'}")
    features = tuple(feature for name in task.labels for feature in labels[name].features)
    for key, names in (("inputs", task.inputs), ("outputs", task.outputs)):
        unknown = set(names) - {f.name for f in features}
        if unknown:
            available = ", ".join(f.name for f in features)
            raise ValueError(f"{key} {sorted(unknown)} are none of the labels' features; there are {available}")
    both = set(task.inputs) & set(task.outputs)
    if both:
        raise ValueError(f"{sorted(both)} are inputs and outputs; a feature is one or the other")
    stages = {**dict.fromkeys(task.inputs, Stage.INPUT), **dict.fromkeys(task.outputs, Stage.OUTPUT)}
    return tuple(replace(f, stage=stages[f.name]) if f.name in stages else f for f in features)
