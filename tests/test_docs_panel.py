"""The panel "Your code" of a dataset's page offers what exists, and its lines run."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import sys
from html import unescape
from pathlib import Path

import pytest

import graphbench
from graphbench.catalog.names import catalog
from graphbench.cli import main
from graphbench.training.config import load_config

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs" / "_ext"))
code_panel = importlib.import_module("code_panel")


@pytest.mark.thorough
def test_every_dataset_with_models_has_a_panel_of_models_that_fit():
    without = []
    for card in catalog().cards.values():
        text = code_panel.panel(card)
        if not text:
            without.append(card.id)
            continue
        facts = json.loads(unescape(re.search(r'data-facts="([^"]+)"', text)[1]))
        assert facts["addresses"][0].startswith(card.id)
        for model in facts["models"]:
            load_config(facts["addresses"][0], model, family=card.family)
        for address in facts["addresses"]:
            graphbench.card(address)
    assert not without


def test_the_shown_lines_are_the_first_choices():
    card = graphbench.card("mst_easy")
    shown = unescape(re.search(r"<pre>(.*?)</pre>", code_panel.panel(card), re.DOTALL)[1])
    assert shown.startswith(
        "graphbench train algoreas/mst_easy --model gin_small --output runs/mine \\\n    --steps 20"
    )


@pytest.mark.parametrize("language", sorted(code_panel.TEMPLATES))
@pytest.mark.thorough
def test_the_lines_run(language, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRAPHBENCH_ROOT", str(tmp_path / "data"))
    facts = code_panel.panel_facts(graphbench.card("bridges_easy"))
    text = code_panel.filled(facts, "algoreas/bridges_easy", "gin_small", language, quick=True)
    if language == "Python":
        exec(text, {})
    else:
        for line in text.replace("\\\n", " ").splitlines():
            try:
                main(shlex.split(line)[1:])
            except SystemExit as end:
                assert not end.code, line
    assert "f1" in capsys.readouterr().out
