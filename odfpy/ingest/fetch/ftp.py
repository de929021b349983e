"""Files on FTP servers (RFC 959; times and sizes as in RFC 3659).

A server that states neither the modification time nor the size of a file provides no state, as in the reference
implementation: such a file is only fetched again on request. Messages never contain what the server writes, which may
repeat a secret of the URL.
"""

from __future__ import annotations

import ftplib
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import Any
from urllib.parse import SplitResult, unquote

from odfpy.data.timestamp import Timestamp
from odfpy.errors import FetchError, FetchInterrupted
from odfpy.http.connection import MinimumRateReader, hint, may_pass, reason
from odfpy.ingest.fetch.download import ResumePoint
from odfpy.ingest.fetch.version import SourceVersion, is_settled

_FTPS_PORT = 990
_MAX_LINES = 10_000  # of a server's messages before a file
_MODIFIED = re.compile(r"213 ([0-9]{14})(?:\.[0-9]+)?\s*")
_SIZE = re.compile(r"213 ([0-9]{1,18})\s*")
_HINTS = {
    "530": "Pass valid credentials, as ftp://${{ env.NAME }}:${{ env.PASSWORD }}@host/path.",
    "550": "Check the path, and whether this user may read the file.",
}


class _Session(ftplib.FTP):
    """The standard library's client, for servers that may talk without end."""

    def __init__(self, timeout: float) -> None:
        super().__init__(timeout=timeout)
        self._lines = 0

    def getline(self) -> str:
        """Return the next line of an answer."""
        self._lines += 1
        if self._lines > _MAX_LINES:
            raise ftplib.error_proto("its answers are too long")  # noqa: S321 (plain FTP is what the URL says)
        return super().getline()


class _SecureSession(_Session, ftplib.FTP_TLS):
    """FTP client with TLS from the first byte on (implicit FTPS)."""

    def __init__(self, timeout: float) -> None:
        self._secured: socket.socket | None = None
        super().__init__(timeout)
        self.context = ssl.create_default_context()

    @property
    def sock(self) -> socket.socket | None:
        """The socket; a plain socket that is set is wrapped in TLS."""
        return self._secured

    @sock.setter
    def sock(self, value: socket.socket | None) -> None:
        if value is not None and not isinstance(value, ssl.SSLSocket):
            value = self.context.wrap_socket(value, server_hostname=self.host)
        self._secured = value

    def login(self, *args: Any, **kwargs: Any) -> str:
        """Log in, and request TLS for the data connections too."""
        answer = super().login(*args, **kwargs)
        self.prot_p()
        return answer

    def ntransfercmd(self, cmd: str, rest: int | str | None = None) -> tuple[socket.socket, int | None]:
        """Return the data connection for a file. Many servers require the same TLS session for it."""
        plain, size = ftplib.FTP.ntransfercmd(self, cmd, rest)  # noqa: S321 (it is made secure below)
        session = self._secured.session if isinstance(self._secured, ssl.SSLSocket) else None
        return self.context.wrap_socket(plain, server_hostname=self.host, session=session), size


class FtpFile:
    """A file received over its own connection; complete only if the server confirms it at the end."""

    def __init__(
        self, source: FtpSource, session: _Session, version: SourceVersion, size: int | None, offset: int
    ) -> None:
        self.version = version
        self.offset = offset
        self.length = size
        self._source = source
        self._session = session
        self._data = session.transfercmd(f"RETR {source.path}", rest=offset or None)
        raw = self._data.makefile("rb", buffering=0)
        self._bytes = MinimumRateReader(raw, limit=None)

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        with self._source.errors("broken off"):
            data = self._bytes.read(size) or b""
            if data:
                return data
            self._data.close()
            self._session.voidresp()
            if self._source.look(self._session) != (self.version, self.length):
                raise FetchInterrupted(f"{self._source.shown}: has changed while it was read")
            return b""

    def close(self) -> None:
        """Discard the rest."""
        self._bytes.close()
        self._data.close()
        self._session.close()


class FtpSource:
    """A file at an ftp or ftps URL; its path is relative to the initial folder of the user.

    Attributes:
        shown: the URL for messages.
        path: path of the file.
    """

    def __init__(self, url: SplitResult, shown: str, *, now: Timestamp, timeout: float) -> None:
        self.shown = shown
        self.path = re.sub(r";type=[aid]$", "", unquote(url.path)).removeprefix("/")
        self._session, port = (_SecureSession, _FTPS_PORT) if url.scheme == "ftps" else (_Session, ftplib.FTP_PORT)
        self._host, self._port = url.hostname or "", url.port or port
        self._user, self._password = unquote(url.username or ""), unquote(url.password or "")
        self._now = now
        self._timeout = timeout
        if not self.path or not self._host or not all(map(str.isprintable, (self.path, self._user, self._password))):
            raise FetchError(f"{shown} names no file on an FTP server", hint="Write it as ftp://host/folder/name.csv.")

    def close(self) -> None:
        """Do nothing: each file has its own connections."""

    def open(self, unless: SourceVersion, rest: ResumePoint | None) -> FtpFile | None:
        """Request the file; see `download.RemoteFile`."""
        session = self._session(self._timeout)
        try:
            with self.errors("cannot be read"):
                session.connect(self._host, self._port)
                session.login(self._user, self._password)
                session.voidcmd("TYPE I")
                version, size = self.look(session)
                if version.is_same(unless):
                    session.close()
                    return None
                offset = rest.offset if rest is not None and rest.proof == version.proof else 0
                return FtpFile(self, session, version, size, offset)
        except BaseException:
            session.close()
            raise

    def look(self, session: _Session) -> tuple[SourceVersion, int | None]:
        """Return version and size of the file, as far as the server reports them."""
        time = _MODIFIED.fullmatch(_answer(session, f"MDTM {self.path}"))
        found = _SIZE.fullmatch(_answer(session, f"SIZE {self.path}"))
        size = int(found[1]) if found else None
        modified = None
        if time:
            with suppress(ValueError):
                stated = datetime.strptime(time[1], "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)
                modified = Timestamp.from_datetime(stated)
        if modified is None:
            return SourceVersion(), size
        is_proof = size is not None and is_settled(modified, self._now, by_its_own_clock=False)
        return SourceVersion(modified=modified, proof=f"{modified} {size}" if is_proof else None), size

    @contextmanager
    def errors(self, what: str) -> Iterator[None]:
        """Convert errors of the standard library."""
        try:
            yield
        except (ftplib.error_perm, ftplib.error_reply, ftplib.error_proto) as error:
            code = str(error)[:3]
            code = code if code.isdecimal() else "but not over FTP"
            problem = f"{self.shown}: {what}, the server answers {code}"
            raise FetchError(problem, hint=_HINTS.get(code, "Check the URL.")) from None
        except ftplib.error_temp as error:
            raise FetchInterrupted(f"{self.shown}: {what}, the server answers {str(error)[:3]}") from None
        except (OSError, EOFError, ValueError) as error:
            failure = FetchInterrupted if may_pass(error) else FetchError
            text = "the server closed the connection" if isinstance(error, EOFError) else reason(error)
            raise failure(f"{self.shown}: {what}, {text}", hint=hint(error)) from None


def _answer(session: _Session, command: str) -> str:
    """Return the server's answer to a command that it may not know."""
    try:
        return session.sendcmd(command)
    except ftplib.error_perm:
        return ""
