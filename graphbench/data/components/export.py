"""Datasets written in the formats of other tools, by the exporters that domains register."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from graphbench.catalog.cards import Card
from graphbench.core.errors import ArgumentError, StoreError
from graphbench.core.files import clear_errors
from graphbench.core.suggestions import closest
from graphbench.data.arrays.samples import Samples
from graphbench.data.components.domain import domain_of
from graphbench.data.components.exporters import Exporter


def find_exporter(card: Card, name: str, others: Mapping[str, str] | None = None) -> Exporter:
    """Return the exporter of a dataset's domain with a name, e.g. ``cnf``.

    Args:
        card: The card of the dataset.
        name: Name of the format.
        others: Formats of all domains -> their description, for the message; None for none.

    Raises:
        ArgumentError: If the domain has no exporter of this name.
    """
    exporters: Mapping[str, Exporter] = domain_of(card).components("exporter")
    if name not in exporters:
        known = {**(others or {}), **{short: exporter.about for short, exporter in exporters.items()}}
        listed = "; ".join(f"{short!r}: {about}" for short, about in known.items())
        raise ArgumentError(f"format {name!r} is unknown for {card.address}{closest(name, known)} (known are {listed})")
    return exporters[name]


def export_samples(exporter: Exporter, card: Card, splits: Mapping[str, Samples], folder: Path) -> Sequence[Path]:
    """Write the samples of splits to a folder, which must be new or empty; return the written files.

    Raises:
        StoreError: If the folder holds files, or cannot be written.
        ArgumentError: If the format cannot hold the dataset.
    """
    require_new_folder(folder)
    return exporter.write(card, splits, folder)


def require_new_folder(folder: Path) -> None:
    """Raise an error unless a folder is new or empty.

    Raises:
        StoreError: If the folder holds files, or cannot be read.
    """
    with clear_errors(folder, "write", "choose another folder"):
        if folder.exists() and not folder.is_dir():
            raise StoreError(f"{folder} is a file; give a new folder")
        if folder.is_dir() and any(folder.iterdir()):
            raise StoreError(f"{folder} is there already and not empty; give a new folder, so that no files mix")
