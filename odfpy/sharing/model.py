"""Values of sharing: principals, what is shared, and grants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from odfpy.data.timestamp import Timestamp
from odfpy.errors import member_named
from odfpy.sharing.names import SharePath


class PrincipalKind(Enum):
    """The kinds of principals: people of one's own, outsiders, and groups of both."""

    USER = "user"
    RECIPIENT = "recipient"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody to whom something can be granted.

    Attributes:
        id: never used again.
        kind: what they are.
        name: how they are called; unique among all principals, whatever the case.
        attributes: what conditions on rows may name, such as the country of a partner.
        is_disabled: whether they are disabled for now.
        created_at: when they were added.
        is_admin: whether they may administer the workspace over the network.
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
        """The kind of that name.

        Raises:
            InvalidValue: with a suggestion.
        """
        return member_named(cls, "kind of table", text, otherwise="dataset, parquet, delta or iceberg.")


class SharedView(Enum):
    """The view of a dataset that is shared."""

    CURRENT = "current"
    CHANGELOG = "changelog"

    @classmethod
    def parse(cls, text: str) -> SharedView:
        """The view of that name.

        Raises:
            InvalidValue: with a suggestion.
        """
        return member_named(cls, "view of a dataset", text, otherwise="current or changelog.")


@dataclass(frozen=True, slots=True)
class TableSource:
    """The data behind a shared table.

    Attributes:
        kind: what it is.
        location: id of a dataset; folder or URL of a Parquet folder or Delta table; `catalog:namespace.table` or a
            metadata file of an Iceberg table.
        shown: of a dataset, its current state or its changelog.
        at: of a dataset, a tag or branch; None for the head.
    """

    kind: SourceKind
    location: str
    shown: SharedView = SharedView.CURRENT
    at: str | None = None


@dataclass(frozen=True, slots=True)
class SharedTable:
    """A table of a share.

    Attributes:
        id: UUID; stays the same for its life.
        share_id: that of its share.
        path: its names.
        source: what is behind it.
        comment: for people.
    """

    id: str
    share_id: str
    path: SharePath
    source: TableSource
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """A share.

    Attributes:
        id: UUID; stays the same for its life.
        name: its name.
        comment: for people.
    """

    id: str
    name: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """The right of a principal to read some columns of some rows; never mixed with those of another grant.

    Attributes:
        id: never used again.
        principal: name of who has it.
        path: share, schema or table.
        columns: names of the columns, None for all.
        rows: condition on the rows (`odfpy.sharing.conditions`), None for all.
    """

    id: int
    principal: str
    path: SharePath
    columns: tuple[str, ...] | None = None
    rows: str | None = None
