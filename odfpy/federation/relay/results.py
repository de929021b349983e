"""Deferred results: a relay reads the rows of a ticket into files of its result store, without a waiting client.

The state of a result is stored in the database, so that it is resumed when the relay restarts. A result belongs to its
owner alone, even if others know its id. The owner's permissions are checked when it is made, and when it is fetched.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Final

import pyarrow as pa

from odfpy.data.memory import bytes_of
from odfpy.data.rows.batch_stream import BatchStream
from odfpy.data.timestamp import Timestamp
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import OdfError, ResultTooLarge
from odfpy.federation.errors import WebObjectNotFound
from odfpy.federation.relay.errors import TicketRefused
from odfpy.federation.relay.result_files import ResultFile, written_files
from odfpy.federation.relay.result_store import ResultStore
from odfpy.federation.relay.rows import TicketReader
from odfpy.federation.relay.tickets import PassedTicket, Ticket
from odfpy.federation.store.results import Result, Results, ResultState
from odfpy.files import make_folder

MAX_CONCURRENT: Final = 2
"""Maximum number of results that are made at the same time."""

_NANOS: Final = 1_000_000_000
_MAX_ATTEMPTS: Final = 3
_MAX_RESULTS: Final = 1_000
"""Maximum number of results of one user."""

_CLEAN_INTERVAL: Final = 600.0
"""Seconds between two removals of expired results."""

_PREFIX: Final = "result-"
"""Prefix of the folder of a result that is being made."""

_LOGGER = logging.getLogger("odf.relay")


class ResultMaker:
    """The deferred results of a relay, computed in background threads; thread-safe."""

    def __init__(
        self,
        results: Results,
        reader: TicketReader,
        store: ResultStore,
        *,
        work: Path,
        lifetime: float,
        seconds: float,
        largest: int,
    ) -> None:
        """
        Args:
            results: states of results, in the relay's database.
            reader: reads the rows of tickets.
            store: stores the files.
            work: folder for files that are being written.
            lifetime: seconds for which a result is kept.
            seconds: time limit for making one.
            largest: maximum bytes of Arrow data of a result; the same limit applies to all files of a user.
        """
        self._results, self._reader, self._store, self._work = results, reader, store, work
        self._lifetime, self._seconds, self._largest = lifetime, seconds, largest
        self._lock = threading.Lock()
        self._running: dict[str, CancellationToken] = {}
        self._threads = ThreadPoolExecutor(MAX_CONCURRENT, "results")
        self._over = threading.Event()
        threading.Thread(target=self._clean_now_and_then, name="old results", daemon=True).start()

    def resume(self) -> None:
        """Resume the results that were unfinished when the relay stopped."""
        for result in self._results.unfinished():
            self._threads.submit(self._make, result)

    def close(self) -> None:
        """Stop; unfinished results are resumed when the relay restarts."""
        self._over.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            running = [*self._running.values()]
        for control in running:
            control.cancel()
        self._threads.shutdown(wait=True)

    def start(self, text: str, ticket: Ticket | PassedTicket) -> Result:
        """Start to make the result of a ticket; the same ticket always refers to the same result.

        Args:
            text: text of the ticket.
            ticket: the same ticket, opened by its holder.

        Raises:
            ResultTooLarge: the holder has reached the limit of results.
            OdfError: the result belongs to another user.
        """
        name, owner = hashlib.sha256(text.encode()).hexdigest()[:32], ticket.holder.fingerprint
        with suppress(WebObjectNotFound):
            return self.find(name, owner)
        self._check_room(owner)
        until = Timestamp(Timestamp.now().nanos + int(self._lifetime * _NANOS))
        detail = {"ticket": text, "tries": 0}
        result, is_new = self._results.add(name, owner, detail, until)
        if is_new:
            self._threads.submit(self._make, result)
        return result

    def _check_room(self, owner: str) -> None:
        """Check that an owner may have another result."""
        kept = [result for result in self._results.owned_by(owner) if "ticket" in result.detail]
        size = sum(file["bytes"] for result in kept for file in result.detail.get("files", []))
        if len(kept) >= _MAX_RESULTS or size >= self._largest:
            raise ResultTooLarge(
                f"This relay keeps {len(kept):,} results of you already, of {size:,} bytes",
                hint="They expire after some time. Request less, or read the rows directly.",
            )

    def find(self, name: str, owner: str) -> Result:
        """Return a result of an owner.

        Raises:
            WebObjectNotFound: the owner has no such result.
        """
        result = self._results.get(name, owner)
        if "ticket" not in result.detail:
            raise WebObjectNotFound("There is no such result")
        return result

    def cancel(self, name: str, owner: str) -> None:
        """Stop making a result; a finished one stays until it expires.

        Raises:
            WebObjectNotFound: the owner has no such result.
        """
        self.find(name, owner)
        self._stop(name)

    def _stop(self, name: str) -> None:
        self._results.move(name, ResultState.CANCELLED)
        with self._lock:
            control = self._running.get(name)
        if control is not None:
            control.cancel()

    def open(self, name: str, owner: str, number: int) -> BinaryIO:
        """Open a file of a result.

        Args:
            name: name of the result.
            owner: fingerprint of the caller's certificate.
            number: number of the file.

        Raises:
            WebObjectNotFound: the owner has no such result, or it has no such file.
            TicketRefused: the owner's permissions have changed since it was made.
        """
        result = self.find(name, owner)
        files = result.detail.get("files", [])
        if result.state is not ResultState.DONE or not 0 <= number < len(files):
            raise WebObjectNotFound("The result has no such file", hint="`odf web status` tells what it has.")
        if self._seen(self._reader.tickets.reopen(result.detail["ticket"])) != result.detail["seen"]:
            raise TicketRefused("Your permissions have changed since the result was computed", hint="Ask again.")
        return self._store.get(name).open(ResultFile.parse(files[number]).hash)

    def _seen(self, ticket: Ticket | PassedTicket) -> str | None:
        """Return a hash of the cells that the holder of a ticket may see; None where another relay decides."""
        if isinstance(ticket, PassedTicket):
            return None
        return hashlib.sha256(repr(self._reader.sources.view(ticket)).encode()).hexdigest()

    # --- Making a result ---

    def _make(self, result: Result) -> None:
        try:
            self._make_and_note(result)
        except Exception:  # e.g. of the database: it is retried when the relay restarts
            _LOGGER.exception("result %s: not noted", result.id)

    def _make_and_note(self, result: Result) -> None:
        detail = {**result.detail, "tries": result.detail["tries"] + 1}
        if not self._results.move(result.id, ResultState.RUNNING, detail):
            return  # cancelled in the meantime
        try:
            _check_tries(detail["tries"])
            with self._control(result.id) as control:
                computed = self._compute(result, control)
        except Exception as error:  # noqa: BLE001  whatever it is, somebody waits to be told
            if self._over.is_set():
                return  # restarted from the beginning when the relay restarts
            self._fail(result, detail, error)
        else:
            # Unless it was cancelled in the meantime; another server of the relay may also have made it, with identical
            # files.
            is_ours = self._results.move(result.id, ResultState.DONE, {**detail, **computed})
            if not is_ours and self._results.state_of(result.id) is not ResultState.DONE:
                self._store.remove(result.id)

    def _compute(self, result: Result, control: CancellationToken) -> Mapping[str, Any]:
        ticket = self._reader.tickets.reopen(result.detail["ticket"])
        store = self._store.get(result.id)

        def keep(path: Path, result_file: ResultFile) -> None:
            store.insert_file(path, result_file.hash)

        with ExitStack() as stack:
            make_folder(self._work)
            folder = Path(stack.enter_context(TemporaryDirectory(dir=self._work, prefix=_PREFIX)))
            seen = self._seen(ticket)
            rows = stack.enter_context(self._reader.rows(ticket, control, self._seconds, self._largest))
            files = written_files(_bounded(rows, self._largest), rows.schema, folder, keep)
        return {
            "files": [file.to_json() for file in files],
            "rows": sum(file.rows for file in files),
            "seen": seen,
            "statement": rows.statement,
        }

    def _fail(self, result: Result, detail: Mapping[str, Any], error: Exception) -> None:
        if not isinstance(error, OdfError):
            _LOGGER.error("result %s: a bug", result.id, exc_info=error)
        why = error.message if isinstance(error, OdfError) else "The relay failed to compute it"
        with suppress(OdfError):
            self._store.remove(result.id)
        self._results.move(result.id, ResultState.FAILED, {**detail, "why": why})

    @contextmanager
    def _control(self, name: str) -> Iterator[CancellationToken]:
        """Return the cancellation token of a result that is being made."""
        with CancellationToken(self._seconds) as control:
            with self._lock:
                self._running[name] = control
            try:
                if self._over.is_set():
                    control.cancel()
                yield control
            finally:
                with self._lock:
                    del self._running[name]

    # --- Expired results ---

    def _clean_now_and_then(self) -> None:
        while True:
            try:
                self.clean()
            except Exception:  # retried the next time
                _LOGGER.exception("old results cannot be removed")
            if self._over.wait(_CLEAN_INTERVAL):
                return

    def clean(self) -> None:
        """Remove expired results with their files, and leftovers of killed servers.

        Raises:
            OdfError: the store refuses; it is retried the next time.
        """
        for result in self._results.old():
            if not result.state.is_final:
                self._stop(result.id)  # removed the next time
            else:
                self._store.remove(result.id)
                self._results.remove(result.id)
        too_old = time.time() - 2 * self._seconds  # its maker was killed: nothing takes longer
        for folder in self._work.glob(f"{_PREFIX}*"):
            with suppress(OSError):
                if folder.stat().st_mtime < too_old:
                    shutil.rmtree(folder)


def _check_tries(tries: int) -> None:
    if tries > _MAX_ATTEMPTS:
        raise OdfError("The relay stopped each time that it computed this result")


def _bounded(rows: BatchStream, largest: int) -> Iterator[pa.RecordBatch]:
    """Yield the batches, up to a limit.

    Raises:
        ResultTooLarge: the limit is exceeded.
    """
    size = 0
    for batch in rows:
        size += bytes_of(batch)
        if size > largest:
            raise ResultTooLarge(f"The result has more than {largest:,} bytes", hint="Ask for less.")
        yield batch
