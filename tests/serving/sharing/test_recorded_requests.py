"""Requests that real clients have sent, sent again.

`recorded/spark-1.3.8.ndjson` is what Spark 4.0.1 with `delta-sharing-client` 1.3.8 and `delta-sharing-spark` 4.0.1 sent
for reading, time travel, limits, conditions, change feeds and streams in both formats; each different request once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from serving.sharing.conftest import Shared

RECORDED = Path(__file__).parent / "recorded"
REQUESTS = [
    pytest.param(json.loads(line), id=f"{file.stem}-{number}")
    for file in sorted(RECORDED.glob("*.ndjson"))
    for number, line in enumerate(file.read_text().splitlines(), 1)
]


@pytest.mark.parametrize("asked", REQUESTS)
def test_it_is_answered_in_a_format_that_the_client_reads(shared: Shared, asked: dict[str, Any]) -> None:
    answer = shared.ask(
        asked["path"], body=asked.get("body"), method=asked["method"], delta_sharing_capabilities=asked["capabilities"]
    )
    assert answer.status == 200, answer.body
    assert int(answer.headers["delta-table-version"]) >= 0
    if asked["path"].endswith("version"):
        assert answer.body == b""
        return
    chosen = answer.headers["delta-sharing-capabilities"].partition("responseformat=")[2].partition(";")[0]
    assert chosen in asked["capabilities"].partition("responseformat=")[2].partition(";")[0].split(",")
    lines = [json.loads(line) for line in answer.body.splitlines()]
    assert [next(iter(line)) for line in lines[:2]] == ["protocol", "metaData"]
    assert ("deltaProtocol" in lines[0]["protocol"]) is (chosen == "delta")
    if (asked.get("body") or {}).get("includeRefreshToken"):
        assert lines[-1]["endStreamAction"]["refreshToken"]
