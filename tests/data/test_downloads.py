"""Registered downloads from a server of this machine: continued, checked, and unpacked where that is safe."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from graphbench.core.errors import ChecksumMismatch, StoreError
from graphbench.data.sources import downloads
from graphbench.data.sources.downloads import Download, download_folder, fetch
from graphbench.data.sources.zenodo import ZenodoFiles

CONTENT = bytes(range(256)) * 40


class Server:
    """Files by path, and how the next answers misbehave."""

    def __init__(self):
        self.files, self.ranges, self.cut, self.failures, self.without_ranges = {}, [], [], [], False

    def url(self, name):
        return f"http://127.0.0.1:{self.port}/{name}"

    def add(self, name, content, **changes):
        self.files[f"/{name}"] = content
        facts = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest(), **changes}
        return Download(self.url(name), **facts)


@pytest.fixture
def server(monkeypatch):
    found = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            found.ranges.append(self.headers.get("Range"))
            if found.failures:
                self.send_error(found.failures.pop(0))
                return
            content = found.files.get(self.path)
            if content is None:
                self.send_error(404)
                return
            first = int(self.headers["Range"].removeprefix("bytes=").rstrip("-")) if self.headers["Range"] else 0
            first = 0 if found.without_ranges else first
            if first >= len(content) > 0 and first:
                self.send_error(416)
                return
            self.send_response(206 if first else 200)
            if first:
                self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - first))
            self.end_headers()
            stop = found.cut.pop(0) if found.cut else len(content)
            self.wfile.write(content[first:stop])

        def log_message(self, *words):
            pass

    monkeypatch.setattr(downloads, "_PAUSE", 0.0)
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.port = running.server_address[1]
    thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield found
    running.shutdown()
    thread.join()


def zipped(*members):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members:
            archive.writestr(member, content)
    return held.getvalue()


def tarred(*members):
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for info, content in members:
            info = tarfile.TarInfo(info) if isinstance(info, str) else info
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return held.getvalue()


def test_a_file_is_downloaded_once(server, tmp_path):
    file = server.add("table.csv", CONTENT)
    folder = fetch("toys.official", (file,), tmp_path)
    assert (folder / "table.csv").read_bytes() == CONTENT
    assert folder == download_folder("toys.official", (file,), tmp_path)
    assert fetch("toys.official", (file,), tmp_path) == folder and len(server.ranges) == 1
    assert [path.name for path in folder.parent.iterdir() if not path.name.endswith(".lock")] == [folder.name]


def test_a_download_continues_where_the_connection_ended(server, tmp_path):
    file = server.add("table.csv", CONTENT)
    server.cut = [1000, 4000]
    assert (fetch("toys.official", (file,), tmp_path) / "table.csv").read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=1000-", "bytes=4000-"]


def test_an_interrupted_download_continues_in_the_next_run(server, tmp_path):
    file = server.add("table.csv", CONTENT)
    server.cut = [1000, 1000, 1000]
    with pytest.raises(StoreError, match=r"1,000 of 10,240 bytes.*run the same"):
        fetch("toys.official", (file,), tmp_path)
    server.ranges.clear()
    assert (fetch("toys.official", (file,), tmp_path) / "table.csv").read_bytes() == CONTENT
    assert server.ranges == ["bytes=1000-"]


def test_a_server_without_ranges_sends_the_file_again(server, tmp_path):
    file = server.add("table.csv", CONTENT)
    server.cut, server.without_ranges = [1000], True
    assert (fetch("toys.official", (file,), tmp_path) / "table.csv").read_bytes() == CONTENT


def test_servers_that_fail(server, tmp_path):
    file = server.add("table.csv", CONTENT)
    server.failures = [503, 500]
    assert fetch("toys.official", (file,), tmp_path).is_dir()
    lost = Download(server.url("lost.csv"), 10, "0" * 64)
    with pytest.raises(StoreError, match=r"lost\.csv.*0 of 10 bytes"):
        fetch("toys.lost", (lost,), tmp_path)
    with pytest.raises(StoreError, match="no http or https address"):
        fetch("toys.local", (Download("file:///etc/passwd", 10, "0" * 64),), tmp_path)


def test_other_content_than_the_registered_is_refused(server, tmp_path):
    changed = server.add("table.csv", CONTENT, sha256="0" * 64)
    for _ in range(2):
        with pytest.raises(ChecksumMismatch, match="not the registered 0000"):
            fetch("toys.official", (changed,), tmp_path)
    assert not download_folder("toys.official", (changed,), tmp_path).exists()
    longer = server.add("long.csv", CONTENT, size=100)
    with pytest.raises(StoreError, match=r"is larger than the registered 100 B"):
        fetch("toys.long", (longer,), tmp_path)


@pytest.mark.parametrize("name", ["files.zip", "files.tar.gz"])
def test_archives_are_unpacked(server, tmp_path, name):
    members = [("data/train.csv", b"1,2"), ("data/deep/test.csv", CONTENT)]
    archive = server.add(name, zipped(*members) if name.endswith("zip") else tarred(*members))
    folder = fetch("toys.official", (archive, server.add("readme.txt", b"words")), tmp_path)
    assert (folder / "data" / "deep" / "test.csv").read_bytes() == CONTENT
    assert (folder / "data" / "train.csv").read_bytes() == b"1,2"
    assert (folder / "readme.txt").read_bytes() == b"words"


def link(kind, target):
    info = tarfile.TarInfo("link")
    info.type, info.linkname = kind, target
    return info


def zip_link():
    info = zipfile.ZipInfo("link")
    info.external_attr = 0o120777 << 16
    return info


UNSAFE = {
    "outside.zip": (lambda: zipped(("../outside.txt", b"x")), "leads out of the folder"),
    "outside.tar": (lambda: tarred(("a/../../outside.txt", b"x")), "leads out of the folder"),
    "absolute.zip": (lambda: zipped(("/tmp/outside.txt", b"x")), "is an absolute path"),
    "absolute.tar": (lambda: tarred(("/tmp/outside.txt", b"x")), "is an absolute path"),
    "drive.zip": (lambda: zipped(("C:/outside.txt", b"x")), "is an absolute path or one of another system"),
    "backslash.tar": (lambda: tarred(("..\\outside.txt", b"x")), "one of another system"),
    "link.zip": (lambda: zipped((zip_link(), b"/etc/passwd")), "is a link"),
    "symlink.tar": (lambda: tarred((link(tarfile.SYMTYPE, "/etc"), b"")), "is a link"),
    "hardlink.tar": (lambda: tarred((link(tarfile.LNKTYPE, "/etc/passwd"), b"")), "is a link"),
    "device.tar": (lambda: tarred((link(tarfile.CHRTYPE, ""), b"")), "a special file"),
    "twice.tar": (lambda: tarred(("a.txt", b"1"), ("a.txt", b"2")), "is there twice"),
    "bomb.zip": (lambda: zipped(("zeros.bin", bytes(1_000_000))), "beyond the"),
    "bomb.tar": (lambda: tarred(("zeros.bin", bytes(1_000_000))), "beyond the"),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_unsafe_archives_are_refused_as_a_whole(server, tmp_path, name):
    make, words = UNSAFE[name]
    archive = server.add(name, make())
    with pytest.raises(StoreError, match=f"is unsafe: .*{words}"):
        fetch("toys.official", (archive,), tmp_path / "root")
    assert not download_folder("toys.official", (archive,), tmp_path / "root").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_a_file_longer_than_its_archive_says_is_refused(tmp_path):
    archive = Download("http://127.0.0.1/a.zip", 10, "0" * 64)
    with (tmp_path / "a").open("wb") as target, pytest.raises(StoreError, match="'a' is longer than it says"):
        downloads._copy(io.BytesIO(bytes(11)), target, 10, "a", archive)


@pytest.mark.parametrize("name", ["broken.zip", "broken.tar.gz"])
def test_what_is_no_archive_is_refused(server, tmp_path, name):
    with pytest.raises(StoreError, match="is no archive that can be unpacked"):
        fetch("toys.official", (server.add(name, CONTENT),), tmp_path)


def test_the_size_of_an_archive_may_be_registered(server, tmp_path):
    zeros = zipped(("zeros.bin", bytes(1_000_000)))
    assert (fetch("toys.a", (server.add("a.zip", zeros, unpacked_size=1_000_000),), tmp_path) / "zeros.bin").is_file()
    with pytest.raises(StoreError, match=r"beyond the .* that it may have unpacked"):
        fetch("toys.b", (server.add("b.zip", zeros, unpacked_size=999_999),), tmp_path)


def zenodo(server, content, **changes):
    """Files of a record, as the site describes them."""
    entry = {"key": "a.tar.gz", "size": len(content), "checksum": f"md5:{hashlib.md5(content).hexdigest()}", **changes}
    server.files["/api/records/7"] = json.dumps({"files": [{"key": "other"}, entry]}).encode()
    server.files["/records/7/files/a.tar.gz"] = content
    return ZenodoFiles(7, ("a.tar.gz",), server.url("").rstrip("/"))


def test_files_of_a_record_are_checked_and_stay_packed(server, tmp_path):
    content = tarred(("a.txt", b"hello"))
    files = zenodo(server, content)
    folder = fetch("social.official", files, tmp_path, progress=False)
    assert (folder / "a.tar.gz").read_bytes() == content and folder.name.startswith("zenodo-7-")
    asked = len(server.ranges)
    assert fetch("social.other", files, tmp_path, progress=False) == folder and len(server.ranges) == asked


def test_files_of_a_record_continue_and_are_refused_if_they_differ(server, tmp_path):
    content = tarred(("a.txt", bytes(5000)))
    server.cut = [10_000, 40]  # the description whole, then a part of the file
    folder = fetch("social.official", zenodo(server, content), tmp_path, progress=False)
    assert (folder / "a.tar.gz").read_bytes() == content and "bytes=40-" in server.ranges
    with pytest.raises(ChecksumMismatch, match="has the MD5 sum"):
        fetch("x", zenodo(server, content, checksum="md5:" + "0" * 32), tmp_path / "b", progress=False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"key": "b.tar.gz"}, r"states no size and MD5 sum of a\.tar\.gz"),
        ({"size": "12"}, "states no size"),
        ({"checksum": "sha1:00"}, "states no size"),
    ],
)
def test_records_without_the_files_are_named(server, tmp_path, changes, words):
    with pytest.raises(StoreError, match=words):
        fetch("x", zenodo(server, b"x", **changes), tmp_path, progress=False)


def test_records_that_cannot_be_read_are_named(server, tmp_path):
    files = zenodo(server, b"x")
    server.files["/api/records/7"] = b"<html>"
    with pytest.raises(StoreError, match=r"api/records/7 cannot be read.*get a\.tar\.gz"):
        fetch("x", files, tmp_path, progress=False)
    del server.files["/api/records/7"]
    with pytest.raises(StoreError, match="cannot be read"):
        fetch("x", files, tmp_path, progress=False)
