"""A Flight SQL server as a source: anonymous, or with a password, a token, or a certificate (mTLS)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.extras import needs_extra
from odfpy.federation.errors import SourceFailed
from odfpy.federation.model.connections import FlightConnection
from odfpy.federation.sources.contract import ReadLimits, Source, SourceBatches, secret_of

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.engine.cancellation import CancellationToken
    from odfpy.engine.row_stream import RowStream

_CLIENT: Final = "adbc.flight.sql.client_option."
_HEADER: Final = "adbc.flight.sql.rpc.call_header."
_AUTHORIZATION: Final = "adbc.flight.sql.authorization_header"
_CONNECT: Final = "adbc.flight.sql.rpc.timeout_seconds.connect"
_QUEUE: Final = "adbc.rpc.result_queue_size"
_CONNECT_SECONDS: Final = "10"
_FEW: Final = 4
"""Batches that the driver prefetches; by default two hundred per endpoint."""


class FlightSource(Source):
    """A Flight SQL server."""

    engine = "sql"

    def __init__(self, name: str, connection: FlightConnection, environment: Mapping[str, str]) -> None:
        """
        Args:
            name: name for messages.
            connection: the declared connection.
            environment: environment variables with the password or token.

        Raises:
            SourceFailed: a variable is not set.
        """
        password = secret_of(connection.password_env, environment)
        token = secret_of(connection.token_env, environment)
        super().__init__(name, connection.dialect, [password or "", token or ""])
        self._connection = connection
        self._options = {f"{_HEADER}{key}": value for key, value in connection.headers.items()}
        self._options |= {f"{_CLIENT}with_max_msg_size": str(2**31 - 1)}
        if connection.user is not None and password is not None:
            self._options |= {"username": connection.user, "password": password}
        if token is not None:
            self._options[_AUTHORIZATION] = f"Bearer {token}"

    def _stream(self, sql: str, wanted: pa.Schema | None, limits: ReadLimits, control: CancellationToken) -> RowStream:
        del wanted, limits
        with needs_extra("flight", "Sources over Flight SQL", SourceFailed):
            from adbc_driver_flightsql import dbapi

        with ExitStack() as ends:
            control.check()
            options = {**self._options, **self._certificates(), _CONNECT: _CONNECT_SECONDS}
            opened = dbapi.connect(self._connection.url, db_kwargs=options, autocommit=True)
            ends.callback(opened.close)
            cursor = opened.cursor(adbc_stmt_kwargs={_QUEUE: _FEW})
            ends.callback(cursor.close)

            def stop() -> None:
                with suppress(Exception):  # it may have finished, or not started
                    cursor.adbc_cancel()

            control.on_stop(stop)
            ends.callback(stop)
            ends.callback(control.forget, stop)
            cursor.execute(sql)
            reader = cursor.fetch_record_batch()
            ends.callback(reader.close)
            ends.callback(stop)
            return SourceBatches(reader.schema, iter(reader), ends.pop_all().close)

    def _certificates(self) -> dict[str, str]:
        """Return the current certificates: files are replaced when certificates are rotated."""
        connection = self._connection
        files = {
            f"{_CLIENT}mtls_cert_chain": connection.certificate_file,
            f"{_CLIENT}mtls_private_key": connection.key_file,
            f"{_CLIENT}tls_root_certs": connection.ca_file,
        }
        return {option: Path(path).read_text(encoding="ascii") for option, path in files.items() if path is not None}
