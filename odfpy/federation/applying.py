"""Applying documents: read, checked as a whole, compared, taken in one transaction, and recorded.

Each apply, and each change of users and certificates, is a row of the dataset `odf.web` of the workspace.
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
    """An apply that was checked, and not done yet.

    Attributes:
        steps: what there is to do.
        revision: of the relay, for which they were planned.
    """

    steps: Sequence[Step]
    revision: int


def prepare(store: WebStore, places: Iterable[Path], odf: Path, *, prune: bool) -> Prepared:
    """Read documents, check them with what is there, and find out what there is to do. Nothing is changed.

    Args:
        store: the state of the relay.
        places: files and folders.
        odf: folder `.odf` of the workspace, of which no document may show anything.
        prune: whether what is not declared goes.

    Raises:
        InvalidDocument: something is wrong; the message names file, line, object and key.
    """
    state = store.applies.state()
    declared = read_documents(places)
    for one in declared:
        _check_places(one, odf.resolve())
    return Prepared(plan(state.web, declared, prune=prune), state.revision)


def record(workspace: Workspace, store: WebStore, relay: str) -> None:
    """Bring all changes that are not there yet into the dataset `odf.web`. What fails is tried again the next time.

    Args:
        workspace: whose relay it is.
        store: the state of the relay.
        relay: its name.

    Raises:
        OdfError: they cannot be written to the disk.
    """
    waiting = store.applies.unrecorded()
    if not waiting:
        return
    log = RecordLog(workspace, RECORDS, _INTERVAL)
    try:
        for one in waiting:
            steps = "\n".join(one.steps)
            row = {"id": one.id, "at": str(one.at), "revision": one.revision, "relay": relay, "who": one.who}
            log.record({**row, "action": one.action, "steps": steps})
        log.sync()
    except OSError as error:
        raise OdfError(
            f"Cannot record what was done: {error.strerror}", hint="It is done, and recorded later."
        ) from error
    finally:
        log.stop()
    store.applies.recorded(one.revision for one in waiting)


def _check_places(declared: Declared, odf: Path) -> None:
    """Check that a document shows nothing of the folder in which the workspace has its keys."""
    if not isinstance(declared.spec, LocalData):
        return
    connection = declared.spec.connection
    places: list[tuple[tuple[str, ...], str]] = []
    if isinstance(connection, DuckdbConnection):
        places = [(("connection", "path"), connection.path)]
    elif isinstance(connection, FilesConnection):
        places = [(("connection", "tables", name, "location"), one.location) for name, one in connection.tables.items()]
    for path, place in places:
        if "://" not in place and Path(place).resolve().is_relative_to(odf):
            raise InvalidDocument(
                f"{declared.at(path)}: nothing in {odf} is shown: keys and passwords are there",
                hint="Name datasets by a connection of kind dataset; keep other files elsewhere.",
            )
