"""The report: every number next to the number expected, as Markdown with pictures or as one self-contained page."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench.core.errors import ResultError
from graphbench.core.files import clear_errors, write_text
from graphbench.evaluation.metrics import METRICS
from graphbench.records.aggregates import Aggregate, aggregate
from graphbench.records.record import RunRecord
from graphbench.reports import tables
from graphbench.reports.beside import beside
from graphbench.reports.collections import summaries
from graphbench.reports.labels import Labels
from graphbench.reports.ood import known_cards, ood_metric, plot_ood, plotted_splits, size_axis
from graphbench.reports.pages import Embed, embed_for, environment, page_targets
from graphbench.reports.parts import output_grid, part_grid
from graphbench.reports.plots import curve_figure, time_figure
from graphbench.reports.published_files import anchor_of, card_of_files, heading_of, is_of_files, scored_rows
from graphbench.tasks.registry import task_of

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card

logger = logging.getLogger(__name__)

FORMATS = ("md", "html")
_ELSEWHERE = "choose another output, a folder or a file ending in .md or .html"


def build_report(
    records: Iterable[RunRecord],
    output: str | Path,
    formats: Sequence[str] = FORMATS,
    cards: Mapping[str, Card] | None = None,
    title: str = "graphbench report",
) -> list[Path]:
    """Write the report of some runs and return the paths of its pages.

    Per dataset, the report holds the splits, the scores next to the scores of trivial baselines and of the paper,
    scores against graph size, learning curves, cost and provenance. Small runs are marked and never compared. Runs on
    published files have a separate section, without measurements on generated data. Records of datasets that have no
    card any more are left out, and the report names these datasets.

    Args:
        records: Runs, e.g. from :func:`graphbench.records.files.load_records`.
        output: A folder, which receives ``report.md`` with ``figures/*.png`` and ``report.html``; or a file name
            ending in ``.md`` or ``.html``, which selects a single format.
        formats: ``md``, ``html`` or both, when ``output`` is a folder.
        cards: Dataset id -> card; the catalogue's if None.
        title: Heading of the report.

    Raises:
        ResultError: If there are no records, none is of a dataset that has a card, a format or the ending of
            ``output`` is unknown, or the report cannot be written.
    """
    results = sorted(
        aggregate(records), key=lambda runs: (runs.dataset, not runs.comparable, runs.model, runs.config_hash)
    )
    if not results:
        raise ResultError("there are no run records to report; run 'graphbench train' first or choose another selector")
    known, unknown = known_cards((runs.dataset for runs in results), cards)
    if not known:
        raise ResultError(
            f"all records are of datasets that have no card: {', '.join(unknown)}; import or register these datasets "
            "again, or choose other records"
        )
    targets = page_targets(Path(output), formats, {name: f"report.{name}" for name in FORMATS}, "report")
    sections = _by_dataset([runs for runs in results if runs.dataset in known], known)
    paths = []
    for kind, path in targets.items():
        with clear_errors(path, "write the report", _ELSEWHERE, ResultError):
            path.parent.mkdir(parents=True, exist_ok=True)
            text = _render(kind, title, sections, unknown, embed_for(path))
            write_text(path, text)
        logger.info("wrote %s", path)
        paths.append(path)
    return paths


def _by_dataset(results: Sequence[Aggregate], cards: Mapping[str, Card]) -> list[tuple[str, Card, list[Aggregate]]]:
    groups: dict[tuple[str, bool], list[Aggregate]] = {}
    for runs in results:
        groups.setdefault((runs.dataset, is_of_files(runs)), []).append(runs)
    sections = []
    for (dataset, of_files), runs_of_dataset in sorted(groups.items()):
        card = cards[dataset]
        sections.append((dataset, card_of_files(card, runs_of_dataset) if of_files else card, runs_of_dataset))
    return sections


def _render(
    kind: str,
    title: str,
    sections: Sequence[tuple[str, Card, list[Aggregate]]],
    unknown: Sequence[str],
    embed: Embed,
) -> str:
    rows = [row for _, card, results in sections for row in tables.overview_rows(card, results)]
    context = {
        "title": title,
        "overview": rows,
        "unknown": unknown,
        "collections": summaries([runs for _, _, results in sections for runs in results]),
        "any_small": any(not runs.comparable for _, _, results in sections for runs in results),
        "datasets": [_section(dataset, card, results, embed) for dataset, card, results in sections],
    }
    return environment(kind == "html").get_template(f"report.{kind}.j2").render(context)


def _section(dataset: str, card: Card, results: list[Aggregate], embed: Embed) -> dict[str, Any]:
    name, stem = heading_of(dataset, card), anchor_of(dataset, card)
    curves = curve_figure(results, card.metrics.primary)
    return {
        "id": name,
        "anchor": stem,
        "card": card,
        "metrics": tables.score_heads(card),
        "splits": scored_rows(card, results) if is_of_files(card) else tables.split_rows(card),
        "scores": tables.score_rows(card, results),
        "time_figure": _time_figure(card, results, embed, stem),
        "outputs": output_grid(card, results),
        "parts": part_grid(card, results),
        "ood": tables.ood_grid(card, results),
        "ood_figure": _ood_figure(dataset, card, results, embed, stem),
        "curves_figure": embed(curves, f"{stem}-curves", f"Learning curves, {name}") if curves else "",
        "efficiency": tables.efficiency_rows(results),
        "provenance": tables.provenance_rows(card, results),
        "solver_note": tables.SOLVERS if card.solvers else "",
        "notes": [*tables.draw_notes(card, results), *tables.published_notes(card, results)],
    }


def _time_figure(card: Card, results: list[Aggregate], embed: Embed, stem: str) -> str:
    metric = task_of(card).metric_beside_time
    if metric is None:
        return ""
    shown = beside(card, "test", results)
    together = [runs for runs in results if not shown.note(runs)]
    figure = time_figure(together, metric, higher_is_better=METRICS[metric].higher_is_better)
    title = f"{metric} against the time of an answer, {heading_of(results[0].dataset, card)}"
    return embed(figure, f"{stem}-time", title) if figure else ""


def _ood_figure(dataset: str, card: Card, results: list[Aggregate], embed: Embed, stem: str) -> str:
    metric = ood_metric(card)
    scored = [runs for runs in results if any(runs.score(split, metric) for split in plotted_splits(card, [runs])[1:])]
    if not scored:
        return ""
    axis = size_axis(card, plotted_splits(card, scored))
    title = f"{metric} by split" if axis is None else f"{metric} against {axis.label}"
    return embed(plot_ood(scored, card, labels=Labels(results)), f"{stem}-ood", f"{title}, {heading_of(dataset, card)}")
