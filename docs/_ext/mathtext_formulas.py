"""Sphinx extension: formulas as inline SVG, set by matplotlib when the pages are built; nothing is fetched later."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from html import escape
from io import BytesIO
from typing import Any

import matplotlib
from docutils import nodes
from matplotlib import mathtext
from matplotlib.font_manager import FontProperties
from sphinx.application import Sphinx

COLOUR = "#010203"  # stands for the colour of the surrounding text
POINTS, PER_EM = 12.0, 0.92  # size of the letters in points, and how large they stand in the text


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer ``mathtext``."""
    app.add_html_math_renderer("mathtext", (visit_inline, None), (visit_display, None))
    return {"version": "1", "parallel_read_safe": True}


def visit_inline(translator: Any, node: nodes.Element) -> None:
    """Write a formula within a line, its baseline on that of the text."""
    translator.body.append(svg(node.astext()))
    raise nodes.SkipNode


def visit_display(translator: Any, node: nodes.Element) -> None:
    """Write a displayed formula; ``\\qquad`` separates formulas, which may stand below each other on a small screen."""
    parts = "".join(f"<span>{svg(part)}</span>" for part in node.astext().split("\\qquad"))
    translator.body.append(f'<div class="gb-formulas">{parts}</div>\n')
    raise nodes.SkipNode


@cache
def svg(formula: str) -> str:
    """Return a formula as an inline SVG element.

    Raises:
        ValueError: If matplotlib cannot set the formula; the message shows where it stops.
    """
    text = " ".join(formula.split())
    file = BytesIO()
    style = {"svg.fonttype": "path", "mathtext.fontset": "stix", "svg.hashsalt": text, "savefig.facecolor": "none"}
    with matplotlib.rc_context(style):
        depth = mathtext.math_to_image(f"${text}$", file, FontProperties(size=POINTS), 72, "svg", color=COLOUR)
    drawn = file.getvalue().decode()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL).replace(COLOUR, "currentColor")
    drawn = re.sub(r"(fill|stroke): none; opacity: 0", r"\1: none", drawn)
    drawn = _unique_ids(drawn, text)
    width, height = (float(x) for x in re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"', drawn).groups())  # type: ignore[union-attr]
    em = PER_EM * 1.12 / POINTS
    size = f"width:{width * em:.3f}em;height:{height * em:.3f}em;vertical-align:{-depth * em:.3f}em"
    head = f'<svg class="gb-math" role="img" aria-label="{escape(text)}" style="{size}"'
    return re.sub(r'<svg[^>]*?(viewBox="[^"]*")[^>]*>', lambda m: f"{head} {m[1]}>", drawn, count=1, flags=re.DOTALL)


def _unique_ids(drawn: str, text: str) -> str:
    """Return the drawing with unique ids, so that one page can show several of them."""
    mark = hashlib.sha256(text.encode()).hexdigest()[:8]
    drawn = re.sub(r'id="([^"]+)"', rf'id="{mark}-\1"', drawn)
    return re.sub(r'"#([^"]+)"', rf'"#{mark}-\1"', drawn)
