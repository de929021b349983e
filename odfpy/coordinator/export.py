"""Answers as files for others, with a small file beside them that says what they were made from.

1. rows are written under another name, as they come, hashed on the way
2. all of them are on the disk: they take their place
3. the sidecar is written last: files that have none are not to be relied on
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odfpy.coordinator.results import Progress, ProgressSink, silent
from odfpy.data.multihash import Multihash
from odfpy.data.row_files import RowFile, RowFileOptions
from odfpy.data.row_folder import FileInFolder, RowFolder
from odfpy.errors import AlreadyExists, ExportDamaged, MalformedManifest, NotFound, OdfError, UnsupportedVersion
from odfpy.files import TEMPORARY, replace_file, sync_folder, written_aside

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.query.service import Answer, Input, Query, QueryService

SUFFIX: Final = ".odf.json"
"""What is put behind the name of a file for that of its sidecar."""

IN_FOLDER: Final = "_odf.json"
"""The sidecar of a folder; readers of partitions pass over names that begin so."""

KIND: Final = "OdfExport"
VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """Where an answer goes, and how.

    Attributes:
        to: a file; a folder if it is partitioned or cut.
        partition_by: columns whose values become names of folders.
        rows_per_file: rows of a file at most.
        overwrite: whether it may take the place of what is there.
    """

    to: Path
    files: RowFileOptions
    partition_by: tuple[str, ...] = ()
    rows_per_file: int | None = None
    overwrite: bool = False

    @property
    def is_folder(self) -> bool:
        """Whether there may be several files."""
        return bool(self.partition_by) or self.rows_per_file is not None

    @property
    def sidecar(self) -> Path:
        """The file that says where the rows are from."""
        return sidecar_of(self.to, is_folder=self.is_folder)


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written.

    Attributes:
        manifest: what the sidecar says.
    """

    to: Path
    sidecar: Path
    manifest: Mapping[str, Any]

    @property
    def num_rows(self) -> int:
        """Rows of all files."""
        return int(self.manifest["rows"])

    @property
    def num_files(self) -> int:
        """How many files of rows there are."""
        return len(self.manifest["files"])

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(int(one["size"]) for one in self.manifest["files"])


def sidecar_of(path: Path, *, is_folder: bool) -> Path:
    """The file that says where the rows of a file or folder are from."""
    return path / IN_FOLDER if is_folder else path.with_name(f"{path.name}{SUFFIX}")


def export(service: QueryService, query: Query, options: ExportOptions, progress: ProgressSink = silent) -> Exported:
    """Write the answer to a query; nothing is there before all of it is.

    Raises:
        AlreadyExists: something of that name is there.
        CannotExport: the format has no such columns.
        OdfError: the query is at fault, or the disk is full.
    """
    _check_place(options)
    with service.run(query) as answer:
        manifest = _described(service, query, answer, options)
        rows = _told(answer, options.to.name, progress)
        try:
            (_write_folder if options.is_folder else _write_file)(answer.schema, rows, options, manifest)
        except OSError as error:
            raise OdfError(
                f"Cannot write {options.to}: {error.strerror or error}",
                hint="Nothing is left of it; try another place.",
            ) from error
    return Exported(options.to, options.sidecar, manifest)


def _told(answer: Answer, name: str, progress: ProgressSink) -> Iterator[pa.RecordBatch]:
    done = 0
    progress(Progress(name, "exporting", done, unit="rows"))
    for batch in answer:
        yield batch
        done += batch.num_rows
        progress(Progress(name, "exporting", done, unit="rows"))


def _write_file(
    schema: pa.Schema, rows: Iterator[pa.RecordBatch], options: ExportOptions, manifest: dict[str, Any]
) -> None:
    with written_aside(options.to) as temporary:
        file = RowFile(temporary, schema, options.files)
        try:
            for batch in rows:
                file.write(batch)
            info = file.finish()
        except BaseException:
            file.discard()
            raise
        options.sidecar.unlink(missing_ok=True)  # it would be that of the file that goes
    sync_folder(options.to.parent)
    replace_file(options.sidecar, _completed(manifest, [FileInFolder(options.to.name, info)]))


def _write_folder(
    schema: pa.Schema, rows: Iterator[pa.RecordBatch], options: ExportOptions, manifest: dict[str, Any]
) -> None:
    temporary = options.to.with_name(f"{TEMPORARY}{secrets.token_hex(8)}")
    former = temporary.with_name(f"{temporary.name}-former")
    temporary.mkdir()
    try:
        folder = RowFolder(temporary, schema, options.files, options.partition_by, options.rows_per_file)
        try:
            for batch in rows:
                folder.write(batch)
            files = folder.finish()
        except BaseException:
            folder.discard()
            raise
        replace_file(temporary / IN_FOLDER, _completed(manifest, files))
        if options.to.exists():
            options.to.rename(former)
        temporary.rename(options.to)
        sync_folder(options.to.parent)
    finally:
        if former.exists() and not options.to.exists():  # interrupted in between
            former.rename(options.to)
        for left in (temporary, former):
            shutil.rmtree(left, ignore_errors=True)


def _completed(manifest: dict[str, Any], files: list[FileInFolder]) -> bytes:
    """The sidecar, with its files."""
    manifest["rows"] = sum(one.info.num_rows for one in files)
    manifest["files"] = [
        {"path": one.path, "rows": one.info.num_rows, "size": one.info.size, "hash": str(one.info.hash)}
        for one in files
    ]
    return f"{json.dumps(manifest, indent=2, ensure_ascii=False)}\n".encode()


def _described(service: QueryService, query: Query, answer: Answer, options: ExportOptions) -> dict[str, Any]:
    return {
        "kind": KIND,
        "version": VERSION,
        "query": query.text,
        "dialect": query.dialect,
        "inputs": [_input_tree(service, one) for one in answer.inputs],
        "format": options.files.format.value,
        "compression": options.files.compression,
        "partitionBy": list(options.partition_by),
    }


def _input_tree(service: QueryService, one: Input) -> dict[str, Any]:
    catalogue = service.catalogue
    state = catalogue.at(catalogue.find(one.id), one.block_hash).state
    rows = None if state.last_offset is None else {"start": 0, "end": state.last_offset}
    return {
        "id": str(one.id),
        "alias": str(one.alias),
        "blockHash": str(one.block_hash),
        "sequenceNumber": state.sequence_number,
        "offsets": rows,
    }


def _check_place(options: ExportOptions) -> None:
    """See that there is room for it, and nothing of somebody else's in the way."""
    to = options.to
    if not to.exists() and not to.is_symlink():
        return
    if to.is_dir() != options.is_folder:
        what = "a folder" if to.is_dir() else "a file"
        raise AlreadyExists(
            f"{to} is {what}", hint="Choose another name. Folders are written with --partition-by or --rows-per-file."
        )
    if options.is_folder and not any(to.iterdir()):
        return
    if not options.overwrite:
        raise AlreadyExists(f"{to} is there already", hint="Choose another name, or --overwrite it.")
    if options.is_folder and not (to / IN_FOLDER).is_file():
        raise AlreadyExists(
            f"{to} is not a folder that was exported: it has no {IN_FOLDER}",
            hint="It is left alone: remove it yourself.",
        )


# --- Looking at it again ---------------------------------------------------------------------------------------------


def check_export(path: Path) -> Exported:
    """See whether exported files are those that were written.

    Args:
        path: a file, a folder, or a sidecar.

    Raises:
        NotFound: there is no sidecar.
        MalformedManifest, UnsupportedVersion: it is none of ours.
        ExportDamaged: a file is another one, is missing, or is one too many.
    """
    is_sidecar = path.name == IN_FOLDER or path.name.endswith(SUFFIX)
    sidecar = path if is_sidecar else sidecar_of(path, is_folder=path.is_dir())
    manifest = _read(sidecar)
    is_folder = sidecar.name == IN_FOLDER
    wrong = [why for one in manifest["files"] if (why := _difference(sidecar.parent, one))]
    if is_folder:
        known = {IN_FOLDER, *(one["path"] for one in manifest["files"])}
        there = sorted(one.relative_to(sidecar.parent).as_posix() for one in sidecar.parent.rglob("*") if one.is_file())
        wrong += [f"{name} was not exported" for name in there if name not in known]
    if wrong:
        more = f", and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise ExportDamaged(
            f"{sidecar.parent if is_folder else path} is not what was exported: {'; '.join(wrong[:3])}{more}",
            hint="Export it again.",
        )
    to = sidecar.parent if is_folder else sidecar.with_name(sidecar.name.removesuffix(SUFFIX))
    return Exported(to, sidecar, manifest)


def _read(sidecar: Path) -> Mapping[str, Any]:
    try:
        manifest = json.loads(sidecar.read_bytes())
    except FileNotFoundError as error:
        raise NotFound(
            f"No {sidecar}, which would say what was exported", hint="`odf export` writes it beside its files."
        ) from error
    except OSError as error:
        raise NotFound(f"Cannot read {sidecar}: {error.strerror}") from error
    except ValueError as error:
        raise MalformedManifest(f"{sidecar} is no JSON: {error}") from error
    if isinstance(manifest, dict) and manifest.get("kind") == KIND and manifest.get("version") != VERSION:
        raise UnsupportedVersion(f"{sidecar} has version {manifest.get('version')}, and not {VERSION}")
    if not _is_export(manifest):
        raise MalformedManifest(f"{sidecar} does not describe an export")
    return dict(manifest)


def _is_export(manifest: Any) -> bool:
    match manifest:
        case {"kind": kind, "rows": int(), "files": [*files]} if kind == KIND:
            return all(_is_file(one) for one in files)
    return False


def _is_file(one: Any) -> bool:
    match one:
        case {"path": str(path), "size": int(), "hash": str()}:
            return not path.startswith("/") and ".." not in Path(path).parts
    return False


def _difference(folder: Path, one: Mapping[str, Any]) -> str | None:
    path = folder / one["path"]
    try:
        if path.stat().st_size != one["size"]:
            return f"{one['path']} has {path.stat().st_size} bytes and not {one['size']}"
        with path.open("rb") as file:
            found = Multihash.of_stream(file)
    except OSError as error:
        return f"{one['path']}: {error.strerror}"
    return None if str(found) == one["hash"] else f"{one['path']} has the hash {found}"
