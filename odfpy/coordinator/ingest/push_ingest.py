"""`odf ingest`: ingest of files or a stream into a push source."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from odfpy.chain.events import AddPushSource
from odfpy.chain.read_steps import (
    ReadCsv,
    ReadEsriShapefile,
    ReadGeoJson,
    ReadJson,
    ReadNdGeoJson,
    ReadNdJson,
    ReadParquet,
    ReadStep,
)
from odfpy.coordinator.ingest.ingest import ingest_file, push_source, reporting_rows
from odfpy.coordinator.ingest.ingest_request import IngestRequest, SourceFile
from odfpy.coordinator.ingest.watermarks import with_idle_watermark
from odfpy.coordinator.storage.references import staging
from odfpy.coordinator.storage.results import Progress, ProgressSink, PullResult
from odfpy.coordinator.storage.storage import Storage
from odfpy.engine.registry import EngineRegistry
from odfpy.errors import NotFound, OdfError, UsageError, did_you_mean
from odfpy.stages import stage

INPUT_FORMATS: dict[str, type[ReadStep]] = {
    "csv": ReadCsv,
    "json": ReadJson,
    "ndjson": ReadNdJson,
    "geojson": ReadGeoJson,
    "ndgeojson": ReadNdGeoJson,
    "esrishapefile": ReadEsriShapefile,
    "parquet": ReadParquet,
}
"""Read steps by the name of the input format."""


def ingest(
    storage: Storage,
    engines: EngineRegistry,
    request: IngestRequest,
    progress: ProgressSink,
) -> Iterator[PullResult]:
    """Ingest files, then a stream, with one commit each; see `Workspace.ingest`.

    Args:
        storage: the workspace's files.
        engines: the engines, for preprocessing.
        request: the request.
        progress: called with the progress.

    Raises:
        OdfError: a file could not be ingested; files after it were not ingested either.
    """
    _check_files(request)
    with stage("find datasets"):
        target = staging(storage.get(request.ref), request.branch)
    with target.writing() as dataset, storage.scratch() as scratch:
        source = with_format(push_source(dataset, request.source_name), request.input_format)
        inputs = _inputs(request, scratch)
        has_rows = False
        for number, (path, name) in enumerate(inputs):
            progress(Progress(str(dataset.handle), f"ingesting {name}", number, len(inputs), "files"))
            folder = scratch / f"commit-{number}"
            folder.mkdir()
            started = time.monotonic()
            file = SourceFile.dated(path, name, request.event_time)
            # Each file is a commit, so the dataset is reloaded: the next file must be merged with the rows of this one.
            with (
                stage(str(dataset.handle), is_subject=True) as profile,
                reporting_rows(progress, str(dataset.handle), name),
            ):
                try:
                    result = ingest_file(dataset.reloaded(), source, file, engines, folder, request.overrides)
                except OdfError as error:
                    raise _failed(error, str(dataset.handle), [name for _, name in inputs[number + 1 :]]) from error
            has_rows = has_rows or result.num_records > 0
            if number == len(inputs) - 1 and not has_rows:
                result = with_idle_watermark(dataset, result)
            input_name = name if len(inputs) > 1 else None
            yield replace(result, seconds=time.monotonic() - started, input=input_name, profile=profile)


def _check_files(request: IngestRequest) -> None:
    """Check that all inputs exist, before the dataset is locked.

    Raises:
        UsageError: there is no input, or one is not a file.
        NotFound: a file does not exist.
    """
    if not request.files and request.stdin is None:
        raise UsageError("Nothing to ingest", hint="Name files, or pass data with --stdin.")
    for file in request.files:
        if file.is_dir():
            raise UsageError(f"{file} is a folder", hint="Name the files in it.")
        if not file.exists():
            hint = "Standard input is read with --stdin, without a name." if str(file) == "-" else None
            raise NotFound(f"No such file: {file}", hint=hint)
        if not file.is_file() and not file.is_fifo() and str(file) != os.devnull:
            raise UsageError(f"{file} is not a file", hint="Pipe its bytes in: `... | odf ingest NAME --stdin`.")


def _inputs(request: IngestRequest, scratch: Path) -> list[tuple[Path, str]]:
    """Return path and display name of each input; pipes and the stream are copied to files."""
    inputs = [
        (_of_pipe(file, scratch / f"pipe-{number}") if file.is_fifo() else file, str(file))
        for number, file in enumerate(request.files)
    ]
    if request.stdin is not None:
        inputs.append((_spool(request.stdin, scratch / "stdin"), "standard input"))
    return inputs


def _failed(error: OdfError, dataset: str, untried: Sequence[str]) -> OdfError:
    """Return the error of a file with the name of the dataset, and with the remaining files that were not tried."""
    message = error.message if error.message.startswith(dataset) else f"{dataset}: {error.message}"
    if untried:
        more = f" and {len(untried) - 1} more" if len(untried) > 1 else ""
        message += f"; not tried: {untried[0]}{more}"
    return error.with_message(message, hint=error.hint)


def _of_pipe(file: Path, target: Path) -> Path:
    """Copy the content of a pipe, such as `<(...)` of a shell, to a file: some readers read it more than once."""
    try:
        with file.open("rb") as stream:
            return _spool(stream, target)
    except OSError as error:
        raise OdfError(f"Cannot read {file}: {error.strerror}") from error


def _spool(stream: BinaryIO, path: Path) -> Path:
    try:
        with path.open("wb") as target:
            shutil.copyfileobj(stream, target, 1 << 20)
    except OSError as error:
        raise OdfError(f"Cannot write {path}: {error.strerror}") from error
    return path


def with_format(source: AddPushSource, input_format: str | None) -> AddPushSource:
    """Return the source with the read step of another input format, and the same schema.

    Raises:
        UsageError: the format is unknown.
    """
    if input_format is None:
        return source
    read_step = INPUT_FORMATS.get(input_format.lower())
    if read_step is None:
        formats = ", ".join(INPUT_FORMATS)
        raise UsageError(
            f"Unknown input format {input_format!r}",
            hint=did_you_mean(input_format, INPUT_FORMATS, otherwise=f"One of: {formats}"),
        )
    return source if isinstance(source.read, read_step) else replace(source, read=_converted(source.read, read_step))


def _converted(read: ReadStep, read_step: type[ReadStep]) -> ReadStep:
    converted = read_step(ddl_schema=read.ddl_schema, schema=read.schema)
    return replace(converted, header=True) if isinstance(converted, ReadCsv) else converted
