"""The command line: ``graphbench list | info | generate | verify | train | evaluate | report``."""

from __future__ import annotations

from graphbench.cli.app import main

__all__ = ["main"]
