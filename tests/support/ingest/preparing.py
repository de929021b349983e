"""Types of the fixtures for prepare steps, and archives to try them on."""

from __future__ import annotations

import io
import zipfile
from typing import Protocol

from odfpy.chain.sources import CompressionFormat, PrepDecompress, PrepStep
from odfpy.ingest.archive import UnpackLimits

GZIP = PrepDecompress(CompressionFormat.GZIP)
ZIP = PrepDecompress(CompressionFormat.ZIP)


class Prepare(Protocol):
    """Gives what steps make of content."""

    def __call__(
        self, *steps: PrepStep, content: bytes, limits: UnpackLimits | None = None, timeout: float | None = 60
    ) -> bytes: ...


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip archive; names with a slash at the end are folders."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def from_zip(sub_path: str) -> PrepDecompress:
    """A step that takes a file out of an archive."""
    return PrepDecompress(CompressionFormat.ZIP, sub_path)
