"""The frozen facts of search spaces: the serialised content of ConfigSpace, and configurations that a seed draws."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.tuning.space import describe, space_from, to_plain
from graphbench.tuning.space_file import list_spaces, load_tuning_file

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

SPACES = Path(__file__).resolve().parent / "frozen" / "spaces.json"
SAMPLES = 10
_DIGITS = 6  # significant digits of drawn numbers

WRITTEN: dict[str, dict[str, Any]] = {
    "every kind": {
        "space": {
            "lr": {"type": "float", "range": [1e-6, 0.1], "log": True},
            "layers": {"type": "int", "range": [1, 10]},
            "hidden": {"type": "int", "range": [8, 512], "log": True, "default": 64},
            "width": {"type": "int", "range": [10, 50], "quantum": 10},
            "share": {"type": "float", "range": [0, 0.5], "quantum": 0.1, "default": 0.3},
            "mixed": {"type": "categorical", "choices": ["a", 1, 2.5, None, [1, 2]], "default": None},
            "rate": {"type": "ordinal", "sequence": [0, 1e-3, 1]},
            "bias": {"type": "categorical", "choices": [True, False]},
            "fixed": {"type": "constant", "value": [1, 2]},
        },
        "conditions": [
            {"child": "layers", "parent": "mixed", "values": ["a", None]},
            {"child": "width", "parent": "layers", "greater_than": 3},
            {"child": "width", "parent": "layers", "less_than": 8},
        ],
        "forbidden": [{"bias": False, "rate": [0, 1]}, {"mixed": [1, 2]}, {"layers": 5}],
    }
}
"""Written spaces with the types, conditions and forbidden combinations that no shipped file has."""


def facts_of_spaces() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and facts of all shipped search spaces, and of the written ones."""
    for name in list_spaces():
        file = load_tuning_file(name)
        shrunk = file.for_budget(max(1, file.budget.max // 10))
        settings = {"budgets": file.budgets, "fidelity": file.fidelity, "trials": file.trials}
        yield name, {**settings, "shrunk": _hash(shrunk.configuration_space()), **_facts(file.configuration_space())}
    for name, written in WRITTEN.items():
        yield name, _facts(space_from(written))


def freeze_spaces() -> None:
    """Write the facts of all spaces, one line for each."""
    lines = [f"{json.dumps(name)}: {json.dumps(facts)}" for name, facts in facts_of_spaces()]
    SPACES.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _facts(space: ConfigurationSpace) -> dict[str, Any]:
    described = hashlib.sha256(json.dumps(describe(space)).encode()).hexdigest()[:16]
    space.seed(0)
    samples = [to_plain(configuration) for configuration in space.sample_configuration(SAMPLES)]
    return {
        "content": _hash(space),
        "described": described,
        "names": list(space),
        "samples": [_rounded([sample.get(name, "inactive") for name in space]) for sample in samples],
    }


def _hash(space: ConfigurationSpace) -> str:
    """Return a hash of the parts of a space in their order: names, ranges, scales, defaults, conditions, clauses."""
    content = space.to_serialized_dict()
    parts = [content[part] for part in ("hyperparameters", "conditions", "forbiddens")]
    return hashlib.sha256(json.dumps(_rounded(parts, 12), sort_keys=True).encode()).hexdigest()[:16]


def _rounded(value: Any, digits: int = _DIGITS) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(part, digits) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part, digits) for part in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value
