"""`odfpy.connect`: datasets of a workspace or of a server, from Python.

>>> import odfpy
>>> odf = odfpy.connect(".")
>>> odf.sql("SELECT cur, rate FROM odf_current('com.example.rates')").to_pandas()
>>> odf["com.example.rates"].at("2024-03-01").to_polars()
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odfpy.client.backend import Backend
from odfpy.client.dataset import Dataset
from odfpy.client.rows import Rows
from odfpy.data.rows.html_table import table
from odfpy.errors import DatasetNotFound, InvalidValue, UsageError, did_you_mean
from odfpy.http.url import without_user
from odfpy.query.dialects import dialect_named
from odfpy.query.moments import PointInTime
from odfpy.query.query import Query

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace

_URL: Final = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_HTTP: Final = ("http", "https")
_FLIGHT: Final = ("grpc", "grpc+tcp", "grpc+tls")
_DEFAULT_ENGINE: Final = "spark"
_ENGINE_OF_VIEWS: Final = "datafusion"
"""The engine for dataset objects: both engines return the same rows, and this one needs no JVM."""


def connect(place: Workspace | str | Path = ".", *, engine: str | None = None, token: str | None = None) -> Connection:
    """Connect to the datasets of a workspace or of a server.

    Args:
        place: a workspace, a folder inside one, or the URL of a server: `https://...` of `odf serve`, or
            `grpc://host:port` (`grpc+tls://`) of its Flight port.
        engine: `spark` or `datafusion`: the default SQL dialect and engine; `spark` by default.
        token: access token for a server; by default from `ODF_TOKEN`, then from `odf login`.

    Raises:
        WorkspaceNotFound: neither the folder nor any of its parents is a workspace.
        UsageError, InvalidValue: the place is invalid.
        EngineNotFound: the engine is unknown.
    """
    return Connection(_source(place, token), engine)


class Connection:
    """Datasets by name, and SQL over them; a context manager, whose use is optional.

    Attributes:
        engine: the default engine.
    """

    def __init__(self, source: Backend, engine: str | None = None) -> None:
        self._source = source
        self.engine = dialect_named(engine or _DEFAULT_ENGINE).name
        self._views = dialect_named(engine or _ENGINE_OF_VIEWS).name

    @property
    def place(self) -> str:
        """The location of the datasets."""
        return self._source.place

    def sql(
        self,
        text: str,
        parameters: Sequence[Any] = (),
        *,
        engine: str | None = None,
        as_at: PointInTime | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Rows:
        """Run a single SQL statement and wait for the result.

        Args:
            text: SQL; every dataset is a table under its name. `docs/query.md` describes all forms.
            parameters: values for `?`, in order.
            engine: `spark` or `datafusion`; that of the connection by default.
            as_at: a system time, or a block of the queried dataset; the query reads datasets as at this moment.
            limit: maximum number of rows.
            timeout: maximum duration in seconds.

        Raises:
            UsageError: an argument is invalid.
            InvalidQuery, UnknownTable: the query is invalid; the message has the position.
            QueryTimedOut: the query was stopped at the timeout.
            OdfError: the query failed, or the server cannot be reached.
        """
        found = self.prepare(text, parameters, engine=engine, as_at=as_at, limit=limit, timeout=timeout)
        _ = found.table
        return found

    def prepare(
        self,
        text: str,
        parameters: Sequence[Any] = (),
        *,
        engine: str | None = None,
        as_at: PointInTime | None = None,
        limit: int | None = None,
        timeout: float | None = None,
    ) -> Rows:
        """Prepare a query like `sql`, but run it when its rows are read. Use `batches` for results larger than memory.

        Args:
            text: the query.
            parameters: values for `?`, in order.
            engine: name of the engine, None for that of the connection.
            as_at: the moment as at which datasets are read, None for now.
            limit: maximum number of rows, None for all.
            timeout: maximum duration in seconds, None for no limit.
        """
        dialect = dialect_named(engine or self.engine)
        _check(parameters)
        query = Query(text, dialect.name, limit=limit, timeout=timeout, parameters=tuple(parameters))
        return Rows(self._source, query if as_at is None else self._source.as_at(query, as_at))

    def dataset(self, name: str) -> Dataset:
        """Return a dataset by its name or id.

        Raises:
            DatasetNotFound: the dataset does not exist; the message suggests a similar name.
            UsageError: the name is not a text.
        """
        if not isinstance(name, str):
            raise UsageError(f"The name or id of a dataset must be a string, not {name!r:.100}")
        return Dataset(self._source, self._source.dataset(name).name, self._views)

    def __getitem__(self, name: str) -> Dataset:
        return self.dataset(name)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a dataset with a name or id."""
        if isinstance(name, Dataset):
            return any(name == one for one in self)
        try:
            return isinstance(name, str) and bool(self.dataset(name))
        except (DatasetNotFound, InvalidValue):
            return False

    def __iter__(self) -> Iterator[Dataset]:
        """Iterate over the datasets, sorted by name."""
        return (Dataset(self._source, found.name, self._views) for found in self._source.datasets())

    def _ipython_key_completions_(self) -> list[str]:
        return [found.name for found in self._source.datasets()]

    def close(self) -> None:
        """Close the connections to a server."""
        self._source.close()

    def __enter__(self) -> Connection:  # noqa: PYI034
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<connection to {self.place}>"

    def _repr_html_(self) -> str:
        rows = [(one.name, one.kind, one.num_records, one.watermark) for one in self._source.datasets()]
        return table(["Dataset", "Kind", "Rows", "Watermark"], rows)


def _check(parameters: Any) -> None:
    """Check that parameters are a sequence."""
    if isinstance(parameters, (str, bytes, Mapping)) or not isinstance(parameters, Iterable):
        raise UsageError("Parameters are a list of values, one for each `?`", hint=f"Write [{parameters!r}].")


def _source(place: Workspace | str | Path, token: str | None) -> Backend:
    url = _URL.match(place) if isinstance(place, str) else None
    if url is None or not isinstance(place, str):
        return _local(place, token)
    scheme = url.group(1).lower()
    if scheme in _HTTP:
        from odfpy.client.rest import RestBackend

        return RestBackend.open(place, token)
    if scheme in _FLIGHT:
        from odfpy.client.flight import FlightBackend

        return FlightBackend.open(place, token)
    known = (*_HTTP, *_FLIGHT)
    raise UsageError(
        f"Unsupported URL scheme: {scheme}:// in {without_user(place)!r}",
        hint=did_you_mean(scheme, known, otherwise=f"A folder, or a URL with one of: {', '.join(known)}."),
    )


def _local(place: Workspace | str | Path, token: str | None) -> Backend:
    from odfpy.client.local import LocalBackend
    from odfpy.coordinator.workspace import Workspace

    if token is not None:
        raise UsageError("A workspace on this machine needs no token", hint="Tokens are for servers.")
    if not isinstance(place, (Workspace, str, Path)):
        raise UsageError(
            f"{place!r:.100} is not a workspace or server",
            hint="Pass a workspace, the path of a workspace, or the URL of a server.",
        )
    return LocalBackend(place if isinstance(place, Workspace) else Workspace.open(Path(place).expanduser()))
