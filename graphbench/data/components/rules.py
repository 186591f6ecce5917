"""Rules: trivial predictors that read the inputs of a graph and learn nothing.

A domain brings rules (``Domain(rules={...})``), and a card names the rules of its task:
``task: {rules: {structural: <domain>.<name>}}``. ``graphbench verify --update`` scores every rule in addition to the
predictors that read training labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from graphbench.data.arrays.samples import Samples

RuleFunction = Callable[[Samples], Mapping[str, NDArray[Any]]]


@dataclass(frozen=True)
class Rule:
    """A fixed rule that predicts outputs from inputs.

    Attributes:
        description: The rule in one sentence, as dataset pages and ``graphbench info`` print it.
        predict: ``samples -> output -> predictions``, for all outputs of the task: a pure function. The samples hold
            the graphs and the values of the inputs, and nothing else. Predictions have the shape of the targets: of a
            mask bool or probabilities, of classes their numbers, of a scalar numbers.
    """

    description: str
    predict: RuleFunction
