"""Receivers of notices: their addresses, channels and filters.

.odf/automation/receivers/<first half of the sha256 of the target>.yaml    mode 0600: URLs and secrets
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from odfpy.automation.notifications.notice import Notice, NoticeKind
from odfpy.dataset.names import DatasetAlias, DatasetPattern
from odfpy.errors import AlreadyExists, InvalidValue, NotFound, OdfError, UsageError, did_you_mean
from odfpy.http.standard_webhooks import new_secret
from odfpy.http.url import parse_url, shown_url
from odfpy.repository.documents import load_document, save_document

_KIND = "NoticeReceiver"
_ADDRESS = re.compile(r"[^\s@<>()\[\]\\,;:\"\x00-\x1f\x7f]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?")

_LOGGER = logging.getLogger("odf.automation")


class ReceiverNotFound(NotFound, code="E791"):
    """No receiver has the URL or address."""


class ChannelKind(Enum):
    """A kind of channel to a receiver."""

    WEBHOOK = "webhook"
    MAIL = "mail"


@dataclass(frozen=True, slots=True)
class Receiver:
    """A receiver of notices.

    Attributes:
        way: kind of the channel; its name is that of the key in the file.
        target: URL, which may contain secrets, or mail address.
        on: kinds of notices to send; all if empty.
        datasets: pattern of dataset names; None for all, including notices without a dataset.
        secret: shared secret for signing webhook calls.
    """

    way: ChannelKind
    target: str = field(repr=False)
    on: tuple[NoticeKind, ...] = ()
    datasets: str | None = None
    secret: str | None = field(default=None, repr=False)

    @property
    def id(self) -> str:
        """The id, which is the name of its file."""
        return hashlib.sha256(self.target.encode()).hexdigest()[:32]

    @property
    def shown(self) -> str:
        """The target without user and query, for lists."""
        return shown_url(self.target) if self.way is ChannelKind.WEBHOOK else self.target

    @property
    def place(self) -> str:
        """The server without path and query, or the mail address; for logs and messages."""
        return str(parse_url(self.target, InvalidValue).origin) if self.way is ChannelKind.WEBHOOK else self.target

    def wants(self, notice: Notice) -> bool:
        """Return whether a notice matches the filters of the receiver."""
        if self.on and notice.kind not in self.on:
            return False
        if self.datasets is None:
            return True
        if notice.dataset is None:
            return False
        try:
            return DatasetPattern(self.datasets).matches(DatasetAlias.parse(notice.dataset))
        except InvalidValue:  # a dataset without a valid name is identified by its id
            return False


class Receivers:
    """The receivers of a workspace."""

    def __init__(self, odf: Path) -> None:
        """
        Args:
            odf: the folder `.odf` of the workspace.
        """
        self._folder = odf / "automation" / "receivers"

    def add(
        self, channel: ChannelKind, target: str, *, on: Sequence[NoticeKind] = (), datasets: str | None = None
    ) -> Receiver:
        """Add a receiver; it gets notices from now on.

        Args:
            channel: kind of the channel.
            target: URL or mail address.
            on: kinds of notices; all if empty.
            datasets: a name, or a pattern of names; None for all.

        Raises:
            UsageError: the URL, address or pattern is invalid.
            AlreadyExists: the receiver exists.
        """
        if datasets is not None:
            DatasetPattern(datasets)
        if channel is ChannelKind.WEBHOOK:
            parse_url(target, UsageError)
        elif not _ADDRESS.fullmatch(target):
            raise UsageError(f"Not a mail address: {target[:80]!r}", hint="Write it as in ann@example.org.")
        secret = new_secret() if channel is ChannelKind.WEBHOOK else None
        receiver = Receiver(channel, target, tuple(on), datasets, secret)
        if self._path(receiver).exists():
            hint = f"To change its settings, delete it first: `odf notify delete {receiver.shown}`."
            raise AlreadyExists(f"The receiver {receiver.shown} already exists", hint=hint)
        save_document(self._path(receiver), _KIND, receiver)
        return receiver

    def ids(self) -> set[str]:
        """Return all ids, including those of damaged files."""
        return {path.stem for path in self._files()}

    def list(self) -> tuple[Receiver, ...]:
        """Return all receivers, sorted by target.

        Raises:
            MalformedManifest: a file is damaged; the message names the file.
        """
        found = (load_document(path, _KIND, Receiver) for path in self._files())
        return tuple(sorted((one for one in found if one is not None), key=lambda one: one.target))

    def usable(self) -> tuple[Receiver, ...]:
        """Return the receivers whose files can be read; damaged files are logged."""
        found = []
        for path in self._files():
            try:
                found.append(load_document(path, _KIND, Receiver))
            except OdfError as error:
                _LOGGER.error("a receiver is passed over: %s", error.message)  # noqa: TRY400 - no bug
        return tuple(one for one in found if one is not None)

    def get(self, target: str) -> Receiver:
        """Return the receiver with a target, which may be given without user and query, as shown in lists.

        Args:
            target: URL or mail address.

        Raises:
            ReceiverNotFound: the receiver does not exist; the message suggests a similar name.
            UsageError: the target is ambiguous without user and query.
        """
        known = self.list()
        found = [one for one in known if one.target == target] or [one for one in known if one.shown == target]
        if not found:
            shown = [one.shown for one in known]
            hint = did_you_mean(target, shown, otherwise="`odf notify list` shows the receivers.")
            raise ReceiverNotFound(f"There is no receiver {shown_url(target)}", hint=hint)
        if len(found) > 1:
            hint = "Write the URL with user and query, as it was added."
            raise UsageError(f"{len(found)} receivers match {target}", hint=hint)
        return found[0]

    def delete(self, receiver: Receiver) -> None:
        """Remove a receiver; its waiting notices are dropped by the next delivery."""
        self._path(receiver).unlink(missing_ok=True)

    def _files(self) -> Sequence[Path]:
        return sorted(self._folder.glob("[!.]*.yaml"))

    def _path(self, receiver: Receiver) -> Path:
        return self._folder / f"{receiver.id}.yaml"
