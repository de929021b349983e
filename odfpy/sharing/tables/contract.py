"""The contract of shared tables: versions, and the Parquet files of each version."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from odfpy.data.timestamp import Timestamp
from odfpy.errors import NotFound

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from odfpy.sharing.tables.parquet_files import FilePlace


class NoSuchVersion(NotFound, code="E764"):
    """A shared table has no such version, or had none at the requested time."""


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A version of a shared table.

    Attributes:
        number: number of the version, at least `ReadableTable.base`.
        time: time of its creation.
        block: for a dataset, the hash of the block that created it; None for others, and before any data.
    """

    number: int
    time: Timestamp
    block: str | None = None


@dataclass(frozen=True, slots=True)
class TableFile:
    """A Parquet file of a table, or a part of its rows.

    Attributes:
        identity: text that is equal only for equal bytes and equal live rows.
        size: size of the file in bytes.
        version: version that added it; if the table does not record that, the requested version.
        path: location of the file.
        num_rows: number of rows in the file, None if not yet known.
        live: for each row, whether it is live; None if all are. (Equality relies on `identity` instead.)
        partition_values: values of columns that are not in the file, in the protocol's format.
        partition_types: types of these columns.
        stats: statistics stored by the table itself, in the protocol's form; None if only the file has statistics.
    """

    identity: str
    size: int
    version: TableVersion
    path: FilePlace
    num_rows: int | None = None
    live: npt.NDArray[np.bool_] | None = field(default=None, compare=False, repr=False)
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    partition_types: Mapping[str, pa.DataType] = field(default_factory=dict)
    stats: Mapping[str, object] | None = None


class ChangeKind(Enum):
    """The kinds of changes: the same for all rows of a file, or determined for each row by a column."""

    ADDED = "add"
    REMOVED = "remove"
    BY_ROW = "cdf"


@dataclass(frozen=True, slots=True)
class TableChange:
    """A file of a change data feed.

    Attributes:
        kind: kind of change of its rows.
        file: the file; `file.version` is the version of the change.
        operations: name of the column with the change of each row, as ODF operation types or as Delta change
            types.
    """

    kind: ChangeKind
    file: TableFile
    operations: str | None = None


class ReadableTable(ABC):
    """A shared table at the time of a request: all calls of one request see the same versions."""

    @property
    @abstractmethod
    def latest(self) -> TableVersion:
        """The newest version."""

    @property
    def base(self) -> int:
        """The number of the version before any data; lower numbers belong to replaced histories."""
        return 0

    @abstractmethod
    def version(self, number: int) -> TableVersion:
        """Return the version with a number.

        Raises:
            NoSuchVersion: the version does not exist, or no longer exists.
        """

    @abstractmethod
    def as_of(self, time: Timestamp) -> TableVersion:
        """Return the newest version at a time.

        Raises:
            NoSuchVersion: there was no version at that time.
        """

    @abstractmethod
    def first_from(self, time: Timestamp) -> TableVersion:
        """Return the oldest version at or after a time.

        Raises:
            NoSuchVersion: there is no such version.
        """

    @abstractmethod
    def schema(self, version: TableVersion) -> pa.Schema:
        """Return the columns of a version, including partition columns."""

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Names of the columns whose values are in `TableFile.partition_values`."""
        return ()

    @property
    def row_dependent_columns(self) -> tuple[str, ...]:
        """Names of the columns whose values reveal other rows, such as running numbers."""
        return ()

    @property
    def may_have_deleted_rows(self) -> bool:
        """True if `files` may include files with superseded rows."""
        return True

    @property
    def has_changes(self) -> bool:
        """True if `changes` is supported."""
        return True

    def has_new_data(self, version: TableVersion) -> bool:
        """Return whether a version changes rows; otherwise it only writes the same rows to other files."""
        del version
        return True

    @property
    @abstractmethod
    def description(self) -> str:
        """A description of the table; empty if there is none."""

    @abstractmethod
    def files(self, version: TableVersion) -> Iterator[TableFile]:
        """Return the files of a version, in a stable order."""

    @abstractmethod
    def changes(self, first: TableVersion, last: TableVersion) -> Iterator[TableChange]:
        """Return the changes of a range of versions, both inclusive, in the order of versions."""
