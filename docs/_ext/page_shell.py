"""Run the code cells of a page in this process, and keep their outputs as Jupyter would.

Starting a Jupyter kernel costs the imports of every page again. A fork of a process that has imported everything costs
nothing, so pages run in an IPython shell of their own without a kernel. The differences to a kernel: output that
compiled code writes past ``sys.stdout`` is not kept, and there are no widgets.
"""

from __future__ import annotations

import base64
import os
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_output
from traitlets import Type
from traitlets.config import Config

LANGUAGE = {"name": "python", "pygments_lexer": "ipython3"}
MAY_FAIL = "raises-exception"  # the tag of a cell that shows an error


class PageError(Exception):
    """A cell of a page failed; the message holds its code and the traceback."""


class Outputs:
    """The outputs of one cell, in their order; neighbouring text of one stream is joined."""

    def __init__(self) -> None:
        self.found: list[NotebookNode] = []

    def stream(self, name: str) -> Any:
        """Return a file whose text becomes output of the stream ``stdout`` or ``stderr``."""
        return _Stream(self, name)

    def add_text(self, name: str, text: str) -> None:
        """Append text of a stream."""
        last = self.found[-1] if self.found else None
        if last is not None and last.output_type == "stream" and last.name == name:
            last.text += text
        elif text:
            self.found.append(new_output("stream", name=name, text=text))

    def add_bundle(self, kind: str, data: dict[str, Any], metadata: dict[str, Any], count: int | None = None) -> None:
        """Append what was displayed or returned, by MIME type."""
        texts = {mime: base64.b64encode(v).decode() if isinstance(v, bytes) else v for mime, v in data.items()}
        extra = {"execution_count": count} if kind == "execute_result" else {}
        self.found.append(new_output(kind, data=texts, metadata=metadata or {}, **extra))


class _Stream:
    encoding, errors = "utf-8", "strict"

    def __init__(self, outputs: Outputs, name: str) -> None:
        self._outputs, self._name = outputs, name

    def write(self, text: str) -> int:
        self._outputs.add_text(self._name, text)
        return len(text)

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True


class _Publisher(DisplayPublisher):
    def publish(self, data: Any, metadata: Any = None, source: Any = None, **_: Any) -> None:
        self.shell.outputs.add_bundle("display_data", data, metadata)

    def clear_output(self, wait: bool = False) -> None:
        self.shell.outputs.found.clear()


class _Hook(DisplayHook):
    def write_output_prompt(self) -> None:
        """Do nothing: the prompt is drawn by the page."""

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        self.shell.outputs.add_bundle("execute_result", format_dict, md_dict, self.prompt_count)

    def finish_displayhook(self) -> None:
        """Do nothing: there is no line to end."""


class PageShell(InteractiveShell):
    """An IPython shell that keeps outputs."""

    outputs: Outputs
    display_pub_class = Type(_Publisher)
    displayhook_class = Type(_Hook)

    def enable_gui(self, gui: Any = None) -> None:
        """Do nothing: pictures are kept, not shown."""

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        output = new_output("error", ename=etype.__name__, evalue=str(evalue), traceback=list(stb))
        self.outputs.found.append(output)


def run_notebook(notebook: NotebookNode) -> None:
    """Run all code cells in order and set their outputs and counts.

    Raises:
        PageError: If a cell without the tag ``raises-exception`` fails.
    """
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.xmode = "Context"
    with tempfile.TemporaryDirectory() as folder:
        shell = PageShell.instance(config=config, ipython_dir=folder)
        shell.outputs = Outputs()
        shell.run_line_magic("matplotlib", "inline")
        for cell in notebook.cells:
            if cell.cell_type == "code":
                _run_cell(shell, cell)
    notebook.metadata["language_info"] = from_dict(LANGUAGE)


def _run_cell(shell: PageShell, cell: NotebookNode) -> None:
    shell.outputs = outputs = Outputs()
    with redirect_stdout(outputs.stream("stdout")), redirect_stderr(outputs.stream("stderr")):
        result = shell.run_cell(cell.source, store_history=True)
    cell.outputs, cell.execution_count = outputs.found, result.execution_count
    if not result.success and MAY_FAIL not in cell.metadata.get("tags", []):
        trace = "\n".join(line for output in outputs.found for line in output.get("traceback", []))
        raise PageError(f"this cell fails:\n{cell.source}\n\n{trace}")
