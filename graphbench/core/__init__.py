"""Errors, files, processes, plug-ins and progress, on which all other packages build; independent of datasets."""
