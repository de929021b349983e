"""The OpenAPI is complete: what every operation is for, its parameters, examples of what comes and goes, its refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from support.servers.serving import ask, serving, workspace_at

from odfpy.query.wire.request import DatasetState
from odfpy.query.wire.request import QueryRequest as Question
from odfpy.serving.rest.models import DatasetStateModel, QueryModel
from odfpy.serving.server import DatasetServer

TEXTS = ("application/json", "text/", "application/x-nd", "application/geo+json")
WITH_TOKEN = {
    ("post", "ingest"), ("put", "info"), ("put", "{ref}"), ("put", "visibility"), ("get", "token"), ("get", "validate"),
    ("post", "tokens"), ("put", "schedule"), ("put", "paused"), ("delete", "schedule"), ("post", "runs"),
    ("post", "verification"), ("delete", "verification"), ("get", "/metrics/datasets"), ("post", "missing"),
    ("post", "objects"), ("post", "records"), ("patch", "{hash}"),
    *((method, f"{place}/v0/archive/objects/{{hash}}")
      for method in ("head", "put") for place in ("", "/{name}", "/{account}/{name}")),
}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatasetServer]:
    with serving(workspace_at(tmp_path_factory.mktemp("workspace"))) as server:
        yield server


@pytest.fixture(scope="module")
def schema(server: DatasetServer) -> Any:
    return ask(f"{server.url}/openapi.json").json


def operations(schema: Any) -> list[tuple[str, str, Any]]:
    return [(method, path, one) for path, found in schema["paths"].items() for method, one in found.items()]


def has_example(schema: Any, part: Any) -> bool:
    """Whether there is one of a whole, or of some of its parts."""
    if "$ref" in part:
        return has_example(schema, schema["components"]["schemas"][part["$ref"].rpartition("/")[2]])
    inner = [
        *part.get("properties", {}).values(),
        *part.get("anyOf", []),
        part.get("items", {}),
        part.get("schema", {}),
    ]
    return "example" in part or "examples" in part or any(has_example(schema, one) for one in inner if one)


def test_every_operation_is_described(schema: Any) -> None:
    known = {tag["name"] for tag in schema["tags"]}
    assert "message" in schema["info"]["description"]
    for method, path, operation in operations(schema):
        assert operation["description"], (method, path)
        assert set(operation["tags"]) <= known, (method, path)
        for parameter in operation.get("parameters", []):
            # Where the values have a name of their own, older releases of FastAPI put the sentence beside it.
            assert parameter.get("description") or parameter["schema"].get("description"), (
                method,
                path,
                parameter["name"],
            )


def test_what_comes_and_goes_as_text_has_examples(schema: Any) -> None:
    for method, path, operation in operations(schema):
        parts = {"body": operation.get("requestBody", {}), **operation["responses"]}
        for name, part in parts.items():
            for kind, content in part.get("content", {}).items():
                if kind.startswith(TEXTS) and not (method == "put" and "signed-" in path):
                    assert has_example(schema, content), (method, path, name, kind)


def test_refusals_have_the_form_that_they_have(schema: Any) -> None:
    for method, path, operation in operations(schema):
        for status, response in operation["responses"].items():
            if status[0] in "45":
                refs = str(response["content"]["application/json"]["schema"])
                assert "RefusalModel" in refs, (method, path, status)
        assert "requestBody" not in operation or {"400", "413"} <= operation["responses"].keys()
    assert not {"HTTPValidationError", "ValidationError"} & schema["components"]["schemas"].keys()


def test_what_needs_a_token(schema: Any) -> None:
    for method, path, operation in operations(schema):
        is_known = not WITH_TOKEN.isdisjoint({(method, path.rpartition("/")[2]), (method, path)})
        is_needed = is_known or operation["tags"] == ["administration"]
        if "security" in operation:
            assert operation["security"] == [{"token": []}, *([] if is_needed else [{}])], (method, path)
        else:
            assert not is_needed


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("query", "GET, POST"),
        ("verify", "POST"),
        ("x/info", "POST, PUT"),
        ("x/refs/head", "GET, HEAD, PUT"),
        ("x/y/tail", "GET"),
        ("docs", "GET"),
    ],
)
def test_a_method_that_there_is_not(server: DatasetServer, path: str, allowed: str) -> None:
    """All that there are are named, also where each of them is a route of its own."""
    answer = ask(f"{server.url}/{path}", method="DELETE")
    assert answer.status == 405
    assert answer.headers["allow"] == allowed
    assert answer.json["message"] == f"There is no DELETE here, but {allowed}"


def test_a_request_over_http_has_the_fields_and_defaults_of_the_question_that_is_signed() -> None:
    """FastAPI checks the one, the codec reads the other, also where nothing of FastAPI is installed."""
    for model, value in ((QueryModel, Question), (DatasetStateModel, DatasetState)):
        assert list(model.model_fields) == [camel(field.name) for field in fields(value)]
    shortest = QueryModel(query="select 1")
    assert Question.parse(shortest.model_dump(mode="json", exclude_none=True)) == Question.parse({"query": "select 1"})


def camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def test_servers_of_a_process_prepare_their_routes_once(server: DatasetServer, tmp_path: Path) -> None:
    with serving(workspace_at(tmp_path / "other")) as other:
        assert ask(f"{other.url}/datasets").json == []
        of_both = {id(route) for route in server.app.routes} & {id(route) for route in other.app.routes}
        assert len(of_both) > 20
