"""The sources of a compiled function: a stamp of the code and the constants that Numba compiles into it.

Numba looks up every global name of a kernel while it compiles the kernel, and puts the functions and the constants
behind these names into the machine code. The stamp therefore follows the same names: from the kernel to the functions
that the kernel calls, through globals, attributes of modules, closures and default arguments, in every package. The
stamp covers, for everything that can be reached in this way,

- the byte code and the constants of a function, as they are loaded in this process,
- the values of global constants: numbers, texts, tuples, arrays, dtypes, members of enumerations,
- the content of the source files of functions, classes and types, which covers code that a module registers with Numba
  beside its functions (overloads, lowerings),
- options of the decorators.

An attribute is looked up in every module that a function names, so the stamp may cover more than the function calls;
it never covers less than Numba looks up. Python's standard library, NumPy, Numba and llvmlite count by their
versions. The stamp does not see a function that another module registers with ``numba.extending.overload`` for a
function of these libraries, as no name leads there.
"""

from __future__ import annotations

import dis
import enum
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import config, types

_LIBRARIES = frozenset({"numpy", "numba", "llvmlite", *sys.stdlib_module_names})
_WRAPPED = ("py_func", "_defn", "_pyfunc", "_dispatcher", "__wrapped__", "__func__", "fget", "fset", "func")
_CLASS_PARTS = ("struct", "jit_methods", "jit_props", "jit_static_methods")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+|#[0-9a-f]+")  # of objects, in the names of Numba's types
_SETTINGS = (  # variables of the environment that change the machine code; CPU and features are in Numba's key
    "BOUNDSCHECK",
    "OPT",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "DEBUGINFO_DEFAULT",
    "DEBUG_NRT",
    "ENABLE_PROFILING",
    "EXTEND_VARIABLE_LIFETIMES",
    "USING_SVML",
    "LLVM_REFPRUNE_PASS",
    "LLVM_REFPRUNE_FLAGS",
)


@dataclass(frozen=True)
class Sources:
    """The sources of a compiled function.

    Attributes:
        stamp: Hash of the code and the constants, as hexadecimal text; the same in every process.
        files: The source files of everything that the function reaches.
        functions: The Python functions that are reached, with the hash of each function's code and constants.
    """

    stamp: str
    files: frozenset[Path]
    functions: dict[FunctionType, str]


def sources_of(function: Any) -> Sources:
    """Return the sources of a kernel and of everything that the kernel calls, as they are loaded now.

    Args:
        function: A compiled function (Numba's dispatcher) or a Python function.
    """
    walk = _Walk()
    walk.follow([function])
    parts = [*_environment(), *sorted(walk.parts), *sorted(map(_file_hash, walk.files))]
    return Sources(_hash(parts), frozenset(walk.files), walk.functions)


def _environment() -> Iterator[str]:
    """Yield the versions of libraries and the settings of Numba that change the machine code of every kernel."""
    yield from (f"{module.__name__} {module.__version__}" for module in (numba, llvmlite, np))
    yield from (f"{name}={getattr(config, name, None)!r}" for name in _SETTINGS)
    yield f"optimize={sys.flags.optimize}"


@dataclass
class _Walk:
    """The objects that were reached, by following names from a function."""

    parts: set[str] = field(default_factory=set)
    files: set[Path] = field(default_factory=set)
    functions: dict[FunctionType, str] = field(default_factory=dict)
    pending: list[Any] = field(default_factory=list)
    reached: dict[int, Any] = field(default_factory=dict)  # by id; the values keep the objects, and so the ids, alive

    def follow(self, roots: Iterable[Any]) -> None:
        """Visit the objects and everything that they reach."""
        self.pending.extend(roots)
        while self.pending:
            thing = self.pending.pop()
            if id(thing) not in self.reached:
                self.reached[id(thing)] = thing
                self.parts.add(self._visit(thing))

    def _visit(self, thing: Any) -> str:
        """Return the text of an object without the objects that it refers to, which become pending."""
        self._add_file_of(thing)
        name = _name_of(thing)
        if isinstance(thing, FunctionType):
            text = self.functions[thing] = f"{name} {self._function(thing)}"
            return text
        if isinstance(thing, type):
            return f"class {name} {self._class(thing)}"
        if isinstance(thing, types.Type):
            return f"type {name} {self._type(thing)}"
        options = _literal(getattr(thing, "targetoptions", {}))
        return f"{name} {options} {list(map(self._reference, _wrapped(thing)))}"

    def _function(self, function: FunctionType) -> str:
        code = function.__code__
        names, attributes = _names_of(code)
        lines = [_code_hash(code), str(function.__kwdefaults__ and sorted(function.__kwdefaults__))]
        lines += [self._reference(value) for value in (function.__defaults__ or ())]
        lines += [self._reference(value) for _, value in sorted((function.__kwdefaults__ or {}).items())]
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                lines.append(f"{name} {self._reference(cell.cell_contents, attributes)}")
            except ValueError:  # a name of the enclosing function that has no value yet
                lines.append(f"{name} is empty")
        scope = function.__globals__
        lines += [f"{name} {self._reference(scope[name], attributes)}" for name in sorted(names) if name in scope]
        return _hash(lines)

    def _class(self, kind: type) -> str:
        members = {name: value for name, value in vars(kind).items() if not name.startswith("__")}
        members |= getattr(kind, "__members__", {})  # of an enumeration
        lines = [f"{name} {self._reference(value)}" for name, value in sorted(members.items())]
        return _hash([*lines, *map(self._reference, kind.__bases__)])

    def _type(self, kind: types.Type) -> str:
        """Return the hash of a type of Numba, with the fields and the methods of a class that Numba compiles."""
        lines = [_ADDRESS.sub("", str(kind)), self._reference(type(kind))]
        for group in _CLASS_PARTS:
            for name, member in sorted(getattr(kind, group, {}).items()):
                parts = tuple(member.values()) if isinstance(member, dict) else member  # getter and setter
                lines.append(f"{group} {name} {self._reference(parts)}")
        return _hash(lines)

    def _reference(self, value: Any, names: frozenset[str] = frozenset()) -> str:
        """Return the text of a value that a function or a class refers to.

        Args:
            value: A constant, or an object that is visited later.
            names: Names of attributes in the function, which may be attributes of the value.
        """
        constant = _constant(value)
        if constant is not None:
            return constant
        if isinstance(value, tuple):
            fields = "" if type(value) is tuple else self._reference(type(value))
            return f"{fields}({', '.join(self._reference(item, names) for item in value)})"
        if isinstance(value, ModuleType):
            return value.__name__ if _is_library(value.__name__) else self._attributes(value, names)
        if isinstance(value, types.Type) or not _is_library(_module_of(value)) or _wrapped(value):
            self.pending.append(value)
        return _name_of(value)

    def _attributes(self, module: ModuleType, names: frozenset[str]) -> str:
        """Return the text of a module and of the attributes that a function uses."""
        self._add_file(getattr(module, "__file__", None))
        lines = [module.__name__]
        for name in sorted(names):
            try:
                value = getattr(module, name)
            except Exception:  # a module may load its attributes, from packages that are not installed
                continue
            lines.append(f"{name} {self._reference(value, names - {name})}")
        return str(lines)

    def _add_file_of(self, thing: Any) -> None:
        """Add the file of an object's code, and the file of the module that the object says it is from."""
        if isinstance(thing, FunctionType):
            self._add_file(thing.__code__.co_filename)
        if not _is_library(_module_of(thing)):
            self._add_file(getattr(sys.modules.get(_module_of(thing)), "__file__", None))

    def _add_file(self, name: str | None) -> None:
        if name is not None and (path := Path(name)).suffix == ".py" and path.is_file():
            self.files.add(path)


def _constant(value: Any) -> str | None:
    """Return the text of a constant that Numba compiles into a function; None if the value is no such constant."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name} {value.value!r}"
    if value is None or value is Ellipsis or isinstance(value, (bool, int, float, complex, str, bytes, np.dtype)):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        array = np.asarray(value)
        return f"{type(value).__name__} {array.dtype!r} {array.shape} {_hash([array.tobytes()])}"
    return None


def _module_of(value: Any) -> str:
    if isinstance(value, ModuleType):
        return value.__name__
    module = getattr(value, "__module__", None)
    return module if isinstance(module, str) else type(value).__module__


def _name_of(value: Any) -> str:
    return f"{_module_of(value)}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def _wrapped(value: Any) -> list[Any]:
    """Return the functions, of no library, that an object such as a dispatcher or an intrinsic wraps."""
    inside = [getattr(value, name, None) for name in _WRAPPED] if not isinstance(value, type) else []
    return [function for function in inside if callable(function) and not _is_library(_module_of(function))]


def _is_library(module: str) -> bool:
    return module.partition(".")[0] in _LIBRARIES


@cache
def _names_of(code: CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of globals, and the names of attributes, in a function and in the functions inside it."""
    loads = [step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    inside = [_names_of(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    names = frozenset(loads).union(*(names for names, _ in inside))
    return names, frozenset(code.co_names).union(*(attributes for _, attributes in inside))


@cache
def _code_hash(code: CodeType) -> str:
    """Return a hash of byte code and constants that does not depend on lines, files or the order of sets."""
    lines: list[str | bytes] = [code.co_code, code.co_exceptiontable, str(code.co_flags)]
    lines += [str((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount))]
    lines += [str((code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars))]
    return _hash([*lines, *map(_literal, code.co_consts)])


def _literal(value: Any) -> str:
    if isinstance(value, CodeType):
        return _code_hash(value)
    if isinstance(value, (set, frozenset)):
        return f"set {sorted(map(_literal, value))}"
    if isinstance(value, dict):
        return f"dict {sorted(f'{name} {_literal(item)}' for name, item in value.items())}"
    if isinstance(value, tuple):
        return f"tuple {[_literal(item) for item in value]}"
    return f"{type(value).__name__} {value!r}"


@cache
def _file_hash(path: Path) -> str:
    """Return the hash of a file as this process read it first."""
    try:
        return _hash([path.name, path.read_bytes()])
    except OSError:
        return path.name


def _hash(lines: Iterable[str | bytes]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        content = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
        digest.update(b"%d " % len(content) + content)
    return digest.hexdigest()[:32]
