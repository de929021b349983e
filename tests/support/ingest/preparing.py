"""Types of the fixtures for prepare steps, and archives for testing them."""

from __future__ import annotations

import io
import zipfile
from typing import Protocol

from odfpy.chain.sources import CompressionFormat, PrepDecompress, PrepStep
from odfpy.ingest.archive import UnpackLimits

GZIP = PrepDecompress(CompressionFormat.GZIP)
ZIP = PrepDecompress(CompressionFormat.ZIP)


class Prepare(Protocol):
    """Applies steps to content."""

    def __call__(
        self, *steps: PrepStep, content: bytes, limits: UnpackLimits | None = None, timeout: float | None = 60
    ) -> bytes: ...


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive; names with a trailing slash are folders."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return buffer.getvalue()


def from_zip(sub_path: str) -> PrepDecompress:
    """Return a step that extracts a file from an archive."""
    return PrepDecompress(CompressionFormat.ZIP, sub_path)
