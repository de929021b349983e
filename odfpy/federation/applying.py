"""Applying documents: read them, validate them together, compute the changes, commit these in one transaction, log
them.

Each apply, and each change of users and certificates, becomes a row of the workspace's dataset `odf.web`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.coordinator.record_log import RecordedDataset, RecordLog
from odfpy.errors import OdfError
from odfpy.federation.errors import InvalidDocument
from odfpy.federation.model.connections import DuckdbConnection, FilesConnection
from odfpy.federation.model.documents import LocalData
from odfpy.federation.model.reading import Declared, read_documents
from odfpy.federation.model.steps import Step, plan

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace
    from odfpy.federation.store.store import WebStore

DATASET: Final = "odf.web"
RECORDS: Final = RecordedDataset(
    name=DATASET,
    folder="relay/log",
    description="Changes of the relay of this workspace",
    columns={
        "id": "STRING",
        "at": "TIMESTAMP",
        "revision": "BIGINT",
        "relay": "STRING",
        "who": "STRING",
        "action": "STRING",
        "steps": "STRING",
    },
    longest=1_000_000,
)
_INTERVAL: Final = 60.0


@dataclass(frozen=True, slots=True)
class Prepared:
    """A validated apply that has not been executed yet.

    Attributes:
        steps: the changes to make.
        revision: revision of the relay's state that the steps were planned for.
    """

    steps: Sequence[Step]
    revision: int


def prepare(store: WebStore, places: Iterable[Path], odf: Path, *, prune: bool) -> Prepared:
    """Read documents, validate them against the current state, and compute the steps. Changes nothing.

    Args:
        store: the state of the relay.
        places: files and folders.
        odf: the `.odf` folder of the workspace, which no document may expose.
        prune: whether objects that are not declared are removed.

    Raises:
        InvalidDocument: a document is invalid; the message names file, line, object and key.
    """
    state = store.applies.state()
    declared = read_documents(places)
    for document in declared:
        _check_places(document, odf.resolve())
    return Prepared(plan(state.web, declared, prune=prune), state.revision)


def record(workspace: Workspace, store: WebStore, relay: str) -> None:
    """Append all changes that are not yet recorded to the dataset `odf.web`. Failed ones are retried the next time.

    Args:
        workspace: the relay's workspace.
        store: the state of the relay.
        relay: name of the relay.

    Raises:
        OdfError: they cannot be written to the disk.
    """
    waiting = store.applies.unrecorded()
    if not waiting:
        return
    log = RecordLog(workspace, RECORDS, _INTERVAL)
    try:
        for apply in waiting:
            steps = "\n".join(apply.steps)
            row = {"id": apply.id, "at": str(apply.at), "revision": apply.revision, "relay": relay, "who": apply.who}
            log.record({**row, "action": apply.action, "steps": steps})
        log.sync()
    except OSError as error:
        raise OdfError(
            f"Cannot record what was done: {error.strerror}", hint="The change was made, and will be recorded later."
        ) from error
    finally:
        log.stop()
    store.applies.recorded(apply.revision for apply in waiting)


def _check_places(declared: Declared, odf: Path) -> None:
    """Check that a document exposes nothing of the folder that holds the workspace's keys."""
    if not isinstance(declared.spec, LocalData):
        return
    connection = declared.spec.connection
    places: list[tuple[tuple[str, ...], str]] = []
    if isinstance(connection, DuckdbConnection):
        places = [(("connection", "path"), connection.path)]
    elif isinstance(connection, FilesConnection):
        places = [
            (("connection", "tables", name, "location"), table.location) for name, table in connection.tables.items()
        ]
    for path, place in places:
        if "://" not in place and Path(place).resolve().is_relative_to(odf):
            raise InvalidDocument(
                f"{declared.at(path)}: {odf} cannot be a source: it contains keys and passwords",
                hint="Use a connection of kind dataset for datasets; store other files outside.",
            )
