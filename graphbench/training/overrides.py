"""Changes of a configuration: how they are written, how they are merged, and which of them change a run's result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphbench.core.errors import ConfigError
from graphbench.core.yaml_text import YamlFault, loaded_yaml

_FREE = {  # keys that change where, how often and how long a run works, or its repetition; not the trained model
    "training.seed",
    "training.steps",  # fewer make a small run all the same
    "training.precision",
    "training.compile",
    "training.eval_every",
    "training.eval_at",
    "training.eval_batch_size",
    "training.log_every",
    "training.checkpoint_every",
    "model.frozen.path",  # where an encoder lies on this machine
}


def pair_of(text: str) -> tuple[str, Any]:
    """Return key and value of ``key=value``; the value is read as YAML.

    Raises:
        ConfigError: If the text has another form.
    """
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise ConfigError(f"override {text!r} must have the form key=value, e.g. training.lr=3e-4")
    try:
        return key.strip(), loaded_yaml(value)
    except YamlFault as error:
        raise ConfigError(f"override {text!r:.200}: the value is {error.reason}") from error


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested mappings as one; of values for the same key the second stays."""
    result = dict(base)
    for key, value in changes.items():
        both = isinstance(value, Mapping) and isinstance(result.get(key), Mapping)
        result[key] = merged(result[key], value) if both else value
    return result


def with_arguments(changes: Mapping[str, Any], **arguments: int | None) -> dict[str, Any]:
    """Return the overrides with the arguments of ``training`` that are not None.

    Raises:
        ConfigError: If an argument contradicts an override.
    """
    stated = {key: value for key, value in arguments.items() if value is not None}
    chosen = changes.get("training", {})
    for key, value in stated.items():
        if key in chosen and chosen[key] != value:
            raise ConfigError(
                f"{key}={value} contradicts the override training.{key}={chosen[key]!r}; give one of the two"
            )
    return merged(changes, {"training": stated})


def with_scaled_warmup(values: dict[str, Any], changes: Mapping[str, Any], reference: int | None) -> dict[str, Any]:
    """Return the values with the warm-up's share of a smaller budget, unless the overrides set the warm-up."""
    training = values["training"]
    steps, warmup = training.get("schedule_steps") or training.get("steps"), training.get("warmup", 0)
    chosen = "warmup" in changes.get("training", {})
    if chosen or not all(isinstance(value, int) for value in (steps, warmup, reference)) or not 0 < steps < reference:
        return values
    return merged(values, {"training": {"warmup": warmup * steps // reference}})


def changed_keys(file: Mapping[str, Any], chosen: Mapping[str, Any], overrides: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the overridden keys, dotted and sorted, that make a run another one than its file's.

    Args:
        file: ``model`` and ``training`` of the file, validated: with all defaults.
        chosen: The same after the overrides.
        overrides: The overrides, nested. A key that has the file's value is no change.
    """
    before, after, requested = (
        {key: value for key, value in flat(settings).items() if value != {}} for settings in (file, chosen, overrides)
    )
    if after["training.schedule_steps"] == after["training.steps"]:
        before["training.schedule_steps"] = after["training.schedule_steps"]  # as if it were left out
    touched = {key for key in before.keys() | after.keys() if any(_within(key, part) for part in requested)}
    return tuple(sorted(key for key in touched - _FREE if before.get(key) != after.get(key)))


def _within(key: str, part: str) -> bool:
    """Return whether a key is another one, lies in it, or holds it."""
    return key == part or key.startswith(f"{part}.") or part.startswith(f"{key}.")


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as dotted key -> value; an empty mapping is a value."""
    flattened: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            flattened |= flat(value, f"{prefix}{key}.")
        else:
            flattened[f"{prefix}{key}"] = value
    return flattened
