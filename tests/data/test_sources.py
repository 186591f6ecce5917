"""Sources of files: a user's reader, a registered one, and registered downloads, through the same store."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import runpy
import threading
import zipfile
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch

import graphbench
from graphbench.cli import main
from graphbench.core.errors import ArgumentError, CardError, ChecksumMismatch, PluginError, StoreError
from graphbench.data.arrays.samples import Samples
from graphbench.data.build.generation import draw_samples
from graphbench.data.components.domain import Domain, find, find_domain, register_domain, unregister
from graphbench.data.components.file_sources import file_source
from graphbench.data.components.source_choice import source_name, source_of
from graphbench.data.sources.downloads import Download
from graphbench.verification import verify

from .test_store import flip_byte

SPLITS = {"train": 6, "val": 2, "test": 3, "far": 2}


def write_files(folder):
    """Paths with weights, one row per edge, and the tree that contains all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (split, count) in enumerate(SPLITS.items()):
        with (folder / f"{split}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            for graph in range(count):
                writer.writerows((graph, u, u + 1, 0.1 * (u + graph + number)) for u in range(2 + graph))
    return folder


def read_paths(folder):
    """Read such files for a card with ``weight`` and ``in_tree``."""
    return {path.stem: read_split(path) for path in sorted(folder.glob("*.csv"))}


def read_split(path):
    table = np.loadtxt(path, delimiter=",", ndmin=2)
    counts = np.bincount(table[:, 0].astype(int))
    return Samples(
        counts + 1,
        counts,
        table[:, 1:3].astype(np.int64),
        {"weight": table[:, 3].astype(np.float32), "in_tree": np.ones(len(table), np.uint8)},
    )


@pytest.fixture
def files(tmp_path):
    return write_files(tmp_path / "files")


@pytest.fixture
def registered():
    """A domain of the test with a source ``paths``; its downloads are set by the test."""

    def add(*downloads):
        source = file_source("mine.paths", read_paths, downloads=downloads)
        return register_domain(Domain("mine", sources={"paths": source}))

    yield add
    unregister("mine")


def load(files, root, **options):
    return graphbench.Loader("algoreas/mst_easy", source=read_paths, folder=files, root=root, **options)


def test_a_reader_of_ones_own_is_a_dataset(files, tmp_path):
    splits = load(files, tmp_path / "root").load("all")
    assert {name: len(splits[name]) for name in splits} == SPLITS
    assert list(splits.ood) == ["far"] and splits.card.measured is None
    first = splits.train[1]
    assert first.edge_index.tolist() == [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]
    torch.testing.assert_close(first.weight, torch.tensor([0.1, 0.1, 0.2, 0.2, 0.3, 0.3]))
    (batch,) = splits.test.batches(3)
    score = graphbench.Evaluator(splits.card).evaluate(batch.y, batch.y.float(), batch.batch[batch.edge_index[0]])
    assert score["f1"] == 1.0
    assert [len(split) for split in load(files, tmp_path / "few", limit=2).load().ood.values()] == [2]


def test_samples_of_files_that_were_changed_in_the_store_are_refused(files, tmp_path):
    opened = load(files, tmp_path / "root").load("all")
    flip_byte(opened.test.path, opened.test.path.stat().st_size - 5)
    with pytest.raises(ChecksumMismatch, match=str(opened.test.path)):
        _ = opened.test.content_hash
    with pytest.raises(ChecksumMismatch, match=str(opened.test.path)):
        load(files, tmp_path / "root").load("test")


def test_the_example_of_the_documentation_is_a_source(files, tmp_path):
    for path in files.glob("*.csv"):
        path.write_text("".join(f"{line},1\n" for line in path.read_text().split()))
    runpy.run_path(str(Path(__file__).parents[2] / "docs" / "examples" / "files" / "measured_trees.py"))
    try:
        loader = graphbench.Loader("algoreas/mst_easy", source="measured.trees", folder=files, root=tmp_path / "root")
        splits = loader.load("all")
        assert {name: len(splits[name]) for name in splits} == SPLITS and splits.card.protocol == "trees"
        torch.testing.assert_close(splits.train[1].weight, torch.tensor([0.1, 0.1, 0.2, 0.2, 0.3, 0.3]))
        with pytest.raises(ArgumentError, match=r"download=True.*48\.2 MB"):
            graphbench.Loader("algoreas/mst_easy", source="measured.trees", root=tmp_path / "root")
    finally:
        unregister("measured")


def test_a_reader_given_as_a_function_and_by_name_is_one_protocol(files, tmp_path, registered):
    before = load(files, tmp_path).load().card
    registered()
    by_function = load(files, tmp_path).load().card
    options = {"source": "mine.paths", "folder": files, "root": tmp_path}
    by_name = graphbench.Loader("algoreas/mst_easy", **options).load().card
    assert by_function.protocol == by_name.protocol == "paths" != before.protocol
    assert by_function.generator == by_name.generator == "mine.paths"


@pytest.mark.parametrize("fails", [True, False])
def test_a_dataset_that_is_read_from_files_names_the_source_that_is_missing(make_card, fails):
    def generate(parameters, key, indices, attempts):
        if fails:
            raise NotImplementedError("read from files")

    mst = find("generator", "algoreas.mst")
    undrawn = replace(mst, name="mine.undrawn", generate=generate, drawn=False)
    source = file_source("mine.paths", read_paths)
    register_domain(Domain("mine", generators={"undrawn": undrawn}, sources={"paths": source}))
    try:
        own = make_card().model_copy(update={"generator": "mine.undrawn", "domain": "mine"})
        with pytest.raises(StoreError, match=r"give source='paths' and folder= \(--source paths --folder DIR\)"):
            draw_samples(own, "val", np.arange(3))
    finally:
        unregister("mine")


def test_data_of_files_lie_apart_and_are_found_again(files, tmp_path):
    own = load(files, tmp_path).load()
    generated = graphbench.Loader("algoreas/mst_easy", root=tmp_path, limit=3, workers=1).load()
    assert own.train.path.parent != generated.train.path.parent
    before = own.train.path.stat().st_mtime_ns
    assert load(files, tmp_path).load().train.path == own.train.path
    assert own.train.path.stat().st_mtime_ns == before
    (files / "train.csv").write_text("0,0,1,0.5\n")
    other = load(files, tmp_path).load()
    assert other.train.path.parent != own.train.path.parent and len(other.train) == 1


def test_files_that_change_while_they_are_read_are_reported(files, tmp_path):
    loader = load(files, tmp_path)
    card = loader.load(()).card
    find("generator", card.generator).remember({})
    (files / "test.csv").write_text("0,0,1,0.5\n")
    with pytest.raises(StoreError, match="changed since they were read"):
        loader.load("test")


def test_what_a_source_is_called(files, tmp_path, registered):
    card = load(files, tmp_path).load(()).card
    assert source_name(card).startswith("imported.") and "read_paths" in source_name(card)
    registered()
    named = graphbench.Loader("algoreas/mst_easy", source="mine.paths", folder=files, root=tmp_path).load()
    assert (source_name(named.card), named.card.protocol) == ("mine.paths", "paths")
    assert source_of(graphbench.card("algoreas/mst_easy")) is None
    assert source_name(graphbench.card("algoreas/mst_easy")) == "generated"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda read: read.pop("val"), "gives no 'val' split"),
        (lambda read: read.update(val=3), "gives no samples for the split 'val'"),
        (lambda read: read["val"].edges.__setitem__(0, (7, 8)), "edge 7-8 of graph 0"),
        (lambda read: read["val"].edges.__setitem__(0, (1, 0)), "edge 1-0 of graph 0.*u < v"),
        (lambda read: read["val"].edges.__setitem__(1, (0, 1)), "edge 0-1 of graph 0"),
        (lambda read: read["val"].num_edges.__setitem__(0, 1), "edges has the shape"),
        (lambda read: read["val"].num_nodes.__setitem__(0, 0), "every graph has a node"),
        (lambda read: read["nowhere"], "KeyError: 'nowhere'"),
        (
            lambda read: read["val"].values.pop("weight"),
            "val of .*in_tree.*expected",
        ),
    ],
)
def test_wrong_readers_are_reported(files, tmp_path, change, words):
    def read(folder):
        found = read_paths(folder)
        change(found)
        return found

    with pytest.raises(StoreError, match=words):
        graphbench.Loader("algoreas/mst_easy", source=read, folder=files, root=tmp_path)


def test_what_does_not_go_together(files, tmp_path, registered):
    with pytest.raises(StoreError, match="nowhere is not a folder"):
        load(tmp_path / "nowhere", tmp_path)
    with pytest.raises(CardError, match="data_seed=3 is refused"):
        load(files, tmp_path, data_seed=3).load("test")
    with pytest.raises(ArgumentError, match=r"download.*not generated"):
        graphbench.Loader("algoreas/mst_easy", download=True)
    registered()
    with pytest.raises(ArgumentError, match=r"source='mine\.paths'"):
        graphbench.Loader("algoreas/mst_easy", source="mine.paths", download=True, root=tmp_path)
    with pytest.raises(ArgumentError, match=r"source='mine\.path' is unknown for algoreas/mst_easy .*'generated'"):
        graphbench.Loader("algoreas/mst_easy", source="mine.path", folder=files)
    with pytest.raises(PluginError, match="registers the domain 'mine', which"):
        namespace = {"__name__": "somebody_else"}
        exec(
            "from graphbench.data.components.domain import Domain, register_domain; register_domain(Domain('mine'))",
            namespace,
        )
    assert "paths" in find_domain("mine").components("source")


def test_a_source_of_files_is_verified(files, tmp_path, registered):
    registered()
    outcome = verify("algoreas/mst_easy", source="mine.paths", folder=files, root=tmp_path, splits=("test", "far"))
    assert outcome.passed
    skipped = {row.check for row in outcome.rows if row.mark == "skipped"}
    assert "structure and labels" in skipped


@pytest.fixture
def archive(tmp_path):
    """The registered download of such files, and the number of requests that reached its server."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as packed:
        for path in write_files(tmp_path / "packed").iterdir():
            packed.write(path, path.name)
    web = tmp_path / "web"
    web.mkdir()
    (web / "paths.zip").write_bytes(held.getvalue())
    requests = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *words):
            requests.append(words)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(web)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}/paths.zip"
    yield Download(url, len(held.getvalue()), hashlib.sha256(held.getvalue()).hexdigest()), requests
    server.shutdown()
    thread.join()


def test_a_download_is_used_only_when_it_is_asked_for(archive, tmp_path, registered):
    download, requests = archive
    registered(download)
    options = {"source": "mine.paths", "root": tmp_path / "root"}
    with pytest.raises(ArgumentError, match=r"folder=.*or download=True \(--download\), which fetches 0\.0 MB"):
        graphbench.Loader("algoreas/mst_easy", **options)
    assert not requests
    with pytest.raises(ArgumentError, match="and download exclude each other"):
        graphbench.Loader("algoreas/mst_easy", download=True, folder=tmp_path, **options)
    splits = graphbench.Loader("algoreas/mst_easy", download=True, **options).load()
    assert len(splits.train) == 6 and len(requests) == 1
    again = graphbench.Loader("algoreas/mst_easy", **options).load()
    assert again.train.path == splits.train.path and len(requests) == 1


def test_the_command_line_downloads(archive, tmp_path, registered, capsys):
    download, requests = archive
    registered(download)
    words = ["generate", "algoreas/mst_easy", "--source", "mine.paths", "--root", str(tmp_path / "root"), "--json"]
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2 and "--download" in capsys.readouterr().err and not requests
    with pytest.raises(SystemExit) as end:
        main([*words, "--download"])
    assert end.value.code == 0 and len(requests) == 1
    assert [row["graphs"] for row in json.loads(capsys.readouterr().out)] == [6, 2, 3]
