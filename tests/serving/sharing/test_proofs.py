"""Signed statements of what a recipient reads: from the server, by an unmodified client, to `odf verify-result`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from serving.sharing.conftest import Shared
from support.processes.pandas_client import PandasClient
from support.servers.serving import Answer

from odfpy.chain.revocations import KeyRevocation, KnownRevocations, Reason
from odfpy.coordinator.storage.keys import UserKeys
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import KeyPair
from odfpy.errors import OdfError, SchemaError, UsageError
from odfpy.query.wire.commitments import Commitment, InvalidCommitment
from odfpy.query.wire.verification import (
    CommittedAnswer,
    EndedKey,
    MalformedAnswer,
    VerificationFailed,
    WrongSigner,
)
from odfpy.serving.sharing.row_hashes import RowHashes
from odfpy.sharing.model import SourceKind, TableSource
from odfpy.sharing.names import SharePath
from odfpy.sharing.statements import Statement

NOTHING = KnownRevocations()
RATES = "shares/fx/schemas/main/tables/rates"
LOG = "shares/fx/schemas/main/tables/log"


def proof(shared: Shared, table: str = RATES, who: str = "all", body: Any = None) -> Answer:
    answer = shared.ask(f"{table}/proof", who, body or {})
    assert answer.status == 200, answer.body
    return answer


def statement(answer: Answer | bytes) -> Statement:
    found = Statement.of(CommittedAnswer.load(answer if isinstance(answer, bytes) else answer.body))
    assert found is not None
    return found


def read(pandas: PandasClient, profile: Path, table: str, version: int, target: Path, *, delta: bool = False) -> Path:
    """Read a table with the client of PyPI, and write it as pandas does."""
    pandas.ask(
        "rows", profile=profile, table=table, target=target, options={"version": version, "use_delta_format": delta}
    )
    return target


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(columns: dict[str, Any], name: str = "rows.parquet") -> Path:
        pq.write_table(pa.table(columns), tmp_path / name)
        return tmp_path / name

    return written


@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("who", ["all", "eur", "columns"])
@pytest.mark.parametrize("table", ["rates", "log"])
def test_what_pandas_reads_is_what_was_signed(
    shared: Shared, pandas: PandasClient, tmp_path: Path, who: str, table: str, delta: bool
) -> None:
    profile = shared.profile(who, tmp_path)
    for version in (1, 2):
        signed = statement(proof(shared, f"shares/fx/schemas/main/tables/{table}", who, {"version": version}))
        rows = read(pandas, profile, table, version, tmp_path / "rows.parquet", delta=delta)
        assert not signed.check(None, revoked=NOTHING, arrived=rows)
        assert (signed.table.version, signed.table.recipient) == (version, who)
        other = statement(proof(shared, f"shares/fx/schemas/main/tables/{table}", who, {"version": 3 - version}))
        with pytest.raises(VerificationFailed, match="other rows"):
            other.check(None, revoked=NOTHING, arrived=rows)


@pytest.mark.parametrize("table", [RATES, LOG])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_dataset_gives_the_same_rows_again(shared: Shared, table: str, version: int) -> None:
    answer = proof(shared, table, body={"version": version})
    signed = statement(answer)
    assert signed.table.dataset is not None
    assert str(signed.table.dataset.block_hash) == answer.headers["x-odf-block-hash"]
    assert answer.headers["delta-table-version"] == str(version)
    assert signed.check(shared.workspace.queries.service, revoked=NOTHING, signer=UserKeys().own().actor)


def test_a_version_before_any_data_has_no_rows(shared: Shared, write: Callable[..., Path]) -> None:
    signed = statement(proof(shared, body={"version": 0}))
    assert signed.table.dataset is None
    assert signed.rows.num_rows == 0


def test_a_time_stands_for_a_version(shared: Shared) -> None:
    time = statement(proof(shared, body={"version": 2})).table.timestamp
    assert statement(proof(shared, body={"timestamp": time})).table.version == 2


@pytest.mark.parametrize("who", ["eur", "columns"])
def test_whoever_reads_a_part_learns_neither_block_nor_dataset(shared: Shared, who: str) -> None:
    answer = proof(shared, who=who)
    signed = statement(answer)
    assert signed.table.dataset is None
    assert "x-odf-block-hash" not in answer.headers
    dataset = shared.workspace.storage.get("rates")
    assert str(dataset.handle.id).encode() not in answer.body
    with pytest.raises(UsageError, match="no rows to compare"):
        signed.check(shared.workspace.queries.service, revoked=NOTHING)


def test_hidden_rows_do_not_change_it(shared: Shared) -> None:
    seen = {statement(proof(shared, who="eur", body={"version": n})).rows.rows_hash for n in (0, 1, 2)}
    assert len(seen) == 3
    assert shared.ask(f"{RATES}/proof", "eur", {"version": 3}).status == 400  # the third one changes USD only


def test_who_may_not_read_gets_none(shared: Shared) -> None:
    assert shared.ask(f"{RATES}/proof", None, {}).status == 401
    for who in ("nothing", "all"):
        table = RATES if who == "nothing" else "shares/hidden/schemas/main/tables/rates"
        assert shared.ask(f"{table}/proof", who, {}).status == 404


@pytest.mark.parametrize(
    "body", [{"limitHint": 1}, {"predicateHints": ["n = 1"]}, {"maxFiles": 1}, {"startingVersion": 1}, {"version": 99}]
)
def test_a_proof_is_of_a_whole_version(shared: Shared, body: Any) -> None:
    answer = shared.ask(f"{RATES}/proof", body=body)
    assert answer.status == 400
    assert answer.json["errorCode"] == "INVALID_PARAMETER_VALUE"


def test_a_table_that_is_no_dataset(shared: Shared, tmp_path: Path, write: Callable[..., Path]) -> None:
    folder = tmp_path / "shared"
    (folder / "land=DE").mkdir(parents=True)
    (folder / "land=FR").mkdir()
    pq.write_table(pa.table({"n": pa.array([1, 2], pa.uint8())}), folder / "land=DE" / "a.parquet")
    pq.write_table(pa.table({"n": pa.array([3], pa.uint8())}), folder / "land=FR" / "b.parquet")
    path = SharePath("fx", "main", "folder")
    shared.sharing.shares.add_table(path, TableSource(SourceKind.PARQUET, str(folder)))
    signed = statement(proof(shared, "shares/fx/schemas/main/tables/folder"))
    assert (signed.table.dataset, signed.table.shown) == (None, None)
    signed.check(None, revoked=NOTHING, arrived=write({"land": ["FR", "DE", "DE"], "n": [3, 2, 1]}))
    with pytest.raises(VerificationFailed):
        signed.check(None, revoked=NOTHING, arrived=write({"land": ["FR", "FR", "DE"], "n": [3, 2, 1]}))


# --- Documents that somebody has changed ------------------------------------------------------------------------------


def changed(answer: Answer, *path: str, to: Any) -> Statement:
    tree = place = json.loads(answer.body)
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return statement(json.dumps(tree).encode())


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("input", "version"), 1),
        (("input", "recipient"), "somebody"),
        (("input", "dataset", "blockHash"), "f1620" + "0" * 64),
        (("output", "numRows"), 7),
        (("output", "rowsHash"), "f1620" + "0" * 64),
        (("commitment", "outputHash"), "f1620" + "0" * 64),
    ],
)
def test_what_was_changed_is_found(shared: Shared, path: tuple[str, ...], to: Any) -> None:
    with pytest.raises(InvalidCommitment):
        changed(proof(shared), *path, to=to).check(shared.workspace.queries.service, revoked=NOTHING)


@pytest.mark.parametrize(
    ("path", "to"), [(("input", "version"), "one"), (("input", "more"), 1), (("output",), None), (("output",), {})]
)
def test_what_is_no_statement_is_refused(shared: Shared, path: tuple[str, ...], to: Any) -> None:
    with pytest.raises(MalformedAnswer):
        changed(proof(shared), *path, to=to)


def signed_by(pair: KeyPair, answer: Answer, **output: Any) -> Statement:
    """The same statement, or one with another output, signed by somebody else."""
    document = CommittedAnswer.load(answer.body)
    rows = {**document.output, **output}
    commitment = Commitment.to(document.request, rows)
    found = CommittedAnswer(document.request, (), commitment, commitment.signed_by(pair), rows)
    return statement(json.dumps(found.tree()).encode())


def test_somebody_else_cannot_sign(shared: Shared) -> None:
    other = KeyPair(b"\x01" * 32)
    forged = signed_by(other, proof(shared))
    with pytest.raises(WrongSigner):
        forged.check(shared.workspace.queries.service, revoked=NOTHING, signer=UserKeys().own().actor)
    assert forged.check(shared.workspace.queries.service, revoked=NOTHING, signer=other.actor)


@pytest.mark.parametrize(
    "schema", ["", "{}", '{"fields": [{"name": "a", "type": "decimal(99,1)", "nullable": true}]}', "[" * 100_000]
)
def test_a_hostile_schema_is_refused(shared: Shared, write: Callable[..., Path], schema: str) -> None:
    forged = signed_by(KeyPair(b"\x01" * 32), proof(shared), schemaString=schema)
    with pytest.raises(MalformedAnswer):
        forged.check(None, revoked=NOTHING, arrived=write({"a": [1]}))


def test_a_publisher_who_signs_other_rows_is_found(shared: Shared) -> None:
    lie = signed_by(KeyPair(b"\x01" * 32), proof(shared), rowsHash="f1620" + "0" * 64)
    with pytest.raises(VerificationFailed, match="other rows"):
        lie.check(shared.workspace.queries.service, revoked=NOTHING)


# --- Rows that cannot be compared -------------------------------------------------------------------------------------


def test_rows_that_are_not_all_there(shared: Shared, write: Callable[..., Path], tmp_path: Path) -> None:
    signed = statement(proof(shared, who="columns"))
    with pytest.raises(SchemaError, match="column 'n'"):
        signed.check(None, revoked=NOTHING, arrived=write({"cur": ["EUR"]}))
    with pytest.raises(SchemaError, match="column 'more'"):
        signed.check(None, revoked=NOTHING, arrived=write({"cur": ["EUR"], "n": [1], "more": [1]}))
    with pytest.raises(VerificationFailed, match="1 instead of 3"):
        signed.check(None, revoked=NOTHING, arrived=write({"cur": ["EUR"], "n": [3]}))
    with pytest.raises(OdfError, match="cannot be compared"):
        signed.check(None, revoked=NOTHING, arrived=write({"cur": ["EUR"], "n": ["three"]}))
    (tmp_path / "text.csv").write_text("cur,n\n")
    with pytest.raises(OdfError, match="cannot be compared"):
        signed.check(None, revoked=NOTHING, arrived=tmp_path / "text.csv")
    with pytest.raises(OdfError, match="No such file"):
        signed.check(None, revoked=NOTHING, arrived=tmp_path / "none.parquet")


def test_only_some_are_read_at_the_same_time(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = RowHashes()
    monkeypatch.setattr(hashes._room, "acquire", lambda **_: False)
    monkeypatch.setitem(shared.app.state.sharing.__dict__, "row_hashes", hashes)
    answer = shared.ask(f"{RATES}/proof", body={})
    assert answer.status == 429
    assert answer.headers["retry-after"]


def test_a_statement_signed_with_a_key_that_has_ended_says_nothing(shared: Shared, write: Callable[..., Path]) -> None:
    signed, key = statement(proof(shared)), UserKeys().own()
    said = KeyRevocation.made_by(key, key.actor, Reason.RETIRED, Timestamp.now())
    for service, rows in ((None, write({"cur": ["EUR"], "n": [1]})), (shared.workspace.queries.service, None)):
        with pytest.raises(EndedKey, match="retired"):
            signed.check(service, revoked=KnownRevocations(learnt=(said,)), arrived=rows)
