"""Circuits by a trained policy and by searches without it, on the same functions: quality against processor time.

``python -m benchmarks.chip_policies`` builds circuits of the first functions of the test split of ``chip_design/aig``
with every setting of :data:`SETTINGS`, one thread, and writes ``chip_policies.json``. The policy has the stored
weights of :data:`POLICY`. Searches without it evaluate no network, so that their time is the time of the search alone.
The greedy rule and the scripts of ABC stand beside them.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import RESULTS, machine
from graphbench.records.machine import processor_seconds

DATASET = "chip_design/aig:generate"
POLICY = "builder_guided_long"
CHUNK = 30


class Setting(NamedTuple):
    """How circuits are built.

    Attributes:
        by: Name of the policy; ``play_outs`` for a search that plays every candidate out; ``random`` for one that
            plays out candidates drawn at random; ``greedy`` for the rule that takes the input whose halves look
            cheapest; or a program of ABC (``graphbench.domains.chip_design.verifiers.PROGRAMS``).
        considered: Number of candidates that are played out before a choice; 0 leaves the choice to the policy.
        samples: Circuits per function, of which the smallest is the answer.
        script: A script of ABC that improves the answer; empty for none.
    """

    by: str
    considered: int = 0
    samples: int = 1
    script: str = ""


SETTINGS = (
    *(Setting(name) for name in ("strash", "shannon_reference", "shannon_deepsyn")),
    *(Setting("greedy", samples=k) for k in (1, 8, 64, 128)),
    *(Setting("play_outs", samples=k) for k in (1, 2, 4, 8)),
    *(Setting("random", 8, k) for k in (1, 8, 16)),
    *(Setting(POLICY, 0, k) for k in (1, 8, 32)),
    *(Setting(POLICY, considered, k) for considered in (4, 8) for k in (1, 4, 8, 16)),
    Setting("play_outs", samples=4, script="reference"),
    Setting(POLICY, 8, 8, script="reference"),
)
NOISE = 1.0
"""Largest random number that is added to the estimates of the greedy rule, in ANDs, for all circuits but the first."""


def main() -> None:
    """Measure every setting, print a line for each and write the result file."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chip_policies", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--functions", type=int, default=200, help="number of functions of the test split")
    parser.add_argument("--root", type=Path, default=None, help="folder of generated data")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    models = loaded()
    tables, sizes = functions(options.functions, options.root)
    for model in models.values():
        model.generate(tables[:2], samples=1)  # kernels are compiled
    rows = []
    for setting in SETTINGS:
        rows.append({**setting._asdict(), **measured(models.get(setting.by), setting, tables, sizes)})
        print(" ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    result = {
        "dataset": DATASET,
        "split": "test",
        "functions": len(tables),
        "settings": rows,
        "machine": machine(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    path = RESULTS / "chip_policies.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path}")


def loaded() -> dict[str, Any]:
    """Return the policy, and as ``random`` a model that draws the scores of candidates."""
    import torch

    import graphbench

    def blind(goal: Any, bits: Any, numbers: Any, there: Any) -> Any:
        there = torch.as_tensor(there)
        return torch.rand(there.shape).masked_fill(~there, -torch.inf)

    policy, model = (graphbench.load_model(DATASET, POLICY) for _ in range(2))
    model._logits = blind
    return {POLICY: policy, "random": model}


def functions(count: int, root: Path | None) -> tuple[list[str], Any]:
    """Return the tables of the first functions of the test split, and the numbers of ANDs of their references."""
    import graphbench

    data = graphbench.Loader(DATASET, root=root, limit=count).load(("test",)).test
    samples = [data[i] for i in range(count)]
    return [sample.table for sample in samples], np.array([int(sample.reference_ands) for sample in samples])


def measured(model: Any, setting: Setting, tables: list[str], sizes: Any) -> dict[str, float]:
    """Return the mean quality in percent, its standard error, and milliseconds of one core for a function."""
    import torch

    from graphbench.domains.chip_design.synthesis import optimise

    torch.manual_seed(0)
    if model is not None:
        changes = {"considered": setting.considered, "samples": setting.samples}
        model.config = model.config.model_copy(update=changes)
    started = processor_seconds()
    circuits: list[Any] = []
    for first in range(0, len(tables), CHUNK):
        part = tables[first : first + CHUNK]
        built = by_rule(setting, part) if model is None else model.generate(part)
        circuits += optimise(built, setting.script) if setting.script else built
    seconds = processor_seconds() - started
    quality = 100 * sizes / np.array([circuit.num_ands for circuit in circuits])
    error = quality.std(ddof=1) / np.sqrt(len(quality))
    return {"quality": float(quality.mean()), "error": float(error), "milliseconds": 1000 * seconds / len(tables)}


def by_rule(setting: Setting, tables: list[str]) -> list[Any]:
    """Return the circuits of a search or of a program, or the smallest ones of the greedy rule."""
    from graphbench.domains.chip_design.construction import build_greedily
    from graphbench.domains.chip_design.search import circuits_by_search
    from graphbench.domains.chip_design.truth_tables import from_text, num_inputs
    from graphbench.domains.chip_design.verifiers import circuits_by

    if setting.by == "play_outs":
        return circuits_by_search(tables, variants=range(setting.samples))
    if setting.by != "greedy":
        return list(circuits_by(setting.by, tables, []))
    bits = [from_text(table) for table in tables]
    best = build_greedily(bits)
    for seed in range(1, setting.samples):
        orders = [np.random.default_rng([seed, i]).permutation(num_inputs(table)) for i, table in enumerate(bits)]
        drawn = build_greedily(bits, orders, noise=NOISE, seed=seed)
        best = [min(pair, key=lambda circuit: circuit.num_ands) for pair in zip(best, drawn, strict=True)]
    return best


if __name__ == "__main__":
    main()
