"""Samples of the user's own graphs: a file of NumPy arrays per split, whose content hash is on the card.

A card ``<own>/datasets/<domain>/<name>.yaml`` has its files in ``<own>/files/<domain>/<name>/<split>.npz``, variants in
``<name>/<variant>/<split>.npz``, so the folder can be moved as a whole. Files are not compressed: a file unpacks to no
more than its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Kind
from graphbench.core.damage import damage_named
from graphbench.core.errors import StoreError
from graphbench.core.files import atomic_path
from graphbench.core.untrusted import require_regular
from graphbench.core.validation import StrictModel
from graphbench.core.zip_files import require_stored_entries
from graphbench.data.arrays.graph_checks import graph_problem
from graphbench.data.arrays.hashing import samples_hash
from graphbench.data.arrays.samples import Samples
from graphbench.data.arrays.texts import POINTER, Texts
from graphbench.data.components.file_sources import READ_FROM_FILES
from graphbench.data.components.generators import Generator

GENERATOR = "own.graphs"
FILES = "files"
_REMEDY = "import the dataset again"
_IN_MEMORY = 4  # files of the last splits


class OwnParameters(StrictModel):
    """Parameters of a split of the user's own graphs.

    Attributes:
        content: SHA-256 of the arrays, so that other graphs give another fingerprint.
    """

    content: str = Field(pattern=r"^[0-9a-f]{64}$")


def files_of(card_path: Path) -> Path:
    """Return the folder with the files of the datasets whose card lies at a path."""
    return card_path.parents[2] / FILES / card_path.parent.name / card_path.stem


def file_of_split(card_path: Path, split: str, variant: str | None = None) -> Path:
    """Return the file that holds a split of the dataset, or of a variant of it, whose card lies at a path."""
    return files_of(card_path) / (variant or "") / f"{split}.npz"


def write_samples(path: Path, samples: Samples) -> str:
    """Write samples to a file, and return the SHA-256 of their arrays.

    Raises:
        StoreError: If the file cannot be written.
    """
    arrays = samples.arrays()
    with atomic_path(path) as temporary, ZipFile(temporary, "w") as archive:
        for name, array in arrays.items():
            with archive.open(ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
    return samples_hash(arrays)


def read_samples(path: Path, card: Card) -> tuple[Samples, str]:
    """Return the samples in a file, and the SHA-256 of their arrays.

    Args:
        path: The file.
        card: The card, whose features the file has.

    Raises:
        StoreError: If the file is missing, damaged, or holds other arrays than the card's features.
    """
    status = path.stat() if path.is_file() else None
    if status is None:
        raise StoreError(f"{card.id} has no file {path}; copy it back, or {_REMEDY}")
    arrays, content = _arrays(path, (status.st_size, status.st_mtime_ns, status.st_ino))
    expected = {"num_nodes", "num_edges", "edges"}
    for feature in card.graph_features:
        expected |= {feature.name, feature.name + POINTER} if feature.kind is Kind.TEXT else {feature.name}
    if arrays.keys() != expected:
        raise StoreError(
            f"{path} has the arrays {', '.join(arrays)}, the card {', '.join(sorted(expected))}; {_REMEDY}"
        )
    values: dict[str, Any] = {
        f.name: Texts(arrays[f.name], arrays[f.name + POINTER]) if f.kind is Kind.TEXT else arrays[f.name]
        for f in card.graph_features
    }
    return Samples(arrays["num_nodes"], arrays["num_edges"], arrays["edges"], values), content


@lru_cache(maxsize=_IN_MEMORY)
def _arrays(path: Path, state: tuple[int, ...]) -> tuple[dict[str, NDArray[Any]], str]:
    with damage_named(path, remedy=_REMEDY):
        require_regular(path)
        with ZipFile(path) as archive:
            require_stored_entries(archive, path)
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    return arrays, samples_hash(arrays)


@dataclass(frozen=True)
class _OwnGraphs(Generator):
    """Reads the samples of a split from its file."""

    def draw(self, card: Card, split: str, indices: NDArray[np.int64], attempts: NDArray[np.int64]) -> Samples:
        """Return the chosen samples of a split.

        Raises:
            StoreError: If the file is missing or damaged, or was changed since the dataset was imported.
        """
        parameters, path = self.parse(card, split), file_of_split(card.path, split, card.variant)
        samples, content = read_samples(path, card)
        if content != parameters.content:
            raise StoreError(
                f"{path} was changed or damaged: hash of the content {content[:12]}... instead of "
                f"{parameters.content[:12]}... as {card.path} says; copy the file back, or {_REMEDY}"
            )
        problem = graph_problem(card.graph_schema, samples)
        if problem or len(samples) != card.split(split).count:
            fault = problem or f"it has {len(samples)} samples, the card {card.split(split).count}"
            raise StoreError(f"{path} does not fit {card.path}: {fault}; {_REMEDY}")
        return samples.take(card.graph_schema, indices)


GENERATORS: dict[str, Generator] = {
    "graphs": _OwnGraphs(
        name=GENERATOR,
        version=1,
        parameters=OwnParameters,
        unique_inputs=True,
        variants_divide=True,
        masks_cells=True,
        **READ_FROM_FILES,
    )
}
