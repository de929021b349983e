"""Replay of the calls of the Flight SQL JDBC driver, as recorded by `record.py`."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl
import pytest
from support.servers.flight import act, command

from odfpy.serving.flight.messages import message, unwrap, wrap

CALLS = Path(__file__).resolve().parents[2] / "golden" / "flight" / "jdbc.jsonl"
ROWS = {
    "CommandGetCatalogs": [("odf",)],
    "CommandGetDbSchemas": [("odf", "odf")],
    "CommandGetTableTypes": [("TABLE",)],
    "CommandGetPrimaryKeys": [],
    "CommandGetImportedKeys": [],
    "CommandGetExportedKeys": [],
    "CommandGetCrossReference": [],
    "$2": [(6,)],
    "$3": [(1,)],
    "$4": [(3, "c"), (4, "d"), (5, "e"), (6, "f")],
}
"""The expected rows: for a command, or for the first execution of a statement."""


class Replay:
    """A client that repeats the driver's calls."""

    def __init__(self, client: Any, password: str) -> None:
        """
        Args:
            client: a client of pyarrow.
            password: password for the login.
        """
        self.client = client
        self.token = password
        self.options: Any = None
        self.handles: dict[str, bytes] = {}
        self.infos: dict[int, Any] = {}

    def message(self, call: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return call["message"], {key: self.handles.get(str(value), value) for key, value in call["fields"].items()}

    def act(self, call: dict[str, Any]) -> bytes:
        name, fields = self.message(call)
        return act(self.client, call["call"], wrap(message(name, **fields)), self.options)

    def say(self, number: int, call: dict[str, Any]) -> list[tuple[Any, ...]] | None:
        """Make one call; return rows, if it returns any."""
        match call["call"]:
            case "Handshake":
                password = base64.b64encode(f"me:{self.token}".encode())
                header = (b"authorization", call["kind"].encode() + b" " + password)
                self.options = fl.FlightCallOptions(headers=[header])
                # The driver continues with the bearer token that it receives; so does this client.
                pair = self.client.authenticate_basic_token(b"me", self.token.encode())
                self.options = fl.FlightCallOptions(headers=[pair])
            case "GetFlightInfo":
                name, fields = self.message(call)
                self.infos[number] = self.client.get_flight_info(command(name, **fields), self.options)
                assert self.infos[number].schema.names == call["columns"]
            case "DoGet":
                parts = [
                    self.client.do_get(end.ticket, self.options) for end in self.infos[call["ticket_of"]].endpoints
                ]
                table = pa.concat_tables(part.read_all() for part in parts)
                return None if "value" in table.column_names else [tuple(row.values()) for row in table.to_pylist()]
            case "DoPut":
                name, fields = self.message(call)
                row = pa.record_batch([pa.array([value]) for value in call["values"]], names=["1", "2"])
                assert [str(kind) for kind in row.schema.types] == call["types"]
                writer, _ = self.client.do_put(command(name, **fields), row.schema, self.options)
                with writer:
                    writer.write_batch(row)
                    writer.done_writing()
            case "CreatePreparedStatement" if "handle" in call:
                made = unwrap(self.act(call))
                self.handles[call["handle"]] = made.prepared_statement_handle
                assert bool(made.parameter_schema) == call["parameters"]
                assert made.HasField("is_update")
                assert not made.is_update
            case "CreatePreparedStatement":
                with pytest.raises((pa.ArrowInvalid, KeyError)):
                    self.act(call)
            case _:
                self.act(call)
        return None

    def all(self) -> dict[str, list[tuple[Any, ...]]]:
        """Make all calls; return the responses, as in `ROWS`."""
        calls = [json.loads(line) for line in CALLS.read_text(encoding="utf-8").splitlines()]
        answered: dict[str, list[tuple[Any, ...]]] = {}
        for number, call in enumerate(calls):
            found = self.say(number, call)
            if found is not None:
                asked = calls[call["ticket_of"]]
                answered.setdefault(asked["fields"].get("prepared_statement_handle", asked["message"]), found)
        return answered
