"""Documents of a relay: `{apiVersion: odf/web/v1, kind, spec}`, each of them an immutable value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from odfpy.errors import InvalidValue
from odfpy.federation.model.connections import Connection, FlightUrl, PathText, StrictModel, Word
from odfpy.sharing.names import check_name

API_VERSION: Final = "odf/web/v1"

_REST: Final = re.compile(r"https://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9_.-]+)(:\d{1,5})?(/[\w./-]*)?")
_PEM: Final = "-----BEGIN CERTIFICATE-----"
_MAX_COLUMNS: Final = 10_000


def _name(text: str) -> str:
    try:
        return check_name("thing", text, dots=True)
    except InvalidValue as error:
        raise ValueError(f"not a name: {error.hint}") from error


def _condition(value: Any) -> Any:
    """Accept the boolean that YAML reads an unquoted `true` as; it is a condition, too."""
    return str(value).lower() if isinstance(value, bool) else value


def _rest(url: str) -> str:
    if not _REST.fullmatch(url):
        raise ValueError("write https://HOST:PORT")
    return url


def _certificate(text: str) -> str:
    return text if text.startswith(_PEM) else _path(text)


def _path(text: str) -> str:
    if not text or len(text) > 1000 or re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError("write the path of a PEM file")
    return text


Name: TypeAlias = Annotated[str, AfterValidator(_name)]
Certificate: TypeAlias = Annotated[str, AfterValidator(_certificate)]
"""The path of a PEM file; after reading, its content."""


class Information(StrictModel):
    """A column of an entity.

    Attributes:
        name: name of the column.
        arrow_dtype: name of its type, as arrow-rs writes it (`arrow_types`).
    """

    name: Word
    arrow_dtype: str


class Entity(StrictModel):
    """A logical table, which relays map their data to.

    Attributes:
        name: the name that queries use for it.
        information: its columns.
    """

    KIND: ClassVar[str] = "Entity"
    name: Name
    information: Annotated[tuple[Information, ...], Field(min_length=1, max_length=_MAX_COLUMNS)]

    @property
    def key(self) -> str:
        """Return its key among objects of its kind."""
        return self.name


class Permission(StrictModel):
    """A grant: columns and rows that may be read together, in the column names of the data source.

    Attributes:
        allowed_columns: names of fields, or `*` for all.
        allowed_rows: a condition on rows (`odfpy.sharing.conditions`); `true` for all rows.
    """

    allowed_columns: tuple[Word, ...] | Literal["*"]
    allowed_rows: Annotated[str, BeforeValidator(_condition)]


class SourceField(StrictModel):
    """A field of a data source.

    Attributes:
        name: the name that mappings and permissions use for it.
        path: the column of the source; equal to the name by default.
    """

    name: Word
    path: Word | None = None

    @property
    def column(self) -> str:
        """Return the column of the source."""
        return self.path or self.name


class DataSource(StrictModel):
    """A relation that a connection provides.

    Attributes:
        name: the name that mappings and permissions use for it.
        source_sql: the name of a table, or one SELECT.
        fields: the fields that can be mapped and granted.
        default_permission: what requesters without a permission of their own see; nothing if absent.
    """

    name: Name
    source_sql: Annotated[str, Field(min_length=1)]
    fields: Annotated[tuple[SourceField, ...], Field(min_length=1, max_length=_MAX_COLUMNS)]
    default_permission: Permission | None = None


class LocalData(StrictModel):
    """A connection, and the relations that are read over it.

    Attributes:
        name: the name that mappings and permissions use for it.
        connection: how to reach the data.
        data_sources: its relations.
    """

    KIND: ClassVar[str] = "LocalData"
    name: Name
    connection: Connection
    data_sources: Annotated[tuple[DataSource, ...], Field(min_length=1)]

    @property
    def key(self) -> str:
        """Return its key among objects of its kind."""
        return self.name

    def source(self, name: str) -> DataSource | None:
        """Return the data source of a name; None if there is none."""
        return next((data_source for data_source in self.data_sources if data_source.name == name), None)

    def resolved(self, folder: Path) -> LocalData:
        """Return a copy with absolute paths."""
        return self.model_copy(update={"connection": self.connection.resolved(folder)})


class FieldMapping(StrictModel):
    """The mapping of a field to a column of an entity.

    Attributes:
        field: field of the data source.
        information: column of the entity.
        transformation: an SQL expression over `{v}`, the field; the field itself by default.
    """

    field: Word
    information: Word
    transformation: str | None = None


class SourceMapping(StrictModel):
    """The columns of an entity that a data source provides.

    Attributes:
        data: name of a LocalData.
        source: name of one of its data sources.
        fields: the mapping of each field.
    """

    data: Name
    source: Name
    fields: Annotated[tuple[FieldMapping, ...], Field(min_length=1)]


class LocalMapping(StrictModel):
    """An entity, and the local data sources that have rows of it.

    Attributes:
        entity: name of the entity.
        mappings: one mapping for each data source.
    """

    KIND: ClassVar[str] = "LocalMapping"
    entity: Name
    mappings: Annotated[tuple[SourceMapping, ...], Field(min_length=1)]

    @property
    def key(self) -> str:
        """Return its key among objects of its kind."""
        return self.entity


class SourcePermission(Permission):
    """A grant on a data source; several on one source are a union: their columns and rows are not combined with each
    other.

    Attributes:
        data: name of a LocalData.
        source: name of one of its data sources.
    """

    data: Name
    source: Name


class _Known(StrictModel):
    """A party that is identified by certificates."""

    name: Name
    certificates: tuple[Certificate, ...] = ()
    attributes: dict[Word, Word] = Field(default_factory=dict)
    permissions: tuple[SourcePermission, ...] = ()

    @property
    def key(self) -> str:
        """Return its key among objects of its kind."""
        return self.name


class PeerRelay(_Known):
    """Another relay, which this one queries, and which may query this one.

    Attributes:
        name: the name that remote mappings use for it.
        flight_endpoint: its location: `grpc+tls://HOST:PORT`.
        rest_endpoint: `https://HOST:PORT`, if it has one.
        certificates: PEM files of the certificates that it presents.
        attributes: attributes that row conditions can use.
        permissions: replace the default, for each data source that they name.
    """

    KIND: ClassVar[str] = "PeerRelay"
    flight_endpoint: FlightUrl
    rest_endpoint: Annotated[str, AfterValidator(_rest)] | None = None

    @model_validator(mode="after")
    def _is_safe(self) -> PeerRelay:
        if not self.flight_endpoint.startswith("grpc+tls:"):
            raise ValueError("a peer is asked over TLS: flight_endpoint begins with grpc+tls://")
        return self


class User(_Known):
    """A person or program that sends queries.

    Attributes:
        name: name of the user.
        certificates: PEM files; `odf relay cert new` issues more.
        attributes: attributes that row conditions can use, in addition to the certificate's fields (`subject.O`).
        permissions: replace the default, for each data source that they name.
    """

    KIND: ClassVar[str] = "User"


class InformationMapping(StrictModel):
    """The mapping of a column of a peer's entity to one of this relay's.

    Attributes:
        information: column of the entity here.
        remote: its name at the peer, or in `sql`.
        transformation: an SQL expression over `{v}`, the peer's value; that value itself by default.
    """

    information: Word
    remote: Word
    transformation: str | None = None


class RemoteMapping(StrictModel):
    """An entity, and the entity of a peer that has rows of it.

    Attributes:
        entity: name of the entity here.
        relay: name of a PeerRelay.
        remote_entity: its name at the peer.
        sql: `SELECT *, expression AS name FROM remote_entity`, where plain columns of the peer are not enough.
        information: which column here is which column there.
    """

    KIND: ClassVar[str] = "RemoteMapping"
    entity: Name
    relay: Name
    remote_entity: Name
    sql: str | None = None
    information: Annotated[tuple[InformationMapping, ...], Field(min_length=1)]

    @property
    def key(self) -> str:
        """Return its key among objects of its kind."""
        return f"{self.entity} at {self.relay}/{self.remote_entity}"


Spec: TypeAlias = Entity | LocalData | LocalMapping | PeerRelay | RemoteMapping | User

KINDS: Final[Mapping[str, type[Spec]]] = {
    one.KIND: one for one in (Entity, LocalData, LocalMapping, PeerRelay, RemoteMapping, User)
}
"""All kinds, in the order in which they need each other."""

WORDS: Final = {
    "Entity": "entity",
    "LocalData": "local data",
    "LocalMapping": "local mapping",
    "PeerRelay": "peer",
    "RemoteMapping": "remote mapping",
    "User": "user",
}
"""The names of kinds in messages."""


def tree_of(spec: Spec) -> dict[str, Any]:
    """Return the spec as a JSON tree, without default values."""
    return spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)


__all__ = ["API_VERSION", "KINDS", "WORDS", "Certificate", "Connection", "PathText", "Spec", "tree_of"]
