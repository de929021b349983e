"""Commands as their help describes them, for the pages that are made of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer

from odfpy.cli.commands import app
from odfpy.cli.grammar import GLOBAL_OPTIONS
from odfpy.cli.session import Session

_EVERYWHERE = (*GLOBAL_OPTIONS, "help")


@dataclass(frozen=True)
class DescribedCommand:
    """A command.

    Attributes:
        command: of Typer.
        context: in which it is called.
    """

    command: Any
    context: Any

    @classmethod
    def whole_program(cls) -> DescribedCommand:
        """The program itself."""
        root = typer.main.get_command(app)
        return cls(root, root.make_context("odf", [], resilient_parsing=True, obj=Session()))

    def named(self, name: str) -> DescribedCommand:
        """The command of that name below this one."""
        command = self.command.get_command(self.context, name)
        return DescribedCommand(command, command.make_context(name, [], parent=self.context, resilient_parsing=True))

    @property
    def path(self) -> str:
        """The words that call it."""
        path: str = self.context.command_path
        return path

    @property
    def usage(self) -> str:
        """The first line of its help."""
        return " ".join([self.path, *self.command.collect_usage_pieces(self.context)])

    @property
    def arguments(self) -> list[tuple[str, str]]:
        """Arguments, each with what it is."""
        return [(one.metavar, one.help or "") for one in self._params if one.param_type_name == "argument"]

    @property
    def options(self) -> list[tuple[str, str]]:
        """Options of its own, each with what it does."""
        return self._records(one for one in self._params if one.name not in _EVERYWHERE)

    @property
    def shared_options(self) -> list[tuple[str, str]]:
        """Options that all commands have."""
        return self._records(one for one in self._params if one.name in _EVERYWHERE)

    @property
    def subcommands(self) -> list[DescribedCommand]:
        """The commands below it that are shown."""
        return [self.named(one.name) for one in getattr(self.command, "commands", {}).values() if not one.hidden]

    @property
    def _params(self) -> list[Any]:
        found: list[Any] = self.command.get_params(self.context)
        return found

    def _records(self, params: Iterator[Any]) -> list[tuple[str, str]]:
        records = (one.get_help_record(self.context) for one in params if one.param_type_name == "option")
        return [record for record in records if record is not None]
