"""`odf tail` and `odf sql`: print data."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from odfpy.cli.grammar import Form, NameAt, command, group, session_of, whole_number
from odfpy.errors import InvalidValue, NotFound, OdfError, UsageError

commands = group("Queries.")


@command(commands, "odf tail com.example.rates", "odf tail com.example.rates -n 1000 -o csv > last.csv")
def tail(
    context: typer.Context,
    name: NameAt,
    num_records: Annotated[str, typer.Option("--num-records", "-n", help="Number of rows.", metavar="N")] = "10",
    skip: Annotated[str, typer.Option(help="Number of rows at the end to skip.", metavar="N")] = "0",
    form: Form = None,
) -> None:
    """Print the last rows of a dataset."""
    session = session_of(context)
    output = session.output_as(form)
    count, left_out = whole_number(num_records, "--num-records"), whole_number(skip, "--skip")
    output.arrow(session.workspace.queries.tail(name, count or 0, skip=left_out or 0))


@command(
    commands,
    "odf sql",
    "odf sql 'select count(*) from com.example.rates'",
    "odf sql --engine datafusion 'select max(rate) from com.example.rates' -o json",
    "odf sql 'select max(rate) from com.example.rates' --commit answer.json",
    "odf sql 'select event_time, rate from com.example.rates' --plot",
)
def sql(
    context: typer.Context,
    statements: Annotated[str | None, typer.Argument(help="Run this query and exit.", metavar="SQL")] = None,
    query: Annotated[str | None, typer.Option("--command", "-c", help="The same as SQL.", metavar="SQL")] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Engine and dialect.", metavar="spark|datafusion", autocompletion=lambda: ["spark", "datafusion"]
        ),
    ] = None,
    limit: Annotated[str | None, typer.Option(help="Maximum number of rows.", metavar="N")] = None,
    timeout: Annotated[
        str | None, typer.Option(help="Maximum time for the query: seconds, or 90s, 5m, 1h.", metavar="TIME")
    ] = None,
    commit: Annotated[
        str | None, typer.Option(help="Also write the answer with a proof to a file.", metavar="FILE")
    ] = None,
    script: Annotated[
        str | None, typer.Option(help="Run the statements of a file; - for standard input.", metavar="FILE")
    ] = None,
    plot: Annotated[bool, typer.Option("--plot", help="Plot the result; the first column is the x-axis.")] = False,
    png: Annotated[str | None, typer.Option(help="Plot the result to a PNG file.", metavar="FILE")] = None,
    form: Form = None,
) -> None:
    """Query datasets with SQL; each is a table under its name. Without a query, open a shell."""
    session = session_of(context)
    if statements is not None:
        if query is not None:
            raise UsageError("Two queries were given", hint="Separate several queries with semicolons.")
        query = statements
    if query is not None and engine is not None:
        session.workspace.engines.registry.expect(engine)
    from odfpy.cli.query.shell import Shell
    from odfpy.cli.screen.answers import DisplayOptions
    from odfpy.query.dialects import dialect_named
    from odfpy.query.tables import split_statements

    if query is not None and script is not None:
        raise UsageError("--command cannot be combined with --script")
    showing = DisplayOptions(engine, whole_number(limit, "--limit"), _seconds(timeout), plot=plot, png=png)
    output = session.output_as(form)
    if commit is not None:
        from odfpy.cli.query.proofs import commit_answer

        if script is not None or plot or png is not None:
            raise UsageError("--commit needs a query, and cannot be combined with --script, --plot or --png")
        commit_answer(session, query, showing, commit, output)
        return
    shell = Shell(session.workspace, output, showing, session.progress)
    if query is None and script is None and sys.stdin.isatty():
        shell.interact()
        return
    text = _script(script) if query is None else query
    for statement in split_statements(text, dialect_named(engine or "spark"), in_place=True):
        try:
            shell.run(statement)
        except OdfError as error:
            if script not in (None, "-"):
                error.message = f"{script}: {error.message}"
            raise


def _seconds(text: str | None) -> float | None:
    """Parse the value of `--timeout`.

    Raises:
        UsageError: the value is not a positive duration.
    """
    from odfpy.data.duration import Duration

    if text is None:
        return None
    try:
        is_number = re.fullmatch(r"\d{1,9}(\.\d+)?", text, re.ASCII)
        seconds = float(text) if is_number else Duration.parse(text).seconds
    except InvalidValue:
        seconds = 0
    if not seconds:
        raise UsageError(f"--timeout must be a time, not {text!r}", hint="Write seconds, as 30, or 90s, 5m, 1h.")
    return seconds


def _script(file: str | None) -> str:
    """Return the content of a file, or of standard input."""
    if file in (None, "-"):
        from odfpy.cli.stdin import text_of_stdin

        return text_of_stdin()
    try:
        return Path(str(file)).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise NotFound(f"Cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not text in UTF-8") from error
