"""`odf webhook`: URLs that `odf serve` calls when a dataset has a new head."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.cli.grammar import Form, Name, command, group, session_of

if TYPE_CHECKING:
    from odfpy.serving.notifications.webhooks import Webhooks

app = group("Webhooks: URLs that `odf serve` calls when a dataset has a new head.")

Url = Annotated[str, typer.Argument(help="The http or https URL to call.", metavar="URL")]


@command(app, "odf webhook add com.example.rates https://hooks.example.com/rates")
def add(context: typer.Context, name: Name, url: Url) -> None:
    """Add a webhook, and print the secret that signs its calls."""
    webhook = _webhooks(context, name).add(url)
    output = session_of(context).output
    output.info("The receiver checks the header webhook-signature with this secret (standardwebhooks.com):")
    output.text(webhook.secret)


@command(app, "odf webhook list com.example.rates", name="list")
def list_(context: typer.Context, name: Name, form: Form = None) -> None:
    """List the webhooks of a dataset, without their secrets."""
    output = session_of(context).output_as(form)
    webhooks = _webhooks(context, name)
    found = webhooks.list()
    if not found and output.for_people:
        output.info("No webhooks; add one with `odf webhook add NAME URL`.")
        return
    records = [{"url": item.shown_url, "lastHead": webhooks.last_told(item)} for item in found]
    output.records(records, {"URL": "url", "Last head sent": "lastHead"})


@command(app, "odf webhook delete com.example.rates https://hooks.example.com/rates")
def delete(context: typer.Context, name: Name, url: Url) -> None:
    """Delete a webhook."""
    _webhooks(context, name).delete(url)
    session_of(context).output.info(f"{name} no longer calls it")


def _webhooks(context: typer.Context, name: str) -> Webhooks:
    from odfpy.serving.notifications.webhooks import Webhooks

    return Webhooks(session_of(context).workspace.storage.get(name))
