"""Fresh runs of Python that need not import large libraries: they are forked from a process that has.

PyTorch Geometric alone takes about five seconds, longer than most commands; Numba prepares its tables of types in
another second. graphbench itself is imported by every run anew, so plug-ins, environment and registries are those of
a new process. What a test says of start-up, signals, encodings or
closed pipes needs a real one. No bytecode is written: a module that a test writes twice in one second, in
the same length, would keep its old code.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

_SERVER = """
import json, os, sys
import h5py, networkx, numba.core.caching, pydantic, rich.console, rich.progress, rich.table, rich.traceback
import safetensors.numpy, scipy.special, scipy.stats, torch_geometric.data, typer.testing, yaml
from numba.core.registry import cpu_target

cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()

def serve(words, env, cwd, out, err):
    import atexit, runpy, threading, traceback, types
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, out, os.O_WRONLY), (2, err, os.O_WRONLY)):
        os.dup2(os.open(path, flags), number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    numba.core.config.reload_config()
    sys.path[:0] = [cwd, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    code = 0
    try:
        if words[0] == "-m":
            sys.argv = words[1:]
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            if words[0] == "-c":
                sys.argv, source, name = ["-c", *words[2:]], words[1], "<string>"
            else:
                sys.argv, name = words, words[0]
                sys.path[0], main.__file__ = os.path.dirname(name), name
                with open(name, encoding="utf-8") as file:
                    source = file.read()
            exec(compile(source, name, "exec"), main.__dict__)
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)

print(flush=True)
for line in sys.stdin:
    child = os.fork()
    if not child:
        serve(**json.loads(line))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@cache
def _server() -> subprocess.Popen[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    pipe = subprocess.PIPE
    server = subprocess.Popen([sys.executable, "-B", "-c", _SERVER], stdin=pipe, stdout=pipe, text=True, env=env)
    atexit.register(server.kill)
    assert server.stdout is not None and server.stdout.readline() == "\n", "torch_geometric cannot be imported"
    return server


def run_python(
    words: Sequence[object],
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 240.0,
) -> subprocess.CompletedProcess[str]:
    """Run ``-m module ...``, ``-c code ...`` or a script as a new process would, and return its exit code and output.

    Args:
        words: What follows ``python``; a script is given by its absolute path.
        env: Variables of the environment; None for those of this process.
        cwd: Folder that it runs in; None for that of this process.
        timeout: Seconds after which the run counts as hanging.
    """
    server = _server()
    assert server.stdin is not None and server.stdout is not None
    words = [str(word) for word in words]
    assert words[0] in ("-m", "-c") or Path(words[0]).is_absolute(), words
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        out.touch()
        err.touch()
        request = {"words": words, "env": dict(os.environ if env is None else env), "cwd": str(cwd or Path.cwd())}
        server.stdin.write(json.dumps({**request, "out": str(out), "err": str(err)}) + "\n")
        server.stdin.flush()
        if not select.select([server.stdout], [], [], timeout)[0]:
            server.kill()
            _server.cache_clear()
            raise subprocess.TimeoutExpired(words, timeout, out.read_text(), err.read_text())
        code = server.stdout.readline()
        if not code:
            _server.cache_clear()
            raise RuntimeError(
                f"the process that runs are forked from ended with exit code {server.wait()}: {err.read_text()}"
            )
        return subprocess.CompletedProcess(words, int(code), out.read_text(), err.read_text())
