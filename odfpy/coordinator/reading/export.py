"""Export of query results to files, with a sidecar file that records their origin.

1. rows are written to a temporary folder as they arrive, and hashed
2. when all files and the sidecar are flushed to disk, they are moved to the target, the sidecar last
3. files without a sidecar may be incomplete
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfpy.coordinator.reading.export_sidecar import (
    IN_FOLDER,
    KIND,
    SUFFIX,
    VERSION,
    read_sidecar,
    sidecar_of,
    unlisted_files,
)
from odfpy.coordinator.reading.export_target import ExportTarget
from odfpy.coordinator.storage.results import Progress, ProgressSink, silent
from odfpy.data.multihash import Multihash
from odfpy.data.rows.files import RowFileOptions
from odfpy.data.rows.folder import FileInFolder, RowFolder
from odfpy.errors import ExportDamaged, OdfError

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.query.service import Answer, Query, QueryInput, QueryService


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Options of an export.

    Attributes:
        place: the target: a file, or a folder if the export is partitioned or split.
        partition_by: columns whose values become folder names.
        rows_per_file: maximum rows per file.
        overwrite: whether to replace an existing export.
    """

    place: ExportTarget
    files: RowFileOptions
    partition_by: tuple[str, ...] = ()
    rows_per_file: int | None = None
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Exported:
    """The files of an export.

    Attributes:
        manifest: content of the sidecar.
    """

    to: Path
    sidecar: Path
    manifest: Mapping[str, Any]

    @property
    def num_rows(self) -> int:
        """Return the total number of rows."""
        return int(self.manifest["rows"])

    @property
    def num_files(self) -> int:
        """Return the number of files, without the sidecar."""
        return len(self.manifest["files"])

    @property
    def size(self) -> int:
        """Return the total size of these files in bytes."""
        return sum(int(file["size"]) for file in self.manifest["files"])


def export(service: QueryService, query: Query, options: ExportOptions, progress: ProgressSink = silent) -> Exported:
    """Write the result of a query atomically.

    Args:
        service: the query service.
        query: the query.
        options: the target and its format.
        progress: called with the progress.

    Raises:
        AlreadyExists: the target exists.
        CannotExport: the format does not support the columns.
        OdfError: the query fails, or a file cannot be written.
    """
    place = options.place
    place.check(overwrite=options.overwrite)
    with service.run(query) as answer:
        manifest = _described(service, query, answer, options)
        try:
            with place.write_to_temporary() as folder:
                files = _write(folder, answer.schema, _report(answer, place.to.name, progress), options)
                (folder / place.sidecar.name).write_bytes(_completed(manifest, files))
        except OSError as error:
            raise OdfError(
                f"Cannot write {place.to}: {error.strerror or error}",
                hint="No partial file is left; try another location.",
            ) from error
    return Exported(place.to, place.sidecar, manifest)


def _report(answer: Answer, name: str, progress: ProgressSink) -> Iterator[pa.RecordBatch]:
    done = 0
    progress(Progress(name, "exporting", done, unit="rows"))
    for batch in answer:
        yield batch
        done += batch.num_rows
        progress(Progress(name, "exporting", done, unit="rows"))


def _write(
    folder: Path, schema: pa.Schema, rows: Iterator[pa.RecordBatch], options: ExportOptions
) -> list[FileInFolder]:
    only = None if options.place.is_folder else options.place.to.name
    files = RowFolder(folder, schema, options.files, options.partition_by, options.rows_per_file, only=only)
    try:
        for batch in rows:
            files.write(batch)
        return files.finish()
    except BaseException:
        files.discard()
        raise


def _completed(manifest: dict[str, Any], files: list[FileInFolder]) -> bytes:
    """Complete the sidecar with the files, and serialize it."""
    manifest["rows"] = sum(file.info.num_rows for file in files)
    manifest["files"] = [
        {"path": file.path, "rows": file.info.num_rows, "size": file.info.size, "hash": str(file.info.hash)}
        for file in files
    ]
    return f"{json.dumps(manifest, indent=2, ensure_ascii=False)}\n".encode()


def _described(service: QueryService, query: Query, answer: Answer, options: ExportOptions) -> dict[str, Any]:
    return {
        "kind": KIND,
        "version": VERSION,
        "query": query.text,
        "dialect": query.dialect,
        "inputs": [_input_tree(service, query_input) for query_input in answer.inputs],
        "format": options.files.format.value,
        "compression": options.files.compression,
        "partitionBy": list(options.partition_by),
    }


def _input_tree(service: QueryService, query_input: QueryInput) -> dict[str, Any]:
    resolver = service.resolver
    state = resolver.at(resolver.find(query_input.id), query_input.block_hash).state
    rows = None if state.last_offset is None else {"start": 0, "end": state.last_offset}
    return {
        "id": str(query_input.id),
        "alias": str(query_input.alias),
        "blockHash": str(query_input.block_hash),
        "sequenceNumber": state.sequence_number,
        "offsets": rows,
    }


# --- Check of an export ----------------------------------------------------------------------------------------------


def check_export(path: Path) -> Exported:
    """Check that exported files have not changed since the export.

    Args:
        path: path of an exported file, a folder, or a sidecar.

    Raises:
        NotFound: there is no sidecar.
        MalformedManifest, UnsupportedVersion: the sidecar is not one of odfpy.
        ExportDamaged: a file has changed, is missing, or was added.
    """
    is_sidecar = path.name == IN_FOLDER or path.name.endswith(SUFFIX)
    sidecar = path if is_sidecar else sidecar_of(path, is_folder=path.is_dir())
    manifest = read_sidecar(sidecar)
    is_folder = sidecar.name == IN_FOLDER
    wrong = [why for entry in manifest["files"] if (why := _difference(sidecar.parent, entry))]
    if is_folder:
        wrong += [f"{name} was not exported" for name in unlisted_files(sidecar.parent, manifest)]
    if wrong:
        more = f", and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise ExportDamaged(
            f"{sidecar.parent if is_folder else path} is not what was exported: {'; '.join(wrong[:3])}{more}",
            hint="Export it again.",
        )
    to = sidecar.parent if is_folder else sidecar.with_name(sidecar.name.removesuffix(SUFFIX))
    return Exported(to, sidecar, manifest)


def _difference(folder: Path, entry: Mapping[str, Any]) -> str | None:
    path = folder / entry["path"]
    try:
        if path.stat().st_size != entry["size"]:
            return f"{entry['path']} has {path.stat().st_size} bytes and not {entry['size']}"
        with path.open("rb") as file:
            actual = Multihash.of_stream(file)
    except OSError as error:
        return f"{entry['path']}: {error.strerror}"
    return None if str(actual) == entry["hash"] else f"{entry['path']} has the hash {actual}"
