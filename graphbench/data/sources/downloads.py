"""Registered downloads: fetched on request, resumed after interruptions, checked, and unpacked safely."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import shutil
import stat
import struct
import tarfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path, PurePosixPath
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from graphbench.core.damage import FileFault, fault_of
from graphbench.core.errors import ChecksumMismatch, StoreError
from graphbench.core.files import (
    clear_errors,
    file_lock,
    file_sha256,
    make_work_folder,
    open_no_link,
    refuse_foreign_links,
    remove_work_folder,
    require_space,
)
from graphbench.core.packed import PACKED_ERRORS
from graphbench.core.progress import Progress, progress_bar
from graphbench.core.untrusted import open_regular, require_regular
from graphbench.core.words import human_bytes
from graphbench.data.sources.zenodo import ZenodoFiles

_LOG = logging.getLogger(__name__)
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_CHUNK = 1 << 20
_TIMEOUT = 60.0  # seconds without a byte
_TRIES = 3
_PAUSE = 1.0  # seconds before the next try
_GROWTH = 50  # an archive without a registered unpacked size may hold this many times its size
_MAX_FILES = 1_000_000
_RANGE_REFUSED = 416
_DAMAGE = (None, errno.EINVAL)  # numbers of errors of the system that a damaged archive causes
_UNPACKING = (
    *(*PACKED_ERRORS, zipfile.BadZipFile, tarfile.TarError, NotImplementedError, RuntimeError, ValueError),
    *(LookupError, struct.error),
)
_MAX_DESCRIPTION = 1 << 20  # bytes of names and attributes of an entry of a tarball
_DESCRIPTIONS = (
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
)


@dataclass(frozen=True)
class Download:
    """A file that can be downloaded; an archive (``.zip``, ``.tar.gz``, ...) is unpacked.

    Attributes:
        url: Its address, ``http`` or ``https``.
        size: Its size in bytes.
        sha256: SHA-256 of its content, 64 hexadecimal digits; empty if only ``md5`` is given.
        unpacked_size: Largest total size of the files of an archive in bytes; None for 50 times the archive's size.
        md5: MD5 sum of its content, 32 hexadecimal digits.
        packed: Whether an archive is kept as it is.
    """

    url: str
    size: int
    sha256: str
    unpacked_size: int | None = None
    md5: str = ""
    packed: bool = False

    @property
    def file_name(self) -> str:
        """The last part of the address."""
        return PurePosixPath(unquote(urlsplit(self.url).path)).name or "download"

    @property
    def is_archive(self) -> bool:
        """Whether the file is unpacked."""
        return not self.packed and self.file_name.lower().endswith(_ARCHIVES)


Downloads = Sequence[Download] | ZenodoFiles


def download_folder(name: str, downloads: Downloads, root: Path) -> Path:
    """Return the folder for the downloaded files of a source; other downloads have another folder.

    Files of a Zenodo record have the same folder for all sources.
    """
    if isinstance(downloads, ZenodoFiles):
        name, identity = f"zenodo-{downloads.record}", downloads.identity
    else:
        identity = "|".join(f"{d.url} {d.sha256}" for d in downloads)
    digest = hashlib.sha256(identity.encode()).hexdigest()
    return root / ".downloads" / f"{name}-{digest[:12]}"


def fetch(name: str, downloads: Downloads, root: Path, progress: bool | None = None) -> Path:
    """Return the folder with the downloaded files of a source; missing files are downloaded first.

    An interrupted download is resumed; a lock serialises processes that need the same files.

    Raises:
        StoreError: If a server cannot be reached or sends another file than the registered file, an archive is unsafe,
            or the folder cannot be written.
        ChecksumMismatch: If a file does not have the registered checksum.
    """
    folder = download_folder(name, downloads, root)
    with clear_errors(folder, "create"):
        refuse_foreign_links(folder.parent)
        folder.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(folder.with_name(f".{folder.name}.lock")):
        if not folder.is_dir():
            _fetch_into(folder, _registered(downloads), progress)
    return folder


def _registered(downloads: Downloads) -> Sequence[Download]:
    if not isinstance(downloads, ZenodoFiles):
        return downloads
    stated = downloads.stated().items()
    return [Download(downloads.url(name), size, "", md5=md5, packed=True) for name, (size, md5) in stated]


def _fetch_into(folder: Path, downloads: Sequence[Download], progress: bool | None) -> None:
    work = folder.with_name(f".{folder.name}.part")
    content = work / "content"
    with clear_errors(work, "write"):
        make_work_folder(work)
        remove_work_folder(content)
        content.mkdir()
        for number, download in enumerate(downloads):
            file = work / f"{number}-{download.file_name}"
            _download(download, file, progress)
            if download.is_archive:
                _unpack(download, file, content)
            else:
                _place(file, content / download.file_name)
        content.rename(folder)
        remove_work_folder(work)


def _place(file: Path, target: Path) -> None:
    """Give a file a second name, which takes no room; copy it where links are not possible."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)


def _download(download: Download, file: Path, progress: bool | None) -> None:
    """Download a file, or the missing rest of it, and check it."""
    if urlsplit(download.url).scheme not in ("http", "https"):
        raise StoreError(f"{download.url} is no http or https address; correct the registered download")
    if file.is_file() and file.stat().st_size > download.size:
        file.unlink()
    there = file.stat().st_size if file.is_file() else 0
    require_space(file.parent, download.size - there)
    with progress_bar(download.size, f"download {download.file_name}", unit="B", enabled=progress) as bar:
        bar.update(there)
        for further in range(_TRIES):
            try:
                _receive(download, file, bar)
                break
            except (URLError, HTTPException, OSError) as error:
                if isinstance(error, StoreError):
                    raise
                if further == _TRIES - 1 or (isinstance(error, HTTPError) and error.code < 500):
                    raise StoreError(_failure(download, file, error)) from error
                _LOG.info("%s: %s; trying again", download.url, error)
                time.sleep(_PAUSE * (further + 1))
    if download.sha256:
        sum_, actual, expected = "SHA-256", file_sha256(file), download.sha256
    else:
        with open_regular(file) as stream:
            sum_, actual, expected = "MD5 sum", hashlib.file_digest(stream, "md5").hexdigest(), download.md5
    if actual != expected:
        file.unlink()
        raise ChecksumMismatch(
            f"{download.url} has the {sum_} {actual}, not the registered {expected}: the file has "
            "changed or was damaged on the way; try again, or get the files by other means and give their folder"
        )


def _failure(download: Download, file: Path, error: Exception) -> str:
    there = file.stat().st_size if file.is_file() else 0
    reason = getattr(error, "reason", None) or error
    return (
        f"{download.url} cannot be downloaded ({reason}; {there:,} of {download.size:,} bytes are there); run the same "
        "again to continue, or get the files by other means and give their folder"
    )


def _receive(download: Download, file: Path, bar: Progress) -> None:
    """Append the missing rest of a file; a connection that ends early raises an ``OSError``."""
    there = file.stat().st_size if file.is_file() else 0
    if there == download.size:
        return
    request = Request(download.url, headers={"Range": f"bytes={there}-"} if there else {})
    try:
        answer: HTTPResponse = urlopen(request, timeout=_TIMEOUT)
    except HTTPError as error:
        if error.code == _RANGE_REFUSED and there:
            file.unlink()
        raise
    with closing(answer):
        continued = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {there}-")
        if there and not continued:  # the server sends the file from its beginning
            bar.update(-there)
            there = 0
        with open_no_link(file, "ab" if there else "wb") as target:
            for chunk in iter(lambda: answer.read(_CHUNK), b""):
                there += len(chunk)
                if there > download.size:
                    target.truncate(0)
                    raise StoreError(
                        f"{download.url} is larger than the registered {human_bytes(download.size)}: the file has "
                        "changed; get the files by other means and give their folder"
                    )
                target.write(chunk)
                bar.update(len(chunk))
    if there < download.size:
        raise ConnectionError(f"the connection ended after {there:,} of {download.size:,} bytes")


def _unpack(download: Download, file: Path, content: Path) -> None:
    """Unpack an archive into a folder; no file can be written elsewhere.

    Raises:
        StoreError: If the archive cannot be read, contains a path outside the folder, a link, a special file or a
            duplicate name, or more bytes or files than allowed. No file of it is then used.
    """
    most = download.unpacked_size if download.unpacked_size is not None else _GROWTH * download.size
    try:
        require_regular(file)
        if download.file_name.lower().endswith(".zip"):
            with zipfile.ZipFile(file) as archive:
                _extract(download, content, most, _zip_members(archive))
        else:
            with tarfile.open(file, tarinfo=BoundedTarInfo) as archive_:
                _extract(download, content, most, _tar_members(archive_))
    except _UNPACKING as error:
        if isinstance(error, OSError) and (isinstance(error, StoreError) or error.errno not in _DAMAGE):
            raise
        raise StoreError(
            f"{download.url} is no archive that can be unpacked: it {fault_of(error)}; get its files by other means "
            "and give their folder"
        ) from error


class BoundedTarInfo(tarfile.TarInfo):
    """An entry of a tarball; entries that describe other entries are read whole, so their size is limited."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> tarfile.TarInfo:  # type: ignore[override]
        """Return the entry that a header describes.

        Raises:
            FileFault: If it is the description of another entry, and a long one.
        """
        entry = super().frombuf(buf, encoding, errors)
        if entry.type in _DESCRIPTIONS and not 0 <= entry.size <= _MAX_DESCRIPTION:
            raise FileFault(f"is damaged: it describes a file in {entry.size:,} bytes")
        return entry


_Entry = tuple[str, int, str, IO[bytes] | None]  # path, size, problem, content; None for folders


def _zip_members(archive: zipfile.ZipFile) -> Iterator[_Entry]:
    for info in archive.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        special = kind not in (0, stat.S_IFREG, stat.S_IFDIR)
        if info.is_dir() or special:
            yield info.filename, 0, "is a link or a special file" if special else "", None
        else:
            with archive.open(info) as source:
                yield info.filename, info.file_size, "", source


def _tar_members(archive: tarfile.TarFile) -> Iterator[_Entry]:
    for info in archive:
        if info.isreg():
            source = archive.extractfile(info)
            assert source is not None
            with source:
                yield info.name, info.size, "", source
        else:
            yield info.name, 0, "" if info.isdir() else "is a link or a special file", None


def _extract(download: Download, content: Path, most: int, members: Iterator[_Entry]) -> None:
    total = 0
    for number, (name, size, wrong, source) in enumerate(members, start=1):
        total += size
        problem = wrong or path_problem(name)
        if number > _MAX_FILES:
            problem = f"is beyond the {_MAX_FILES:,} files allowed"
        elif total > most:
            problem = f"takes the archive beyond the {human_bytes(most)} that it may have unpacked"
        target = content / name
        if not problem and source is not None and target.exists():
            problem = "is there twice"
        if problem:
            raise StoreError(f"the archive {download.url} is unsafe: {name!r} {problem}; nothing of it is used")
        if source is None:
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            _copy(source, file, size, name, download)


def _copy(source: IO[bytes], file: IO[bytes], size: int, name: str, download: Download) -> None:
    """Copy a file of an archive; refuse one that is longer than its entry in the archive."""
    copied = 0
    for chunk in iter(lambda: source.read(_CHUNK), b""):
        copied += len(chunk)
        if copied > size:
            raise StoreError(f"the archive {download.url} is unsafe: {name!r} is longer than it says")
        file.write(chunk)


def path_problem(name: str) -> str:
    """Return why a path of an archive must not be used, or an empty string."""
    path = PurePosixPath(name)
    if not name or "\0" in name:
        return "is no file name"
    if path.is_absolute() or "\\" in name or (len(name) > 1 and name[1] == ":"):
        return "is an absolute path or one of another system"
    return "leads out of the folder" if ".." in path.parts else ""
