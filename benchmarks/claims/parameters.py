"""Numbers of weights of baselines: rows "Param." of tables 23 to 26."""

from __future__ import annotations

from typing import Any

import graphbench
from benchmarks.claims.registry import Outcome, check
from benchmarks.claims.running import outcome_of
from graphbench.core.errors import GraphBenchError
from graphbench.models.build import build_model, count_parameters
from graphbench.models.config import ModelConfig
from graphbench.training.config import load_config

_TOLERANCE = 0.01  # biases and normalisations are not printed


def _weights(dataset: str, model: str, changes: dict[str, Any]) -> int:
    card = graphbench.card(dataset)
    config = load_config(dataset, model, family=card.family, overrides=changes or None)
    assert isinstance(config.model, ModelConfig)
    return count_parameters(build_model(config.model, card.features, directed=card.directed))


@check
def numbers_of_weights(printed: list[dict[str, Any]], agree: bool = True) -> Outcome:
    """Weights of our models beside printed counts, which agree within 1 % or the last printed digit.

    Args:
        printed: Items with ``dataset``, ``model``, the printed number in millions (``million``) and, where the
            configuration is to be changed, ``changes``.
        agree: Whether all counts are to agree; else none is to.
    """
    problems, relative, own = [], [], []
    for item in printed:
        count = _weights(item["dataset"], item["model"], item.get("changes", {}))
        off = count / (1e6 * item["million"]) - 1
        digit = 0.5 * 10 ** -len(str(item["million"]).partition(".")[2]) / item["million"]
        own.append(count / 1e6)
        relative.append(abs(off))
        if (abs(off) <= max(_TOLERANCE, digit)) != agree:
            problems.append(f"{item['dataset']}, {item['model']}: {count:,}, printed {item['million']} million")
    return outcome_of(
        problems, models=len(printed), largest=max(relative), smallest=min(relative), own=own, most=max(own)
    )


@check
def transformer_without_heads(dataset: str, model: str) -> Outcome:
    """A graph transformer with no attention head cannot be built.

    Args:
        dataset: A dataset that the configuration is for.
        model: The configuration.
    """
    try:
        _weights(dataset, model, {"model.heads": 0})
    except GraphBenchError as error:
        return Outcome(True, {"error": str(error)})
    return Outcome(False, {"error": ""}, "it was built")
