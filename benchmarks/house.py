"""Counts of the source: how many files a run enters, how deep it calls, how large rooms are, which words are used.

Run ``python -m benchmarks.house`` in a checkout; ``--checkout`` names another one to count, such as one of an older
commit, and ``--output`` a JSON file. Every count is a number that a change of the architecture should lower.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOCUMENTED = (ast.Module, ast.ClassDef, *_FUNCTIONS)
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")

_TRACED_RUN = """
import json, os, sys, threading
from pathlib import Path

package, folder = str(Path(sys.argv[1]).resolve() / "graphbench") + os.sep, sys.argv[2]
entered, depths = set(), []


def is_own(frame):
    return frame.f_code.co_filename.startswith(package)


def is_in_loop(frame):
    return frame.f_code.co_filename.endswith(os.path.join("training", "loop.py"))


importing = 0  # modules whose bodies are being run: what they call is no part of the run


def on_call(frame, event, argument):
    global importing
    if frame.f_code.co_name == "<module>":
        importing += {"call": 1, "return": -1}.get(event, 0)
    if event != "call" or importing or not is_own(frame):
        return
    name = frame.f_code.co_filename
    entered.add(name)
    if frame.f_code.co_name == "forward" and f"{os.sep}processors{os.sep}" in name:
        between, scoring, outer = 0, False, frame.f_back
        while outer is not None and not (is_in_loop(outer) and outer.f_code.co_name == "run"):
            nested = outer.f_code.co_name == "forward" and f"{os.sep}processors{os.sep}" in outer.f_code.co_filename
            between, scoring = between + is_own(outer), scoring or outer.f_code.co_name == "score_split"
            outer = None if nested else outer.f_back
        if outer is not None and scoring:
            depths.append(between)


import graphbench


sys.setprofile(on_call)
threading.setprofile(on_call)
graphbench.train(
    "algoreas/mst_easy", "gin_small", steps=4, limit=16, root=folder, output=Path(folder) / sys.argv[3],
    progress=False, evaluate=["val", "test"],
    overrides={"training.batch_size": 8, "training.eval_every": 2, "training.warmup": 1},
)
sys.setprofile(None)
print(json.dumps({"files": sorted(n.removeprefix(package) for n in entered), "frames": max(depths, default=0)}))
"""


def source_files(checkout: Path) -> list[Path]:
    """Return the Python files of the package in a checkout."""
    return sorted((checkout / "graphbench").rglob("*.py"))


def lines_outside_domains(checkout: Path) -> int:
    """Return the number of lines of the package outside ``domains/``."""
    return sum(len(_lines(file)) for file in source_files(checkout) if "domains" not in file.parts)


def short_files(checkout: Path, limit: int = 40) -> list[str]:
    """Return the files below a number of lines that are no ``__init__.py``, outside ``domains/``."""
    files = (f for f in source_files(checkout) if f.name != "__init__.py" and "domains" not in f.parts)
    return [str(file.relative_to(checkout)) for file in files if len(_lines(file)) < limit]


def imports_of_domains(checkout: Path) -> list[str]:
    """Return the modules outside ``domains`` and the finder of domains that import ``graphbench.domains``."""
    allowed = ("graphbench/domains/", "graphbench/data/components/", "graphbench/data/domain.py")
    importing = []
    for file in source_files(checkout):
        name = str(file.relative_to(checkout))
        modules = [m for node in ast.walk(_tree(file)) for m in _imported(node)]
        if not name.startswith(allowed) and any(module.startswith("graphbench.domains") for module in modules):
            importing.append(name)
    return importing


def long_signatures(checkout: Path, least: int = 12) -> list[str]:
    """Return the functions with many parameters, ``self`` not counted."""
    long = []
    for file in source_files(checkout):
        for node in ast.walk(_tree(file)):
            if isinstance(node, _FUNCTIONS):
                names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                if len([name for name in names if name not in ("self", "cls")]) >= least:
                    long.append(f"{file.relative_to(checkout)}:{node.name}")
    return long


def assignments_to(checkout: Path, name: str) -> int:
    """Return how often a name is assigned in the package."""
    stores = (
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for file in source_files(checkout)
        for node in ast.walk(_tree(file))
    )
    return sum(stores)


def share_of_word(checkout: Path, word: str) -> float:
    """Return how often a word occurs per 10,000 words of docstrings."""
    words = [w.lower() for file in source_files(checkout) for text in _docstrings(file) for w in _WORD.findall(text)]
    return 10_000 * words.count(word) / len(words)


def hidden_fields(checkout: Path) -> list[str]:
    """Return the fields of ``Card`` that files do not hold (``exclude=True``)."""
    for node in ast.walk(_tree(checkout / "graphbench" / "catalog" / "cards.py")):
        if isinstance(node, ast.ClassDef) and node.name == "Card":
            fields = (item for item in node.body if isinstance(item, ast.AnnAssign) and item.value is not None)
            return [ast.unparse(f.target) for f in fields if "exclude=True" in ast.unparse(f.value or f.target)]
    return []


def traced_run(checkout: Path) -> dict[str, object]:
    """Return the files that one small run enters, and the frames between the training loop and the processor."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(checkout.resolve()), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-c", _TRACED_RUN, str(checkout.resolve()), folder]
        for name in ("first", "second"):  # the first one generates the data
            done = subprocess.run(
                [*command, name], env=environment, cwd=folder, capture_output=True, text=True, check=True
            )
    traced: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return traced


def counts(checkout: Path) -> dict[str, object]:
    """Return all counts of a checkout by name."""
    run = traced_run(checkout)
    files = run["files"]
    assert isinstance(files, list)
    return {
        "files entered by one run of mst_easy": len(files),
        "frames between the loop and the processor in validation": run["frames"],
        "modules outside domains that import graphbench.domains": len(imports_of_domains(checkout)),
        "hidden fields of Card": len(hidden_fields(checkout)),
        "lines outside domains": lines_outside_domains(checkout),
        "'those' per 10,000 words of docstrings": round(share_of_word(checkout, "those"), 1),
        "assignments to found": assignments_to(checkout, "found"),
        "functions with 12 or more parameters": len(long_signatures(checkout)),
        "files under 40 lines": len(short_files(checkout)),
    }


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def _docstrings(file: Path) -> Iterator[str]:
    for node in ast.walk(_tree(file)):
        if isinstance(node, _DOCUMENTED):
            yield ast.get_docstring(node) or ""


def main() -> None:
    """Print the counts of a checkout, and write them to a file if one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, default=Path(), help="root of the checkout to count")
    parser.add_argument("--output", type=Path, help="JSON file to write")
    arguments = parser.parse_args()
    measured = counts(arguments.checkout)
    width = max(map(len, measured))
    print("\n".join(f"{name:{width}}  {value}" for name, value in measured.items()))
    if arguments.output is not None:
        arguments.output.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
