"""One class per kind of failure, all under :class:`GraphBenchError`.

Every message names the fault, the offending value and the remedy.
"""

from __future__ import annotations


class GraphBenchError(Exception):
    """Base class of every error the package raises on purpose."""


class ArgumentError(GraphBenchError, ValueError, TypeError):
    """An argument has the wrong type or a value out of range; it can be caught as ValueError or TypeError, too."""


class UnknownName(GraphBenchError, KeyError):
    """No entry of a catalogue or registry has the name; the message suggests the nearest one."""

    def __str__(self) -> str:
        """Return the message itself (``KeyError`` would show its ``repr``)."""
        return str(self.args[0]) if self.args else ""


class UnknownDataset(UnknownName):
    """No dataset, alias, group or glob matches the selector."""


class UnknownModel(UnknownName):
    """No model or processor of that name exists."""


class CardError(GraphBenchError, ValueError):
    """A dataset card is malformed: unknown key, missing key, or a value its generator refuses."""


class ConfigError(GraphBenchError, ValueError):
    """A model or training configuration is malformed."""


class PluginError(GraphBenchError, ValueError):
    """A plug-in cannot be loaded or registers a name that is taken; the message names the plug-in."""


class InstallationError(GraphBenchError, ImportError):
    """The installed files are mixed with the files of another package; the message says how to mend it."""


class MissingDependency(GraphBenchError, ImportError):
    """An optional package or system tool is needed and absent; the message names the command that installs it."""


class StoreError(GraphBenchError, OSError):
    """The dataset folder cannot be read or written (permissions, disk space, a damaged file)."""


class ChecksumMismatch(StoreError):
    """A stored file does not match the checksum of its manifest: it was changed or damaged."""


class DataImportError(GraphBenchError, ValueError):
    """Graphs of the user's own cannot become a dataset; the message names the graph, the column and the remedy."""


class GenerationError(GraphBenchError, RuntimeError):
    """A generator failed or a worker died while building a dataset."""


class SolverError(GraphBenchError, RuntimeError):
    """An external solver exceeded a guard of memory or time, crashed or gave a wrong answer; its run has no result."""


class FormulaError(GraphBenchError, ValueError):
    """A file of a formula is malformed or too large; the message gives the file and the line."""


class CircuitError(GraphBenchError, ValueError):
    """A circuit, its file or a truth table is malformed or too large; the message gives the file and the line."""


class ClusterError(GraphBenchError, RuntimeError):
    """A Dask cluster cannot be reached or used, or was lost; finished work is kept, and another run continues it."""


class EvaluationError(GraphBenchError, ValueError):
    """Predictions or targets cannot be scored: wrong shape, NaN, missing graphs, empty input."""


class DecodingError(EvaluationError):
    """Scores cannot be turned into a solution, or a solution violates its problem's constraints: it is not scored."""


class TrainingError(GraphBenchError, RuntimeError):
    """Training cannot go on: the loss is no longer finite or the device is out of memory."""


class CheckpointError(GraphBenchError, RuntimeError):
    """A checkpoint cannot be used: it is damaged or belongs to another run."""


class ResultError(GraphBenchError, ValueError):
    """A result record or a published-numbers file is malformed."""


class VerificationError(GraphBenchError, AssertionError):
    """A dataset or model failed its conformance checks."""


class TuningError(GraphBenchError, RuntimeError):
    """A tuning run cannot start or go on: its folder is in use or damaged, or its cluster was lost."""
