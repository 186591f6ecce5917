"""Predictions of the rules that a card names: trivial predictors that read the inputs of graphs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import EvaluationError, GraphBenchError
from graphbench.core.foreign import described
from graphbench.data.arrays.quantisation import unpacked
from graphbench.data.components.domain import rules_of

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.data.arrays.samples import Samples
    from graphbench.data.components.rules import Rule

Predictions = dict[str, NDArray[Any]]
"""Output -> one row per item."""


def rule_predictions(card: Card, samples: Samples) -> dict[str, Predictions]:
    """Return the name of every rule of a card -> output -> predictions for some samples.

    A rule is given the graphs and the inputs of the samples, and no target.

    Args:
        card: The card; its task names the rules.
        samples: Samples of the card, with their targets.

    Raises:
        CardError: If a rule does not exist.
        EvaluationError: If a rule raises an exception, does not predict exactly the outputs, or returns another number
            of rows than the targets have.
    """
    rules = rules_of(card)
    if not rules:
        return {}
    inputs = {feature.name: samples.values[feature.name] for feature in card.inputs}
    readable = unpacked(card.stored_schema, replace(samples, values=inputs, hints=None))
    return {name: _predictions(card, name, rule, readable, samples.values) for name, rule in rules.items()}


def _predictions(card: Card, name: str, rule: Rule, inputs: Samples, targets: Mapping[str, Any]) -> Predictions:
    """Return the predictions of one rule, after checking their names and numbers of rows."""
    where = f"{card.address}: the rule {card.task.rules[name]!r}"
    try:
        predictions = {output: np.asarray(values) for output, values in rule.predict(inputs).items()}
    except GraphBenchError:
        raise
    except Exception as error:
        raise EvaluationError(f"{where} raised {described(error)}; mend its predict") from error
    outputs = [feature.name for feature in card.outputs]
    if set(predictions) != set(outputs):
        raise EvaluationError(
            f"{where} predicts {', '.join(predictions) or 'nothing'}; return predictions of {', '.join(outputs)}"
        )
    for output, values in predictions.items():
        if values.shape != np.shape(targets[output]):
            raise EvaluationError(
                f"{where} returns the shape {values.shape} for {output}, whose targets have the shape "
                f"{np.shape(targets[output])}; return one row per item"
            )
    return predictions
