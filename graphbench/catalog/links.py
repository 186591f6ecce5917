"""The card section for samples whose last edges are hidden, and asked for among candidate pairs of nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field, field_validator

from graphbench.catalog.features import Feature, Location, Stage, select
from graphbench.catalog.sections import Strict

RULES = ("uniform", "degree", "near", "ends")
"""How the node of a negative pair is drawn: any, in proportion to its degree, two steps away, or where edges end."""

MOST_NEGATIVES = 10_000
"""Most negatives of a link that a rule draws."""

_WORDS = {
    "uniform": "drawn uniformly",
    "degree": "in proportion to their degrees",
    "near": "two steps away",
    "ends": "at which edges end",
}

PAIRS = "pair_index"
"""Field of samples and batches: int64 ``[2, P]``, the candidate pairs; PyG shifts it like ``edge_index``."""

QUERIES = "query_batch"
"""Field of samples and batches: int64 ``[P]``, the query of every candidate pair; PyG counts on over graphs."""

DRAW_VERSION = 1
"""Version of the draw of candidate pairs, increased whenever the same graph would get other candidates."""


class LinksSpec(Strict):
    """How candidate pairs follow from the stored edges of a graph.

    A file holds all edges of a graph with a mask: 1 for a link that is asked for, 0 for an edge that models read. A
    sample has the edges that models read, and candidate pairs: every asked link, together with its negatives, is a
    query. The negatives share the source of the link, and no stored edge joins them.

    Attributes:
        negatives: Rule -> number of negatives of every link that the rule draws: ``uniform`` draws any node, ``degree``
            draws a node in proportion to the edges that end at it, ``near`` walks two steps from the source, and
            ``ends`` draws any node at which an edge ends, such as an item in a graph whose arcs lead from users to
            items.
        queries: Most links of a graph that are asked for; they are chosen at random. None asks for all.
    """

    negatives: dict[str, Annotated[int, Field(ge=1, le=MOST_NEGATIVES)]] = Field(min_length=1)
    queries: int | None = Field(default=None, ge=1)

    @property
    def mark(self) -> str:
        """Eight hexadecimal digits that change whenever the candidate pairs of a graph may change."""
        facts = f"{DRAW_VERSION}|{sorted(self.negatives.items())}|{self.queries}"
        return hashlib.sha256(facts.encode()).hexdigest()[:8]

    def words(self) -> str:
        """Return what the section says, in a sentence without a full stop."""
        rules = ", ".join(f"{count} {_WORDS[rule]}" for rule, count in self.negatives.items())
        most = "" if self.queries is None else f"; at most {self.queries:,} links of a graph are asked for"
        return (
            f"a link is a hidden edge, ranked among {sum(self.negatives.values())} negatives that no edge joins to its "
            f"source ({rules}; fewer where a graph has fewer){most}"
        )

    @field_validator("negatives")
    @classmethod
    def _check_rules(cls, value: dict[str, int]) -> dict[str, int]:
        unknown = sorted(set(value) - set(RULES))
        if unknown:
            raise ValueError(f"links.negatives names the rule {unknown[0]!r}; there are {', '.join(RULES)}")
        return value


def at_edges(features: Iterable[Feature]) -> tuple[Feature, ...]:
    """Return features as they are stored: those of candidate pairs lie at the stored edges."""
    return tuple(replace(f, location=Location.EDGE) if f.location is Location.PAIR else f for f in features)


def check_links(links: LinksSpec | None, features: Sequence[Feature]) -> None:
    """Check that a card has a section ``links`` if and only if its one output lies at candidate pairs.

    Raises:
        ValueError: If the section or the output is missing, or there are other outputs.
    """
    outputs = select(features, Stage.OUTPUT)
    of_pairs = [f.name for f in outputs if f.location is Location.PAIR]
    if links is None and of_pairs:
        raise ValueError(f"{of_pairs[0]} lies at pairs; say in the section links how candidate pairs are drawn")
    if links is not None and (len(outputs) != 1 or not of_pairs):
        raise ValueError(
            "a card with links has one output, a mask at pairs; its outputs are "
            f"{', '.join(f'{f.name} ({f.location} {f.type_name})' for f in outputs) or 'none'}"
        )
