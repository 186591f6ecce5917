from pathlib import Path

import numpy as np
import pytest

GOLDEN = Path(__file__).parent / "golden"


def instances(folder, algorithm):
    """Yield (case, args, inputs, hints, outputs, meta) of every golden instance of an algorithm."""
    archive = np.load(GOLDEN / folder / f"{algorithm}.npz")
    found = {}
    for key in archive.files:
        number, part, *name = key.split("/", 2)
        found.setdefault(int(number), {}).setdefault(part, {})["/".join(name)] = archive[key]
    for number, parts in sorted(found.items()):
        args = [a if a.ndim else a.item() for a in parts["arg"].values()]
        yield number, args, parts["input"], parts.get("hint", {}), parts["output"], parts["meta"]


@pytest.fixture(scope="session")
def golden():
    return instances
