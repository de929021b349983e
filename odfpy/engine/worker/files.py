"""The files of a request: all that a confined engine sees of the workspace while it works on the request."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from odfpy.engine.contract import (
    AnalyzeRequest,
    JobRequest,
    PreprocessRequest,
    SqlRequest,
    TransformRequest,
    TransformResponseSuccess,
)
from odfpy.engine.scans import ScanRequest
from odfpy.engine.sql.files import FilesRequest
from odfpy.engine.tracing import TraceRequest
from odfpy.engine.worker.messages import Job, Result
from odfpy.errors import EngineError


@dataclass(frozen=True, slots=True)
class RequestFiles:
    """The files of a request.

    Attributes:
        reads: files to read.
        folders: folders for its output; the engine may see and change their other files.
    """

    reads: tuple[str, ...]
    folders: tuple[str, ...]


def files_of(job: Job | ScanRequest | FilesRequest) -> RequestFiles:
    """Return the files that a request names."""
    reads: list[str | None] = []
    written: list[str] = []
    match job:
        case AnalyzeRequest():
            reads = [source.schema_file for source in job.inputs]
        case TransformRequest():
            for source in job.query_inputs:
                reads += [source.schema_file, *source.data_paths, *(source.history_paths or ())]
            reads.append(job.prev_checkpoint_path)
            if job.prev_arrangement_path is not None:
                reads += _within(Path(job.prev_arrangement_path))
            if job.output_so_far is not None:
                reads += [job.output_so_far.schema_file, *job.output_so_far.data_paths]
            written = [job.new_data_path, job.new_checkpoint_path, job.new_arrangement_path or ""]
        case PreprocessRequest():
            reads = [table.data_path for table in job.tables]
            written = [job.output_path]
        case SqlRequest():
            reads = [path for table in job.tables for path in (table.schema_file, *table.data_paths)]
            written = [job.output_path]
        case FilesRequest():
            reads = [path for table in job.tables for path in table.paths]
        case ScanRequest():
            reads = [part.path for part in job.parts]
        case TraceRequest():
            for source in job.query_inputs:
                reads += [source.schema_file, *source.data_paths, *(source.history_paths or ())]
            reads.append(job.wanted_path)
            written = [job.output_path]
        case JobRequest():
            return RequestFiles(tuple(map(_absolute, job.reads)), (_absolute(job.folder),))
    folders = dict.fromkeys(_folder_of(path) for path in written if path)  # rows may be written elsewhere
    return RequestFiles(tuple(_absolute(path) for path in reads if path), tuple(folders))


def peculiar_files(folders: Iterable[str]) -> set[str]:
    """Return the entries of folders that are neither file nor folder: links, pipes, sockets."""
    paths: set[str] = set()
    for folder in folders:
        for place, below, names in os.walk(folder):
            for path in (Path(place, name) for name in (*below, *names)):
                if path.is_symlink() or not (path.is_file() or path.is_dir()):
                    paths.add(str(path))
    return paths


def _within(folder: Path) -> list[str]:
    """Return the files in a folder; none if it is gone, since it is a cache."""
    with suppress(OSError):
        return sorted(str(path) for path in folder.iterdir())
    return []


def _absolute(path: str) -> str:
    return os.path.abspath(path)  # noqa: PTH100  without `..`, but with links as they are named


def _folder_of(path: str) -> str:
    return str(Path(_absolute(path)).parent)


def check_answer(files: RequestFiles, peculiar: set[str], answer: Result) -> None:
    """Check that an answer refers to nothing but files of the request.

    An attacker in the engine could have a link committed in place of a slice, and so have a private file published.

    Args:
        files: the files of the request.
        peculiar: links and the like that were there before.
        answer: the answer of the engine.

    Raises:
        EngineError: the answer refers to other files.
    """
    for path in sorted(peculiar_files(files.folders) - peculiar):
        raise EngineError(f"The engine wrote something that is not a file: {path}")
    for described in answer.slices if isinstance(answer, TransformResponseSuccess) else ():
        if _folder_of(described.path) not in files.folders:
            raise EngineError(f"The engine has written somewhere else: {described.path}")
