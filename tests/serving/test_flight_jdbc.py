"""What the Flight SQL JDBC driver says to a server, said again: `support/jdbc/record.py` has written it down."""

from __future__ import annotations

from pathlib import Path

from support.jdbc.replay import ROWS, Replay
from support.servers.flight import OPEN, serving_flight, small_workspace


def test_the_jdbc_driver_gets_what_it_asks_for(tmp_path: Path):
    with serving_flight(small_workspace(tmp_path / "w")) as served:
        answered = Replay(served.client(), served.token).all()
    assert answered.keys() >= ROWS.keys()
    assert {name: answered[name] for name in ROWS} == ROWS
    assert (OPEN, "TABLE") in [row[2:4] for row in answered["CommandGetTables"]]
