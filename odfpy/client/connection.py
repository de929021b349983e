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
"""Rows of dataset objects are the same from both engines, and this one needs no JVM."""


def connect(place: Workspace | str | Path = ".", *, engine: str | None = None, token: str | None = None) -> Connection:
    """Datasets of a workspace, or of a server.

    Args:
        place: a workspace, a folder that is in one, or the URL of a server: `https://...` of `odf serve`, or
            `grpc://host:port` (`grpc+tls://`) of its Flight port.
        engine: `spark` or `datafusion`: which SQL is meant where nothing else is said; `spark` by default.
        token: for a server; by default that of `ODF_TOKEN`, then that of `odf login`.

    Raises:
        WorkspaceNotFound: neither the folder nor any above it has one.
        UsageError, InvalidValue: the place makes no sense.
        EngineNotFound: there is no such engine.
    """
    return Connection(_source(place, token), engine)


class Connection:
    """Datasets by name, and SQL over them. A context manager, though there is little to close.

    Attributes:
        engine: which SQL is meant where nothing else is said.
    """

    def __init__(self, source: Backend, engine: str | None = None) -> None:
        self._source = source
        self.engine = dialect_named(engine or _DEFAULT_ENGINE).name
        self._views = dialect_named(engine or _ENGINE_OF_VIEWS).name

    @property
    def place(self) -> str:
        """Return where the datasets are."""
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
        """Ask a question in SQL, of one statement, and wait for the answer.

        Args:
            text: SQL; every dataset is a table under its name. `docs/query.md` has all forms.
            parameters: values for `?`, in order.
            engine: `spark` or `datafusion`; that of the connection by default.
            as_at: as the question would have been answered at a system time, or at a block that its dataset has.
            limit: maximum number of rows.
            timeout: seconds until it is stopped.

        Raises:
            UsageError: an argument makes no sense.
            InvalidQuery, UnknownTable: the query is at fault; the message shows the place.
            QueryTimedOut: it was stopped.
            OdfError: it has failed, or the server cannot be reached.
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
        """The same, but the question is asked when its rows are; `batches` of it gives more than fits into memory.

        Args:
            text: the query.
            parameters: values of `?`, in order.
            engine: name of the engine, None for the default.
            as_at: the moment as at which datasets are read, None for now.
            limit: most rows, None for all.
            timeout: seconds, None for no limit.
        """
        dialect = dialect_named(engine or self.engine)
        _check(parameters)
        query = Query(text, dialect.name, limit=limit, timeout=timeout, parameters=tuple(parameters))
        return Rows(self._source, query if as_at is None else self._source.as_at(query, as_at))

    def dataset(self, name: str) -> Dataset:
        """A dataset by its name or id.

        Raises:
            DatasetNotFound: it does not exist; the message suggests a similar name.
            UsageError: it is not text.
        """
        if not isinstance(name, str):
            raise UsageError(f"The name or id of a dataset must be a string, not {name!r:.100}")
        return Dataset(self._source, self._source.dataset(name).name, self._views)

    def __getitem__(self, name: str) -> Dataset:
        return self.dataset(name)

    def __contains__(self, name: object) -> bool:
        """True if a dataset has that name or id, or is that one."""
        if isinstance(name, Dataset):
            return any(name == one for one in self)
        try:
            return isinstance(name, str) and bool(self.dataset(name))
        except (DatasetNotFound, InvalidValue):
            return False

    def __iter__(self) -> Iterator[Dataset]:
        """The datasets, by name."""
        return (Dataset(self._source, found.name, self._views) for found in self._source.datasets())

    def _ipython_key_completions_(self) -> list[str]:
        return [found.name for found in self._source.datasets()]

    def close(self) -> None:
        """Give connections to a server back."""
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
    """Make sure that parameters are several."""
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
