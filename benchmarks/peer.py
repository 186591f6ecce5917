"""The peer: the public package graphbench-lib, in its own environment (both packages import as ``graphbench``)."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.common import FOLDER, SCRATCH

PEER = "graphbench-lib==0.2.0"
ENVIRONMENT = SCRATCH / "peer"
_LOG = logging.getLogger(__name__)


def peer_python() -> Path:
    """Return the interpreter of the peer's environment, created on first use (needs a package index and about 1.5 GB).

    torch, PyG and networkx have the versions used here, so that only the packages differ.
    """
    python, ready = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "ready.json"
    wanted = [_pin("torch"), PEER, _pin("torch_geometric"), _pin("networkx"), _pin("scipy")]
    if ready.is_file() and json.loads(ready.read_text(encoding="utf-8")) == wanted:
        return python
    _LOG.warning("creating the peer's environment in %s; this takes some minutes", ENVIRONMENT)
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, wanted[0]], check=True)  # first and alone: the peer's requirements would bring another build
    subprocess.run([*pip, *wanted], check=True)
    ready.write_text(json.dumps(wanted), encoding="utf-8")
    return python


def _pin(package: str) -> str:
    return f"{package}=={version(package).split('+')[0]}"


def ask_peer(operation: str, **arguments: Any) -> dict[str, Any]:
    """Return the answer of ``peer_driver.py``, run in the peer's environment.

    Args:
        operation: Name of a function of the driver.
        arguments: Its arguments (JSON values).
    """
    command = [str(peer_python()), "-I", str(FOLDER / "peer_driver.py"), operation]
    done = subprocess.run(command, input=json.dumps(arguments), stdout=subprocess.PIPE, text=True, check=True, cwd="/")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
