"""Metadata of a dataset's files in the Croissant format of MLCommons, version 1.1.

The metadata name the files with their hashes, one record set per split, and one field per column with its type, its
shape and the meaning from the card. Specification: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from graphbench.catalog.cards import Card
from graphbench.catalog.features import Feature, Kind, Location
from graphbench.core.words import counted
from graphbench.interop.cards import card_of_rows, card_of_shared_graph

VERSION = "http://mlcommons.org/croissant/1.1"
Content = Literal["data", "hints", "graph"]
"""What a file holds: one row per graph or state, hints of trajectories, or the one graph of all states of a series."""
_ENCODINGS = {"data": "application/x-parquet", "hints": "application/x-npz", "graph": "application/x-parquet"}
_ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
_YEAR = re.compile(r"\b(?:19|20)\d{2}\b(?!\.)")
_SPDX = re.compile(r"[A-Za-z0-9.+-]+")
_TYPES = {Kind.SCALAR: "sc:Float", Kind.TEXT: "sc:Text"}  # all others are integers
_TERMS = (  # terms of the vocabulary that stand for themselves
    "arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileProperty",
    "fileObject", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath", "key", "md5", "parentField",
    "path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate", "separator", "source",
    "subField", "transform",
)  # fmt: skip


@dataclass(frozen=True)
class HubFile:
    """A file of a dataset.

    Attributes:
        path: Relative to the folder of the dataset.
        split: The split whose samples it holds; ``graph`` for the graph of a series.
        samples: Number of samples, or of the states of a series.
        bytes: Size.
        sha256: SHA-256 of the file.
        content: What it holds, which is also the name of its folder.
    """

    path: str
    split: str
    samples: int
    bytes: int
    sha256: str
    content: Content = "data"


def croissant_of(card: Card, files: Iterable[HubFile], *, url: str | None = None) -> dict[str, Any]:
    """Return the Croissant metadata of a dataset, as JSON-LD.

    Args:
        card: The card of the dataset.
        files: Its files, which lie beside the metadata.
        url: Address of the dataset; None for the address of its source, if the card knows one.
    """
    listed = list(files)
    described = {
        "@context": _context(),
        "@type": "sc:Dataset",
        "conformsTo": VERSION,
        "name": card.address,
        "description": f"{card.summary} {card.description or ''}".strip(),
        "license": _licence(card),
        "url": url or source_address(card),
        "version": f"{card.version}.0.0",
        "citeAs": card.source.citation,
        "datePublished": _year(card),
        "keywords": ["graphs", card.domain, *card.groups],
        "isLiveDataset": False,
        "distribution": [_file_object(card, file) for file in listed],
        "recordSet": [_record_set(card, file) for file in listed if file.content != "hints"],
    }
    return {key: value for key, value in described.items() if value is not None}


def _licence(card: Card) -> str | None:
    """Return the address of a licence with an SPDX name, or its words; None where the card states none."""
    if card.licence == "not stated":
        return None
    return f"https://spdx.org/licenses/{card.licence}" if _SPDX.fullmatch(card.licence) else card.licence


def source_address(card: Card) -> str | None:
    """Return the address of what a dataset is from: of the data, else of the paper; None if the card knows neither."""
    paper = _ARXIV.search(card.source.citation or "")
    return card.source.url or (f"https://arxiv.org/abs/{paper[1]}" if paper else None)


def _year(card: Card) -> str | None:
    """Return the year of the source, if the citation states one."""
    years = _YEAR.findall(card.source.citation or "")
    return years[0] if years else None


def _context() -> dict[str, Any]:
    return {
        "@language": "en",
        "@vocab": "https://schema.org/",
        "sc": "https://schema.org/",
        "cr": "http://mlcommons.org/croissant/",
        "rai": "http://mlcommons.org/croissant/RAI/",
        "dct": "http://purl.org/dc/terms/",
        "conformsTo": "dct:conformsTo",
        "data": {"@id": "cr:data", "@type": "@json"},
        "examples": {"@id": "cr:examples", "@type": "@json"},
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
        "description": {"@container": "@language"},
        "name": {"@container": "@language"},
        **{term: f"cr:{term}" for term in _TERMS},
    }


def _file_object(card: Card, file: HubFile) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": file.path,
        "name": file.path,
        "description": _contained(card, file),
        "contentUrl": file.path,
        "contentSize": f"{file.bytes} B",
        "encodingFormat": _ENCODINGS[file.content],
        "sha256": file.sha256,
    }


def _contained(card: Card, file: HubFile) -> str:
    if file.content == "graph":
        return "the graph that all samples share"
    held = counted(file.samples, "sample" if card.series is None else "state")
    return f"{'hints of ' * (file.content == 'hints')}{held} of the split {file.split}"


def _record_set(card: Card, file: HubFile) -> dict[str, Any]:
    spec = card.all_splits.get(file.split)
    shift = f"; {spec.shift}" if spec is not None and spec.shift else ""
    row = "graph" if card.series is None else "time"
    described, rows = f"The split {file.split}: one row per {row}{shift}.", card_of_rows(card)
    if file.content == "graph":
        described, rows = "The graph that all samples share: one row.", card_of_shared_graph(card)
    return {
        "@type": "cr:RecordSet",
        "@id": file.split,
        "name": file.split,
        "description": described,
        "field": [_field(file, *column) for column in columns_of(rows)],
    }


def columns_of(card: Card) -> Sequence[tuple[str, str, str, tuple[int, ...]]]:
    """Return name, data type, meaning and shape of the columns of a dataset's tables; -1 is a size that varies."""
    columns: list[tuple[str, str, str, tuple[int, ...]]] = [("num_nodes", "sc:Integer", "number of nodes", ())]
    if not card.complete:
        both = "" if card.directed else "; both directions of an edge are neighbouring columns"
        columns.append(("edge_index", "sc:Integer", f"source and target of every arc{both}", (2, -1)))
    for feature in card.stored_features:
        shape = (() if feature.location is Location.GRAPH else (-1,)) + feature.row_shape
        columns.append((feature.name, _TYPES.get(feature.kind, "sc:Integer"), _meaning(card, feature), shape))
    return columns


def _meaning(card: Card, feature: Feature) -> str:
    role = f"{feature.stage} at the {feature.location}, {feature.type_name}"
    described = f"{feature.meaning} ({role})" if feature.meaning else role
    names = ", ".join(f"{number} {name}" for number, name in enumerate(card.classes.get(feature.name, ())))
    return f"{described}: {names}" if names and names not in described else described


def _field(file: HubFile, name: str, type_: str, meaning: str, shape: tuple[int, ...]) -> dict[str, Any]:
    array = {"isArray": True, "arrayShape": ",".join(map(str, shape))} if shape else {}
    source = {"fileObject": {"@id": file.path}, "extract": {"column": name}}
    return {
        "@type": "cr:Field",
        "@id": f"{file.split}/{name}",
        "name": name,
        "description": meaning,
        "dataType": type_,
        **array,
        "source": source,
    }
