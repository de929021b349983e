"""Origins of fetch steps: the state of one step is only valid for another one with the same origin."""

from __future__ import annotations

import glob
from pathlib import PurePosixPath

from odfpy.chain.sources import FetchEthereumLogs, FetchFilesGlob, FetchStep, FetchUrl


def is_same_place(before: FetchStep, after: FetchStep) -> bool:
    """Return whether two steps fetch the same document, files of the same folder, or logs of the same event.

    An ETag of another document is meaningless, and so is the name of the last file in another folder. The pattern of
    the ingested files of a folder may change, and so may the filter of logs.
    """
    if isinstance(before, FetchUrl) and isinstance(after, FetchUrl):
        return before.url == after.url
    if isinstance(before, FetchFilesGlob) and isinstance(after, FetchFilesGlob):
        return fixed_part(before.path) == fixed_part(after.path)
    if isinstance(before, FetchEthereumLogs) and isinstance(after, FetchEthereumLogs):
        return (before.chain_id, before.signature) == (after.chain_id, after.signature)
    return type(before) is type(after)


def fixed_part(pattern: str) -> str:
    """Return the folders of a path before the first wildcard; names of files are relative to them."""
    parts = PurePosixPath(pattern).parts[:-1]
    fixed = next((at for at, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return str(PurePosixPath(*parts[:fixed]))
