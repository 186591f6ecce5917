"""Small pieces of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([*_<>\[\]$])")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Return a Markdown table; columns whose numbers are in ``right`` are right-aligned."""
    aligned = set(right)
    rule = ["---:" if i in aligned else ":---" for i in range(len(header))]
    lines = [list(header), rule, *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: object) -> str:
    """Return text as inline code."""
    return f"`{text}`"


def plain(text: str) -> str:
    """Return text with Markdown's special characters escaped, except in inline code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else _SPECIAL.sub(r"\\\1", part) for part in parts)


def joined(names: Iterable[str], empty: str = "none") -> str:
    """Return names as inline code, separated by commas."""
    return ", ".join(code(name) for name in names) or empty


def number(value: float) -> str:
    """Return a score or an average: four decimals below 10, else four significant digits, whole numbers as such."""
    if float(value).is_integer():
        return f"{value:,.0f}"
    if abs(value) >= 1000:
        return f"{value:,.1f}"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:#.4g}"


def with_deviation(mean: float, deviation: float | None) -> str:
    """Return ``mean ± deviation`` with as many decimals as the mean; the mean alone where there is no deviation."""
    if not deviation:
        return number(mean)
    decimals = len(number(mean).partition(".")[2]) or 2
    return f"{mean:,.{decimals}f} ± {deviation:,.{decimals}f}"
