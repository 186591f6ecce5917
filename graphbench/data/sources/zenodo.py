"""Files of a Zenodo record: the record itself states their sizes and MD5 sums when they are fetched."""

from __future__ import annotations

import json
import re
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from graphbench.core.errors import StoreError

_TIMEOUT = 60.0
_MAX_BYTES = 1 << 22  # of the description of a record
_MD5 = re.compile(r"md5:([0-9a-f]{32})")


@dataclass(frozen=True)
class ZenodoFiles:
    """Some files of a record, registered by their names; they are kept as they are, not unpacked.

    Attributes:
        record: Number of the record.
        names: The files.
        site: Address of the site.
    """

    record: int
    names: tuple[str, ...]
    site: str = "https://zenodo.org"

    @property
    def identity(self) -> str:
        """The facts that distinguish these files from other files."""
        return "|".join((self.site, str(self.record), *self.names))

    def url(self, name: str) -> str:
        """Return the address of a file."""
        return f"{self.site}/records/{self.record}/files/{name}"

    def stated(self) -> dict[str, tuple[int, str]]:
        """Return name -> size in bytes and MD5 sum, as the record states them.

        Raises:
            StoreError: If the record cannot be reached, or does not state size and MD5 sum.
        """
        address = f"{self.site}/api/records/{self.record}"
        try:
            with closing(urlopen(address, timeout=_TIMEOUT)) as answer:
                content: Any = json.loads(answer.read(_MAX_BYTES))
        except (URLError, HTTPException, OSError, ValueError, RecursionError) as error:
            reason = getattr(error, "reason", None) or error
            raise StoreError(
                f"{address} cannot be read ({reason}); try again later, or get {', '.join(self.names)} by other means "
                "and give their folder"
            ) from error
        files = content.get("files") if isinstance(content, dict) else None
        entries = (
            {str(entry.get("key")): entry for entry in files if isinstance(entry, dict)}
            if isinstance(files, list)
            else {}
        )
        checksums = {}
        for name in self.names:
            entry = entries.get(name, {})
            size, checksum = entry.get("size"), _MD5.fullmatch(str(entry.get("checksum")))
            if type(size) is not int or size < 0 or checksum is None:
                raise StoreError(
                    f"{address} states no size and MD5 sum of {name}; the record may have been replaced or restricted: "
                    "get the files by other means and give their folder"
                )
            checksums[name] = size, checksum[1]
        return checksums
