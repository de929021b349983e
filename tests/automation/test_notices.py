"""Notices: who gets them, in which order, how often, and what bad receivers do to others."""

from __future__ import annotations

import json
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.processes.forking import ForkingProcess
from support.servers.certificates import self_signed
from support.servers.serving import PATIENCE, wait_until
from support.servers.static_server import static_server
from support.servers.webhooks import WebhookReceiver, receiving

from odfpy.automation.notifications.channels import NotDelivered
from odfpy.automation.notifications.notice import Notice, NoticeKind
from odfpy.automation.notifications.notices import Notices
from odfpy.automation.notifications.queue import MAX_ATTEMPTS, MAX_DELAY, NoticeQueue
from odfpy.automation.notifications.receivers import ChannelKind, Receiver
from odfpy.automation.notifications.sender import NoticeSender
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.http.standard_webhooks import signed_headers


class Clock:
    """A clock that a test sets."""

    def __init__(self, now: float = 1e9) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def notices(tmp_path: Path, clock: Clock) -> Notices:
    return Notices(Workspace.init(tmp_path), clock=clock)


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    with receiving() as receiver:
        yield receiver


def failed(subject: str = "com.example.rates failed", **more: Any) -> Notice:
    return Notice(kind=NoticeKind.FAILED, subject=subject, **{"dataset": "com.example.rates", **more})


def called(receiver: WebhookReceiver) -> list[dict[str, Any]]:
    """What it was told since somebody asked last."""
    return [json.loads(receiver.calls.get_nowait()[1]) for _ in range(receiver.calls.qsize())]


def waiting(notices: Notices, receiver: Receiver, workspace: Path) -> list[str]:
    return [notice.subject for notice in NoticeQueue(workspace / ".odf", receiver.id).waiting().values()]


@contextmanager
def silent_server() -> Iterator[str]:
    """Takes connections, and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


# --- Webhooks --------------------------------------------------------------------------------------------------------


def test_a_webhook_is_told_with_a_signature_and_only_once(notices: Notices, receiver: WebhookReceiver) -> None:
    added = notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
    notice = failed(text="no route", code="E404", run="r1")
    notices.post(notice)
    notices.deliver()
    headers, body = receiver.calls.get(timeout=PATIENCE)
    assert json.loads(body) == {
        "event": "failed",
        "id": notice.id,
        "time": str(notice.time),
        "dataset": "com.example.rates",
        "subject": "com.example.rates failed",
        "text": "no route",
        "code": "E404",
        "run": "r1",
    }
    timestamp = int(headers["webhook-timestamp"])
    expected = signed_headers(added.secret or "", notice.id, timestamp, body, receiver="it")
    assert {name: headers[name.lower()] for name in expected} == expected
    notices.deliver()
    assert called(receiver) == []


def test_notices_come_in_the_order_of_their_times(notices: Notices, receiver: WebhookReceiver) -> None:
    notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
    for second in (3, 1, 2):
        notices.post(failed(f"{second}", time=Timestamp(second * 10**9)))
    notices.deliver()
    assert [one["subject"] for one in called(receiver)] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("on", "datasets", "told"),
    [
        ((), None, ["failed", "late", "none"]),
        ((NoticeKind.LATE,), None, ["late"]),
        ((), "com.example.%", ["failed", "late"]),
        ((NoticeKind.FAILED,), "org.%", []),
    ],
)
def test_a_receiver_gets_what_it_wants(
    notices: Notices, receiver: WebhookReceiver, on: tuple[NoticeKind, ...], datasets: str | None, told: list[str]
) -> None:
    notices.receivers.add(ChannelKind.WEBHOOK, receiver.url, on=on, datasets=datasets)
    notices.post(failed("failed"))
    notices.post(Notice(kind=NoticeKind.LATE, subject="late", dataset="com.example.rates"))
    notices.post(Notice(kind=NoticeKind.RECOVERED, subject="none"))
    notices.deliver()
    assert [one["subject"] for one in called(receiver)] == told


def test_what_was_posted_before_somebody_was_added_is_not_for_them(notices: Notices, receiver: WebhookReceiver) -> None:
    notices.post(failed())
    notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
    notices.deliver()
    assert called(receiver) == []


def test_what_waits_for_somebody_who_was_deleted_is_dropped(notices: Notices, receiver: WebhookReceiver) -> None:
    added = notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
    notices.post(failed())
    notices.receivers.delete(added)
    notices.deliver()
    notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
    notices.deliver()
    assert called(receiver) == []


# --- Trying again ----------------------------------------------------------------------------------------------------


def test_a_failure_is_tried_again_later_with_the_same_id(
    notices: Notices, receiver: WebhookReceiver, clock: Clock
) -> None:
    notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
    receiver.statuses.put(500)
    notices.post(failed())
    notices.deliver()
    notices.deliver()  # too early
    (first,) = called(receiver)
    clock.now += 11
    notices.deliver()
    assert [one["id"] for one in called(receiver)] == [first["id"]]


def test_another_process_knows_what_was_tried(
    notices: Notices, receiver: WebhookReceiver, clock: Clock, tmp_path: Path
) -> None:
    notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
    receiver.statuses.put(500)
    notices.post(failed())
    notices.deliver()
    other = Notices(Workspace.open(tmp_path), clock=clock)
    other.deliver()
    assert len(called(receiver)) == 1
    clock.now += 11
    other.deliver()
    assert len(called(receiver)) == 1


def test_after_some_attempts_a_notice_is_given_up_with_a_line_of_the_log(
    notices: Notices, receiver: WebhookReceiver, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
    for _ in range(MAX_ATTEMPTS):
        receiver.statuses.put(503)
    notices.post(failed())
    for _ in range(MAX_ATTEMPTS + 3):
        notices.deliver()
        clock.now += MAX_DELAY
    assert len(called(receiver)) == MAX_ATTEMPTS
    assert [record.message for record in caplog.records if record.levelno == logging.ERROR] == [
        f"a notice to {receiver.url.partition('/hook')[0]} is dropped: com.example.rates failed"
    ]
    assert "s3cr3t" not in caplog.text


def test_a_notice_that_is_refused_holds_up_no_other(
    notices: Notices, receiver: WebhookReceiver, tmp_path: Path
) -> None:
    added = notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
    receiver.statuses.put(400)
    notices.post(failed("refused", time=Timestamp(1)))
    notices.post(failed("welcome", time=Timestamp(2)))
    notices.deliver()
    assert [one["subject"] for one in called(receiver)] == ["refused", "welcome"]
    assert waiting(notices, added, tmp_path) == ["refused"]


def test_a_clock_that_is_set_back_makes_nobody_wait(notices: Notices, receiver: WebhookReceiver, clock: Clock) -> None:
    notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
    receiver.statuses.put(500)
    notices.post(failed())
    notices.deliver()
    clock.now -= 86_400
    notices.deliver()
    assert len(called(receiver)) == 2


# --- Bad receivers, and bad texts ------------------------------------------------------------------------------------


def test_a_receiver_that_hangs_holds_up_no_other(notices: Notices, receiver: WebhookReceiver, tmp_path: Path) -> None:
    with silent_server() as url:
        hanging = notices.receivers.add(ChannelKind.WEBHOOK, url)
        notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
        notices.post(failed("first"))
        delivery = threading.Thread(target=notices.deliver, daemon=True)
        delivery.start()
        assert json.loads(receiver.calls.get(timeout=PATIENCE)[1])["subject"] == "first"
        notices.post(failed("second"))

        def has_come() -> bool:
            notices.deliver(wait=0)  # as a scheduler does, again and again: the thread of the first may still end
            return not receiver.calls.empty()

        wait_until(has_come)
        assert json.loads(receiver.calls.get()[1])["subject"] == "second"
        assert waiting(notices, hanging, tmp_path) == ["first", "second"]
    delivery.join(PATIENCE)


@pytest.mark.parametrize(
    ("url", "says"), [("http://127.0.0.1:1/", "Connection refused"), ("http://no.such.invalid/", "Cannot read")]
)
def test_a_receiver_that_is_not_there_is_told_in_the_log(
    notices: Notices, tmp_path: Path, caplog: pytest.LogCaptureFixture, url: str, says: str
) -> None:
    added = notices.receivers.add(ChannelKind.WEBHOOK, url)
    notices.post(failed())
    notices.deliver()
    assert says in caplog.text or "Name or service" in caplog.text
    assert waiting(notices, added, tmp_path) == ["com.example.rates failed"]


def test_a_receiver_with_a_certificate_that_nobody_knows_is_told_nothing(
    notices: Notices, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, caplog: pytest.LogCaptureFixture
) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*self_signed(tmp_path_factory.mktemp("tls")))
    with static_server(tmp_path, context) as site:
        added = notices.receivers.add(ChannelKind.WEBHOOK, f"{site.url}/hook")
        notices.post(failed())
        notices.deliver()
        assert site.requests == []
    assert "its certificate is not trusted" in caplog.text
    assert waiting(notices, added, tmp_path) == ["com.example.rates failed"]


def test_texts_of_others_are_cut_and_give_no_orders() -> None:
    notice = failed("one\r\nBcc: eve@example.org\x1b[2J \ud800" + "x" * 10**6, text="<b>&\n\x00" + "y" * 10**6)
    assert notice.subject.startswith("one\\r\\nBcc: eve@example.org\\x1b[2J ?xx")
    assert len(notice.subject) < 250
    assert notice.text.startswith("<b>&\n\\x00yy")
    assert notice.text.endswith(" more characters)")
    assert len(notice.text) < 10_100


def test_damaged_files_hold_up_nothing(notices: Notices, receiver: WebhookReceiver, tmp_path: Path) -> None:
    damaged = notices.receivers.add(ChannelKind.WEBHOOK, "http://127.0.0.1:1/")
    added = notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
    folder = tmp_path / ".odf" / "automation"
    (folder / "receivers" / f"{damaged.id}.yaml").write_text("{")
    notices.post(failed())
    (folder / "notices" / added.id / "0-x.yaml").write_bytes(b"\xff")
    (folder / "notices" / added.id / "attempts.json").write_text('{"failures": "many", "counts": 3}')
    notices.deliver()
    assert len(called(receiver)) == 1
    assert waiting(notices, added, tmp_path) == []


def test_what_is_sent_past_all_others_raises(notices: Notices, receiver: WebhookReceiver) -> None:
    added = notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
    receiver.statuses.put(404)
    with pytest.raises(NotDelivered, match="answers with status 404"):
        notices.send(added, failed())
    notices.send(added, failed())


def test_secrets_are_readable_by_their_owner_only(notices: Notices, tmp_path: Path) -> None:
    added = notices.receivers.add(ChannelKind.WEBHOOK, "https://user:pass@hooks.example.com/x?key=s3cr3t")
    (file,) = (tmp_path / ".odf" / "automation" / "receivers").glob("*.yaml")
    assert file.stat().st_mode & 0o777 == 0o600
    assert added.shown == "https://hooks.example.com/x"
    assert added.secret is not None
    assert all(secret not in repr(added) for secret in ("s3cr3t", "pass", added.secret))


# --- Beside a scheduler ----------------------------------------------------------------------------------------------


def test_what_a_scheduler_says_goes_out_beside_it(notices: Notices, receiver: WebhookReceiver) -> None:
    notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
    row = {"id": "r1", "error_code": "E404", "outcome": "failed"}
    with NoticeSender(notices, interval=0.01) as told:
        told.post(NoticeKind.FAILED, "com.example.rates", "com.example.rates: pull failed: no\nroute", row)
        found = json.loads(receiver.calls.get(timeout=PATIENCE)[1])
        told.post(NoticeKind.LATE, "com.example.rates", "said last")
    assert (found["subject"], found["text"]) == ("com.example.rates: pull failed: no", "route")
    assert (found["code"], found["run"]) == ("E404", "r1")
    assert json.loads(receiver.calls.get(timeout=PATIENCE)[1])["subject"] == "said last"


def test_a_notice_that_cannot_be_written_harms_no_scheduler(
    notices: Notices, receiver: WebhookReceiver, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
    (tmp_path / ".odf" / "automation" / "notices").write_text("a file in the place of the folder")
    NoticeSender(notices).post(NoticeKind.LATE, "com.example.rates", "said in vain")
    (said,) = caplog.messages
    assert said.startswith("a notice is lost: ")


# --- Kills -----------------------------------------------------------------------------------------------------------

_PROGRAM = """
from odfpy.automation.notifications.notice import Notice, NoticeKind
from odfpy.automation.notifications.notices import Notices
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp

def run(line):
    verb, folder, last = line.split()
    notices = Notices(Workspace.open(folder))
    steps = die_at(int(last), ())
    if verb == "post":
        notices.post(Notice(kind=NoticeKind.FAILED, subject="killed", time=Timestamp(1), id="one"))
    else:
        notices.deliver()
    return steps, 0
"""


class Killed(ForkingProcess):
    """Posts and delivers, and is killed before one of its changes of files."""

    def __init__(self) -> None:
        super().__init__(_PROGRAM)

    def run(self, verb: str, folder: Path, last: int) -> bool:
        """Return whether it came to its end."""
        self._start(f"{verb} {folder} {last}")
        return self._outcome()[0] == 0


def test_no_kill_loses_a_notice(tmp_path: Path, receiver: WebhookReceiver) -> None:
    killed = Killed()
    try:
        notices = Notices(Workspace.init(tmp_path))
        added = notices.receivers.add(ChannelKind.WEBHOOK, receiver.url)
        for verb in ("post", "deliver"):
            last = 1
            while not killed.run(verb, tmp_path, last):
                last += 1
            assert last > 1
        assert waiting(notices, added, tmp_path) == []
    finally:
        killed.close()
    assert {one["id"] for one in called(receiver)} == {"one"}


def test_a_killed_delivery_is_repeated_with_the_same_id(tmp_path: Path, receiver: WebhookReceiver) -> None:
    killed = Killed()
    try:
        Notices(Workspace.init(tmp_path)).receivers.add(ChannelKind.WEBHOOK, receiver.url)
        assert killed.run("post", tmp_path, 0)
        assert not killed.run("deliver", tmp_path, 1)  # it was told; then came the kill, before the file went
        assert killed.run("deliver", tmp_path, 0)
    finally:
        killed.close()
    assert [one["id"] for one in called(receiver)] == ["one", "one"]
