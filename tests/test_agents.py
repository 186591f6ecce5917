"""AGENTS.md is true: its programs and commands run, one after the other, in an empty folder."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from .warm import run_python

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "AGENTS.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.thorough
def test_every_program_and_command_runs(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "GRAPHBENCH_ROOT": str(tmp_path / "data"),
        "GRAPHBENCH_OWN": str(tmp_path / "own"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "NO_COLOR": "1",
    }
    ran = []
    for language, text in BLOCKS:
        if language in ("python", "yaml"):
            name = re.match(r"# file: (\S+)\n", text)
            assert name, f"a program of {PAGE.name} must begin with '# file: NAME':\n{text}"
            (tmp_path / name[1]).write_text(text, encoding="utf-8")
        elif language == "console":
            for line in text.splitlines():
                words = shlex.split(line.removeprefix("$ "))
                if words[0] == "export":
                    environment.update([words[1].split("=", 1)])
                    continue
                assert words[0] in ("graphbench", "python"), line
                call = ["-m", *words] if words[0] == "graphbench" else [tmp_path / words[1]]
                done = run_python(call, environment, tmp_path)
                assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
                ran.append((line, done.stdout))
    assert len(ran) >= 10
    outputs = dict(ran)
    assert "1 of 1 dataset accepted" in outputs["$ graphbench submit check my_submission"]
    assert "balanced_accuracy" in outputs["$ graphbench evaluate runs/mean_gcn --again balanced_accuracy"]


def test_the_named_targets_and_folders_exist() -> None:
    text = PAGE.read_text(encoding="utf-8")
    targets = re.findall(r"^([\w.$()/-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for target in re.findall(r"^make (\w+)", text, flags=re.MULTILINE):
        assert target in targets
    for folder in re.findall(r"`((?:graphbench|baselines|hpo|tests|docs|datasets)/[\w/.]*)`", text):
        assert (ROOT / folder).exists(), folder
