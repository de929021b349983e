"""Previews of archived files: text, tables and images, recognized by their bytes.

/file/{id}/preview      the beginning of the file, as JSON
/file/{id}/picture      the unchanged image, for an `<img>`

Clients that push files control the bytes, so nothing in them may run: texts and tables are sent as JSON; an image has a
Content-Security-Policy under which it can neither run nor load anything, even if opened directly. Compressed data is
only decompressed up to a limit. Parquet is read in a sandboxed process with limited memory and time, one file, and no
network.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Request, Response

from odfpy.archive.errors import WrongContent
from odfpy.archive.local import LocalArchive
from odfpy.archive.preview.delimited import MAX_COLUMNS, MAX_ROWS, cut, first_rows
from odfpy.archive.preview.head import FileHead, read_head
from odfpy.archive.preview.kind import HEAD, DetectedKind, FileKind, detect_kind, text_of
from odfpy.archive.preview.picture import MAX_PIXELS, pixels_of
from odfpy.archive.record import FileRecord
from odfpy.engine.cancellation import CancellationToken
from odfpy.engine.sql.files import FilesRequest, FileTable
from odfpy.errors import (
    EngineError,
    InvalidQuery,
    MalformedData,
    QueryCancelled,
    QueryEnded,
    QueryTimedOut,
    ResultTooLarge,
)
from odfpy.query.wire.layouts import DataFormat, laid_out
from odfpy.serving.archive.browsing import refused_with_codes
from odfpy.serving.archive.browsing_models import PreviewModel
from odfpy.serving.archive.content import require_given
from odfpy.serving.archive.details import FileId
from odfpy.serving.archive.served import ReadableArchive
from odfpy.serving.callers.access import AnyCaller, registry_of
from odfpy.serving.http.errors import Refused
from odfpy.serving.http.json_responses import reply
from odfpy.serving.rest.models import answers

if TYPE_CHECKING:
    import pyarrow as pa

router = APIRouter(tags=["archives"])

MAX_TEXT: Final = 128 * 1024
"""Bytes of a text that are shown."""

MAX_PICTURE: Final = 20_000_000
"""Bytes of a picture that is shown."""

MAX_DRAWING: Final = 1_000_000
"""Maximum size of a drawing (SVG) shown as a picture; even a small one can keep a browser busy for long."""

_MAX_MEMORY: Final = 1 << 30
_MAX_SECONDS: Final = 20.0
_MAX_ROW_BYTES: Final = 16 << 20
_MAX_COPIED: Final = 64 << 20
_MAX_BYTES: Final = 512
_LINE: Final = 16
_PICTURE_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
    "Content-Disposition": "inline",
}


@router.get("/file/{id}/preview", response_model=PreviewModel, responses=answers(401, 404, 422, 429, 503))
async def preview(request: Request, caller: AnyCaller, served: ReadableArchive, id: FileId) -> Response:  # noqa: A002
    """Return a preview of a file: text (also gzip), the first rows of CSV and Parquet, or the first bytes."""

    def work(control: CancellationToken) -> Response:
        with refused_with_codes():
            record = served.archive.get(id)
            head, detected = _look(served.archive, record, MAX_TEXT)
        if detected.kind is FileKind.PARQUET and head.packing is None:
            folder = registry_of(request).storages[0].run
            preview = _of_parquet(served.archive, record, folder, control)
        else:
            preview = _of_beginning(head, detected)
            if detected.kind is FileKind.PICTURE and _is_too_large(record, head, detected):
                preview |= _nothing("The picture is too large for a page; download it to look at it")
        return reply(request, PreviewModel(**preview).model_dump())

    answer: Response = await request.app.state.gate.run(request, caller, work)
    return answer


@router.get(
    "/file/{id}/picture",
    response_class=Response,
    responses={200: {"description": "The picture.", "content": {"image/png": {}}}, **answers(401, 404, 422)},
)
def picture(served: ReadableArchive, id: FileId) -> Response:  # noqa: A002 - the field's name
    """Return a picture: PNG, JPEG, GIF, WebP, or SVG with scripts disabled. 404 for other or withdrawn files."""
    with refused_with_codes():
        record = served.archive.get(id)
        head, detected = _look(served.archive, record, MAX_PICTURE)
    problem = _problem_of_picture(head, detected)
    if detected.media_type is None or problem is not None:
        raise Refused(404, problem or "The file is not a picture")
    return Response(head.data, media_type=detected.media_type, headers=_PICTURE_HEADERS)


def _look(archive: LocalArchive, record: FileRecord, most: int) -> tuple[FileHead, DetectedKind]:
    """Return the beginning of a file, and its kind.

    Raises:
        FileRemoved: it was withdrawn, or its bytes were removed.
        FileElsewhere: its bytes are not stored here.
        Refused: 404, its bytes are not those that were archived.
    """
    require_given(archive, record)
    try:
        with closing(archive.open(record)) as stream:
            begun = read_head(stream, most)
    except WrongContent as error:
        message = "The stored bytes do not match the record\n`odf verify` shows what is damaged."
        raise Refused(404, message, None, {"code": error.code}) from error
    return begun, detect_kind(begun.data[:HEAD], record.path)


def _is_too_large(record: FileRecord, head: FileHead, detected: DetectedKind) -> bool:
    """Return whether an image is known to be too large, as far as its beginning shows."""
    return record.size > MAX_PICTURE or (pixels_of(head.data, detected.media_type or "") or 0) > MAX_PIXELS


def _problem_of_picture(head: FileHead, detected: DetectedKind) -> str | None:
    """Return the reason why an image is not shown, None if it is."""
    most = MAX_DRAWING if detected.kind is FileKind.DRAWING else MAX_PICTURE
    if not head.is_whole or len(head.data) > most:
        return f"The picture has more than {most} bytes; download it to look at it"
    if detected.kind is FileKind.PICTURE:
        pixels = pixels_of(head.data, detected.media_type or "")
        if pixels is None or pixels > MAX_PIXELS:
            return f"The picture is damaged, or has more than {MAX_PIXELS} pixels; download it to look at it"
    return None


def _of_beginning(head: FileHead, detected: DetectedKind) -> dict[str, Any]:
    preview: dict[str, Any] = {"kind": detected.kind.value, "packing": head.packing, "isWhole": head.is_whole}
    if head.problem is not None:
        preview["problem"] = f"It cannot be unpacked: {head.problem}"
    match detected.kind:
        case FileKind.DELIMITED | FileKind.TEXT | FileKind.DRAWING:
            text = text_of(head.data, detected.encoding or "utf-8")
            rows = first_rows(text, is_whole=head.is_whole) if detected.kind is FileKind.DELIMITED else None
            preview |= (
                {"kind": "text", "text": text}
                if rows is None
                else {
                    "kind": "table",
                    "columns": rows.columns,
                    "rows": rows.rows,
                    "numColumns": rows.num_columns,
                    "isWhole": not rows.has_more,
                }
            )
            if detected.kind is FileKind.DRAWING:
                preview["kind"] = detected.kind.value
        case FileKind.BYTES | FileKind.PARQUET:  # Parquet that was compressed again
            preview |= {
                "kind": FileKind.BYTES.value,
                "text": hexadecimal(head.data[:_MAX_BYTES]),
                "isWhole": head.is_whole and len(head.data) <= _MAX_BYTES,
            }
        case FileKind.PICTURE:
            pass
    return preview


def hexadecimal(data: bytes) -> str:
    """Format bytes as a hex dump: offset, hexadecimal digits, and printable characters."""
    lines = []
    for at in range(0, len(data), _LINE):
        part = data[at : at + _LINE]
        letters = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
        lines.append(f"{at:08x}  {part.hex(' '):<{3 * _LINE - 1}}  {letters}")
    return "\n".join(lines)


# --- Parquet ---


def _of_parquet(archive: LocalArchive, record: FileRecord, folder: Path, control: CancellationToken) -> dict[str, Any]:
    """Return the first rows of a Parquet file, or the reason why it cannot be read, which is not the client's fault."""
    try:
        with CancellationToken(_MAX_SECONDS, parent=control) as limited, TemporaryDirectory(dir=folder) as scratch:
            path = _file_of(archive, record, Path(scratch))
            if path is None:
                return _nothing(f"Files of more than {_MAX_COPIED} bytes cannot be shown from this store")
            table, num_columns = _first_rows_of(path, limited)
    except (QueryCancelled, QueryTimedOut):
        control.check()  # the request may have been cancelled
        return _nothing("It took too long to read")
    except QueryEnded:
        return _nothing("It crashes the Parquet reader, or takes too much memory")
    except (ResultTooLarge, InvalidQuery, MalformedData, EngineError) as error:
        is_large = isinstance(error, ResultTooLarge)
        return _nothing("Its rows are too large for a page" if is_large else "It is not a readable Parquet file")
    rows = laid_out(table.slice(0, MAX_ROWS), DataFormat.ARRAY_OF_ARRAYS)
    return {
        "kind": "table",
        "columns": table.column_names,
        "rows": [[_shown(value) for value in row] for row in rows],
        "numColumns": num_columns,
        "isWhole": table.num_rows <= MAX_ROWS,
    }


def _file_of(archive: LocalArchive, record: FileRecord, scratch: Path) -> Path | None:
    """Return a file with the bytes of a record, None if it would have to be copied and is too large for that."""
    path = archive.dataset.layout.data.local_path(record.object)
    if path is not None and path.is_file() and path.stat().st_size == record.size:
        return path
    if record.size > _MAX_COPIED:
        return None
    copy = scratch / "file"
    with closing(archive.open(record)) as stream:
        copy.write_bytes(stream.read())
    return copy


def _first_rows_of(path: Path, control: CancellationToken) -> tuple[pa.Table, int]:
    """Return the first rows of a Parquet file in the displayed columns, and the total number of columns."""
    no_rows = _asked("select * from file limit 0", path, control)
    names = no_rows.column_names[:MAX_COLUMNS]
    if not names or len(set(no_rows.column_names)) < len(no_rows.column_names):
        return no_rows.select(list(range(len(names)))), no_rows.num_columns
    chosen = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    query = f"select {chosen} from file limit {MAX_ROWS + 1}"  # noqa: S608 - quoted, and the process reads nothing else
    return _asked(query, path, control), no_rows.num_columns


def _asked(query: str, path: Path, control: CancellationToken) -> pa.Table:
    import pyarrow as pa

    from odfpy.engine.datafusion.isolated import IsolatedQuery, fork_server

    request = FilesRequest(query, (FileTable("file", "parquet", (str(path),)),), _MAX_ROW_BYTES)
    with closing(IsolatedQuery(fork_server(_MAX_MEMORY), request, control)) as rows:
        return pa.Table.from_batches(rows, rows.schema)


def _shown(value: object) -> object:
    """Convert a value for display: long ones are truncated, nested ones become text."""
    if isinstance(value, (list, dict)):
        return cut(json.dumps(value, ensure_ascii=False))
    return cut(value) if isinstance(value, str) else value


def _nothing(problem: str) -> dict[str, Any]:
    return {"kind": "none", "problem": problem}
