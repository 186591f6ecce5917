"""Hyperparameters of baselines and search spaces: tables 20 and 22 to 27."""

from __future__ import annotations

from functools import reduce
from typing import Any

import yaml

import graphbench
from benchmarks.claims.model import FOLDER
from benchmarks.claims.registry import Outcome, check
from benchmarks.claims.running import outcome_of
from graphbench.training.config import load_config


def _value(values: Any, key: str) -> Any:
    return reduce(lambda part, name: part[name], key.split("."), values)


@check
def settings_of_configurations(table: int | str, agree: bool = True) -> Outcome:
    """Values of our configurations in ``baselines`` beside a printed table of hyperparameters.

    Epochs are compared as steps times batch size over training samples, within 1 %.

    Args:
        table: The table, or a part of it, transcribed in ``printed/graphbench_hyperparameters.yaml``.
        agree: Whether all values are to be the printed ones; else every configuration is to differ.
    """
    content = yaml.safe_load((FOLDER / "printed" / "graphbench_hyperparameters.yaml").read_text(encoding="utf-8"))
    problems, compared, differing = [], 0, set()
    for name, printed in content[f"table {table}"].items():
        dataset, model = name.rsplit(" ", 1)
        card = graphbench.card(dataset)
        config = load_config(dataset, model, family=card.family).to_dict()
        for key, value in printed.items():
            compared += 1
            if key == "epochs":
                training = config["training"]
                own = training["steps"] * training["batch_size"] / card.split("train").count
                if abs(own / value - 1) > 0.01:
                    differing.add(name)
                    problems.append(f"{name}: {own:.0f} epochs, printed {value}")
            elif (own := _value(config, key)) != value:
                differing.add(name)
                problems.append(f"{name}: {key} is {own}, printed {value}")
    if not agree:
        problems = [f"{name} has the printed values" for name in content[f"table {table}"] if name not in differing]
    return outcome_of(problems, values=compared, models=len(content[f"table {table}"]))


@check
def search_space(space: str, printed: dict[str, list[float]], trials: int, budgets: list[int]) -> Outcome:
    """A search space of ``hpo`` beside the printed ranges.

    Args:
        space: The space, ``<domain>/<model>``.
        printed: Name of the hyperparameter -> smallest and largest value.
        trials: Printed number of evaluations.
        budgets: Printed smallest and largest number of steps.
    """
    path = FOLDER.parents[1] / "hpo" / f"{space}.yaml"
    own = yaml.safe_load(path.read_text(encoding="utf-8"))
    ranges = {name: [float(end) for end in spec["range"]] for name, spec in own["space"].items()}
    problems = [
        f"{name}: {ranges.get(name)}, printed {ends}" for name, ends in printed.items() if ranges.get(name) != ends
    ]
    if own["trials"] != trials or own["budget"]["max"] != budgets[1]:
        problems.append(f"{own['trials']} trials up to {own['budget']['max']} steps")
    return outcome_of(
        problems, ranges=len(printed), trials=trials, least=own["budget"]["min"], printed_least=budgets[0]
    )
