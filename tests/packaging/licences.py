"""Write THIRD_PARTY.md: the licences of everything that graphbench and its extras install (``make licences``).

The licences are those that the installed packages state in their metadata: ``License-Expression``, else ``License`` if
it is one line, else their classifiers.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

from environments import REPOSITORY, Workshop, run

TARGET = REPOSITORY / "THIRD_PARTY.md"
NOT_SHIPPED = ("dev", "docs", "browser")  # what only developers install
COPYLEFT = re.compile(r"\bA?L?GPL|General Public|\bMPL|Mozilla|\bEPL|Eclipse|EUPL|CC-BY-SA", re.IGNORECASE)
KINDS = {
    "copyleft": COPYLEFT,
    "proprietary": re.compile("proprietary|nvidia", re.IGNORECASE),
    "unknown": re.compile("^not stated"),
}
NOTES = {
    "copyleft": "Licences with copyleft, or with it as one of several choices; the packages are used unchanged",
    "proprietary": "Proprietary, free of charge",
    "unknown": "No licence in the metadata; the package has a file of it",
}
HEAD = """# Third-party licences

graphbench is licensed under Apache-2.0 and contains no code of the packages below; `pip` installs them beside it. The
table is made from the metadata of the installed packages (`make licences`; {count} packages, Python 3.11 on Linux with
the CPU build of PyTorch). *Installed by* names the extras that bring a package; `graphbench` means every installation.
On Linux, `pip install torch` from the package index brings NVIDIA's CUDA libraries, too, which are proprietary and free
of charge.

{notes}
- Compiled programs inside a package may have licences of their own beside that of the package, which its files state:
  Yosys and ABC in pyosys, SCIP in pyscipopt, HiGHS in highspy and chszlablib, Kissat in passagemath-kissat, the solvers
  of python-sat and gbdc, OpenBLAS and the GCC runtime in numpy and scipy.

| package | version | licence | installed by |
| :--- | :--- | :--- | :--- |
"""
DUMP = r"""
import importlib.metadata as metadata, json
found = {}
for d in metadata.distributions():
    m = d.metadata
    found[m["Name"].lower().replace("_", "-")] = {
        "name": m["Name"], "version": d.version, "expression": m["License-Expression"], "licence": m["License"],
        "classifiers": [c for c in m.get_all("Classifier") or [] if c.startswith("License ::")],
        "requires": d.requires or [],
    }
print(json.dumps(found))
"""
CLOSURE = r"""
import json, sys
from packaging.requirements import Requirement
found, roots = json.load(open(sys.argv[1]))

def closure(lines, extras=("",)):
    names, todo = set(), [(line, extras) for line in lines]
    while todo:
        line, wanted = todo.pop()
        r = Requirement(line)
        if r.marker and not any(r.marker.evaluate({"extra": e}) for e in wanted):
            continue
        name = r.name.lower().replace("_", "-").replace(".", "-")
        key = next((k for k in found if k.replace(".", "-") == name), None)
        own = ("", *r.extras)
        if key is None or (key, own) in names:
            continue
        names.add((key, own))
        todo += [(line, own) for line in found[key]["requires"]]
    return sorted({key for key, _ in names})

print(json.dumps({root: closure(lines) for root, lines in roots.items()}))
"""


def licence(facts: dict[str, Any]) -> str:
    """Return the licence that a package states."""
    if facts["expression"]:
        return str(facts["expression"])
    stated = (facts["licence"] or "").strip()
    named = [c.split(" :: ")[-1] for c in facts["classifiers"] if c != "License :: OSI Approved"]
    if stated and "\n" not in stated and len(stated) < 80 and stated.lower() not in ("unknown", "other"):
        return stated
    return ", ".join(named) or (stated.splitlines()[0].strip() if stated else "not stated in its metadata")


def table(found: dict[str, dict[str, Any]], installed_by: dict[str, list[str]]) -> str:
    """Return the page."""
    by: dict[str, list[str]] = defaultdict(list)
    for root, names in installed_by.items():
        for name in names:
            by[name].append(root)
    rows: list[str] = []
    marked: dict[str, list[str]] = {"copyleft": [], "proprietary": [], "unknown": []}
    for name in sorted(by):
        stated = licence(found[name])
        who = ["graphbench"] if "graphbench" in by[name] else by[name]
        rows.append(
            f"| {found[name]['name']} | {found[name]['version']} | {stated.replace('|', '/')} | {', '.join(who)} |"
        )
        for kind, pattern in KINDS.items():
            if pattern.search(stated):
                marked[kind].append(f"{found[name]['name']} ({stated}; {', '.join(who)})")
    notes = "\n".join(f"- {NOTES[kind]}: {'; '.join(names) or 'none'}." for kind, names in marked.items())
    return HEAD.format(count=len(rows), notes=notes) + "\n".join(rows) + "\n"


def main() -> None:
    """Install everything, read the metadata, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="keep the environment there; default a temporary folder")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="graphbench-licences-"))
    shop = Workshop(folder)
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = {name: lines for name, lines in project["optional-dependencies"].items() if name not in NOT_SHIPPED}
    python = shop.environment("licences", "3.11")
    words = [word for extra in extras for word in ("--extra", extra)]
    constraints = ("--constraint", REPOSITORY / "constraints.txt")
    shop.install(python, "packaging", *constraints, "-r", REPOSITORY / "pyproject.toml", *words)
    found = json.loads(run(python, "-c", DUMP))
    roots = {"graphbench": project["dependencies"], **extras}
    (folder / "roots.json").write_text(json.dumps([found, roots]))
    installed_by = json.loads(run(python, "-c", CLOSURE, folder / "roots.json"))
    TARGET.write_text(table(found, installed_by))
    sys.stdout.write(f"wrote {TARGET}\n")
    if given.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
