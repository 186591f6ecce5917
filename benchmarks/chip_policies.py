"""Circuits by trained policies and by searches without one, on the same functions: quality against processor time.

``python -m benchmarks.chip_policies`` builds circuits of the first functions of the test split of ``chip_design/aig``
with every setting of :data:`SETTINGS`, one thread, and writes ``chip_policies.json``. The policies are the stored
weights of :data:`POLICIES`. A search without a policy plays every candidate out, or candidates that are drawn at
random, and evaluates no network; so its time is the time of the search alone.
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
POLICIES = ("builder_long",)
ALL = 1_000
"""More candidates than a choice has."""
CHUNK = 30


class Setting(NamedTuple):
    """How circuits are built.

    Attributes:
        by: Name of the policy; ``search`` for none.
        considered: Number of candidates that are played out before a choice; 0 leaves the choice to the policy.
        samples: Circuits per function, of which the smallest is the answer.
    """

    by: str
    considered: int
    samples: int


SETTINGS = (
    *(Setting("search", ALL, k) for k in (1, 2, 4, 8)),
    *(Setting("search", 8, k) for k in (1, 8, 16)),
    *(Setting(name, 0, k) for name in POLICIES for k in (1, 8, 32)),
    *(Setting(name, 4, k) for name in POLICIES for k in (1, 4, 8, 16)),
    *(Setting(name, 8, k) for name in POLICIES for k in (1, 4, 8, 16)),
)


def main() -> None:
    """Measure every setting, print a line for each and write the result file."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.chip_policies", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--functions", type=int, default=300, help="number of functions of the test split")
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
        rows.append({**setting._asdict(), **measured(models[setting.by], setting, tables, sizes)})
        print(" ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    result = {
        "dataset": DATASET,
        "split": "test",
        "functions": len(tables),
        "rows": rows,
        "machine": machine(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    path = RESULTS / "chip_policies.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path}")


def loaded() -> dict[str, Any]:
    """Return the policies, and as ``search`` a model that draws scores of candidates at random."""
    import torch

    import graphbench

    class Blind(type(graphbench.load_model(DATASET, POLICIES[0]))):  # type: ignore[misc]
        """A builder without a network."""

        def _logits(self, goal: Any, bits: Any, numbers: Any, there: Any) -> Any:
            there = torch.as_tensor(there)
            return torch.rand(there.shape).masked_fill(~there, -torch.inf)

    search = graphbench.load_model(DATASET, POLICIES[0])
    search.__class__ = Blind
    return {"search": search} | {name: graphbench.load_model(DATASET, name) for name in POLICIES}


def functions(count: int, root: Path | None) -> tuple[list[str], Any]:
    """Return the tables of the first functions of the test split, and the numbers of ANDs of their references."""
    import graphbench

    data = graphbench.Loader(DATASET, root=root, limit=count).load(("test",)).test
    samples = [data[i] for i in range(count)]
    return [sample.table for sample in samples], np.array([int(sample.reference_ands) for sample in samples])


def measured(model: Any, setting: Setting, tables: list[str], sizes: Any) -> dict[str, float]:
    """Return the mean quality in percent, its standard error, and milliseconds of one core for a function."""
    import torch

    torch.manual_seed(0)
    changes = {"considered": setting.considered, "samples": setting.samples}
    model.config = model.config.model_copy(update=changes)
    started = processor_seconds()
    circuits = [c for first in range(0, len(tables), CHUNK) for c in model.generate(tables[first : first + CHUNK])]
    seconds = processor_seconds() - started
    quality = 100 * sizes / np.array([circuit.num_ands for circuit in circuits])
    error = quality.std(ddof=1) / np.sqrt(len(quality))
    return {"quality": float(quality.mean()), "error": float(error), "milliseconds": 1000 * seconds / len(tables)}


if __name__ == "__main__":
    main()
