"""Write the table of datasets into the README: ``python docs/_ext/readme_tables.py``."""

from __future__ import annotations

from markdown_text import code, table
from overview_text import by_domain, sizes, task
from readme_block import README, replaced

from graphbench.catalog.names import catalog


def datasets_table() -> str:
    """Return one line per family of the catalogue."""
    rows = []
    for families in by_domain(catalog().cards.values()).values():
        for members in families.values():
            first = members[0]
            names = ", ".join(code(card.id.split("/", 1)[1]) for card in members)
            rows.append([first.summary.rstrip("."), task(first), sizes(first), code(first.metrics.primary), names])
    return table(["question", "asked for", "nodes: train; test; larger", "metric", "datasets"], rows)


if __name__ == "__main__":
    README.write_text(replaced("datasets", datasets_table(), README.read_text(encoding="utf-8")), encoding="utf-8")
