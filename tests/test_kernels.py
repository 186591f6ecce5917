"""Compiled functions are cached, and recompiled when any source they may call has changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
from numba.core import caching

import graphbench
from graphbench.core import kernels
from graphbench.core.kernels import sources_hash

PACKAGE = Path(graphbench.__file__).parent
SCRIPT = """
import json, sys
import numpy as np
from graphbench.toy.outer import outer
value = int(outer(3))
print(json.dumps({"value": value, "hits": sum(outer.stats.cache_hits.values())}))
"""


def run_toy(root: Path) -> dict[str, int]:
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True, cwd=root
    )
    return json.loads(done.stdout)


def write_inner(toy: Path, added: int) -> None:
    (toy / "inner.py").write_text(
        f"from graphbench.core.kernels import kernel\n\n@kernel\ndef inner(x):\n    return x + {added}\n"
    )


def toy_package(root: Path) -> Path:
    """Return the folder of a domain in a copy of the package that has nothing else."""
    toy = root / "graphbench" / "toy"
    toy.mkdir(parents=True)
    (toy.parent / "core").mkdir()
    core = ("__init__.py", "errors.py", "installation.py", "kernels.py", "lazy.py")
    for name in ("__init__.py", "_version.py", *(f"core/{name}" for name in core)):
        shutil.copy(PACKAGE / name, toy.parent / name)
    (toy / "__init__.py").write_text("")
    return toy


def test_a_change_in_a_called_file_is_never_missed(tmp_path):
    toy = toy_package(tmp_path)
    (toy / "outer.py").write_text(
        "from graphbench.core.kernels import kernel\nfrom graphbench.toy.inner import inner\n\n"
        "@kernel\ndef outer(x):\n    return 2 * inner(x)\n"
    )
    write_inner(toy, 1)
    assert run_toy(tmp_path) == {"value": 8, "hits": 0}
    assert run_toy(tmp_path) == {"value": 8, "hits": 1}
    write_inner(toy, 5)
    assert run_toy(tmp_path) == {"value": 16, "hits": 0}


def test_the_hash_covers_the_folders_above(tmp_path):
    domain = PACKAGE / "domains" / "algoreas"
    assert sources_hash(domain) != sources_hash(PACKAGE / "domains")
    assert len(sources_hash(domain)) == 16


TOGETHER = """
import json, sys, time
from pathlib import Path
import numpy as np
from graphbench.toy.shared import shared
index, meeting = shared._cache._cache_file, Path(sys.argv[1])
look = index._load_index
if meeting.is_dir():  # all compile at once, and what one sees of the cache is a second old when it writes
    (meeting / sys.argv[2]).touch()
    while len(list(meeting.iterdir())) < 3:
        time.sleep(0.001)
    index._load_index = lambda: (look(), time.sleep(1))[0]
values = [float(shared(np.full(3, 7, kind))) for kind in sys.argv[2:]]
print(json.dumps({"values": values, "hits": sum(shared.stats.cache_hits.values())}))
"""


def test_processes_that_compile_at_once_share_one_cache(tmp_path):
    toy = toy_package(tmp_path)
    (toy / "shared.py").write_text(
        "from graphbench.core.kernels import kernel\n\n@kernel\ndef shared(x):\n    return x.sum() + x.itemsize\n"
    )
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    kinds = ["i1", "i2", "i4"]
    command = [sys.executable, "-c", TOGETHER]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    together = [subprocess.Popen([*command, meeting, kind], env=environment, cwd=tmp_path) for kind in kinds]
    assert [process.wait(100) for process in together] == [0, 0, 0]
    done = subprocess.run(
        [*command, "nowhere", *kinds], env=environment, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert json.loads(done.stdout) == {"values": [22, 23, 25], "hits": 3}


def test_a_kernel_lets_other_threads_go_on():
    begun, ran = threading.Event(), threading.Event()

    def run():
        slow(100)
        begun.set()
        slow(300_000_000)
        ran.set()

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    turns = 0  # of this thread while the kernel runs: one at most if it kept the interpreter's lock
    while not ran.wait(0.005):
        turns += 1
    thread.join()
    assert turns > 3


@kernels.kernel
def slow(steps):
    value = np.uint64(1)
    for _ in range(steps):
        value = value * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        value ^= value >> np.uint64(7)
    return value


def test_without_a_place_for_a_cache_nothing_is_cached(monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    compiled = kernels.kernel(slow.py_func)
    assert compiled(3) == slow(3)
    assert not kernels.is_cached(compiled)
