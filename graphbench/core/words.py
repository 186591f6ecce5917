"""Human-readable numbers, durations and sizes."""

from __future__ import annotations

from collections.abc import Sequence

_THOUSAND = 1e3


def counted(count: object, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 seed``, ``2,000 seeds``; ``plural`` is for nouns that take no ``s``."""
    text = f"{count:,}" if isinstance(count, int) else str(count)
    return f"{text} {noun}" if count == 1 else f"{text} {plural or noun + 's'}"


def first_of(items: Sequence[object], most: int) -> str:
    """Return the first items as text, with dots where there are more: ``3, 17, ...``."""
    return ", ".join(map(str, items[:most])) + (", ..." if len(items) > most else "")


def seed_text(seed: int, data_seed: int) -> str:
    """Return a seed, with the draw of the data unless it is the canonical one: ``3``, ``3 of draw 1``."""
    return f"{seed} of draw {data_seed}" if data_seed else f"{seed}"


def duration(seconds: float) -> str:
    """Return a readable duration: seconds below two minutes, minutes below two hours, else hours."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def human_number(value: float, digits: int = 3) -> str:
    """Return a number in at most four characters and a suffix, e.g. ``12.3k``; ``digits`` (at most 3) from 1,000 on."""
    if abs(value) >= _THOUSAND:
        value = float(f"{value:.{digits}g}")
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (_THOUSAND, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{suffix}"
    return f"{value:.3g}"


def human_bytes(count: float) -> str:
    """Return a readable number of bytes, e.g. ``188 MB`` (powers of 1000)."""
    for limit, suffix in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= limit:
            return f"{count / limit:.3g} {suffix}"
    return f"{count:.0f} B"


def fact_text(mean: float, deviation: float) -> str:
    """Return ``mean ± deviation`` of a measured fact; a deviation that is rounding of equal numbers is 0."""
    rounding = deviation <= 1e-12 * abs(mean)
    return f"{mean:.4g} ± {0 if rounding else deviation:.3g}"
