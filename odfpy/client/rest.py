"""A server (`odf serve`, or another node with the same API) as a backend, over REST."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlencode

from odfpy.client.backend import DatasetFacts, RowStream
from odfpy.client.remote import Remote
from odfpy.client.remote_errors import of_code
from odfpy.codec.tree import TreeError, from_tree
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.engine.cancellation import timed_out
from odfpy.errors import (
    DatasetNotFound,
    EngineError,
    InvalidQuery,
    InvalidValue,
    OdfError,
    TransferError,
    UsageError,
    did_you_mean,
)
from odfpy.http.client import HttpClient, HttpResponse
from odfpy.http.paging import PAGE_ITEMS, read_all_datasets
from odfpy.http.url import Origin, without_user
from odfpy.query.dialects import dialect_named, with_parameters
from odfpy.query.query import Query
from odfpy.query.wire.request import MAX_ROWS
from odfpy.repository.credentials import advice, authorization, check_token, server_of
from odfpy.repository.login import LoginRefused

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.coordinator.storage.results import LineageNode
    from odfpy.provenance.model import Provenance

_T = TypeVar("_T")
_DIALECTS: Final = {"spark": "SqlSpark", "datafusion": "SqlDataFusion"}
_MAX_BYTES: Final = 1 << 32
_UNEXPECTED: Final = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    InvalidValue,
    TreeError,
)
"""Errors while parsing a response of an unexpected form."""

_PATIENCE: Final = 600.0
"""Default timeout for a response, in seconds."""


class NotAnAnswer(TransferError, code="E750"):
    """The response of a server does not follow the protocol."""


@dataclass(frozen=True)
class RestBackend(Remote):
    """The backend for a server over REST.

    Attributes:
        base: URL of the server.
        client: HTTP client.
        header: authorization header.
    """

    base: str
    client: HttpClient
    header: Mapping[str, str] = field(repr=False)

    @classmethod
    def open(cls, url: str, token: str | None) -> RestBackend:
        """Create the backend for a URL; no request is sent yet.

        Raises:
            InvalidValue: the URL or the token is invalid.
        """
        base = url.rstrip("/")
        server_of(base)  # validates the URL
        known = authorization(base) if token is None else f"Bearer {check_token(token, 'token')}"

        def authorize(_: Origin) -> str | None:
            return known

        client = HttpClient(TransferError, timeout=_PATIENCE, authorize=authorize)
        return cls(base, client, {"Authorization": known} if known else {})

    @property
    def place(self) -> str:
        """The URL, without user and password."""
        return without_user(self.base)

    @contextmanager
    def ask(self, query: Query) -> Iterator[RowStream]:
        """Implement `Backend`: the result is received completely before it is returned."""
        dialect = dialect_named(query.dialect)
        asked = {
            "query": with_parameters(query.text, dialect, query.parameters),
            "queryDialect": _DIALECTS[dialect.name],
            "dataFormat": "JsonAoA",
            "include": ["Schema"],
            "schemaFormat": "OdfJson",
            "skip": query.skip,
            "limit": MAX_ROWS if query.limit is None else query.limit,
        }
        headers = {"Content-Type": "application/json", "Accept": "application/json", **self.header}
        url = f"{self.base}/query"
        body = json.dumps(asked).encode()
        if query.timeout is None:
            response = self.client.post(url, body, headers, max_size=_MAX_BYTES)
            yield _Gathered(self._understood(response, _table))
            return
        # On a timeout, the closed connection makes the server stop the query.
        with closing(HttpClient(TransferError, timeout=query.timeout)) as client:
            try:
                answer = _Gathered(self._understood(client.post(url, body, headers, max_size=_MAX_BYTES), _table))
            except TransferError as error:
                raise (timed_out(query.timeout) if isinstance(error.__cause__, TimeoutError) else error) from error
        yield answer

    def datasets(self) -> list[DatasetFacts]:
        """Implement `Backend`."""

        def read_page(offset: int) -> list[tuple[str, DatasetFacts]]:
            url = f"{self.base}/datasets?{urlencode({'limit': PAGE_ITEMS, 'offset': offset})}"
            response = self.client.get(url, max_size=_MAX_BYTES)
            page = self._understood(response, lambda tree: [_facts(item) for item in tree])
            return [(facts.name, facts) for facts in page]

        return list(read_all_datasets(self.place, read_page, NotAnAnswer).values())

    def dataset(self, name: str) -> DatasetFacts:
        """Implement `Backend`."""
        try:
            facts = self._of(name, "", _facts)
            wanted = urlencode({"include": "schema,vocab,info", "schemaFormat": "OdfJson"})
            return self._of(name, f"/metadata?{wanted}", lambda tree: _with_metadata(facts, tree))
        except (DatasetNotFound, LoginRefused) as error:  # servers do not reveal whether inaccessible datasets exist
            names = [one.name for one in self.datasets()]
            if name in names:
                raise
            hint = did_you_mean(name, names, otherwise=f"It has: {', '.join(names)}." if names else error.hint)
            raise DatasetNotFound(f"No dataset {name!r} at {self.place}", hint=hint) from error

    def lineage(self, name: str) -> LineageNode:
        """Implement `Backend`."""
        from odfpy.client.remote_lineage import lineage_at

        return lineage_at(self.base, self.client, self.dataset(name).name, self.datasets())

    def provenance(self, name: str, offset: int, column: str | None, depth: int | None, check: bool) -> Provenance:
        """Implement `Backend`."""
        del offset, column, depth, check
        raise UsageError(
            f"{self.place} does not provide provenance",
            hint=f"Pull {name} and what it is derived from (`odf pull {self.place}/{name} -r`), and ask the workspace.",
        )

    def close(self) -> None:
        """Implement `Backend`."""
        self.client.close()

    def _of(self, name: str, more: str, read: Callable[[Any], _T]) -> _T:
        return self._understood(self.client.get(f"{self.base}/{quote(name)}{more}", max_size=_MAX_BYTES), read)

    def _understood(self, response: HttpResponse, read: Callable[[Any], _T]) -> _T:
        """Parse a response."""
        with response:
            body = response.readall()
            if response.status == 200:
                try:
                    return read(json.loads(body))
                except _UNEXPECTED as error:
                    raise NotAnAnswer(
                        f"{response.shown}: the answer cannot be understood", hint="Is it a node such as `odf serve`?"
                    ) from error
            raise self._refusal(response, body)

    def _refusal(self, response: HttpResponse, body: bytes) -> OdfError:
        said, code = _message(body)
        if response.status in (401, 403):
            return LoginRefused(f"{self.place} does not allow that", hint=advice(self.base))
        if response.status == 404:
            return DatasetNotFound(said or f"{response.shown}: nothing is there")
        if said and response.status < 500:
            return of_code(code, InvalidQuery, said)
        what = said or f"the server answers with status {response.status}"
        return EngineError(f"{self.place}: {what}", hint="Its log may say more.")


@dataclass(frozen=True, slots=True)
class _Gathered:
    """A result that was received completely."""

    table: pa.Table

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return iter(self.table.to_batches())


def _table(tree: Any) -> pa.Table:
    """Return the rows of a response as a table."""
    import pyarrow as pa

    from odfpy.data.rows.from_plain import array_of
    from odfpy.data.schemas.arrow import to_arrow

    output = tree["output"]
    schema = to_arrow(from_tree(DataSchema, output["schema"]))
    rows = output["data"]
    try:
        columns = [array_of([row[at] for row in rows], kind) for at, kind in enumerate(schema.types)]
        return pa.Table.from_arrays(columns, schema=schema)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error


def _facts(tree: Any) -> DatasetFacts:
    watermark, description = tree["watermark"], tree.get("description")
    return DatasetFacts(
        name=str(tree["name"]),
        id=str(tree["id"]),
        kind=str(tree["kind"]),
        head=str(tree["head"]),
        num_records=int(tree["numRecords"]),
        watermark=None if watermark is None else str(watermark),
        description=None if description is None else str(description),
    )


def _with_metadata(facts: DatasetFacts, tree: Any) -> DatasetFacts:
    output = tree["output"]
    schema, vocabulary = output.get("schema"), output.get("vocab")
    if schema is not None:
        facts = replace(facts, schema=from_tree(DataSchema, schema))
    return facts if vocabulary is None else replace(facts, vocabulary=from_tree(DatasetVocabulary, vocabulary))


def _message(body: bytes) -> tuple[str, str]:
    """Return error message and code in a response, as far as available."""
    try:
        tree = json.loads(body)
        found, code = tree.get("message") or tree.get("detail") or "", tree.get("code")
    except (ValueError, AttributeError, RecursionError):
        return "", ""
    return found if isinstance(found, str) else "", str(code)
