"""The audit log: who has read what, as an ODF dataset of the workspace.

    .odf/audit/<id>.ndjson     accesses on their way into the dataset, each on the disk within a second

1. an access is handed in; a thread writes it to a file of its own and syncs it, a second later at most
2. after some seconds the file is closed and taken into the dataset, in one commit, and removed then
3. a file that a killed server has left is taken in by the next one, or by `odf audit`

Each access has an id, and the dataset is a ledger of ids: what is taken in twice is there once.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from odfpy.chain.encoding import load_snapshots
from odfpy.data.timestamp import Timestamp
from odfpy.errors import AlreadyExists, DatasetNotFound, OdfError
from odfpy.files import make_folder, sync_folder

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace

DATASET: Final = "odf.audit"
COLUMNS: Final = {
    "id": "STRING",
    "at": "TIMESTAMP",
    "who": "STRING",
    "action": "STRING",
    "path": "STRING",
    "version": "BIGINT",
    "block": "STRING",
    "granted": "BOOLEAN",
    "status": "INT",
    "files": "BIGINT",
    "bytes": "BIGINT",
    "address": "STRING",
    "client": "STRING",
}
_MANIFEST: Final = f"""\
kind: DatasetSnapshot
version: 1
content:
  name: {DATASET}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: NdJson
        ddlSchema: [{", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())}]
      merge: {{kind: Ledger, primaryKey: [id]}}
    - {{kind: SetVocab, eventTimeColumn: at}}
    - {{kind: SetInfo, description: Accesses to what this workspace shares}}
"""
LEFT_OUT: Final = "not listed"
"""The action of a row that stands for many accesses of nobody known; `files` says how many."""

_SYNC: Final = 1.0
_PATIENCE: Final = 30.0
_MINUTE: Final = 60.0
_MOST_STRANGERS: Final = 100
_LONGEST: Final = 500


class AuditLog:
    """Takes accesses in, from any thread, and brings them into the dataset."""

    def __init__(self, workspace: Workspace, interval: float) -> None:
        """
        Args:
            workspace: whose accesses they are.
            interval: seconds after which accesses are taken into the dataset, at most.
        """
        self._workspace = workspace
        self._folder = workspace.storage.odf / "audit"
        self._interval = interval
        self._waiting: list[bytes] = []
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._asked: list[threading.Event] = []
        self._thread: threading.Thread | None = None
        self._minute = 0.0
        self._strangers = 0
        self._left_out = 0

    def record(self, access: Mapping[str, Any]) -> None:
        """Hand in an access; it is on the disk a second later.

        Args:
            access: values of `COLUMNS` by name; `id` and `at` are made here.
        """
        with self._lock:
            if access.get("who") is None and not self._takes_strangers():
                return
            self._append(access)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
                self._thread.start()

    def _append(self, access: Mapping[str, Any]) -> None:
        tree = {"id": str(uuid.uuid4()), "at": str(Timestamp.now()), **access}
        cut = {name: _clean(value) if isinstance(value, str) else value for name, value in tree.items()}
        self._waiting.append(json.dumps(cut).encode() + b"\n")

    def _takes_strangers(self) -> bool:
        """Return whether another access of nobody known is listed, and count it: else anybody could fill the disk."""
        now = time.monotonic()
        if now - self._minute >= _MINUTE:
            self._minute, self._strangers = now, 0
            self._tell_uncounted()
        self._strangers += 1
        if self._strangers > _MOST_STRANGERS:
            self._left_out += 1
        return self._strangers <= _MOST_STRANGERS

    def _tell_uncounted(self) -> None:
        if self._left_out:
            self._append({"action": LEFT_OUT, "files": self._left_out, "granted": False})
            self._left_out = 0

    def stop(self) -> None:
        """Bring all that was handed in into the dataset."""
        with self._lock:
            self._tell_uncounted()
        self._stopped.set()
        self._woken.set()
        if self._thread is not None:
            self._thread.join()

    def bring_in(self) -> None:
        """Bring all that was handed in so far into the dataset now, for somebody who looks at it."""
        brought = threading.Event()
        with self._lock:
            is_running = self._thread is not None and not self._stopped.is_set()
            if is_running:
                self._asked.append(brought)
        if not is_running:
            self._try_to_take_in()
            return
        self._woken.set()
        brought.wait(_PATIENCE)

    # --- The thread ---

    def _run(self) -> None:
        make_folder(self._folder)
        self._folder.chmod(0o700)
        self._try_to_take_in()  # what a killed server has left
        file: BinaryIO | None = None
        began = 0.0
        while True:
            self._woken.wait(_SYNC)
            self._woken.clear()
            is_last = self._stopped.is_set()
            with self._lock:
                lines, self._waiting = self._waiting, []
                asked, self._asked = self._asked, []
            if lines:
                if file is None:
                    file, began = self._begun(), time.monotonic()
                file.write(b"".join(lines))
                file.flush()
                os.fsync(file.fileno())
            if file is not None and (is_last or asked or time.monotonic() - began >= self._interval):
                file.close()
                file = None
                self._try_to_take_in()
            for one in asked:
                one.set()
            if is_last:
                return

    def _begun(self) -> BinaryIO:
        file = (self._folder / f"{uuid.uuid4()}.ndjson").open("xb")
        fcntl.flock(file, fcntl.LOCK_EX)
        sync_folder(self._folder)
        return file

    def _try_to_take_in(self) -> None:
        try:
            take_in(self._workspace)
        except OdfError as error:  # it stays where it is, and is tried again
            logging.getLogger("odfpy").warning("audit log not taken in: %s", error.message)


def take_in(workspace: Workspace) -> int:
    """Take all that has been recorded, and that no server is still writing, into the dataset; gives how many files.

    Raises:
        OdfError: the dataset cannot be written; nothing is lost.
    """
    with _complete(workspace.storage.odf / "audit") as files:
        if not files:
            return 0
        try:
            workspace.storage.get(DATASET)
        except DatasetNotFound:
            with suppress(AlreadyExists):  # another server was faster
                workspace.add(load_snapshots(_MANIFEST, DATASET))
        together = files[0].with_name("together")
        lines = (line for file in files for line in _whole_lines(file).splitlines(keepends=True))
        together.write_bytes(b"".join(dict.fromkeys(lines)))
        list(workspace.ingest(DATASET, [together]))
        for file in (*files, together):
            file.unlink(missing_ok=True)
        return len(files)


@contextmanager
def _complete(folder: Path) -> Iterator[list[Path]]:
    """The files that nobody writes any more; held, so that of several processes one takes them in."""
    with ExitStack() as held:
        found = []
        for path in sorted(folder.glob("*.ndjson")):
            with suppress(FileNotFoundError):
                file = path.open("rb")
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    file.close()
                    continue
                held.enter_context(file)
                if path.exists():  # else another process has just taken it in
                    found.append(path)
        yield found


def _clean(text: str) -> str:
    """A text that any reader takes: what clients send may be long, and no text at all."""
    return text[:_LONGEST].encode("utf-8", "replace").decode()


def _whole_lines(file: Path) -> bytes:
    """The lines of a file; the last one may be cut off by a power failure, and was never promised then."""
    data = file.read_bytes()
    return data[: data.rfind(b"\n") + 1]


def accesses(
    workspace: Workspace, *, num: int, condition: str | None = None, columns: Iterable[str] = COLUMNS
) -> Iterator[dict[str, Any]]:
    """The last accesses, the newest first.

    Args:
        workspace: whose.
        num: how many at most.
        condition: in SQL, over `COLUMNS` and `offset`, which numbers accesses in the order in which they came.
        columns: names of those that are wanted.
    """
    from odfpy.query.query import Query

    with suppress(DatasetNotFound):
        workspace.storage.get(DATASET)
        where = f"WHERE {condition}" if condition else ""
        wanted = ", ".join(f'"{name}"' for name in columns)
        text = f'SELECT {wanted} FROM "{DATASET}" {where} ORDER BY "offset" DESC'  # noqa: S608  the caller's
        yield from workspace.queries.sql(Query(text, "datafusion", limit=num)).to_pylist()
