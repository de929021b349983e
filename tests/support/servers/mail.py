"""A mail server on the loopback interface, which stores received mails."""

from __future__ import annotations

import asyncio
import queue
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

USER, PASSWORD = "odf", "pa55word"


@dataclass
class MailServer:
    """The received mails of a server.

    Attributes:
        port: where it listens.
        mails: accepted mails.
        answers: responses to the next mails, instead of accepting them.
    """

    port: int = 0
    mails: queue.Queue[EmailMessage] = field(default_factory=queue.Queue)
    answers: queue.Queue[str] = field(default_factory=queue.Queue)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - its name there
        if not self.answers.empty():
            return self.answers.get()
        assert isinstance(envelope.content, bytes)
        message = message_from_bytes(envelope.content, policy=default)
        assert isinstance(message, EmailMessage)
        self.mails.put(message)
        return "250 taken"


@contextmanager
def mail_server(tls: ssl.SSLContext | None = None, *, implicit: bool = False) -> Iterator[MailServer]:
    """Accept mails; with a context, only after STARTTLS and a login, or, if `implicit`, over TLS."""
    found = MailServer()
    options: dict[str, Any] = {"decode_data": False, "enable_SMTPUTF8": True}
    if tls is not None and not implicit:
        options |= {"authenticator": _authenticate, "auth_required": True, "tls_context": tls, "require_starttls": True}
    loop = asyncio.new_event_loop()

    def make() -> SMTP:
        return SMTP(found, loop=loop, hostname="mail.example.org", **options)

    server = loop.run_until_complete(loop.create_server(make, "127.0.0.1", 0, ssl=tls if implicit else None))
    found.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield found
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(server: asyncio.AbstractServer) -> None:
    server.close()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.sleep(0)


def _authenticate(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: object) -> AuthResult:
    right = LoginPassword(USER.encode(), PASSWORD.encode())
    return AuthResult(success=data == right, handled=False)
