"""The program of the closed child process: it loads an author's model and writes its predictions.

The child has the author's code in ``/code``, the weights in ``/weights.safetensors``, batches without labels in
``/inputs/<name>.pt``, and writes ``/out/<name>.<ending>`` for each. ``code/model.py`` defines ``load(weights)``, which
gets the path of the weights (None where there are none) and returns the model: a function of a PyG batch that returns
predictions, as for :func:`graphbench.evaluate_model`, or a ``TaskModel``.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

MODULE = "graphbench.verification.answer"
CODE, WEIGHTS, INPUTS, OUTPUT = "/code", "/weights.safetensors", "/inputs", "/out"


def main(address: str) -> None:
    """Write the predictions of the model in ``/code`` for all files of batches in ``/inputs``.

    Args:
        address: Address of the dataset.
    """
    import torch

    from graphbench.catalog.names import card as find_card
    from graphbench.data.batches.inputs_only import batch_of_fields
    from graphbench.tasks.base import in_memory
    from graphbench.tasks.registry import task_of
    from graphbench.training.scoring import ModelOnDevice, evaluating

    torch.set_num_threads(1)
    task = task_of(find_card(address))
    sys.path.insert(0, CODE)
    weights = Path(WEIGHTS)
    model = _entry().load(weights if weights.exists() else None)
    bound = ModelOnDevice(model, address, torch.device("cpu"))
    for path in sorted(Path(INPUTS).glob("*.pt")):
        batches: list[dict[str, Any]] = torch.load(path, weights_only=True)
        with evaluating(model):
            rows = (in_memory(task.predict(bound, batch_of_fields(fields))) for fields in batches)
            task.write_predictions(Path(OUTPUT, path.stem), rows)


def _entry() -> Any:
    """Return the author's module ``model``."""
    spec = spec_from_file_location("model", Path(CODE, "model.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(sys.argv[1])
