"""The programs of the page on other libraries run as they are printed."""

import re
import sys
from pathlib import Path

import pytest

import graphbench
import graphbench.interop.huggingface
from graphbench.core.errors import MissingDependency

PAGE = Path(graphbench.__file__).resolve().parent.parent / "docs" / "interoperability.md"
SECTIONS = re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
PROGRAMS = {title: code for title, text in SECTIONS for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL)}


def test_every_adapter_has_a_program():
    assert len(PROGRAMS) == 7
    shown = " ".join(PROGRAMS.values())
    for name in graphbench.interop.__all__:
        assert name in shown or name == "GraphArrays", name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("title", PROGRAMS)
def test_the_program_runs(title, tmp_path, monkeypatch, capsys, tmp_path_factory):
    code = PROGRAMS[title]
    for needed in re.findall(r"^# needs: (.*)$", code, re.MULTILINE):
        for name in needed.split():
            pytest.importorskip({"datasets": "datasets.features"}.get(name, name))  # our folder datasets/ is no library
    monkeypatch.setenv("GRAPHBENCH_ROOT", str(tmp_path_factory.getbasetemp() / "page-root"))
    monkeypatch.chdir(tmp_path)
    exec(compile(code, title, "exec"), {"__name__": "page"})
    assert capsys.readouterr().out


def test_a_folder_named_datasets_is_not_taken_for_the_library(tmp_path, monkeypatch):
    (tmp_path / "datasets").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.split(".")[0] == "datasets"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", sys)
    place = graphbench.interop.huggingface
    try:
        library, _ = place._libraries()
    except MissingDependency as error:
        assert "pip install 'graphbench[hf]'" in str(error)
    else:
        assert hasattr(library, "Dataset")
