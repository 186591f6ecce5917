"""Class frequencies summarised in one line: how many classes occur, and the most frequent of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphbench.catalog.features import Feature, Kind


@dataclass(frozen=True, slots=True)
class ClassShares:
    """The classes of one categorical feature in a split.

    Attributes:
        feature: Name of the feature.
        classes: How many classes it has.
        occurring: How many of them some sample has.
        largest: Name of the most frequent class, the first one of several.
        share: Its share of the samples.
    """

    feature: str
    classes: int
    occurring: int
    largest: str
    share: float

    def __str__(self) -> str:
        """Return e.g. ``brother 9.9% (18 of 22 classes)``."""
        return f"{self.largest} {self.share:.1%} ({self.occurring} of {self.classes} classes)"


def share_names(features: Sequence[Feature], names: Sequence[str]) -> dict[str, list[str]]:
    """Return feature -> the statistics that are shares of its classes: as many ``<feature>_<class>`` as it has classes.

    Args:
        features: The features of a card.
        names: Names of statistics.
    """
    shares = {f.name: [n for n in names if n.startswith(f"{f.name}_")] for f in features if f.kind is Kind.CATEGORICAL}
    classes = {f.name: f.classes for f in features}
    return {feature: columns for feature, columns in shares.items() if len(columns) == classes[feature]}


def class_shares(feature: str, means: Mapping[str, float]) -> ClassShares:
    """Return the summary of the shares of one feature.

    Args:
        feature: Name of the feature.
        means: Statistic -> share, of every class, in the order of the classes.
    """
    largest = max(means, key=lambda name: means[name])
    occurring = sum(share > 0 for share in means.values())
    return ClassShares(feature, len(means), occurring, largest.removeprefix(f"{feature}_"), means[largest])


def means_text(features: Sequence[Feature], means: Mapping[str, float]) -> str:
    """Return mean statistics in one line, shares of classes summarised.

    Args:
        features: The features of a card.
        means: Statistic -> mean over graphs.
    """
    shares = share_names(features, list(means))
    of_classes = {name for columns in shares.values() for name in columns}
    parts = [f"{name} {mean:.4g}" for name, mean in means.items() if name not in of_classes]
    for feature, columns in shares.items():
        parts.append(f"largest {feature} {class_shares(feature, {name: means[name] for name in columns})}")
    return ", ".join(parts)
