"""Notices by mail: against a real server, with TLS and a login; what is written, and what bad servers do."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.servers.certificates import self_signed
from support.servers.mail import PASSWORD, USER, MailServer, mail_server
from support.servers.serving import PATIENCE

from odfpy.automation.notifications.channels import NotDelivered, Refused
from odfpy.automation.notifications.mail import MailChannel, mail_of
from odfpy.automation.notifications.notice import Notice, NoticeKind
from odfpy.automation.notifications.notices import Notices
from odfpy.automation.notifications.receivers import ChannelKind, Receiver
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.errors import UsageError
from odfpy.settings.sections import MailSection

ANN = Receiver(ChannelKind.MAIL, "ann@example.org")
MINUTE = 60 * 10**9


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def tls(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    return context


@pytest.fixture(scope="module")
def secure(tls: ssl.SSLContext) -> Iterator[MailServer]:
    """Takes mails after STARTTLS and a login."""
    with mail_server(tls) as server:
        yield server


@pytest.fixture(scope="module")
def plain() -> Iterator[MailServer]:
    with mail_server() as server:
        yield server


def settings(port: int, **more: Any) -> MailSection:
    unset = dict.fromkeys(("user", "password", "password_file"))
    given = {**unset, "server": "127.0.0.1", "port": port, "security": "none", "sender": "odf@example.org"}
    return MailSection(**(given | more))


def notice(subject: str = "com.example.rates failed", **more: Any) -> Notice:
    return Notice(kind=NoticeKind.FAILED, subject=subject, **more)


# --- The way ---------------------------------------------------------------------------------------------------------


def test_a_mail_goes_out_over_tls_after_a_login(
    secure: MailServer, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    chosen = settings(secure.port, security="starttls", user=USER, password_file=str(tmp_path / "password"))
    told = notice(text="no route to host", dataset="com.example.rates", code="E404", run="r1", time=Timestamp(0))
    MailChannel(ANN, chosen).send([told])
    mail = secure.mails.get(timeout=PATIENCE)
    assert (mail["From"], mail["To"]) == ("odf@example.org", "ann@example.org")
    assert mail["Subject"] == "[odf] com.example.rates failed"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail.get_content_type() == "text/plain"
    assert mail.get_content().replace("\r\n", "\n") == (
        "failed: com.example.rates failed\ndataset: com.example.rates\ntime: 1970-01-01T00:00:00Z\n"
        "error: E404; `odf help E404` explains it\nrun: r1\nno route to host\n"
    )


def test_a_mail_goes_out_over_tls_from_the_first_byte(
    tls: ssl.SSLContext, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with mail_server(tls, implicit=True) as server:
        MailChannel(ANN, settings(server.port, security="tls")).send([notice()])
        assert server.mails.get(timeout=PATIENCE)["To"] == "ann@example.org"


def test_a_certificate_that_nobody_knows_is_refused(secure: MailServer) -> None:
    with pytest.raises(NotDelivered, match="its certificate is not trusted") as caught:
        MailChannel(ANN, settings(secure.port, security="starttls", user=USER, password=PASSWORD)).send([notice()])
    assert "SSL_CERT_FILE" in (caught.value.hint or "")


def test_a_wrong_password_is_told_without_it(
    secure: MailServer, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with pytest.raises(NotDelivered, match="535") as caught:
        MailChannel(ANN, settings(secure.port, security="starttls", user=USER, password="guessed")).send([notice()])
    assert "guessed" not in str(caught.value)


def test_a_password_never_goes_out_in_the_clear(plain: MailServer) -> None:
    with pytest.raises(UsageError, match="encrypted"):
        MailChannel(ANN, settings(plain.port, user=USER, password=PASSWORD)).send([notice()])


def test_a_server_that_does_not_speak_tls_gets_no_mail(plain: MailServer) -> None:
    with pytest.raises(NotDelivered, match="STARTTLS"):
        MailChannel(ANN, settings(plain.port, security="starttls")).send([notice()])


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"server": None}, "mail.server or mail.sender is not set"),
        ({"sender": None}, "mail.server or mail.sender is not set"),
        ({"server": "no.such.invalid"}, "No mail to ann@example.org by no.such.invalid"),
        ({"port": 1}, "Connection refused"),
        ({"user": USER, "security": "starttls", "password_file": "/no/such"}, "Cannot read the password"),
    ],
)
def test_what_is_wrong_is_said(plain: MailServer, more: dict[str, Any], says: str) -> None:
    with pytest.raises(NotDelivered, match=says):
        MailChannel(ANN, settings(**{"port": plain.port, **more})).send([notice()])


def test_a_server_that_refuses_says_why(plain: MailServer) -> None:
    plain.answers.put("552 the mailbox is full")
    with pytest.raises(Refused, match="552 the mailbox is full"):
        MailChannel(ANN, settings(plain.port)).send([notice()])


def test_a_server_that_trickles_is_given_up() -> None:
    """It greets without end, a byte at a time: each of them comes in time."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def trickle() -> None:
            connection, _ = listener.accept()
            with connection:
                try:
                    while not over.wait(0.01):
                        connection.sendall(b"2")
                except OSError:
                    return

        thread = threading.Thread(target=trickle)
        thread.start()
        try:
            channel = MailChannel(ANN, settings(listener.getsockname()[1]), patience=0.3)
            with pytest.raises(NotDelivered):
                channel.send([notice()])
        finally:
            over.set()
            thread.join()


# --- The mail --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "subject",
    ["x\r\nBcc: eve@example.org", "x\nX-Evil: 1", "<script>alert(1)</script>", "Größe und 大小 \u202e", "x" * 10**6],
)
def test_names_of_others_make_no_headers(plain: MailServer, subject: str) -> None:
    MailChannel(ANN, settings(plain.port)).send([notice(subject, text=subject, dataset="a\r\nb")])
    mail = plain.mails.get(timeout=PATIENCE)
    headers = {"From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type"}
    allowed = headers | {"Content-Transfer-Encoding", "X-Peer", "X-MailFrom", "X-RcptTo"}
    assert set(mail.keys()) <= allowed
    assert mail.get_content_type() == "text/plain"
    assert "\n" not in str(mail["Subject"])


def test_the_id_of_a_mail_follows_from_its_notices() -> None:
    one, other = notice(), notice()
    assert mail_of([one], "odf@x.org", "a@x.org")["Message-ID"] == mail_of([one], "odf@x.org", "a@x.org")["Message-ID"]
    ids = {mail_of(some, "odf@x.org", "a@x.org")["Message-ID"] for some in ([one], [other], [one, other])}
    assert len(ids) == 3


def test_many_notices_are_counted_not_spelled_out() -> None:
    text = mail_of([notice(f"number {n}", text="y" * 10**5) for n in range(1000)], "odf@x.org", "a@x.org").get_content()
    assert "number 99\n" in text
    assert "number 100\n" not in text
    assert "900 more notices are not listed." in text


# --- Digests ---------------------------------------------------------------------------------------------------------


def test_notices_of_a_minute_are_one_mail_once_it_is_over(plain: MailServer, tmp_path: Path) -> None:
    workspace = Workspace.init(tmp_path)
    for key, value in {"server": "127.0.0.1", "port": plain.port, "security": "none", "sender": "o@x.org"}.items():
        workspace.config.set(f"mail.{key}", str(value))
    now = [60.0 * 100 + 30]
    notices = Notices(workspace, clock=lambda: now[0])
    notices.receivers.add(ChannelKind.MAIL, "ann@example.org")
    for minute, second in ((99, 1), (99, 59), (100, 0), (100, 29)):
        notices.post(notice(f"at {minute}:{second}", time=Timestamp(minute * MINUTE + second * 10**9)))
    notices.deliver()
    assert plain.mails.get(timeout=PATIENCE)["Subject"] == "[odf] at 99:1 (and 1 more)"
    notices.deliver()
    assert plain.mails.empty()
    notices.post(notice("the last one", time=Timestamp(101 * MINUTE)))
    now[0] += 30
    notices.deliver()
    assert plain.mails.get(timeout=PATIENCE)["Subject"] == "[odf] at 100:0 (and 1 more)"
    assert plain.mails.empty()
    notices.deliver(is_last=True)
    assert plain.mails.get(timeout=PATIENCE)["Subject"] == "[odf] the last one", "a process that ends keeps nothing"
