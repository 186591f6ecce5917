"""What the page of a dataset says of the tasks that share its graphs, and of their labels, as Markdown."""

from __future__ import annotations

from markdown_text import code, joined, table, with_deviation

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature


def task_cards(card: Card) -> list[Card]:
    """Return one card per task; of a card without tasks, the card itself."""
    return [card.with_task(name) for name in card.tasks] or [card]


def all_features(card: Card) -> list[Feature]:
    """Return the features of the graphs, and those of all labels."""
    labels = [feature for spec in card.labels.values() for feature in spec.features]
    return [*card.graphs.features, *labels] if labels else list(card.features)


def tasks_table(card: Card) -> str:
    """Return one line per task: what it asks for, and how its models are ranked."""
    rows = [
        [
            code(own.address),
            card.tasks[name].summary,
            own.task.type,
            joined(feature.name for feature in own.outputs),
            code(own.metrics.primary),
            joined(own.metrics.also),
        ]
        for name, own in zip(card.tasks, task_cards(card), strict=True)
    ]
    head = ["dataset", "asked for", "kind", "label", "ranked by", "also reported"]
    return "All tasks share the graphs.\n\n" + table(head, rows)


def labels_table(card: Card) -> str:
    """Return the effort of every labeller, in the splits where it is the same."""
    rows = []
    for name, spec in card.labels.items():
        usual = [split for split in card.all_splits if split not in spec.splits]
        rows.append([code(name), joined(usual), _effort(spec.effort)])
        rows += [[code(name), code(split), _effort({**spec.effort, **own})] for split, own in spec.splits.items()]
    note = "Labels are found by solvers. What these may spend on a graph is counted in steps, so that labels are the"
    return f"{note} same everywhere.\n\n" + table(["labeller", "splits", "effort per graph"], rows)


def _effort(effort: dict[str, object]) -> str:
    items = effort.items()
    return ", ".join(f"{key} = {value:,}" if isinstance(value, int) else f"{key} = {value}" for key, value in items)


def label_statistics(card: Card) -> str:
    """Return one table per labeller: the means of its labels, and how many are proved."""
    if card.measured is None or not card.measured.labels:
        return ""
    parts = ["Labels, measured on the given number of graphs of every split:"]
    for name, facts in card.measured.labels.items():
        names = list(dict.fromkeys(key for values in facts.statistics.values() for key in values))
        rows = [
            [code(split), f"{facts.statistics_samples[split]:,}", *(with_deviation(*values[key]) for key in names)]
            for split, values in facts.statistics.items()
        ]
        rows.sort(key=lambda row: [code(split) for split in card.all_splits].index(row[0]))
        parts.append(f"**{code(name)}**")
        parts.append(table(["split", "graphs", *names], rows, right=range(1, 2 + len(names))))
    return "\n\n".join(parts)
