"""The waiting notices for one receiver, and the record of failed attempts.

  .odf/automation/notices/<id of the receiver>/<time>-<id of the notice>.yaml    a waiting notice
  .odf/automation/notices/<id of the receiver>/attempts.json                     from a failure to the next success

A notice is retained until it is delivered or given up. So a crash loses no notice, and may only repeat the last one.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from odfpy.automation.notifications.notice import Notice
from odfpy.errors import OdfError
from odfpy.files import locked_folder, replace_file
from odfpy.repository.documents import load_document, save_document

_KIND = "Notice"

_LOGGER = logging.getLogger("odf.automation")

MAX_ATTEMPTS: Final = 12
"""Number of attempts after which a notice is given up, after about four hours."""

FIRST_DELAY: Final = 10.0
MAX_DELAY: Final = 3600.0
"""Maximum seconds between two attempts; the delay doubles with each attempt."""


@dataclass
class Attempts:
    """The failed attempts to reach a receiver.

    Attributes:
        failures: number of consecutive failed rounds.
        again: time of the next attempt, in seconds since the epoch.
        counts: number of attempts by file name of the notice.
    """

    failures: int = 0
    again: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)

    def are_due(self, now: float) -> bool:
        """Return whether the next attempt is due; a clock that was set back does not cause a long wait."""
        return not 0 < self.again - now <= MAX_DELAY

    def count(self, failed: Collection[Path], now: float) -> list[Path]:
        """Count a failed round, and return the notices that will not be sent again.

        Args:
            failed: files of the failed notices.
            now: current time, in seconds since the epoch.
        """
        self.again = now + min(FIRST_DELAY * 2 ** min(self.failures, 20), MAX_DELAY)
        self.failures += 1
        self.counts = {path.name: self.counts.get(path.name, 0) + 1 for path in failed}
        return [path for path in failed if self.counts[path.name] >= MAX_ATTEMPTS]


class NoticeQueue:
    """The queue of notices for one receiver."""

    def __init__(self, odf: Path, receiver_id: str) -> None:
        """
        Args:
            odf: the folder `.odf` of the workspace.
            receiver_id: id of the receiver.
        """
        self._folder = odf / "automation" / "notices" / receiver_id
        self._attempts = self._folder / "attempts.json"

    def put(self, notice: Notice) -> None:
        """Queue a notice; a repeated call has no effect.

        Raises:
            OdfError: the notice cannot be written.
        """
        save_document(self._folder / f"{notice.time.nanos:020d}-{notice.id}.yaml", _KIND, notice)

    def is_empty(self) -> bool:
        """Return whether the queue is empty."""
        return next(self._files(), None) is None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock for deliveries during the block, among all processes."""
        with locked_folder(self._folder):
            yield

    def waiting(self) -> dict[Path, Notice]:
        """Return the waiting notices, oldest first; damaged files are logged and removed."""
        found = {}
        for path in sorted(self._files()):
            try:
                notice = load_document(path, _KIND, Notice)
            except OdfError as error:
                _LOGGER.error("a notice is dropped: %s", error.message)  # noqa: TRY400 - no bug
                path.unlink(missing_ok=True)
                continue
            if notice is not None:
                found[path] = notice
        return found

    def remove(self, paths: Collection[Path]) -> None:
        """Remove notices from the queue.

        Args:
            paths: their files.
        """
        for path in paths:
            path.unlink(missing_ok=True)

    def attempts(self) -> Attempts:
        """Return the record of failed attempts; a damaged record is ignored."""
        with suppress(OSError, ValueError, TypeError):
            found = Attempts(**json.loads(self._attempts.read_text(encoding="utf-8")))
            if (
                isinstance(found.failures, int)
                and isinstance(found.again, (int, float))
                and isinstance(found.counts, dict)
            ):
                return found
        return Attempts()

    def keep(self, attempts: Attempts | None) -> None:
        """Store the record of failed attempts, or remove it if it is None.

        Raises:
            OdfError: the record cannot be written.
        """
        if attempts is None:
            self._attempts.unlink(missing_ok=True)
        else:
            replace_file(self._attempts, json.dumps(vars(attempts)).encode())

    def drop(self) -> None:
        """Remove the queue of a removed receiver."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _files(self) -> Iterator[Path]:
        return self._folder.glob("[!.]*.yaml")
