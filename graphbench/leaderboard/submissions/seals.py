"""Seals: commitments to the weights, the configuration and the code of an entry, before anybody knows its test draw."""

from __future__ import annotations

import ast
import hashlib
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError
from safetensors import safe_open

from graphbench._version import __version__
from graphbench.catalog.names import card as card_of
from graphbench.core.arguments import checked_path
from graphbench.core.damage import damage_named
from graphbench.core.errors import GraphBenchError, ResultError
from graphbench.core.files import file_sha256, write_json
from graphbench.core.untrusted import strict_json
from graphbench.core.validation import StrictModel, explain
from graphbench.core.words import human_bytes
from graphbench.data.store.layout import data_fingerprint
from graphbench.leaderboard.submissions.description import Description, read_description
from graphbench.leaderboard.submissions.folder import CODE, DESCRIPTION, SEAL, WEIGHTS, Contents, contents_of
from graphbench.records.provenance import Hash

ENTRY = "model.py"
_MOST_BYTES = 2**20
_MOST_CODE_BYTES = 2**24
_MOST_WEIGHTS_BYTES = 2**33
_COMMITMENT = "commitment"


class Seal(StrictModel):
    """The content that a commitment is the hash of.

    Attributes:
        schema_version: Version of this format (key ``schema`` in the file).
        model: Name of the model.
        authors: Names of the authors.
        description: SHA-256 of ``submission.yaml``.
        weights: File of weights, below the folder -> SHA-256; its header has the configuration.
        code: File of the author's code, below the folder -> SHA-256; empty for models of the package.
        data: Address of every dataset -> fingerprint of its canonical draw, which names parameters and generator.
        graphbench_version: Version of the package whose code rebuilds the model.
        sealed_at: When the entry was sealed (UTC).
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    model: str
    authors: tuple[str, ...]
    description: Hash
    weights: dict[str, Hash]
    code: dict[str, Hash] = Field(default_factory=dict)
    data: dict[str, str]
    graphbench_version: str
    sealed_at: datetime

    @property
    def commitment(self) -> str:
        """SHA-256 of the content, 64 hex digits."""
        return _hash(self.model_dump(mode="json", by_alias=True))

    def differences(self, other: Seal) -> list[str]:
        """Return in words what another seal of the same folder has otherwise, dates aside."""
        differences = []
        for name in ("model", "authors", "description", "weights", "code", "data"):
            value, other_value = getattr(self, name), getattr(other, name)
            if isinstance(value, Mapping):
                for key in sorted(key for key in {*value, *other_value} if value.get(key) != other_value.get(key)):
                    what = (
                        "was added" if key not in value else "is missing" if key not in other_value else "was changed"
                    )
                    differences.append(f"{key} {what}" if name != "data" else f"the data of {key} {what}")
            elif value != other_value:
                differences.append(f"{DESCRIPTION if name == 'description' else name} was changed")
        return differences


def seal(folder: str | os.PathLike[str]) -> tuple[Seal, Path]:
    """Write the seal of an entry, and return it with its file.

    Args:
        folder: The folder: ``submission.yaml``, ``weights/<domain>/<dataset>[-<task>]/seed<number>.safetensors``, and
            for a model that is none of this package ``code/model.py``, see
            :mod:`graphbench.verification.answer`. Records of the runs may lie beside them.

    Raises:
        ResultError: If the folder has no weights and no code, is sealed already, or something in it is refused.
    """
    place = checked_path("folder", folder)
    target = place / SEAL
    if target.exists():
        raise ResultError(
            f"{place} is sealed already ({read_seal(place).commitment[:12]}...). To seal changed files, remove {SEAL}: "
            "the entry then has another commitment, and its record names the earlier one if that was verified"
        )
    made = seal_of(place, datetime.now(UTC).replace(microsecond=0))
    _require_weights(contents_of(place))
    write_json(target, {**made.model_dump(mode="json", by_alias=True), _COMMITMENT: made.commitment})
    return made, target


def seal_of(folder: Path, sealed_at: datetime) -> Seal:
    """Return the seal that the present files of a folder have.

    Raises:
        ResultError: As :func:`seal`.
    """
    if not folder.is_dir():
        raise ResultError(f"there is no folder {folder}; `graphbench submit init` makes one for a submission")
    contents = contents_of(folder)
    if contents.faults:
        name, fault = next(iter(contents.faults.items()))
        raise ResultError(f"{name}: {fault}")
    description = read_description(folder / DESCRIPTION)
    _require_entry(contents)
    datasets = datasets_of(contents, description)
    if not datasets:
        raise ResultError(f"{DESCRIPTION} names no dataset; name the datasets that the code answers under `datasets:`")
    return Seal(
        model=description.model,
        authors=description.authors,
        description=file_sha256(folder / DESCRIPTION),
        weights={contents.name_of(file.path): file_sha256(file.path) for file in contents.weights},
        code={contents.name_of(path): file_sha256(path) for path in contents.code},
        data={address: data_fingerprint(card_of(address)) for address in datasets},
        graphbench_version=__version__,
        sealed_at=sealed_at,
    )


def datasets_of(contents: Contents, description: Description) -> list[str]:
    """Return the addresses of the datasets of an entry: of its weights, or where it has none of its description."""
    named = dict.fromkeys(file.dataset for file in contents.weights) or description.datasets
    try:
        return sorted({card_of(name).address for name in named})
    except GraphBenchError as error:
        raise ResultError(f"{error}") from error


def read_seal(folder: Path) -> Seal:
    """Return the seal of a folder.

    Raises:
        ResultError: If there is none, it cannot be read, or its commitment is not the hash of its content.
    """
    path = folder / SEAL
    if not path.is_file() or path.is_symlink():
        raise ResultError(f"{folder} is not sealed: it has no {SEAL}, which `graphbench submit seal` writes")
    try:
        content: Any = strict_json(path, _MOST_BYTES)
        if not isinstance(content, dict):
            raise ValueError("it holds no keys")
        stated = content.pop(_COMMITMENT, None)
        stored_seal = Seal.model_validate(content)
    except ValidationError as error:
        raise ResultError(f"{path}: {explain(error, Seal)}") from error
    except (OSError, ValueError) as error:
        raise ResultError(f"{path} cannot be read: {error}") from error
    if stated != stored_seal.commitment:
        raise ResultError(
            f"{path} was changed after the entry was sealed: its commitment is {stated!r:.80}, and its content has "
            f"{stored_seal.commitment}; restore the file"
        )
    return stored_seal


def require_unchanged(folder: Path, sealed: Seal) -> None:
    """Refuse a folder whose files differ from the sealed ones.

    Raises:
        ResultError: With the files.
    """
    changed = sealed.differences(seal_of(folder, sealed.sealed_at))
    if changed:
        raise ResultError(
            f"{', '.join(changed[:4])}{' and more' if len(changed) > 4 else ''} after the entry was sealed; restore "
            "the sealed files, or seal the entry anew and publish the new commitment"
        )


def _require_entry(contents: Contents) -> None:
    names = {contents.name_of(path) for path in contents.code}
    if not contents.weights and not names:
        raise ResultError(
            f"{contents.folder} has neither {WEIGHTS}/ nor {CODE}/; predictions cannot be sealed, as nothing can be "
            "run on another draw: give the weights that `graphbench weights export RUN --output` writes, or your own "
            f"weights with {CODE}/{ENTRY}"
        )
    if names and f"{CODE}/{ENTRY}" not in names:
        raise ResultError(f"{CODE}/ has no {ENTRY}, which defines load(weights) and returns the model; add it")
    if names:
        _require_code(contents.folder / CODE / ENTRY)
    size = sum(path.stat().st_size for path in contents.code)
    if size > _MOST_CODE_BYTES:
        raise ResultError(
            f"{CODE}/ has {size:,} bytes; at most {_MOST_CODE_BYTES:,} are run: put numbers into {WEIGHTS}/"
        )


def _require_code(path: Path) -> None:
    """Refuse a file of code that cannot be read as Python, or that has no function ``load``.

    Raises:
        ResultError: With the line.
    """
    try:
        module = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        raise ResultError(f"{CODE}/{path.name} is no Python: {error}") from error
    names = {getattr(node, "name", "") for node in module.body}
    imported = [node for node in module.body if isinstance(node, ast.ImportFrom | ast.Import)]
    names |= {alias.asname or alias.name for node in imported for alias in node.names}
    if "load" not in names:
        raise ResultError(f"{CODE}/{path.name} defines no function load(weights), which returns the model; add it")


def _require_weights(contents: Contents) -> None:
    """Refuse weights that are no tensors, hold values that are not finite, or are the same for several seeds.

    Raises:
        ResultError: With the file.
    """
    seen: dict[str, str] = {}
    for file in contents.weights:
        name = contents.name_of(file.path)
        size = file.path.stat().st_size
        if size > _MOST_WEIGHTS_BYTES:
            most = human_bytes(_MOST_WEIGHTS_BYTES)
            raise ResultError(f"{name} has {human_bytes(size)}; weights have at most {most}")
        digest = file_sha256(file.path)
        if digest in seen:
            raise ResultError(f"{name} is a copy of {seen[digest]}; give the weights of another run, or one seed alone")
        seen[digest] = name
        if not contents.code:
            _require_weights_of_package(file.path, name)
        with (
            damage_named(name, ResultError, "write it with safetensors.torch.save_file"),
            safe_open(file.path, framework="pt") as tensors,
        ):
            named_tensors = ((key, tensors.get_tensor(key)) for key in tensors.keys())  # noqa: SIM118
            wrong = next((key for key, tensor in named_tensors if not bool(tensor.isfinite().all())), None)
        if wrong is not None:
            raise ResultError(f"{name} holds values that are not finite in {wrong!r}; give the weights of a good run")


def _require_weights_of_package(path: Path, name: str) -> None:
    from graphbench.training.weights.files import read_weights

    try:
        read_weights(path)
    except GraphBenchError as error:
        raise ResultError(
            f"{name} was not written by `graphbench weights export` ({error}), and there is no {CODE}/{ENTRY} that "
            "knows what to do with tensors of your own; add one of the two"
        ) from error


def _hash(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
