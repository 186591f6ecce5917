"""Formulas take the colour of the text around them, on no ground of their own: they are read in dark mode."""

import importlib
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="pip install '.[docs]'")
sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))
mathtext_formulas = importlib.import_module("mathtext_formulas")


@pytest.mark.parametrize("formula", ["a", r"\sqrt{a(1-a)/n}", r"\dfrac{2\,TP}{2\,TP + FP + FN}"])
def test_a_formula_has_the_colour_of_the_text_alone(formula):
    drawn = mathtext_formulas.svg(formula)
    assert set(re.findall(r"(?:fill|stroke): *([^;\"]+)", drawn)) == {"none", "currentColor"}
    assert not re.search(r"#[0-9a-f]{6}\b|opacity", drawn)
