"""Compiled functions are cached, and recompiled when any source they may call has changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import graphbench
from graphbench.kernels import sources_hash

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
        f"from graphbench.kernels import kernel\n\n@kernel\ndef inner(x):\n    return x + {added}\n"
    )


def test_a_change_in_a_called_file_is_never_missed(tmp_path):
    package = tmp_path / "graphbench"
    toy = package / "toy"
    toy.mkdir(parents=True)
    for name in ("__init__.py", "kernels.py"):
        shutil.copy(PACKAGE / name, package / name)
    (toy / "__init__.py").write_text("")
    (toy / "outer.py").write_text(
        "from graphbench.kernels import kernel\nfrom graphbench.toy.inner import inner\n\n"
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
