"""Interactive documentation of the API: Swagger UI, from a local package, without requests to other servers."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter
from fastapi import Path as InPath
from fastapi.responses import FileResponse, HTMLResponse, Response

router = APIRouter(include_in_schema=False)

_Asset = Literal["swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png"]

# The Content-Security-Policy restricts the page to this server and to scripts in files, and forbids framing.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_FOR_A_DAY = {"Cache-Control": "public, max-age=86400", "X-Content-Type-Options": "nosniff"}

# URLs are relative, since the server may be behind a proxy that adds a path prefix.
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Open Data Fabric node</title>
<link rel="icon" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
_START = """SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
});
"""


@router.get("/docs")
async def page() -> Response:
    """The page."""
    return HTMLResponse(_PAGE, headers=_HEADERS)


@router.get("/docs/start.js")
async def start() -> Response:
    """Return what it begins with."""
    return Response(_START, media_type="text/javascript", headers=_FOR_A_DAY)


@router.get("/docs/{asset}")
async def asset(asset: Annotated[_Asset, InPath()]) -> Response:
    """A file of Swagger UI."""
    return FileResponse(Path(str(files("fastapi_swagger.resources") / asset)), headers=_FOR_A_DAY)
