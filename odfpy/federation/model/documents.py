"""Documents of a relay: `{apiVersion: odf/web/v1, kind, spec}`, each a value of its own."""

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
    """YAML reads `true` without quotes as a truth value; it is a condition, too."""
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
"""The path of a PEM file, or once it was read, what is in it."""


class Information(StrictModel):
    """A column of an entity.

    Attributes:
        name: of the column.
        arrow_dtype: name of its type, as arrow-rs writes it (`arrow_types`).
    """

    name: Word
    arrow_dtype: str


class Entity(StrictModel):
    """A logical table.

    Attributes:
        name: by which queries know it.
        information: its columns.
    """

    KIND: ClassVar[str] = "Entity"
    name: Name
    information: Annotated[tuple[Information, ...], Field(min_length=1, max_length=_MAX_COLUMNS)]

    @property
    def key(self) -> str:
        """Return what it is known by among its kind."""
        return self.name


class Permission(StrictModel):
    """Columns and rows that may be read together: a grant; its words are those of the data source.

    Attributes:
        allowed_columns: names of fields, or `*` for all.
        allowed_rows: a condition on rows (`odfpy.sharing.conditions`); `true` for all.
    """

    allowed_columns: tuple[Word, ...] | Literal["*"]
    allowed_rows: Annotated[str, BeforeValidator(_condition)]


class SourceField(StrictModel):
    """A field of a data source.

    Attributes:
        name: by which mappings and permissions know it.
        path: the column of the source; the name by default.
    """

    name: Word
    path: Word | None = None

    @property
    def column(self) -> str:
        """Return the column of the source."""
        return self.path or self.name


class DataSource(StrictModel):
    """A relation of a connection.

    Attributes:
        name: by which mappings and permissions know it.
        source_sql: the name of a table, or one SELECT.
        fields: those that can be mapped and granted.
        default_permission: what everybody sees who has no permission of their own; nothing if absent.
    """

    name: Name
    source_sql: Annotated[str, Field(min_length=1)]
    fields: Annotated[tuple[SourceField, ...], Field(min_length=1, max_length=_MAX_COLUMNS)]
    default_permission: Permission | None = None


class LocalData(StrictModel):
    """A connection, and the data that is read over it.

    Attributes:
        name: by which mappings and permissions know it.
        connection: where the data is.
        data_sources: its relations.
    """

    KIND: ClassVar[str] = "LocalData"
    name: Name
    connection: Connection
    data_sources: Annotated[tuple[DataSource, ...], Field(min_length=1)]

    @property
    def key(self) -> str:
        """Return what it is known by among its kind."""
        return self.name

    def source(self, name: str) -> DataSource | None:
        """The data source of a name; None if there is none."""
        return next((one for one in self.data_sources if one.name == name), None)

    def resolved(self, folder: Path) -> LocalData:
        """Return it as seen from anywhere."""
        return self.model_copy(update={"connection": self.connection.resolved(folder)})


class FieldMapping(StrictModel):
    """A piece of information from a field.

    Attributes:
        field: of the data source.
        information: of the entity.
        transformation: an SQL expression over `{v}`, the field; the field itself by default.
    """

    field: Word
    information: Word
    transformation: str | None = None


class SourceMapping(StrictModel):
    """The information that a data source has.

    Attributes:
        data: name of a LocalData.
        source: name of a data source of it.
        fields: which field is which information.
    """

    data: Name
    source: Name
    fields: Annotated[tuple[FieldMapping, ...], Field(min_length=1)]


class LocalMapping(StrictModel):
    """An entity, and the data sources that have rows of it.

    Attributes:
        entity: its name.
        mappings: one for each data source.
    """

    KIND: ClassVar[str] = "LocalMapping"
    entity: Name
    mappings: Annotated[tuple[SourceMapping, ...], Field(min_length=1)]

    @property
    def key(self) -> str:
        """Return what it is known by among its kind."""
        return self.entity


class SourcePermission(Permission):
    """A grant on a data source; several on one source are a union of cells, which mixes no pair with another one.

    Attributes:
        data: name of a LocalData.
        source: name of a data source of it.
    """

    data: Name
    source: Name


class _Known(StrictModel):
    """Somebody who is known by certificates."""

    name: Name
    certificates: tuple[Certificate, ...] = ()
    attributes: dict[Word, Word] = Field(default_factory=dict)
    permissions: tuple[SourcePermission, ...] = ()

    @property
    def key(self) -> str:
        """Return what it is known by among its kind."""
        return self.name


class PeerRelay(_Known):
    """Another relay, which is asked, and which may ask.

    Attributes:
        name: by which remote mappings know it.
        flight_endpoint: where it is asked: `grpc+tls://HOST:PORT`.
        rest_endpoint: `https://HOST:PORT`, if it has one.
        certificates: PEM files of those that it shows.
        attributes: what row conditions may name.
        permissions: in the place of the default, for each data source that they name.
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
    """A person or program that asks.

    Attributes:
        name: of the user.
        certificates: PEM files; `odf relay cert new` issues more.
        attributes: what row conditions may name, beside the fields of the certificate (`subject.O`).
        permissions: in the place of the default, for each data source that they name.
    """

    KIND: ClassVar[str] = "User"


class InformationMapping(StrictModel):
    """A piece of information from that of a peer.

    Attributes:
        information: of the entity here.
        remote: its name there, or in `sql`.
        transformation: an SQL expression over `{v}`, what the peer gives; that itself by default.
    """

    information: Word
    remote: Word
    transformation: str | None = None


class RemoteMapping(StrictModel):
    """An entity, and the entity of a peer that has rows of it.

    Attributes:
        entity: its name here.
        relay: name of a PeerRelay.
        remote_entity: its name there.
        sql: `SELECT *, expression AS name FROM remote_entity`, where names of the peer's own do not do.
        information: which information here is which there.
    """

    KIND: ClassVar[str] = "RemoteMapping"
    entity: Name
    relay: Name
    remote_entity: Name
    sql: str | None = None
    information: Annotated[tuple[InformationMapping, ...], Field(min_length=1)]

    @property
    def key(self) -> str:
        """Return what it is known by among its kind."""
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
"""Words that people have for them."""


def tree_of(spec: Spec) -> dict[str, Any]:
    """The spec as a tree of JSON, without what is as by default."""
    return spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)


__all__ = ["API_VERSION", "KINDS", "WORDS", "Certificate", "Connection", "PathText", "Spec", "tree_of"]
