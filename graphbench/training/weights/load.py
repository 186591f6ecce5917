"""Models that are rebuilt from stored weights."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature
from graphbench.catalog.names import card as find_card
from graphbench.core.arguments import checked_path
from graphbench.core.errors import (
    ArgumentError,
    CardError,
    CheckpointError,
    ConfigError,
    UnknownDataset,
    UnknownName,
)
from graphbench.data.build.limits import apply_limit
from graphbench.data.store.layout import data_fingerprint
from graphbench.models.base import TaskFeatures
from graphbench.models.registry import build_task_model
from graphbench.training import checkpoint
from graphbench.training.config import RunConfig, run_config_from_json
from graphbench.training.identity import changed_meaning, changed_model, in_words
from graphbench.training.trained import Trained
from graphbench.training.weights.files import SUFFIX, DatasetFacts, WeightsFile, find_weights, read_weights

logger = logging.getLogger(__name__)

_SCORES_ONLY = ("metrics", "protocol")  # sections of a card that a model does not depend on
_REMEDY = "restore the file, or write it again with `graphbench weights export RUN`"


def load_model(dataset: str, model: str | Path, *, seed: int | None = None, strict: bool = True) -> Any:
    """Return a trained model of the package or of a plug-in, rebuilt from its stored weights, in evaluation mode.

    ``graphbench weights list`` shows the datasets and models that have weights. The model is on the CPU and in
    float32. Its attribute ``trained`` says where it comes from, see :class:`Trained`; a model that was trained on
    several datasets has a task for each, whose name is the second argument of its methods. Nothing is unpickled.

    Example:
        >>> import graphbench
        >>> model = graphbench.load_model("clutrr/gen_23", "gat_small")
        >>> splits = graphbench.Loader("clutrr/gen_23", limit=100).load(())
        >>> graphbench.evaluate_model(model, splits.test)["accuracy"]
        >>> for predictions in graphbench.predict_model(model, splits.test):  # as graphbench.Evaluator takes them
        ...     print(predictions)

    Args:
        dataset: Id or alias of a dataset, ``algoreas/mst_easy``; with its task where it has several,
            ``co/rb_small:mis``.
        model: Name of the model's configuration, or the path of a ``.safetensors`` file that
            ``graphbench weights export`` has written.
        seed: Seed of the run that the weights must come from. A row has the weights of one seed, which None takes.
        strict: False turns an error on a card, data, options or code of plug-ins that changed since the training into
            a warning.

    Returns:
        The model, a :class:`~graphbench.models.base.TaskModel`.

    Raises:
        UnknownDataset: If there is no such dataset.
        UnknownModel: If there are no weights of the model on the dataset, or of the seed; the message names the ones
            that are there.
        CheckpointError: If the file is damaged, of a newer format, no file of weights, or does not fit the model that
            the present code builds.
        ConfigError: If the weights are of another dataset, or of other data, options or code than the present ones.
    """
    if isinstance(model, Path) or str(model).endswith(SUFFIX):
        file = read_weights(checked_path("model", model))
        _require_row(file, _address(dataset, file), seed)
    elif not isinstance(model, str):
        raise ArgumentError(f"model must be the name of a model or the path of a file of weights, got {model!r}")
    else:
        file = find_weights(find_card(dataset).address, model, seed)
    return rebuilt(file, strict=strict)


def rebuilt(file: WeightsFile, *, strict: bool = True) -> Any:
    """Return the model of a file of weights, see :func:`load_model`."""
    tensors, _ = checkpoint.load_tensors(file.path, _REMEDY)
    identity, where = file.facts.identity, f"the file of weights {file.path}"
    config = run_config_from_json(json.dumps(identity.config), str(file.path))
    cards = _cards(file, config)
    _require_unchanged(
        file, [*changed_meaning(identity, config, cards, _SCORES_ONLY), *_changed_data(file, cards)], strict
    )
    model = _built(file, config)
    _require_unchanged(file, changed_model(identity, config, cards, model), strict)
    remedy = "the code of the model differs from the code that was trained; use the version of graphbench that wrote it"
    checkpoint.load_model(model, tensors, where, f"{remedy} ({file.facts.graphbench_version})")
    model.eval()
    facts = file.facts.datasets
    model.trained = Trained(
        path=file.path,
        config=config,
        records={id_: dataset.record for id_, dataset in facts.items()},
        scores={id_: dataset.validation.stored for id_, dataset in facts.items()},
        training_facts={id_: identity.data.get(id_, {}).get("facts", {}) for id_ in facts},
    )
    return model


def _address(dataset: str, file: WeightsFile) -> str:
    """Return the address of a dataset, which need not be registered if a file of weights has it."""
    if dataset in file.facts.datasets:
        return dataset
    return find_card(dataset).address


def _require_row(file: WeightsFile, address: str, seed: int | None) -> None:
    if address not in file.facts.datasets:
        raise ConfigError(
            f"{file.path} holds weights of {file.facts.model} on {', '.join(file.facts.datasets)}, not on {address}; "
            "name one of these datasets, or another file"
        )
    if seed not in (None, file.facts.seed):
        raise ConfigError(f"{file.path} holds weights of seed {file.facts.seed}, not {seed}; leave seed out")


def _cards(file: WeightsFile, config: RunConfig) -> dict[str, Card]:
    """Return the cards of the datasets that this process knows, as the run saw them."""
    cards = {}
    for id_ in file.facts.datasets:
        try:
            card = find_card(id_).with_data_seed(config.data_seed)
        except (UnknownDataset, ArgumentError):  # of a plug-in that is not loaded: the file says what a model needs
            continue
        cards[id_], _ = apply_limit(card, config.limit)
    return cards


def _changed_data(file: WeightsFile, cards: Mapping[str, Card]) -> list[str]:
    """Return in words which datasets have other parameters, another generator or another draw than in training."""
    before = {id_: file.facts.identity.data.get(id_, {}).get("fingerprint") for id_ in cards}
    now = {id_: data_fingerprint(card) for id_, card in cards.items()}
    return [f"data of {id_} {before[id_]} -> {now[id_]}" for id_ in cards if before[id_] != now[id_]]


def _require_unchanged(file: WeightsFile, changes: list[str], strict: bool) -> None:
    if not changes:
        return
    words = f"{file.path} was trained with other data or code: {in_words(changes)}"
    if strict:
        raise ConfigError(f"{words}; undo the change, train the model again, or pass strict=False to load it anyway")
    logger.warning("%s", words)


def _built(file: WeightsFile, config: RunConfig) -> Any:
    """Return the model with new weights; the state of torch's generator is kept."""
    try:
        tasks = {id_: _task_features(facts) for id_, facts in file.facts.datasets.items()}
        with torch.random.fork_rng(devices=[]):
            return build_task_model(config.model, tasks)
    except (CardError, ConfigError, UnknownName) as error:
        raise CheckpointError(
            f"the model of {file.path} cannot be built: {error}; if a plug-in registers it, name the module of the "
            "plug-in in GRAPHBENCH_PLUGINS, or import it first"
        ) from error


def _task_features(facts: DatasetFacts) -> TaskFeatures:
    features = tuple(Feature.parse(name, words) for name, *words in facts.features)
    return TaskFeatures(features, facts.directed, facts.complete, facts.options)
