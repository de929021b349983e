"""A PostgreSQL database as a source: a server-side cursor in a read-only transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from odfpy.extras import needs_extra
from odfpy.federation.errors import SourceFailed
from odfpy.federation.model.connections import PostgresConnection
from odfpy.federation.sources.contract import BATCH_ROWS, ReadLimits, Source, SourceBatches, secret_of

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.engine.cancellation import CancellationToken
    from odfpy.engine.row_stream import RowStream

_CONNECT_SECONDS: Final = 10
_NUMERIC: Final = 1700
_TEXTS: Final = (18, 19, 25, 1042, 1043, 2950)  # "char", name, text, bpchar, varchar, uuid
_JSON: Final = (114, 3802)
_DIGITS: Final = 38


class PostgresSource(Source):
    """A PostgreSQL database."""

    engine = "postgres"

    def __init__(self, name: str, connection: PostgresConnection, environment: Mapping[str, str]) -> None:
        """
        Args:
            name: name for messages.
            connection: the declared connection.
            environment: environment variables with the password.

        Raises:
            SourceFailed: the password is not set.
        """
        password = secret_of(connection.password_env, environment)
        super().__init__(name, connection.dialect, [password or ""])
        self._options: dict[str, Any] = {
            "host": connection.host,
            "port": connection.port,
            "dbname": connection.database,
            "user": connection.user,
            "password": password,
            "sslmode": connection.sslmode,
            "sslrootcert": connection.ca_file,
            "connect_timeout": _CONNECT_SECONDS,
            "application_name": "odf relay",
        }

    def _stream(self, sql: str, wanted: pa.Schema | None, limits: ReadLimits, control: CancellationToken) -> RowStream:
        del wanted
        with needs_extra("postgres", "Sources of PostgreSQL", SourceFailed):
            import psycopg
        import pyarrow as pa

        seconds = limits.seconds or 0
        options = f"-c default_transaction_read_only=on -c statement_timeout={int(seconds * 1000)}"
        with ExitStack() as ends:
            control.check()
            connection = psycopg.connect(**self._options, options=options)
            ends.callback(connection.close)
            connection.read_only = True
            control.on_stop(connection.cancel)
            ends.callback(control.forget, connection.cancel)
            cursor = connection.cursor(name="odf")
            ends.callback(cursor.close)
            cursor.execute(sql.encode())  # bytes, since it is generated; without parameters % has no special meaning
            assert cursor.description is not None  # noqa: S101  of a SELECT there is one
            kinds = [_type_of(column) for column in cursor.description]
            names = [column.name for column in cursor.description]
            texts = [column.type_code in _TEXTS or column.type_code in _JSON for column in cursor.description]
            bounded = [column.type_code != _NUMERIC or column.precision is not None for column in cursor.description]
            schema = pa.schema(list(zip(names, kinds, strict=True)))

            def batches() -> Iterator[pa.RecordBatch]:
                while rows := cursor.fetchmany(BATCH_ROWS):
                    control.check()
                    columns = [
                        pa.array(map(_text, values) if is_text else values, kind if is_bounded else None)
                        for values, kind, is_text, is_bounded in zip(
                            zip(*rows, strict=True), kinds, texts, bounded, strict=True
                        )
                    ]
                    yield pa.RecordBatch.from_arrays(columns, names)

            return SourceBatches(schema, batches(), ends.pop_all().close)


def _type_of(column: Any) -> pa.DataType:
    """Return the type of a column; an unconstrained numeric gets its type for each batch."""
    import pyarrow as pa

    if column.type_code == _NUMERIC:
        if column.precision is None or column.precision > _DIGITS:
            return pa.decimal128(_DIGITS, 10)
        return pa.decimal128(column.precision, column.scale)
    if column.type_code in _TEXTS or column.type_code in _JSON:
        return pa.string()
    kinds = {
        16: pa.bool_(), 21: pa.int16(), 23: pa.int32(), 20: pa.int64(), 26: pa.int64(), 700: pa.float32(),
        701: pa.float64(), 17: pa.binary(), 1082: pa.date32(), 1083: pa.time64("us"), 1114: pa.timestamp("us"),
        1184: pa.timestamp("us", "UTC"),
    }  # fmt: skip
    if column.type_code not in kinds:
        raise TypeError(f"column {column.name!r} has an unsupported type: {column.type_display}; cast it in source_sql")
    return kinds[column.type_code]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, dict | list | bool | int | float) else str(value)
