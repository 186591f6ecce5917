"""Errors, files, processes, plug-ins and progress, on which all other packages build; independent of datasets."""

from graphbench.core.installation import check_installation

check_installation()  # here, as it must run even where the other package's graphbench/__init__.py replaced this one's
