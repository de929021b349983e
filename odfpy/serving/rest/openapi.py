"""Common parts of all operations in the OpenAPI, in addition to what FastAPI derives."""

from __future__ import annotations

import threading
from typing import Any, Final

from fastapi import FastAPI

from odfpy import __version__

_DESCRIPTION: Final = """A node of the Open Data Fabric: datasets to pull, push and query.

Errors are JSON, `{"message": ...}`: what is wrong, and what to try. Public datasets need no token; what a caller may
not read does not exist for them."""

_TAGS: Final = [
    {"name": "server", "description": "The server and its datasets."},
    {"name": "queries", "description": "SQL queries, answers with proofs, ingests."},
    {"name": "archives", "description": "Archives of files: search and download with the API of datalake, and upload."},
    {"name": "Simple Transfer Protocol", "description": "Blocks, slices, references and signatures of a dataset."},
    {"name": "Smart Transfer Protocol", "description": "Objects at URLs of this protocol."},
    {"name": "events", "description": "Notifications of new heads."},
    {"name": "datasets", "description": "Summary, data, history and access of a dataset."},
    {"name": "automation", "description": "Schedules, and runs of the scheduler."},
    {"name": "administration", "description": "Shares, recipients, grants, tokens, the audit log: for admins."},
]

_REFUSAL: Final = {"application/json": {"schema": {"$ref": "#/components/schemas/RefusalModel"}}}
_OF_BODIES: Final = {"400": "The body is not text, or ended early.", "413": "The body is too large."}
_OF_FASTAPI: Final = ("HTTPValidationError", "ValidationError")
_FOR_A_TOKEN: Final = ("/token", "/platform/token/validate", "/metrics/datasets")


class DescribedApp(FastAPI):
    """An application whose OpenAPI is complete."""

    def __init__(self, **more: Any) -> None:
        super().__init__(
            title="Open Data Fabric node",
            version=__version__,
            description=_DESCRIPTION,
            openapi_tags=_TAGS,
            docs_url=None,
            redoc_url=None,
            **more,
        )
        self._making = threading.Lock()
        self._described: dict[str, Any] | None = None

    def openapi(self) -> dict[str, Any]:
        """Return FastAPI's document with the schema of errors, and the operations that need no token marked."""
        with self._making:
            if self._described is None:
                self._described = _completed(super().openapi())
            return self._described


def _completed(schema: dict[str, Any]) -> dict[str, Any]:
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            _complete(operation, needs_token=path in _FOR_A_TOKEN)
    for name in _OF_FASTAPI:
        schema["components"]["schemas"].pop(name, None)
    return schema


def _complete(operation: dict[str, Any], *, needs_token: bool) -> None:
    responses = operation["responses"]
    if "security" in operation and "403" not in responses and not needs_token:  # 403: a scope is missing
        operation["security"].append({})
    for status, why in _OF_BODIES.items() if "requestBody" in operation else ():
        responses.setdefault(status, {"description": why})
    for status, response in responses.items():
        if status[0] in "45" and (status == "422" or "content" not in response):
            response["content"] = _REFUSAL
