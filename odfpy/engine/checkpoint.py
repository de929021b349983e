"""Checkpoints: the state that an engine stores between pulls, in one file (ODF specification, "Checkpoint").

A checkpoint is a cache. All of its content can be recomputed from the history of the inputs, and it is used only if it
is known to have the same transform, the same engine and the same position in the inputs; otherwise, and if it is
damaged, it is ignored.

The file is a ZIP archive without compression: `manifest.json`, and Parquet files. Its bytes need not be the same every
time; the output of the transform is.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from odfpy.codec.tree import from_tree, to_tree
from odfpy.data.scalars import U64
from odfpy.data.slices.slice import slice_schema
from odfpy.data.timestamp import Timestamp
from odfpy.engine.contract import TransformRequest
from odfpy.engine.watermark import input_watermark
from odfpy.errors import OdfError

FORMAT: Final = 6
"""Version of the file."""

_READ: Final = frozenset({4, 5, FORMAT})
"""Versions that are read. Before 5, nothing was kept in arrangements; before 6, only partial results."""

_MANIFEST: Final = "manifest.json"
_CHUNK: Final = 1 << 20
_DAMAGE: Final = (OSError, EOFError, ValueError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error, struct.error)
"""Exceptions that Python's archive reader raises for damaged files."""


@dataclass(frozen=True, slots=True)
class InputPosition:
    """The position up to which an input has been processed: its last row, and its watermark at that time."""

    offset: U64 | None = None
    watermark: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """A file of stored rows.

    Attributes:
        name: name of the Parquet file.
        only_appends: whether all of them have the weight 1.
        count: the number of rows.
    """

    name: str
    only_appends: bool
    count: U64 = 0


@dataclass(frozen=True, slots=True)
class CheckpointManifest:
    """The identity of a checkpoint: its transform, and its position in the inputs.

    Attributes:
        format: version of the file format.
        engine: version of the engine.
        transform: digest of queries and columns, see `transform_digest`.
        inputs: the positions up to which the inputs have been processed, in declared order.
        rows: the stored rows.
        arranged: the rows stored in the arrangement of the dataset instead (`odfpy.engine.arrangement`), None for none.
            Without the arrangement, they are recomputed from history.
    """

    format: U64
    engine: str
    transform: str
    inputs: tuple[InputPosition, ...]
    rows: tuple[CheckpointFile, ...]
    arranged: tuple[CheckpointFile, ...] | None = None


@dataclass(frozen=True, slots=True)
class CheckpointRows:
    """The stored rows of a checkpoint, by name.

    Attributes:
        files: rows in files of the checkpoint.
        arranged: rows in the arrangement of the dataset.
    """

    files: dict[str, tuple[Path, CheckpointFile]] = field(default_factory=dict)
    arranged: dict[str, CheckpointFile] = field(default_factory=dict)

    def update(self, other: CheckpointRows) -> None:
        """Add the stored rows of another part."""
        self.files.update(other.files)
        self.arranged.update(other.arranged)


def transform_digest(request: TransformRequest) -> str:
    """Return a digest of what a transform computes and over which columns, whatever engine version it asks for.

    A column that an input gains may become part of the state, in the position of another column.
    """
    tree: Any = to_tree(request.transform.normalized())
    tree.pop("version", None)
    schemas = [
        [(field.name, str(field.type)) for field in slice_schema(source.schema_file, vocab=source.vocab)]
        for source in request.query_inputs
    ]
    return hashlib.sha3_256(json.dumps([tree, schemas], sort_keys=True).encode()).hexdigest()


def positions_before(request: TransformRequest) -> tuple[InputPosition, ...]:
    """Return the positions of the inputs before a run, in declared order."""
    return tuple(InputPosition(source.prev_offset, source.prev_watermark) for source in request.query_inputs)


def positions_after(request: TransformRequest) -> tuple[InputPosition, ...]:
    """Return the positions of the inputs after a run, in declared order."""
    return tuple(
        InputPosition(
            source.offset_interval.end if source.offset_interval else source.prev_offset, input_watermark(source)
        )
        for source in request.query_inputs
    )


def manifest_after(
    request: TransformRequest, engine: str, rows: Iterable[CheckpointFile], arranged: Iterable[CheckpointFile] = ()
) -> CheckpointManifest:
    """Return the manifest of the checkpoint that a run leaves.

    Args:
        request: the request.
        engine: name and version of the engine.
        rows: the stored rows of each stateful input.
        arranged: those of them in the arrangement of the dataset.
    """
    digest, positions = transform_digest(request), positions_after(request)
    return CheckpointManifest(FORMAT, engine, digest, positions, tuple(rows), tuple(arranged) or None)


def write_checkpoint(path: Path, manifest: CheckpointManifest, files: Mapping[str, Path]) -> None:
    """Write a checkpoint.

    Args:
        path: the file.
        manifest: the manifest.
        files: the Parquet files by name.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        # A `ZipInfo` has a fixed date; with a plain name, the entry would get the current time.
        archive.writestr(zipfile.ZipInfo(_MANIFEST), json.dumps(to_tree(manifest), indent=1))
        for name, file in files.items():
            # The size is not known beforehand, and without ZIP64 it could not exceed 2 GiB.
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as target, file.open("rb") as source:
                while chunk := source.read(_CHUNK):
                    target.write(chunk)


def read_manifest(path: Path) -> CheckpointManifest | None:
    """Return the manifest of a checkpoint; None when it cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            manifest: CheckpointManifest = from_tree(CheckpointManifest, json.loads(archive.read(_MANIFEST)))
    except (OdfError, *_DAMAGE):
        return None
    return manifest


def load_checkpoint(request: TransformRequest, engine: str, folder: Path) -> CheckpointRows | None:
    """Extract the stored rows of a request's checkpoint into a folder; return None when it cannot be used.

    Args:
        request: the run that continues from it.
        engine: version of this engine.
        folder: the folder for the files.
    """
    if request.prev_checkpoint_path is None:
        return None
    path = Path(request.prev_checkpoint_path)
    manifest = read_manifest(path)
    if manifest is None or manifest.format not in _READ:
        return None
    if (manifest.engine, manifest.inputs) != (engine, positions_before(request)):
        return None
    if manifest.transform != transform_digest(request):
        return None
    files: dict[str, tuple[Path, CheckpointFile]] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for rows in manifest.rows:
                # Not under its name in the archive, which others may have made: the name may lead out of the folder.
                target = folder / f"kept-{len(files)}.parquet"
                with archive.open(rows.name) as source, target.open("wb") as copy:
                    while chunk := source.read(_CHUNK):
                        copy.write(chunk)
                files[rows.name] = target, rows
    except _DAMAGE:
        return None
    return CheckpointRows(files, {rows.name: rows for rows in manifest.arranged or ()})
