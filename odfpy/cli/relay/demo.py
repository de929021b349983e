"""`odf relay demo`: run the reference web on this machine."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.cli.grammar import port_number, session_of
from odfpy.errors import UsageError
from odfpy.extras import needs_extra
from odfpy.stopping import wait_for_stop_signal

if TYPE_CHECKING:
    from odfpy.federation.demo.running import RunningWeb

_PICTURE = """\
  na_us --- na --- global --- emea
                    |   \\      |
                    |    `--- apac
                 offline"""
_ABOUT = """\
Each relay has the tables of TPC-H at scale 0.01 as its own data, with its own vocabulary.
The relay offline never answers: the first query waits for it, and every answer reports its rows as missing.
Documents, data and keys are in {folder}"""
_PORTS = 6
_HIGHEST = 65_535


def demo(
    context: typer.Context,
    folder: Annotated[
        str, typer.Option(help="Folder of the web; created if it does not exist.", metavar="PATH")
    ] = "web-demo",
    port_base: Annotated[
        str, typer.Option(help="First of six ports, one for each relay; 0 for free ones.", metavar="PORT")
    ] = "50061",
) -> None:
    """Run five relays over TPC-H on this machine, with queries to try, until Ctrl-C or SIGTERM."""
    number = port_number(port_base, "--port-base")
    if number > _HIGHEST - _PORTS + 1:
        raise UsageError(f"--port-base {number} leaves no room for {_PORTS} ports", hint="Give a lower one, or 0.")
    with needs_extra("federation", "Relays"):
        from odfpy.federation.demo.layout import web_folder
        from odfpy.federation.demo.running import running_web
    output = session_of(context).output
    with _interrupted_by_sigterm():
        found = web_folder(Path(folder))
        output.info("Starting five relays, each in a separate process ...")
        with running_web(found, port_base=number) as web:
            output.text(_instructions(web))
            output.info("Ctrl-C stops all of them.")
            output.flush()
            wait_for_stop_signal(lambda: output.detail("ending"))


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, also during start-up, so that nothing incomplete remains."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _instructions(web: RunningWeb) -> str:
    """Return instructions for trying the web."""
    from odfpy.federation.demo.documents import ALL_ACCESS, GUEST
    from odfpy.federation.demo.questions import FIRST_LINES

    folder = web.folder
    parts = [
        _PICTURE,
        _ABOUT.format(folder=folder.path),
        "In another shell, at na, as a user whom no relay knows:",
        "\n".join(
            (
                _set("CA", folder.authorities),
                *_who(web, "na", GUEST),
                f'odf web sql "{FIRST_LINES}"',
                _asked(web, "q1_percent.sql"),
                _asked(web, "q3_percent.sql"),
            )
        ),
        "At na_us, as a user who sees all rows of lineitem:",
        "\n".join((*_who(web, "na_us", ALL_ACCESS), _asked(web, "q1_percent.sql"))),
        "At global, in its vocabulary:",
        "\n".join((*_who(web, "global", GUEST), _asked(web, "q1_fractions.sql"))),
    ]
    return "\n\n".join(parts)


def _who(web: RunningWeb, relay: str, user: str) -> tuple[str, ...]:
    """Return commands that set the relay and the user of the following queries."""
    folder = web.folder
    return (
        _set("RELAY", web.locations[relay]),
        _set("CERT", folder.certificate(user)),
        _set("KEY", folder.key(user)),
    )


def _set(name: str, value: object) -> str:
    return f"export ODF_WEB_{name}={shlex.quote(str(value))}"


def _asked(web: RunningWeb, question: str) -> str:
    return f'odf web sql "$(cat {shlex.quote(str(web.folder.question(question)))})"'
