"""The value classes of sharing: principals, shares, tables, and grants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from odfpy.data.timestamp import Timestamp
from odfpy.errors import member_named
from odfpy.sharing.names import SharePath


class PrincipalKind(Enum):
    """The kinds of principals: internal users, external recipients, and groups of both."""

    USER = "user"
    RECIPIENT = "recipient"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Principal:
    """A party that can be granted permissions: a user, a recipient or a group.

    Attributes:
        id: unique id, never reused.
        kind: kind of the principal.
        name: name; unique among all principals, case-insensitive.
        attributes: attributes that row conditions can use, such as the country of a partner.
        is_disabled: whether access is suspended.
        created_at: time of creation.
        is_admin: whether the user may administer the workspace over the network.
    """

    id: int
    kind: PrincipalKind
    name: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    is_disabled: bool = False
    created_at: Timestamp | None = None
    is_admin: bool = False


class SourceKind(Enum):
    """The kinds of tables that can be shared."""

    DATASET = "dataset"
    PARQUET = "parquet"
    DELTA = "delta"
    ICEBERG = "iceberg"

    @classmethod
    def parse(cls, text: str) -> SourceKind:
        """Return the kind with a name.

        Raises:
            InvalidValue: the name is unknown; the message suggests a valid one.
        """
        return member_named(cls, "kind of table", text, otherwise="dataset, parquet, delta or iceberg.")


class SharedView(Enum):
    """The view of a dataset that is shared: its current state, or its changelog."""

    CURRENT = "current"
    CHANGELOG = "changelog"

    @classmethod
    def parse(cls, text: str) -> SharedView:
        """Return the view with a name.

        Raises:
            InvalidValue: the name is unknown; the message suggests a valid one.
        """
        return member_named(cls, "view of a dataset", text, otherwise="current or changelog.")


@dataclass(frozen=True, slots=True)
class TableSource:
    """The data behind a shared table.

    Attributes:
        kind: kind of the source.
        location: id of a dataset; folder or URL of a Parquet folder or Delta table; `catalog:namespace.table` or a
            metadata file of an Iceberg table.
        shown: for a dataset, its current state or its changelog.
        at: for a dataset, a tag or branch; None for the head.
    """

    kind: SourceKind
    location: str
    shown: SharedView = SharedView.CURRENT
    at: str | None = None


@dataclass(frozen=True, slots=True)
class SharedTable:
    """A table of a share, with its source.

    Attributes:
        id: UUID, immutable.
        share_id: id of its share.
        path: path of the table.
        source: the data behind it.
        comment: human-readable comment.
    """

    id: str
    share_id: str
    path: SharePath
    source: TableSource
    comment: str = ""

    @property
    def identity(self) -> str:
        """Return a text that identifies the table and the data behind it: what is issued for both ends with either."""
        source = self.source
        return "\0".join((self.id, source.kind.value, source.location, source.shown.value, source.at or ""))


@dataclass(frozen=True, slots=True)
class Share:
    """A share: a named collection of schemas and tables.

    Attributes:
        id: UUID, immutable.
        name: name of the share.
        comment: human-readable comment.
    """

    id: str
    name: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """The right of a principal to read some columns of some rows; grants are not combined with each other.

    Attributes:
        id: unique id, never reused.
        principal: name of the principal.
        path: path of the share, schema or table.
        columns: names of the columns, None for all.
        rows: condition on the rows (`odfpy.sharing.conditions`), None for all.
    """

    id: int
    principal: str
    path: SharePath
    columns: tuple[str, ...] | None = None
    rows: str | None = None
