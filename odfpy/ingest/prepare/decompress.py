"""Decompression of gzip files and of single files in zip archives (ODF specification, "PrepStep: Decompress")."""

from __future__ import annotations

import gzip
from pathlib import Path

from odfpy.chain.sources import CompressionFormat, PrepDecompress
from odfpy.errors import PrepareError
from odfpy.ingest.archive import UnpackLimits, ZipArchive, unpack

_GZIP = b"\x1f\x8b"


def check_decompress(step: PrepDecompress) -> None:
    """Validate the step before there is a file.

    Raises:
        PrepareError: the step has a `subPath`, but its format has no members.
    """
    if step.format is CompressionFormat.GZIP and step.sub_path is not None:
        raise PrepareError(
            "Prepare step Decompress has a `subPath`, but a Gzip file is a single file",
            hint="Omit `subPath`, or set `format: Zip`.",
        )


def decompress(step: PrepDecompress, source: Path, target: Path, name: str, limits: UnpackLimits) -> None:
    """Write the content of a compressed file.

    Args:
        step: the format, and the file of an archive to select.
        source: the compressed file.
        target: the file to create.
        name: name of the compressed file in errors.
        limits: limits on the output.

    Raises:
        PrepareError: the file has another format, or is damaged, encrypted, ambiguous or a bomb.
        OSError: a file cannot be read or written.
    """
    with source.open("rb") as packed, target.open("xb") as unpacked:
        if step.format is CompressionFormat.ZIP:
            archive = ZipArchive(packed, name)
            archive.extract(archive.find(step.sub_path), unpacked, limits)
            return
        magic = packed.read(2)
        if magic != _GZIP:
            raise PrepareError(
                f"{name} is not a gzip file",
                hint="It is a zip file; set `format: Zip`."
                if magic == b"PK"
                else "Perhaps it is not compressed, or the server has already decompressed it.",
            )
        size = packed.seek(0, 2)
        packed.seek(0)
        with gzip.GzipFile(fileobj=packed) as stream:
            unpack(stream, unpacked, size, name, limits)
