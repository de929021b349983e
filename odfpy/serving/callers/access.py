"""Authorization: the caller's identity and permissions, as one dependency for every route.

    @router.get("/refs/{ref}")
    def reference(dataset: Readable, ref: str) -> ...: ...

    @router.websocket("/push")
    async def push(socket: WebSocket, place: Writable) -> ...: ...

`Readable` is an existing dataset that the caller may read, `Administered` one that they may administer, `Writable` a
name that they may write to, whether a dataset exists there or not. A token belongs to a workspace and is only valid for
its datasets. Anonymous callers get 401 for private and for missing datasets alike, so that existence is not revealed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from fastapi import Depends, HTTPException
from fastapi.openapi.models import HTTPBearer
from fastapi.security.base import SecurityBase
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection

from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.storage.workspace_folder import WorkspaceFolder
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import InvalidValue
from odfpy.serving.callers.principals import find_principal
from odfpy.serving.callers.registry import ServedRegistry
from odfpy.serving.callers.sessions import session_token
from odfpy.serving.callers.tokens import AccessToken, Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, visibility_of

_FRESH = 1.0
_NEEDS = "This needs an access token with the scope {}"


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated or anonymous sender of a request.

    Attributes:
        token: their token without its secret, None for an anonymous caller.
        storage: the workspace that the token is for.
        text: the token.
        datasets: ids of datasets that grants of sharing let them read.
        since: when these were determined, by the monotonic clock, in seconds.
        granting: the workspace with these grants.
    """

    token: AccessToken | None = None
    storage: Storage | None = None
    text: str = field(default="", repr=False)
    datasets: frozenset[str] = frozenset()
    since: float = 0.0
    granting: Storage | None = None

    def may(self, scope: Scope, folder: WorkspaceFolder) -> bool:
        """Return whether they have a scope for all datasets of a workspace."""
        return self.token is not None and self.storage is folder and self.token.scope >= scope

    def is_still_known(self) -> bool:
        """Return whether the token is still neither revoked nor expired."""
        return self.renewed() is not None

    def renewed(self) -> Caller | None:
        """Return the caller with current grants, None if the token was revoked or has expired."""
        if self.granting is not None:
            known = find_principal(self.text, self.granting)
            if known is None:
                return None
            _, datasets = known
            return replace(self, datasets=datasets, since=time.monotonic())
        is_known = self.storage is not None and Tokens(self.storage.odf).find(self.text) is not None
        return self if is_known else None

    def is_granted(self, dataset: StoredDataset) -> bool:
        """Return whether grants of sharing let them read a dataset; rechecked after a second."""
        if not self.datasets or str(dataset.handle.id) not in self.datasets:
            return False
        if time.monotonic() - self.since < _FRESH:
            return True
        now = self.renewed()
        return now is not None and str(dataset.handle.id) in now.datasets

    @property
    def scope(self) -> Scope | None:
        """Return the scope of their token."""
        return self.token.scope if self.token else None


@dataclass(frozen=True, slots=True)
class DatasetTarget:
    """The name of a dataset that exists or can be created.

    Attributes:
        caller: the caller, who may write there.
        alias: name of the dataset.
        storage: the workspace.
        dataset: the dataset, None if it does not exist.
    """

    caller: Caller
    alias: DatasetAlias
    storage: Storage
    dataset: StoredDataset | None

    @property
    def may_force(self) -> bool:
        """True if the caller may overwrite a diverged history, which drops blocks."""
        return self.caller.may(Scope.ADMIN, self.storage)


class _Bearer(SecurityBase):
    """FastAPI's security scheme for the token of a request or WebSocket handshake."""

    def __init__(self) -> None:
        about = "A token of `odf token new`, or the cookie of a session; public datasets need none."
        self.model = HTTPBearer(description=about)
        self.scheme_name = "token"

    async def __call__(self, connection: HTTPConnection) -> str | None:
        return token_in(connection)


def token_in(connection: HTTPConnection) -> str | None:
    """Return the token of a request, from its header or else from the session cookie; None if there is none."""
    text = bearer_of(connection.headers)
    return session_token(connection) if text is None else text


def bearer_of(headers: Headers) -> str | None:
    """Return the bearer token of a request, None if there is none."""
    kind, _, text = headers.get("Authorization", "").partition(" ")
    return text.strip() if kind.lower() == "bearer" else None


_Text = Annotated[str | None, Depends(_Bearer())]


async def caller(connection: HTTPConnection, text: _Text) -> Caller:
    """Return the caller of a request.

    Raises:
        HTTPException: 401, the token is unknown or has expired.
    """
    if text is None:
        return Caller()
    authenticated = await run_in_threadpool(find_caller, text, registry_of(connection).storages)
    if authenticated is None or authenticated.token is None:
        raise unauthorized_error("Unknown or expired access token")
    connection.scope.setdefault("state", {})["token_name"] = authenticated.token.name
    return authenticated


def find_caller(text: str, storages: Sequence[Storage]) -> Caller | None:
    """Return the caller with a token; None if no workspace knows it, or it is no longer valid."""
    for storage in storages:
        token = Tokens(storage.odf).find(text)
        if token is not None:
            return Caller(token, storage, text)
    for storage in storages:
        known = find_principal(text, storage)
        if known is not None:
            who, datasets = known
            created = who.created_at or Timestamp(0)
            return Caller(AccessToken(who.name, Scope.READ, created), None, text, datasets, time.monotonic(), storage)
    return None


AnyCaller = Annotated[Caller, Depends(caller)]


def readable(connection: HTTPConnection, caller: AnyCaller) -> StoredDataset:
    """Return the dataset that the path names.

    Raises:
        HTTPException: 401 or 404, there is none that the caller may read.
    """
    dataset = _dataset_at(connection)
    if dataset is not None and is_readable(dataset, caller):
        return dataset
    if caller.token is None:
        raise unauthorized_error("There is no public dataset of that name; others need an access token")
    raise HTTPException(404, "Dataset not found, or this token may not read it")


def is_readable(dataset: StoredDataset, caller: Caller) -> bool:
    """Return whether the caller may read a dataset; repeat it in long sessions: tokens expire, visibility changes."""
    if visibility_of(dataset.folder) is Visibility.PUBLIC:
        return True
    if caller.may(Scope.READ, dataset.workspace_folder):
        return caller.is_still_known()
    return caller.is_granted(dataset)


def is_listed(dataset: StoredDataset, visibility: Visibility, caller: Caller) -> bool:
    """Return the same as `is_readable` for a caller whose token was just verified, in lists of many datasets.

    Args:
        dataset: the dataset.
        visibility: its current visibility.
        caller: the caller.
    """
    if visibility is Visibility.PUBLIC or caller.may(Scope.READ, dataset.workspace_folder):
        return True
    return str(dataset.handle.id) in caller.datasets


def administered_dataset(connection: HTTPConnection, caller: AnyCaller) -> StoredDataset:
    """Return the dataset that the path names, for a token with scope admin.

    Raises:
        HTTPException: 401, 403 or 404, there is none that the caller may administer.
    """
    dataset = readable(connection, caller)
    _require(caller, Scope.ADMIN, dataset.workspace_folder)
    return dataset


def writable(connection: HTTPConnection, caller: AnyCaller) -> DatasetTarget:
    """Return the dataset name in the path for writing; a new dataset goes to the workspace of the token.

    Raises:
        HTTPException: 401, 403 or 404, the caller may not write there.
    """
    if caller.token is None or caller.storage is None:
        raise unauthorized_error(_NEEDS.format(Scope.WRITE.value))
    dataset = _dataset_at(connection)
    if dataset is not None and dataset.workspace_folder is not caller.storage:
        raise HTTPException(404, "Dataset not found, or this token may not read it")
    _require(caller, Scope.WRITE, caller.storage)
    return DatasetTarget(caller, alias_in(connection), caller.storage, dataset)


def require_writable(dataset: StoredDataset, caller: Caller) -> None:
    """Check that a caller may write to a dataset that they may read.

    Raises:
        HTTPException: 401 or 403, they may not.
    """
    _require(caller, Scope.WRITE, dataset.workspace_folder)


Readable = Annotated[StoredDataset, Depends(readable)]
Administered = Annotated[StoredDataset, Depends(administered_dataset)]
Writable = Annotated[DatasetTarget, Depends(writable)]


def registry_of(connection: HTTPConnection) -> ServedRegistry:
    """Return the registry of the server's datasets."""
    served = connection.app.state.datasets
    assert isinstance(served, ServedRegistry)  # noqa: S101 - set by `create_app`
    return served


def alias_in(connection: HTTPConnection) -> DatasetAlias:
    """Return the dataset name in the path.

    Raises:
        HTTPException: 404, it is not a valid name.
    """
    path: dict[str, Any] = connection.path_params
    text = f"{path['account']}/{path['name']}" if "account" in path else path["name"]
    try:
        return DatasetAlias.parse(text)
    except InvalidValue as error:
        raise HTTPException(404, error.message) from error


def unauthorized_error(problem: str) -> HTTPException:
    """Create the 401 response that requests a token."""
    return HTTPException(401, problem, {"WWW-Authenticate": 'Bearer realm="odf"'})


def _dataset_at(connection: HTTPConnection) -> StoredDataset | None:
    return registry_of(connection).find(alias_in(connection))


def _require(caller: Caller, scope: Scope, folder: WorkspaceFolder) -> None:
    if not caller.may(scope, folder):
        if caller.token is None:
            raise unauthorized_error(_NEEDS.format(scope.value))
        raise HTTPException(403, f"This needs an access token of this workspace with the scope {scope.value}")
