"""`odf notify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.servers.webhooks import receiving

if TYPE_CHECKING:
    from cli.conftest import Odf

URL = "https://user:pass@hooks.example.com/rates?key=s3cr3t"


def test_receivers_are_added_listed_without_secrets_and_deleted(odf: Odf, workspace: Path) -> None:
    assert odf("notify", "list").err.startswith("No receivers")
    assert odf("notify", "add", "webhook", URL).out.startswith("whsec_")
    done = odf("notify", "add", "mail", "ann@example.org", "--on", "failed, late", "--dataset", "com.example.%")
    assert "odf notify test ann@example.org" in done.err
    listed = odf("notify", "list", "-o", "json")
    assert listed.json == [
        {"way": "mail", "target": "ann@example.org", "on": "failed,late", "dataset": "com.example.%"},
        {"way": "webhook", "target": "https://hooks.example.com/rates", "on": None, "dataset": None},
    ]
    again = odf("notify", "add", "webhook", URL)
    assert again.code == 1
    assert "s3cr3t" not in again.err
    assert odf("notify", "delete", "https://hooks.example.com/rates").code == 0
    assert odf("notify", "delete", URL).code == 1
    assert odf("notify", "delete", "ann@example.org").code == 0
    assert odf("notify", "list", "-o", "json").json == []


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("fax", "1"), "not by 'fax'"),
        (("webhook", "ftp://x"), "Not an http or https URL"),
        (("mail", "ann"), "Not a mail address"),
        (("mail", "ann@example.org\nBcc: eve@example.org"), "Not a mail address"),
        (("mail", "ann@example.org,eve@example.org"), "Not a mail address"),
        (("mail", "ann@example.org", "--on", "faild"), "unknown kind of notice 'faild'"),
        (("mail", "ann@example.org", "--dataset", "a b"), "Not a pattern"),
    ],
)
def test_nonsense_is_refused(odf: Odf, workspace: Path, words: tuple[str, ...], says: str) -> None:
    done = odf("notify", "add", *words)
    assert done.code == 2
    assert says in done.says


def test_a_receiver_is_tried(odf: Odf, workspace: Path) -> None:
    with receiving() as receiver:
        odf("notify", "add", "webhook", receiver.url)
        shown = receiver.url.partition("?")[0]
        assert odf("notify", "test", shown).code == 0
        assert b'"event": "test"' in receiver.calls.get_nowait()[1]
        receiver.statuses.put(500)
        refused = odf("notify", "test", shown)
    assert refused.code == 1
    assert "answers with status 500 (E792)" in refused.says
    assert "s3cr3t" not in refused.err
    assert "mail.server or mail.sender is not set" in (
        odf("notify", "add", "mail", "ann@example.org") and odf("notify", "test", "ann@example.org").err
    )
