"""Notices by mail, with one mail for the notices of a minute.

Mails are plain text, so that HTML in names is harmless. Untrusted texts are sanitized before they are used in a header:
line ends are already escaped, and the library rejects invalid texts.
"""

from __future__ import annotations

import hashlib
import smtplib
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import format_datetime
from itertools import groupby
from pathlib import Path
from typing import Final

from odfpy.automation.notifications.channels import Channel, NotDelivered, Refused
from odfpy.automation.notifications.notice import Notice
from odfpy.automation.notifications.receivers import Receiver
from odfpy.errors import UsageError
from odfpy.escaping import escape_controls
from odfpy.http.connection import hint, reason
from odfpy.settings.sections import MailSection

TIMEOUT: Final = 30.0
"""Timeout for a connection, or for the next bytes, in seconds."""

PATIENCE: Final = 120.0
"""Time limit for a whole mail, in seconds."""

MAX_IN_ONE: Final = 100
"""Maximum number of notices in a mail; further ones are counted."""

_MINUTE = 60
_PORTS = {"starttls": 587, "tls": 465, "none": 25}


class MailChannel(Channel):
    """Sends mails to one address."""

    def __init__(
        self, receiver: Receiver, settings: MailSection, *, timeout: float = TIMEOUT, patience: float = PATIENCE
    ) -> None:
        """
        Args:
            receiver: the receiver.
            settings: mail server and credentials.
            timeout: timeout for a connection, or for the next bytes, in seconds.
            patience: time limit for a whole mail, in seconds.
        """
        self._receiver = receiver
        self._settings = settings
        self._timeout = timeout
        self._patience = patience

    def batches(self, waiting: Mapping[Path, Notice], now: float | None) -> list[list[Path]]:
        """Return the notices of each minute that has passed, or is in the future because the clock was set back."""
        minutes = groupby(waiting, key=lambda path: waiting[path].minute)
        return [list(paths) for minute, paths in minutes if now is None or minute != now // _MINUTE]

    def send(self, notices: Sequence[Notice]) -> None:
        """Send one mail, whose id is derived from the notices."""
        sender = self._settings.sender
        if self._settings.server is None or sender is None:
            hint_ = "`odf config set mail.server smtp.example.org`, and mail.sender."
            raise NotDelivered("Cannot send mail: mail.server or mail.sender is not set", hint=hint_)
        message = mail_of(notices, sender, self._receiver.target)
        problem = f"No mail to {self._receiver.target} by {self._settings.server}"
        try:
            with self._connected() as server:
                server.send_message(message)
        except (smtplib.SMTPRecipientsRefused, smtplib.SMTPDataError) as error:
            raise Refused(f"{problem}: {_answer(error)}") from error
        except smtplib.SMTPResponseException as error:
            raise NotDelivered(f"{problem}: {_answer(error)}") from error
        except (OSError, ValueError) as error:  # other errors of the library are subclasses of OSError
            raise NotDelivered(f"{problem}: {reason(error)}", hint=hint(error)) from error

    @contextmanager
    def _connected(self) -> Iterator[smtplib.SMTP]:
        """Connect to the server for the block, with TLS and log-in according to the settings."""
        settings, security = self._settings, self._settings.security
        password = password_of(settings)
        port = settings.port or _PORTS[security]
        host = settings.server or ""
        server = (
            smtplib.SMTP_SSL(timeout=self._timeout, context=ssl.create_default_context())
            if security == "tls"
            else smtplib.SMTP(timeout=self._timeout)
        )
        server._host = host  # type: ignore[attr-defined] # noqa: SLF001 - `starttls` checks the certificate against it
        with _ended_after(self._patience, server), server:
            server.connect(host, port)
            if security == "starttls":
                server.starttls(context=ssl.create_default_context())
            if settings.user is not None:
                server.login(settings.user, password)
            yield server


@contextmanager
def _ended_after(seconds: float, server: smtplib.SMTP) -> Iterator[None]:
    """Close the connection after a time limit, since a server that keeps sending single bytes never times out."""
    import socket

    def end() -> None:
        with suppress(OSError, AttributeError):
            server.sock.shutdown(socket.SHUT_RDWR)  # type: ignore[union-attr]

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def mail_of(notices: Sequence[Notice], sender: str, address: str) -> EmailMessage:
    """Return the mail for notices.

    Args:
        notices: at least one notice.
        sender: address of the sender.
        address: address of the receiver.
    """
    first, *others = notices
    message = EmailMessage(policy=SMTP_POLICY)
    message["From"] = sender
    message["To"] = address
    message["Subject"] = f"[odf] {first.subject}" + (f" (and {len(others)} more)" if others else "")
    message["Date"] = format_datetime(first.time.to_datetime())
    digest = hashlib.sha256("\n".join([address, *(notice.id for notice in notices)]).encode()).hexdigest()[:32]
    message["Message-ID"] = f"<{digest}@{sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    parts = [_paragraph(notice) for notice in notices[:MAX_IN_ONE]]
    if len(notices) > MAX_IN_ONE:
        parts.append(f"{len(notices) - MAX_IN_ONE} more notices are not listed.\n")
    message.set_content("\n".join(parts))
    return message


def _paragraph(notice: Notice) -> str:
    facts = {
        "dataset": notice.dataset,
        "time": str(notice.time),
        "error": f"{notice.code}; `odf help {notice.code}` explains it" if notice.code else None,
        "run": notice.run,
    }
    lines = [f"{name}: {value}" for name, value in facts.items() if value is not None]
    return "\n".join([f"{notice.kind.value}: {notice.subject}", *lines, *([notice.text] if notice.text else []), ""])


def password_of(settings: MailSection) -> str:
    """Return the password of the mail server, from a setting or a file; empty if neither is set.

    Args:
        settings: mail settings.

    Raises:
        NotDelivered: the file cannot be read.
        UsageError: the password would be sent unencrypted.
    """
    if settings.user is None:
        return ""
    if settings.security == "none":
        raise UsageError("mail.user requires an encrypted connection", hint="`odf config set mail.security starttls`")
    if settings.password is not None or settings.password_file is None:
        return settings.password or ""
    try:
        return Path(settings.password_file).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NotDelivered(f"Cannot read the password for mail in {settings.password_file}: {error}") from error


def _answer(error: smtplib.SMTPException) -> str:
    """Return the response of the server on one line."""
    code: int | str
    text: bytes | str
    match error:
        case smtplib.SMTPRecipientsRefused():
            code, text = next(iter(error.recipients.values()))
        case smtplib.SMTPResponseException():
            code, text = error.smtp_code, error.smtp_error
        case _:
            return escape_controls(str(error))
    words = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    return escape_controls(f"{code} {words}")[:500]
