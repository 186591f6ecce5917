"""Run checks of claims: ``python -m benchmarks.claims [NAME ...]``."""

from __future__ import annotations

import argparse
import json
import sys

from benchmarks.claims.model import VERDICTS, Row, all_rows
from benchmarks.claims.running import RESULT_FILE, failed, rounded, run_row, write_results


def main() -> None:
    """Run the named checks (all by default), print what they found, and exit with 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.claims", description="Check claims about tables.")
    parser.add_argument("names", nargs="*", help="rows or their beginnings: graphbench/2/weather, graphbench/2, clrs")
    parser.add_argument("--list", action="store_true", help="list rows, verdicts and checks, and run nothing")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--fast", action="store_true", help="leave out checks that take more than some seconds")
    parser.add_argument("--write", action="store_true", help=f"write the results to {RESULT_FILE.name}")
    options = parser.parse_args()
    rows = all_rows()
    chosen = {name: row for name, row in rows.items() if _is_named(name, options.names)}
    if not chosen:
        parser.error(f"no row is called {', '.join(options.names)}; --list shows all {len(rows)}")
    if options.fast:
        chosen = {name: row for name, row in chosen.items() if not row.slow}
    if options.list:
        _list(chosen, as_json=options.json)
        return
    entries = {}
    for name, row in chosen.items():
        entries[name] = run_row(row)
        if options.write:
            write_results({name: entries[name]}, rows)
        if not options.json:
            _show(name, row, entries[name])
    if options.json:
        print(json.dumps(entries, indent=1, ensure_ascii=False))
    if failed(entries):
        sys.exit(f"no longer true: {', '.join(failed(entries))}")


def _is_named(name: str, beginnings: list[str]) -> bool:
    return not beginnings or any(name == start or name.startswith(f"{start.rstrip('/')}/") for start in beginnings)


def _list(rows: dict[str, Row], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({name: row.model_dump() for name, row in rows.items()}, indent=1, ensure_ascii=False))
        return
    for name, row in rows.items():
        print(f"{name:42} {VERDICTS[row.verdict]:15} {row.check}{' (slow)' if row.slow else ''}: {row.about}")


def _show(name: str, row: Row, entry: dict[str, object]) -> None:
    print(f"{name}: {entry['status']} ({VERDICTS[row.verdict]}), {entry['seconds']} s", flush=True)
    if "note" in entry:
        print(f"  {entry['note']}")
    values = entry["values"]
    assert isinstance(values, dict)
    for key, value in values.items():
        print(f"  {key}: {rounded(value)}")


if __name__ == "__main__":
    main()
