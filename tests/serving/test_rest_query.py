"""REST: who sees what, pages that stay as they are, what is sent again and how, limits, and answers that are checked."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pyarrow as pa
import pytest
from support.chains.workspaces import feed, root, workspace_with
from support.servers.serving import PATIENCE, Answer, ask, serving, wait_until

from odfpy.chain.revocations import KeyRevocation, Reason
from odfpy.codec.tree import to_tree
from odfpy.coordinator.storage.revoked_keys import RevokedKeysFile
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import KeyPair
from odfpy.query.wire.commitments import Commitment
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.server import DatasetServer

OTHER_KEY = KeyPair(b"\x02" * 32)
PUBLIC, PRIVATE = "com.example.rates", "com.example.secret"
ROWS = f'select id, name from "{PUBLIC}" where id >= 0 order by "offset"'


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    manifests = [root(name, "{kind: Append}") for name in (PUBLIC, PRIVATE, "growing", "empty")]
    found = workspace_with(tmp_path_factory.mktemp("workspace"), *manifests)
    feed(found, PUBLIC, *(f"{number} name {number}" for number in range(40)))
    feed(found, PRIVATE, "1 hidden")
    feed(found, "growing", *(f"{number} a" for number in range(5)))
    for name in (PUBLIC, "growing", "empty"):
        set_visibility(found.storage.get(name).folder, Visibility.PUBLIC)
    return found


@pytest.fixture(scope="module", autouse=True)
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The node's key is made when it is first needed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    workspace.config.set("proofs.key", ".odf/node/key")
    with serving(workspace, max_rows=50, max_answer=100_000, max_queries_each=1, max_queries=2) as server:
        yield server


@pytest.fixture(scope="module")
def reader(workspace: Workspace) -> str:
    return Tokens(workspace.odf).new("reader", Scope.READ)


def post(server: DatasetServer, body: Any, path: str = "query", token: str | None = None, **headers: str) -> Answer:
    data = json.dumps(body).encode()
    return ask(
        f"{server.url}/{path}", method="POST", body=data, token=token, content_type="application/json", **headers
    )


def query(server: DatasetServer, text: str, token: str | None = None, **more: Any) -> Answer:
    return post(server, {"query": text, **more}, token=token)


def link(answer: Answer) -> str:
    target, _, relation = answer.headers["link"].partition(";")
    assert relation.strip() == 'rel="next"'
    return target.strip("<>")


# --- Who sees what ----------------------------------------------------------------------------------------------------


def test_private_datasets_are_not_there_for_others(server: DatasetServer, workspace: Workspace, reader: str) -> None:
    text = f'select id from "{PRIVATE}"'
    answer = query(server, text)
    assert answer.status == 400
    assert answer.json["message"].startswith(query(server, text.replace("secret", "others")).json["message"][:20])
    assert str(workspace.root) not in answer.json["message"]
    assert query(server, text, reader).json["output"]["data"] == [{"id": 1}]
    for what in (f"{PRIVATE}/tail", f"{PRIVATE}/metadata", "missing/tail"):
        assert ask(f"{server.url}/{what}").status == 401
        assert ask(f"{server.url}/{what}", token=reader).status == (404 if what == "missing/tail" else 200)
    state = {"id": str(workspace.storage.get(PRIVATE).handle.id), "alias": "x"}
    refused = query(server, "select id from x", datasets=[state])
    assert refused.status == 404
    assert "message" in refused.json
    assert query(server, "select id from x", reader, datasets=[state]).status == 200
    assert query(server, "select 1 as one", "odf_nothing").status == 401


def test_what_there_is_to_ask_of(server: DatasetServer, reader: str) -> None:
    """A hint of what the caller can do: he has no `odf list`, and may have no token."""
    unknown = 'select * from "weather"'
    for token, says in (
        (None, "Without an access token, only public"),
        (reader, "Only public datasets and those"),
    ):
        message = query(server, unknown, token).json["message"]
        assert says in message
        assert "odf list" not in message
        state = {"id": f"did:odf:fed01{'0' * 64}", "alias": "weather"}
        assert says in query(server, unknown, token, datasets=[state]).json["message"]


def test_blocks_of_others_and_of_nobody(server: DatasetServer, workspace: Workspace) -> None:
    dataset = workspace.storage.get(PUBLIC)
    for block in (f"f1620{'0' * 64}", str(workspace.storage.get(PRIVATE).state.head)):
        state = {"id": str(dataset.handle.id), "alias": PUBLIC, "blockHash": block}
        answer = query(server, ROWS, datasets=[state])
        assert answer.status == 404
        assert PRIVATE not in answer.json["message"]
        assert ask(f"{server.url}/{PUBLIC}/tail?asOfBlockHash={block}").status == 404


# --- Pages ------------------------------------------------------------------------------------------------------------


def test_pages_are_of_one_state(server: DatasetServer, workspace: Workspace) -> None:
    asked = urlencode({"query": 'select id from "growing" where id >= 0 order by id desc', "limit": 2})
    first = ask(f"{server.url}/query?{asked}")
    feed(workspace, "growing", "100 b", "101 b")
    second = ask(f"{server.url}/{link(first)}")
    third = ask(f"{server.url}/{link(second)}")
    assert [row["id"] for page in (first, second, third) for row in page.json["output"]["data"]] == [4, 3, 2, 1, 0]
    assert "link" not in third.headers
    assert ask(f"{server.url}/query?{asked}").json["output"]["data"][0] == {"id": 101}


def stage(workspace: Workspace, name: str, branch: str, row: str) -> None:
    """Ingest a row on a branch."""
    file = workspace.root / "staged.ndjson"
    file.write_text(f'{{"event_time":"2024-01-02T00:00:00Z","id":{row},"name":"staged"}}\n')
    (result,) = workspace.ingest(name, [file], branch=branch)
    assert result.error is None


def test_pages_of_several_moments_of_one_dataset(server: DatasetServer, workspace: Workspace) -> None:
    """Names that say a block stand for that block on every page, also when they are moved."""
    first = workspace.storage.get("growing").state.sequence_number
    feed(workspace, "growing", "300 c")
    stage(workspace, "growing", "moving", "300")
    text = f"""select count(*) as n from "growing@{first}" union all select count(*) from "growing"
        union all select count(*) from "growing@branch.moving" order by n"""
    asked = f"{server.url}/query?{urlencode({'query': text, 'limit': 1})}"
    one = ask(asked)
    stage(workspace, "growing", "moving", "301")
    two = ask(f"{server.url}/{link(one)}")
    three = ask(f"{server.url}/{link(two)}")
    least, *others = [page.json["output"]["data"][0]["n"] for page in (one, two, three)]
    assert others == [least + 1, least + 2]
    assert ask(asked, if_none_match=one.headers["etag"]).status == 200, "the branch has moved"


def test_pages_by_what_an_answer_says_of_itself(server: DatasetServer, workspace: Workspace) -> None:
    body = {"query": 'select id from "growing" order by "offset"', "include": ["input"], "limit": 3}
    first = post(server, body).json
    feed(workspace, "growing", "200 b")
    request = {**first["input"], "skip": 3, "limit": 50}
    assert len(post(server, request).json["output"]["data"]) == workspace.storage.get("growing").state.num_records - 4


def test_ends_page_by_page(server: DatasetServer, workspace: Workspace) -> None:
    first = ask(f"{server.url}/growing/tail?limit=3&dataFormat=JsonSoA")
    count = workspace.storage.get("growing").state.num_records
    feed(workspace, "growing", "300 b")
    offsets, page = first.json["data"]["offset"], first
    while "link" in page.headers:
        page = ask(f"{server.url}/growing/{link(page)}")
        offsets = page.json["data"]["offset"] + offsets
    assert offsets == list(range(count))
    assert ask(f"{server.url}/empty/tail").json == {"data": [], "dataFormat": "JsonAoS"}


# --- How it is sent ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", [f"query?query={quote(ROWS)}", "growing/tail", "growing/metadata?include=refs,schema,seed"]
)
def test_what_the_client_has_is_not_sent_again(server: DatasetServer, workspace: Workspace, path: str) -> None:
    first = ask(f"{server.url}/{path}")
    assert first.status == 200, first.body
    again = ask(f"{server.url}/{path}", if_none_match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    if path.startswith("growing"):
        feed(workspace, "growing", "400 b")
        changed = ask(f"{server.url}/{path}", if_none_match=first.headers["etag"])
        assert changed.status == 200
        assert changed.headers["etag"] != first.headers["etag"]


@pytest.mark.parametrize("text", ["select now() as t", f"select id from odf_as_at('{PUBLIC}', '2')"])
def test_answers_that_hold_for_now_have_no_etag(server: DatasetServer, text: str) -> None:
    """The second one names a block in a way that may be that of another one tomorrow."""
    answer = ask(f"{server.url}/query?query={quote(text)}", if_none_match="*")
    assert answer.status == 200
    assert "etag" not in answer.headers


def test_packed_answers(server: DatasetServer) -> None:
    url = f"{server.url}/query?query={quote(ROWS)}"
    plain = ask(url)
    assert "content-encoding" not in plain.headers
    for accepted, wanted in {
        "gzip": "gzip",
        "zstd": "zstd",
        "gzip;q=0.5, zstd": "zstd",
        "zstd;q=0, gzip": "gzip",
    }.items():
        packed = ask(url, accept_encoding=accepted)
        assert packed.headers["content-encoding"] == wanted
        assert packed.headers["vary"].startswith("Accept-Encoding")
        size = len(plain.body)
        body = (
            gzip.decompress(packed.body) if wanted == "gzip" else pa.decompress(packed.body, size, "zstd", asbytes=True)
        )
        assert body == plain.body
    assert "content-encoding" not in ask(url, accept_encoding="br, gzip;q=0").headers


def test_large_answers_come_from_the_disk(workspace: Workspace) -> None:
    text = f'select a.id, repeat(b.name, 60) as long from "{PUBLIC}" a cross join "{PUBLIC}" b order by a.id, b.name'
    with serving(workspace) as server:
        answer = query(server, text, limit=3000)
        assert int(answer.headers["content-length"]) == len(answer.body) > 300_000
        rows = answer.json["output"]["data"]
        assert len(rows) == workspace.storage.get(PUBLIC).state.num_records ** 2
        packed = post(server, {"query": text, "limit": 3000}, accept_encoding="gzip")
        assert gzip.decompress(packed.body) == answer.body
        host, port = server.url.removeprefix("http://").split(":")
        body = json.dumps({"query": text, "limit": 3000}).encode()
        head = (
            f"POST /query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection((host, int(port)), PATIENCE) as raw:
            raw.sendall(head.encode() + body)
            assert raw.recv(1000).startswith(b"HTTP/1.1 200")  # and goes away
        assert query(server, "select 1 as one").status == 200


# --- Limits -----------------------------------------------------------------------------------------------------------

ENDLESS = "select count(*) from generate_series(1, 100000000) a join generate_series(1, 100000) b on a.value % 7 < b.value % 5"
"""Takes hours, and little memory."""


def test_limits_of_rows_and_bytes(server: DatasetServer) -> None:
    many = f'select a.id from "{PUBLIC}" a cross join "{PUBLIC}" b'
    assert len(query(server, many, limit=50).json["output"]["data"]) == 50
    answer = query(server, many)
    assert answer.status == 400
    assert "more than 50 rows" in answer.json["message"]
    assert query(server, f"select repeat('x', 200000) as x from \"{PUBLIC}\"").status == 400


def test_a_client_that_goes_away_stops_its_query(server: DatasetServer, reader: str) -> None:
    """Meanwhile it may ask nothing else, others may as long as there is room, and the server answers everybody."""
    gate = server.app.state.gate
    host, port = server.url.removeprefix("http://").split(":")
    body = json.dumps({"query": ENDLESS}).encode()
    head = f"POST /query HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((host, int(port)), PATIENCE) as raw:
        raw.sendall(head.encode() + body)
        wait_until(lambda: gate._here.total() == 1)
        refused = query(server, "select 1 as one")
        assert refused.status == 429
        assert refused.headers["retry-after"] == "1"
        assert "message" in refused.json
        assert query(server, "select 1 as one", reader).status == 200
        assert ask(f"{server.url}/health").status == 200
    wait_until(lambda: gate._here.total() == 0)
    assert query(server, "select 1 as one").status == 200


def test_a_query_that_takes_too_long_is_stopped(workspace: Workspace) -> None:
    with serving(workspace, query_timeout=0.3, max_queries=1) as server:
        answer = query(server, ENDLESS)
        assert answer.status == 503
        assert "longer than" in answer.json["message"]
        assert server.app.state.gate._here.total() == 0


# --- Wrong questions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"query": "selec 1"}, 400, "selec"),
        ({"query": ""}, 400, "no query"),
        ({"query": "drop table x"}, 400, "Only queries"),
        ({"query": "select * from '/etc/passwd'"}, 400, ""),
        ({"query": f'select nme from "{PUBLIC}"'}, 400, "name"),
        ({"query": 'select * from "com.example.rate"'}, 400, "com.example.rates"),
        ({"query": 'select 1 from "empty"'}, 400, "no data"),
        ({"query": f"select * from odf_as_at('{PUBLIC}', '1999-01-01')"}, 404, "did not exist yet"),
        ({"query": f"select * from odf_as_at('{PUBLIC}', '1999-99-01')"}, 400, "1999-99-01"),
        ({"query": "select 1", "queryDialect": "SqlFlink"}, 400, "SqlSpark"),
        ({"query": "select 1", "queryDialect": "Cobol"}, 400, "Cobol"),
        ({"query": "select 1 as a, 2 as a"}, 400, ""),
        ({"query": "select ?"}, 400, "parameter"),
        ({"query": "select \ud800"}, 422, "unicode"),
        ({"query": "select now()", "include": ["Proof"]}, 400, "now"),
        ({"query": "select 1", "datasets": [{"id": "did:odf:x", "alias": "a"}]}, 400, "datasets[0].id"),
        ({"query": "select 1", "limit": -1}, 422, "limit"),
        ({"query": "select 1", "dataFormat": "Xml"}, 422, "dataFormat"),
        ({"query": "select 1", "more": 1}, 422, "more"),
        ([], 422, ""),
    ],
)
def test_wrong_questions(server: DatasetServer, workspace: Workspace, body: Any, status: int, says: str) -> None:
    answer = post(server, body)
    assert answer.status == status, answer.body
    assert says in answer.json["message"]
    assert str(workspace.root) not in answer.json["message"]


def test_what_is_no_json(server: DatasetServer) -> None:
    """As it comes from curl when the quotes are wrong, or the header is left out."""
    for body, kind, says in [
        (
            b"{'query': 'select 1'}",
            "application/json",
            "not JSON: Expecting property name enclosed in double quotes, at ch",
        ),
        (
            b'{"query": "select 1"}',
            "application/x-www-form-urlencoded",
            "Set the header Content-Type: application/json",
        ),
    ]:
        answer = ask(f"{server.url}/query", method="POST", body=body, content_type=kind)
        assert answer.status == 422
        assert says in answer.json["message"]


def test_wrong_parameters(server: DatasetServer) -> None:
    for path in ("query?query=select+1&datasets={", "query?query=select+1&include=x", f"{PUBLIC}/metadata?include=x"):
        answer = ask(f"{server.url}/{path}")
        assert answer.status == 400
        assert answer.json["message"]
    assert "asOfBlockHash: " in ask(f"{server.url}/{PUBLIC}/tail?asOfBlockHash=x").json["message"]
    asked = "query=select+1+as+one&format=json-aoa&include=proof,schema&schemaFormat=odf-json"
    answer = ask(f"{server.url}/query?{asked}")
    assert answer.json["output"]["data"] == [[1]]
    assert answer.json["input"]["include"] == ["Input", "Proof", "Schema"]


def test_the_other_dialect(server: DatasetServer) -> None:
    answer = query(server, f"select id from `{PUBLIC}` order by `offset` desc limit 1", queryDialect="sqlspark")
    assert answer.json["output"]["data"] == [{"id": 39}]


# --- Proofs -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def proof(server: DatasetServer) -> Any:
    return query(server, ROWS, include=["Proof"]).json


def verify(server: DatasetServer, document: Any, token: str | None = None) -> Answer:
    return post(server, document, "verify?include=Signer", token)


def signed(document: Any, key: KeyPair = OTHER_KEY) -> Any:
    """The same with another key."""
    commitment = Commitment.to(document["input"], document["output"])
    proof = commitment.signed_by(key)
    return {**document, "commitment": to_tree(commitment), "proof": to_tree(proof)}


def test_answers_of_the_node_can_be_checked(server: DatasetServer, workspace: Workspace, proof: Any) -> None:
    good = {"ok": True, "signer": {"id": proof["proof"]["verificationMethod"], "name": "me"}}
    assert verify(server, proof).json == good
    assert verify(server, {name: part for name, part in proof.items() if name != "output"}).json == good
    by_another = verify(server, signed(proof)).json
    assert by_another["ok"], "whoever has signed it"
    assert by_another["signer"] == {"id": str(OTHER_KEY.actor), "name": str(OTHER_KEY.actor)}
    feed(workspace, PUBLIC, "40 later")
    assert verify(server, proof).json == good
    assert (
        query(server, ROWS, include=["Proof"]).json["proof"]["verificationMethod"]
        == proof["proof"]["verificationMethod"]
    )
    assert (workspace.odf / "node" / "key").stat().st_mode & 0o777 == 0o600


def test_an_answer_signed_with_a_revoked_key_is_told(server: DatasetServer, proof: Any) -> None:
    key = KeyPair(b"\x03" * 32)
    document = signed(proof, key)
    assert verify(server, document).json["ok"]
    RevokedKeysFile().add(learnt=[KeyRevocation.made_by(key, key.actor, Reason.COMPROMISED, Timestamp.now())])
    answer = verify(server, document)
    assert (answer.status, answer.json["ok"]) == (400, False)
    assert answer.json["error"]["kind"] == "VerificationFailed::EndedKey"
    assert answer.json["error"]["key"] == answer.json["signer"]["id"] == str(key.actor)


def changed(document: Any, *path: str | int, to: Any) -> Any:
    tree = place = json.loads(json.dumps(document))
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return tree


@pytest.mark.parametrize(
    ("path", "to", "kind"),
    [
        (("input", "limit"), 7, "InvalidRequest::InputHash"),
        (("subQueries",), [{}], "InvalidRequest::SubQueriesHash"),
        (("commitment", "outputHash"), f"f1620{'0' * 64}", "InvalidRequest::BadSignature"),
        (("proof", "type"), "EcdsaSecp256k1Signature2019", "InvalidRequest::BadSignature"),
        (("proof", "verificationMethod"), "did:key:nobody", "InvalidRequest::BadSignature"),
        (("output", "data", 0, "id"), 7, "InvalidRequest::OutputHash"),
    ],
)
def test_what_was_changed_is_told(
    server: DatasetServer, proof: Any, path: tuple[str | int, ...], to: Any, kind: str
) -> None:
    answer = verify(server, changed(proof, *path, to=to))
    assert answer.status == 400
    assert answer.json["ok"] is False
    assert answer.json["error"]["kind"] == kind
    named = {"id": proof["proof"]["verificationMethod"], "name": "me"}
    assert answer.json["signer"] == (None if path[-1] == "verificationMethod" else named)


def test_what_does_not_come_out_again(server: DatasetServer, workspace: Workspace, proof: Any, reader: str) -> None:
    false = signed(changed(proof, "output", "data", 0, "id", to=7))
    error = verify(server, false).json["error"]
    assert error["kind"] == "VerificationFailed::OutputMismatch"
    assert error["expected_hash"] == false["commitment"]["outputHash"]
    assert error["actual_hash"] == proof["commitment"]["outputHash"]
    gone = signed(changed(proof, "input", "datasets", 0, "blockHash", to=f"f1620{'0' * 64}"))
    error = verify(server, gone).json["error"]
    assert error["kind"] == "VerificationFailed::DatasetBlockNotFound"
    assert error["block_hash"] == f"f1620{'0' * 64}"
    secret = query(server, f'select id from "{PRIVATE}"', reader, include=["Proof"]).json
    assert verify(server, secret, reader).json["ok"]
    error = verify(server, secret).json["error"]
    assert error["kind"] == "VerificationFailed::DatasetNotFound"
    assert error["dataset_id"] == str(workspace.storage.get(PRIVATE).handle.id)


def test_what_is_no_answer(server: DatasetServer, proof: Any) -> None:
    assert verify(server, {}).status == 422
    assert verify(server, {**proof, "version": 2}).status == 400
    assert verify(server, changed(proof, "commitment", "inputHash", to="x")).status == 400
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=PATIENCE)
    connection.request("POST", "/verify", b'{"input": {', {"Content-Type": "application/json", "Connection": "close"})
    assert connection.getresponse().status == 422
    connection.close()
