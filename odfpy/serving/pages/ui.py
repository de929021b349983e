"""The HTML shell of the web pages, their assets, and the link by which `odf ui` signs its user in.

    /ui/open?ticket=...     sets the session cookie, once
    /ui/assets/...          scripts and styles built from `frontend/`; their names contain a hash of the content
    /ui/...                 the shell, for every page: the script in it determines which one is meant

A Content-Security-Policy restricts pages to this server and to scripts in files, and forbids framing. Styles may also
come from the query editor, which receives a nonce for that.
"""

from __future__ import annotations

import gzip
import json
import secrets
from collections.abc import Mapping
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from odfpy import __version__
from odfpy.serving.callers.sessions import begin_session

router = APIRouter(prefix="/ui", include_in_schema=False)

_ENTRY: Final = "main.js"
_STYLE: Final = "main.css"
_ICON: Final = "icon.svg"
_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".map": "application/json",
}
_FOR_EVER: Final = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "X-Content-Type-Options": "nosniff",
}

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<base href="{base}">
<title>Open Data Fabric</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="odf-version" content="{version}">
<meta name="style-nonce" content="{nonce}">
<link rel="icon" href="assets/{icon}">
<link rel="stylesheet" href="assets/{style}">
{preloads}<script type="module" src="assets/{script}"></script>
</head>
<body>
<div id="app"><p class="first">Loading …</p>
<noscript>These pages need JavaScript. The command line has everything, too.</noscript></div>
</body>
</html>
"""


@router.get("/open")
def open_session(request: Request, ticket: Annotated[str, Query(max_length=200)]) -> Response:
    """Start the session of a ticket, and redirect to the front page."""
    token = request.app.state.tickets.redeem(ticket)
    if token is None:
        raise HTTPException(403, "This link was used or has expired: run `odf ui` again")
    response = RedirectResponse(_base(request), 303, {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"})
    begin_session(request, response, token, is_secure=_base_url(request).startswith("https:"))
    return response


@router.get("/assets/{name}")
def asset(request: Request, name: Annotated[str, Path(max_length=200)]) -> Response:
    """A built file."""
    entry = _assets().get(name)
    if entry is None:
        raise HTTPException(404, "There is no such file; load the page again")
    plain, packed = entry
    headers = {**_FOR_EVER, "Vary": "Accept-Encoding"}
    media_type = _TYPES[name[name.rindex(".") :]]
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return Response(packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=media_type)
    return Response(plain, headers=headers, media_type=media_type)


@router.get("")
def without_slash(request: Request) -> Response:
    """The front page, under its name."""
    return RedirectResponse(_base(request))


@router.get("/{page:path}")
def shell(request: Request, page: str) -> Response:
    """A page."""
    del page  # the script reads the location itself
    nonce, names = secrets.token_urlsafe(16), _manifest()
    preloads = "".join(f'<link rel="modulepreload" href="assets/{name}">\n' for name in names["preload"])
    text = _PAGE.format(
        base=escape(_base(request)),
        version=__version__,
        nonce=nonce,
        icon=names[_ICON],
        style=names[_STYLE],
        script=names[_ENTRY],
        preloads=preloads,
    )
    return HTMLResponse(text, headers=_headers(nonce))


def _headers(nonce: str) -> Mapping[str, str]:
    return {
        "Content-Security-Policy": f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}';"
        " img-src 'self' data:; connect-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }


def _base(request: Request) -> str:
    """Return the path prefix of all links of a page: the server may be behind a proxy that adds one."""
    return f"{urlsplit(_base_url(request)).path.rstrip('/')}/ui/"


def _base_url(request: Request) -> str:
    return request.app.state.settings.base_url or f"{request.url.scheme}://{request.url.netloc}"


@lru_cache(maxsize=1)
def _manifest() -> Mapping[str, Any]:
    """Return the built files by their stable names, and `preload`: those that the script starts with."""
    manifest: dict[str, Any] = json.loads((files(__package__) / "assets" / "manifest.json").read_text(encoding="utf-8"))
    return manifest


@lru_cache(maxsize=1)
def _assets() -> Mapping[str, tuple[bytes, bytes]]:
    """Return all built files, uncompressed and compressed."""
    paths = (path for path in (files(__package__) / "assets").iterdir() if path.name != "manifest.json")
    plain = {file.name: file.read_bytes() for file in paths if file.is_file()}
    return {name: (data, gzip.compress(data, mtime=0)) for name, data in plain.items()}
