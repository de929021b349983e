"""`odf archive translate`: apply a translator pattern to a path."""

from __future__ import annotations

from typing import Annotated

import typer

from odfpy.cli.grammar import session_of


def translate(
    context: typer.Context,
    expression: Annotated[str, typer.Argument(help="EXTRACT~FORMAT.", metavar="EXPRESSION")],
    path: Annotated[str, typer.Argument(help="An absolute path; the file does not have to exist.", metavar="PATH")],
) -> None:
    """Print what a translator pattern extracts from a path."""
    from odfpy.archive.naming.translator import Translator

    session_of(context).output.text(Translator(expression).translate(path))
