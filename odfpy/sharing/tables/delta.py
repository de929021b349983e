"""A Delta table as a shared table, read with the library deltalake; for tables in buckets, from copies of the log.

Its versions are those of its log. Versions with change data files (`_change_data`) return these; for other versions,
changes are the difference to the files of the previous one. Commits without data changes have no changes.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable as Log

from odfpy.data.lru_cache import LruCache
from odfpy.data.slices.parquet_io import open_parquet
from odfpy.data.timestamp import NANOS_PER_MILLI, Timestamp
from odfpy.errors import OdfError
from odfpy.files import open_regular
from odfpy.sharing.errors import CannotShare
from odfpy.sharing.tables.contract import ChangeKind, NoSuchVersion, TableChange, TableFile, TableVersion
from odfpy.sharing.tables.difference import file_changes, with_live
from odfpy.sharing.tables.local import LocalFile, LocalFolder, raised, reason
from odfpy.sharing.tables.mirror import mirrored_log
from odfpy.sharing.tables.numbered import NumberedTable
from odfpy.sharing.tables.parquet_files import FilePlace, footer
from odfpy.sharing.tables.partitions import partition_text
from odfpy.sharing.tables.remote import BucketFile, table_folder
from odfpy.sharing.tables.statistics import table_statistics

_COMMIT: Final = re.compile(r"(\d{20})\.json", re.ASCII)
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint.*\.(parquet|json)", re.ASCII)
_PHYSICAL: Final = "delta.columnMapping.physicalName"
_CHANGE_TYPE: Final = "_change_type"
_HAS_VECTORS: Final = "deletionVectors"
_ELSEWHERE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")
_TIMES: Final = LruCache[tuple[range, LocalFile], list[int]](100)
"""Times of the versions of tables, by the last file of the log."""
_REPAIR: Final = "Repair the table at its origin, or share a copy of it."


@dataclass(frozen=True, slots=True)
class _Commit:
    """A commit of the log.

    Attributes:
        changes: actions for change data files.
        has_new_data: whether it adds or removes rows.
        has_far_vectors: whether one of its deletion vectors has an absolute path.
    """

    changes: tuple[Mapping[str, Any], ...]
    has_new_data: bool
    has_far_vectors: bool


class DeltaTable(NumberedTable):
    """A Delta table in a folder or bucket."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """
        Args:
            folder: folder that contains `_delta_log`: a path, or the URL of a folder in an object store.

        Raises:
            CannotShare: the folder does not exist, has no log, or the log cannot be read.
        """
        self._folder = table_folder(folder)
        self._log = self._folder if isinstance(self._folder, LocalFolder) else mirrored_log(self._folder)
        if "%" in str(self._log.path):  # the library would decode it as an escape, and open another folder
            raise CannotShare(
                f"The Delta table {self._folder} has a % in its path, which the library deltalake cannot read",
                hint="Rename the folder.",
            )
        self._logs: dict[int, Log] = {}
        self._log_at(self._numbers[-1])

    # --- Versions ---

    @cached_property
    def _numbers(self) -> range:
        """The readable versions: without gaps, starting from the first commit or a checkpoint."""
        found = self._log_names
        commits = {int(match[1]) for name in found if (match := _COMMIT.fullmatch(name))}
        checkpoints = {int(match[1]) for name in found if (match := _CHECKPOINT.fullmatch(name))}
        last = first = max(commits | checkpoints, default=-1)
        while first - 1 in commits:
            first -= 1
        starts = [number for number in checkpoints if first - 1 <= number <= last] + [0] * (first == 0)
        if not starts:
            raise CannotShare(
                f"The log of the Delta table {self._folder} has no commit to begin with",
                hint="Name the folder that `_delta_log` is in, with all commits since the first one or a checkpoint.",
            )
        return range(min(starts), last + 1)

    def _time(self, number: int) -> Timestamp:
        return Timestamp.from_millis(self._times[number - self._numbers[0]])

    @cached_property
    def _times(self) -> list[int]:
        """The times of all versions in milliseconds.

        Each is later than the one before, as in readers of Delta, whatever the clocks of the writers. Commits never
        change, so the last one identifies them all.
        """

        def times() -> list[int]:
            own = (_own_time(self._file_of(number)) for number in self._numbers)
            return list(accumulate(own, lambda before, time: max(before + 1, time)))

        return _TIMES.get((self._numbers, self._file_of(self._numbers[-1])), times)

    # --- Columns ---

    def schema(self, version: TableVersion) -> pa.Schema:
        log = self._log_at(version.number)
        with self._reading():
            schema = log.schema()
            for field in json.loads(schema.to_json())["fields"]:
                self._check_name(field)
            return pa.schema(schema.to_arrow())

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return tuple(self._log_at(self._numbers[-1]).metadata().partition_columns)

    @property
    def description(self) -> str:
        return self._log_at(self._numbers[-1]).metadata().description or ""

    def _check_name(self, field: Any) -> None:
        """Reject columns that have other names in the files (column mapping), since clients read the files directly."""
        if not isinstance(field, dict):
            return
        stored = (field.get("metadata") or {}).get(_PHYSICAL)
        if stored is not None and stored != field.get("name"):
            raise CannotShare(
                f"The Delta table {self._folder} stores the column {field.get('name')!r} under another name, "
                f"{stored!r} (column mapping)",
                hint="Rewrite it without column mapping, and share that.",
            )
        for inner in (field.get("type"), field.get("elementType"), field.get("keyType"), field.get("valueType")):
            self._check_name(inner)
        for one in field.get("fields") or ():
            self._check_name(one)

    # --- Rows ---

    def files(self, version: TableVersion) -> Iterator[TableFile]:
        log = self._log_at(version.number)
        self.schema(version)  # check the names of its columns
        with self._reading():
            actions = pa.table(log.get_add_actions()).to_pylist()
            kept = self._kept_rows(log)
            types = self._partition_types(log)
        for action in sorted(actions, key=lambda action: str(action["path"])):
            values = action.get("partition") or {}
            known = self._local(action["path"])
            file = TableFile(
                known.identity,
                known.size,
                version,
                known.path,
                num_rows=action["num_records"],
                partition_values={name: partition_text(values.get(name)) for name in types},
                partition_types=types,
                stats=table_statistics(
                    action["num_records"], action.get("null_count"), action.get("min"), action.get("max")
                ),
            )
            if known.path in kept:
                file = with_live(file, _of_all_rows(known.path, kept.pop(known.path)))
            yield file
        if kept:
            raise CannotShare(
                f"The log of the Delta table {self._folder} has deleted rows of files that are not in it",
                hint=_REPAIR,
            )

    def changes(self, first: TableVersion, last: TableVersion) -> Iterator[TableChange]:
        known: tuple[int, list[TableFile]] = (-1, [])
        for number in range(first.number, last.number + 1):
            commit, version = self._commit(number), self.version(number)
            if commit.changes:
                types = self._partition_types(self._log_at(number))
                yield from (self._change(action, types, version) for action in commit.changes)
            elif commit.has_new_data:
                if number and number == self._numbers[0]:
                    raise NoSuchVersion(
                        f"The log does not have version {number - 1} any more, from which {number} differs",
                        hint=f"Ask for changes from version {number + 1} on.",
                    )
                before = known[1] if known[0] == number - 1 else list(self.files(self.version(number - 1)))
                known = number, list(self.files(version))
                yield from file_changes(before, known[1], version)

    def has_new_data(self, version: TableVersion) -> bool:
        return self._commit(version.number).has_new_data

    def _change(
        self, action: Mapping[str, Any], types: Mapping[str, pa.DataType], version: TableVersion
    ) -> TableChange:
        known = self._local(str(action.get("path")))
        values = action.get("partitionValues") or {}
        file = TableFile(
            known.identity,
            known.size,
            version,
            known.path,
            partition_values={name: partition_text(values.get(name)) for name in types},
            partition_types=types,
        )
        return TableChange(ChangeKind.BY_ROW, file, _CHANGE_TYPE)

    def _partition_types(self, log: Log) -> Mapping[str, pa.DataType]:
        columns = pa.schema(log.schema().to_arrow())
        return {name: columns.field(name).type for name in log.metadata().partition_columns}

    def _kept_rows(self, log: Log) -> dict[FilePlace, np.ndarray[Any, np.dtype[np.bool_]]]:
        """Return the live rows of files from which rows were deleted."""
        if _HAS_VECTORS not in (log.protocol().reader_features or ()):
            return {}
        self._check_vectors(log.version())
        found = pa.table(log.deletion_vectors())
        urls, vectors = found.column("filepath").to_pylist(), found.column("selection_vector")
        return {
            self._local(os.path.relpath(unquote(url.removeprefix("file://")), self._log.path), quoted=False).path: (
                np.asarray(vectors[at].values.to_numpy(zero_copy_only=False), np.bool_)
            )
            for at, url in enumerate(urls)
        }

    def _check_vectors(self, number: int) -> None:
        """Reject deletion vectors with absolute paths, which could refer to any file."""
        far = any(self._commit(version).has_far_vectors for version in self._numbers if version <= number)
        for name in self._log_names:
            if not far and name.endswith(".parquet"):
                far = _has_far_vectors(self._log.path / "_delta_log" / name)
        if far:
            raise CannotShare(
                f"The Delta table {self._folder} has deletion vectors outside of its folder", hint=_REPAIR
            )

    def _local(self, path: str, *, quoted: bool = True) -> LocalFile | BucketFile:
        name = unquote(path) if quoted else path
        if _ELSEWHERE.match(path) or _ELSEWHERE.match(name):
            raise CannotShare(
                f"The Delta table {self._folder} has a file with an absolute path: {name!r}",
                hint="Only files inside of its folder are shared; copy the table with all its files.",
            )
        return self._folder.file(name)

    # --- The log ---

    def _log_at(self, number: int) -> Log:
        log = self._logs.get(number)
        if log is None:
            with self._reading():
                log = Log(str(self._log.path), version=number)
            while len(self._logs) > 3:
                self._logs.pop(next(iter(self._logs)))
            self._logs[number] = log
        return log

    def _commit(self, number: int) -> _Commit:
        file = self._commit_file(number)
        return _Commit((), has_new_data=True, has_far_vectors=False) if file is None else _commit(file)

    def _file_of(self, number: int) -> LocalFile:
        """Return the commit of a version; its checkpoint if there is none."""
        file = self._commit_file(number)
        if file is not None:
            return file
        name = next(file_name for file_name in self._log_names if file_name.startswith(f"{number:020}.checkpoint"))
        return self._log.file(Path("_delta_log", name))

    def _commit_file(self, number: int) -> LocalFile | None:
        name = f"{number:020}.json"
        return self._log.file(Path("_delta_log", name)) if name in self._log_names else None

    @cached_property
    def _log_names(self) -> frozenset[str]:
        """The names of the log's files, which must be regular files, since a library reads them."""
        log = self._log.path / "_delta_log"
        found = []
        try:
            for at, folders, names in os.walk(log, onerror=raised):
                for name in (*folders, *names):
                    mode = Path(at, name).lstat().st_mode
                    if not stat.S_ISREG(mode) and not (stat.S_ISDIR(mode) and name in folders):
                        raise CannotShare(
                            f"The log of the Delta table {self._folder} has a link or device {name!r}",
                            hint=_REPAIR,
                        )
                found += names if Path(at) == log else [f"{Path(at).name}/{name}" for name in names]
            linked = log.is_symlink()
        except OSError as error:
            raise CannotShare(
                f"{self._folder} is not a Delta table: {reason(error)}",
                hint="Name the folder that `_delta_log` is in.",
            ) from error
        if linked:
            raise CannotShare(f"The log of the Delta table {self._folder} is a link", hint=_REPAIR)
        return frozenset(found)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Convert errors of the library in the block, including Rust panics, which are not `Exception`s."""
        try:
            yield
        except OdfError:
            raise
        except BaseException as error:
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            raise CannotShare(
                f"The Delta table {self._folder} cannot be read: {reason(error)}", hint=_REPAIR
            ) from error


@lru_cache(maxsize=2000)
def _commit(file: LocalFile) -> _Commit:
    """Parse a commit; cached as long as its file is unchanged."""
    changes, has_new_data, far = [], False, False
    with _lines_of(file) as lines:
        for line in lines:
            tree = json.loads(line) if line.strip() else {}
            files = [action for action in (tree.get("add"), tree.get("remove")) if action]
            has_new_data |= any(action.get("dataChange", True) for action in files)
            far |= any((action.get("deletionVector") or {}).get("storageType") == "p" for action in files)
            if tree.get("cdc"):
                changes.append(tree["cdc"])
    return _Commit(tuple(changes), has_new_data, far)


@lru_cache(maxsize=100_000)
def _own_time(file: LocalFile) -> int:
    """Return the time of a commit in milliseconds: as recorded by its writer, else that of its file, as for
    checkpoints.

    Only lines that may contain it are parsed, since logs are long.
    """
    time, in_commit = file.mtime_ns // NANOS_PER_MILLI, None
    if not _COMMIT.fullmatch(file.path.name):
        return time
    with _lines_of(file) as lines:
        for line in lines:
            info = (json.loads(line).get("commitInfo") if b'"commitInfo"' in line else None) or {}
            in_commit = info.get("inCommitTimestamp", in_commit)
            time = int(info.get("timestamp", time))
        time = int(in_commit if in_commit is not None else time)
        Timestamp.from_millis(time)
    return time


@contextmanager
def _lines_of(file: LocalFile) -> Iterator[Iterable[bytes]]:
    """Open a commit, and convert errors of its content in the block.

    Raises:
        CannotShare: the commit cannot be read.
    """
    try:
        with open_regular(file.path) as lines:
            yield lines
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, OdfError) as error:
        raise CannotShare(
            f"The commit {file.path} of a Delta table cannot be read: {reason(error)}", hint=_REPAIR
        ) from error


def _has_far_vectors(path: Path) -> bool:
    """Return whether a checkpoint contains deletion vectors with absolute paths."""
    with open_parquet(path) as file:
        kinds = file.read(columns=["add.deletionVector.storageType"])
    for name in kinds.column_names:
        for action in kinds.column(name).to_pylist():
            if ((action or {}).get("deletionVector") or {}).get("storageType") == "p":
                return True
    return False


def _of_all_rows(path: FilePlace, kept: np.ndarray[Any, np.dtype[np.bool_]]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Extend a vector to all rows of a file; rows beyond the vector are live."""
    live = np.ones(footer(path).metadata.num_rows, np.bool_)
    live[: len(kept)] = kept[: len(live)]
    return live
