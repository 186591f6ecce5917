"""The CLRS benchmark: thirty textbook algorithms that record every step (Velickovic et al., 2022).

``sample`` draws the arguments of an algorithm, ``trace`` runs it on arguments and returns inputs, hints and outputs.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphbench.domains.clrs.samplers import draw, draw_multi_size, least_length, sample, sampler
    from graphbench.domains.clrs.tracing import Trace, trace

_HOMES = {
    **dict.fromkeys(("Trace", "trace"), "tracing"),
    **dict.fromkeys(("draw", "draw_multi_size", "least_length", "sample", "sampler"), "samplers"),
}
__all__ = ["Trace", "draw", "draw_multi_size", "least_length", "sample", "sampler", "trace"]


def __getattr__(name: str) -> Any:
    """Import names on first use: generators look at this package and need none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
