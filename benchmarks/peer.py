"""The peers, each in an environment of its own: their requirements would clash with ours, or their names do."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.common import FOLDER, SCRATCH

PEER = "graphbench-lib==0.2.0"
CLRS_PEER = "dm-clrs==2.0.3"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Peer:
    """A package to compare with.

    Attributes:
        folder: Name of its environment.
        driver: File that runs inside the environment.
        requirements: What is installed, one call of pip per group.
    """

    folder: str
    driver: str
    requirements: tuple[tuple[str, ...], ...]

    def python(self) -> Path:
        """Return the interpreter of the environment, created on first use (needs a package index and some GB)."""
        environment = SCRATCH / self.folder
        python, ready = environment / "bin" / "python", environment / "ready.json"
        wanted = [name for group in self.requirements for name in group]
        if ready.is_file() and json.loads(ready.read_text(encoding="utf-8")) == wanted:
            return python
        _LOG.warning("creating an environment for %s in %s; this takes some minutes", wanted[-1], environment)
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        for group in self.requirements:
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *group], check=True)
        ready.write_text(json.dumps(wanted), encoding="utf-8")
        return python

    def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer of a function of the driver, run in the peer's environment; arguments are JSON values."""
        command = [str(self.python()), "-I", str(FOLDER / self.driver), operation]
        done = subprocess.run(
            command, input=json.dumps(arguments), stdout=subprocess.PIPE, text=True, check=True, cwd="/"
        )
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


def _pin(package: str) -> str:
    return f"{package}=={version(package).split('+')[0]}"


def graphbench_lib() -> Peer:
    """Return the public package graphbench-lib (it imports as ``graphbench`` too), with our torch, PyG and networkx.

    torch comes first and alone: the peer's requirements would bring another build.
    """
    rest = (PEER, _pin("torch_geometric"), _pin("networkx"), _pin("scipy"))
    return Peer("peer", "peer_driver.py", ((_pin("torch"),), rest))


def dm_clrs() -> Peer:
    """Return the reference implementation of CLRS, with JAX and TensorFlow as it requires (2.9 GB)."""
    return Peer("clrs_peer", "clrs_peer_driver.py", ((CLRS_PEER,),))


def peer_python() -> Path:
    """Return the interpreter of graphbench-lib's environment."""
    return graphbench_lib().python()


def ask_peer(operation: str, **arguments: Any) -> dict[str, Any]:
    """Return the answer of graphbench-lib."""
    return graphbench_lib().ask(operation, **arguments)
