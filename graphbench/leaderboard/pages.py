"""The leaderboard as pages: a folder of self-contained HTML pages, one Markdown file, one JSON file."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphbench._version import __version__
from graphbench.core.errors import ResultError
from graphbench.core.files import clear_errors, write_text
from graphbench.leaderboard import lite, texts
from graphbench.leaderboard.aggregation import SUITE, groups_of
from graphbench.leaderboard.boards import tables_of
from graphbench.leaderboard.model import Group, Leaderboard, to_json
from graphbench.leaderboard.overview import lines_of, size_chart, sparkline
from graphbench.leaderboard.pictures import cost_figure, group_figure, rank_figure, scale_of
from graphbench.leaderboard.rules import RULES
from graphbench.records.classes import BUDGET_CLASSES
from graphbench.records.provenance import PROVENANCES
from graphbench.records.record import RunRecord
from graphbench.reports.labels import named
from graphbench.reports.pages import ABSENT, Embed, Grid, embed_for, environment, page_targets
from graphbench.reports.tables import number

if TYPE_CHECKING:
    from graphbench.catalog.cards import Card
    from graphbench.leaderboard.history import Change

logger = logging.getLogger(__name__)

_PAGES = {"html": "index.html", "md": "leaderboard.md", "json": "leaderboard.json"}
FORMATS = tuple(_PAGES)
TITLE = "graphbench leaderboard"
_ELSEWHERE = "choose another output, a folder or a file ending in .html, .md or .json"


def leaderboard_of(records: Iterable[RunRecord], cards: Mapping[str, Card] | None = None) -> Leaderboard:
    """Return the leaderboard of some records.

    Args:
        records: Runs, e.g. from :func:`graphbench.records.files.load_records`.
        cards: Address -> card; a dataset without an entry gets the catalogue's card.
    """
    runs = list(records)
    tables = tables_of(runs, cards)
    groups = tuple(groups_of(tables))
    return Leaderboard(tuple(tables.boards), groups, tuple(tables.unknown), tuple(tables.refused), len(runs))


def build_leaderboard(
    records: Iterable[RunRecord],
    output: str | Path,
    formats: Sequence[str] = FORMATS,
    cards: Mapping[str, Card] | None = None,
    title: str = TITLE,
    changes: Sequence[Change] = (),
) -> list[Path]:
    """Write the leaderboard of some records and return the paths of its pages.

    Args:
        records: Runs, e.g. from :func:`graphbench.records.files.load_records`; without any the pages say so.
        output: A folder, which receives ``index.html`` and a page per domain, ``leaderboard.md`` with
            ``figures/*.png``, and ``leaderboard.json``; or a file name ending in ``.html``, ``.md`` or ``.json``, which
            selects a single format (HTML as one page).
        formats: ``html``, ``md``, ``json`` or several, when ``output`` is a folder.
        cards: Address -> card; a dataset without an entry gets the catalogue's card.
        title: Heading of the pages.
        changes: Changes of first places, the oldest first, from
            :func:`graphbench.leaderboard.history.first_places`; without any the pages have no such section.

    Raises:
        ResultError: If a format or the ending of ``output`` is unknown, or a page cannot be written.
    """
    output_path = Path(output)
    targets = page_targets(output_path, formats, _PAGES, "leaderboard")
    leaderboard = leaderboard_of(records, cards)
    paths = []
    for kind, path in targets.items():
        with clear_errors(path, "write the leaderboard", _ELSEWHERE, ResultError):
            path.parent.mkdir(parents=True, exist_ok=True)
            for name, text in _rendered(kind, leaderboard, title, path, changes, single=path == output_path).items():
                write_text(path.parent / name, text)
                paths.append(path.parent / name)
    logger.info("wrote %d pages of the leaderboard", len(paths))
    return paths


def _rendered(
    kind: str, leaderboard: Leaderboard, title: str, path: Path, changes: Sequence[Change], *, single: bool
) -> dict[str, str]:
    """Return file name -> text of the pages of one format."""
    if kind == "json":
        return {path.name: to_json(leaderboard)}
    embed = embed_for(path)
    told = {"changes": change_grid(changes)}
    template = environment(kind == "html").get_template(f"leaderboard.{kind}.j2")
    if kind == "md" or single:
        parts = _parts(leaderboard, leaderboard.domains, embed, suite=True)
        return {
            path.name: template.render(
                _context(leaderboard, title, links=not single and kind == "html", **parts, **told)
            )
        }
    pages = {
        "index.html": _context(leaderboard, title, links=True, **_parts(leaderboard, (), embed, suite=True), **told)
    }
    for domain in leaderboard.domains:
        parts = _parts(leaderboard, (domain,), embed, suite=False)
        pages[page_of(domain)] = _context(leaderboard, f"{domain}: {title}", links=True, **parts) | {
            "home": "index.html"
        }
    return {name: template.render(context) for name, context in pages.items()}


def change_grid(changes: Sequence[Change]) -> Grid | None:
    """Return changes of first places as a table, the newest first; None without any."""
    rows = []
    for change in reversed(changes):
        before = ABSENT if change.before is None or change.mean_before is None else (
            f"{change.before}, {number(change.mean_before)}"
        )  # fmt: skip
        model = change.model if change.ranked else f"{change.model} (best mean; no rank)"
        cells = (f"{change.date:%Y-%m-%d}", change.unit, model, f"{change.metric} {number(change.mean)}", before)
        rows.append((*cells, change.commit[:8]))
    return Grid(("date", "dataset", "first place", "score", "before", "commit"), tuple(rows)) if rows else None


def page_of(domain: str, place: str = "") -> str:
    """Return the file name of a domain's page, with an anchor in it."""
    return f"domain-{texts.anchor(domain)}.html" + (f"#{place}" if place else "")


def _context(leaderboard: Leaderboard, title: str, *, links: bool, **parts: Any) -> dict[str, Any]:
    return {
        "title": title,
        "board": leaderboard,
        "lines": lines_of(leaderboard),
        "sparkline": sparkline,
        "size_chart": size_chart,
        "classes": BUDGET_CLASSES,
        "provenances": PROVENANCES,
        "page_of": page_of if links else lambda domain, place="": f"#{place or texts.anchor(domain)}",
        "rules": RULES,
        "texts": texts,
        "scale_of": scale_of,
        "home": "",
        "changes": None,
        "grid_part": lambda grid, most: Grid(grid.heads, grid.rows[:most]),
        "version": __version__,
        **parts,
    }


def _parts(leaderboard: Leaderboard, domains: Sequence[str], embed: Embed, *, suite: bool) -> dict[str, Any]:
    return {
        "suite": _group_parts(leaderboard, SUITE, embed) if suite else [],
        "lite": _lite_parts(leaderboard, embed) if suite else None,
        "domains": [
            {
                "name": domain,
                "anchor": texts.anchor(domain),
                "groups": _group_parts(leaderboard, domain, embed),
                "sections": texts.sections(leaderboard, domain),
            }
            for domain in domains
        ],
    }


def _lite_parts(leaderboard: Leaderboard, embed: Embed) -> dict[str, Any] | None:
    """Return the lite set and what its order predicts; None where a dataset of the set has no record."""
    chosen = lite.lite_set()
    boards = lite.lite_boards(leaderboard, chosen)
    if {board.dataset for board in boards} < set(chosen.datasets):
        return None
    figure = cost_figure(boards)
    compared = {
        "the order on the other datasets of the domain": lite.within_domains(leaderboard, chosen),
        "published orders and orders in the class paper": lite.with_papers(leaderboard, chosen),
    }
    return {
        "cells": lite.cells_text(lite.cells_of(leaderboard, chosen)),
        "figure": embed(figure, "lite-costs", "Scores against processor time") if figure else "",
        "agreements": [
            (lite.agreement_text(agreement, what), None if agreement is None else lite.order_grid(agreement))
            for what, agreement in compared.items()
        ],
        "seeds": len(chosen.seeds),
    }


def _group_parts(leaderboard: Leaderboard, name: str, embed: Embed) -> list[dict[str, Any]]:
    """Return the means over a domain or over the suite; a domain of one dataset has none."""
    groups = [group for group in leaderboard.groups if group.name == name and len(group.units) > 1]
    return [_group_part(title, group, embed) for title, group in texts.merged_groups(groups)]


def _group_part(title: str, group: Group, embed: Embed) -> dict[str, Any]:
    figure, ranks = group_figure(group), rank_figure(group)
    name = f"{texts.anchor(named(group.name, group.protocol))}-{group.budget_class}"
    return {
        "title": title,
        "grid": texts.group_grid(group),
        "notes": texts.group_notes(group),
        "missing": [text for row in group.shown if (text := texts.missing_text(row))],
        "pairs": texts.pair_grid(group),
        "figure": embed(figure, name, texts.figure_title(group)) if figure else "",
        "ranks": embed(ranks, f"{name}-ranks", "Mean ranks and the critical difference") if ranks else "",
    }
