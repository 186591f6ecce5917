"""Compiling side by side: the jobs compile what the solvers call, and nothing long is left to compile."""

import json
import subprocess
import sys

import pytest

from graphbench.domains.co.solving import SOLVERS

CODE = """
import json, sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from graphbench import card
from graphbench.data.build.generation import draw_samples
from graphbench.domains.co.solving import SOLVERS

def compiled():
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("graphbench.domains")]
    found = {v for m in modules for v in vars(m).values() if isinstance(v, Dispatcher)}
    return {f"{d.py_func.__module__}.{d.py_func.__name__}": len(d.signatures) for d in found}

drawn = [draw_samples(card(f"co/{name}").graphs, "train", np.arange(2)) for name in ("ba_small", "rb_small")]
first = compiled()
for job in SOLVERS[sys.argv[1]].compile_jobs:
    job.run(None)
    assert job.is_done(), job.kernel
second = compiled()
for graphs in drawn:
    for i in range(2):
        edges = graphs.edges[graphs.edge_ptr[i] : graphs.edge_ptr[i + 1]]
        SOLVERS[sys.argv[1]].solve(int(graphs.num_nodes[i]), edges, None, i)
print(json.dumps([first, second, compiled()]))
"""
SHORT = {"eigenvalue_bound", "pack_odd_cycles", "number_by_first_use"}  # compiled in a moment


@pytest.mark.slow
@pytest.mark.parametrize("task", SOLVERS)
def test_the_jobs_compile_what_the_solver_calls(task):
    answer = subprocess.run([sys.executable, "-c", CODE, task], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    first, second, third = json.loads(answer.stdout)
    by_jobs, later = (
        {name.rpartition(".")[2] for name in after if after[name] > before[name]}
        for before, after in ((first, second), (second, third))
    )
    assert len(by_jobs) >= 4
    assert later <= SHORT
