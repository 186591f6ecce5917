"""The folder of a run: its name, its lock, and the check that its files belong to the run that opens it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from graphbench.catalog.cards import draw_suffix
from graphbench.core.damage import fault_of
from graphbench.core.errors import CheckpointError, ConfigError
from graphbench.core.files import (
    clear_errors,
    existing_parent,
    file_lock,
    json_text,
    refuse_foreign_links,
    remove_strays,
)
from graphbench.core.untrusted import shown
from graphbench.records.files import RECORD, read_record
from graphbench.training.config import RunConfig, run_config_from_json
from graphbench.training.overrides import flat

_Facts = TypeVar("_Facts", bound=BaseModel)

CONFIG = "config.json"
RESTART = "resume=False (on the command line --no-resume)"
RECORDS = "records"
_LOCK = ".lock"
_SHOWN = 40  # characters of a setting's value in a message
_IDENTITY = {  # key -> its name in messages, the most telling first
    "dataset": "the dataset",
    "datasets": "the datasets",
    "data_seed": "draw",
    "model_name": "the model",
    "training.seed": "seed",
    "training.steps": "training.steps",
}
_WITHOUT_INFLUENCE = {"training.seed", "training.log_every", "training.checkpoint_every"}
_NOT_REPORTED = {f"training.{name}" for name in ("log_every", "checkpoint_every", "eval_batch_size")}
_NOT_REPORTED |= {"overridden", "reference_steps", "small"}


def run_name(config: RunConfig) -> str:
    """Return the name of a run's folder: model, eight digits of its configuration, seed, and draw of the data.

    The digits change with every setting of model, training and limits but the seed, so that runs with different
    settings never share a folder by default: ``gin-5d41402a-seed0``, ``gin-5d41402a-seed0-draw3``.
    """
    values = {key: value for key, value in flat(config.to_dict()).items() if key not in _WITHOUT_INFLUENCE}
    digits = hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:8]
    return f"{config.model_name}-{digits}-seed{config.training.seed}{draw_suffix(config.data_seed)}"


def default_output(config: RunConfig, name: str | None = None) -> Path:
    """Return the folder of a run that names none, below ``runs`` in the current folder.

    Args:
        config: The configuration.
        name: Common name of several datasets; None for the run's only dataset.
    """
    parts = config.dataset.replace(":", "-").split("/") if name is None else [name]
    return Path("runs", *parts, run_name(config))


def require_folder(folder: Path) -> None:
    """Refuse a path that cannot be a folder.

    Raises:
        ConfigError: If it or a folder above it is a file, or the path is invalid.
    """
    if "\0" in str(folder):
        raise ConfigError(f"the output {str(folder)!r} holds a NUL byte; choose another")
    if not existing_parent(folder).is_dir():
        raise ConfigError(
            f"the output {folder} cannot be a folder: {existing_parent(folder)} is a file; choose another"
        )


@contextmanager
def locked(folder: Path, leads: bool = True) -> Iterator[None]:
    """Hold a run's folder for this process while the block runs, and remove the half-written files of killed processes.

    Args:
        folder: The run's folder; it is created if it does not exist.
        leads: Whether this process writes the files; others do not lock.

    Raises:
        ConfigError: If another process uses the folder.
        StoreError: If the folder cannot be written.
    """
    if not leads:
        yield
        return
    from filelock import Timeout

    with clear_errors(folder, "write"):
        refuse_foreign_links(folder / RECORDS)
        folder.mkdir(parents=True, exist_ok=True)
        lock = file_lock(folder / _LOCK, timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            raise ConfigError(
                f"the folder {folder} is in use by another run; wait for it to end, or choose another output"
            ) from error
        except NotImplementedError:  # a file system without locks
            yield
            return
    try:
        for directory in (folder, folder / RECORDS):
            remove_strays(directory, "*")
        yield
    finally:
        lock.release()


def record_path(folder: Path, dataset: str | None = None) -> Path:
    """Return the path of a run's only record, or of the record of one dataset among several."""
    return folder / (f"{RECORDS}/{dataset.replace('/', '-').replace(':', '-')}.json" if dataset is not None else RECORD)


def load_config_of_run(folder: str | Path) -> RunConfig:
    """Return the configuration a run folder's ``config.json`` holds.

    Raises:
        CheckpointError: If there is no such file.
        ConfigError: If the file is not a valid configuration.
    """
    path = Path(folder) / CONFIG
    if not path.is_file():
        raise CheckpointError(f"{path.parent} is no run folder: it has no config.json; train the model first")
    try:
        text = json_text(path)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} {fault_of(error)}; restore it, or train the model again") from error
    return run_config_from_json(text, str(path))


def read_facts(path: Path, schema: type[_Facts], remedy: str) -> _Facts | None:
    """Return the content of a file of a run's folder; None where the run is of a version that did not write it.

    Raises:
        CheckpointError: If the file cannot be read; the message ends with the remedy.
    """
    if not path.is_file():
        return None
    try:
        return schema.model_validate_json(json_text(path))
    except (OSError, ValueError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise CheckpointError(f"{path} cannot be read ({reason}); {remedy}") from error


def differing_settings(folder: Path, config: RunConfig) -> list[str]:
    """Return how a configuration differs from the one in a run's folder, e.g. ``training.steps 6 -> 8``.

    Settings that do not decide whether a run may be continued are left out, and so are facts that follow from others.
    """
    try:
        before = flat(load_config_of_run(folder).model_dump(mode="json"))
    except (CheckpointError, ConfigError, OSError, ValueError):
        return []
    after = flat(config.model_dump(mode="json"))
    return [
        f"{key} {short(before.get(key))} -> {short(after.get(key))}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key) and key not in _NOT_REPORTED
    ]


def stated_settings(config: RunConfig) -> dict[str, str]:
    """Return the settings of a run by dotted key, long values cut; they are stored with the weights of the run."""
    settings = flat(config.model_dump(mode="json")).items()
    return {key: short(value) for key, value in settings if key not in _NOT_REPORTED}


def differing_weights(stated: object, config: RunConfig) -> list[str]:
    """Return how the run that stored weights differs from the one that reads them, in a sentence per setting.

    Args:
        stated: The :func:`stated_settings` of the weights; anything else, as in files of older versions, says nothing.
        config: The configuration of the run that reads the weights.
    """
    stored_settings, run_settings = stated if isinstance(stated, dict) else {}, stated_settings(config)
    keys = [
        key
        for key in stored_settings.keys() | run_settings.keys()
        if stored_settings and stored_settings.get(key) != run_settings.get(key)
    ]
    named = [key for key in _IDENTITY if key in keys]
    return [
        f"these weights are of {_IDENTITY.get(key, key)} {shown(stored_settings.get(key), _SHOWN)}, the run is of "
        f"{_IDENTITY.get(key, key)} {run_settings.get(key)}"
        for key in (*named, *sorted({*keys} - {*named}))
    ]


def short(value: Any) -> str:
    """Return a value as a text of a few characters, for messages."""
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def stated_source(source: str) -> str:
    """Return the source of starting weights as files for others state it, without a path of this machine.

    Of the folder of a run it is the name of the run's record, ``<dataset>/<model>-<digits>-seed<seed>``; of a run on
    several datasets, and of a file of weights, the name of the folder or file.
    """
    path = Path(source).expanduser()
    if (path / RECORD).is_file():
        record = read_record(path / RECORD)
        return f"{record.dataset}/{record.relative_path.stem}"
    return path.name if path.exists() or path.is_absolute() else source
