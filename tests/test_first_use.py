"""First use: the libraries that commands leave out, and the line that announces compiling."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from graphbench.core.progress import announce

COMMAND = """
import sys
sys.argv[1:] = {words!r}
from graphbench.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code
print("imported", *({{name for name in ("torch", "torch_geometric")}} & set(sys.modules)))
"""
TOY = """
from graphbench.core.kernels import announce_compiling, before_compiling, inner, kernel

@inner
def inside(x):
    return x + 1

@kernel
def outside(x):
    return inside(x) * inside(2)

def run():
    with before_compiling(lambda: print("compiling")):
        assert outside(1) == 6
        assert outside(1.0) == 6
    announce_compiling()  # outside a block nobody listens
    print(len(inside.overloads))
"""
LOAD = """
import graphbench
graphbench.Loader("algoreas/mst_easy", limit=4, root={root!r}, workers=1, progress={progress}).load("train")
"""


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env: Mapping[str, str] = {**os.environ, **variables}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)


@pytest.mark.parametrize("words", [["list"], ["info", "mst_easy"], ["generate", "mst_easy", "--limit", "4"]])
def test_commands_that_make_no_tensor_import_neither_torch_nor_pyg(words: list[str], tmp_path: Path) -> None:
    last = run(COMMAND.format(words=words), GRAPHBENCH_ROOT=str(tmp_path)).stdout.splitlines()[-1]
    assert last == "imported"


def test_compiling_is_announced_once_and_not_for_cached_kernels(tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text(TOY)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    outputs = [run("import toy; toy.run()", NUMBA_CACHE_DIR=str(tmp_path), PYTHONPATH=path).stdout for _ in range(2)]
    assert outputs[0].splitlines() == ["compiling", "2"]  # for int64 and float64, and not again for the constant 2
    assert outputs[1].splitlines() == ["0"]  # cached kernels compile nothing


@pytest.mark.parametrize(("enabled", "lines"), [(True, "compiling\n"), (False, ""), (None, "")])
def test_announcements_obey_the_option_for_progress(
    enabled: bool | None, lines: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "graphbench.core.progress")
    announce("compiling", enabled)
    assert capsys.readouterr().err == lines
    assert caplog.messages == (["compiling"] if enabled is None else [])  # the log where there is no terminal


@pytest.mark.slow
def test_the_first_load_says_that_it_compiles_and_the_second_one_is_silent(tmp_path: Path) -> None:
    texts = []
    for name, progress in (("a", True), ("b", True), ("c", False)):
        cache = tmp_path / ("cache" if progress else "other cache")
        code = LOAD.format(root=str(tmp_path / name), progress=progress)
        texts.append(run(code, NUMBA_CACHE_DIR=str(cache)).stderr)
    assert texts[0].count("mst_easy: compiling kernels") == 1
    assert "compiling" not in texts[1]
    assert texts[2] == ""
