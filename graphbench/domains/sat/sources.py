"""The file sources of the SAT domain."""

from __future__ import annotations

from collections.abc import Mapping

from graphbench.data.components.file_sources import FileSource
from graphbench.domains.sat.aslib_source import ASLIB
from graphbench.domains.sat.conflict_graphs import CONFLICTS
from graphbench.domains.sat.formula_files import FILES

SOURCES: Mapping[str, FileSource] = {"files": FILES, "aslib": ASLIB, "conflicts": CONFLICTS}
