"""Checkpoints: what an engine keeps between pulls, in one file (ODF specification, "Checkpoint").

A checkpoint is a cache. Whatever is in it can be made again from the history of the inputs, and it is used only where
it is known to be of the same transform, the same engine and the same point in the inputs; anything else, and any
damage, is as if there were none.

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
"""What Python's reader of archives raises for bytes that are not what they should be."""


@dataclass(frozen=True, slots=True)
class InputPosition:
    """Up to where an input has been processed: its last row, and its watermark then."""

    offset: U64 | None = None
    watermark: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Rows that are kept.

    Attributes:
        name: of the Parquet file.
        only_appends: whether all of them have the weight 1.
        count: how many there are.
    """

    name: str
    only_appends: bool
    count: U64 = 0


@dataclass(frozen=True, slots=True)
class CheckpointManifest:
    """The identity of a checkpoint: the transform and the blocks that it is of.

    Attributes:
        format: version of the file.
        engine: version of the engine.
        transform: digest of queries and columns, see `transform_digest`.
        inputs: up to where the inputs have been processed, in declared order.
        rows: what is kept.
        arranged: what is kept in the arrangement of the dataset instead (`odfpy.engine.arrangement`), None for nothing.
            Without the arrangement, it is made again from history.
    """

    format: U64
    engine: str
    transform: str
    inputs: tuple[InputPosition, ...]
    rows: tuple[KeptRows, ...]
    arranged: tuple[KeptRows, ...] | None = None


@dataclass(frozen=True, slots=True)
class CheckpointRows:
    """Rows that a checkpoint keeps, by name.

    Attributes:
        files: rows in files of their own.
        arranged: rows in the arrangement of the dataset.
    """

    files: dict[str, tuple[Path, KeptRows]] = field(default_factory=dict)
    arranged: dict[str, KeptRows] = field(default_factory=dict)

    def update(self, other: CheckpointRows) -> None:
        """Add what another part keeps."""
        self.files.update(other.files)
        self.arranged.update(other.arranged)


def transform_digest(request: TransformRequest) -> str:
    """A digest of what a transform computes and over which columns, whatever version of the engine it asks for.

    A column that an input gets may be one more that is kept, in the place where another one was.
    """
    tree: Any = to_tree(request.transform.normalized())
    tree.pop("version", None)
    schemas = [
        [(field.name, str(field.type)) for field in slice_schema(source.schema_file, vocab=source.vocab)]
        for source in request.query_inputs
    ]
    return hashlib.sha3_256(json.dumps([tree, schemas], sort_keys=True).encode()).hexdigest()


def positions_before(request: TransformRequest) -> tuple[InputPosition, ...]:
    """Return up to where the inputs had been processed before a run, in declared order."""
    return tuple(InputPosition(source.prev_offset, source.prev_watermark) for source in request.query_inputs)


def positions_after(request: TransformRequest) -> tuple[InputPosition, ...]:
    """Return up to where the inputs have been processed after a run, in declared order."""
    return tuple(
        InputPosition(
            source.offset_interval.end if source.offset_interval else source.prev_offset, input_watermark(source)
        )
        for source in request.query_inputs
    )


def manifest_after(
    request: TransformRequest, engine: str, rows: Iterable[KeptRows], arranged: Iterable[KeptRows] = ()
) -> CheckpointManifest:
    """The manifest of the checkpoint that a run leaves.

    Args:
        request: the request.
        engine: name and version of the engine.
        rows: the kept rows of each stateful input.
        arranged: those that are in the arrangement of the dataset.
    """
    digest, positions = transform_digest(request), positions_after(request)
    return CheckpointManifest(FORMAT, engine, digest, positions, tuple(rows), tuple(arranged) or None)


def write_checkpoint(path: Path, manifest: CheckpointManifest, files: Mapping[str, Path]) -> None:
    """Write a checkpoint.

    Args:
        path: the file.
        manifest: what it is of.
        files: the Parquet files by name.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        # A `ZipInfo` has a fixed date; under a plain name, the entry would get that of the clock.
        archive.writestr(zipfile.ZipInfo(_MANIFEST), json.dumps(to_tree(manifest), indent=1))
        for name, file in files.items():
            # The size is not known beforehand, and without ZIP64 it could not be more than 2 GiB.
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as target, file.open("rb") as source:
                while chunk := source.read(_CHUNK):
                    target.write(chunk)


def read_manifest(path: Path) -> CheckpointManifest | None:
    """Return what a checkpoint is of; None when it cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            found: CheckpointManifest = from_tree(CheckpointManifest, json.loads(archive.read(_MANIFEST)))
    except (OdfError, *_DAMAGE):
        return None
    return found


def kept_rows(request: TransformRequest, engine: str, folder: Path) -> CheckpointRows | None:
    """The rows that the checkpoint of a request keeps, taken out into a folder; None when it is of no use.

    Args:
        request: the run that goes on from it.
        engine: version of this engine.
        folder: where to put the files.
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
    found: dict[str, tuple[Path, KeptRows]] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for rows in manifest.rows:
                # Not under the name in the archive: others may have made it, and the name may lead out of the folder.
                target = folder / f"kept-{len(found)}.parquet"
                with archive.open(rows.name) as source, target.open("wb") as copy:
                    while chunk := source.read(_CHUNK):
                        copy.write(chunk)
                found[rows.name] = target, rows
    except _DAMAGE:
        return None
    return CheckpointRows(found, {rows.name: rows for rows in manifest.arranged or ()})
