"""Tables of files that mean harm: an error of the protocol, soon, and no file from elsewhere."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from serving.sharing.conftest import Shared

from odfpy.sharing.files.vectors import inline_vector
from odfpy.sharing.model import SourceKind, TableSource
from odfpy.sharing.names import SharePath

ROWS = pa.table({"id": [1, 2, 3]})
SECONDS = 20.0
TELL_THE_END = {"delta_sharing_capabilities": "includeendstreamaction=true"}


def add_action(path: str, **more: Any) -> dict[str, Any]:
    return {"add": {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 0, "dataChange": True, **more}}


def log(folder: Path, *actions: Any) -> None:
    """Append a commit to the log of a Delta table."""
    write_deltalake(folder, ROWS)
    lines = [one if isinstance(one, str) else json.dumps(one) for one in actions]
    (folder / "_delta_log" / f"{1:020}.json").write_text("\n".join(lines))


def outside(folder: Path) -> None:
    log(folder, add_action("../secret.parquet"))


def absolute(folder: Path) -> None:
    log(folder, add_action(str(folder.parent / "secret.parquet")))


def encoded(folder: Path) -> None:
    log(folder, add_action("%2e%2e/secret.parquet"))


def by_url(folder: Path) -> None:
    log(folder, add_action(f"file://{folder.parent}/secret.parquet"))


def by_link(folder: Path) -> None:
    write_deltalake(folder, ROWS)
    (folder / "link.parquet").symlink_to(folder.parent / "secret.parquet")
    size = (folder.parent / "secret.parquet").stat().st_size
    (folder / "_delta_log" / f"{1:020}.json").write_text(json.dumps(add_action("link.parquet", size=size)))


def in_a_circle(folder: Path) -> None:
    write_deltalake(folder, ROWS)
    (folder / "a.parquet").symlink_to("b.parquet")
    (folder / "b.parquet").symlink_to("a.parquet")
    (folder / "_delta_log" / f"{1:020}.json").write_text(json.dumps(add_action("a.parquet")))


def deep(folder: Path) -> None:
    log(folder, '{"add":' * 20_000 + "1" + "}" * 20_000)


def huge_numbers(folder: Path) -> None:
    log(folder, add_action("x.parquet", size=2**63 - 1), '{"add":{"path":"y","size":' + "9" * 10_000 + "}}")


def lost(folder: Path) -> None:
    log(folder, *(add_action(f"{number}.parquet") for number in range(100_000)))


def no_footer(folder: Path) -> None:
    write_deltalake(folder, ROWS)
    for path in folder.glob("*.parquet"):
        path.write_bytes(path.read_bytes()[:-8] + b"\xff\xff\xff\x7fPAR1")


def own_checkpoint(folder: Path) -> None:
    write_deltalake(folder, ROWS)
    told = {"version": 0, "size": 2**62, "parts": 2**31 - 1}
    (folder / "_delta_log" / "_last_checkpoint").write_text(json.dumps(told))
    (folder / "_delta_log" / f"{0:020}.checkpoint.parquet").symlink_to(f"{0:020}.checkpoint.parquet")


def with_vector(folder: Path, vector: Any) -> None:
    """Let the table have a deletion vector."""
    write_deltalake(folder, ROWS)
    (name,) = (path.name for path in folder.glob("*.parquet"))
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    actions = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        add_action(name, size=(folder / name).stat().st_size, deletionVector=vector),
    ]
    (folder / "_delta_log" / f"{1:020}.json").write_text("\n".join(map(json.dumps, actions)))


def garbage_vector(folder: Path) -> None:
    with_vector(folder, {"storageType": "i", "pathOrInlineDv": "~~~~~", "sizeInBytes": 4, "cardinality": 1})


def endless_vector(folder: Path) -> None:
    size = 2**31 - 1
    with_vector(folder, {"storageType": "i", "pathOrInlineDv": "0" * 50, "sizeInBytes": size, "cardinality": 2**62})


def vector_of_others(folder: Path) -> None:
    (folder.parent / "vector.bin").write_bytes(b"\x01" + bytes(100))
    at = str(folder.parent / "vector.bin")
    with_vector(folder, {"storageType": "p", "pathOrInlineDv": at, "offset": 1, "sizeInBytes": 50, "cardinality": 1})


def vector_above(folder: Path) -> None:
    vector = {"storageType": "u", "pathOrInlineDv": "../" + "0" * 20, "offset": 1, "sizeInBytes": 50, "cardinality": 1}
    with_vector(folder, vector)


def vector_beyond_the_rows(folder: Path) -> None:
    live = np.ones(70_000_000, np.bool_)
    live[[1, 69_999_999]] = False
    with_vector(folder, inline_vector(live))


def vector_that_is_none(folder: Path) -> None:
    with_vector(folder, ["storageType"])


KINDS = [
    garbage_vector, endless_vector, vector_of_others, vector_above, vector_beyond_the_rows, vector_that_is_none, outside, absolute, encoded, by_url, by_link, in_a_circle, deep, huge_numbers, lost, no_footer, own_checkpoint,
]  # fmt: skip


@pytest.mark.parametrize("rows", [None, "id = 1"])
@pytest.mark.parametrize("make", KINDS)
def test_a_delta_table_that_means_harm(shared: Shared, tmp_path: Path, make: Any, rows: str | None) -> None:
    secret = pa.table({"id": [4711], "secret": ["of somebody else"]})
    pq.write_table(secret, tmp_path / "secret.parquet")
    folder = tmp_path / "table"
    make(folder)
    name, who = f"{make.__name__}-{'some' if rows else 'all'}", f"victim-{make.__name__}-{'some' if rows else 'all'}"
    shares = shared.sharing.shares
    if "hostile" not in [one.name for one in shares.shares()]:
        shares.add_share("hostile")
    shares.add_table(SharePath("hostile", "main", name), TableSource(SourceKind.DELTA, str(folder)))
    shared.recipient(who, path=SharePath("hostile", "main", name), **({"rows": rows} if rows else {}))
    began = time.monotonic()
    for call, body in (("version", None), ("metadata", None), ("query", {}), ("changes?startingVersion=0", None)):
        answer = shared.ask(f"shares/hostile/schemas/main/tables/{name}/{call}", who, body, **TELL_THE_END)
        assert answer.status < 500, answer.body
        if answer.status >= 400:
            assert set(answer.json) == {"errorCode", "message"}
            assert str(tmp_path) not in answer.json["message"]
            continue
        assert str(tmp_path).encode() not in answer.body
        for line in answer.body.splitlines()[2:] if call != "version" else ():
            for kind, action in json.loads(line).items():
                if kind == "endStreamAction":
                    continue  # without one, the connection would break
                assert b"4711" not in shared.ask(action["url"], None).body
                assert b"somebody" not in shared.ask(action["url"], None).body
    assert time.monotonic() - began < SECONDS
