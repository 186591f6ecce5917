"""How well the engagement of simulated users can be predicted: boosting with what models see, and with hidden facts.

``python -m benchmarks.social_ceiling`` trains boosted trees on the inputs of ``social/sim_quotes_past``, once as they
are and once with :func:`graphbench.domains.social.hidden.expected_engagement`, and writes their R2 and rank
correlations on the test snapshot. A model that sees less than the second one has no reason to score more.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from benchmarks.common import RESULTS, machine
from graphbench.records.machine import processor_seconds

NAMES = ("likes", "replies", "reposts")


def main() -> None:
    """Measure, print a line for each predictor and write the result file."""
    from graphbench import card

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.social_ceiling", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--users", type=int, default=960_000, help="number of users of the network")
    parser.add_argument("--kind", choices=("quotes", "replies", "reposts"), default="quotes")
    options = parser.parse_args()
    dataset = card(f"social/sim_{options.kind}_past")
    started = time.time()
    parts = {split: inputs(dataset, split, options.users) for split in ("train", "test")}
    rows = {}
    for name, columns in (("seen", 1), ("seen and hidden", 2)):
        begun = processor_seconds()
        train, test = [np.column_stack(parts[split][:columns]) for split in ("train", "test")]
        scores = measured(train, parts["train"][2], test, parts["test"][2])
        rows[name] = {**scores, "cpu_seconds": processor_seconds() - begun}
        print(f"{name}: R2 {scores['r2']:.3f}, Spearman {scores['spearman']:.3f}", flush=True)
    result = {
        "dataset": dataset.address,
        "users": options.users,
        "nodes": {split: len(part[2]) for split, part in parts.items()},
        "predictors": rows,
        "machine": machine(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
    }
    path = RESULTS / "social_ceiling.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path}")


def inputs(dataset: Any, split: str, users: int) -> tuple[Any, Any, Any]:
    """Return what a model sees of every user, what the simulation hides, and the targets of a split."""
    from graphbench.domains.social.generators import SnapshotParameters, simulated_snapshot
    from graphbench.domains.social.hidden import expected_engagement
    from graphbench.domains.social.tables import end_of_day

    parameters = SnapshotParameters(**{**dataset.split(split).parameters, "users": users})
    graph = simulated_snapshot(parameters)
    count = len(graph.users)
    degrees = [np.bincount(graph.edges[:, end], minlength=count) for end in (0, 1)]
    seen = np.column_stack([graph.past, np.log1p(graph.posts), np.log1p(np.column_stack(degrees)), graph.content])
    middle = (end_of_day(parameters.seen_until) + end_of_day(parameters.predicted_until)) // 2
    hidden = np.log1p(expected_engagement(users, parameters.seed, middle)[graph.users])
    return seen, hidden, graph.targets


def measured(train: Any, wanted: Any, test: Any, truth: Any) -> dict[str, Any]:
    """Return the means over the targets of R2 and of Spearman's correlation on the test snapshot, and both of each."""
    from scipy.stats import spearmanr
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.metrics import r2_score

    scores: dict[str, Any] = {}
    for column, name in enumerate(NAMES):
        trees = HistGradientBoostingRegressor(max_iter=200, min_samples_leaf=50, random_state=0)
        predicted = trees.fit(train, wanted[:, column]).predict(test)
        scores[f"r2_{name}"] = float(r2_score(truth[:, column], predicted))
        scores[f"spearman_{name}"] = float(spearmanr(truth[:, column], predicted).statistic)
    means = {name: float(np.mean([scores[f"{name}_{target}"] for target in NAMES])) for name in ("r2", "spearman")}
    return means | scores


if __name__ == "__main__":
    main()
