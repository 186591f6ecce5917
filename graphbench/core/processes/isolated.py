"""A Python module run in a closed child process: no network, nothing of this machine but what it is given.

The child sees the system's libraries, this Python with its packages, and the files that the caller names; it has a
network without any connection, processes of its own, and one folder to write into. Bubblewrap (``bwrap``, a package of
Debian and of most other distributions) builds this view; where it is missing nothing is run.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from graphbench.core.errors import ResultError
from graphbench.core.processes.limits import allowed_limits
from graphbench.core.untrusted import shown

PROGRAM = "bwrap"
_SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/alternatives")
_PACKAGE = Path(__file__).resolve().parents[2]
_BLOCK = 65536
_MOST_OUTPUT = 400  # characters of the child's last words in a message


@dataclass(frozen=True)
class IsolationLimits:
    """The limits of a closed child.

    Attributes:
        seconds: Seconds on the clock, after which it is killed.
        memory_bytes: Bytes of memory that it may write to.
        file_bytes: Bytes of one written file.
    """

    seconds: float = 3600.0
    memory_bytes: int = 16 * 2**30
    file_bytes: int = 2**32


@lru_cache(maxsize=1)
def isolation_fault() -> str | None:
    """Return why no closed child can be started on this machine, with the remedy; None if one can."""
    program = shutil.which(PROGRAM)
    if program is None:
        return "Bubblewrap is not installed; install it (`apt-get install bubblewrap`)"
    probe = [program, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    tried = subprocess.run(probe, capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"this system allows no closed processes ({shown(tried.stderr.strip(), 200)}); use a machine that does"
    return None


def run_isolated(
    module: str,
    arguments: Sequence[str],
    readable: Mapping[str, Path],
    writable: Path,
    *,
    hidden: Sequence[Path] = (),
    limits: IsolationLimits | None = None,
) -> None:
    """Run ``python -m module`` in a closed child process, and return when it has ended well.

    Args:
        module: A module of an installed package.
        arguments: Its arguments.
        readable: Path in the child -> file or folder that it may read there.
        writable: The folder that the child may write into, which it sees as ``/out``.
        hidden: Folders that the child must not see, even where they lie within Python's own folders.
        limits: Time and memory.

    Raises:
        ResultError: If no closed child can be started, or the child fails, runs too long or takes too much memory.
    """
    if fault := isolation_fault():
        raise ResultError(f"foreign code is run in a closed process alone, and {fault}")
    limits = limits or IsolationLimits()
    command = [
        str(shutil.which(PROGRAM)), "--unshare-all", "--die-with-parent", "--new-session", "--clearenv",
        "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
    ]  # fmt: skip
    for path in _seen_by_python():
        command += ["--ro-bind", str(path), str(path)]
    kept_out = [*hidden, *(_PACKAGE / "_data" / name for name in ("baselines", "hpo"))]
    for path in (path.resolve() for path in kept_out if path.exists()):
        command += ["--tmpfs", str(path)]
    for place, source in readable.items():
        command += ["--ro-bind", str(source.resolve()), place]
    command += ["--bind", str(writable.resolve()), "/out", "--chdir", "/tmp"]
    for name, value in _environment().items():
        command += ["--setenv", name, value]
    command += [sys.executable, "-B", "-m", module, *arguments]
    code, last_words = _exit(command, limits)
    if code:
        raise ResultError(f"the code failed with exit code {code}: {shown(last_words) or 'it printed nothing'}")


def _exit(command: Sequence[str], limits: IsolationLimits) -> tuple[int, str]:
    """Run a command; return its exit code and its last words. What it prints before these is not kept.

    Raises:
        ResultError: If it takes longer than the limit.
    """
    late = threading.Event()
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: _limit(limits),
    ) as child:

        def stop() -> None:
            late.set()
            child.kill()

        timer = threading.Timer(limits.seconds, stop)
        timer.start()
        try:
            output = b""
            assert child.stderr is not None
            while block := os.read(child.stderr.fileno(), _BLOCK):
                output = (output + block)[-4 * _MOST_OUTPUT :]  # a character has at most four bytes
            code = child.wait()
        except BaseException:
            child.kill()
            raise
        finally:
            timer.cancel()
    if late.is_set():
        raise ResultError(f"the code did not end within {limits.seconds:g} seconds and was stopped")
    return code, _last_lines(output.decode(errors="replace").strip())


def _last_lines(text: str) -> str:
    """Return the last whole lines of a text in one line, of a longer line its end."""
    if len(text) > _MOST_OUTPUT:
        end = text[-_MOST_OUTPUT:]
        text = f"... {end.partition(chr(10))[2] or end}"
    return " | ".join(line.strip() for line in text.splitlines() if line.strip())


def _seen_by_python() -> list[Path]:
    """Return the existing folders that Python, its packages and this package need, none within another."""
    package_folders = [_PACKAGE, _PACKAGE.parent / "datasets"]  # no baselines: their weights are other people's models
    places = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    named = [*_SYSTEM, sys.prefix, sys.base_prefix, sys.executable, *places, *map(str, package_folders)]
    existing_paths = {path for name in named for path in (Path(name), Path(name).resolve()) if path.exists()}
    return sorted(path for path in existing_paths if not any(parent in existing_paths for parent in path.parents))


def _environment() -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "PYTHONPATH": str(_PACKAGE.parent),
        "PYTHONHASHSEED": "0",
        "NUMBA_CACHE_DIR": "/tmp/numba",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "LANG": "C.UTF-8",
    }


def _limit(limits: IsolationLimits) -> None:
    """Limit the resources of the process that is about to become the child."""
    cpu = int(limits.seconds * (os.cpu_count() or 1)) + 1
    for what, most in (
        (resource.RLIMIT_DATA, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, allowed_limits(what, most, most))
