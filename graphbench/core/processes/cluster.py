"""Connect to a running Dask cluster, and check that its workers match this machine.

Workers may join at any time, so they are checked twice: all present ones before the work begins, and every worker
before its first job.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import pickle
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from graphbench.core.errors import ClusterError, MissingDependency
from graphbench.core.files import clear_errors, is_there
from graphbench.core.processes.pickling import pickled
from graphbench.core.processes.pool import THREAD_LIMITS, error_line

if TYPE_CHECKING:
    from distributed import Client

_LOG = logging.getLogger(__name__)
_CONNECT_SECONDS = 15.0
_REPLY_SECONDS = 60.0  # for a busy scheduler or worker
_RETRY_SECONDS = (0.0, 1.0, 3.0)  # pauses before a worker looks again for a file that has just been written

_MISSING = "missing"

Versions = tuple[tuple[str, str], ...]
_R = TypeVar("_R")


# --------------------------------------------------------------------------------------------------------------------
# Connecting


def connect(cluster: str | Client, timeout: float = _CONNECT_SECONDS) -> Client:
    """Return a client of a running cluster.

    Args:
        cluster: Address of the scheduler (``tcp://host:8786``), the scheduler file it wrote (``.json``), or a client,
            which is returned as it is.
        timeout: Seconds within which the scheduler must answer.

    Raises:
        MissingDependency: If ``distributed`` is not installed.
        ClusterError: If ``cluster`` is not an address, no scheduler answers there, or the client is closed.
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
    except Exception as error:  # other versions of the library may raise any error
        raise ClusterError(f"cannot connect to the Dask scheduler at {address} ({error_line(error)})") from error


@contextmanager
def connected(cluster: str | Client) -> Iterator[Client]:
    """Yield a client of a running cluster, see :func:`connect`; a connection opened here is closed again."""
    client = connect(cluster)
    try:
        yield client
    finally:
        if client is not cluster:
            _close(client)


def _close(client: Client) -> None:
    """Close a client without the traceback that it logs if its scheduler is lost: the caller raises a clear error."""
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
            f"{path} is no scheduler file ({error_line(error)}); `dask scheduler --scheduler-file {path}` writes it"
        ) from error


def _require_scheduler(address: str, timeout: float) -> None:
    """Check that a scheduler listens at an address; the library itself would wait for a reply forever."""
    with ThreadPoolExecutor(1) as thread:  # this thread may have a running event loop
        try:
            identity = thread.submit(asyncio.run, _identity(address, timeout)).result()
        except OSError as error:  # timeouts are among them
            raise ClusterError(
                f"no Dask scheduler answers at {address} within {timeout:g} s; is it running, and is its port open to "
                "this machine?"
            ) from error
        except (ValueError, TypeError) as error:
            raise ClusterError(
                f"{address!r} is no address of a Dask scheduler ({error}); give it as tcp://host:8786"
            ) from error
        except Exception as error:  # the reply of another program may raise any error
            raise ClusterError(f"the server at {address} is no Dask scheduler ({error_line(error)})") from error
    if identity.get("type") != "Scheduler":
        scheduler = f", {identity['scheduler']}" if "scheduler" in identity else ""
        raise ClusterError(f"{address} is a Dask {identity.get('type')}; give the address of its scheduler{scheduler}")


async def _identity(address: str, timeout: float) -> Mapping[str, Any]:
    from distributed.core import rpc
    from distributed.security import Security

    async def ask() -> Mapping[str, Any]:
        arguments = Security().get_connection_args("client")
        async with rpc(address, timeout=timeout, connection_args=arguments) as other:
            identity: Mapping[str, Any] = await other.identity()
            return identity

    return await asyncio.wait_for(ask(), timeout)


# --------------------------------------------------------------------------------------------------------------------
# The requirements of a worker


@dataclass(frozen=True)
class Requirements:
    """The versions and the shared file that a worker needs to run a job like this machine; sent with every job.

    Attributes:
        versions: (name, version) on this machine of everything that results may depend on.
        token: A file in the shared folder.
        measure: Function that returns these versions on the machine that calls it; workers must be able to load it.
    """

    versions: Versions
    token: Path
    measure: Callable[[], Versions] = field(compare=False)


@contextmanager
def shared_folder(folder: Path, measure: Callable[[], Versions]) -> Iterator[Requirements]:
    """Yield the requirements for workers that share a folder; a token file is in the folder while the block runs."""
    token = folder.absolute() / f".token.{os.getpid()}-{secrets.token_hex(4)}.tmp"
    with clear_errors(folder, "write"):
        token.parent.mkdir(parents=True, exist_ok=True)
        token.touch()
    try:
        yield Requirements(measure(), token, measure)
    finally:
        with suppress(OSError):
            token.unlink(missing_ok=True)


def check_workers(client: Client, requirements: Requirements) -> None:
    """Check the versions of all workers and of the scheduler, and that the workers have access to the folder.

    Workers that do not reply are ignored: every worker is checked again before its first job.

    Raises:
        ClusterError: If a worker does not meet the requirements; the message names it and the remedy.
    """
    there, here = ask(client, client._run_on_scheduler, version, "distributed"), version("distributed")
    if isinstance(there, str) and there != here:
        raise ClusterError(_differs(f"the Dask scheduler at {client.scheduler.address}", "distributed", there, here))
    question = shipped(report, requirements)
    for pause in _RETRY_SECONDS:
        time.sleep(pause)
        reports = ask(client, client._run, pickle.loads, question, on_error="return")
        if not isinstance(reports, Mapping):
            return
        if not any(
            isinstance(worker_report, Mapping) and not worker_report["sees"] for worker_report in reports.values()
        ):
            break
    for address, worker_report in reports.items():
        _check_report(f"the Dask worker {address}", worker_report, requirements)


def ask(client: Client, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return the result or the error of an asynchronous method of a client, or None without a reply in time."""
    try:
        return client.sync(function, *arguments, callback_timeout=_REPLY_SECONDS, **options)
    except OSError:  # timeouts are among them
        return None
    except Exception as error:  # other versions of the library and of this package may raise any error
        return error


def report(requirements: Requirements) -> dict[str, Any]:
    """Return the versions on this machine, and whether the token file is visible."""
    return {"versions": dict(requirements.measure()), "sees": is_there(requirements.token)}


def _check_report(who: str, worker_report: Any, requirements: Requirements) -> None:
    """Raise a clear error if a worker does not meet the requirements; workers that do not reply are ignored."""
    if isinstance(worker_report, ImportError | AttributeError):
        raise ClusterError(
            f"{who} has no graphbench, or another version of it ({error_line(worker_report)}); install there "
            "the version that is installed here, and start it again"
        )
    if not isinstance(worker_report, Mapping):
        if worker_report is not None:
            _LOG.warning("%s did not reply: %s", who, error_line(worker_report))
        return
    for name, wanted in requirements.versions:
        there = worker_report["versions"].get(name, _MISSING)
        if there != wanted:
            raise ClusterError(_differs(who, name, there, wanted))
    if not worker_report["sees"]:
        raise ClusterError(
            f"{who} does not see the folder {requirements.token.parent}; all workers must share it with this machine, "
            "under the same name: choose a folder on a shared file system (--root, --output)"
        )


def _differs(who: str, name: str, there: str, here: str) -> str:
    installed = f"no {name}" if there == _MISSING else f"{name} {there}"
    return (
        f"{who} has {installed}, this machine has {here}; results could differ: install the same versions everywhere, "
        "and start the cluster again"
    )


# --------------------------------------------------------------------------------------------------------------------
# Jobs


class _Call:
    """A call that is pickled as such: unpickling runs the function and gives its result."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self._call


def shipped(function: Callable[..., Any], *arguments: Any) -> bytes:
    """Return bytes for which ``pickle.loads`` calls a function and returns its result.

    A worker that cannot unpickle a job closes its connection and exits without a message. Every process can read bytes;
    without this package, the job itself fails with an ``ImportError``.
    """
    return pickled(_Call(function, arguments))


def run_checked(requirements: Requirements, function: Callable[..., _R], *arguments: Any) -> _R:
    """Run a function on a worker that meets the requirements, with one thread for numeric libraries.

    Raises:
        ClusterError: If the worker does not meet the requirements.
    """
    _check_this_worker(requirements)
    with _one_thread():
        return function(*arguments)


@lru_cache(maxsize=64)
def _check_this_worker(requirements: Requirements) -> None:
    from distributed import get_worker

    for pause in _RETRY_SECONDS:
        time.sleep(pause)
        worker_report = report(requirements)
        if worker_report["sees"]:
            break
    _check_report(f"the Dask worker {get_worker().address}", worker_report, requirements)


@contextmanager
def _one_thread() -> Iterator[None]:
    for name, value in THREAD_LIMITS.items():
        os.environ.setdefault(name, value)  # for libraries that are not loaded yet
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(1):
        yield
