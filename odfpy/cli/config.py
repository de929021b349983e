"""`odf config`: settings."""

from __future__ import annotations

from typing import Annotated

import typer

from odfpy.cli.grammar import Form, command, group, session_of

app = group("Settings of the workspace and of the user.")


def _complete_keys() -> list[tuple[str, str]]:
    from odfpy.coordinator.config import SETTINGS

    return [(key, setting.description) for key, setting in SETTINGS.items()]


Key = Annotated[str, typer.Argument(help="Name of the setting.", metavar="KEY", autocompletion=_complete_keys)]


@command(app, "odf config list", "odf config list -o yaml", name="list")
def list_(context: typer.Context, form: Form = None) -> None:
    """List all settings, their values, and where these are from."""
    session = session_of(context)
    records = [
        {"key": item.setting.key, "value": item.value, "from": item.origin, "meaning": item.setting.description}
        for item in session.workspace.config.items()
    ]
    session.output_as(form).records(records, {name.capitalize(): name for name in ("key", "value", "from", "meaning")})


@command(app, "odf config get engine.memory")
def get(context: typer.Context, key: Key, form: Form = None) -> None:
    """Print the value of a setting; nothing if it has none."""
    session = session_of(context)
    output = session.output_as(form)
    item = session.workspace.config.item(key)
    if not output.for_people:
        output.tree({"key": item.setting.key, "value": item.value, "from": item.origin})
    elif item.value is not None:
        output.text(_text(item.value))


@command(app, "odf config set engine.memory 4g", "odf config set fetch.timeout 60 --user", name="set")
def set_(
    context: typer.Context,
    key: Key,
    value: Annotated[
        str | None, typer.Argument(help="The value; without one the setting is taken back.", metavar="VALUE")
    ] = None,
    user: Annotated[bool, typer.Option("--user", help="For all workspaces of this user.")] = False,
) -> None:
    """Change a setting of this workspace, or of the user."""
    session = session_of(context)
    config = session.workspace.config
    config.set(key, value, scope="user" if user else "workspace")
    item = config.item(key)
    now = "not set" if item.value is None else f"{_text(item.value)} ({item.origin})"
    session.output.say(f"{item.setting.key} is now {now}")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
