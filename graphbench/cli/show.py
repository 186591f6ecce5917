"""What commands print: tables for people, JSON for scripts."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from graphbench.catalog.cards import Card
from graphbench.catalog.names import card as card_of
from graphbench.catalog.names import list_datasets
from graphbench.data.store import Manifest, default_root
from graphbench.progress import human_bytes, human_number

if TYPE_CHECKING:
    from graphbench.verification import Verification


_WHOLE = ("id", "dataset", "split", "feature", "metric", "check")  # columns that are never broken over lines


def _console() -> Console:
    return Console(highlight=False)


def _table(*columns: str, title: str | None = None, right: Sequence[str] = ()) -> Table:
    table = Table(
        title=title, title_justify="left", header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for column in columns:
        whole = column in _WHOLE or column in right
        table.add_column(column, justify="right" if column in right else "left", overflow="fold", no_wrap=whole)
    return table


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
        counts = "/".join(human_number(c.splits[s].count) for s in ("train", "val", "test"))
        table.add_row(c.id, task_of(c), c.metrics.primary, counts, _sizes(c), _generated(here[c.id]))
    _console().print(table)
    _console().print(
        f"\n{len(cards)} datasets; graphs are train/val/test. Root: {_root(root)}. Details: graphbench info <id>",
        style="dim",
    )


def _sizes(card: Card) -> str:
    """Return the graph sizes from training to the largest test, e.g. ``16-512``."""
    nodes = [n for split in card.all_splits if (n := card.nodes(split)) is not None]
    if not nodes:
        return "-"
    return f"{min(nodes):g}" if min(nodes) == max(nodes) else f"{min(nodes):g}-{max(nodes):g}"


def _generated(files: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the size of what lies on this machine."""
    return human_bytes(sum(facts["bytes"] for facts in files.values())) if files else "-"


def card(name: str, root: Path | None, as_json: bool) -> None:
    """Print one card."""
    from graphbench.evaluation.published import published

    c = card_of(name)
    files = _files(c, _root(root))
    numbers = published(c.id)
    if as_json:
        content = c.model_dump(mode="json")
        content["files"] = files
        content["published"] = [p.model_dump(mode="json") for p in numbers]
        _print_json(content)
        return
    console = _console()
    console.print(Text.assemble((c.id, "bold"), f"  version {c.version}  {c.title}"))
    console.print(c.summary)
    if c.description:
        console.print(c.description, style="dim")
    console.print()
    console.print(_features(c))
    console.print()
    console.print(_splits(c, files))
    console.print(f"\nshift      {_shifts(c)}")
    console.print(f"metric     {c.metrics.primary} (also {', '.join(c.metrics.also) or 'none'})")
    console.print(f"aliases    {', '.join(c.aliases) or 'none'}")
    console.print(f"groups     {', '.join((c.domain, *c.groups))}")
    console.print(f"licence    {c.licence}")
    tables = f", tables {', '.join(map(str, c.source.tables))}" if c.source.tables else ""
    console.print(f"source     {c.source.paper}, section {c.source.section}{tables}")
    for line in c.source.deviations:
        console.print(f"deviation  {line}")
    console.print()
    console.print(_numbers(c, numbers))


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
    for split, predictors in c.floor.items():
        for predictor, scores in predictors.items():
            if c.metrics.primary in scores:
                table.add_row(
                    split, predictor, c.metrics.primary, f"{scores[c.metrics.primary]:.4f}", "trivial, measured"
                )
    for p in numbers:
        value = "-" if p.value is None else f"{p.value:.4f}" + (f" ± {p.std:.4f}" if p.std is not None else "")
        table.add_row(p.split, p.model, p.metric, value, f"published ({p.reference})")
    return table


def generate_one(
    card: Card, names: Sequence[str], root: Path | None, limit: int | None, workers: int | None
) -> list[dict[str, Any]]:
    """Generate the named splits of one dataset and return one row per split."""
    from graphbench.data.generation import ensure_split

    rows = []
    for name in names:
        started = time.perf_counter()
        path = ensure_split(card, name, _root(root), limit, workers=workers)
        seconds = round(time.perf_counter() - started, 2)
        facts = Manifest(path.parent).read()["files"][path.name]
        rows.append(
            {
                "dataset": card.id,
                "split": name,
                "graphs": facts["count"] if limit is None else min(limit, facts["count"]),
                "bytes": facts["bytes"],
                "seconds": seconds,
                "content": facts["content"],
                "file": str(path),
            }
        )
    return rows


def generated(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Print what was generated."""
    if as_json:
        _print_json(list(rows))
        return
    table = _table("dataset", "split", "graphs", "size", "time", "content", right=("graphs", "size", "time"))
    for r in rows:
        table.add_row(
            r["dataset"],
            r["split"],
            f"{r['graphs']:,}",
            human_bytes(r["bytes"]),
            f"{r['seconds']:.1f} s",
            r["content"][:12],
        )
    _console().print(table)
    if rows:
        _console().print(f"\nin {Path(rows[-1]['file']).parent}", style="dim", soft_wrap=True)


def verification(outcome: Verification) -> None:
    """Print the checks of one dataset."""
    table = _table("split", "check", "", "detail", title=outcome.id)
    for row in outcome.rows:
        mark = Text("ok", style="green") if row.passed else Text("FAILED", style="bold red")
        table.add_row(row.split, row.check, mark, row.detail)
    _console().print(table)
    failed = len(outcome.failures)
    verdict = f"{len(outcome.rows)} checks passed" if not failed else f"{failed} of {len(outcome.rows)} checks FAILED"
    _console().print(f"{verdict}\n", style="green" if not failed else "bold red")


def verifications_json(outcomes: Sequence[Verification]) -> None:
    """Print the checks of several datasets as JSON."""
    _print_json([{"id": o.id, "passed": o.passed, "rows": [vars(row) for row in o.rows]} for o in outcomes])


def scores(title: str, found: Mapping[str, Mapping[str, float]], as_json: bool) -> None:
    """Print split -> metric -> score."""
    if as_json:
        _print_json({split: dict(score) for split, score in found.items()})
        return
    metrics = list(dict.fromkeys(m for score in found.values() for m in score))
    table = _table("split", *metrics, title=title, right=metrics)
    for split, score in found.items():
        table.add_row(split, *(f"{score[m]:.4f}" if m in score else "-" for m in metrics))
    _console().print(table)


def runs(results: Sequence[Any], as_json: bool) -> None:
    """Print the scores of finished runs and where they lie."""
    if as_json:
        _print_json([json.loads(result.record.to_json()) for result in results])
        return
    for result in results:
        record = result.record
        scores(f"{record.dataset}, {record.model}, seed {record.seed}", result.scores, False)
        _console().print(f"record {result.path}\n", style="dim", soft_wrap=True)
