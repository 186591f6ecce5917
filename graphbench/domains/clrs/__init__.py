"""The CLRS benchmark: thirty textbook algorithms that record every step (Velickovic et al., 2022).

``sample`` draws the arguments of an algorithm, ``trace`` runs it on arguments and returns inputs, hints and outputs.
"""

from graphbench.domains.clrs.tracing import Trace, trace

__all__ = ["Trace", "trace"]
