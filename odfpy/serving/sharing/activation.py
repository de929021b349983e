"""Activation links: a page with a button that downloads the profile file, once.

Opening the page changes nothing, since programs that scan links in mails open it, too.
"""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import HTMLResponse

from odfpy.serving.sharing.audited import note
from odfpy.serving.sharing.errors import SharingError
from odfpy.serving.sharing.state import base_of, state_of
from odfpy.sharing.profile import profile

router = APIRouter()

_Secret = Annotated[str, Path(max_length=100)]
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'",
}
_PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>Your profile file</title>
<h1>Your profile file</h1>
<p>Data is shared with you. This button downloads the profile file that your tools need to read it. It works once.</p>
<p>Anyone who has the file can read the data: store it in a safe place.</p>
<form method="post"><button>Download the profile file</button></form>
"""


@router.get("/activate/{secret}")
def page(secret: _Secret) -> Response:
    """Return the page of a link. It is the same for every link, including invalid ones."""
    del secret
    return HTMLResponse(_PAGE, headers=_HEADERS)


@router.post("/activate/{secret}")
def activate(request: Request, secret: _Secret) -> Response:
    """Return the profile file of a link.

    Raises:
        SharingError: 404, it was used, has expired, or does not exist.
    """
    state = state_of(request)
    activated = state.sharing.principals.activate(secret)
    if activated is None:
        raise SharingError(404, "This link was used or has expired; ask its sender for a new one")
    who, text, token = activated
    request.scope.setdefault("state", {})["token_name"] = who.name
    note(request.scope, action="activate")
    headers = {**_HEADERS, "Content-Disposition": 'attachment; filename="profile.share"'}
    data = profile(f"{base_of(request)}/delta-sharing", text, token.expires_at)
    return Response(data, media_type="application/json", headers=headers)
