"""The text of the page of one dataset: everything its card says, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from claims_text import findings
from code_panel import panel
from markdown_text import code, joined, number, plain, table, with_deviation
from records import records_of
from sample_drawing import candidates
from task_text import all_features, label_statistics, labels_table, task_cards, tasks_table

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature, Kind, Location
from graphbench.catalog.resources import baselines_dir, read_yaml
from graphbench.data.build.generation import draw_samples
from graphbench.data.components.domain import find, rules_of
from graphbench.data.components.rules import Rule
from graphbench.evaluation.metrics import METRICS
from graphbench.evaluation.shares import class_shares, share_names
from graphbench.records.aggregates import aggregate
from graphbench.records.published import PublishedScore, published
from graphbench.reports.beside import beside
from graphbench.reports.comparison import notes_on
from graphbench.tasks.registry import task_class

STATISTICS = "published/statistics"
STORED = {
    Kind.SCALAR: "float32",
    Kind.MASK: "uint8, 0 or 1",
    Kind.MASK_ONE: "uint8, one 1 per graph",
    Kind.CATEGORICAL: "smallest integer",
    Kind.POINTER: "smallest integer",
    Kind.PERMUTATION: "smallest integer",
    Kind.TEXT: "UTF-8 bytes and offsets",
}


def page(card: Card, picture: str | None = None, sample_index: int = 0) -> str:
    """Return the Markdown page of a dataset, with the picture of one training graph where there is one."""
    parts = [
        f"# {page_title(card)}",
        _index(card),
        f"{code(card.id)}, version {card.version}. {card.summary}",
        card.description or "",
        "" if picture is None else _figure(card, picture, sample_index),
        _first_texts(card) if any(feature.kind is Kind.TEXT for feature in card.inputs) else "",
        _loading(card),
        panel(card),
        "## Tasks" if card.tasks else "",
        tasks_table(card) if card.tasks else "",
        "## Features and metrics",
        _features(card),
        "" if card.links is None else f"{card.links.words().capitalize()}. Numbers of edges include hidden ones.",
        _representations(card),
        labels_table(card) if card.tasks else "",
        "## Splits",
        _splits(card),
        "## Parameters",
        _parameters(card),
        "## Statistics",
        _statistics(card),
        label_statistics(card) if card.tasks else "",
        "## Trivial predictors",
        _floor(card),
        *_findings(card),
        "## Reference solvers" if card.solvers else "",
        _solvers(card) if card.solvers else "",
        "## Published and measured results",
        _results(card),
        "## Source, licence and names",
        _source(card),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def page_title(card: Card) -> str:
    """Return the heading of a dataset's page."""
    return card.title if card.variant is None else f"{card.title} ({card.variant})"


def _index(card: Card) -> str:
    """Return the entries of the index, by which the search finds the page: all names of the dataset, and its title."""
    own = card.id.split("/", 1)[1]
    names = dict.fromkeys([card.id, own, card.family, *card.aliases, card.title.lower().replace(",", "")])
    return "```{index} " + ", ".join(f"! {name}" for name in names) + "\n```"


def page_name(card: Card) -> str:
    """Return the file name of a dataset's page, without its ending."""
    return card.id.replace("/", "-")


def is_text(card: Card) -> bool:
    """Return whether a dataset's inputs are texts alone."""
    return bool(card.inputs) and all(feature.kind is Kind.TEXT for feature in card.inputs)


def _first_texts(card: Card) -> str:
    """Return the texts of the first training sample, as they are."""
    values = draw_samples(card, "train", np.arange(1)).values
    names = [f.name for f in card.features if f.kind is Kind.TEXT and f.location is Location.GRAPH]
    shown = "\n\n".join(f"{name}:\n\n{values[name].strings()[0].strip()}" for name in names)
    return f"The texts of the first training sample:\n\n```text\n{shown}\n```"


def _figure(card: Card, picture: str, index: int) -> str:
    label = joined(f.name for f in card.outputs)
    if card.hints:
        return (
            f":::{{figure}} {picture}\n:alt: Hints of one training trajectory of {card.id} over time\n"
            f":class: gb-sample\n:width: 100%\n\nThe first training trajectory: one row per step, one column per node. "
            f"The outputs are {label}.\n:::"
        )
    return (
        f":::{{figure}} {picture}\n:alt: One training graph of {card.id} with its label highlighted\n"
        f":class: gb-sample\n:width: 100%\n\nTraining graph {index}, drawn from the card: "
        f"one of the sparser ones among the first {candidates(card)}. The label is {label}.\n:::"
    )


def _loading(card: Card) -> str:
    small = [path.stem for path in sorted((baselines_dir() / card.domain).glob("*_small.yaml"))]
    model = "gin_small" if "gin_small" in small else small[0] if small else ""
    train = f"\n$ graphbench train {card.id} --model {model}" if model else ""
    return f"""```python
import graphbench

splits = graphbench.Loader("{card.id}", limit=1000).load()
{_first_look(card)}
evaluator = graphbench.Evaluator("{card.id}")
```

```console
$ graphbench info {card.id}{train}
```"""


def _first_look(card: Card) -> str:
    if card.hints:
        return "next(iter(splits.train.batches(32)))  # a TrajectoryBatch: inputs, hints over time, outputs"
    if is_text(card):
        return "splits.train[0].prompt, splits.train[0].reference"
    return "splits.train[0]  # a PyTorch Geometric Data object"


def _features(card: Card) -> str:
    listed = _features_table(all_features(card))
    if is_text(card):
        return (
            f"{listed}\n\nA sample has as many nodes as its problem size, and no edges. Models are ranked by "
            f"{code(card.metrics.primary)}."
        )
    kind = "directed; every arc is stored once" if card.directed else "undirected; every edge is stored once, u < v"
    metrics = f" Models are ranked by {code(card.metrics.primary)}; also reported: {joined(card.metrics.also)}."
    note = f"Graphs are {kind}.{'' if card.tasks else metrics}"
    named = "".join(f"\n\nClasses of {code(name)}: {_numbered(words)}." for name, words in card.classes.items())
    named += "".join(f"\n\nColumns of {code(name)}: {_numbered(words)}." for name, words in card.channels.items())
    return f"{listed}\n\n{note}{named}"


def _features_table(features: Iterable[Feature]) -> str:
    """Return one line per feature: its stage, location and type, its meaning, and how its values are stored."""
    head = ["feature", "stage", "location", "type", "meaning", "stored as"]
    rows = [
        [code(f.name), f.stage.value, f.location.value, code(f.type_name), plain(f.meaning), STORED[f.kind]]
        for f in features
    ]
    return table(head, rows)


def _representations(card: Card) -> str:
    """Return the features of every graph representation of the dataset, under its address; empty without any."""
    parts = []
    for name, representation in card.representations.items():
        address = f"{card.id}:<task>@{name}" if card.tasks else f"{card.id}@{name}"
        head = ["feature", "location", "type", "meaning"]
        rows = [[code(f.name), f.location.value, code(f.type_name), plain(f.meaning)] for f in representation.features]
        parts.append(f"{code(address)}, {plain(representation.title)}:\n\n{table(head, rows)}")
    return "\n\n".join(["The same samples as other graphs, which have other features:", *parts]) if parts else ""


def _numbered(words: Sequence[str]) -> str:
    return ", ".join(f"{number} {word}" for number, word in enumerate(words))


# --------------------------------------------------------------------------------------------------------------------
# Splits and parameters


def _splits(card: Card) -> str:
    scalars = [key for key in _keys(card) if not _is_mapping(card, key)]
    rows = []
    for name, spec in card.all_splits.items():
        values = [_value(spec.parameters.get(key)) for key in scalars]
        rows.append([code(name), f"{spec.count:,}", *values, spec.shift or ""])
    head = ["split", "graphs", *(code(key) for key in scalars), "differs from training by"]
    return table(head, rows, right=range(1, 2 + len(scalars)))


def _parameters(card: Card) -> str:
    meanings = parameter_meanings(card)
    parts = [f"Generator {code(card.generator)}. Every value below is on the card; nothing is hidden in code."]
    listed = [f"- {code(key)}: {text}" for key, text in meanings.items() if key in _keys(card)]
    parts.append("\n".join(listed))
    parts += [_mapping_table(card, key) for key in _keys(card) if _is_mapping(card, key)]
    return "\n\n".join(part for part in parts if part)


def parameter_meanings(card: Card) -> dict[str, str]:
    """Return parameter -> meaning, from the ``Attributes`` sections of the generator's parameter model."""
    model = find("generator", card.generator).parameters
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        text = (cls.__doc__ or "").partition("Attributes:")[2]
        for line in text.splitlines():
            name, colon, meaning = line.strip().partition(": ")
            if colon and name in model.model_fields:
                found[name] = meaning.replace("->", "→")
    return found


def _keys(card: Card) -> list[str]:
    return list(dict.fromkeys(key for spec in card.all_splits.values() for key in spec.parameters))


def _is_mapping(card: Card, key: str) -> bool:
    values = [spec.parameters[key] for spec in card.all_splits.values() if key in spec.parameters]
    return all(isinstance(value, Mapping) for value in values)


def _mapping_table(card: Card, key: str) -> str:
    """Return a table of a parameter that is a mapping: one column per group of splits that share its value."""
    groups: list[tuple[list[str], Mapping[str, Any]]] = []
    for name, spec in card.all_splits.items():
        value = spec.parameters.get(key, {})
        for names, known in groups:
            if known == value:
                names.append(name)
                break
        else:
            groups.append(([name], value))
    rows = list(dict.fromkeys(row for _, value in groups for row in value))
    body = [[code(row), *(_value(value.get(row)) for _, value in groups)] for row in rows]
    return table([code(key), *(", ".join(names) for names, _ in groups)], body)


def _value(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {_value(inner)}" for name, inner in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_value(inner) for inner in value) + "]"
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else f"{value}"


# --------------------------------------------------------------------------------------------------------------------
# Numbers


def published_statistics(root: Path | None = None) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return dataset id -> (where it is printed, the printed row), from ``baselines/published/statistics``."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for path in sorted(((root or baselines_dir()) / STATISTICS).glob("*.yaml")):
        content = read_yaml(path)
        where = f"{content['paper'].split(':')[0]}, table {content['table']}"
        found |= {name: (where, dict(row)) for name, row in content["rows"].items()}
    return found


def _statistics(card: Card) -> str:
    where, printed = published_statistics().get(card.id, ("", {}))
    ours = card.measured.statistics if card.measured is not None else {}
    if not ours and not printed:
        return "Not measured yet: `graphbench verify --update` writes these numbers next to the card."
    known = list(dict.fromkeys(name for values in ours.values() for name in values)) or ["nodes", "edges"]
    shares = share_names(card.features, known)
    names = [name for name in known if not any(name in own for own in shares.values())]
    published_names = [name for name in names if any(name in (printed.get(split) or {}) for split in card.all_splits)]
    different = card.measured.different if card.measured is not None else {}
    counted = list(dict.fromkeys(what for found in different.values() for what in found))
    rows = []
    for split in card.all_splits:
        counts = [f"{different.get(split, {}).get(what, '-')}" for what in counted]
        own = [with_deviation(*ours[split][name]) if name in ours.get(split, {}) else "-" for name in names]
        theirs = printed.get(split, {})
        largest = [_largest(feature, own_names, ours.get(split, {})) for feature, own_names in shares.items()]
        printed_ones = [number(theirs[n]) if n in theirs else "" for n in published_names]
        rows.append([code(split), *own, *printed_ones, *counts, *largest])
    numbers = ["split", *names, *(f"{name}, published" for name in published_names)]
    numbers += [f"different {what}" for what in counted]
    head = [*numbers, *(f"largest class of {code(feature)}" for feature in shares)]
    text = table(head, rows, right=range(1, len(numbers)))
    counted = "prompts of this dataset" if is_text(card) else "graphs of this dataset, every undirected edge once"
    notes = [f"Mean ± standard deviation over {counted}."]
    if not ours:
        notes = ["Our own statistics are not measured yet (`graphbench verify --update`)."]
    if printed:
        notes.append(f"Published: {where}; averages of the published files, which were drawn by other code.")
    if printed.get("edge_directions", 1) == 2:
        notes.append("The published edge counts of this dataset appear to count both directions.")
    return f"{text}\n\n{' '.join(notes)}"


def _largest(feature: str, names: Sequence[str], measured: Mapping[str, tuple[float, float]]) -> str:
    return str(class_shares(feature, {name: measured[name][0] for name in names})) if measured else "-"


def _floor(card: Card) -> str:
    cards = [own for own in task_cards(card) if any(own.floor.values())]
    if not cards:
        return "Not measured yet: `graphbench verify --update` writes these numbers next to the card."
    parts = []
    for own in cards:
        primary = own.metrics.primary
        direction = "higher" if METRICS[primary].higher_is_better else "lower"
        who = f"{code(own.address)}: scores" if card.tasks else "Scores"
        rules = rules_of(own)
        kind = task_class(own.task.type).floor_predictors + (", and of structural rules" if rules else "")
        parts.append(f"{who} of {kind}, in {code(primary)} ({direction} is better).")
        parts.append(_scores_table(own, own.floor, "predictor"))
        parts.append(_rules(rules))
    return "\n\n".join([_what_to_beat(cards), *(part for part in parts if part)])


def _what_to_beat(cards: Sequence[Card]) -> str:
    """Return what a score says that is no better than those of the trivial predictors."""
    if not any(card.task.rules for card in cards):
        return "A model that does not beat the best of them has learned nothing."
    return (
        "A model that does not beat the predictors that see labels only has learned nothing. A structural rule reads "
        "the graph, as models do, and learns nothing: a model that does not beat the rule has shown no more than the "
        "rule."
    )


def _rules(rules: Mapping[str, Rule]) -> str:
    """Return the structural rules in words, as a list; empty if there are none."""
    return "\n".join(f"- {code(name)}: {rule.description}" for name, rule in rules.items())


def _findings(card: Card) -> list[str]:
    """Return heading and statements on the dataset that have a check; empty where there are none."""
    stated = findings(card.id)
    where = (
        "Each statement has a check, which fails when the statement stops being true. [The published tables]"
        "(../../published_tables.md) have them beside printed numbers."
    )
    return ["## Findings", where, stated] if stated else []


def _solvers(card: Card) -> str:
    basis = task_class(card.task.type).solver_basis()
    note = f"Scores in {code(card.metrics.primary)} of solvers, each of which {basis}: what can be reached, and how."
    return f"{note}\n\n" + _scores_table(card, card.solvers, "solver")


def _scores_table(card: Card, scores: Mapping[str, Mapping[str, Mapping[str, float]]], head: str) -> str:
    primary, splits = card.metrics.primary, [s for s in card.all_splits if s in scores]
    names = list(dict.fromkeys(name for split in splits for name in scores[split]))
    rows = [[code(name), *(_score(scores[split].get(name, {}).get(primary)) for split in splits)] for name in names]
    rows.append([f"*{task_class(card.task.type).samples} scored*", *(_scored(card, split) for split in splits)])
    return table([head, *splits], rows, right=range(1, 1 + len(splits)))


def _scored(card: Card, split: str) -> str:
    """Return on how many samples of a split the measured scores rest: all, some, or an unknown number."""
    count, whole = card.measured_scores.scored_samples.get(split), card.split(split).count
    if count is None:
        return "unknown"
    return f"all {count:,}" if count == whole else f"{count:,} of {whole:,}"


def _score(value: float | None) -> str:
    return "-" if value is None else number(value)


def _results(card: Card) -> str:
    cards = task_cards(card)
    rows = [(own, row) for own in cards for row in (*_published_rows(own), *_measured_rows(own))]
    if not rows:
        return "No paper prints a score of this dataset, and no run of it is recorded yet."
    head, lines = ["split", "model", "metric", "score", "seeds", "source"], [row for _, row in rows]
    if card.tasks:
        head, lines = ["task", *head], [[code(own.task_name), *row] for own, row in rows]
    text = table(head, lines, right=(len(head) - 3, len(head) - 2))
    printed = [score for own in cards for score in published(own.address)]
    notes = [f"{paper.split(':')[0]} was read in {version}." for paper, version in _versions(printed).items()]
    notes += notes_on(printed)
    notes += [
        "Runs marked *small* were given far less training than the published ones; they are not comparable."
    ] * any("*small*" in row[-1] for row in lines)
    return text + "".join(f"\n\n{note}" for note in notes)


def _versions(printed: Sequence[PublishedScore]) -> dict[str, str]:
    """Return paper -> the version that scores were read in, of papers whose version is stated."""
    return {score.paper: score.version for score in printed if score.version}


def _published_rows(card: Card) -> list[list[str]]:
    return [
        [
            code(score.split),
            score.model,
            score.metric,
            "out of time" if score.value is None else with_deviation(score.value, score.std),
            "" if score.seeds is None else str(score.seeds),
            f"published ({score.reference})",
        ]
        for score in published(card.address)
    ]


def _measured_rows(card: Card) -> list[list[str]]:
    runs = aggregate(records_of(card.address))
    metric = card.metrics.primary
    rows, shown = [], {split: beside(card, split, runs) for split in card.all_splits}
    for run in runs:
        source = f"measured, {run.label}" + (" (*small*)" if run.small else "")
        for split in card.all_splits:
            score = run.score(split, metric)
            if score is not None:
                value = with_deviation(score.mean, score.std)
                note = shown[split].note(run)
                where = f"{source}, {note}" if note else source
                rows.append([code(split), run.model, metric, value, str(score.n), where])
    return rows


# --------------------------------------------------------------------------------------------------------------------
# Where it comes from


def _source(card: Card) -> str:
    source = card.source
    tables = f", tables {', '.join(map(str, source.tables))}" if source.tables else ""
    section = f", section {source.section}" if source.section else ""
    rows = [
        ["source", f"{source.paper}{section}{tables}"],
        ["citation", source.citation or "-"],
        ["licence of the data", card.licence],
        ["aliases", joined(card.aliases)],
        ["groups", joined(card.all_groups)],
        ["data folder", code(f"{card.id}/v{card.version}-{_fingerprint(card)}")],
    ]
    if source.url:
        rows.insert(2, ["address", source.url])
    text = table(["", ""], rows)
    if source.deviations:
        listed = "\n".join(f"- {line}" for line in source.deviations)
        text += f"\n\n### Deviations from the source\n\n{listed}"
    return text


def _fingerprint(card: Card) -> str:
    return card.fingerprint(find("generator", card.generator).version)
