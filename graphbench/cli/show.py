"""The output of commands: tables for people, JSON for scripts."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from graphbench.catalog.cards import Card
from graphbench.catalog.names import card as card_of
from graphbench.catalog.names import list_datasets
from graphbench.cli.printing import console, new_table, print_json, print_line, print_table, root_folder
from graphbench.cli.show_scores import score_text
from graphbench.core.errors import CardError, CheckpointError, ResultError, StoreError
from graphbench.core.words import fact_text, human_bytes, human_number
from graphbench.data.components.domain import rules_of
from graphbench.data.store.layout import Manifest
from graphbench.evaluation.references import measured_references
from graphbench.training.config import models_for

if TYPE_CHECKING:
    from graphbench.leaderboard.best import BestScore
    from graphbench.training.weights.files import WeightsFile
    from graphbench.verification import Verification

logger = logging.getLogger(__name__)

_KINDS = {"solver": "reference"}  # a solver that knows the task, or what a domain compares with
_SMALL = 1e-3  # scores below are shown with three digits
_WIDE = 12  # most metrics that are shown beside each other
_SHOWN_WHOLE = 10_000  # larger numbers of nodes are rounded
_LISTED = 24  # classes or channels whose names are all listed
_MARKS = {"": "green", "skipped": "dim", "noted": "yellow"}  # of checks that passed


def _files(card: Card, root: Path) -> dict[str, dict[str, Any]]:
    """Return split -> facts of the largest finished file on this machine, and of the files of labels."""
    if not (root / card.id).is_dir():  # nothing is there, and no generator need be imported to know it
        return {}
    from graphbench.data.store.layout import dataset_folder, label_folder

    try:
        folder = dataset_folder(card, root)
    except CardError as error:  # of one dataset, while others are asked for, too
        logger.warning("%s", error)
        return {}
    largest = _largest_files(folder)
    labels = [_largest_files(label_folder(card, labeller, folder)) for labeller in card.labellers]
    for split in largest if labels else ():
        if all(split in files for files in labels):
            largest[split]["labels"] = [files[split] for files in labels]
    return largest


def _largest_files(folder: Path) -> dict[str, dict[str, Any]]:
    largest: dict[str, dict[str, Any]] = {}
    try:
        files = Manifest(folder).read()["files"]
    except StoreError as error:  # of one dataset, while others are asked for, too
        logger.warning("%s", error)
        return largest
    for name, facts in files.items():
        if (folder / name).is_file() and facts["count"] > largest.get(facts["split"], {"count": 0})["count"]:
            largest[facts["split"]] = {**facts, "file": str(folder / name)}
    return largest


def task_of(card: Card) -> str:
    """Return a task in words, e.g. ``edge mask`` or ``2 x graph scalar``."""
    kinds = Counter(f"{f.location.value} {f.type_name}" for f in card.outputs)
    return ", ".join(kind if count == 1 else f"{count} x {kind}" for kind, count in kinds.items())


def datasets(selector: Sequence[str] | None, root: Path | None, as_json: bool) -> None:
    """Print the table of datasets, with a line for every task of a dataset that has several."""
    cards = {name: card_of(name) for name in list_datasets(selector or None)}
    if not as_json:
        cards = {
            representation.address: representation
            for name, card in cards.items()
            for representation in _representations(name, card)
        }
    here = {name: _files(card, root_folder(root)) for name, card in cards.items()}
    if as_json:
        print_json(
            [
                {
                    "id": name,
                    "title": c.title,
                    "task": task_of(c),
                    **({"tasks": list(c.tasks)} if c.tasks else {}),
                    "metric": c.metrics.primary,
                    "splits": {split: s.count for split, s in c.all_splits.items()},
                    "generated": {split: facts["count"] for split, facts in here[name].items()},
                    "aliases": list(c.aliases),
                    "groups": list(c.all_groups),
                }
                for name, c in cards.items()
            ]
        )
        return
    stored = ("here",) if any(here.values()) else ()
    table = new_table("id", "task", "metric", "graphs", "nodes", *stored)
    for name, c in cards.items():
        counts = "/".join(human_number(c.splits[s].count, digits=2) for s in ("train", "val", "test"))
        generated = [_generated(here[name])] if stored else []
        table.add_row(name, task_of(c), c.metrics.primary, counts, _sizes(c), *generated)
    print_table(table)
    ids = {c.id for c in cards.values()}
    number = "1 dataset" if len(ids) == 1 else f"{len(ids)} datasets"
    print_line(
        f"\n{number}; graphs: train/val/test. Root: {root_folder(root)}. Details: graphbench info <id>",
        "dim",
    )


def _representations(name: str, card: Card) -> list[Card]:
    """Return the cards of all tasks, where there are several and none was named."""
    return [card] if ":" in name or not card.tasks else [card.with_task(task) for task in card.tasks]


def _sizes(card: Card) -> str:
    """Return the graph sizes from training to the largest test, e.g. ``16-512``."""
    nodes = [n for split in card.all_splits if (n := card.nodes(split)) is not None]
    if not nodes:
        return "-"
    smallest, largest = (f"{n:.0f}" if n < _SHOWN_WHOLE else human_number(n) for n in (min(nodes), max(nodes)))
    return smallest if smallest == largest else f"{smallest}-{largest}"


def _generated(files: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the size of the files on this machine."""
    if not files:
        return "-"
    of_labels = (label_file for facts in files.values() for label_file in facts.get("labels", ()))
    return human_bytes(sum(facts["bytes"] for facts in (*files.values(), *of_labels)))


def card(name: str, root: Path | None, as_json: bool, data_seed: int = 0, **files: Any) -> None:
    """Print one card, after checking that it fits its generator and metrics; ``files`` as for ``sourced_card``."""
    from graphbench.data.components.source_choice import sourced_card
    from graphbench.records.published import published
    from graphbench.reports.published_files import is_of_files
    from graphbench.verification import check_card

    c = sourced_card(card_of(name).with_data_seed(data_seed), **files, root=root)
    check_card(c)
    files = _files(c, root_folder(root))
    numbers = [] if is_of_files(c) else published(c.address)
    if as_json:
        content = {**c.model_dump(mode="json"), "data_seed": c.data_seed}
        content["files"] = files
        content["published"] = [p.model_dump(mode="json") for p in numbers]
        content["models"] = models_for(c)
        content["weights"] = [{"model": f.facts.model, "seed": f.facts.seed, "file": str(f.path)} for f in _weights(c)]
        print_json(content)
        return
    draw = f"  data seed {c.data_seed}" if c.data_seed else ""
    print_line(Text.assemble((c.address, "bold"), f"  version {c.version}{draw}  {c.title}"))
    console().print(c.summary)
    if c.description:
        console().print(c.description, style="dim")
    if c.tasks:
        print_line("")
        print_table(_tasks(c))
    print_line("")
    print_table(_features(c))
    print_line("")
    print_table(_splits(c, files))
    print_line("")
    facts = list(_facts(c))
    width = max(10, *(len(label) for label, _ in facts)) + 1
    for label, text in facts:
        print_line(f"{label:<{width}}{text}")
    if c.floor or numbers:
        print_line("")
        print_table(_numbers(c, numbers))


def _facts(c: Card) -> list[tuple[str, str]]:
    """Return the labels and texts of the facts below the tables of a card."""
    source = [c.source.paper]
    if c.source.section:
        source.append(f"section {c.source.section}")
    if c.source.tables:
        source.append(f"tables {', '.join(map(str, c.source.tables))}")
    return [
        *_label_facts(c),
        *(("classes", f"{name}: {_numbered(words)}") for name, words in c.classes.items()),
        *(("channels", f"{name}: {_numbered(words)}") for name, words in c.channels.items()),
        *(
            ("representation", f"{c.id}@{name}: {representation.title}")
            for name, representation in c.representations.items()
        ),
        *_series_facts(c),
        *([] if c.links is None else [("links", f"{c.links.words()}; numbers of edges include hidden ones")]),
        ("generator", c.generator),
        ("task type", c.task.type),
        *(("parameters", line) for line in _parameters(c)),
        ("shift", _shifts(c)),
        *_different_ones(c),
        ("metric", c.metrics.primary + (f" (also {', '.join(c.metrics.also)})" if c.metrics.also else "")),
        *(("part", f"{name}: |{part.output}| > {part.above:g}") for name, part in c.metrics.parts.items()),
        *(("rule", f"{name}: {rule.description}") for name, rule in rules_of(c).items()),
        ("aliases", ", ".join(c.aliases) or "none"),
        ("groups", ", ".join(c.all_groups)),
        *_bar_facts(c),
        *_model_facts(c),
        *_weights_facts(c),
        ("licence", c.licence),
        ("source", ", ".join(source)),
        *([("cite", c.source.citation)] if c.source.citation else []),
        *(("deviation", line) for line in c.source.deviations),
    ]


def _bar_facts(c: Card) -> list[tuple[str, str]]:
    """Return in a line what a model has to beat on the test split, for each protocol of the records."""
    from graphbench.leaderboard.bar import bar
    from graphbench.leaderboard.best import best
    from graphbench.records.files import load_records
    from graphbench.reports.published_files import is_of_files
    from graphbench.reports.tables import metric_head

    if is_of_files(c):  # scores of other data
        return []
    try:
        best_scores = best(records=load_records(c.address, skip_malformed=True)).get(c.address, [])
    except ResultError:  # no folder of results in this checkout
        best_scores = []
    lines = []
    protocols: Sequence[BestScore | None] = best_scores or [None]
    for best_score in protocols:
        marks = [
            f"{_KINDS.get(mark.kind, mark.kind)} {score_text(mark.value)} ({mark.name}{_of_samples(mark.samples)})"
            for mark in bar(c, best_score)
        ]
        protocol = "" if best_score is None or best_score.protocol is None else f", {best_score.protocol}"
        if marks:
            lines.append(("bar", f"{metric_head(c.metrics.primary)} on test{protocol}: {', '.join(marks)}"))
    return lines


def _of_samples(count: int | None) -> str:
    return "" if count is None else f", {count:,} scored"


def _model_facts(c: Card) -> list[tuple[str, str]]:
    """Return the configurations whose models can serve the dataset, the one that is trained by default first."""
    default, *others = models_for(c) or [""]
    return [("models", ", ".join([f"{default} (default)", *others]))] if default else []


def _weights_facts(c: Card) -> list[tuple[str, str]]:
    """Return the models whose weights are stored, with their seeds and sizes."""
    texts = [f"{file.facts.model} (seed {file.facts.seed}, {human_bytes(file.size)})" for file in _weights(c)]
    return [("weights", ", ".join(texts))] if texts else []


def _weights(c: Card) -> list[WeightsFile]:
    """Return the files of weights of a dataset; a file that cannot be read gives a warning."""
    from graphbench.training.weights.files import rows

    try:
        return [file for _, file in rows(c.address)]
    except CheckpointError as error:
        logger.warning("%s", error)
        return []


def _series_facts(c: Card) -> list[tuple[str, str]]:
    """Return the facts of a series: its times, its changes and its graph."""
    if c.series is None:
        return []
    changes = ", ".join(f"{output} is that of {state}" for output, state in c.series.changes.items())
    parameters = ", ".join(f"{name} {value}" for name, value in c.series.parameters.items())
    graph = f"{c.series.topology} ({parameters})" if parameters else c.series.topology
    return [("series", f"a sample is a time and the one {c.series.lead} later; {changes}; one graph: {graph}")]


def _tasks(c: Card) -> Table:
    """Return the tasks of a card, the shown one marked."""
    table = new_table("dataset", "task", "type", "metric", "labels")
    for name, task in c.tasks.items():
        shown = " *" if name == c.task_name else ""
        table.add_row(f"{c.id}:{name}{shown}", task.title, task.type, task.metrics.primary, ", ".join(task.labels))
    return table


def _label_facts(c: Card) -> list[tuple[str, str]]:
    rows = [("task", c.tasks[str(c.task_name)].summary)] if c.labellers else []
    for name in c.labellers:
        spec = c.labels[name]
        of_splits = (f"{split}: {_effort(split_effort)}" for split, split_effort in spec.splits.items())
        effort = "; ".join([_effort(spec.effort), *of_splits])
        measured = c.measured.labels.get(name) if c.measured is not None else None
        means = measured.statistics.get("test", {}) if measured is not None else {}
        means_text = ", ".join(f"{name} {fact_text(*fact)}" for name, fact in means.items())
        count = measured.statistics_samples.get("test") if measured is not None else None
        means_text += "" if count is None else f" (mean ± deviation of the first {count:,})"
        rows += [("labels", f"{name}, effort on every graph: {effort}")] if spec.effort else [("labels", name)]
        rows += [("in test", means_text)] if means_text else []
    return rows


def _effort(effort: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value:,}" if type(value) is int else f"{key} {value}" for key, value in effort.items())


def _numbered(words: Sequence[str]) -> str:
    listed = [f"{number} {word}" for number, word in enumerate(words)]
    return ", ".join(listed if len(listed) <= _LISTED else [*listed[:3], "...", listed[-1]])


def _features(c: Card) -> Table:
    """Return one line per feature; without the column of meanings if the card gives none."""
    described = any(f.meaning for f in c.features)
    table = new_table("feature", "stage", "at", "type", *(["meaning"] if described else []))
    for f in c.features:
        row = f.name, f.stage.value, f.location.value, f.type_name
        table.add_row(*row, *([f.meaning] if described else []))
    return table


def _splits(c: Card, files: Mapping[str, Mapping[str, Any]]) -> Table:
    table = new_table(
        "split", "graphs", "nodes", "mean edges", "on this machine", right=("graphs", "nodes", "mean edges")
    )
    statistics = c.measured.statistics if c.measured else {}
    shared = None
    if c.series is not None:
        from graphbench.data.components.domain import topology_of

        shared = topology_of(c)
    for name, spec in c.all_splits.items():
        edges = f"{statistics[name]['edges'][0]:.1f}" if name in statistics else "-"
        nodes = "-" if (n := c.nodes(name)) is None else f"{n:g}"
        if shared is not None:
            nodes, edges = str(shared.num_nodes[0]), str(shared.num_edges[0])
        table.add_row(name, f"{spec.count:,}", nodes, edges, _file_words(files.get(name)))
    return table


def _different_ones(c: Card) -> list[tuple[str, str]]:
    """Return how many different things the splits to test on are made of, where that is counted."""
    different = c.measured.different if c.measured is not None else {}
    tested = {split: counts for split, counts in different.items() if split not in ("train", "val")}
    texts = [
        f"{split}: {', '.join(f'{count:,} {what}' for what, count in tested[split].items())}"
        for split in c.all_splits
        if split in tested
    ]
    return [("different", "; ".join(texts))] if texts else []


def _shifts(c: Card) -> str:
    """Return in words which splits differ from training, and how."""
    shifts: dict[str, list[str]] = {}
    for name, spec in c.all_splits.items():
        if spec.shift:
            shifts.setdefault(spec.shift, []).append(name)
    return "; ".join(f"{', '.join(names)}: {shift}" for shift, names in shifts.items()) or "none"


def _parameters(c: Card) -> list[str]:
    """Return the generator's parameters of every split: in full, or their differences from another split."""
    flat = {name: _flat(spec.parameters) for name, spec in c.all_splits.items()}
    texts: dict[str, list[str]] = {}
    for position, (name, parameters) in enumerate(flat.items()):
        changes = {"": list(parameters.items())}
        for other, known in list(flat.items())[:position]:
            changes[other] = [
                (key, parameters.get(key, "absent"))
                for key in {**parameters, **known}
                if parameters.get(key) != known.get(key)
            ]
        model = min(changes, key=lambda other: len(changes[other]))
        text = ", ".join(f"{key} {value}" for key, value in changes[model]) or ("" if model else "none")
        start = f"like {model}" + (", with " if text else "") if model else ""
        texts.setdefault(start + text, []).append(name)
    return [f"{', '.join(names)}: {text}" for text, names in texts.items()]


def _flat(parameters: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return parameters as texts by their keys, keys of nested mappings with dots."""
    texts: dict[str, str] = {}
    for key, value in parameters.items():
        inner = isinstance(value, Mapping) and value
        texts |= _flat(value, f"{prefix}{key}.") if inner else {f"{prefix}{key}": json.dumps(value, default=str)}
    return texts


def _file_words(facts: Mapping[str, Any] | None) -> str:
    if facts is None:
        return "-"
    labels = facts.get("labels")
    labelled = f"; {min(label_file['count'] for label_file in labels):,} labelled" if labels else ""
    return f"{facts['count']:,} graphs, {human_bytes(facts['bytes'])}{labelled}"


def _numbers(c: Card, numbers: Sequence[Any]) -> Table:
    table = new_table("split", "predictor", "metric", "score", "samples", "source", right=("score", "samples"))
    primary = c.metrics.primary
    measured = [(split, references) for split in c.all_splits for references in measured_references(c, split)[:1]]
    for kind in ("trivial", "reference solver"):
        for split, references in measured:
            count = "unknown" if references.samples.count is None else f"{references.samples.count:,}"
            for predictor, scores in (references.floor if kind == "trivial" else references.solvers).items():
                if primary in scores:
                    score = score_text(scores[primary])
                    table.add_row(split, predictor, primary, score, count, f"{kind}, measured")
    for p in numbers:
        spread = "" if p.std is None else f" ± {score_text(p.std)}"
        value = "-" if p.value is None else score_text(p.value) + spread
        table.add_row(p.split, p.model, p.metric, value, "-", f"published ({p.reference})")
    return table


def verification(outcome: Verification) -> None:
    """Print the checks of one dataset."""
    print_line(outcome.id, "italic")
    table = new_table("split", "check", "", "detail")
    for row in outcome.rows:
        mark = Text(row.mark or "ok", style=_MARKS[row.mark]) if row.passed else Text("FAILED", style="bold red")
        table.add_row(row.split, row.check, mark, row.detail)
    print_table(table)
    failed = len(outcome.failures)
    skipped = sum(row.mark == "skipped" for row in outcome.rows)
    checked = len(outcome.rows) - skipped
    verdict = f"{checked} checks passed" if not failed else f"{failed} of {checked} checks FAILED"
    verdict += f", {skipped} skipped" if skipped else ""
    print_line(f"{verdict}\n", "green" if not failed else "bold red")


def verifications_json(outcomes: Sequence[Verification]) -> None:
    """Print the checks of several datasets as JSON."""
    print_json([{"id": o.id, "passed": o.passed, "rows": [vars(row) for row in o.rows]} for o in outcomes])
