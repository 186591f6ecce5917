"""The code behind names that plug-ins and scripts have registered, as hashes of its sources.

The code of a plug-in is the code of all loaded modules of its package; the code of another module is the module itself.
In both cases the modules that they import count, too, unless these are libraries. A script's main module changes often
without meaning, so it counts only with the classes and functions that are registered, and with the classes and
functions that these name. Sources are read once per import: a file that changes afterwards does not change the code
that this process runs.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from graphbench.core.plugins import BUILT_IN, MAIN, is_of_user, plugin_targets
from graphbench.core.registry import registries

_MAINS = (MAIN, "__mp_main__")
_DIGITS = 16
_DEPTH = 8  # of registered objects within objects, such as the functions of a domain's generators
_DEPTH_OF_INSTANCES = 3  # of objects within an object of any class, such as the parts of a composed transform
_PLAIN = (bool, int, float, str, bytes, type(None))

_MODULES: dict[str, tuple[Any, str, frozenset[str]]] = {}  # module -> its spec, hash, imports
_SOURCES: dict[Any, str] = {}  # class or function of a main module -> its source


@dataclass(frozen=True)
class Code:
    """The code that a run uses beside this package's.

    Attributes:
        hashes: File of a module (``my_models/net.py``), or class or function of the main module (``__main__.Net``) ->
            hash of its source.
        unchecked: Names of modules, classes and functions without a source to read.
    """

    hashes: Mapping[str, str]
    unchecked: tuple[str, ...] = ()


def code_of(names: Iterable[str], things: Iterable[Any] = ()) -> Code:
    """Return the code behind registered names, and behind further objects such as a transform.

    Args:
        names: Texts, some of which are registered names: a metric, a processor, ``<domain>.<name>``.
        things: Further classes, functions or other objects.
    """
    reader = _Reader()
    for thing, owner in _registered(set(names)):
        reader.add_owner(owner)
        reader.add(thing)
    for thing in things:
        reader.add(thing)
    return Code(dict(sorted(reader.hashes.items())), tuple(sorted(reader.unchecked)))


def changed_code(before: Mapping[str, str], now: Mapping[str, str], *, missing: bool = True) -> list[str]:
    """Return in words which code has changed since an earlier process; modules that it did not read do not count.

    Args:
        before: ``Code.hashes`` of the earlier process.
        now: The hashes of this process.
        missing: Whether code counts that this process does not have.
    """
    packages = {target.partition(":")[0].partition(".")[0] for target in plugin_targets()}
    words = []
    for name, digest in before.items():
        current = now.get(name) or _hash_of_unloaded(name)
        if current == digest or (current is None and not missing):
            continue
        root = name.partition("/")[0].partition(".")[0]
        what = f"plug-in {root}: module {name}" if root in packages else f"module {name}"
        if name.startswith(MAIN):
            what = f"{name.removeprefix(MAIN)[1:]} of the script"
        words.append(f"{what} {'is gone' if current is None else 'changed'}")
    return words


def _registered(names: set[str]) -> list[tuple[Any, str]]:
    """Return objects of others than this package that are registered under some names, and who registered them.

    A registered object may name others, as a problem names its loss; the named objects are included.
    """
    entries = [entry for registry in registries() for entry in registry.registered() if entry[2] != BUILT_IN]
    used: list[tuple[Any, str]] = []
    while names:
        names |= {name.partition(".")[0] for name in names}
        new = [(thing, owner) for name, thing, owner in entries if name in names]
        entries = [entry for entry in entries if entry[0] not in names]
        used += new
        names = {text for thing, _ in new for text in _parts(thing) if isinstance(text, str)}
    return used


class _Reader:
    """Collects the hashes of modules, classes and functions, and of the code that they import or name."""

    def __init__(self) -> None:
        self.hashes: dict[str, str] = {}
        self.unchecked: set[str] = set()
        self._read: set[Any] = set()

    def add_owner(self, owner: str) -> None:
        """Add the modules of a plug-in's package, or a module that registered something."""
        targets = [target for target, name in plugin_targets().items() if name == owner]
        if not targets:
            self._add_module(owner)
        for target in targets:
            root = target.partition(":")[0].partition(".")[0]
            for name in [name for name in sys.modules if name == root or name.startswith(f"{root}.")]:
                self._add_module(name)

    def add(self, thing: Any) -> None:
        """Add the classes and functions in an object."""
        for part in _parts(thing):
            if isinstance(part, str):
                continue
            module = getattr(part, "__module__", None) or ""
            if module in _MAINS:
                self._add_of_main(part, module)
            else:
                self._add_module(module)

    def _add_module(self, name: str) -> None:
        if name in self._read or name in _MAINS:
            return
        self._read.add(name)
        file = _file_of(name)
        if file is None or not is_of_user(name, str(file)):
            return
        module_facts = _read_module(name, file)
        if module_facts is None:
            self.unchecked.add(f"the module {name}")
            return
        self.hashes[_label(name, file)], imports = module_facts
        for other in imports:
            self._add_module(other)

    def _add_of_main(self, part: Any, module: str) -> None:
        """Add a class or function of the main module, and the modules, classes and functions that its source names."""
        name = f"{MAIN}.{part.__qualname__}"
        if name in self._read:
            return
        self._read.add(name)
        source = _source_of(part)
        if source is None:
            self.unchecked.add(f"{part.__qualname__} of the script")
            return
        names = _names_in(source)
        space = vars(sys.modules[module]) if module in sys.modules else {}
        given = {name: space[name] for name in sorted(names & space.keys()) if isinstance(space[name], _PLAIN)}
        self.hashes[name] = _digest((source + repr(given)).encode() if given else source.encode())
        for other in (space[name] for name in sorted(names & space.keys())):
            if isinstance(other, ModuleType):
                self._add_module(other.__name__)
            elif isinstance(other, type | FunctionType):
                self.add(other)


def _parts(thing: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """Yield the classes, functions and texts in an object: in its fields, items and bound arguments."""
    if depth == 0 or thing is None or isinstance(thing, bool | int | float | bytes | ModuleType | Path):
        return
    if isinstance(thing, str | type | FunctionType | BuiltinFunctionType):
        yield thing
        return
    inner: Iterable[Any] = ()
    if isinstance(thing, MethodType):
        inner = (thing.__func__, thing.__self__)
    elif isinstance(thing, partial):
        inner = (thing.func, *thing.args, *thing.keywords.values())
    elif isinstance(thing, Mapping):
        inner = tuple(thing.values())
    elif isinstance(thing, list | tuple | set | frozenset):
        inner = thing
    else:
        yield type(thing)
        if is_dataclass(thing):
            inner = (getattr(thing, field.name) for field in fields(thing))
        else:
            inner, depth = tuple(getattr(thing, "__dict__", {}).values()), min(depth, _DEPTH_OF_INSTANCES)
    for item in inner:
        yield from _parts(item, depth - 1)


def _file_of(name: str) -> Path | None:
    """Return the file of a module, also of one in a loaded package that is not loaded itself; None without one."""
    module = sys.modules.get(name)
    if module is not None:
        file = getattr(module, "__file__", None)
        return Path(file) if file else None
    root, *rest = name.split(".")
    if not rest:
        return _importable_file(root)
    for folder in _folders_of(root):
        base = Path(folder, *rest)
        for file in (base / "__init__.py", base.with_name(f"{base.name}.py")):
            if file.is_file():
                return file
    return None


def _folders_of(root: str) -> Iterable[str]:
    """Return the folders of a package, loaded or not; none where there is no such package."""
    if root in sys.modules:
        return getattr(sys.modules[root], "__path__", ())
    spec = _import_spec(root)
    return () if spec is None else spec.submodule_search_locations or ()


def _importable_file(root: str) -> Path | None:
    """Return the file of a module that is imported later, such as in a function; None where there is none."""
    spec = _import_spec(root)
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _import_spec(root: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(root)
    except (ImportError, ValueError, AttributeError):  # a module without a specification, such as __main__
        return None


def _label(name: str, file: Path) -> str:
    """Return the path of a module's file below the folder that it is imported from."""
    end = f"/{file.name}" if file.stem == "__init__" else file.suffix
    return name.replace(".", "/") + end


def _read_module(name: str, file: Path) -> tuple[str, frozenset[str]] | None:
    """Return the hash of a module's file and the modules it imports, as they were when this was first asked."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    known = _MODULES.get(name)
    if known is not None and known[0] is spec and spec is not None:
        return known[1:]
    try:
        content = file.read_bytes()
    except OSError:
        return None
    module_facts = _digest(content), frozenset(_imports(name, file, content))
    if spec is not None:
        _MODULES[name] = (spec, *module_facts)
    return module_facts


def _imports(name: str, file: Path, content: bytes) -> Iterator[str]:
    """Yield the modules that a source may import, and the packages around them."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # a compiled module
        return
    package = name if file.stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            try:
                base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            except ImportError:
                continue
            modules = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        for module in modules:
            parts = module.split(".")
            yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _source_of(part: Any) -> str | None:
    """Return the source of a class or function as it was when this was first asked; None where there is none."""
    if part not in _SOURCES:
        source = _get_source(part)
        if source is None and isinstance(part, type):  # of a notebook: its methods have sources, the class has none
            methods = [value for value in vars(part).values() if isinstance(value, FunctionType)]
            sources = [_get_source(method) for method in methods]
            source = None if None in sources or not sources else "\n".join(map(str, sources))
        if source is None:
            return None
        _SOURCES[part] = source
    return _SOURCES[part]


def _get_source(part: Any) -> str | None:
    try:
        return textwrap.dedent(inspect.getsource(part))
    except (OSError, TypeError, IndexError, SyntaxError):
        return None


def _names_in(source: str) -> set[str]:
    try:
        return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    except SyntaxError:  # a lambda in the middle of a statement
        return set()


def _hash_of_unloaded(label: str) -> str | None:
    """Return the hash of a file of a loaded package whose module is not loaded; None where there is none."""
    root, _, rest = label.partition("/")
    if not rest:
        path = _importable_file(root.rpartition(".")[0])
        return None if path is None or path.name != label or not path.is_file() else _digest(path.read_bytes())
    for folder in _folders_of(root):
        file = Path(folder, rest)
        if file.is_file():
            return _digest(file.read_bytes())
    return None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]
