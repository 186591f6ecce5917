"""Names of a package that load on first use (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(
    namespace: dict[str, Any], modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a package.

    Args:
        namespace: ``globals()`` of the package.
        modules: Exported name -> module that has it.
    """
    package = namespace["__name__"]

    def load(name: str) -> Any:
        """Load an exported name on first use."""
        if name not in modules:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}; it exports {', '.join(sorted(modules))}"
            )
        namespace[name] = value = getattr(import_module(modules[name]), name)
        return value

    def listed() -> list[str]:
        """Return the names of the module and the exported ones."""
        return sorted({*namespace, *modules})

    return load, listed
