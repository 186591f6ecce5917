"""Formats of other tools that domains register for their datasets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphbench.data.arrays.samples import Samples

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card


@dataclass(frozen=True)
class Exporter:
    """A format that datasets of a domain can be written in.

    Attributes:
        name: ``<domain>.<name>``.
        about: Description of the written files, in a few words.
        write: ``(card, split -> samples, folder) -> files``: writes the samples of splits to a new folder, and returns
            the files, or the folders of many.
        labels: Whether the labels of the task are written; if not, no labels are made or passed to ``write``.
    """

    name: str
    about: str
    write: Callable[[Card, Mapping[str, Samples], Path], Sequence[Path]]
    labels: bool = True
