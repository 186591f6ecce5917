"""Tuning: what a search finds for its steps, what continuing saves, and what a trial costs beside its training."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.common import FOLDER, Row, Sizes, main, ours_at_least, ours_at_most, ratio_at_least, scratch_folder
from benchmarks.isolated import in_fresh_process

DATASET, MODEL = "algoreas/mst_easy", "gin_small"
SEEDS = (0, 1, 2)
KEPT = FOLDER.parent / "hpo" / "results" / "algoreas"
SETTINGS = {
    "search": f"{MODEL} on {DATASET}, first 20,000 graphs of train, 1,000 of val; SMAC3 with the space, the budgets "
    "(23, 46, ... 729 steps) and the 110 trials (two brackets) of hpo/algoreas/gin_small.yaml, one worker; cost 1 - F1 "
    "on val, best of a run's validations",
    "random": "as many configurations of the same space at 729 steps each as the search's steps allow, rounded up",
    "default": "the configuration of baselines/ at 729 steps",
    "overhead": "100 trials of a method that returns at once, 6 floats, budgets 27 to 729; everything but the method",
}


def measure(sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of ``tuning.json``."""
    limits = {"limit": sizes(20_000, 300), "val_limit": sizes(1_000, 50)}
    seeds = SEEDS[: sizes(len(SEEDS), 1)]
    with scratch_folder() as folder:
        with ThreadPoolExecutor(2) as threads:  # each waits for processes of one thread
            compare = partial(_compare, trials=sizes(110, 12), folder=folder, limits=limits, keep=not sizes.quick)
            found = list(threads.map(compare, seeds))
        n = {"ours": len(seeds), "peer": len(seeds)}
        best = [run["smac"] for run in found]
        for peer, of in (("random", "of random search with the same steps"), ("default", "of the default")):
            yield Row(
                f"best validation F1, peer: {of}", "F1", mean(best), mean(run[peer] for run in found),
                lower_is_better=False, target=ratio_at_least(1.0), n=n, details={"per seed": found},
            )  # fmt: skip
        saved = mean(run["saved_share"] for run in found)
        yield Row(
            "share of steps saved by continuing", "share", saved, lower_is_better=False, target=ours_at_least(0.25),
            n={"ours": len(seeds)},
        )  # fmt: skip
        trials = sizes(100, 10)
        overhead = in_fresh_process("benchmarks.tuning:overhead", folder=str(folder / "overhead"), trials=trials).value
        yield Row("overhead of a trial", "s", overhead, target=ours_at_most(1.0), n={"ours": trials})


def _compare(seed: int, trials: int, folder: Path, limits: dict[str, int], *, keep: bool) -> dict[str, Any]:
    """Return the best scores of one seed: of the search, of random search with the same steps, of the default."""
    shared = {"seed": seed, "root": str(folder / "data"), **limits}
    output = folder / f"smac{seed}"
    smac = in_fresh_process(
        "benchmarks.tuning:search", method="smac", trials=trials, output=str(output), **shared
    ).value  # fmt: skip
    if keep:
        KEPT.mkdir(parents=True, exist_ok=True)
        shutil.copy(output / "result.json", KEPT / f"{DATASET.split('/')[1]}-{MODEL}-seed{seed}.json")
    count = math.ceil(smac["steps"] / smac["max_budget"])
    random = in_fresh_process(
        "benchmarks.tuning:search", method="random", trials=count, output=str(folder / f"random{seed}"), **shared
    ).value  # fmt: skip
    default = in_fresh_process("benchmarks.tuning:default", **shared).value
    facts = {"steps": smac["steps"], "saved_share": smac["saved_share"], "random_steps": random["steps"]}
    return {"seed": seed, "smac": smac["score"], "random": random["score"], "default": default, **facts}


# --------------------------------------------------------------------------------------------------------------------
# Run in fresh processes


def search(method: str, seed: int, trials: int, output: str, **options: Any) -> dict[str, Any]:
    """Tune with one method and return the best score and the steps it took."""
    from graphbench import Optimizer

    asked = {"model": MODEL, "method": method, "seed": seed, "trials": trials, "output": output, "device": "cpu"}
    optimizer = Optimizer.for_dataset(DATASET, **asked, **options)
    best = optimizer.optimize(report=False, refit=False)
    steps = json.loads((Path(output) / "result.json").read_text())["steps"]
    largest = max(trial.budget for trial in best.trials)
    return {"score": best.score, "steps": steps["done"], "saved_share": steps["saved_share"], "max_budget": largest}


def default(seed: int, **options: Any) -> float:
    """Return the score of the default configuration at the largest budget."""
    from graphbench.tuning.method import DatasetMethod
    from graphbench.tuning.space_file import load_tuning_file

    budgets = load_tuning_file(f"{DATASET.split('/')[0]}/{MODEL}").budgets
    method = DatasetMethod(DATASET, MODEL, budgets=budgets, device="cpu", **options)
    return method.score_of(method({}, seed, budgets[-1]).cost)


def overhead(folder: str, trials: int) -> float:
    """Return the seconds a trial takes beside its training, on average."""
    from graphbench import Optimizer

    names = ("a", "b", "c", "d", "e", "f")
    arguments = {
        "space": {name: {"type": "float", "range": [0.0, 1.0]} for name in names},
        "min_budget": 27, "max_budget": 729, "trials": trials, "output": folder,
    }  # fmt: skip
    Optimizer(arguments, bowl).optimize(report=False)
    return float(json.loads((Path(folder) / "result.json").read_text())["seconds"]["overhead_per_trial"])


def bowl(config: dict[str, float], seed: int, budget: int) -> float:
    """Return a cost that takes no time."""
    return sum((value - 0.3) ** 2 for value in config.values()) + 1.0 / budget


if __name__ == "__main__":
    main("tuning", "Tuning", measure, SETTINGS)
