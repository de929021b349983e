"""Maintenance of an index in the dataset's cache: it is bound to a block of the chain, and updated to the head.

Readers take no lock: segments are immutable, and their list is replaced atomically. Writers hold the lock of the
folder, check again, and only advance the index, so that concurrent processes build it once. An index that is missing,
damaged, of another chain or release, or behind a rewritten history, is rebuilt from the slices.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from odfpy.archive.index.adding import Sizes, with_rows_added
from odfpy.archive.index.catalog import FILE, Catalog
from odfpy.archive.index.checked_file import IndexDamaged
from odfpy.archive.index.segment import Segment, opened
from odfpy.archive.index.versions import Rows, rows_of
from odfpy.archive.rows import COLUMNS
from odfpy.chain.block import HashedBlock
from odfpy.chain.slices import SliceOfBlock, slice_paths, slices_of
from odfpy.coordinator.storage.results import Progress, ProgressSink
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.errors import OdfError
from odfpy.files import FULL, cache_folder, locked_folder

FOLDER = "archive-index"
"""Name of the folder in the cache of a dataset."""

_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS, *FULL)


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """An open index.

    Attributes:
        folder: folder of the index.
        catalog: its list of segments.
        segments: its segments, oldest first.
    """

    folder: Path
    catalog: Catalog
    segments: tuple[Segment, ...]


def updated_index(
    dataset: StoredDataset, progress: ProgressSink, sizes: Sizes, known: Mapping[str, Segment]
) -> OpenIndex:
    """Return the index with all rows up to the head of a dataset, or further if another process has updated it.

    Args:
        dataset: an archive.
        progress: called with the progress, if it has to be built.
        sizes: sizes of segments.
        known: segments that are already open, by name.

    Raises:
        OdfError: a slice is missing or damaged, or the index cannot be stored anywhere.
    """
    for folder in (folders := _folders(dataset)):
        opened = _opened(folder, known)
        if opened is not None and opened.catalog.head == str(dataset.state.head):
            return opened
    for folder in folders[:-1]:
        try:
            return _brought_up(folder, dataset, progress, sizes, known)
        except PermissionError:
            continue
        except OSError as error:
            if error.errno not in _NOT_OURS:
                raise _no_place(dataset, folder, error) from error
    try:
        return _brought_up(folders[-1], dataset, progress, sizes, known)
    except OSError as error:
        raise _no_place(dataset, folders[-1], error) from error


def forget(folder: Path) -> None:
    """Discard a damaged index; its next user rebuilds it."""
    (folder / FILE).unlink(missing_ok=True)


def _folders(dataset: StoredDataset) -> tuple[Path, Path]:
    """Return the folder of the index, and its fallback if the cache is not writable."""
    name = FOLDER if dataset.block is None else f"{FOLDER}-{dataset.block}"
    place = hashlib.sha256(os.fsencode(dataset.cache.absolute())).hexdigest()[:16]
    return dataset.cache / name, cache_folder() / place / name


def _opened(folder: Path, known: Mapping[str, Segment]) -> OpenIndex | None:
    """Return the index in a folder, None if there is no usable one."""
    before = None
    while True:
        try:
            catalog = Catalog.read(folder)
            return OpenIndex(folder, catalog, tuple(opened(folder, catalog.segments, known)))
        except IndexDamaged:
            return None
        except FileNotFoundError:
            # Another process has merged segments since the list was read, or a segment is missing.
            if catalog == before:
                return None
            before = catalog


def _brought_up(
    folder: Path, dataset: StoredDataset, progress: ProgressSink, sizes: Sizes, known: Mapping[str, Segment]
) -> OpenIndex:
    """Build or extend the index.

    Raises:
        OSError: the index cannot be written.
        OdfError: a slice is missing or damaged.
    """
    with locked_folder(folder):
        now = dataset.reloaded()  # others may have committed and indexed while this process waited for the lock
        present = _opened(folder, known)
        if present is not None:
            known = {segment.name: segment for segment in present.segments}
        catalog = Catalog.empty() if present is None else present.catalog
        blocks = _blocks_after(now, catalog.head)
        if present is not None and blocks == []:
            return present
        try:
            new = _grown(folder, catalog, now, blocks, progress, sizes, known)
        except (IndexDamaged, FileNotFoundError):
            new = _grown(folder, Catalog.empty(), now, None, progress, sizes, {})
        new.write(folder)
        new.sweep(folder)
        return OpenIndex(folder, new, tuple(opened(folder, new.segments, known)))


def _grown(
    folder: Path,
    catalog: Catalog,
    dataset: StoredDataset,
    blocks: list[HashedBlock] | None,
    progress: ProgressSink,
    sizes: Sizes,
    known: Mapping[str, Segment],
) -> Catalog:
    if blocks is None:
        catalog, blocks = Catalog.empty(), dataset.chain.in_order(dataset.state.head)
    slices = slices_of(blocks)
    done, total = 0, sum(item.data.offset_interval.num_rows for item in slices)

    def tell(rows: int) -> None:
        nonlocal done
        done += rows
        progress(Progress(str(dataset.handle), "indexing files", done, total, "records"))

    segments = opened(folder, catalog.segments, known)
    return with_rows_added(folder, catalog, segments, _rows(dataset, slices), str(dataset.state.head), sizes, tell)


def _blocks_after(dataset: StoredDataset, head: str | None) -> list[HashedBlock] | None:
    """Return the blocks after a given one, oldest first; None if it is not a block of the dataset."""
    blocks: list[HashedBlock] = []
    for hashed in dataset.chain.iter_blocks(dataset.state.head):
        if str(hashed.hash) == head:
            return blocks[::-1]
        blocks.append(hashed)
    return None


def _rows(dataset: StoredDataset, slices: list[SliceOfBlock]) -> Iterator[Rows]:
    """Yield the rows of slices."""
    from odfpy.data.slices.slice import iter_slice  # searches that find the index up to date do not need it

    vocab = dataset.state.vocab
    columns = [vocab.offset_column, vocab.operation_type_column, *COLUMNS]
    for path in slice_paths(dataset.layout.data, slices):
        for batch in iter_slice(path, columns=columns, vocab=vocab):
            yield rows_of(batch, vocab)


def _no_place(dataset: StoredDataset, folder: Path, error: OSError) -> OdfError:
    return OdfError(
        f"The search index of {dataset.handle} cannot be written to {folder}: {error.strerror or error}",
        hint="Check permissions and free space there.",
    )


def dataset_at_head(dataset: StoredDataset) -> StoredDataset:
    """Return the current state of a dataset that is viewed as at a block."""
    return replace(dataset, block=None)
