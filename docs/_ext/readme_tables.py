"""Write the table of domains into the README: ``python docs/_ext/readme_tables.py``."""

from __future__ import annotations

from domain_pages import domain_texts, domain_title
from markdown_text import code, table
from overview_text import by_domain
from readme_block import README, replaced
from task_text import task_cards

from graphbench.catalog.names import catalog


def domains_table() -> str:
    """Return one line per domain: its question, where its data come from, its datasets, and the metrics."""
    rows = []
    for domain, families in by_domain(catalog().cards.values()).items():
        cards = [card for members in families.values() for card in members]
        metrics = dict.fromkeys(own.metrics.primary for card in cards for own in task_cards(card))
        texts, named = domain_texts()[domain], f"{len(cards)}: {code(f'{domain}/*')}"
        rows.append([domain_title(domain), texts["question"], texts["data"], named, ", ".join(map(code, metrics))])
    return table(["domain", "question", "data", "datasets", "ranked by"], rows)


if __name__ == "__main__":
    README.write_text(replaced("datasets", domains_table(), README.read_text(encoding="utf-8")), encoding="utf-8")
