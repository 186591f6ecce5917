"""The paths of the files of a dataset, and the content of their manifests.

``<root>/<domain>/<name>/v<version>-<fingerprint>/<split>.h5`` holds graphs. Costly labels are in one subfolder per
labeller, ``labels-<labeller>-<fingerprint>/<split>.h5``; tasks with the same labeller share it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from graphbench.catalog.cards import Card, draw_suffix
from graphbench.core.errors import StoreError
from graphbench.core.files import is_file
from graphbench.data.components.domain import find, representation_of
from graphbench.data.store.manifest import Manifest

_NOT_IN_MANIFESTS = {"measured", "data_seed", "representation", "graph_features"}


def dataset_folder(card: Card, root: Path) -> Path:
    """Return ``<root>/<domain>/<name>/v<version>-<fingerprint>``; the fingerprint includes the draw."""
    fingerprint = find("generator", card.generator).fingerprint(card)
    return root / card.domain / card.id.split("/", 1)[1] / f"v{card.version}-{fingerprint}"


def label_folder(card: Card, labeller: str, folder: Path) -> Path:
    """Return the folder of a labeller's labels within the folder of the graphs: ``labels-<labeller>-<fingerprint>``."""
    version = find("labeller", labeller).version
    return folder / f"labels-{labeller.split('.')[1]}-{card.label_fingerprint(labeller, version)}"


def data_fingerprint(card: Card, folder: Path | None = None) -> str:
    """Return the identifier of a dataset's data: the folders of graphs and labels, draw, representation."""
    graphs = folder if folder is not None else dataset_folder(card, Path())
    draw = draw_suffix(card.data_seed)
    labels = (f"+{label_folder(card, labeller, graphs).name}" for labeller in card.labellers)
    representation = representation_of(card)
    represented = "" if representation is None else f"@{card.representation}-{representation.version}"
    return "".join((graphs.name.removesuffix(draw), *labels, draw, represented))


def work_folder(folder: Path, split: str) -> Path:
    """Return the folder that holds the shards of an unfinished build."""
    return folder / f".build-{split}"


def file_name(split: str, count: int, full: int) -> str:
    """Return the file name of a split, complete or its first ``count`` samples."""
    return f"{split}.h5" if count == full else f"{split}-first{count}.h5"


def find_file(split: str, count: int, folder: Path) -> str | None:
    """Return the smallest finished file that holds at least ``count`` samples of a split, or None."""
    finished = [
        (facts["count"], name)
        for name, facts in Manifest(folder).read()["files"].items()
        if facts.get("split") == split and facts["count"] >= count and is_file(folder / name)
    ]
    return min(finished)[1] if finished else None


def require_data_of(
    card: Card, folder: Path, expected: Mapping[str, Any] | None = None, *, of_labels: bool = False
) -> None:
    """Refuse a folder if its manifest describes other data than a card: another dataset, version, draw or fingerprint.

    Keys that an older manifest lacks are not compared.

    Args:
        card: The card.
        folder: The folder of the graphs, or of one labeller's labels.
        expected: Further entries that the manifest must have, from :func:`about_graphs` or :func:`about_labels`.
        of_labels: Whether the folder holds labels.

    Raises:
        StoreError: If an entry differs; the message names both values and the folder.
    """
    manifest = Manifest(folder).read()
    if "id" in manifest and not of_labels:
        manifest = {"data_seed": 0, **manifest}
    wanted = {"id": card.id, "version": card.version, "data_seed": card.data_seed}
    wanted |= {key: value for key, value in (expected or {}).items() if key == "fingerprint"}
    differing = [
        f"{key} {manifest[key]!r}, not {value!r}" for key, value in wanted.items() if manifest.get(key, value) != value
    ]
    if differing:
        raise StoreError(
            f"{folder} holds other data than {card.address}{draw_suffix(card.data_seed)}: its manifest says "
            f"{', '.join(differing)}; move the folder away or delete it, and the data will be generated"
        )


def about_graphs(card: Card) -> dict[str, Any]:
    """Return the description of a dataset's graphs for their manifest."""
    card = card.graphs
    generator = find("generator", card.generator)
    return {
        "id": card.id,
        "version": card.version,
        "fingerprint": generator.fingerprint(card),
        **({"data_seed": card.data_seed} if card.data_seed else {}),
        "generator": {"name": generator.name, "version": generator.version},
        "card": card.model_dump(mode="json", exclude=_NOT_IN_MANIFESTS),
        "libraries": library_versions(),
    }


def about_labels(card: Card, name: str) -> dict[str, Any]:
    """Return the description of the labels of a labeller, given by its name, for their manifest."""
    labeller = find("labeller", name)
    spec = card.labels[labeller.name]
    return {
        "id": card.id,
        "version": card.version,
        "fingerprint": card.label_fingerprint(name, labeller.version),
        **({"data_seed": card.data_seed} if card.data_seed else {}),
        "labeller": {"name": labeller.name, "version": labeller.version},
        "labels": spec.model_dump(mode="json"),
        "libraries": library_versions(),
    }


@lru_cache(maxsize=1)
def library_versions() -> Mapping[str, str]:
    """Return the versions of the libraries used for generation."""
    from importlib.metadata import PackageNotFoundError, version

    versions = {}
    for name in ("graphbench", "numpy", "numba", "h5py"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions
