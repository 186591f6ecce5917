"""The connection to the process that runs solvers (:mod:`graphbench.domains.sat.solver_server`)."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphbench.core.errors import SolverError
from graphbench.domains.sat.cnf import Cnf

_SERVER = Path(__file__).with_name("solver_server.py")


class _Connection:
    """The server process of this process; it is started when first needed, and again if it has ended."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.owner = 0
        self.server: subprocess.Popen[bytes] | None = None

    def ask(self, job: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
        """Send one job and wait for its answer; jobs of several threads wait for each other."""
        with self.lock:
            try:
                return self._ask(self._running(), job, data)
            except BaseException:  # a late answer to this job must not reach the next job
                self.close()
                raise

    def _running(self) -> subprocess.Popen[bytes]:
        if self.server is None or self.owner != os.getpid() or self.server.poll() is not None:
            words = [sys.executable, "-E", str(_SERVER)]
            self.server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
            self.owner = os.getpid()
        return self.server

    @staticmethod
    def _ask(server: subprocess.Popen[bytes], job: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
        assert server.stdin is not None and server.stdout is not None
        try:
            server.stdin.write(json.dumps({**job, "bytes": len(data)}).encode() + b"\n" + data)
            server.stdin.flush()
            line = server.stdout.readline()
            answer = json.loads(line) if line else {}
            rest = server.stdout.read(answer["bytes"]) if line else b""
        except OSError as error:
            raise SolverError(f"the process that runs solvers cannot be reached: {error}") from error
        if not line:
            raise SolverError("the process that runs solvers ended without an answer")
        return answer, rest

    def close(self) -> None:
        """End the server of this process, and with it the solver that it runs."""
        server, self.server = self.server, None
        if server is not None and self.owner == os.getpid():
            for pipe in (server.stdin, server.stdout):
                if pipe is not None:
                    try:
                        pipe.close()
                    except OSError:
                        continue
            server.wait()


_CONNECTION = _Connection()
atexit.register(_CONNECTION.close)


def run_job(cnf: Cnf, job: dict[str, Any]) -> tuple[dict[str, Any], NDArray[np.int32]]:
    """Run one job of :mod:`~graphbench.domains.sat.solver_server` on a formula; return its answer and the model.

    Raises:
        SolverError: If the solver exceeded a guard or crashed.
    """
    cnf.checked()
    if job["executable"]:
        data = cnf.dimacs()
    else:
        data = np.ascontiguousarray(cnf.literals, np.int32).tobytes() + cnf.lengths.astype(np.int32).tobytes()
    sizes = {"num_variables": cnf.num_variables, "num_clauses": cnf.num_clauses}
    answer, model = _CONNECTION.ask({**job, **sizes}, data)
    if "error" in answer:
        raise SolverError(f"{job['solver']} on {cnf}: {answer['error']}; repeat the run, with larger guards if need be")
    return answer, np.frombuffer(model, np.int32)
