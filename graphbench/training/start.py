"""Where a model starts: the weights of a run, or stored weights, of another model with the same processor."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from graphbench.core.errors import ArgumentError, ConfigError, UnknownDataset, UnknownModel
from graphbench.models.base import TaskModel
from graphbench.models.transfer import PartKind, Taken, require_part_kinds, take
from graphbench.records.classes import core_seconds
from graphbench.records.files import RECORD, read_record, results_dir
from graphbench.training.checkpoint import weights_hash
from graphbench.training.evaluate import load_run
from graphbench.training.folders import CONFIG
from graphbench.training.settings import StartSettings
from graphbench.training.weights.files import SUFFIX, find_weights, read_weights
from graphbench.training.weights.load import rebuilt

logger = logging.getLogger(__name__)


def start_settings(source: str | Path, freeze: str | Sequence[str] = ()) -> StartSettings:
    """Return the settings of a run that starts from other weights.

    Args:
        source: The folder of a run, ``<dataset>/<model>`` of weights that ``graphbench weights list`` shows, or the
            path of a file of weights.
        freeze: Kind of parts that are not trained, or several.

    Raises:
        ConfigError: If there are no such weights, or a kind of parts is unknown.
    """
    freeze = (freeze,) if isinstance(freeze, str) else freeze
    require_part_kinds(freeze)
    model, seconds = _loaded(str(source))
    digest = weights_hash(model)
    if digest is None or not isinstance(model, TaskModel) or not model.parts():
        raise ConfigError(
            f"a model cannot start from {source}: models of its kind have no parts that others could take"
        )
    kinds = cast("tuple[PartKind, ...]", tuple(freeze))
    return StartSettings(source=str(source), weights=digest, core_seconds=seconds, freeze=kinds)


def started(model: Any, settings: StartSettings) -> Taken:
    """Give a model the weights that its settings name, and return what was taken.

    Raises:
        ConfigError: If the weights are gone or others than the settings say, or the models have no common processor.
    """
    source, _ = _loaded(settings.source)
    if weights_hash(source) != settings.weights:
        raise ConfigError(
            f"the weights of {settings.source} changed since this run began with them; put them back, or start another "
            "run in another folder"
        )
    if not isinstance(model, TaskModel):
        raise ConfigError(f"a model of {type(model).__name__} cannot start from {settings.source}; leave init_from out")
    taken = take(model.parts(), source.parts(), settings.source, settings.freeze)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError(
            f"freeze names {', '.join(settings.freeze)}, so nothing is left to train; leave one of them out"
        )
    logger.info("started from %s; %s", settings.source, taken.words())
    return taken


def _loaded(source: str) -> tuple[Any, float | None]:
    """Return the model with the weights, and the processor seconds of its training."""
    folder = Path(source).expanduser()
    if (folder / CONFIG).is_file():
        files = [path for path in (folder / RECORD, *sorted(folder.glob("records/*.json"))) if path.is_file()]
        return load_run(folder), _seconds(files[:1])
    if source.endswith(SUFFIX):
        file = read_weights(folder)
    else:
        dataset, _, model = source.rpartition("/")
        if folder.is_file() or (source.startswith(("/", "~", ".")) and not folder.exists()):
            what = "is a file" if folder.is_file() else "does not exist"
            raise ConfigError(
                f"init_from={source!r} {what}; give the folder of a run, or <dataset>/<model> of stored weights"
            )
        if not dataset or folder.is_dir():
            raise ConfigError(
                f"init_from={source!r} is neither the folder of a finished run nor <dataset>/<model> of stored "
                "weights, which `graphbench weights list` shows"
            )
        try:
            from graphbench.catalog.names import card

            file = find_weights(card(dataset).address, model, None)
        except (UnknownDataset, UnknownModel, ArgumentError) as error:
            raise ConfigError(
                f"init_from={source!r} is not the folder of a finished run, and names no stored weights: {error}"
            ) from error
    records = [results_dir() / Path(facts.record) for facts in file.facts.datasets.values()]
    return rebuilt(file, strict=False), _seconds([path for path in records if path.is_file()][:1])


def _seconds(files: Sequence[Path]) -> float | None:
    return core_seconds(read_record(files[0])) if files else None
