"""The generators of the domain: converters, and goals of designs."""

from __future__ import annotations

from collections.abc import Mapping

from graphbench.data.components.generators import Generator
from graphbench.domains.circuits.converter_generator import CONVERTERS
from graphbench.domains.circuits.design_generator import DESIGNS

GENERATORS: Mapping[str, Generator] = {"converters": CONVERTERS, "designs": DESIGNS}
