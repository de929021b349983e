"""Whatever is asked of the server, as its OpenAPI describes it or otherwise: an answer, and never an error of ours."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.chains.workspaces import feed, root, workspace_with
from support.servers.serving import PATIENCE, ask, serving

from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.server import DatasetServer

NAME = "com.example.rates"
EXAMPLES = settings(
    max_examples=3,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = workspace_with(tmp_path_factory.mktemp("served"), root(NAME, "{kind: Append}"))
    feed(workspace, NAME, "1 a", "2 b")
    set_visibility(workspace.storage.get(NAME).folder, Visibility.PUBLIC)
    return workspace


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace) as server:
        yield server


@pytest.fixture(scope="module")
def admin(workspace: Workspace) -> str:
    return Tokens(workspace.odf).new("admin", Scope.ADMIN)


def test_every_operation_of_the_openapi_answers_what_it_is_asked(server: DatasetServer, admin: str) -> None:
    import schemathesis
    from schemathesis.specs.openapi.checks import response_schema_conformance

    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if "{account}" in operation.path:
            continue  # the same again
        tried += 1

        @EXAMPLES
        @given(case=operation.as_strategy(), is_known=st.booleans(), is_admin=st.booleans())
        def asked(case: Any, is_known: bool, is_admin: bool) -> None:
            if is_known and "name" in case.path_parameters and not case.path.endswith("/events"):
                case.path_parameters["name"] = NAME
            headers = {"Authorization": f"Bearer {admin}"} if is_admin else {}
            if is_known and "/query" in case.path:
                _ask_something(case)
            response = case.call(base_url=server.url, headers=headers, timeout=PATIENCE)
            assert response.status_code < 500, response.text
            assert str(response.status_code) in case.operation.definition.raw["responses"], response.text
            if "queries" in case.operation.definition.raw["tags"] and response.status_code != 304:
                case.validate_response(response, checks=[response_schema_conformance])

        asked()
    assert tried > 10


def _ask_something(case: Any) -> None:
    """A question that makes sense, with whatever else the case has."""
    if isinstance(case.body, dict):
        case.body["query"] = "select 1 as one"
        case.body.pop("queryDialect", None)
        case.body.pop("datasets", None)
    elif isinstance(case.query, dict):
        case.query["query"] = "select 1 as one"
        case.query.pop("queryDialect", None)
        case.query.pop("datasets", None)


@given(
    method=st.sampled_from([b"GET", b"HEAD", b"PUT", b"POST", b"DELETE", b"OPTIONS", b"TRACE", b"get", b"\xff"]),
    parts=st.lists(
        st.sampled_from([b"%00", b"..", b"%2e%2e", b"%2F", b"refs", b"head", b"blocks", b"data", b"\xff", b"%ff", b"%"])
        | st.just(NAME.encode())
        | st.binary(max_size=10),
        max_size=5,
    ),
    query=st.sampled_from(
        [b"", b"?", b"?limit=-1", b"?limit=1e9", b"?limit=", b"?offset=99999999999999999999", b"?%00"]
    ),
    header=st.sampled_from(
        [
            b"Range: bytes=-",
            b"Range: bytes=5-1",
            b"Range: bytes=0-0,1-1,2-2",
            b"Range: lines=1-2",
            b"Range: bytes=99999999999999999999-",
            b"Authorization: Bearer",
            b"Authorization: Bearer \xff\xfe",
            b"Authorization: Basic eDp5",
            b"If-None-Match: \xff",
            b"Content-Length: 5",
            b"Transfer-Encoding: chunked",
            b"Upgrade: websocket\r\nConnection: Upgrade",
            b"Expect: 100-continue",
        ]
    ),
)
@settings(EXAMPLES, max_examples=150)
def test_raw_requests_are_answered_or_refused(
    server: DatasetServer, method: bytes, parts: list[bytes], query: bytes, header: bytes
) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), PATIENCE) as raw:
        raw.settimeout(PATIENCE)
        raw.sendall(
            b"%b /%b%b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%b\r\n\r\n"
            % (method, b"/".join(parts), query, header)
        )
        raw.shutdown(socket.SHUT_WR)
        answer = raw.recv(65536)
    assert not answer.startswith(b"HTTP/1.1 5"), answer


def test_after_all_that_the_dataset_is_what_it_was(server: DatasetServer, workspace: Workspace, admin: str) -> None:
    head = workspace.storage.get(NAME).layout.refs.get(HEAD)
    assert ask(f"{server.url}/{NAME}/refs/head", token=admin).body.decode() == str(head)
