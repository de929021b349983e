"""Program that runs the Flight SQL JDBC driver against a server, and records its calls.

    mvn dependency:get -Dartifact=org.apache.arrow:flight-sql-jdbc-driver:18.2.0 -Dtransitive=false
    PYTHONPATH=tests python tests/support/jdbc/record.py <the jar, in ~/.m2> tests/golden/flight/jdbc.jsonl

18.2.0 and 18.3.0 make the same calls. Needs a JDK: `java Tour.java` compiles. `tests/serving/test_flight_jdbc.py`
replays them without one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.flight as fl
from support.servers import flight
from support.servers.flight import OPEN, small_workspace

from odfpy.serving.flight import server as module
from odfpy.serving.flight import sessions
from odfpy.serving.flight.messages import name_of, unwrap

TOUR = Path(__file__).with_name("Tour.java")
CALLS: list[dict[str, Any]] = []
_HANDLES: dict[bytes, str] = {}
_TICKETS: dict[bytes, int] = {}


def said(data: bytes) -> dict[str, Any]:
    """Describe a message in words."""
    found = unwrap(data)
    return {"message": name_of(found), "fields": {field.name: _plain(value) for field, value in found.ListFields()}}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return _HANDLES[value]
    return value if isinstance(value, str | int | bool) else list(value)


class Recording(module.FlightSqlServer):
    """Serves, and records the calls."""

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        call = _begin("GetFlightInfo", **said(descriptor.command))
        info = super().get_flight_info(context, descriptor)
        call["columns"] = info.schema.names
        for endpoint in info.endpoints:
            _TICKETS[endpoint.ticket.ticket] = len(CALLS) - 1
        return info

    def get_schema(self, context: Any, descriptor: Any) -> Any:
        call = _begin("GetSchema", **said(descriptor.command))
        found = super().get_schema(context, descriptor)
        call["columns"] = found.schema.names
        return found

    def do_get(self, context: Any, ticket: Any) -> Any:
        call = _begin("DoGet", ticket_of=_TICKETS[ticket.ticket])
        stream = super().do_get(context, ticket)
        call["gives"] = True
        return stream

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        call = _begin("DoPut", **said(descriptor.command))
        table = reader.read_all()
        call["types"] = [str(kind) for kind in table.schema.types]
        call["values"] = [column[0].as_py() for column in table.columns]

        class Again:
            def read_all(self) -> Any:
                return table

        super().do_put(context, descriptor, Again(), writer)

    def do_action(self, context: Any, action: Any) -> Any:
        body = action.body.to_pybytes()
        words = said(body) if body and action.type in ("CreatePreparedStatement", "ClosePreparedStatement") else {}
        call = _begin(action.type, **words)
        (result,) = super().do_action(context, action)
        if action.type == "CreatePreparedStatement":
            made = unwrap(result)
            _HANDLES[made.prepared_statement_handle] = f"${len(_HANDLES) + 1}"
            call["handle"] = _HANDLES[made.prepared_statement_handle]
            call["parameters"] = bool(made.parameter_schema)
        return iter([result])


def _begin(name: str, **words: Any) -> dict[str, Any]:
    CALLS.append({"call": name, **words})
    return CALLS[-1]


def main(jar: str, file: str) -> None:
    """Run the tour, print what Java says, and write the calls."""
    start_call = sessions.MiddlewareFactory.start_call

    def seen(self: Any, info: Any, headers: Any) -> Any:
        if info.method == fl.FlightMethod.HANDSHAKE:
            _begin("Handshake", kind=headers["authorization"][0].partition(" ")[0])
        return start_call(self, info, headers)

    sessions.MiddlewareFactory.start_call = seen  # type: ignore[method-assign]
    flight.FlightSqlServer = Recording  # type: ignore[misc]
    with tempfile.TemporaryDirectory() as folder, flight.serving_flight(small_workspace(Path(folder) / "w")) as served:
        url = f"jdbc:arrow-flight-sql://127.0.0.1:{served.server.port}"
        java = ["java", "--add-opens=java.base/java.nio=ALL-UNNAMED", "-cp", jar, str(TOUR)]
        subprocess.run([*java, url, "me", served.token, OPEN], check=True)
    Path(file).write_text("".join(f"{json.dumps(call)}\n" for call in CALLS), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
