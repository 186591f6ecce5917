"""What commands print: tables for people, JSON for scripts."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from graphbench.catalog.cards import Card
from graphbench.catalog.names import card as card_of
from graphbench.catalog.names import list_datasets
from graphbench.data.store import Manifest, default_root
from graphbench.progress import human_bytes, human_number

if TYPE_CHECKING:
    from graphbench.verification import Verification


_WHOLE = ("id", "dataset", "split", "feature", "metric", "check", "nodes", "here", "content")
_GAP = 2  # spaces between columns
_LONG_WORD = 15  # as long as categorical(22); longer ones are broken where the terminal is too narrow


def _console(least: int = 0) -> Console:
    """Return the console; ``least`` is a width below which it never goes, however narrow the terminal is."""
    console = Console(highlight=False, markup=False, emoji=False)
    return console if console.width >= least else Console(highlight=False, markup=False, emoji=False, width=least)


def _line(text: str | Text, style: str | None = None) -> None:
    """Print a line that is never broken: names and numbers in it can be searched and copied."""
    _console().print(text, style=style, soft_wrap=True)


def _table(*columns: str, right: Sequence[str] = ()) -> Table:
    """Return an empty table; columns of names and numbers are never broken or cut, those of words are folded."""
    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for column in columns:
        whole = column in _WHOLE or column in right
        table.add_column(column, justify="right" if column in right else "left", overflow="fold", no_wrap=whole)
    return table


def _print_table(table: Table) -> None:
    """Print a table as wide as the screen allows, and wider where names and numbers need it; nothing if it is empty."""
    if not table.row_count:
        return
    ranges = [_widths(column) for column in table.columns]
    least = sum(low + _GAP for low, _ in ranges) - _GAP
    wishes = sum(high - low for low, high in ranges)
    spare = min(wishes, max(0, _console().width - least))
    for column, (low, high) in zip(table.columns, ranges, strict=True):
        column.width = low + (high - low) * spare // max(wishes, 1)
    _console(least + spare).print(table)


def _widths(column: Column) -> tuple[int, int]:
    """Return the least width of a column and the one that breaks no cell."""
    texts = [str(cell) for cell in (column.header, *column.cells)]
    longest = max(map(cell_len, texts))
    if column.no_wrap:
        return longest, longest
    return min(_LONG_WORD, max((cell_len(word) for text in texts for word in text.split()), default=0)), longest


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, default=str))  # noqa: T201


def _root(root: Path | None) -> Path:
    return default_root() if root is None else root.expanduser()


def _files(card: Card, root: Path) -> dict[str, dict[str, Any]]:
    """Return split -> facts of the largest finished file on this machine."""
    from graphbench.data.generation import dataset_folder

    folder = dataset_folder(card, root)
    found: dict[str, dict[str, Any]] = {}
    for name, facts in Manifest(folder).read()["files"].items():
        if (folder / name).is_file() and facts["count"] > found.get(facts["split"], {"count": 0})["count"]:
            found[facts["split"]] = {**facts, "file": str(folder / name)}
    return found


def task_of(card: Card) -> str:
    """Return a dataset's task in words, e.g. ``edge mask`` or ``graph scalar``."""
    return ", ".join(f"{f.location.value} {f.type_name}" for f in card.outputs)


def datasets(selector: Sequence[str] | None, root: Path | None, as_json: bool) -> None:
    """Print the table of datasets."""
    cards = [card_of(id_) for id_ in list_datasets(selector or None)]
    here = {card.id: _files(card, _root(root)) for card in cards}
    if as_json:
        _print_json(
            [
                {
                    "id": c.id,
                    "title": c.title,
                    "task": task_of(c),
                    "metric": c.metrics.primary,
                    "splits": {name: s.count for name, s in c.all_splits.items()},
                    "generated": {name: facts["count"] for name, facts in here[c.id].items()},
                    "aliases": list(c.aliases),
                    "groups": [c.domain, *c.groups],
                }
                for c in cards
            ]
        )
        return
    table = _table("id", "task", "metric", "graphs", "nodes", "here")
    for c in cards:
        counts = " ".join(human_number(c.splits[s].count) for s in ("train", "val", "test"))
        table.add_row(c.id, task_of(c), c.metrics.primary, counts, _sizes(c), _generated(here[c.id]))
    _print_table(table)
    number = "1 dataset" if len(cards) == 1 else f"{len(cards)} datasets"
    _line(
        f"\n{number}; graphs are those of train, val and test. Root: {_root(root)}. Details: graphbench info <id>",
        "dim",
    )


def _sizes(card: Card) -> str:
    """Return the graph sizes from training to the largest test, e.g. ``16-512``."""
    nodes = [n for split in card.all_splits if (n := card.nodes(split)) is not None]
    if not nodes:
        return "-"
    smallest, largest = f"{min(nodes):.0f}", f"{max(nodes):.0f}"
    return smallest if smallest == largest else f"{smallest}-{largest}"


def _generated(files: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the size of what lies on this machine."""
    return human_bytes(sum(facts["bytes"] for facts in files.values())) if files else "-"


def card(name: str, root: Path | None, as_json: bool, data_seed: int = 0, **files: Any) -> None:
    """Print one card, after checking that it fits its generator and metrics; ``files`` as for ``sourced_card``."""
    from graphbench.evaluation.published import published
    from graphbench.loader import sourced_card
    from graphbench.verification import check_card

    c = sourced_card(card_of(name).with_data_seed(data_seed), **files)
    check_card(c)
    files = _files(c, _root(root))
    numbers = published(c.id)
    if as_json:
        content = {**c.model_dump(mode="json"), "data_seed": c.data_seed}
        content["files"] = files
        content["published"] = [p.model_dump(mode="json") for p in numbers]
        _print_json(content)
        return
    draw = f"  data seed {c.data_seed}" if c.data_seed else ""
    _line(Text.assemble((c.id, "bold"), f"  version {c.version}{draw}  {c.title}"))
    _console().print(c.summary)
    if c.description:
        _console().print(c.description, style="dim")
    _line("")
    _print_table(_features(c))
    _line("")
    _print_table(_splits(c, files))
    _line("")
    for label, text in _facts(c):
        _line(f"{label:<11}{text}")
    if c.floor or numbers:
        _line("")
        _print_table(_numbers(c, numbers))


def _facts(c: Card) -> list[tuple[str, str]]:
    """Return label and text of what stands below the tables of a card."""
    source = [c.source.paper]
    if c.source.section:
        source.append(f"section {c.source.section}")
    if c.source.tables:
        source.append(f"tables {', '.join(map(str, c.source.tables))}")
    return [
        *(("classes", f"{name}: {_numbered(words)}") for name, words in c.classes.items()),
        ("shift", _shifts(c)),
        ("metric", c.metrics.primary + (f" (also {', '.join(c.metrics.also)})" if c.metrics.also else "")),
        ("aliases", ", ".join(c.aliases) or "none"),
        ("groups", ", ".join((c.domain, *c.groups))),
        ("licence", c.licence),
        ("source", ", ".join(source)),
        *(("deviation", line) for line in c.source.deviations),
    ]


def _numbered(words: Sequence[str]) -> str:
    return ", ".join(f"{number} {word}" for number, word in enumerate(words))


def _features(c: Card) -> Table:
    table = _table("feature", "stage", "at", "type")
    for f in c.features:
        table.add_row(f.name, f.stage.value, f.location.value, f.type_name)
    return table


def _splits(c: Card, files: Mapping[str, Mapping[str, Any]]) -> Table:
    table = _table("split", "graphs", "nodes", "mean edges", "on this machine", right=("graphs", "nodes", "mean edges"))
    statistics = c.measured.statistics if c.measured else {}
    for name, spec in c.all_splits.items():
        edges = f"{statistics[name]['edges'][0]:.1f}" if name in statistics else "-"
        nodes = "-" if (n := c.nodes(name)) is None else f"{n:g}"
        table.add_row(name, f"{spec.count:,}", nodes, edges, _file_words(files.get(name)))
    return table


def _shifts(c: Card) -> str:
    """Return in words which splits differ from training, and how."""
    shifts: dict[str, list[str]] = {}
    for name, spec in c.all_splits.items():
        if spec.shift:
            shifts.setdefault(spec.shift, []).append(name)
    return "; ".join(f"{', '.join(names)}: {shift}" for shift, names in shifts.items()) or "none"


def _file_words(facts: Mapping[str, Any] | None) -> str:
    return "-" if facts is None else f"{facts['count']:,} graphs, {human_bytes(facts['bytes'])}"


def _numbers(c: Card, numbers: Sequence[Any]) -> Table:
    table = _table("split", "predictor", "metric", "score", "source", right=("score",))
    for found, kind in ((c.floor, "trivial, measured"), (c.solvers, "reference solver, measured")):
        for split in (name for name in c.all_splits if name in found):
            for predictor, scores in found[split].items():
                if c.metrics.primary in scores:
                    table.add_row(split, predictor, c.metrics.primary, f"{scores[c.metrics.primary]:.4f}", kind)
    for p in numbers:
        value = "-" if p.value is None else f"{p.value:.4f}" + (f" ± {p.std:.4f}" if p.std is not None else "")
        table.add_row(p.split, p.model, p.metric, value, f"published ({p.reference})")
    return table


def generate_one(
    card: Card, names: Sequence[str], root: Path | None, limit: int | None, workers: int | None, cluster: Any = None
) -> list[dict[str, Any]]:
    """Generate the named splits of one dataset and return one row per split.

    ``graphs`` and ``content`` are those asked for; ``bytes`` and ``file_graphs`` are the file's, which may be a longer
    one that was there already.
    """
    from graphbench.data.generation import ensure_split

    rows = []
    for name in names:
        started = time.perf_counter()
        path = ensure_split(card, name, _root(root), limit, workers=workers, cluster=cluster)
        seconds = round(time.perf_counter() - started, 2)
        facts = Manifest(path.parent).read()["files"][path.name]
        graphs = facts["count"] if limit is None else min(limit, facts["count"])
        rows.append(
            {
                "dataset": card.id,
                "split": name,
                "graphs": graphs,
                "bytes": facts["bytes"],
                "seconds": seconds,
                "content": facts["content"] if graphs == facts["count"] else _first_content(card, path, graphs),
                "file": str(path),
                "file_graphs": facts["count"],
            }
        )
    return rows


def _first_content(card: Card, path: Path, count: int) -> str:
    """Return the content hash of the first graphs of a file."""
    from graphbench.data.content import first_graphs_hash
    from graphbench.data.store import map_arrays

    return first_graphs_hash(card, map_arrays(path), count)


def generated(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Print what was generated."""
    if as_json:
        _print_json(list(rows))
        return
    table = _table("dataset", "split", "graphs", "file size", "time", "content", right=("graphs", "file size", "time"))
    for r in rows:
        table.add_row(
            r["dataset"],
            r["split"],
            f"{r['graphs']:,}",
            human_bytes(r["bytes"]),
            f"{r['seconds']:.1f} s",
            r["content"][:12],
        )
    _print_table(table)
    for r in rows:
        if r["graphs"] < r["file_graphs"]:
            _line(
                f"{r['dataset']} {r['split']}: the first {r['graphs']:,} of {r['file_graphs']:,} graphs of {r['file']}"
            )
    if rows:
        _line(f"\nin {Path(rows[-1]['file']).parent}", "dim")


def verification(outcome: Verification) -> None:
    """Print the checks of one dataset."""
    _line(outcome.id, "italic")
    table = _table("split", "check", "", "detail")
    for row in outcome.rows:
        mark = Text("ok", style="green") if row.passed else Text("FAILED", style="bold red")
        table.add_row(row.split, row.check, mark, row.detail)
    _print_table(table)
    failed = len(outcome.failures)
    verdict = f"{len(outcome.rows)} checks passed" if not failed else f"{failed} of {len(outcome.rows)} checks FAILED"
    _line(f"{verdict}\n", "green" if not failed else "bold red")


def verifications_json(outcomes: Sequence[Verification]) -> None:
    """Print the checks of several datasets as JSON."""
    _print_json([{"id": o.id, "passed": o.passed, "rows": [vars(row) for row in o.rows]} for o in outcomes])


def scores(title: str, found: Mapping[str, Mapping[str, float]], as_json: bool) -> None:
    """Print split -> metric -> score."""
    if as_json:
        _print_json({split: dict(score) for split, score in found.items()})
        return
    if not found:
        _line(f"{title}: not scored")
        return
    from graphbench.evaluation.texts import by_size

    whole, sizes = by_size(found)
    metrics = list(dict.fromkeys(m for score in whole.values() for m in score))
    table = _table("split", *metrics, right=metrics)
    for split, score in whole.items():
        table.add_row(split, *(_score(score, m) for m in metrics))
    _line(title, "italic")
    _print_table(table)
    for metric in metrics if sizes else ():
        table = _table("size", *whole, right=("size", *whole))
        for size, own in sizes.items():
            table.add_row(str(size), *(_score(own.get(split, {}), metric) for split in whole))
        _line(f"\n{metric} by problem size", "italic")
        _print_table(table)


def scores_of_run(title: str, found: Mapping[str, Mapping[str, Mapping[str, float]]], as_json: bool) -> None:
    """Print split -> metric -> score of a run on one dataset, or dataset -> the same of one on several."""
    if len(found) == 1:
        scores(title, next(iter(found.values())), as_json)
    elif as_json:
        _print_json({id_: {split: dict(score) for split, score in own.items()} for id_, own in found.items()})
    else:
        for id_, own in found.items():
            scores(f"{title}, {id_}", own, False)


def _score(score: Mapping[str, float], metric: str) -> str:
    return f"{score[metric]:.4f}" if metric in score else "-"


def runs(results: Sequence[Any], as_json: bool, records: Path | None = None) -> None:
    """Print the scores of finished runs and where their records lie; on the first process alone under ``torchrun``."""
    if os.environ.get("RANK", "0") != "0":
        return
    if as_json:
        _print_json([json.loads(result.record.to_json()) for result in results])
        return
    for result in results:
        record = result.record
        draw = f", data seed {record.data_seed}" if record.data_seed else ""
        scores(f"{record.dataset}, {record.model}, seed {record.seed}{draw}", result.scores, False)
        kept = "" if records is None else f"\nand    {records / record.relative_path}"
        _line(f"record {result.path}{kept}\n", "dim")
