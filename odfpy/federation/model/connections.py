"""Connections to data. Secrets are referenced by names of environment variables; no document contains one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from odfpy.errors import InvalidValue
from odfpy.federation.model.arrow_types import parse_dtype

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_HOST: Final = re.compile(r"[A-Za-z0-9_.:-]{1,253}|/[^\x00-\x1f]{1,100}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_REMOTE: Final = re.compile(r"(s3|gs|az|s3\+https?)://[^/\s?#@]+/[^?#@]*")
_FLIGHT: Final = re.compile(r"grpc(\+tls|\+tcp)?://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9_.-]+):\d{1,5}")
_SUFFIXES: Final = {"parquet": "parquet", "csv": "csv", "ndjson": "ndjson", "jsonl": "ndjson", "json": "ndjson"}
_SQL: Final = ("duckdb", "postgres", "spark", "sqlite", "trino", "mysql", "snowflake", "bigquery", "clickhouse")
_MAX_LENGTH: Final = 1000


class StrictModel(BaseModel):
    """A part of a document: frozen, and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise ValueError("name a variable of the environment that holds it, such as TRINO_PASSWORD, not the secret")
    return name


def _place(text: str) -> str:
    if not text or len(text) > _MAX_LENGTH or _CONTROL.search(text):
        raise ValueError(f"write a path or URL of 1 to {_MAX_LENGTH} characters, without control characters")
    return text


def _host(text: str) -> str:
    if not _HOST.fullmatch(text):
        raise ValueError("write a host alone, without scheme, user or path")
    return text


def _flight(url: str) -> str:
    if not _FLIGHT.fullmatch(url):
        raise ValueError("write grpc://HOST:PORT, or grpc+tls://HOST:PORT; keys do not belong into the URL")
    return url


def _word(text: str) -> str:
    if not text or len(text) > _MAX_LENGTH or _CONTROL.search(text):
        raise ValueError(f"write 1 to {_MAX_LENGTH} characters, without control characters")
    return text


Variable: TypeAlias = Annotated[str, AfterValidator(_variable)]
"""Name of a variable of the environment."""

PathText: TypeAlias = Annotated[str, AfterValidator(_place)]
"""A path, relative to the folder of the document."""

Host: TypeAlias = Annotated[str, AfterValidator(_host)]
FlightUrl: TypeAlias = Annotated[str, AfterValidator(_flight)]
Word: TypeAlias = Annotated[str, AfterValidator(_word)]
Port: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=65535)]


def absolute(text: str, folder: Path) -> str:
    """Make a path absolute, relative to a folder; URLs are returned unchanged."""
    return text if "://" in text else str((folder / text).absolute())


class DatasetConnection(StrictModel):
    """A connection to datasets of the workspace.

    Attributes:
        kind: `dataset`.
        shown: whether a dataset that `source_sql` only names is shown in its current state or as its changelog.
        as_at: block, tag or system time at which such a dataset is read.
        as_of: event time as of which such a dataset is read.
    """

    kind: Literal["dataset"]
    shown: Literal["current", "changelog"] = "current"
    as_at: Word | None = None
    as_of: Word | None = None

    @model_validator(mode="after")
    def _is_possible(self) -> DatasetConnection:
        if self.shown == "changelog" and self.as_of is not None:
            raise ValueError("a changelog has no state as of a time; leave out shown or as_of")
        return self

    @property
    def dialect(self) -> str:
        """Return the dialect of its SQL, by sqlglot's name."""
        return "postgres"

    def resolved(self, _folder: Path) -> DatasetConnection:
        """Return it unchanged: it has no paths."""
        return self


class FileTable(StrictModel):
    """Files that form one table.

    Attributes:
        location: a file, a folder, or a URL of one in an object store; the last segment may have `*`.
        format: the format; by default derived from the extension.
        columns: names and types of columns, where they are not to be inferred (CSV and NDJSON).
        delimiter: delimiter of columns (CSV).
        header: whether the first line holds the names of columns (CSV).
    """

    location: PathText
    format: Literal["parquet", "csv", "ndjson"] | None = None
    columns: dict[Word, str] | None = None
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    header: Annotated[bool, Field(strict=True)] = True

    @model_validator(mode="after")
    def _is_possible(self) -> FileTable:
        if self.format is None and self.location.rpartition(".")[2].lower() not in _SUFFIXES:
            raise ValueError("say the format: parquet, csv or ndjson; the name does not tell")
        if "://" in self.location and not _REMOTE.fullmatch(self.location):
            raise ValueError(
                "a URL is s3://, s3+https://, gs:// or az:// with bucket and path; keys do not belong there"
            )
        if "*" in self.location.rpartition("/")[0]:
            raise ValueError("only the last part of a location may have *")
        if not self.header and self.columns is None:
            raise ValueError("name the columns: the files have no header")
        for name, dtype in (self.columns or {}).items():
            try:
                parse_dtype(dtype)
            except InvalidValue as error:
                raise ValueError(f"column {name!r}: {error.message}") from error
        return self

    @property
    def kind(self) -> str:
        """Return the format, declared or derived from the name."""
        return self.format or _SUFFIXES[self.location.rpartition(".")[2].lower()]


class FilesConnection(StrictModel):
    """A connection to files of this machine, or of an object store.

    Attributes:
        kind: `files`.
        tables: tables, by the names that `source_sql` uses for them.
    """

    kind: Literal["files"]
    tables: Annotated[dict[Word, FileTable], Field(min_length=1)]

    @property
    def dialect(self) -> str:
        """Return the dialect of its SQL, by sqlglot's name."""
        return "postgres"

    def resolved(self, folder: Path) -> FilesConnection:
        """Return a copy with absolute paths."""
        tables = {
            name: table.model_copy(update={"location": absolute(table.location, folder)})
            for name, table in self.tables.items()
        }
        return self.model_copy(update={"tables": tables})


class FlightConnection(StrictModel):
    """A connection to a Flight SQL server; anonymous if there is no user, token or certificate.

    Attributes:
        kind: `flight`.
        url: url of the server.
        sql: the dialect of its SQL, by sqlglot's name.
        user: user name for a login with a password.
        password_env: environment variable that holds the password.
        token_env: environment variable that holds a bearer token.
        certificate_file: the client certificate (mTLS).
        key_file: its key.
        ca_file: authorities that may have issued the server's certificate; those of the system by default.
        headers: headers sent with each request; no secrets.
    """

    kind: Literal["flight"]
    url: FlightUrl
    sql: Literal[_SQL] = "duckdb"  # type: ignore[valid-type]
    user: Word | None = None
    password_env: Variable | None = None
    token_env: Variable | None = None
    certificate_file: PathText | None = None
    key_file: PathText | None = None
    ca_file: PathText | None = None
    headers: dict[Word, Word] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _is_possible(self) -> FlightConnection:
        if (self.user is None) != (self.password_env is None):
            raise ValueError("user and password_env need each other")
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("certificate_file and key_file need each other")
        if self.user is not None and self.token_env is not None:
            raise ValueError("name a user or a token, not both")
        if not self.url.startswith("grpc+tls:") and (self.certificate_file or self.ca_file):
            raise ValueError("certificates need a URL that begins with grpc+tls://")
        return self

    @property
    def dialect(self) -> str:
        """Return the dialect of its SQL, by sqlglot's name."""
        return str(self.sql)

    def resolved(self, folder: Path) -> FlightConnection:
        """Return a copy with absolute paths."""
        names = ("certificate_file", "key_file", "ca_file")
        return self.model_copy(
            update={name: absolute(value, folder) for name in names if (value := getattr(self, name)) is not None}
        )


class TrinoConnection(StrictModel):
    """A connection to a Trino cluster.

    Attributes:
        kind: `trino`.
        host: host of the coordinator.
        port: port of the coordinator.
        user: user that queries run as.
        password_env: environment variable that holds the password; requires `secure`.
        secure: whether to use TLS.
        ca_file: authorities that may have issued its certificate; those of the system by default.
        catalog: default catalog.
        db_schema: default schema; written `schema` in documents.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kind: Literal["trino"]
    host: Host
    port: Port = 443
    user: Word
    password_env: Variable | None = None
    secure: Annotated[bool, Field(strict=True)] = True
    ca_file: PathText | None = None
    catalog: Word | None = None
    db_schema: Annotated[Word | None, Field(alias="schema")] = None

    @model_validator(mode="after")
    def _is_possible(self) -> TrinoConnection:
        if self.password_env is not None and not self.secure:
            raise ValueError("a password is only sent over TLS; leave out secure: false")
        return self

    @property
    def dialect(self) -> str:
        """Return the dialect of its SQL, by sqlglot's name."""
        return "trino"

    def resolved(self, folder: Path) -> TrinoConnection:
        """Return a copy with absolute paths."""
        return self.model_copy(update={"ca_file": None if self.ca_file is None else absolute(self.ca_file, folder)})


class DuckdbConnection(StrictModel):
    """A connection to a database file of DuckDB, which is opened read-only.

    Attributes:
        kind: `duckdb`.
        path: path of the file.
    """

    kind: Literal["duckdb"]
    path: PathText

    @model_validator(mode="after")
    def _is_possible(self) -> DuckdbConnection:
        if "://" in self.path or self.path.startswith(":"):
            raise ValueError("write the path of a file of this machine")
        return self

    @property
    def dialect(self) -> str:
        """Return the dialect of its SQL, by sqlglot's name."""
        return "duckdb"

    def resolved(self, folder: Path) -> DuckdbConnection:
        """Return a copy with absolute paths."""
        return self.model_copy(update={"path": absolute(self.path, folder)})


class PostgresConnection(StrictModel):
    """A connection to a PostgreSQL database.

    Attributes:
        kind: `postgres`.
        host: host of the server, or the folder of its Unix socket.
        port: port of the server.
        database: name of the database.
        user: user that queries run as; should only have read permissions.
        password_env: environment variable that holds the password.
        sslmode: `sslmode` of libpq.
        ca_file: authorities that may have issued its certificate.
    """

    kind: Literal["postgres"]
    host: Host
    port: Port = 5432
    database: Word
    user: Word
    password_env: Variable | None = None
    sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = "verify-full"
    ca_file: PathText | None = None

    @property
    def dialect(self) -> str:
        """Return the dialect of its SQL, by sqlglot's name."""
        return "postgres"

    def resolved(self, folder: Path) -> PostgresConnection:
        """Return a copy with absolute paths."""
        return self.model_copy(update={"ca_file": None if self.ca_file is None else absolute(self.ca_file, folder)})


Connection: TypeAlias = Annotated[
    DatasetConnection | FilesConnection | FlightConnection | TrinoConnection | DuckdbConnection | PostgresConnection,
    Field(discriminator="kind"),
]
