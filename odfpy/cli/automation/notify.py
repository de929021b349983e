"""`odf notify`: receivers of notices about unattended events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.cli.grammar import Form, command, group, session_of
from odfpy.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from odfpy.automation.notifications.notice import NoticeKind
    from odfpy.automation.notifications.notices import Notices

app = group("Notifications by webhook or mail, for datasets that fail, recover or are late.")

_CHANNELS = ("webhook", "mail")
_KINDS = ("failed", "recovered", "late", "on-time")

Target = Annotated[str, typer.Argument(help="The URL or the mail address.", metavar="TARGET")]


@command(
    app,
    "odf notify add webhook https://hooks.example.com/odf",
    "odf notify add mail ann@example.org --on failed,late --dataset com.example.%",
)
def add(
    context: typer.Context,
    channel: Annotated[
        str,
        typer.Argument(help="webhook or mail.", metavar="webhook|mail", autocompletion=lambda: list(_CHANNELS)),
    ],
    target: Target,
    on: Annotated[
        str | None,
        typer.Option(
            "--on",
            help="Only these kinds, comma-separated: failed, recovered, late, on-time.",
            metavar="KINDS",
            autocompletion=lambda: list(_KINDS),
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option("--dataset", help="Only for this dataset, or the datasets of a pattern.", metavar="PATTERN"),
    ] = None,
) -> None:
    """Add a receiver of notifications; for a webhook, print the secret that signs its calls."""
    from odfpy.automation.notifications.receivers import ChannelKind

    if channel not in _CHANNELS:
        raise UsageError(
            f"Notices are sent by webhook or mail, not by {channel!r}", hint=did_you_mean(channel, _CHANNELS)
        )
    receiver = _notices(context).receivers.add(ChannelKind(channel), target, on=_kinds(on), datasets=dataset)
    output = session_of(context).output
    if receiver.secret is not None:
        output.info("The receiver checks the header webhook-signature with this secret (standardwebhooks.com):")
        output.text(receiver.secret)
    else:
        output.info(f"Added the receiver {receiver.shown}; test it with `odf notify test {receiver.shown}`.")


@command(app, "odf notify list", name="list")
def list_(context: typer.Context, form: Form = None) -> None:
    """List the receivers, without secrets."""
    output = session_of(context).output_as(form)
    found = _notices(context).receivers.list()
    if not found and output.for_people:
        output.info("No receivers; add one with `odf notify add mail ann@example.org`.")
        return
    records = [
        {
            "way": item.way.value,
            "target": item.shown,
            "on": ",".join(kind.value for kind in item.on) or None,
            "dataset": item.datasets,
        }
        for item in found
    ]
    output.records(records, {"Way": "way", "Target": "target", "On": "on", "Dataset": "dataset"})


@command(app, "odf notify delete ann@example.org")
def delete(context: typer.Context, target: Target) -> None:
    """Delete a receiver, and drop its pending notifications."""
    receivers = _notices(context).receivers
    receiver = receivers.get(target)
    receivers.delete(receiver)
    session_of(context).output.info(f"Deleted the receiver {receiver.shown}")


@command(app, "odf notify test ann@example.org")
def test(context: typer.Context, target: Target) -> None:
    """Send a test notification; fail if the receiver does not accept it."""
    from odfpy.automation.notifications.notice import Notice, NoticeKind

    session = session_of(context)
    notices = _notices(context)
    receiver = notices.receivers.get(target)
    text = "This is a test notification, sent by `odf notify test`. No action is needed."
    notices.send(receiver, Notice(kind=NoticeKind.TEST, subject="A test of notifications", text=text))
    session.output.info(f"{receiver.shown} has accepted it")


def _kinds(text: str | None) -> list[NoticeKind]:
    """Return the kinds named by an option."""
    from odfpy.automation.notifications.notice import NoticeKind

    words = [word.strip() for word in text.split(",")] if text is not None else []
    for word in words:
        if word not in _KINDS:
            raise UsageError(
                f"--on: unknown kind of notice {word!r}",
                hint=did_you_mean(word, _KINDS, otherwise=f"There are: {', '.join(_KINDS)}."),
            )
    return [NoticeKind(word) for word in dict.fromkeys(words)]


def _notices(context: typer.Context) -> Notices:
    from odfpy.automation.notifications.notices import Notices

    return Notices(session_of(context).workspace)
