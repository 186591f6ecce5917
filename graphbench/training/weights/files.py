"""The files of stored weights, ``baselines/weights/<domain>/<dataset>/<model>.safetensors``, and their headers.

A row is a dataset and a model, and has one file, of one seed. A model that was trained on several datasets has one file
for all of them, ``baselines/weights/joint/<digits>/<model>.safetensors``. The header of a file says everything that the
model is rebuilt from, so a file may lie anywhere. This module reads headers alone and loads no torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import Field, ValidationError

from graphbench._version import __version__
from graphbench.catalog.resources import data_folders
from graphbench.core.damage import damage_named
from graphbench.core.errors import CheckpointError, UnknownModel
from graphbench.core.suggestions import closest
from graphbench.core.untrusted import require_regular, shown
from graphbench.core.validation import StrictModel, explain
from graphbench.records.files import matches
from graphbench.records.record import MODEL_NAME
from graphbench.training.config import list_configs
from graphbench.training.identity import RunIdentity, in_current_names

SUFFIX = ".safetensors"
WEIGHTS = "weights"
"""Name of the folder of weights in ``baselines/``, and of the entry of a file's facts that describes them."""

JOINT = "joint"
"""Name of the folder of models that were trained on several datasets."""

MOST_FILE_BYTES = 1_000_000
"""Most bytes of one file: a model of 500,000 numbers in float16."""

MOST_BYTES = 25_000_000
"""Most bytes of all files of the package together, which every clone and every wheel holds."""

FORMAT = 1
_KEY = "graphbench"  # of the metadata of a safetensors file, as checkpoints have it
_DIGITS = 8
_REMEDY = "restore the file, or write it again with `graphbench weights export RUN`"

StoredType = Literal["float32", "float16"]


class ValidationScore(StrictModel):
    """The primary metric on the whole validation split.

    Attributes:
        split: The split that selected the weights.
        metric: The metric.
        graphs: Number of graphs of the split.
        record: The value in the record of the run.
        stored: The value of the model with the stored weights.
    """

    split: str
    metric: str
    graphs: int
    record: float
    stored: float


class SampleScore(StrictModel):
    """The primary metric on the first samples of a split, by which a copy of the model can be checked.

    Attributes:
        split: The split.
        limit: How many samples were asked for: the limit of the loader.
        content_hash: Content hash of the samples.
        trained: The value of the metric with the weights of the run.
        stored: The value with the stored weights.
    """

    split: str
    limit: int
    content_hash: str
    trained: float
    stored: float


class DatasetFacts(StrictModel):
    """The facts of one dataset that a model was trained on.

    Attributes:
        features: (name, stage, location, type) of every feature in the card's order, which the model is built for.
        directed: Whether its graphs are directed.
        complete: Whether every pair of nodes is an edge.
        options: The settings of the card's task.
        record: Path of the run's record below ``baselines/results``; its name has the hash of the configuration.
        validation: The score on the validation split, with the stored weights and in the record.
        samples: Scores of the first samples of some splits.
    """

    features: tuple[tuple[str, str, str, str], ...]
    directed: bool
    complete: bool
    options: dict[str, Any] = Field(default_factory=dict)
    record: str
    validation: ValidationScore
    samples: tuple[SampleScore, ...]


class WeightsFacts(StrictModel):
    """The facts in the header of a file of weights.

    Attributes:
        schema_version: Version of this format (key ``schema`` in the file).
        graphbench_version: Version that wrote the file; it is not compared.
        dtype: Type in which the parameters are stored. Buffers keep their types.
        parameters: Number of trainable parameters.
        best_step: Step of the weights; None for the last one.
        started: When the run was started, ISO 8601, UTC.
        identity: The ``fingerprint.json`` of the run: configuration, cards, options, code of plug-ins, data.
        datasets: Dataset -> its facts.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    graphbench_version: str = __version__
    dtype: StoredType
    parameters: int
    best_step: int | None = None
    started: str
    identity: RunIdentity
    datasets: dict[str, DatasetFacts] = Field(min_length=1)

    @property
    def model(self) -> str:
        """Name of the model's configuration."""
        return str(self.identity.config.get("model_name"))

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return int(self.identity.config["training"]["seed"])

    @property
    def data_seed(self) -> int:
        """Draw of the data that the run was trained on."""
        return int(self.identity.config.get("data_seed", 0))


@dataclass(frozen=True)
class WeightsFile:
    """A file of weights, whose header was read.

    Attributes:
        path: The file.
        facts: The facts in its header.
    """

    path: Path
    facts: WeightsFacts

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.path.stat().st_size


def weights_dir() -> Path:
    """Return the folder of the package's weights, which need not exist."""
    return data_folders("baselines")[0].path / WEIGHTS


def weights_path(datasets: Sequence[str], model: str) -> Path:
    """Return where the file of a row lies below a folder of weights.

    Args:
        datasets: The datasets that the model was trained on.
        model: Name of its configuration.
    """
    if len(datasets) == 1:
        return Path(*datasets[0].replace(":", "-").split("/"), model + SUFFIX)
    digits = hashlib.sha256("\n".join(sorted(datasets)).encode()).hexdigest()[:_DIGITS]
    return Path(JOINT, digits, model + SUFFIX)


def read_weights(path: Path) -> WeightsFile:
    """Return a file of weights, after reading its header; the hash of its content is compared when it is loaded.

    Raises:
        CheckpointError: If the file is absent, damaged, of a newer format, or no file of weights, such as the
            checkpoint of a run.
    """
    from safetensors import safe_open

    if not path.exists():
        raise CheckpointError(f"there are no weights {path}; `graphbench weights export RUN` writes such files")
    with damage_named(path, CheckpointError, _REMEDY):
        require_regular(path)
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
        content = json.loads(metadata.get(_KEY, "{}"))
    facts = content.get(WEIGHTS) if isinstance(content, dict) else None
    if not isinstance(facts, dict):
        raise CheckpointError(
            f"{path} holds no weights with their configuration; a checkpoint of a run is loaded by "
            "graphbench.load_run(FOLDER), and `graphbench weights export FOLDER` writes a file of weights"
        )
    return WeightsFile(path, _checked(facts, path))


def _checked(facts: dict[str, Any], path: Path) -> WeightsFacts:
    version = facts.get("schema")
    if isinstance(version, int) and version > FORMAT:
        raise CheckpointError(
            f"{path} has the format of weights {version}, newer than this version reads ({FORMAT}); update graphbench"
        )
    try:
        checked = WeightsFacts.model_validate(facts)
        checked = checked.model_copy(update={"identity": in_current_names(checked.identity)})
        _ = checked.seed, checked.data_seed
    except ValidationError as error:
        raise CheckpointError(f"{explain(error, WeightsFacts, where=str(path))}; {_REMEDY}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: its configuration has no seed ({shown(error, 80)}); {_REMEDY}") from error
    listed = tuple(checked.identity.config.get("datasets") or (checked.identity.config.get("dataset"),))
    if listed != tuple(checked.datasets):
        raise CheckpointError(
            f"{path} describes {', '.join(checked.datasets)}, and its configuration {', '.join(map(str, listed))}; "
            f"{_REMEDY}"
        )
    return checked


def weights_files(folder: Path | None = None) -> list[WeightsFile]:
    """Return the files of weights of a folder, or of the package and of the folders of plug-ins, in order of paths.

    Raises:
        CheckpointError: If one of them cannot be read, or lies at another place than that of its row.
    """
    folders = _folders() if folder is None else [folder]
    return [_placed(path, parent) for parent in folders for path in sorted(parent.rglob(f"*{SUFFIX}"))]


def rows(selector: str | Sequence[str] = "*") -> list[tuple[str, WeightsFile]]:
    """Return (dataset, file) of every row that has weights, sorted; a file of several datasets stands in several rows.

    Args:
        selector: Ids or globs of datasets.
    """
    stored = [(id_, file) for file in weights_files() for id_ in file.facts.datasets if matches(id_, selector)]
    return sorted(stored, key=lambda row: (row[0], row[1].facts.model))


def find_weights(dataset: str, model: str, seed: int | None = None) -> WeightsFile:
    """Return the file of a row.

    Args:
        dataset: Address of the dataset.
        model: Name of the model's configuration.
        seed: Seed that the file must have; None takes the stored one.

    Raises:
        UnknownModel: If the row has no weights, or those of another seed; the message names the rows that have some.
        CheckpointError: If the file cannot be read, or two files hold the row.
    """
    candidates = list(_candidates(dataset, model)) if MODEL_NAME.fullmatch(model) else []
    if len(candidates) > 1:
        raise CheckpointError(
            f"{' and '.join(str(file.path) for file in candidates)} hold weights of {model} on {dataset}; give the "
            "path of one of them, or remove the other"
        )
    if not candidates:
        raise UnknownModel(_missing(dataset, model))
    (file,) = candidates
    if seed not in (None, file.facts.seed):
        raise UnknownModel(
            f"the weights of {model} on {dataset} are of seed {file.facts.seed}, and there are none of seed {seed}; "
            f"leave seed out, or train the model with graphbench.train({dataset!r}, {model!r}, seed={seed})"
        )
    return file


def _folders() -> list[Path]:
    return [path for folder in data_folders("baselines") if (path := folder.path / WEIGHTS).is_dir()]


def _candidates(dataset: str, model: str) -> Iterator[WeightsFile]:
    for folder in _folders():
        path = folder / weights_path([dataset], model)
        if path.is_file():
            yield _placed(path, folder)
        for path in sorted(folder.glob(f"{JOINT}/*/{model}{SUFFIX}")):
            file = _placed(path, folder)
            if dataset in file.facts.datasets:
                yield file


def _placed(path: Path, folder: Path) -> WeightsFile:
    """Return a file in a folder of weights, which must lie at the place of its row."""
    file = read_weights(path)
    expected = weights_path(tuple(file.facts.datasets), file.facts.model)
    if path.relative_to(folder) != expected:
        raise CheckpointError(
            f"{path} holds weights of {file.facts.model} on {', '.join(file.facts.datasets)}, whose place is "
            f"{folder / expected}; move it there"
        )
    return file


def _missing(dataset: str, model: str) -> str:
    """Return the message on a row without weights: the models of its dataset, the datasets of its model, what to do."""
    stored = rows()
    models = [file.facts.model for id_, file in stored if id_ == dataset]
    datasets = [id_ for id_, file in stored if file.facts.model == model]
    there = f"models with weights on {dataset}: {', '.join(models) or 'none'}"
    if datasets:
        there += f"; datasets with weights of {model}: {', '.join(datasets)}"
    elif not models:
        every = dict.fromkeys(id_ for id_, _ in stored)
        there += f"; datasets with weights: {', '.join(every) or 'none'}"
    trains = f"{PurePosixPath(dataset).parts[0]}/{model}" in list_configs()
    remedy = f"; graphbench.train({dataset!r}, {model!r}) trains the model" if trains else ""
    return f"there are no weights of {model!r} on {dataset}{closest(model, models)} ({there}){remedy}"
