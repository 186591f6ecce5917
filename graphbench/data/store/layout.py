"""The paths of the files of a dataset, and the content of their manifests.

``<root>/<domain>/<name>/v<version>-<fingerprint>/<split>.h5`` holds graphs. Costly labels are in one subfolder per
labeller, ``labels-<labeller>-<fingerprint>/<split>.h5``; tasks with the same labeller share it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from graphbench.catalog.cards import Card
from graphbench.core.errors import ChecksumMismatch, StoreError
from graphbench.core.files import clear_errors, file_sha256, is_file, load_json, remove_strays, replace_text, write_json
from graphbench.data.components.domain import find, representation_of
from graphbench.data.store.files import FORMAT, _check_format

MANIFEST = "manifest.json"
_Stamp = tuple[list[int], str | None, str | None]  # state of a file, its checksum, its content hash
_CHECKED: dict[Path, _Stamp] = {}  # file -> stamp, of this process
_FACTS: Mapping[str, type] = {"bytes": int, "sha256": str, "count": int, "split": str, "content": str}


class Manifest:
    """The manifest of a dataset folder: card, fingerprint, versions, and the checksum of every file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / MANIFEST
        self.folder = folder

    def read(self) -> dict[str, Any]:
        """Return the content, or an empty manifest if there is no file yet."""
        if not is_file(self.path):
            return {"format": FORMAT, "files": {}}
        try:
            with clear_errors(self.path, "read"):
                content: dict[str, Any] = load_json(self.path)
            for name, facts in content["files"].items():
                _check_facts(name, facts)
            file_format = content["format"]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"{self.path} is damaged: it is no manifest with the files of the folder; restore this file, or delete "
                f"{self.folder} and it will be rebuilt, bit for bit"
            ) from error
        _check_format(self.path, file_format)
        return content

    def add_file(self, name: str, facts: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        """Record a finished file with its size and checksum, keeping the others."""
        content = self.read()
        path = self.folder / name
        content.update(about)
        state = _file_state(path)
        content["files"][name] = {**facts, "bytes": path.stat().st_size, "sha256": file_sha256(path)}
        remove_strays(self.folder, MANIFEST)
        write_json(self.path, content)
        self._stamp(name, state, content["files"][name])

    def entry(self, name: str) -> dict[str, Any] | None:
        """Return the entry of a file, or None."""
        facts: dict[str, Any] | None = self.read()["files"].get(name)
        return facts if facts is not None and is_file(self.folder / name) else None

    def check(self, name: str, full: bool = False, content: Callable[[Path], str] | None = None) -> dict[str, Any]:
        """Check a file against its recorded checksums, and return its entry.

        The full comparison runs once per state of the file (size, times of change, inode) and recorded checksums; later
        calls compare the state only. A file that was changed in place has another time of change (``ctime``), even
        where its time of modification was put back.

        Args:
            name: File name inside the folder.
            full: Recompute the checksums in any case.
            content: Returns the content hash of a file, which is then compared with the recorded one; None compares the
                checksum of the file alone.

        Raises:
            ChecksumMismatch: If size, checksum or content differ.
            StoreError: If the file is not recorded.
        """
        entry = self.read()["files"].get(name)
        path = self.folder / name
        if entry is None or not path.is_file():
            raise StoreError(f"{path} is not recorded in {self.path}; delete it and it will be rebuilt")
        state = _file_state(path)
        checked = (None, None) if full else self._checked(name, state)
        if checked[0] != entry["sha256"]:
            self._require(path, "SHA-256", file_sha256(path), entry["sha256"])
        if content is not None and checked[1] != entry["content"]:
            self._require(path, "hash of the content", content(path), entry["content"])
        wanted = (entry["sha256"], None if content is None else entry["content"])
        if checked[0] != wanted[0] or wanted[1] not in (None, checked[1]):
            self._stamp(name, state, entry if content is not None else {"sha256": entry["sha256"]})
        return dict(entry)

    def _require(self, path: Path, kind: str, actual: str, recorded: str) -> None:
        if actual != recorded:
            raise ChecksumMismatch(
                f"{path} was changed or damaged: {kind} {actual[:12]}... instead of {recorded[:12]}... as {self.path} "
                "says; delete this file and it will be rebuilt, bit for bit"
            )

    def _stamp_path(self, name: str) -> Path:
        return self.folder / f".{name}.checked"

    def _checked(self, name: str, state: Sequence[int]) -> tuple[str | None, str | None]:
        """Return the checksum and the content hash that a file in a state was compared with; None if there is none."""
        stamp = _CHECKED.get(self.folder.absolute() / name)
        if stamp is None or stamp[0] != state:
            stamp = self._stamped(name)
        return (None, None) if stamp is None or stamp[0] != state else (stamp[1], stamp[2])

    def _stamped(self, name: str) -> _Stamp | None:
        path = self._stamp_path(name)
        try:
            state, sha256, content = [] if path.is_symlink() else load_json(path)
        except (OSError, ValueError, TypeError):
            return None
        return state, sha256, content

    def _stamp(self, name: str, state: Sequence[int], checked: Mapping[str, Any]) -> None:
        """Note that a file in a state has the checksums of ``checked``, in this process and in the folder.

        Links are not followed. A file that changed while it was read gets no stamp.
        """
        path = self.folder / name
        if _file_state(path) != state:
            return
        stamp = (list(state), checked["sha256"], checked.get("content"))
        _CHECKED[path.absolute()] = stamp
        try:
            replace_text(self._stamp_path(name), json.dumps(stamp))
        except OSError:
            return  # a read-only folder: the check simply runs again in the next process


def _check_facts(name: str, facts: Mapping[str, Any]) -> None:
    for key, kind in _FACTS.items():
        if not isinstance(facts[key], kind):
            raise TypeError(f"{key} of {name} is {facts[key]!r}")


def _file_state(path: Path) -> list[int]:
    """Return the facts that change with a file: no program can reset the file's time of change (``ctime``)."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns]


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
    """Return the identifier of a dataset's data: the folders of graphs and labels, candidates, draw, representation."""
    graphs = folder if folder is not None else dataset_folder(card, Path())
    draw = card.draw_mark
    labels = (f"+{label_folder(card, labeller, graphs).name}" for labeller in card.labellers)
    representation = representation_of(card)
    represented = "" if representation is None else f"@{card.representation}-{representation.version}"
    linked = "" if card.links is None else f"+links-{card.links.mark}"
    return "".join((graphs.name.removesuffix(draw), *labels, linked, draw, represented))


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
            f"{folder} holds other data than {card.address}{card.draw_mark}: its manifest says "
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
