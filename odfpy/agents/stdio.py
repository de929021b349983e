"""The protocol over standard input and output, for clients that start the server themselves."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
from mcp.server.stdio import stdio_server

from odfpy.agents.messages import Messages
from odfpy.agents.proofs import ProofFolder
from odfpy.agents.protocol import Protocol, log_to
from odfpy.agents.readers import Served, local_user
from odfpy.agents.stdin import StandardInput
from odfpy.errors import UsageError
from odfpy.query.wire.response import ResponseLimits
from odfpy.serving.callers.access import Caller, find_caller
from odfpy.serving.callers.engines import ServedEngines
from odfpy.serving.callers.reachable_objects import ReachableObjectsCache
from odfpy.serving.callers.registry import ServedRegistry
from odfpy.serving.http.query_limiter import QueryGate
from odfpy.serving.rest.catalog import Catalog
from odfpy.serving.settings import ServeSettings

if TYPE_CHECKING:
    from odfpy.agents.readers import Reader
    from odfpy.coordinator.workspace import Workspace
    from odfpy.dataset.names import DatasetAlias, DatasetPattern

_MAX_MESSAGE_LENGTH: Final = 16 * 1024**2


def serve_stdio(
    workspace: Workspace, *, token: str | None, only: Sequence[DatasetPattern | DatasetAlias], proofs: Path | None
) -> None:
    """Serve a workspace over standard input and output until the client closes it, or until a signal.

    Args:
        workspace: the workspace.
        token: token that limits access; None for the local user.
        only: names and patterns of the visible datasets; all if empty.
        proofs: folder of the proofs; `.odf/mcp/proofs` by default.

    Raises:
        UsageError: the token does not belong to the workspace.
    """
    folder = (workspace.odf / "mcp" / "proofs" if proofs is None else proofs).absolute()
    served = _served(workspace, tuple(only), folder)
    if token is not None and find_caller(token, [workspace.storage]) is None:
        raise UsageError(
            "Unknown or expired access token",
            hint="`odf token list` shows the tokens of the workspace.",
        )
    keyboard = local_user(workspace)

    async def find(_request: Any) -> Reader:
        return served.reader(keyboard if token is None else await _caller(token, workspace))

    settings = ServeSettings.configured(workspace.config)
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, format="%(levelname)s %(message)s")
    log = log_to(logging.getLogger("odf.mcp"))
    asyncio.run(_run(Protocol(QueryGate(settings), settings.query_timeout, find, log)))


async def _caller(token: str, workspace: Workspace) -> Caller:
    """Return the holder of a token; an anonymous caller if it has been revoked since the last request."""
    return await anyio.to_thread.run_sync(find_caller, token, [workspace.storage]) or Caller()


def _served(workspace: Workspace, only: tuple[DatasetPattern | DatasetAlias, ...], proofs: Path) -> Served:
    settings = ServeSettings.configured(workspace.config)
    registry = ServedRegistry([workspace.storage])
    return Served(
        workspaces=[workspace],
        registry=registry,
        reaches=ReachableObjectsCache(),
        catalog=Catalog(registry.storages),
        engines=ServedEngines(workspace, settings.query_memory, settings.query_timeout),
        limits=ResponseLimits(settings.max_rows, settings.max_answer),
        proofs=ProofFolder(proofs, workspace.root.absolute()),
        only=only,
    )


async def _run(protocol: Protocol) -> None:
    server = protocol.server()
    wire = os.dup(0)  # child processes get the null device: they must not read the server's input
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    lines = StandardInput(wire, _MAX_MESSAGE_LENGTH)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, lines.end)
    try:
        async with stdio_server(stdin=cast("Any", lines)) as (incoming, outgoing):
            await server.run(Messages(incoming, outgoing), outgoing, server.create_initialization_options())
    except Exception as error:
        if not _is_gone(error):
            raise


def _is_gone(error: BaseException) -> bool:
    """Return whether an error, or all errors in a group, mean that the client has disconnected."""
    parts: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    return all(map(_is_gone, parts)) if parts else isinstance(error, BrokenPipeError)
