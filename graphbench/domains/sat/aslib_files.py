"""Folders of ASlib scenarios: read from and written to their files (Bischl et al. 2016, section 3).

The files are ``description.txt`` (YAML), ``algorithm_runs.arff`` and ``feature_values.arff``, and optionally
``feature_costs.arff``, ``feature_runstatus.arff`` and ``cv.arff``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from graphbench.core.damage import FileFault, limited_bytes
from graphbench.core.errors import StoreError
from graphbench.core.files import write_text
from graphbench.core.yaml_text import YamlFault, loaded_yaml
from graphbench.domains.sat.arff import NOMINAL, NUMERIC, STRING, Arff, Attribute, Value, read_arff, write_arff
from graphbench.domains.sat.scenarios import FEATURE_STATUSES, NO_RUN, STATUSES, Floats, Scenario

DESCRIPTION, RUNS, FEATURES = "description.txt", "algorithm_runs.arff", "feature_values.arff"
COSTS, FEATURE_STATUS, FOLDS = "feature_costs.arff", "feature_runstatus.arff", "cv.arff"
_INSTANCE, _REPETITION, _ALGORITHM, _STATUS, _FOLD = "instance_id", "repetition", "algorithm", "runstatus", "fold"
_MAX_DESCRIPTION_BYTES = 1 << 20
_MAX_REPETITIONS = 1000
_MAX_YAML_DEPTH = 20
_ALWAYS_ALLOWED_CELLS = 1 << 20  # cells (instance, algorithm, repetition) that a table of runs may have in any case
_MAX_CELLS_PER_RUN = 100  # further cells, most of them without a run, that the table may have for each run
_LONE_MARK = re.compile(
    r"^([ \r]*[\w-]+[ \r]*:[ \r]*|[ \r]*-[ \r]*)\?[ \r]*$", re.MULTILINE
)  # a lone "?" is not valid YAML


def read_scenario(folder: Path) -> Scenario:
    """Return the scenario of a folder.

    If the scenario has several performance measures, the first one is read; it must be a run time. A feature that was
    measured several times gets the mean of its values. If cross-validation was repeated, the first repetition is used.

    Raises:
        StoreError: If a file is missing or malformed, the measure is not a run time, the cutoff is missing, or the
            files name different instances; the message gives the file and the line.
    """
    description = _description(folder / DESCRIPTION)
    runs, values = read_arff(folder / RUNS), read_arff(folder / FEATURES)
    instances = tuple(dict.fromkeys(values.texts(_INSTANCE)))
    if not instances or not runs.rows:
        raise StoreError(f"{(values if not instances else runs).path} has no rows")
    names = tuple(a.name for a in values.attributes if a.name.lower() not in (_INSTANCE, _REPETITION))
    places = {name: i for i, name in enumerate(instances)}
    measure = _measure(folder, description)
    algorithms, seconds, status = _runs(runs, places, measure)
    steps = _steps(folder, description, names)
    costs = _optional(folder / COSTS)
    states = _optional(folder / FEATURE_STATUS)
    return Scenario(
        name=str(description.get("scenario_id") or folder.resolve().name),
        instances=instances,
        algorithms=algorithms,
        cutoff=_cutoff(folder, description),
        seconds=seconds,
        status=status,
        feature_names=names,
        features=_means(values, names, places),
        steps=steps,
        step_seconds=None if costs is None else _means(costs, tuple(steps), places),
        step_status=None if states is None else _step_status(states, tuple(steps), places),
        default_steps=_default_steps(folder, description, steps),
        folds=_folds(_optional(folder / FOLDS), places),
        measure=measure,
    ).check()


# ---------------------------------------------------------------------------------------------------- the description


def _description(path: Path) -> Mapping[str, Any]:
    try:
        raw = limited_bytes(path, _MAX_DESCRIPTION_BYTES)
        text = _LONE_MARK.sub(r"\1'?'", raw.decode("utf-8-sig").replace("\t", "  "))
        description = loaded_yaml(text, levels=_MAX_YAML_DEPTH, repeated=0)
    except FileFault as error:
        raise StoreError(f"{path} {error}; is it the description of a scenario?") from error
    except YamlFault as error:
        line = "" if error.line is None else f", line {error.line}"
        raise StoreError(f"{path}{line}: {error.reason}") from error
    except (OSError, ValueError) as error:
        raise StoreError(f"{path} cannot be read: {error}; a scenario is a folder with this file") from error
    if not isinstance(description, Mapping):
        raise StoreError(f"{path} is no mapping of keys to values; is it the description of a scenario?")
    return description


def _listed(value: Any) -> list[str]:
    """Return the entries of a list in a description; the list may also be written as a text with commas."""
    if value is None or value == "?":
        return []
    return [
        str(v).strip()
        for v in (value if isinstance(value, Sequence) and not isinstance(value, str) else str(value).split(","))
    ]


def _measure(folder: Path, description: Mapping[str, Any]) -> str:
    kinds = _listed(description.get("performance_type")) or ["runtime"]
    if kinds[0] != "runtime":
        raise StoreError(f"{folder / DESCRIPTION}: performance_type is {kinds[0]!r}; scenarios of run times are read")
    if (_listed(description.get("maximize")) or ["False"])[0].lower() in ("true", "yes"):
        raise StoreError(f"{folder / DESCRIPTION}: maximize is true, but a run time is minimised")
    return (_listed(description.get("performance_measures")) or ["runtime"])[0]


def _cutoff(folder: Path, description: Mapping[str, Any]) -> float:
    value = description.get("algorithm_cutoff_time")
    try:
        cutoff = math.nan if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        cutoff = math.nan
    if not 0 < cutoff < math.inf:
        raise StoreError(
            f"{folder / DESCRIPTION}: algorithm_cutoff_time is {value!r}; PAR10 needs the time in seconds "
            "after which runs were stopped"
        )
    return cutoff


def _steps(folder: Path, description: Mapping[str, Any], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return feature step -> features; a scenario that names no steps has the single step ``all``."""
    entries = description.get("feature_steps")
    if not isinstance(entries, Mapping) or not entries:
        return {"all": tuple(names)}
    steps, available = {}, set(names)
    for step, spec in entries.items():
        provided = spec.get("provides") if isinstance(spec, Mapping) else spec
        steps[str(step)] = tuple(_listed(provided))
        unknown = [name for name in steps[str(step)] if name not in available]
        if unknown:
            raise StoreError(
                f"{folder / DESCRIPTION}: the feature step {step!r} provides {unknown[0]!r}, which {FEATURES} lacks"
            )
    return steps


def _default_steps(folder: Path, description: Mapping[str, Any], steps: Mapping[str, Any]) -> tuple[str, ...]:
    default_steps = tuple(_listed(description.get("default_steps")))
    unknown = [step for step in default_steps if step not in steps]
    if unknown:
        raise StoreError(f"{folder / DESCRIPTION}: default_steps has {unknown[0]!r}; the steps are {', '.join(steps)}")
    return default_steps


# ---------------------------------------------------------------------------------------------------- the tables


def _optional(path: Path) -> Arff | None:
    return read_arff(path) if path.exists() else None


def _places(table: Arff, places: Mapping[str, int]) -> list[int]:
    """Return the position of the instance of every row.

    Raises:
        StoreError: If an instance has no features.
    """
    names = table.texts(_INSTANCE)
    for row, name in enumerate(names):
        if name not in places:
            raise StoreError(f"{table.location_of(row)}: the instance {name!r} is unknown; {FEATURES} lacks it")
    return [places[name] for name in names]


def _repetitions(table: Arff) -> list[int]:
    """Return the repetition of every row, counted from 0; all are 0 if the table has no such column."""
    if _REPETITION not in table.names:
        return [0] * len(table.rows)
    repetitions = table.numbers(_REPETITION)
    for row, number in enumerate(repetitions):
        if not (1 <= number <= _MAX_REPETITIONS and number == int(number)):
            raise StoreError(f"{table.location_of(row)}: the repetition is {number:g}; it is a whole number from 1 on")
    return [int(number) - 1 for number in repetitions]


def _state(table: Arff, row: int, value: Value, statuses: Sequence[str]) -> int:
    word = str(value).strip().lower()
    if value is None or word not in statuses:
        raise StoreError(f"{table.location_of(row)}: the status is {value!r}; it is one of {', '.join(statuses)}")
    return statuses.index(word)


def _runs(table: Arff, places: Mapping[str, int], measure: str) -> tuple[tuple[str, ...], Floats, NDArray[np.int8]]:
    """Return the algorithms, and the times and statuses of their runs, ``[S, K, R]`` as in `Scenario`."""
    instance, repetition = _places(table, places), _repetitions(table)
    words, seconds = table.texts(_ALGORITHM), table.numbers(measure)
    algorithms = tuple(dict.fromkeys(words))
    numbers = {name: k for k, name in enumerate(algorithms)}
    state = table.column_number(_STATUS)
    shape = (len(places), len(algorithms), max(repetition) + 1)
    if math.prod(shape) > _ALWAYS_ALLOWED_CELLS + _MAX_CELLS_PER_RUN * len(words):
        raise StoreError(
            f"{table.path} has {len(words):,} runs of {shape[0]:,} instances, {shape[1]:,} algorithms and {shape[2]:,} "
            "repetitions; most of them are missing, so the table is damaged or of another kind"
        )
    times, status = np.full(shape, np.nan), np.full(shape, NO_RUN, np.int8)
    for row, cell in enumerate(zip(instance, (numbers[w] for w in words), repetition, strict=True)):
        if status[cell] != NO_RUN:
            raise StoreError(
                f"{table.location_of(row)}: the run of {words[row]!r} is there twice; number its repetitions"
            )
        status[cell] = _state(table, row, table.rows[row][state], STATUSES)
        times[cell] = seconds[row]
        if status[cell] == 0 and not 0 <= seconds[row] < math.inf:
            raise StoreError(f"{table.location_of(row)}: the run is ok, but its {measure} is {seconds[row]:g}")
    return algorithms, times, status


def _means(table: Arff, names: Sequence[str], places: Mapping[str, int]) -> Floats:
    """Return columns by instance, float64 ``[S, columns]``: the mean over the repetitions that have a value."""
    instance = _places(table, places)
    _require_once(table, instance, _repetitions(table))
    columns = np.array([table.numbers(name) for name in names], np.float64).reshape(len(names), len(instance)).T
    columns = np.where(np.isfinite(columns), columns, np.nan)
    is_present = ~np.isnan(columns)
    sums, counts = np.zeros((len(places), len(names))), np.zeros((len(places), len(names)))
    np.add.at(sums, instance, np.where(is_present, columns, 0.0))
    np.add.at(counts, instance, is_present)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _step_status(table: Arff, steps: Sequence[str], places: Mapping[str, int]) -> NDArray[np.int8]:
    """Return the statuses of feature steps in their first repetitions, int8 ``[S, steps]``."""
    instance, repetition = _places(table, places), _repetitions(table)
    _require_once(table, instance, repetition)
    status = np.full((len(places), len(steps)), NO_RUN, np.int8)
    columns = [table.column_number(step) for step in steps]
    for row in sorted(range(len(instance)), key=lambda i: -repetition[i]):
        for k, column in enumerate(columns):
            value = table.rows[row][column]
            status[instance[row], k] = NO_RUN if value is None else _state(table, row, value, FEATURE_STATUSES)
    return status


def _require_once(table: Arff, instance: Sequence[int], repetition: Sequence[int]) -> None:
    seen: set[tuple[int, int]] = set()
    for row, key in enumerate(zip(instance, repetition, strict=True)):
        if key in seen:
            raise StoreError(f"{table.location_of(row)}: the instance is there twice; number its repetitions")
        seen.add(key)


def _folds(table: Arff | None, places: Mapping[str, int]) -> NDArray[np.int64] | None:
    """Return the fold of every instance in the first repetition of cross-validation."""
    if table is None:
        return None
    instance, repetition, fold = _places(table, places), _repetitions(table), table.numbers(_FOLD)
    folds, first = np.zeros(len(places), np.int64), min(repetition, default=0)
    for row, (i, again, number) in enumerate(zip(instance, repetition, fold, strict=True)):
        if not (1 <= number <= len(places) and number == int(number)):
            raise StoreError(f"{table.location_of(row)}: the fold is {number:g}; folds are numbered from 1 on")
        if again == first:
            if folds[i]:
                raise StoreError(f"{table.location_of(row)}: the instance is in two folds of one repetition")
            folds[i] = int(number)
    missing = np.flatnonzero(folds == 0)
    if len(missing):
        raise StoreError(f"{table.path} has no fold of the instance {list(places)[missing[0]]!r}")
    return folds


# ---------------------------------------------------------------------------------------------------- writing


def write_scenario(scenario: Scenario, folder: Path) -> list[Path]:
    """Write a scenario to a folder and return the files; :func:`read_scenario` reads the same numbers from them.

    Raises:
        StoreError: If the parts of the scenario do not fit together, or a file cannot be written.
    """
    scenario.check()
    if reserved := [n for n in (*scenario.feature_names, *scenario.steps) if n.lower() in (_INSTANCE, _REPETITION)]:
        raise StoreError(f"{reserved[0]!r} cannot be the name of a feature in ASlib files; choose another")
    written = [_write_description(scenario, folder / DESCRIPTION)]
    keys = [Attribute(_INSTANCE, STRING), Attribute(_REPETITION)]

    def write(file: str, attributes: Sequence[Attribute], rows: Sequence[Sequence[Value]]) -> None:
        write_arff(folder / file, f"{file.removesuffix('.arff').upper()}_{scenario.name}", attributes, rows)
        written.append(folder / file)

    def by_instance(table: NDArray[Any]) -> list[tuple[Value, ...]]:
        return [(name, 1.0, *row) for name, row in zip(scenario.instances, table.tolist(), strict=True)]

    run_columns = [Attribute(_ALGORITHM, STRING), Attribute(scenario.measure), Attribute(_STATUS, NOMINAL, STATUSES)]
    write(RUNS, [*keys, *run_columns], _run_rows(scenario))
    write(FEATURES, [*keys, *map(Attribute, scenario.feature_names)], by_instance(scenario.features))
    if scenario.step_seconds is not None:
        write(COSTS, [*keys, *map(Attribute, scenario.steps)], by_instance(scenario.step_seconds))
    if scenario.step_status is not None:
        states = np.array([*FEATURE_STATUSES, None], object)[scenario.step_status]
        columns = [Attribute(step, NOMINAL, FEATURE_STATUSES) for step in scenario.steps]
        write(FEATURE_STATUS, [*keys, *columns], by_instance(states))
    if scenario.folds is not None:
        write(FOLDS, [*keys, Attribute(_FOLD, NUMERIC)], by_instance(scenario.folds[:, None]))
    return written


def _run_rows(scenario: Scenario) -> list[tuple[Value, ...]]:
    return [
        (scenario.instances[i], float(r + 1), scenario.algorithms[k], float(scenario.seconds[i, k, r]), STATUSES[state])
        for (i, k, r), state in np.ndenumerate(scenario.status)
        if state != NO_RUN
    ]


def _write_description(scenario: Scenario, path: Path) -> Path:
    facts = {
        "scenario_id": scenario.name,
        "performance_measures": [scenario.measure],
        "maximize": [False],
        "performance_type": ["runtime"],
        "algorithm_cutoff_time": scenario.cutoff,
        "algorithm_cutoff_memory": "?",
        "features_cutoff_time": "?",
        "features_cutoff_memory": "?",
        "features_deterministic": list(scenario.feature_names),
        "features_stochastic": [],
        "algorithms_deterministic": list(scenario.algorithms),
        "algorithms_stochastic": [],
        "metainfo_algorithms": {name: {"configuration": "", "deterministic": True} for name in scenario.algorithms},
        "number_of_feature_steps": len(scenario.steps),
        "default_steps": list(scenario.used_steps),
        "feature_steps": {step: {"provides": list(names)} for step, names in scenario.steps.items()},
    }
    write_text(path, yaml.safe_dump(facts, sort_keys=False, allow_unicode=True, width=10_000))
    return path
