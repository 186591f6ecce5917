"""The programs of the page on other libraries run as they are printed."""

import re
from pathlib import Path

import pytest

import graphbench
import graphbench.interop

PAGE = Path(graphbench.__file__).resolve().parent.parent / "docs" / "interoperability.md"
SECTIONS = re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
PROGRAMS = {title: code for title, text in SECTIONS for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL)}


def test_every_adapter_has_a_program():
    assert len(PROGRAMS) == 6
    shown = " ".join(PROGRAMS.values())
    for name in graphbench.interop.__all__:
        assert name in shown or name == "GraphArrays", name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("title", PROGRAMS)
def test_the_program_runs(title, tmp_path, monkeypatch, capsys, tmp_path_factory):
    code = PROGRAMS[title]
    for needed in re.findall(r"^# needs: (.*)$", code, re.MULTILINE):
        for name in needed.split():
            pytest.importorskip(name)
    monkeypatch.setenv("GRAPHBENCH_ROOT", str(tmp_path_factory.getbasetemp() / "page-root"))
    monkeypatch.chdir(tmp_path)
    exec(compile(code, title, "exec"), {"__name__": "page"})
    assert capsys.readouterr().out
