"""What a ledger passes over, on the screen and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.conftest import Odf

ROWS = b'{"event_time":"2024-01-01","id":1,"name":"A"}\n{"event_time":"2024-01-01","id":2,"name":"b"}\n'


def test_keys_that_are_known_with_other_values(odf: Odf, workspace: Path) -> None:
    told = odf("ingest", "com.example.rates", "--stdin", stdin=ROWS)
    line = "  warning: 1 key is known with different values, which a ledger leaves as they are (-v lists it, "
    assert line in told.err
    assert "id = 1" not in told.err
    assert "    id = 1\n" in odf("ingest", "com.example.rates", "--stdin", "-v", stdin=ROWS).err
    (tree,) = odf("ingest", "com.example.rates", "--stdin", "-o", "json", stdin=ROWS).json
    assert tree["outcome"] == "up-to-date"
    (warning,) = tree["warnings"]
    assert (warning["kind"], warning["count"], warning["examples"]) == ("known-otherwise", 1, ["id = 1"])
