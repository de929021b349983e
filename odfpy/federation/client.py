"""The web as one database: SQL over the entities of a relay, answered by all relays that have rows of them.

with connect("grpc+tls://na.example.com:50051", "ann.pem", "ann.key", "ca.pem") as web:
    with web.sql("SELECT returnflag, sum(quantity) AS q FROM lineitem GROUP BY returnflag") as answer:
        answer.missing, answer.to_arrow()

The query is split here: its fragments travel, and what they bring is put together by DataFusion on this machine.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
from typing_extensions import Self

from odfpy.engine.control import Control
from odfpy.engine.datafusion.apart import IsolatedQuery, fork_server
from odfpy.engine.sql.files import FilesRequest, FileTable
from odfpy.errors import OdfError, UsageError
from odfpy.federation.errors import InvalidCertificate
from odfpy.federation.relay.bounds import RECEIVED, Received
from odfpy.federation.relay.errors import IncompleteAnswer
from odfpy.federation.relay.flight import LOCATION, Connections
from odfpy.federation.relay.question import Answer, Missing, Part, Question
from odfpy.federation.relay.requesters import Credentials
from odfpy.federation.sql.expressions import Constant
from odfpy.federation.sql.fragment import Fragment, Output
from odfpy.federation.sql.split import split

if TYPE_CHECKING:
    import pandas as pd

SECONDS: Final = 60.0
MEMORY: Final = 1 << 30
AT_ONCE: Final = 16
"""Parts that are read at the same time."""


def connect(relay: str, certificate: str | Path, key: str | Path, authorities: str | Path) -> Web:
    """A connection to a web, by one of its relays.

    Args:
        relay: where it is: `grpc+tls://HOST:PORT`.
        certificate: PEM file of one's certificate.
        key: PEM file of its key.
        authorities: PEM file of the authorities of the relays.

    Raises:
        InvalidCertificate: a file cannot be read, or they do not go together.
    """
    credentials = Credentials.load(Path(certificate), Path(key))
    try:
        trusted = Path(authorities).read_bytes()
    except OSError as error:
        raise InvalidCertificate(f"Cannot read {authorities}: {error.strerror}") from error
    return Web(relay, credentials, trusted)


@dataclass(frozen=True, slots=True)
class _Read:
    """The outcome of reading a part: its file, or why there is none."""

    path: Path | None
    missing: Missing | None


class WebAnswer:
    """The answer to a query. It holds files until it is closed.

    Attributes:
        schema: its columns.
        relays: names of those that it has rows of, or was asked for rows; each once for each of its sources.
        missing: relays whose rows are not in it.
    """

    def __init__(
        self, rows: IsolatedQuery, relays: tuple[str, ...], missing: tuple[Missing, ...], resources: ExitStack
    ) -> None:
        self.schema: pa.Schema = rows.schema
        self.relays = relays
        self.missing = missing
        self._rows = rows
        self._resources = resources

    @property
    def is_complete(self) -> bool:
        """Return whether all relays have answered."""
        return not self.missing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up its files."""
        self._resources.close()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield its batches, once."""
        return iter(self._rows)

    def to_arrow(self) -> pa.Table:
        """All rows that were not taken yet."""
        return pa.Table.from_batches(list(self), schema=self.schema)

    def to_pandas(self) -> pd.DataFrame:
        """The same for pandas."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame


class Web:
    """A web, as one relay of it shows it. For all threads."""

    def __init__(self, relay: str, credentials: Credentials, authorities: bytes) -> None:
        """
        Args:
            relay: where it is asked.
            credentials: of whoever asks.
            authorities: certificates in PEM form, of which those of the relays must be.

        Raises:
            UsageError: no relay can be there.
        """
        if not LOCATION.fullmatch(relay):
            raise UsageError(f"Not the place of a relay: {relay}", hint="Write grpc+tls://HOST:PORT.")
        self._relay = relay
        self._credentials = credentials
        self._connections = Connections(credentials, authorities)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    def entities(self, *, seconds: float = SECONDS) -> Mapping[str, pa.Schema]:
        """The entities of the relay, by name.

        Args:
            seconds: to wait.

        Raises:
            RelayUnavailable: it does not answer.
        """
        return self._connections.entities(self._relay, seconds)

    def sql(
        self,
        query: str,
        *,
        require_complete: bool = False,
        seconds: float = SECONDS,
        memory: int = MEMORY,
        received: int = RECEIVED,
    ) -> WebAnswer:
        """Ask a query.

        Args:
            query: SQL of DataFusion over the entities.
            require_complete: whether an answer without the rows of a relay is an error.
            seconds: for all of it.
            memory: bytes that putting the answer together may take.
            received: bytes of Arrow data that all relays together may send; one that sends more is missing.

        Raises:
            InvalidQuery: the query is none.
            RelayUnavailable: the relay does not answer.
            IncompleteAnswer: a relay is missing, and that is not wanted.
        """
        ends = time.monotonic() + seconds
        parts = split(query, self.entities(seconds=seconds))
        fragments = {name: _with_rows(fragment) for name, fragment in parts.fragments.items()}
        answers = self._asked(fragments, ends)
        counted = Received(received)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="odf-web-")))
            tables, missing = [], [one for answer in answers.values() for one in answer.missing]
            for name, fragment in fragments.items():
                read = self._read(folder / name, fragment, answers[name].parts, ends, counted)
                missing += [one.missing for one in read if one.missing is not None]
                paths = tuple(str(one.path) for one in read if one.path is not None)
                tables.append(FileTable(name, "parquet", paths, fragment.schema.serialize().to_pybytes()))
            if missing and require_complete:
                raise IncompleteAnswer(
                    f"Rows are missing: {'; '.join(f'{one.relay}: {one.why}' for one in dict.fromkeys(missing))}",
                    hint="Without --require-complete, the answer has the rows of all others.",
                )
            control = stack.enter_context(Control(max(0.1, ends - time.monotonic())))
            rows = IsolatedQuery(fork_server(memory), FilesRequest(parts.rest, tuple(tables)), control)
            stack.callback(rows.close)
            relays = tuple(part.relay for answer in answers.values() for part in answer.parts)
            return WebAnswer(rows, relays, tuple(dict.fromkeys(missing)), stack.pop_all())

    def _asked(self, fragments: Mapping[str, Fragment], ends: float) -> dict[str, Answer]:
        """The answers of the relay to all fragments, which are asked at the same time."""
        if not fragments:
            return {}
        query = secrets.token_hex(16)
        seconds = max(0.1, ends - time.monotonic())
        token = self._credentials.token(query, seconds=seconds)

        def ask(item: tuple[str, Fragment]) -> Answer:
            name, fragment = item
            return self._connections.ask(
                self._relay, Question(f"{query} {name}", fragment, seconds=seconds, requester=token)
            )

        with ThreadPoolExecutor(min(AT_ONCE, len(fragments))) as threads:
            return dict(zip(fragments, threads.map(ask, fragments.items()), strict=True))

    def _read(
        self, stem: Path, fragment: Fragment, parts: tuple[Part, ...], ends: float, received: Received
    ) -> list[_Read]:
        """Read all parts of a fragment, each into a file; one that breaks off is missing as a whole."""

        def read(number: int, part: Part) -> _Read:
            path = stem.with_name(f"{stem.name}-{number}.parquet")
            try:
                self._write(path, fragment.schema, part, ends, received)
            except OdfError as error:
                path.unlink(missing_ok=True)
                return _Read(None, Missing(part.relay, error.message))
            finally:
                received.end(path)
            return _Read(path, None)

        with ThreadPoolExecutor(AT_ONCE) as threads:
            return list(threads.map(read, range(len(parts)), in_turn(parts)))

    def _write(self, path: Path, schema: pa.Schema, part: Part, ends: float, received: Received) -> None:
        with self._connections.rows(part, ends - time.monotonic()) as reader:
            if reader.schema != schema:
                raise OdfError(f"The relay {part.relay} gives other columns than those that were asked for")
            with pq.ParquetWriter(path, schema, compression="lz4") as writer:
                for chunk in reader:
                    if chunk.data is not None:
                        writer.write_batch(received.taken(path, chunk.data))


def in_turn(parts: Sequence[Part]) -> list[Part]:
    """Parts by turns of their places, so that one place with many, which are slow, does not stand before all others.

    Args:
        parts: of an answer.
    """
    turns: dict[str, int] = {}
    numbered = []
    for part in parts:
        turns[part.location] = turns.get(part.location, -1) + 1
        numbered.append((turns[part.location], part))
    return [part for _, part in sorted(numbered, key=lambda one: one[0])]


def _with_rows(fragment: Fragment) -> Fragment:
    """The fragment with something to count, where only the number of its rows matters: files need a column."""
    if fragment.outputs:
        return fragment
    return replace(fragment, outputs=(Output("row", Constant(True, pa.bool_())),))
