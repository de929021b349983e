"""`odf sql --commit` and `odf verify-result`, and what is said of an answer that somebody has changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from odfpy.chain import revocations
from odfpy.chain.revocations import KeyRevocation, LastBlock, Reason
from odfpy.codec.tree import from_tree, to_tree
from odfpy.coordinator.storage.keys import UserKeys
from odfpy.coordinator.storage.revoked_keys import RevokedKeysFile
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import KeyPair
from odfpy.query.wire.commitments import Commitment

Odf = Callable[..., Any]
OTHER, STRANGER = KeyPair(b"\x01" * 32), KeyPair(b"\x02" * 32)
PAST = Timestamp.parse("2024-01-01T00:00:00Z")
BLOCK = Multihash.of(b"a block")
QUERY = 'select id, name from "com.example.rates" where id > 1 order by "offset"'


@pytest.fixture
def answer(workspace: Path, odf: Odf) -> Path:
    done = odf("sql", "--engine", "datafusion", "-c", QUERY, "--commit", "answer.json", "-o", "csv")
    assert done.code == 0, done.err
    assert done.out.splitlines() == ["id,name", "2,b", "3,c"]
    assert "2 rows, signed by did:key:" in done.err
    return workspace / "answer.json"


def change(file: Path, *path: str | int, to: Any) -> None:
    """Change a part of a document."""
    tree = place = json.loads(file.read_text())
    for key in path[:-1]:
        place = place[key]
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    file.write_text(json.dumps(tree))


def test_an_answer_can_be_checked(answer: Path, odf: Odf) -> None:
    done = odf("verify-result", "answer.json")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == "answer.json: the answer was signed by me, and the query gives the same answer"
    found = odf("verify-result", "answer.json", "--key", "me", "-o", "json").json
    assert found["ok"]
    assert found["query"] == QUERY
    assert [one["name"] for one in found["datasets"]] == ["com.example.rates"]


def test_what_is_written_later_does_not_matter(answer: Path, odf: Odf) -> None:
    line = b'{"event_time":"2024-02-01T00:00:00Z","id":9,"name":"z"}'
    assert odf("ingest", "com.example.rates", "--stdin", stdin=line).code == 0
    assert odf("verify-result", "answer.json").code == 0
    assert odf("rename", "com.example.rates", "com.example.others").code == 0
    done = odf("verify-result", "answer.json")
    assert done.code == 0, "the dataset is found by its id"
    assert "  com.example.rates (com.example.others here) as of block" in done.out


def test_without_its_rows_it_can_be_checked_all_the_same(answer: Path, odf: Odf) -> None:
    change(answer, "output", to=None)
    change(answer, "version", to=None)
    assert odf("verify-result", "answer.json").code == 0


# --- Keys that have ended ---


def said_of(key: KeyPair, *, by: KeyPair | None = None, **more: Any) -> KeyRevocation:
    return KeyRevocation.made_by(by or key, key.actor, Reason.RETIRED, PAST, **more)


def signed_by(answer: Path, key: KeyPair) -> None:
    """Sign an answer with another key."""
    tree = json.loads(answer.read_text())
    commitment = from_tree(Commitment, tree["commitment"])
    answer.write_text(json.dumps({**tree, "proof": to_tree(commitment.signed_by(key))}))


def refused(odf: Odf) -> str:
    done = odf("verify-result", "answer.json")
    assert done.code == 1
    assert "(E726)" in done.says
    return str(done.says)


@pytest.mark.parametrize("reason", ["compromised", "superseded", "retired"])
def test_an_answer_signed_with_a_revoked_key_is_refused(answer: Path, odf: Odf, reason: str) -> None:
    key = UserKeys().own().actor
    assert odf("key", "revoke", "--reason", reason, "--yes").code == 0
    says = refused(odf)
    assert f"signed with the key {key}, which was revoked at" in says
    assert f"({reason}), by itself. Nothing proves that it was signed before." in says
    assert odf("verify-result", "answer.json", "--key", str(key)).code == 1
    assert odf("sql", "--engine", "datafusion", "-c", QUERY, "--commit", "answer.json").code == 0
    assert odf("verify-result", "answer.json").code == 0, "there is a new key"


def test_a_key_that_has_expired_signs_no_answer(answer: Path, odf: Odf) -> None:
    key, file = UserKeys().own(), RevokedKeysFile()
    file.add(made=[said_of(key, expires=Timestamp.parse("2099-01-01T00:00:00Z"))])
    assert odf("verify-result", "answer.json").code == 0
    file.add(made=[said_of(key, expires=PAST)])
    assert f"which expired at {PAST}" in refused(odf)
    done = odf("sql", "--engine", "datafusion", "-c", QUERY, "--commit", "other.json")
    assert (done.code, "which expired at" in done.says, "(E652)" in done.says) == (1, True, True)
    assert not (answer.parent / "other.json").exists()


@pytest.mark.parametrize(
    ("statement", "where", "counts"),
    [
        (said_of(OTHER), "learnt", True),
        (said_of(OTHER, by=STRANGER), "made", True),
        (said_of(OTHER, by=STRANGER), "learnt", False),
        (said_of(STRANGER), "made", False),
        (said_of(OTHER, by=STRANGER, since=LastBlock(STRANGER.dataset_id, BLOCK, 1)), "made", False),
    ],
)
def test_what_the_user_says_of_a_key_and_what_it_says_itself_counts(
    answer: Path, odf: Odf, statement: KeyRevocation, where: str, counts: bool
) -> None:
    signed_by(answer, OTHER)
    RevokedKeysFile().add(**{where: [statement]})
    assert odf("verify-result", "answer.json").code == int(counts)


def test_what_lies_beside_a_dataset_of_the_answer_counts(answer: Path, workspace: Path, odf: Odf) -> None:
    dataset = Workspace.open(workspace).storage.get("com.example.rates")
    owner = dataset.workspace_folder.keys.get(dataset.handle.id)
    signed_by(answer, OTHER)
    assert dataset.layout.side is not None
    revocations.add(dataset.layout.side, [said_of(OTHER, by=STRANGER)])
    assert odf("verify-result", "answer.json").code == 0, "a stranger revokes nobody's key"
    revocations.add(dataset.layout.side, [said_of(OTHER, by=owner)])
    assert "by the owner" in refused(odf)


# --- What was changed ---

HASH = "f1620" + "0" * 64


@pytest.mark.parametrize(
    ("path", "to", "code", "says"),
    [
        (("input", "query"), "select 1", "E720", "inputHash"),
        (("input", "limit"), 1, "E720", "inputHash"),
        (("input", "datasets", 0, "blockHash"), HASH, "E720", "inputHash"),
        (("input", "datasets", 0, "alias"), "else", "E720", "inputHash"),
        (("subQueries",), [{}], "E720", "subQueriesHash"),
        (("output", "data", 0, "name"), "B", "E720", "outputHash"),
        (("output", "schema", "fields", 0, "name"), "B", "E720", "outputHash"),
        (("commitment", "outputHash"), HASH, "E720", "Verification equation"),
        (("commitment", "inputHash"), HASH, "E720", "inputHash"),
        (("proof", "verificationMethod"), str(OTHER.actor), "E720", "Verification equation"),
        (("proof", "proofValue"), "u" + "A" * 86, "E720", "Verification equation"),
        (("proof", "proofValue"), "?", "E720", "Verification equation"),
        (("proof", "type"), "Ed25519Signature2018", "E720", "Verification equation"),
        (("proof",), None, "E721", "it has no proof"),
        (("commitment", "inputHash"), "f16", "E721", "commitment.inputHash"),
        (("subQueries",), {}, "E721", "subQueries: expected a list"),
        (("more",), 1, "E721", "no part 'more'"),
        (("version",), 2, "E204", "version 2"),
        (("version",), 1.0, "E721", "version: expected a whole number"),
        (("version",), "1", "E721", "version: expected a whole number"),
        (("output", "data", 0, "id"), float("nan"), "E721", "not JSON"),
    ],
)
def test_each_part_is_bound(answer: Path, odf: Odf, path: tuple[str | int, ...], to: Any, code: str, says: str) -> None:
    change(answer, *path, to=to)
    done = odf("verify-result", "answer.json")
    assert done.code == 1
    assert done.says.startswith("error: answer.json: ")
    assert says in done.says
    assert f"({code})" in done.says


def test_other_ways_to_write_the_same_are_not_what_was_signed(answer: Path, odf: Odf) -> None:
    written = answer.read_text()
    tree = json.loads(written)
    change(answer, "commitment", "outputHash", to=tree["commitment"]["outputHash"].upper())
    assert "not the form in which it was signed" in odf("verify-result", "answer.json").says
    answer.write_text(written.replace('"dataFormat"', '"dataFormat": "JsonSoA", "dataFormat"'))
    assert "'dataFormat' twice in one place" in odf("verify-result", "answer.json").says


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON"),
        (b"hello", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "not an object"),
        (b"[" * 100_000, "JSON"),
    ],
)
def test_files_that_are_none(answer: Path, odf: Odf, content: bytes, says: str) -> None:
    answer.write_bytes(content)
    done = odf("verify-result", "answer.json")
    assert done.code == 1
    assert says in done.says
    assert "(E721)" in done.says


def test_a_file_that_ends_too_early(answer: Path, odf: Odf) -> None:
    content = answer.read_bytes()
    for size in (1, len(content) // 2, len(content) - 3):
        answer.write_bytes(content[:size])
        done = odf("verify-result", "answer.json")
        assert done.code == 1
        assert "is truncated" in done.says
    assert "No such file" in odf("verify-result", "nothing.json").says


def test_the_signer_can_be_demanded(answer: Path, odf: Odf) -> None:
    done = odf("verify-result", "answer.json", "--key", str(OTHER.actor))
    assert done.code == 1
    assert "(E723)" in done.says
    assert "No key is trusted" in odf("verify-result", "answer.json", "--key", "alice").says


def test_what_is_not_there_any_more(answer: Path, odf: Odf, workspace: Path) -> None:
    odf("reset", "com.example.rates", "0", "--yes")
    odf("gc", "--yes")
    done = odf("verify-result", "answer.json")
    assert done.code == 1
    assert "does not contain a block" in done.says
    assert "com.example.rates has no block" in done.says
    odf("delete", "com.example.upper", "com.example.rates", "--yes")
    done = odf("verify-result", "answer.json")
    assert "cannot be found" in done.says
    assert "com.example.rates (did:odf:" in done.says


def signed(answer: Path, **changes: Any) -> None:
    """The same answer with something else in it, signed anew by somebody."""
    from odfpy.codec.tree import to_tree
    from odfpy.query.wire.commitments import Commitment

    tree = {**json.loads(answer.read_text()), **changes}
    commitment = Commitment.to(tree["input"], tree["output"])
    tree |= {"commitment": to_tree(commitment), "proof": to_tree(commitment.signed_by(OTHER))}
    answer.write_text(json.dumps(tree))


def test_a_false_answer_is_found_out(answer: Path, odf: Odf) -> None:
    output = json.loads(answer.read_text())["output"]
    output["data"][0]["name"] = "B"
    signed(answer, output=output)
    done = odf("verify-result", "answer.json")
    assert done.code == 1
    assert "output hash different from expected" in done.says


def test_an_answer_that_names_no_blocks_binds_nobody(answer: Path, odf: Odf) -> None:
    request = json.loads(answer.read_text())["input"]
    del request["datasets"]
    signed(answer, input=request)
    assert "does not name the block of com.example.rates" in odf("verify-result", "answer.json").says


def test_queries_without_one_answer_get_no_proof(workspace: Path, odf: Odf) -> None:
    for query in ("select now()", 'select name from "com.example.rates" where id > 1'):
        done = odf("sql", "--engine", "datafusion", "-c", query, "--commit", "answer.json")
        assert done.code == 1
        assert "No proof can be given of this answer" in done.says
        assert not (workspace / "answer.json").exists()
    assert odf("sql", "-c", "select 1; select 2", "--commit", "answer.json").code == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--commit", ""), "--commit must be a file"),
        (("--commit", "-"), "--commit must be a file"),
        (("--commit", "."), "--commit must be a file"),
        (("--commit", "nowhere/a.json"), "--commit must be a file in an existing folder"),
        (("--commit", "a.json", "--plot"), "cannot be combined with --script, --plot or --png"),
        (("--timeout", "soon"), "--timeout must be a time, not 'soon'"),
        (("--timeout", "0"), "--timeout must be a time, not '0'"),
    ],
)
def test_requests_that_make_no_sense(workspace: Path, odf: Odf, arguments: tuple[str, ...], says: str) -> None:
    done = odf("sql", "-c", "select 1 as a", *arguments)
    assert done.code == 2
    assert says in done.says
    assert not (workspace / "nowhere").exists()


@pytest.mark.parametrize("more", [(), ("--commit", "a.json")])
def test_a_query_may_take_so_long_and_no_longer(workspace: Path, odf: Odf, more: tuple[str, ...]) -> None:
    endless = "SELECT count(*) FROM range(100000000) a JOIN range(100000) b ON a.value % 7 < b.value % 5"
    done = odf("sql", "--engine", "datafusion", "--timeout", "0.1", "-c", endless, *more)
    assert done.code == 1
    assert "took longer than 0.1 s" in done.says
    assert not (workspace / "a.json").exists()
    assert odf("sql", "--engine", "datafusion", "--timeout", "1h", "-c", "select 1 as a", *more).code == 0


def test_answers_of_the_engine_named_spark_without_it(workspace: Path, odf: Odf) -> None:
    done = odf(
        "sql", "-c", "select id, name from `com.example.rates` order by `offset` desc limit 2", "--commit", "a.json"
    )
    assert done.code == 0, done.err
    assert json.loads((workspace / "a.json").read_text())["input"]["queryDialect"] == "SqlSpark"
    assert odf("verify-result", "a.json").code == 0
