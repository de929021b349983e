"""A Trino cluster as a source, over its HTTP protocol."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

from odfpy.extras import needs_extra
from odfpy.federation.errors import SourceFailed
from odfpy.federation.model.connections import TrinoConnection
from odfpy.federation.sources.contract import BATCH_ROWS, ReadLimits, Source, SourceBatches, secret_of

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.engine.cancellation import CancellationToken
    from odfpy.engine.row_stream import RowStream

_REQUEST_SECONDS: Final = 30.0
_ATTEMPTS: Final = 3
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(\d+)\)")


class TrinoSource(Source):
    """A Trino cluster."""

    engine = "trino"

    def __init__(self, name: str, connection: TrinoConnection, environment: Mapping[str, str]) -> None:
        """
        Args:
            name: name for messages.
            connection: the declared connection.
            environment: environment variables with the password.

        Raises:
            SourceFailed: the password is not set.
        """
        self._password = secret_of(connection.password_env, environment)
        super().__init__(name, connection.dialect, [self._password or ""])
        self._connection = connection

    def _stream(self, sql: str, wanted: pa.Schema | None, limits: ReadLimits, control: CancellationToken) -> RowStream:
        del wanted, limits
        with needs_extra("federation", "Sources of Trino", SourceFailed):
            import requests
            from trino import auth, dbapi
        import pyarrow as pa

        settings = self._connection
        with ExitStack() as ends:
            control.check()
            session = ends.enter_context(requests.Session())
            session.verify = settings.ca_file or True
            session.trust_env = settings.ca_file is None  # REQUESTS_CA_BUNDLE would take precedence
            opened = dbapi.connect(  # type: ignore[no-untyped-call]
                http_session=session,
                host=settings.host,
                port=settings.port,
                user=settings.user,
                source="odf relay",
                catalog=settings.catalog,
                schema=settings.db_schema,
                http_scheme="https" if settings.secure else "http",
                auth=None if self._password is None else auth.BasicAuthentication(settings.user, self._password),
                request_timeout=_REQUEST_SECONDS,
                max_attempts=_ATTEMPTS,
            )
            ends.callback(opened.close)
            cursor = opened.cursor()

            def stop() -> None:
                with suppress(Exception):  # it may have finished, or not started
                    cursor.cancel()

            control.on_stop(stop)
            ends.callback(stop)
            ends.callback(control.forget, stop)
            cursor.execute(sql)
            names = [column.name for column in cursor.description]
            kinds = [_type_of(column.name, column.type_code) for column in cursor.description]

            def batches() -> Iterator[pa.RecordBatch]:
                while rows := cursor.fetchmany(BATCH_ROWS):
                    control.check()
                    columns = zip(zip(*rows, strict=True), kinds, strict=True)
                    yield pa.RecordBatch.from_arrays([_array(values, kind) for values, kind in columns], names)

            return SourceBatches(pa.schema(list(zip(names, kinds, strict=True))), batches(), ends.pop_all().close)


def _type_of(name: str, text: str) -> pa.DataType:
    import pyarrow as pa

    plain = {
        "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "integer": pa.int32(),
        "bigint": pa.int64(), "real": pa.float32(), "double": pa.float64(), "varbinary": pa.binary(),
        "date": pa.date32(), "json": pa.string(), "uuid": pa.string(), "varchar": pa.string(), "char": pa.string(),
        "time": pa.time64("us"), "timestamp": pa.timestamp("us"),
    }  # fmt: skip
    decimal = _DECIMAL.fullmatch(text)
    if decimal is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if text.startswith("timestamp") and text.endswith("with time zone"):
        return pa.timestamp("us", "UTC")
    base = re.sub(r"\(\d+\)$", "", text)
    if base not in plain:
        raise TypeError(f"column {name!r} has an unsupported type: {text}; cast it in source_sql")
    return plain[base]


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_string(kind):
        values = [None if value is None else str(value) for value in values]
    return pa.array(values, kind)
