"""The setting ``training.augment``: changes of training graphs that keep their labels."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Stage, select
from graphbench.core.errors import CardError, ConfigError, PluginError
from graphbench.data.components.augmentations import Augmentation, BatchArrays
from graphbench.data.components.domain import find
from graphbench.models.build import PREPARED


def augmentations_of(names: Sequence[str], cards: Mapping[str, Card]) -> dict[str, Augmentation]:
    """Return name -> augmentation, after checking that the datasets have what is changed.

    Args:
        names: Names as in a configuration, ``<domain>.<name>``.
        cards: Dataset -> its card.

    Raises:
        ConfigError: If there is no such augmentation, or a dataset lacks an input that it changes.
    """
    augmentations = {}
    for name in names:
        try:
            augmentation = find("augmentation", name)
        except CardError as error:
            raise ConfigError(f"training.augment: {error}") from error
        for id_, card in cards.items():
            inputs = {feature.name for feature in select(card.features, Stage.INPUT)}
            missing = sorted(set(augmentation.changes) - inputs)
            if missing:
                raise ConfigError(
                    f"training.augment: {name} changes {', '.join(missing)}, and the inputs of {id_} are "
                    f"{', '.join(sorted(inputs)) or 'none'}; take it out of training.augment"
                )
        augmentations[name] = augmentation
    return augmentations


def augmented(batch: Any, augmentations: Mapping[str, Augmentation], generator: torch.Generator) -> Any:
    """Return the batch after the augmentations, one after the other; the batch itself if there are none.

    Args:
        batch: A batch on the CPU; it is not changed.
        augmentations: Name -> augmentation.
        generator: Gives the seed of their random numbers.

    Raises:
        PluginError: If an augmentation returns something else than new values of the inputs that it changes.
    """
    if not augmentations:
        return batch
    random = np.random.default_rng(int(torch.randint(1 << 62, (), generator=generator)))
    changed = copy.copy(batch)
    changed.__dict__.pop(PREPARED, None)  # follows from the inputs before the change
    for name, augmentation in augmentations.items():
        values = {name: changed[name].numpy() for name in augmentation.changes}
        graphs = BatchArrays(batch.batch.numpy(), batch.num_graphs, batch.edge_index.numpy(), values)
        results = augmentation.apply(graphs, random)
        if sorted(results) != sorted(values):
            raise PluginError(f"{name} returned {', '.join(results)}, and says that it changes {', '.join(values)}")
        for key, value in results.items():
            if value.shape != values[key].shape or value.dtype != values[key].dtype:
                raise PluginError(
                    f"{name} returned {value.dtype} {list(value.shape)} as {key}; it has to be as before, "
                    f"{values[key].dtype} {list(values[key].shape)}"
                )
            changed[key] = torch.from_numpy(np.ascontiguousarray(value))
    return changed
