"""Compiled functions are cached, and recompiled when any source they may call has changed."""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import caching
from numba.core.dispatcher import Dispatcher

import graphbench
from graphbench.core import kernels
from graphbench.core.kernel_sources import sources_of

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
        f"from graphbench.core.kernels import kernel\n\n@kernel\ndef inner(x):\n    return x + {added}\n"
    )


def toy_package(root: Path) -> Path:
    """Return the folder of a domain in a copy of the package that has nothing else."""
    toy = root / "graphbench" / "toy"
    toy.mkdir(parents=True)
    (toy.parent / "core").mkdir()
    core = ("__init__.py", "errors.py", "installation.py", "kernel_sources.py", "kernels.py", "lazy.py")
    for name in ("__init__.py", "_version.py", *(f"core/{name}" for name in core)):
        shutil.copy(PACKAGE / name, toy.parent / name)
    (toy / "__init__.py").write_text("")
    return toy


@pytest.mark.thorough
def test_a_change_in_a_called_file_is_never_missed(tmp_path):
    toy = toy_package(tmp_path)
    (toy / "outer.py").write_text(
        "from graphbench.core.kernels import kernel\nfrom graphbench.toy.inner import inner\n\n"
        "@kernel\ndef outer(x):\n    return 2 * inner(x)\n"
    )
    write_inner(toy, 1)
    assert run_toy(tmp_path) == {"value": 8, "hits": 0}
    assert run_toy(tmp_path) == {"value": 8, "hits": 1}
    write_inner(toy, 5)
    assert run_toy(tmp_path) == {"value": 16, "hits": 0}


# Ways in which a kernel may name what another file holds: name | imports of the kernel's file | the kernel's code, and
# below it the other file, in which 1000 becomes 2000.
REFERENCES = """
== function | from shelf.{0} import f | return f(x)
@kernel
def f(x):
    return x + 1000

== inner | from shelf.{0} import f | return f(x)
@inner
def f(x):
    return x + 1000

== second | from shelf.{0} import g | return g(x)
@inner
def f(x):
    return x + 1000
@inner
def g(x):
    return f(x)

== attribute | import shelf.{0} as other | return other.f(x)
@kernel
def f(x):
    return x + 1000

== package | import shelf.{0} | return shelf.{0}.f(x)
@kernel
def f(x):
    return x + 1000

== alias | import shelf.{0} as other; g = other.f | return g(x)
@kernel
def f(x):
    return x + 1000

== listed | from shelf.{0} import f; FS = (f, f) | return FS[1](x)
@kernel
def f(x):
    return x + 1000

== number | from shelf.{0} import K | return x + K
K = 1000

== number_of_module | import shelf.{0} as other | return x + other.K
K = 1000

== numbers | from shelf.{0} import KS | return x + KS[1][0]
KS = (1, (1000, 2))

== array | from shelf.{0} import A | return x + A[1]
A = np.array([1, 1000])

== option | from shelf.{0} import K | return x + K.limit
import collections
K = collections.namedtuple('K', 'limit')(1000)

== member | from shelf.{0} import K | return x + K.ONE
import enum
class K(enum.IntEnum):
    ONE = 1000

== njit | from shelf.{0} import f | return f(x)
import numba
@numba.njit
def f(x):
    return x + 1000

== registered | from shelf.{0} import f | return f(x)
from numba.extending import register_jitable
@register_jitable
def f(x):
    return x + 1000

== overloaded | from shelf.{0} import f | return f(x)
from numba.extending import overload
def f(x):
    return 0
@overload(f)
def over(x):
    return lambda x: x + 1000

== intrinsic | from shelf.{0} import f | return f(x)
from numba import types
from numba.extending import intrinsic
@intrinsic
def f(context, x):
    def add(context, builder, signature, args):
        return builder.add(args[0], args[0].type(1000))
    return types.int64(types.int64), add

== vectorised | from shelf.{0} import f | return f(x)
import numba
@numba.vectorize
def f(x):
    return x + 1000

== compiled_class | from shelf.{0} import C | return C(x).total()
from numba import int64
from numba.experimental import jitclass
@jitclass([('x', int64)])
class C:
    def __init__(self, x):
        self.x = x
    def total(self):
        return self.x + 1000
"""
PLUG_INS = {
    head.split(" | ")[0]: (*head.split(" | ")[1:], other)
    for head, _, other in (entry.partition("\n") for entry in REFERENCES.strip().removeprefix("== ").split("\n\n== "))
}
PLUG_IN = """
import importlib, json, sys
values, hits = {}, []
for name in sys.argv[1:]:
    run = importlib.import_module(f"desk.{name}").run
    values[name] = int(run(3))
    if run.stats.cache_hits:
        hits.append(name)
print(json.dumps({"values": values, "hits": hits}))
"""


def run_code(root: Path, code: str, *words: str, **variables: str) -> Any:
    """Return what a new process prints as JSON."""
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{PACKAGE.parent}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        cwd=root,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write_module(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"import numpy as np\nfrom graphbench.core.kernels import inner, kernel\n{text}\n")


def replace_unseen(path: Path, old: str, new: str) -> None:
    """Edit a file so that neither its size nor its time tells."""
    before = path.stat()
    path.write_text(path.read_text().replace(old, new))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


@pytest.mark.slow
def test_a_plug_in_never_runs_old_code_of_another_folder(tmp_path):
    for name, (imports, body, other) in PLUG_INS.items():
        write_module(tmp_path / "shelf" / f"{name}.py", other)
        write_module(
            tmp_path / "desk" / f"{name}.py", f"{imports.format(name)}\n@kernel\ndef run(x):\n    {body.format(name)}"
        )
    first = run_code(tmp_path, PLUG_IN, *PLUG_INS)
    assert first == {"values": dict.fromkeys(PLUG_INS, 1003), "hits": []}
    again = run_code(tmp_path, PLUG_IN, *PLUG_INS, PYTHONHASHSEED="1")
    assert again == {"values": first["values"], "hits": list(PLUG_INS)}
    for name in PLUG_INS:
        replace_unseen(tmp_path / "shelf" / f"{name}.py", "1000", "2000")
    assert run_code(tmp_path, PLUG_IN, *PLUG_INS) == {"values": dict.fromkeys(PLUG_INS, 2003), "hits": []}


def test_a_function_that_is_defined_after_its_caller_counts(tmp_path):
    write_module(tmp_path / "shelf" / "late.py", "@kernel\ndef f(x):\n    return x + 1000")
    write_module(
        tmp_path / "desk" / "late.py",
        "@kernel\ndef run(x):\n    return g(x)\n\n\nfrom shelf.late import f\n@kernel\ndef g(x):\n    return f(x)",
    )
    assert run_code(tmp_path, PLUG_IN, "late")["values"] == {"late": 1003}
    replace_unseen(tmp_path / "shelf" / "late.py", "1000", "2000")
    assert run_code(tmp_path, PLUG_IN, "late") == {"values": {"late": 2003}, "hits": []}


@pytest.mark.thorough
def test_code_that_changed_after_its_import_is_not_taken_for_the_new_file(tmp_path):
    write_module(tmp_path / "shelf" / "edited.py", "@kernel\ndef f(x):\n    return x + 1000")
    write_module(tmp_path / "desk" / "edited.py", "from shelf.edited import f\n@kernel\ndef run(x):\n    return f(x)")
    code = """
import os, sys
from pathlib import Path
from desk.edited import run
path = Path("shelf/edited.py")
path.write_text(path.read_text().replace("1000", "2000"))
print(int(run(3)))
"""
    assert run_code(tmp_path, code) == 1003
    assert run_code(tmp_path, PLUG_IN, "edited")["values"] == {"edited": 2003}


@pytest.mark.parametrize("called_before", [False, True])
@pytest.mark.thorough
def test_constants_that_a_process_replaces_stay_in_the_process(tmp_path, called_before):
    write_module(tmp_path / "shelf" / "replaced.py", "K = 1000\n@kernel\ndef f(x):\n    return x + K")
    write_module(
        tmp_path / "desk" / "replaced.py", "from shelf.replaced import f\n@kernel\ndef run(x):\n    return f(x)"
    )
    code = f"""
import shelf.replaced
from desk.replaced import run
if {called_before}:
    shelf.replaced.f(3)
shelf.replaced.K = 7
print(int(run(3)))
"""
    assert run_code(tmp_path, code) == (1003 if called_before else 10)
    assert run_code(tmp_path, PLUG_IN, "replaced")["values"] == {"replaced": 1003}
    code = code.replace("shelf.replaced.K = 7", "")
    assert run_code(tmp_path, code) == 1003


@pytest.mark.slow
def test_a_file_of_other_sources_under_the_same_name_is_not_run(tmp_path):
    """Another process may write the file after the index has been read, before the file is."""
    cache = tmp_path / "desk" / "__pycache__"
    write_module(tmp_path / "desk" / "shared.py", "@kernel\ndef run(x):\n    return x + 1000")
    run_code(tmp_path, PLUG_IN, "shared")
    (old,) = cache.glob("*.nbc")
    data = old.read_bytes()
    replace_unseen(tmp_path / "desk" / "shared.py", "1000", "2000")
    run_code(tmp_path, PLUG_IN, "shared")
    (new,) = cache.glob("*.nbc")
    assert new == old and new.read_bytes() != data
    new.write_bytes(data)
    assert run_code(tmp_path, PLUG_IN, "shared") == {"values": {"shared": 2003}, "hits": []}


@pytest.mark.slow
def test_settings_of_the_compiler_count(tmp_path):
    write_module(tmp_path / "desk" / "bounds.py", "@kernel\ndef run(x):\n    return np.zeros(x)[x - 1]")
    run_code(tmp_path, PLUG_IN, "bounds")
    assert run_code(tmp_path, PLUG_IN, "bounds")["hits"] == ["bounds"]
    assert run_code(tmp_path, PLUG_IN, "bounds", NUMBA_BOUNDSCHECK="1")["hits"] == []


def all_kernels() -> list[Any]:
    """Return every kernel of the package, after importing all its modules."""
    for module in pkgutil.walk_packages(graphbench.__path__, "graphbench."):
        with suppress(ImportError):  # packages that are not installed
            importlib.import_module(module.name)
    gc.unfreeze()  # the objects of collection are frozen, and the scan must see them
    dispatchers = {thing for thing in gc.get_objects() if issubclass(type(thing), Dispatcher)}
    return [thing for thing in dispatchers if thing.py_func.__module__.startswith("graphbench.")]


def called_by(function: Any) -> set[Any]:
    """Return the functions that a function names, resolved from its source text."""
    text = textwrap.dedent(inspect.getsource(function))
    called = []
    globals_only = {
        name: value for name, value in function.__globals__.items() if name not in function.__code__.co_varnames
    }
    (definition,) = ast.parse(text).body
    for node in (node for line in definition.body for node in ast.walk(line)):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            with suppress(NameError, AttributeError, TypeError, IndexError, KeyError):
                thing = eval(compile(ast.Expression(node), "name", "eval"), globals_only)
                called.append(getattr(thing, "py_func", getattr(thing, "_defn", thing)))
    functions = {thing for thing in called if inspect.isfunction(thing)}
    return {thing for thing in functions if not thing.__module__.startswith(("numba.", "numpy"))}


@pytest.mark.thorough
def test_the_stamp_of_every_kernel_covers_every_function_that_it_calls():
    kernels_of_package = all_kernels()
    assert len(kernels_of_package) > 500
    away = 0
    for dispatcher in kernels_of_package:
        assert isinstance(dispatcher._cache._cache_file, kernels._Cache), dispatcher
        sources = sources_of(dispatcher)
        pending, seen = {dispatcher.py_func}, set()
        while pending:
            function = pending.pop()
            assert function in sources.functions, (dispatcher, function)
            assert Path(inspect.getfile(function)) in sources.files, (dispatcher, function)
            seen.add(function)
            pending |= called_by(function) - seen
        away += any(f.__module__.split(".")[:3] != dispatcher.py_func.__module__.split(".")[:3] for f in seen)
    assert away > 10  # the scan sees calls from one domain to another


TOGETHER = """
import json, sys, time
from pathlib import Path
import numpy as np
from graphbench.toy.shared import shared
index, meeting = shared._cache._cache_file, Path(sys.argv[1])
look = index._load_index
if meeting.is_dir():  # all compile at once, and what one sees of the cache is a second old when it writes
    (meeting / sys.argv[2]).touch()
    while len(list(meeting.iterdir())) < 3:
        time.sleep(0.001)
    index._load_index = lambda: (look(), time.sleep(1))[0]
values = [float(shared(np.full(3, 7, kind))) for kind in sys.argv[2:]]
print(json.dumps({"values": values, "hits": sum(shared.stats.cache_hits.values())}))
"""


@pytest.mark.slow
def test_processes_that_compile_at_once_share_one_cache(tmp_path):
    toy = toy_package(tmp_path)
    (toy / "shared.py").write_text(
        "from graphbench.core.kernels import kernel\n\n@kernel\ndef shared(x):\n    return x.sum() + x.itemsize\n"
    )
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    kinds = ["i1", "i2", "i4"]
    command = [sys.executable, "-c", TOGETHER]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    together = [subprocess.Popen([*command, meeting, kind], env=environment, cwd=tmp_path) for kind in kinds]
    assert [process.wait(100) for process in together] == [0, 0, 0]
    done = subprocess.run(
        [*command, "nowhere", *kinds], env=environment, capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert json.loads(done.stdout) == {"values": [22, 23, 25], "hits": 3}


def test_a_kernel_lets_other_threads_go_on():
    begun, ran = threading.Event(), threading.Event()

    def run():
        slow(100)
        begun.set()
        slow(300_000_000)
        ran.set()

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    turns = 0  # of this thread while the kernel runs: one at most if it kept the interpreter's lock
    while not ran.wait(0.005):
        turns += 1
    thread.join()
    assert turns > 3


@kernels.kernel
def slow(steps):
    value = np.uint64(1)
    for _ in range(steps):
        value = value * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        value ^= value >> np.uint64(7)
    return value


def test_without_a_place_for_a_cache_nothing_is_cached(monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    compiled = kernels.kernel(slow.py_func)
    assert compiled(3) == slow(3)
    assert not kernels.is_cached(compiled)


@pytest.mark.slow
def test_a_class_of_arguments_that_was_renamed_is_compiled_again(tmp_path):
    toy = toy_package(tmp_path)

    def write_outer(name: str) -> None:
        (toy / "outer.py").write_text(
            "from typing import NamedTuple\nfrom graphbench.core.kernels import kernel\n\n"
            f"class {name}(NamedTuple):\n    first: int\n\n"
            "@kernel\ndef inside(pair):\n    return pair.first + 1\n\n"
            f"def outer(x):\n    return inside({name}(x))\n\nouter.stats = inside.stats\n"
        )

    write_outer("Earlier")
    assert run_toy(tmp_path) == {"value": 4, "hits": 0}
    assert run_toy(tmp_path) == {"value": 4, "hits": 1}
    write_outer("Renamed")
    assert run_toy(tmp_path) == {"value": 4, "hits": 0}
