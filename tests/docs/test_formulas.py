"""Formulas take the colour of the text around them, on no ground of their own: they are read in dark mode."""

import importlib
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="pip install '.[docs]'")
DOCS = Path(__file__).parents[2] / "docs"
sys.path.insert(0, str(DOCS / "_ext"))
mathtext_formulas = importlib.import_module("mathtext_formulas")


@pytest.mark.parametrize("formula", ["a", r"\sqrt{a(1-a)/n}", r"\dfrac{2\,TP}{2\,TP + FP + FN}"])
def test_a_formula_has_the_colour_of_the_text_alone(formula):
    drawn = mathtext_formulas.svg(formula)
    assert set(re.findall(r"(?:fill|stroke): *([^;\"]+)", drawn)) == {"none", "currentColor"}
    assert not re.search(r"#[0-9a-f]{6}\b|opacity", drawn)


def _formulas() -> list[str]:
    """Return the formulas of all written pages, without code: those between dollar signs."""
    found = []
    for page in sorted(DOCS.glob("*.md")):
        text = re.sub(
            r"^(```+|:::+)\{?.*?^\1|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
        )
        displayed = re.findall(r"^\$\$(.*?)\$\$", text, flags=re.DOTALL | re.MULTILINE)
        found += [part for block in displayed for part in block.split("\\qquad")]
        text = re.sub(r"^\$\$.*?\$\$", "", text, flags=re.DOTALL | re.MULTILINE)
        found += re.findall(r"(?<![\\\w$])\$(?![\s\d])([^$\n]+?)(?<!\s)\$(?![\w$])", text)
    return found


def test_every_formula_of_the_pages_can_be_set():
    formulas = _formulas()
    assert len(formulas) > 20
    for formula in formulas:
        assert mathtext_formulas.svg(formula).startswith("<svg")
