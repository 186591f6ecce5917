"""The choice of the source of samples: the dataset's generator, files of its domain, or a reader from the user."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from graphbench.catalog.cards import Card
from graphbench.core.arguments import checked_path
from graphbench.core.errors import ArgumentError, CardError
from graphbench.core.files import default_root
from graphbench.core.plugins import about_broken
from graphbench.core.suggestions import closest
from graphbench.data.components.domain import Domain, find, find_domain, register_domain, registered_domains
from graphbench.data.components.file_sources import FileSource, Reader, file_source
from graphbench.data.sources.downloads import Downloads, download_folder, fetch
from graphbench.data.sources.zenodo import ZenodoFiles

GENERATED = "generated"
IMPORTED = "imported"

_READERS: dict[str, FileSource] = {}
register_domain(Domain(IMPORTED, sources=_READERS))


def _source_of_reader(read: Reader, card: Card) -> FileSource:
    """Return the source of a user's reader: the registered one that it belongs to, or one of its own in this process.

    So a reader that is given as a function and by the name of its source is one source, with one protocol.
    """
    for domain in registered_domains():
        source: FileSource
        for source in domain.components("source").values():
            if domain.name != IMPORTED and getattr(source.generator, "read", None) is read:
                return source
    words = f"{getattr(read, '__module__', '')}_{getattr(read, '__qualname__', type(read).__qualname__)}"
    short = re.sub(r"\W+", "_", words).strip("_")
    masks_cells = find("generator", card.generator).masks_cells
    _READERS[short] = file_source(f"{IMPORTED}.{short}", read, masks_cells=masks_cells)
    return _READERS[short]


def find_source(card: Card, source: str | Reader) -> FileSource:
    """Return the source of files that a user selects for a dataset.

    Raises:
        ArgumentError: If the source does not exist.
    """
    if callable(source):
        return _source_of_reader(source, card)
    try:
        registered: FileSource = find("source", source if "." in source else f"{card.domain}.{source}")
    except CardError as error:
        names = (GENERATED, *_selectable_sources(card.domain))
        raise ArgumentError(
            f"source={source!r} is unknown for {card.id}{closest(source, names)} (there are "
            f"{', '.join(map(repr, names))}; a source of another domain is named <domain>.<name>){about_broken()}"
        ) from error
    return registered


def _sources_of(domain: str) -> Mapping[str, FileSource]:
    try:
        return find_domain(domain).components("source")
    except CardError:
        return {}


def _selectable_sources(domain: str) -> list[str]:
    """Return the short names of the sources that users of a domain select."""
    return [name for name, source in _sources_of(domain).items() if not source.part_of]


def source_of(card: Card) -> FileSource | None:
    """Return the source of files that a card's samples come from; None for generated data."""
    domain, _, short = card.generator.partition(".")
    return _sources_of(domain).get(short)


def source_name(card: Card) -> str:
    """Return the name of the source of a card's samples for users: ``generated``, ``official``, ..."""
    source = source_of(card)
    if source is None:
        return GENERATED
    domain, _, short = source.name.partition(".")
    short = source.part_of or short
    return short if domain == card.domain else source.name


def source_with_protocol(domain: str, protocol: str | None) -> FileSource | None:
    """Return the source of files of a domain that sets a protocol for its runs; None for other protocols.

    A protocol is the name of a source, and may name one of several collections of its files after a colon.
    """
    return None if protocol is None else _sources_of(domain).get(protocol.partition(":")[0])


def sourced_card(
    card: Card,
    source: str | Reader = GENERATED,
    folder: str | Path | None = None,
    *,
    download: bool = False,
    root: str | Path | None = None,
    progress: bool | None = None,
) -> Card:
    """Return the card itself for generated data, or the card of the files in a folder.

    Args:
        card: The dataset's card.
        source: ``generated``, the name of a source of files, or a reader; see :class:`graphbench.Loader`.
        folder: Folder of the files.
        download: Whether to download the files.
        root: Folder of all datasets, below which downloaded files lie.
        progress: Show a progress bar of the download; None for terminals only.

    Raises:
        ArgumentError: If ``source`` is unknown, or does not go together with ``folder`` and ``download``.
        CardError: If the card is of another draw than data seed 0.
        StoreError: If ``folder`` does not hold the files, or they cannot be downloaded.
    """
    if source == GENERATED:
        if folder is not None or download:
            arguments = "download is" if folder is None else f"folder={str(folder)!r} is"
            example = next(iter(_selectable_sources(card.domain)), "<domain>.<name>")
            raise ArgumentError(
                f"{arguments} for files that are not generated; name their source, such as source={example!r} "
                f"(--source {example}), or use root= (--root) for generated data"
            )
        return card
    file_source = find_source(card, source)
    files_folder = None if folder is None else checked_path("folder", folder)
    home = default_root() if root is None else checked_path("root", root)
    source_name = source if isinstance(source, str) else file_source.name
    return file_source.card(card, _folder_of_source(file_source, source_name, files_folder, download, home, progress))


def _folder_of_source(
    source: FileSource, source_name: str, folder: Path | None, download: bool, root: Path, progress: bool | None
) -> Path:
    """Return the folder of a source's files; download them first if requested."""
    if download:
        if folder is not None:
            raise ArgumentError(f"folder={str(folder)!r} and download exclude each other; give one of them")
        if not source.downloads:
            raise ArgumentError(
                f"no download is registered for source={source_name!r}; get its files yourself, and give folder= "
                "(--folder)"
            )
        return fetch(source.name, source.downloads, root, progress)
    if folder is not None:
        return folder
    downloaded = download_folder(source.name, source.downloads, root)
    if not source.downloads or not downloaded.is_dir():
        hint = f", or download=True (--download), which fetches {_amount(source.downloads)}" if source.downloads else ""
        raise ArgumentError(f"source={source_name!r} needs folder= (--folder), the folder of its files{hint}")
    return downloaded


def _amount(downloads: Downloads) -> str:
    """Return how much a download fetches, in words."""
    if isinstance(downloads, ZenodoFiles):
        return f"{' and '.join(downloads.names)} of {downloads.site}/records/{downloads.record}"
    return f"{sum(file.size for file in downloads) / 1e6:,.1f} MB"
