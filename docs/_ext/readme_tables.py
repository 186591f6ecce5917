"""Write the tables of domains and of scores into the README: ``python docs/_ext/readme_tables.py``."""

from __future__ import annotations

from domain_pages import domain_texts, domain_title
from markdown_text import code, number, table
from overview_text import by_domain
from readme_block import README, replaced
from task_text import task_cards

from graphbench.catalog.names import card as find_card
from graphbench.catalog.names import catalog
from graphbench.leaderboard import leaderboard_of
from graphbench.leaderboard.lite import lite_set
from graphbench.leaderboard.overview import Line, Scored, lines_of
from graphbench.records.files import load_records


def domains_table() -> str:
    """Return one line per domain: its question, where its data come from, its datasets, and the metrics."""
    rows = []
    for domain, families in by_domain(catalog().cards.values()).items():
        cards = [card for members in families.values() for card in members]
        metrics = dict.fromkeys(own.metrics.primary for card in cards for own in task_cards(card))
        texts, named = domain_texts()[domain], f"{len(cards)}: {code(f'{domain}/*')}"
        rows.append([domain_title(domain), texts["question"], texts["data"], named, ", ".join(map(code, metrics))])
    return table(["domain", "question", "data", "datasets", "ranked by"], rows)


def scores_table() -> str:
    """Return one line per dataset and protocol of the lite set, with the best score of every kind on the test split."""
    names = lite_set().datasets
    records = [record for record in load_records() if record.dataset in names]
    rows = [_scores(line) for line in lines_of(leaderboard_of(records))]
    return table(["dataset", "metric", "trivial", "classical", "trained here", "seeds", "published"], rows, range(2, 7))


def _scores(line: Line) -> list[str]:
    """Return the cells of a line; the best model of the class ``minutes`` is bold if it beats the published score."""
    row, ours, seeds = line.best.get("minutes"), "", ""
    if row is not None and row.trained:
        ours, seeds = f"{number(row.mean)} {code(row.model)}", str(len(row.seeds))
        ours = f"**{ours}**" if line.beats_published(row) else ours
    printed = _cell(line.published).removesuffix(line.unit.partition(" ")[2]).rstrip()
    if line.published is not None and line.published.apart:
        printed = f"({printed})"
    named = code(line.unit)
    if line.graphs is not None:
        named += f", {line.graphs:,} of {find_card(line.unit.split()[0]).split('test').count:,} samples"
    metric = f"{code(line.metric)} {'↑' if line.higher_is_better else '↓'}"
    return [named, metric, _cell(line.trivial), _cell(line.classical), ours, seeds, printed]


def _cell(scored: Scored | None) -> str:
    return "" if scored is None else f"{number(scored.value)} {scored.name}"


if __name__ == "__main__":
    text = README.read_text(encoding="utf-8")
    for name, content in (("datasets", domains_table()), ("scores", scores_table())):
        text = replaced(name, content, text)
    README.write_text(text, encoding="utf-8")
