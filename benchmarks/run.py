"""Run benchmarks one after the other: ``python -m benchmarks.run [names...] [--quick]``."""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks.common import FOLDER, NAMES
from benchmarks.tables import write_tables


def main() -> None:
    """Run the named benchmarks, each in a process of its own, and put their results into the README."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Measure speed and memory.")
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(NAMES)}; default: all of them")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, results under .benchmarks/quick/")
    parser.add_argument("--cuda", action="store_true", help="measure training on the GPU too")
    parser.add_argument("--tables", action="store_true", help="only rewrite the README's tables from the result files")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(NAMES))
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    failed = []
    for name in () if options.tables else options.names or NAMES:
        flags = [f"--{flag}" for flag in ("quick", "cuda") if getattr(options, flag)]
        print(f"== {name}", flush=True)
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *flags], cwd=FOLDER.parent).returncode:
            failed.append(name)
    if not options.quick:
        write_tables()
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; the messages are above")


if __name__ == "__main__":
    main()
