"""The contract of shared tables: versions, and the Parquet files that each consists of."""

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

    from odfpy.sharing.tables.opened import FilePlace


class NoSuchVersion(NotFound, code="E764"):
    """A shared table has no such version, or had none at that time."""


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A version of a table.

    Attributes:
        number: from `ReadableTable.base` on.
        time: when it came into being.
        block: of a dataset, the hash of the block that made it; None for others, and before any data.
    """

    number: int
    time: Timestamp
    block: str | None = None


@dataclass(frozen=True, slots=True)
class TableFile:
    """A Parquet file of a table, or some rows of one.

    Attributes:
        identity: the same text only for the same bytes and the same rows of them.
        size: bytes of the file.
        version: that added it; where the table does not tell, the one that was asked for.
        path: where it is.
        num_rows: rows of the file, None where nobody knows yet.
        live: of each row, whether it counts; None if all do. (`identity` tells apart what this does.)
        partition_values: of columns that are not in the file, as the protocol writes them.
        partition_types: of the same columns.
        stats: statistics that the table itself keeps, as the protocol has them; None if they are in the file only.
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
    """The kinds of changes: of all rows of a file, or as a column of it says of each."""

    ADDED = "add"
    REMOVED = "remove"
    BY_ROW = "cdf"


@dataclass(frozen=True, slots=True)
class TableChange:
    """A file of a change feed.

    Attributes:
        kind: what has become of its rows.
        file: the file; `file.version` is the version that changed them.
        operations: name of the column that says it of each row, with ODF's operation types, or with the words of
            change feeds.
    """

    kind: ChangeKind
    file: TableFile
    operations: str | None = None


class ReadableTable(ABC):
    """A shared table as it is now: all calls of one request see the same versions."""

    @property
    @abstractmethod
    def latest(self) -> TableVersion:
        """Return the newest version."""

    @property
    def base(self) -> int:
        """Return the number of the version before any data; earlier ones were of a history that is gone."""
        return 0

    @abstractmethod
    def version(self, number: int) -> TableVersion:
        """The version of a number.

        Raises:
            NoSuchVersion: there is none, or not any more.
        """

    @abstractmethod
    def as_of(self, time: Timestamp) -> TableVersion:
        """The newest version at a time.

        Raises:
            NoSuchVersion: there was none yet.
        """

    @abstractmethod
    def first_from(self, time: Timestamp) -> TableVersion:
        """The oldest version at a time or after it.

        Raises:
            NoSuchVersion: there is none yet.
        """

    @abstractmethod
    def schema(self, version: TableVersion) -> pa.Schema:
        """The columns at a version, those of partitions too."""

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Names of columns whose values are in `TableFile.partition_values`."""
        return ()

    @property
    def row_dependent_columns(self) -> tuple[str, ...]:
        """Names of columns whose values tell of other rows, such as a running number."""
        return ()

    @property
    def may_have_deleted_rows(self) -> bool:
        """Return whether `files` may have some of which not all rows count."""
        return True

    @property
    def has_changes(self) -> bool:
        """Return whether `changes` can tell what versions have changed."""
        return True

    @property
    @abstractmethod
    def description(self) -> str:
        """A sentence about it, for people; nothing if nobody wrote one."""

    @abstractmethod
    def files(self, version: TableVersion) -> Iterator[TableFile]:
        """The files of a version, in an order that stays the same."""

    @abstractmethod
    def changes(self, first: TableVersion, last: TableVersion) -> Iterator[TableChange]:
        """The changes that versions have made, both inclusive, in the order of versions."""
