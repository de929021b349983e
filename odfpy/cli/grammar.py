"""The declaration of commands with Typer, and the common behaviour of all commands.

- Options of the whole program (`-w`, `-q`, `-v`) can stand before or after the command.
- The help of a command ends with examples, one per line.
- Values are passed on as text; commands parse numbers and formats themselves. For its own conversions, Typer
  imports Pydantic, which takes longer than most commands.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from odfpy.cli.screen.output import Format
from odfpy.cli.session import Session
from odfpy.errors import InvalidValue, OdfError, UsageError, did_you_mean

if TYPE_CHECKING:
    from odfpy.data.timestamp import Timestamp

GLOBAL_OPTIONS = ("workspace", "quiet", "verbose")

Function = TypeVar("Function", bound=Callable[..., Any])


def session_of(context: Any) -> Session:
    """Return the session of a command."""
    session = context.find_root().ensure_object(Session)
    assert isinstance(session, Session)  # noqa: S101 - nothing else sets the object
    return session


class _Common:
    """Behavior shared by commands and groups."""

    epilog: str | None

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the command's parameters, then those of the whole program, then `--help`."""
        own: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        if ctx.parent is None:
            return own
        shared = [param for param in ctx.find_root().command.params if param.name in GLOBAL_OPTIONS]
        return [*own[:-1], *shared, *own[-1:]]

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse arguments, and pass options of the whole program to the session, at any position."""
        for param in self.get_params(ctx):
            _keep_text(param)
        try:
            rest = super().parse_args(ctx, args)  # type: ignore[misc]
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:  # of an option without its value; the hint names the command
                error.ctx = ctx  # type: ignore[attr-defined]
            raise
        session_of(ctx).configure(**{name: ctx.params.pop(name, None) for name in GLOBAL_OPTIONS})
        return rest

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line after the command name."""
        arguments = [param for param in self.get_params(ctx) if param.param_type_name == "argument"]
        return ["[OPTIONS]", *map(_usage_of, arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options, one per line."""
        params = self.get_params(ctx)
        arguments = [(_usage_of(param), param.help) for param in params if param.param_type_name == "argument"]
        options = [param.get_help_record(ctx) for param in params if param.param_type_name == "option"]
        for title, lines in (("Arguments", arguments), ("Options", options)):
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        del ctx
        if self.epilog:
            lines = self.epilog.splitlines()
            with formatter.section("Examples" if len(lines) > 1 else "Example"):
                for line in lines:
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class Command(_Common, TyperCommand):
    """A single command."""


class Group(_Common, TyperGroup):
    """A group of commands with a common first word."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse arguments as commands do. If there are none, show the help and exit with an error."""
        if not args and not ctx.resilient_parsing:
            sys.stderr.write(f"{ctx.get_help()}\n")
            raise typer.Exit(2)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line as commands do, with a placeholder for the command."""
        return [*super().collect_usage_pieces(ctx), "COMMAND ..."]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options and the commands of the group."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def summaries(self, ctx: Any) -> list[tuple[str, str]]:
        """Return the names of the commands with their summaries."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        return [(name, one.get_short_help_str()) for name, one in found if one is not None]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve the command that the arguments begin with.

        Raises:
            UsageError: the command is unknown; the message has a suggestion.
        """
        names = self.list_commands(ctx)
        if args[0] not in names and not ctx.resilient_parsing:
            hint = did_you_mean(args[0], names, otherwise=f"`{ctx.command_path} --help` lists the commands.")
            raise UsageError(f"No such command: {' '.join([*ctx.command_path.split()[1:], args[0]])}", hint=hint)
        return super().resolve_command(ctx, args)


def _usage_of(argument: Any) -> str:
    text = f"{argument.metavar}{'...' if argument.nargs == -1 else ''}"
    return text if argument.required else f"[{text}]"


def _keep_text(param: Any) -> None:
    """Make a parameter return its text unconverted, except for those that Typer handles itself, such as `--help`."""
    if "process_value" in vars(param):
        return
    convert = param.process_value

    def process_value(ctx: Any, value: Any) -> Any:
        is_absent = value is None or value == ()
        is_for_typer = param.required if is_absent else param.callback is not None
        return convert(ctx, value) if is_for_typer else value

    param.process_value = process_value


def group(help_: str) -> typer.Typer:
    """Create a group; `command` adds commands to it."""
    return typer.Typer(cls=Group, help=help_, rich_markup_mode=None)


def command(
    to: typer.Typer, *examples: str, name: str | None = None, cls: type[Command] = Command
) -> Callable[[Function], Function]:
    """Declare a function as a command.

    Args:
        to: the group of the command.
        examples: command lines for its help.
        name: name of the command, if it differs from that of the function.
        cls: class that parses the arguments.
    """
    return to.command(name, cls=cls, epilog="\n".join(examples))


# --- Parameters shared by several commands ---------------------------------------------------------------------------


def complete_names(ctx: typer.Context, incomplete: str) -> Iterable[tuple[str, str]]:
    """Return names of datasets, or ids if the word is the prefix of one, for completion."""
    from odfpy.coordinator.storage.completion_names import dataset_names

    found = dataset_names(Path(session_of(ctx).folder))
    return [(id_, name) if incomplete.startswith("did:") else (name, "") for name, id_ in found]


def complete_names_at(ctx: typer.Context, incomplete: str) -> Iterable[tuple[str, str]]:
    """Return completions: names and ids, and after `NAME@` tags and branches."""
    name, at, _ = incomplete.partition("@")
    if not at:
        return complete_names(ctx, incomplete)
    from odfpy.chain.references import ReferenceKind

    try:
        branches = session_of(ctx).workspace.branches
        found = [reference.name for kind in ReferenceKind for reference in branches.all(name, kind)]
    except Exception:  # noqa: BLE001 - the shell expects names or nothing
        return []
    return [(f"{name}@{one.name}", one.kind.value) for one in found]


def complete_repositories(ctx: typer.Context) -> Iterable[str]:
    """Return names of repositories, for completion."""
    from odfpy.coordinator.storage.completion_names import repository_names

    return repository_names(Path(session_of(ctx).folder))


def complete_sources(ctx: typer.Context, incomplete: str) -> Iterable[tuple[str, str]]:
    """Return completions for pulls: names and ids of datasets, and repositories as prefixes."""
    places = [(f"{name}/", "repository") for name in complete_repositories(ctx)]
    return [*complete_names(ctx, incomplete), *places]


def complete_columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return columns of the dataset named earlier on the command line, also in a comma-separated list."""
    try:
        schema = session_of(ctx).workspace.datasets.state(ctx.params["name"]).schema
    except (OdfError, OSError, KeyError):
        return []
    before = incomplete[: incomplete.rfind(",") + 1]
    return [f"{before}{field.name}" for field in (schema.fields if schema else ())]


def complete_forms() -> list[str]:
    """Return output formats, for completion."""
    return [form.value for form in Format]


Name = Annotated[str, typer.Argument(help="Name or id of the dataset.", metavar="NAME", autocompletion=complete_names)]
Names = Annotated[
    list[str] | None,
    typer.Argument(help="Names, ids or patterns (com.example.%).", metavar="NAME", autocompletion=complete_names),
]
NameAt = Annotated[
    str,
    typer.Argument(help="Name or id of the dataset, or NAME@BLOCK.", metavar="NAME", autocompletion=complete_names_at),
]
NamesAt = Annotated[
    list[str] | None,
    typer.Argument(
        help="Names, ids, NAME@BLOCK or patterns (com.example.%).", metavar="NAME", autocompletion=complete_names_at
    ),
]
AllowFuture = Annotated[bool, typer.Option("--allow-future", help="Accept blocks dated more than a day in the future.")]
Files = Annotated[
    str | None,
    typer.Option(
        "--files",
        help="Linked files to transfer: all, none, available, or conditions like what=syslog;since=2024-01-01.",
        metavar="FILES",
    ),
]
All = Annotated[bool, typer.Option("--all", "-a", help="All datasets of the workspace.")]
Recursive = Annotated[bool, typer.Option("--recursive", "-r", help="Also their inputs, recursively.")]
Wait = Annotated[
    str | None,
    typer.Option(
        "--wait",
        help="How long to wait for another process that writes to the dataset, such as 5m.",
        metavar="DURATION",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Confirm in advance.")]
Form = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        help="Print table (the default), json, ndjson, csv or yaml.",
        metavar="FORM",
        autocompletion=complete_forms,
    ),
]


_HIGHEST_PORT = 65535
MAX_INTEGER: Final = (1 << 63) - 1
"""The largest number supported by files, databases and Arrow."""
_MAX_DIGITS = 1000
"""Maximum number of digits. Python can parse longer ones, but no valid value is as long."""


def whole_number(text: str | None, option: str, *, at_least: int = 0, at_most: int = MAX_INTEGER) -> int | None:
    """Parse the value of an option that is a count.

    Args:
        text: the value; None if the option is missing.
        option: name of the option, for messages.
        at_least: the smallest valid number.
        at_most: the largest valid number.

    Raises:
        UsageError: the value is not a number, too small, or too large.
    """
    if text is None:
        return None
    number = int(text.lstrip("0")[:_MAX_DIGITS] or "0") if text.isdecimal() else -1
    if number < at_least:
        raise UsageError(f"{option} must be a whole number, at least {at_least}, not {text!r:.100}")
    if number > at_most:
        raise UsageError(f"{option} must be a whole number, at most {at_most}, not {text:.100}")
    return number


def moment_option(text: str, parse: Callable[[str], Timestamp]) -> Timestamp | None:
    """Parse the value of an option that is a time or a duration before now. Return None if it is before the year 1.

    Args:
        text: the value.
        parse: function that parses a time.

    Raises:
        InvalidValue: the value is neither; raised by `parse`.
    """
    from odfpy.data.duration import Duration
    from odfpy.data.timestamp import Timestamp

    try:
        duration = Duration.parse(text)
    except InvalidValue:
        return parse(text)
    return duration.before(Timestamp.now())


def port_number(text: str, option: str) -> int:
    """Parse the value of an option that is a port. 0 means any free port.

    Args:
        text: the value.
        option: name of the option, for messages.

    Raises:
        UsageError: the value is not a port.
    """
    return whole_number(text, option, at_most=_HIGHEST_PORT) or 0


def split_words(text: str | None) -> list[str]:
    """Split the value of an option at commas."""
    return [] if text is None else [one.strip() for one in text.split(",") if one.strip()]
