"""A sample of a source: its first input, or a sufficient part of a large one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import unquote

from odfpy.chain.sources import (
    CompressionFormat,
    EventTimeFromMetadata,
    FetchFilesGlob,
    FetchUrl,
    PrepDecompress,
    PrepStep,
)
from odfpy.data.timestamp import Timestamp
from odfpy.errors import FetchError, FetchInterrupted, PrepareError
from odfpy.ingest.archive import UnpackLimits, ZipArchive
from odfpy.ingest.event_time import event_time_of
from odfpy.ingest.fetch import FetchContext, fetch
from odfpy.ingest.fetch.http import request_headers
from odfpy.ingest.fetch.retry import wait_or_give_up
from odfpy.ingest.fetch.url import open_source, split_url
from odfpy.ingest.fetch.version import SourceVersion
from odfpy.ingest.prepare.decompress import decompress
from odfpy.ingest.templates import expand, without_secrets

SAMPLE_BYTES: Final = 8 << 20
"""Maximum bytes of text that are inspected to infer types and keys."""

_BLOCK: Final = 1 << 20
_MAX_FILES: Final = 10_000
_GZIP: Final = b"\x1f\x8b"
_ZIP: Final = b"PK\x03\x04"
_PARQUET: Final = b"PAR1"
_SHAPEFILE: Final = ".shp"
_WORKBOOK: Final = "[Content_Types].xml"


@dataclass(frozen=True, slots=True)
class Sample:
    """A file with the first bytes of an input, or all of them.

    Attributes:
        path: path of the file.
        name: name of the input in messages, without secrets.
        event_time: event time of rows without one.
        is_whole: whether the sample is the whole input.
        names: names of all inputs, if the source can have several.
        last: the last of several inputs.
    """

    path: Path
    name: str
    event_time: Timestamp
    is_whole: bool = True
    names: tuple[str, ...] = ()
    last: Sample | None = None

    def head(self, size: int) -> bytes:
        """Return the first bytes.

        Raises:
            FetchError: the file cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                return file.read(size)
        except OSError as error:
            raise FetchError(f"Cannot read {self.name}: {error.strerror}") from error


def take_sample(step: FetchUrl | FetchFilesGlob, context: FetchContext) -> Sample:
    """Return the first input of a source.

    Args:
        step: the fetch step.
        context: context of the fetch; only the beginning of a remote file is fetched, if that suffices.

    Raises:
        FetchError: there is no input, or it cannot be reached or read.
        InvalidValue: a template or a pattern cannot be used.
    """
    if isinstance(step, FetchUrl) and _scheme(step, context) != "file":
        beginning = _fetch_beginning(step, context)
        if beginning is not None:
            return beginning
    with closing(fetch(step, context)) as inputs:
        found = list(islice(inputs, _MAX_FILES))
    if found:
        first, *others = (Sample(fetched.path, fetched.name, fetched.event_time) for fetched in found)
        return replace(first, names=tuple(fetched.name for fetched in found), last=others[-1] if others else None)
    raise FetchError(f"No data at {without_secrets(step.url if isinstance(step, FetchUrl) else step.path)}")


def _scheme(step: FetchUrl, context: FetchContext) -> str:
    context.options.bounds.require_variables(step)
    return split_url(expand(step.url, context.environment), without_secrets(step.url)).scheme


def _fetch_beginning(step: FetchUrl, context: FetchContext) -> Sample | None:
    """Return the beginning of a remote file; None if its format cannot be read without the end."""
    shown = without_secrets(step.url)
    text = expand(step.url, context.environment)
    url = split_url(text, shown)
    headers = request_headers(step, shown, context)
    target = context.scratch / "beginning"
    failures = 0
    with closing(open_source(text, url, shown, headers, context)) as source:
        while True:
            try:
                arriving = source.open(SourceVersion(), None)
                if arriving is None:
                    return None
                with closing(arriving), target.open("wb") as file:
                    is_whole = _receive(arriving.read, file)
                if is_whole is None:
                    return None
                origin = step.event_time or EventTimeFromMetadata()
                modified = arriving.version.modified
                time = event_time_of(origin, path=unquote(url.path), modified=modified, now=context.now)
                return Sample(target, shown, time, is_whole)
            except FetchInterrupted as error:
                failures += 1
                wait_or_give_up(error, failures, shown, context)
            except OSError as error:
                raise FetchError(f"Cannot write the data of {shown} to {target.parent}: {error.strerror}") from error


def _receive(read: Callable[[int], bytes], file: BinaryIO) -> bool | None:
    """Write received bytes; return whether they are all, or None if the end of the file is needed and far away."""
    received = 0
    needs_end = False
    while block := read(_BLOCK):
        if not received:
            needs_end = block.startswith((_ZIP, _PARQUET))
        file.write(block)
        received += len(block)
        if received >= SAMPLE_BYTES:
            return None if needs_end else False
    return True


# --- Unpacking -------------------------------------------------------------------------------------------------------


def unpacked(sample: Sample, scratch: Path, limits: UnpackLimits) -> tuple[tuple[PrepStep, ...], Sample]:
    """Return the prepare steps that a compressed file needs, and the unpacked sample.

    Args:
        sample: the fetched sample.
        scratch: folder for unpacked files.
        limits: limits on unpacked output.

    Raises:
        PrepareError: the sample is damaged, encrypted, a bomb, or an archive of several files.
    """
    magic = sample.head(4)
    if magic.startswith(_GZIP):
        step = PrepDecompress(CompressionFormat.GZIP)
    elif magic == _ZIP:
        if _is_for_a_reader(sample):
            return (), sample
        step = PrepDecompress(CompressionFormat.ZIP)
    else:
        return (), sample
    target = scratch / "unpacked"
    is_whole = _unpack_beginning(step, sample, target, limits)
    return (step,), replace(sample, path=target, is_whole=is_whole)


def _is_for_a_reader(sample: Sample) -> bool:
    """Return whether a read step can read a zip archive directly: a shapefile.

    Raises:
        PrepareError: the archive is a spreadsheet, or has several files.
    """
    with sample.path.open("rb") as file:
        names = ZipArchive(file, sample.name).names
    if any(name.lower().endswith(_SHAPEFILE) for name in names):
        return True
    if _WORKBOOK in names:
        raise PrepareError(
            f"{sample.name} is a workbook of a spreadsheet, which odf cannot read",
            hint="Save the sheet as CSV, and use that.",
        )
    if len(names) != 1:
        shown = _some(names)
        raise PrepareError(
            f"{sample.name} is an archive of {len(names)} files{shown}, and a dataset reads one of them",
            hint="Unpack it and use one file, or write the manifest: `subPath` of `Decompress` names the file.",
        )
    return False


def _some(names: Sequence[str]) -> str:
    return f": {', '.join(names[:5])}{' and others' if len(names) > 5 else ''}" if names else ""


def _unpack_beginning(step: PrepDecompress, sample: Sample, target: Path, limits: UnpackLimits) -> bool:
    """Unpack only as much as is inspected; return whether that is the whole input."""
    few = replace(limits, max_bytes=min(limits.max_bytes, SAMPLE_BYTES))
    try:
        decompress(step, sample.path, target, sample.name, few)
    except PrepareError:
        size = target.stat().st_size if target.exists() else 0
        is_enough = size > SAMPLE_BYTES - 2 * _BLOCK
        # The beginning of a compressed file is truncated, not damaged.
        if not size or not (is_enough or not sample.is_whole):
            raise
    else:
        return sample.is_whole
    with target.open("rb") as file:
        needs_end = file.read(len(_PARQUET)) == _PARQUET
    if needs_end:
        target.unlink()
        decompress(step, sample.path, target, sample.name, limits)
    return needs_end
