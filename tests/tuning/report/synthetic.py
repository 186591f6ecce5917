"""The result of a made-up run: a known function of six parameters on the ladder 27, 81, 243, 729, with failures."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import log10

import numpy as np

from graphbench.tuning.trial import Status, Trial

BUDGETS = (27, 81, 243, 729)
SPACE = {
    "training.lr": {"type": "float", "range": [1e-5, 1e-1], "log": True, "default": 1e-3},
    "training.schedule": {"type": "categorical", "choices": ["constant", "cosine", "linear"], "default": "cosine"},
    "training.warmup": {"type": "int", "range": [0, 100], "log": False, "default": 30},
    "model.hidden": {"type": "int", "range": [16, 512], "log": True, "default": 96},
    "model.layers": {"type": "int", "range": [2, 6], "log": False, "default": 4},
    "model.dropout": {"type": "float", "range": [0.0, 0.5], "log": False, "default": 0.0},
}
CONDITIONS = [{"child": "training.warmup", "parent": "training.schedule", "values": ["cosine", "linear"]}]
DEFAULT = {name: entry["default"] for name, entry in SPACE.items()}
START = datetime(2025, 5, 1, 12, 0, tzinfo=UTC)


def drawn(rng):
    """Return a random configuration of active parameters."""
    config = {
        "training.lr": float(10 ** rng.uniform(-5, -1)),
        "training.schedule": str(rng.choice(SPACE["training.schedule"]["choices"])),
        "training.warmup": int(rng.integers(0, 101)),
        "model.hidden": int(2 ** rng.uniform(4, 9)),
        "model.layers": int(rng.integers(2, 7)),
        "model.dropout": float(rng.uniform(0, 0.5)),
    }
    if config["training.schedule"] == "constant":
        del config["training.warmup"]
    return config


def cost_of(config, budget, noise):
    """Return a cost that the learning rate dominates and dropout does not touch."""
    worst = 0.12 * abs(log10(config["training.lr"]) + 2.7) ** 1.5 + 0.05 * (config["training.schedule"] == "constant")
    worst += 0.02 * (9 - np.log2(config["model.hidden"])) / 5 + 0.01 * (6 - config["model.layers"]) / 4
    return float(min(0.95, 0.08 + worst + 0.5 * (27 / budget) ** 0.6 + noise))


def make_trials(count=80, seed=0, failing=True):
    """Return the trials of successive halving over random configurations, the default first."""
    rng = np.random.default_rng(seed)
    trials, clock, rungs = [], 0.0, {budget: [] for budget in BUDGETS}
    configs = {}

    def promotable():
        for smaller, larger in reversed(list(pairwise(BUDGETS))):
            done = {trial.config_id for trial in rungs[larger]}
            ranked = sorted(rungs[smaller], key=lambda trial: 1.0 if trial.cost is None else trial.cost)
            best = [trial for trial in ranked[: len(ranked) // 3] if trial.succeeded and trial.config_id not in done]
            if best:
                return best[0].config_id, smaller, larger
        return None

    while len(trials) < count:
        chosen = promotable()
        if chosen is None:
            configs[len(configs)] = dict(DEFAULT) if not configs else drawn(rng)
            chosen = (len(configs) - 1, 0, BUDGETS[0])
        number, before, budget = chosen
        config, steps = configs[number], budget - before
        cost, status, reason = cost_of(config, budget, rng.normal() * 0.01), Status.SUCCESS, ""
        if failing and config["training.lr"] > 0.05:
            status, cost, steps = Status.NOT_FINITE, None, steps // 2
            reason = "FloatingPointError: the loss is nan at step 13 | lower training.lr"
        elif failing and config["model.hidden"] > 480:
            status, cost, steps, reason = Status.OUT_OF_MEMORY, None, 0, "MemoryError: <device> is full"
        seconds = 0.4 + steps * (0.01 + config["model.hidden"] / 2e4)
        metrics = {} if reason else {"val_f1": 1 - cost}
        started = (START + timedelta(seconds=clock)).isoformat()
        clock += seconds + 0.2
        trial = Trial(
            len(trials), number, config, budget, before, 0, status, cost, seconds, steps, started, reason, metrics, "w0"
        )
        trials.append(trial)
        rungs[budget].append(trial)
    return trials


def make_result(trials=None, ours=True, space=None):
    """Return the content of ``result.json``: of a model of ours, or of a free training method."""
    trials = make_trials() if trials is None else trials
    successes = [trial for trial in trials if trial.succeeded]
    top = max((trial.budget for trial in successes), default=0)
    best = min((t for t in successes if t.budget == top), key=lambda t: (t.cost, t.number), default=None)
    done, alone = sum(t.steps for t in trials), sum(t.steps + t.continued_from for t in trials)
    what = {"method": "smac", "seed": 0, "min_budget": 27, "max_budget": 729, "eta": 3}
    if ours:
        what |= {"dataset": "algoreas/mst_easy", "data": "v1-0a1b2c3d", "model": "gin_small", "metric": "f1"}
        what |= {"overrides": {"training.batch_size": 64}, "limit": 1000}
        what |= {"space_file": "algoreas/gin_small", "val_limit": None}
    baseline = {"model": {"processor": "gin"}, "training": {"steps": 729, "betas": [0.9, 0.999]}}
    return {
        "schema": 1,
        "title": "Tuning gin_small on algoreas/mst_easy" if ours else "Tuning",
        "what": what,
        "space": {"space": SPACE, "conditions": CONDITIONS, "forbidden": []} if space is None else space,
        "incumbent": None
        if best is None
        else {
            "config_id": best.config_id,
            "config": dict(best.config),
            "cost": best.cost,
            "budget": best.budget,
            "metrics": dict(best.metrics),
        },
        "default": {"cost": trials[0].cost, "budget": trials[0].budget} if trials else None,
        "trials": [trial.to_json() for trial in trials],
        "steps": {"done": done, "without_continuing": alone, "saved_share": 1 - done / alone if alone else 0.0},
        "seconds": {"training": sum(t.seconds for t in trials), "overhead_per_trial": 0.21, "wall": 1234.5},
        "hardware": {"cpu": "Model of CPU", "cores": 2, "gpu": None, "torch": "2.9.0"},
        "graphbench_version": "0.1.0",
        "started": START.isoformat(),
        "finished": (START + timedelta(seconds=1300)).isoformat(),
        **({"baseline": baseline} if ours and best is not None else {}),
    }
