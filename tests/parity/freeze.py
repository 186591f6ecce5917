"""Write what the parity tests compare with. Needed only where a mended defect or new arithmetic changes a number."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from cases import CASES, FROZEN, RUNS, facts_of, machine, run, search
from spaces import freeze_spaces

NEVER_KEPT = (".lock", "tensorboard")


def main(names: list[str]) -> None:
    """Freeze the named cases, or all."""
    FROZEN.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "data"
        for name, case in CASES.items():
            if names and name not in names:
                continue
            output = Path(folder) / "runs" / name
            facts = facts_of(run(case, root, output))
            facts["record"].pop("replicates", None)  # as in the comparison
            _write(name, facts)
            if case.kept:
                shutil.rmtree(RUNS / name, ignore_errors=True)
                shutil.copytree(output, RUNS / name, ignore=shutil.ignore_patterns(*NEVER_KEPT))
        if not names or "search" in names:
            _write("search", {"trials": search(root, Path(folder) / "search")})
    if not names or "spaces" in names:
        freeze_spaces()


def _write(name: str, facts: dict[str, object]) -> None:
    text = json.dumps({"machine": machine(), **facts}, indent=1) + "\n"
    (FROZEN / f"{name}.json").write_text(text, encoding="utf-8")
    print(f"froze {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
