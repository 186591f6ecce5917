"""What the hardware benchmark runs on chips, in fresh processes; :mod:`benchmarks.hardware` makes rows of it."""

from __future__ import annotations

import time
from typing import Any

from graphbench.records.machine import processor_seconds

SHAPES = ((6, 1), (6, 2), (7, 1), (7, 2), (8, 1), (8, 2))


def _tables(count: int) -> tuple[Any, Any, Any]:
    """Return numbers of inputs and outputs, and words, of random functions of the dataset's shapes."""
    import numpy as np

    from graphbench.domains.chip_design.generators import TableParameters, draw_tables

    index = np.arange(count)
    return draw_tables(TableParameters(shapes=SHAPES), np.uint64(1), index, 0 * index)[:3]


def tables(count: int) -> dict[str, float]:
    """Return CPU seconds to draw truth tables and their structurally hashed circuits."""
    from graphbench.domains.chip_design.shannon import circuits_of_tables

    circuits_of_tables(*_tables(12))
    started = time.process_time()
    drawn = _tables(count)
    middle = time.process_time()
    ands = int(circuits_of_tables(*drawn).and_ptr[-1])
    return {"draw": middle - started, "circuits": time.process_time() - middle, "ands": ands / count}


def synthesis(count: int, alone: int) -> dict[str, float]:
    """Return CPU seconds per reference circuit, of tables together and of one process each."""
    from graphbench.domains.chip_design import synthesise
    from graphbench.domains.chip_design.shannon import circuits_of_tables

    given = [circuit.simulate() for circuit in circuits_of_tables(*_tables(count))]
    synthesise(given[:2])
    found = {}
    started = processor_seconds()
    synthesise(given)
    found["together"] = (processor_seconds() - started) / count
    started = processor_seconds()
    for table in given[:alone]:
        synthesise([table])
    found["alone"] = (processor_seconds() - started) / alone
    return found


def equivalence(count: int, peer_count: int) -> dict[str, float]:
    """Return CPU seconds per circuit to compare it with its table, ours and one assignment at a time in Python."""
    import numpy as np

    from graphbench.domains.chip_design.shannon import circuits_of_tables

    inputs, outputs, words = _tables(count)
    circuits = circuits_of_tables(inputs, outputs, words)
    circuits.simulate()
    started = time.process_time()
    right = bool(np.array_equal(circuits.simulate(), words))
    own = (time.process_time() - started) / count
    plain = [
        (circuits[i].num_inputs, circuits[i].fanins.tolist(), circuits[i].outputs.tolist(), circuits[i].simulate())
        for i in range(peer_count)
    ]
    started = time.process_time()
    for n, fanins, literals, table in plain:
        right &= all(_values(n, fanins, literals, x) == [bool(row[x]) for row in table.tolist()] for x in range(1 << n))
    theirs = (time.process_time() - started) / peer_count
    if not right:
        raise RuntimeError("a circuit does not compute its table")
    return {"ours": own, "peer": theirs}


def _values(n: int, fanins: list[list[int]], outputs: list[int], assignment: int) -> list[bool]:
    """Return the outputs of a circuit at an assignment."""
    values = [False, *(bool(assignment >> i & 1) for i in range(n))]
    for a, b in fanins:
        values.append((values[a >> 1] ^ bool(a & 1)) and (values[b >> 1] ^ bool(b & 1)))
    return [values[o >> 1] ^ bool(o & 1) for o in outputs]


def scoring(count: int) -> dict[str, float]:
    """Return CPU seconds to score circuits given as arrays, as AIGER files in memory, and as PyG graphs."""
    import numpy as np

    import graphbench
    from graphbench.domains.chip_design.shannon import circuits_of_tables
    from graphbench.domains.chip_design.submissions import Submission
    from graphbench.domains.chip_design.table_kernels import texts_of_words

    inputs, outputs, words = _tables(count)
    circuits = circuits_of_tables(inputs, outputs, words)
    from graphbench.data.arrays.texts import Texts

    fields = {"table": Texts(*texts_of_words(inputs, outputs, words)).strings(), "reference_ands": circuits.num_ands}
    evaluator = graphbench.Evaluator("chip_design/aig")
    forms: dict[str, Any] = {
        "arrays": Submission.of(circuits).arrays(),
        "AIGER": [circuit.to_aiger() for circuit in circuits],
        "PyG": _graphs(Submission.of(circuits).arrays()),
    }
    few = {name: values[:8] for name, values in fields.items()}
    evaluator.evaluate(few, list(circuits)[:8])
    evaluator.evaluate(few, forms["PyG"][:8])
    found = {}
    for name, answers in forms.items():
        started = time.process_time()
        score = evaluator.evaluate(fields, answers)
        found[name] = time.process_time() - started
        if not np.isclose(score.primary, 100):
            raise RuntimeError(f"circuits as {name} score {score.primary}")
    return found


def _graphs(arrays: Any) -> list[Any]:
    """Return flat arrays as PyG graphs."""
    import numpy as np
    import torch
    from torch_geometric.data import Data

    nodes, edges = (np.cumsum(arrays[name])[:-1] for name in ("num_nodes", "num_edges"))
    parts = (
        np.split(arrays["edge_index"], edges, axis=1),
        np.split(arrays["gate"], nodes),
        np.split(arrays["inverted"], edges),
    )
    return [
        Data(edge_index=torch.from_numpy(e.copy()), gate=torch.from_numpy(g), inverted=torch.from_numpy(i))
        for e, g, i in zip(*parts, strict=True)
    ]
