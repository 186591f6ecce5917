import json
from pathlib import Path

import networkx as nx
import pytest

GOLDEN = Path(__file__).parents[4] / "shared" / "golden" / "clutrr"


@pytest.fixture
def golden():
    """Return the content of a file of reference facts, line by line where it is .jsonl; skip where it is absent."""

    def read(name):
        if not (GOLDEN / name).exists():
            pytest.skip(f"{GOLDEN / name} is absent")
        text = (GOLDEN / name).read_text()
        return [json.loads(line) for line in text.splitlines()] if name.endswith(".jsonl") else json.loads(text)

    return read


class Genealogy:
    """What people are to one another, from a graph of parents and one of spouses."""

    def __init__(self, parents, couples, by_marriage=True):
        self.upward, self.wed = nx.DiGraph(), nx.Graph()
        self.upward.add_nodes_from(parents)
        self.upward.add_edges_from((child, parent) for child, pair in parents.items() for parent in pair)
        self.wed.add_nodes_from(parents)
        self.wed.add_edges_from(couples)
        self.by_marriage = by_marriage

    def up(self, people):
        return {p for x in people for p in self.upward.successors(x)}

    def down(self, people):
        return {p for x in people for p in self.upward.predecessors(x)}

    def spouses(self, people):
        return {p for x in people for p in self.wed.neighbors(x)}

    def siblings(self, people):
        return {s for x in people for s in self.down(self.up({x})) - {x}}

    def relatives(self, x):
        """Return relation -> who is that to x."""
        me, uncles = {x}, self.siblings(self.up({x}))
        nephews = self.down(self.siblings(me))
        if self.by_marriage:
            uncles, nephews = uncles | self.spouses(uncles), nephews | self.down(self.siblings(self.spouses(me)))
        return {
            "inv-child": self.up(me),
            "child": self.down(me),
            "SO": self.spouses(me),
            "sibling": self.siblings(me),
            "inv-grand": self.up(self.up(me)),
            "grand": self.down(self.down(me)),
            "inv-in-law": self.up(self.spouses(me)),
            "in-law": self.spouses(self.down(me)),
            "sibling-in-law": self.siblings(self.spouses(me)) | self.spouses(self.siblings(me)),
            "inv-un": uncles,
            "un": nephews,
        }

    def relations(self):
        """Return (x, y) -> what y is to x; no two people may have two relations."""
        found = {}
        for x in self.upward:
            for relation, people in self.relatives(x).items():
                for y in people - {x}:
                    assert (x, y) not in found, (x, y, found[x, y], relation)
                    found[x, y] = relation
        return found


@pytest.fixture
def genealogy():
    return Genealogy
