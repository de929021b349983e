"""`odf config`: settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.cli.grammar import Form, command, complete_names, group, session_of

if TYPE_CHECKING:
    from odfpy.cli.session import Session
    from odfpy.coordinator.storage.config import Config

app = group("Settings of the workspace, of the user, and of single datasets.")


def _complete_keys(ctx: typer.Context) -> list[tuple[str, str]]:
    from odfpy.settings.sections import DATASET_SETTINGS, SETTINGS

    settings = SETTINGS if ctx.params.get("dataset") is None else DATASET_SETTINGS
    return [(key, setting.description) for key, setting in settings.items()]


Key = Annotated[str, typer.Argument(help="Name of the setting.", metavar="KEY", autocompletion=_complete_keys)]
Dataset = Annotated[
    str | None,
    typer.Option(
        "--dataset",
        "-d",
        help="Settings of this root dataset instead of the workspace.",
        metavar="NAME",
        autocompletion=complete_names,
    ),
]
User = Annotated[bool, typer.Option("--user", help="For all workspaces of this user.")]


@command(app, "odf config list", "odf config list --dataset com.example.rates", "odf config list -o yaml", name="list")
def list_(context: typer.Context, dataset: Dataset = None, form: Form = None) -> None:
    """List all settings, their values and their origins; secrets are not shown."""
    session = session_of(context)
    records = [
        {"key": item.setting.key, "value": item.shown, "from": item.origin, "meaning": item.setting.description}
        for item in _config(session, dataset).items()
    ]
    session.output_as(form).records(records, {name.capitalize(): name for name in ("key", "value", "from", "meaning")})


@command(app, "odf config get engine.memory", "odf config get --dataset com.example.rates watermark.lag")
def get(context: typer.Context, key: Key, dataset: Dataset = None, form: Form = None) -> None:
    """Print the value of a setting; nothing if it is not set."""
    session = session_of(context)
    output = session.output_as(form)
    item = _config(session, dataset).item(key)
    if not output.for_people:
        output.tree({"key": item.setting.key, "value": item.value, "from": item.origin})
    elif item.value is not None:
        output.text(_text(item.value))


@command(
    app,
    "odf config set engine.memory 4g",
    "odf config set fetch.timeout 60 --user",
    "odf config set --dataset com.example.rates watermark.lag 1d",
    name="set",
)
def set_(
    context: typer.Context,
    key: Key,
    value: Annotated[
        str | None, typer.Argument(help="The value; without one, the setting is reset.", metavar="VALUE")
    ] = None,
    dataset: Dataset = None,
    user: User = False,
) -> None:
    """Change a setting of this workspace, of the user, or of a dataset."""
    _change(session_of(context), dataset, key, value, user=user)


@command(app, "odf config unset engine.memory", "odf config unset --dataset com.example.rates watermark.lag")
def unset(context: typer.Context, key: Key, dataset: Dataset = None, user: User = False) -> None:
    """Unset a setting of this workspace, of the user, or of a dataset."""
    _change(session_of(context), dataset, key, None, user=user)


def _config(session: Session, dataset: str | None) -> Config:
    return session.workspace.config if dataset is None else session.workspace.datasets.settings(dataset)


def _change(session: Session, dataset: str | None, key: str, value: str | None, *, user: bool) -> None:
    config = _config(session, dataset)
    config.set(key, value, for_user=user)
    item = config.item(key)
    now = "not set" if item.value is None else f"{_text(item.shown)} ({item.origin})"
    session.output.info(f"{item.setting.key} is now {now}")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
