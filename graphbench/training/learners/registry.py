"""Which learner trains which architecture, and what its budget counts."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from graphbench.models.registry import architecture
from graphbench.training.config import RunConfig
from graphbench.training.fidelity import SAMPLES, STEPS, Fidelity
from graphbench.training.learners.base import LearnerClass

_LEARNERS = {
    "torch": "graphbench.training.learners.torch_learner:TorchLearner",
    "tabular": "graphbench.training.learners.tabular:TabularLearner",
}


def learner_class(config: RunConfig) -> LearnerClass:
    """Return the learner of a configuration's architecture."""
    learner = architecture(config.kind).learner
    module, _, name = _LEARNERS.get(learner, learner).partition(":")
    return cast(LearnerClass, getattr(import_module(module), name))


def fidelity_of(config: RunConfig) -> Fidelity:
    """Return what the budget of a configuration's learner counts; the learner itself is not imported."""
    return STEPS if architecture(config.kind).has_steps else SAMPLES
