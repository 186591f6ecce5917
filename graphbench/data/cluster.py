"""A Dask cluster that is already running: the way to it, and what its workers must have.

Whoever hands work to a cluster comes through here. Workers may join at any time, so what they must have is checked
twice: on all that are there before the work begins, and by every worker before its first job.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import os
import pickle
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from graphbench.catalog.resources import datasets_dir
from graphbench.core.errors import ClusterError, MissingDependency
from graphbench.core.files import clear_errors

if TYPE_CHECKING:
    from distributed import Client

_LOG = logging.getLogger(__name__)
_CONNECT_SECONDS = 15.0
_ANSWER_SECONDS = 60.0  # for a scheduler or worker that is there, but busy
_LOOK_SECONDS = (0.0, 1.0, 3.0)  # pauses before a worker is asked again for a file that was written a moment ago
_LIBRARIES = ("distributed", "numpy", "numba", "h5py")
_PACKAGE = Path(__file__).resolve().parents[1]
GENERATION = ("catalog", "data", "domains")  # parts of the package that samples depend on
PACKAGE = (".",)

_R = TypeVar("_R")


# --------------------------------------------------------------------------------------------------------------------
# The way to a cluster


def connect(cluster: str | Client, timeout: float = _CONNECT_SECONDS) -> Client:
    """Return a client of a running cluster.

    Args:
        cluster: Address of the scheduler (``tcp://host:8786``), the scheduler file it wrote (``.json``), or a client,
            which is returned as it is.
        timeout: Seconds within which the scheduler must answer.

    Raises:
        MissingDependency: If ``distributed`` is not installed.
        ClusterError: If this is no address, nobody answers, what answers is no scheduler, or the client is closed.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingDependency(
            "a Dask cluster needs the package distributed; install it with: pip install 'distributed'"
        ) from error
    if isinstance(cluster, Client):
        return _usable(cluster)
    if not isinstance(cluster, str) or not cluster:
        raise ClusterError(
            f"cluster is {cluster!r}; give the address of a scheduler (tcp://host:8786), its scheduler file (.json) or "
            "a dask.distributed.Client"
        )
    address = _address_in(Path(cluster)) if cluster.endswith(".json") else cluster
    _require_scheduler(address, timeout)
    try:
        return Client(address, timeout=timeout, set_as_default=False, name="graphbench")
    except Exception as error:  # whatever another version of the library may do
        raise ClusterError(f"cannot connect to the Dask scheduler at {address} ({named(error)})") from error


@contextmanager
def connected(cluster: str | Client, timeout: float = _CONNECT_SECONDS) -> Iterator[Client]:
    """Yield a client of a running cluster, see :func:`connect`; a connection opened here is closed again."""
    client = connect(cluster, timeout)
    try:
        yield client
    finally:
        if client is not cluster:
            _close(client)


def _close(client: Client) -> None:
    """Close a client without the traceback it logs where its scheduler is gone, which an error has told already."""
    logger = logging.getLogger("distributed.client")
    before, logger.disabled = logger.disabled, True
    try:
        client.close()
    finally:
        logger.disabled = before


def _usable(client: Client) -> Client:
    if client.asynchronous:
        raise ClusterError("the Dask client is asynchronous; create it without asynchronous=True")
    if client.status != "running":
        raise ClusterError(f"the Dask client is {client.status}; create a new one")
    return client


def _address_in(path: Path) -> str:
    """Return the address in a scheduler file."""
    try:
        return str(json.loads(path.expanduser().read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ClusterError(
            f"{path} is no scheduler file ({named(error)}); `dask scheduler --scheduler-file {path}` writes it"
        ) from error


def _require_scheduler(address: str, timeout: float) -> None:
    """Ask whoever listens at an address what it is: the library itself would wait for an answer without end."""
    with ThreadPoolExecutor(1) as thread:  # this thread may have a running event loop
        try:
            found = thread.submit(asyncio.run, _identity(address, timeout)).result()
        except OSError as error:  # timeouts are among them
            raise ClusterError(
                f"no Dask scheduler answers at {address} within {timeout:g} s; is it running, and is its port open to "
                "this machine?"
            ) from error
        except (ValueError, TypeError) as error:
            raise ClusterError(
                f"{address!r} is no address of a Dask scheduler ({error}); give it as tcp://host:8786"
            ) from error
        except Exception as error:  # whatever the answer of something else leads to
            raise ClusterError(f"what answers at {address} is no Dask scheduler ({named(error)})") from error
    if found.get("type") != "Scheduler":
        scheduler = f", {found['scheduler']}" if "scheduler" in found else ""
        raise ClusterError(f"{address} is a Dask {found.get('type')}; give the address of its scheduler{scheduler}")


async def _identity(address: str, timeout: float) -> Mapping[str, Any]:
    from distributed.core import rpc
    from distributed.security import Security

    async def ask() -> Mapping[str, Any]:
        arguments = Security().get_connection_args("client")
        async with rpc(address, timeout=timeout, connection_args=arguments) as other:
            found: Mapping[str, Any] = await other.identity()
            return found

    return await asyncio.wait_for(ask(), timeout)


def named(error: BaseException) -> str:
    """Return class and first line of an error."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


# --------------------------------------------------------------------------------------------------------------------
# What workers must have


@dataclass(frozen=True)
class Needs:
    """What a worker must have to do a job as this machine would; it travels with every job.

    Attributes:
        versions: (name, version) of what results may depend on, see :func:`versions_here`.
        parts: Parts of this package whose sources must be equal.
        token: A file in the shared folder.
    """

    versions: tuple[tuple[str, str], ...]
    parts: tuple[str, ...]
    token: Path


@contextmanager
def shared_needs(folder: Path, parts: tuple[str, ...] = GENERATION) -> Iterator[Needs]:
    """Yield what workers must have to share the work in a folder, where a token lies as long as the block runs.

    Args:
        folder: Made where it is missing.
        parts: Parts of this package that the work depends on.
    """
    token = folder.absolute() / f".token.{os.getpid()}-{secrets.token_hex(4)}.tmp"
    with clear_errors(folder, "write"):
        token.parent.mkdir(parents=True, exist_ok=True)
        token.touch()
    try:
        yield Needs(versions_here(parts), parts, token)
    finally:
        with suppress(OSError):
            token.unlink(missing_ok=True)


@lru_cache(maxsize=8)
def versions_here(parts: tuple[str, ...] = GENERATION) -> tuple[tuple[str, str], ...]:
    """Return name and version of Python, this package and the libraries that results may depend on.

    The version of the package ends in a hash of its sources and tables, as they were when first asked for.
    """
    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for name in ("graphbench", *_LIBRARIES):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    found["graphbench"] += f", sources {_sources_hash(parts)}"
    return tuple(found.items())


def _sources_hash(parts: tuple[str, ...]) -> str:
    digest = hashlib.sha256((_PACKAGE / "core" / "kernels.py").read_bytes())
    for folder, pattern in (*((_PACKAGE / part, "*.py") for part in parts), (datasets_dir(), "*.yaml")):
        for path in sorted(folder.rglob(pattern)):
            digest.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:8]


def check_workers(client: Client, needs: Needs) -> None:
    """Ask all workers that are there whether they have what is needed, and the scheduler for its version.

    Workers that do not answer are not waited for: every worker is checked again before its first job.

    Raises:
        ClusterError: If one lacks anything; the message names it and the remedy.
    """
    there, here = answer(client, client._run_on_scheduler, version, "distributed"), version("distributed")
    if isinstance(there, str) and there != here:
        raise ClusterError(_differs(f"the Dask scheduler at {client.scheduler.address}", "distributed", there, here))
    question = shipped(report, needs)
    for pause in _LOOK_SECONDS:
        time.sleep(pause)
        reports = answer(client, client._run, pickle.loads, question, on_error="return")
        if not isinstance(reports, Mapping):
            return
        if not any(isinstance(found, Mapping) and not found["sees"] for found in reports.values()):
            break
    for address, found in reports.items():
        _require(f"the Dask worker {address}", found, needs)


def answer(client: Client, ask: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return the answer to a question, the error it leads to, or None where none comes in time."""
    try:
        return client.sync(ask, *arguments, callback_timeout=_ANSWER_SECONDS, **options)
    except OSError:  # timeouts are among them
        return None
    except Exception as error:  # of whatever other versions of the library and of this package run there
        return error


def report(needs: Needs) -> dict[str, Any]:
    """Return what there is where this runs: versions, and whether the token is seen."""
    with suppress(OSError):
        list(needs.token.parent.iterdir())  # asks a network file system anew
    return {"versions": dict(versions_here(needs.parts)), "sees": needs.token.is_file()}


def _require(who: str, found: Any, needs: Needs) -> None:
    """Raise a clear error where a report lacks something; silence is no report, and no lack."""
    if isinstance(found, ImportError | AttributeError):
        raise ClusterError(
            f"{who} has no graphbench, or another version of it ({named(found)}); install there what is installed "
            "here, and start it again"
        )
    if not isinstance(found, Mapping):
        if found is not None:
            _LOG.warning("%s did not answer: %s", who, named(found))
        return
    for name, wanted in needs.versions:
        there = found["versions"].get(name, "missing")
        if there != wanted:
            raise ClusterError(_differs(who, name, there, wanted))
    if not found["sees"]:
        raise ClusterError(
            f"{who} does not see the folder {needs.token.parent}; all workers must share it with this machine, under "
            "the same name: choose a --root on a shared file system"
        )


def _differs(who: str, name: str, there: str, here: str) -> str:
    return (
        f"{who} has {name} {there}, this machine has {here}; results could differ: install the same versions "
        "everywhere, and start the cluster again"
    )


# --------------------------------------------------------------------------------------------------------------------
# Jobs


class _Call:
    """Pickles to its result: what unpickles it runs the function."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._call


def shipped(function: Callable[..., Any], *arguments: Any) -> bytes:
    """Return bytes for ``pickle.loads``, which call a function and give its result.

    A worker that cannot read a job breaks off its connection and ends without a word. Such bytes every process can
    read; where this package is missing, the job itself fails and says so.
    """
    from cloudpickle import dumps

    content: bytes = dumps(_Call(function, arguments))
    return content


def run_checked(needs: Needs, function: Callable[..., _R], *arguments: Any) -> _R:
    """Run a function on a worker that has what is needed, with one thread for numeric libraries.

    Raises:
        ClusterError: If the worker lacks anything.
    """
    _require_here(needs)
    with _one_thread():
        return function(*arguments)


@lru_cache(maxsize=64)
def _require_here(needs: Needs) -> None:
    from distributed import get_worker

    for pause in _LOOK_SECONDS:
        time.sleep(pause)
        found = report(needs)
        if found["sees"]:
            break
    _require(f"the Dask worker {get_worker().address}", found, needs)


@contextmanager
def _one_thread() -> Iterator[None]:
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")  # for libraries not loaded yet
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(1):
        yield
