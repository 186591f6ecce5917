"""Plug-ins: modules of other packages that add domains, kinds of tasks, models, metrics and folders of data.

A plug-in is named by an entry point of the group ``graphbench.plugins``, whose value is a module or a function to call
(``my_package.benchmarks`` or ``my_package.benchmarks:register``), or by the environment variable
``GRAPHBENCH_PLUGINS=module[,module]``. All are loaded once, when the catalogue, a registry or the command line first
needs them. A plug-in that cannot be loaded is *broken*: it is left out with a warning that names it, everything it had
registered is removed, and errors on unknown names give the reason. While plug-ins load, their prints go to
standard error; the working folder, the standard streams, torch's default dtype and the answer to Ctrl-C are as before
once they are loaded.

Worker processes load the plug-ins of the process that sent the job (:func:`plugin_targets`, :func:`load_targets`). If a
script's main module registers a domain, only the process of the script has the domain, and generates its datasets.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path, PurePath
from types import ModuleType
from typing import Any

from graphbench.core.errors import GraphBenchError
from graphbench.core.foreign import described, interrupts_noted, prints_on_stderr, text_of
from graphbench.core.untrusted import shown

GROUP = "graphbench.plugins"
VARIABLE = "GRAPHBENCH_PLUGINS"
BUILT_IN = "graphbench"
MAIN = "__main__"
_MOST_OF_A_FAULT = 1000  # characters
_LIBRARIES = {"site-packages", "dist-packages"}

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plugin:
    """One plug-in.

    Attributes:
        name: Name of the entry point, or of the module.
        target: The code that is loaded: ``module`` or ``module:function``.
        origin: Description of where the plug-in is named.
    """

    name: str
    target: str
    origin: str

    def __str__(self) -> str:
        """Return name and origin, for messages."""
        return f"{self.name!r} ({shown(self.origin)})"


class _State:
    """The plug-ins that have been loaded in this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.started = False
        self.current: Plugin | None = None
        self.loaded: dict[str, Plugin] = {}  # target -> plug-in
        self.broken: dict[str, str] = {}  # name -> why, and where the plug-in is named
        self.listeners: list[Callable[[str], None]] = []


_STATE = _State()


def load_plugins() -> None:
    """Load all plug-ins that are installed or named by ``GRAPHBENCH_PLUGINS``; only the first call does anything."""
    with _STATE.lock:
        if _STATE.started:
            return
        _STATE.started = True
        try:
            for plugin in _named_plugins():
                _load(plugin)
        except BaseException:  # Ctrl-C: the next call loads the others
            _STATE.started = False
            raise


def load_targets(targets: Iterable[str]) -> None:
    """Load the plug-ins of the process that sent a job to this one; a broken one is left out with a warning."""
    load_plugins()
    with _STATE.lock:
        for target in targets:
            _load(Plugin(target, target, "loaded by the process that sent the job"))


def plugin_targets() -> dict[str, str]:
    """Return target -> name of all working plug-ins; worker processes must load the targets."""
    load_plugins()
    return {target: plugin.name for target, plugin in _STATE.loaded.items() if plugin.name not in _STATE.broken}


def about_broken() -> str:
    """Return the end of an error on an unknown name: broken plug-ins that may define it, and why they are broken.

    Empty if every plug-in works.
    """
    return "".join(f"; the plug-in {sentence}" for sentence in _STATE.broken.values())


def mark_broken(name: str, reason: object) -> None:
    """Mark a plug-in as broken, remove everything that it registered, and log one warning."""
    if name in _STATE.broken:
        return
    plugin = next((p for p in _STATE.loaded.values() if p.name == name), Plugin(name, name, "registered by a script"))
    _STATE.broken[name] = f"{plugin} is broken: {reason}"
    for forget in _STATE.listeners:
        forget(name)
    _LOG.warning("the plug-in %s; it is left out", _STATE.broken[name])


@contextmanager
def blaming(owner: str) -> Iterator[None]:
    """Mark a plug-in as broken if its content raises an error in the block; errors of other owners are raised."""
    if not is_plugin(owner):
        yield
        return
    with interrupts_noted() as interrupts, prints_on_stderr():
        try:
            yield
        except BaseException as error:
            if interrupts.received:
                raise
            mark_broken(owner, text_of(error) if isinstance(error, GraphBenchError) else _fault(error))


def is_plugin(owner: str) -> bool:
    """Return whether an owner is a plug-in, not this package or a script."""
    return any(plugin.name == owner for plugin in _STATE.loaded.values())


def on_broken(forget: Callable[[str], None]) -> None:
    """Register a function that is called with the name of every plug-in that is marked as broken."""
    _STATE.listeners.append(forget)


def owner_of(module: str) -> str:
    """Return who registers something that a module defines: this package, the plug-in being loaded, or the module."""
    if module == BUILT_IN or module.startswith(f"{BUILT_IN}."):
        return BUILT_IN
    return module if _STATE.current is None else _STATE.current.name


def calling_module() -> str:
    """Return the name of the module that called the function from which this one is called."""
    return text_of(sys._getframe(2).f_globals.get("__name__", MAIN))


def owner_in_words(owner: str) -> str:
    """Return the description of an owner in messages."""
    if owner == BUILT_IN:
        return "graphbench itself"
    if owner == MAIN:
        return "this script"
    return f"the plug-in {owner!r}" if is_plugin(owner) else f"the module {owner!r}"


def place_of(error: BaseException, *, built_in: bool = False) -> str | None:
    """Return file, line and function of the innermost frame of an error that belongs to a plug-in or a script.

    Args:
        error: The error, with its traceback.
        built_in: Return the line of the innermost frame of this package instead.

    Returns:
        ``file.py:33 in forward``; ``file.py:33`` outside a function. None if there is no such frame.
    """
    belongs = _is_of_package if built_in else is_of_user
    location = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if belongs(text_of(frame.f_globals.get("__name__", "")), code.co_filename):
            location = f"{code.co_filename}:{line}" + ("" if code.co_name == "<module>" else f" in {code.co_name}")
    return location


def _is_of_package(module: str, file: str) -> bool:
    return owner_of(module) == BUILT_IN


def is_of_user(module: str, file: str) -> bool:
    """Return whether a module is neither of this package nor of Python or a library, other than a plug-in's."""
    root = module.partition(".")[0]
    if root == BUILT_IN or root in sys.stdlib_module_names or file.startswith("<"):
        return False
    plugins = {target.partition(":")[0].partition(".")[0] for target in _STATE.loaded}
    return root in plugins or _LIBRARIES.isdisjoint(PurePath(file).parts)


def _named_plugins() -> Iterator[Plugin]:
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        package = "an installed package" if point.dist is None else f"{point.dist.name} {point.dist.version}"
        yield Plugin(point.name, point.value, f"an entry point of {package}")
    for name in os.environ.get(VARIABLE, "").split(","):
        if name.strip():
            yield Plugin(name.strip(), name.strip(), f"named by ${VARIABLE}")


def _load(plugin: Plugin) -> None:
    if plugin.target in _STATE.loaded:
        return
    namesake = next((other for other in _STATE.loaded.values() if other.name == plugin.name), None)
    if namesake is not None:
        plugin = Plugin(plugin.target, plugin.target, plugin.origin)
    _STATE.loaded[plugin.target] = plugin
    fault = None
    with _loading(plugin), _process_state_kept(plugin), interrupts_noted() as interrupts:
        try:
            target = EntryPoint(plugin.name, plugin.target, GROUP).load()
            if not isinstance(target, ModuleType):
                target()
        except BaseException as error:  # a plug-in may raise SystemExit, or any other class
            fault = _fault(error)
    if interrupts.received:  # even where the plug-in's code has caught it
        del _STATE.loaded[plugin.target]
        raise KeyboardInterrupt
    if fault is not None:
        mark_broken(plugin.name, fault)


def _fault(error: BaseException) -> str:
    """Return an error of a plug-in's code, and the line that raised it."""
    place = None if isinstance(error, SyntaxError) else place_of(error)  # a SyntaxError names its line
    return described(error, _MOST_OF_A_FAULT) + (f" ({place})" if place else "")


@contextmanager
def _loading(plugin: Plugin) -> Iterator[None]:
    before, _STATE.current = _STATE.current, plugin
    try:
        yield
    finally:
        _STATE.current = before


@contextmanager
def _process_state_kept(plugin: Plugin) -> Iterator[None]:
    """Restore the state of the process that a plug-in's import may change: streams, working folder, default dtype."""
    folder, dtype = _working_folder(), _default_dtype()
    try:
        with prints_on_stderr():
            yield
    finally:
        if folder is not None and _working_folder() != folder:
            os.chdir(folder)
            _LOG.warning("the plug-in %s changed the working folder; it is %s again", plugin, folder)
        _restore_dtype(dtype, plugin)


def _working_folder() -> Path | None:
    """Return the working folder; None if it was removed."""
    try:
        return Path.cwd()
    except OSError:
        return None


def _default_dtype() -> Any:
    """Return torch's default dtype; None where torch is not loaded, whose default is then float32."""
    torch = sys.modules.get("torch")
    return None if torch is None else torch.get_default_dtype()


def _restore_dtype(before: Any, plugin: Plugin) -> None:
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "set_default_dtype"):  # its import failed half-way
        return
    wanted, dtype = before or torch.float32, torch.get_default_dtype()
    if dtype != wanted:
        torch.set_default_dtype(wanted)
        _LOG.warning("the plug-in %s changed torch's default dtype to %s; it is %s again", plugin, dtype, wanted)
