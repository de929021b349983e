"""The entry point of the `odf` command. It parses, calls and prints; the logic is in `odfpy.coordinator`.

Exit codes: 0 success, 1 failure, 2 usage error, 130 interrupted, 141 broken pipe. The last two are the codes that
shells report for programs terminated by SIGINT and SIGPIPE.
"""

# Import nothing slow here: an interruption must be reported in one line from the very beginning.

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from odfpy.cli import interruptions, lifetime
from odfpy.cli.command_server import WORD
from odfpy.cli.command_server.client import run_on_server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odfpy.cli.screen.output import Output
    from odfpy.cli.session import Session

FAILED, WRONG_USAGE, BROKEN_PIPE = 1, 2, 141


def main() -> None:
    """Entry point of the console script."""
    _open_closed_descriptors()
    if sys.argv[1:2] == [WORD]:
        from odfpy.cli.command_server.server import serve

        serve(_command)
    else:
        try:
            run_on_server()
        except KeyboardInterrupt:  # while waiting for a server that did not respond
            sys.exit(interruptions.report_interruption())
        _command()


def _command() -> NoReturn:
    """Run the command of this process, without a command server."""
    began = time.perf_counter()
    try:
        interruptions.install_handlers()
        lifetime.delay_garbage_collection()
        mend_streams()
        from odfpy.extras import do_without_blas_threads, do_without_numpy_for_blocks, do_without_pandas

        do_without_pandas()
        do_without_blas_threads()
        do_without_numpy_for_blocks()
        code = run(began=began)
        interruptions.restore_default()
    except KeyboardInterrupt:  # before there was a session, or at the very end
        code = interruptions.report_interruption()
    lifetime.exit_without_teardown(code)


def run(arguments: Sequence[str] | None = None, began: float | None = None) -> int:
    """Run one command and return its exit code.

    Args:
        arguments: arguments after `odf`; by default those of this process.
        began: time when the process reached its first line; None if it did other work before.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    from odfpy.cli.session import Session

    session = Session(began=began)
    try:
        from odfpy.cli.commands import execute

        code = execute(given, session)
        sys.stdout.flush()
        if arguments is None:
            from odfpy.cli.command_server.starting import follow_setting

            follow_setting(session)
    except BaseException as error:  # noqa: BLE001 - this is where every error ends
        return _report(error, session, given)
    return code


# --- Streams ---------------------------------------------------------------------------------------------------------


def _open_closed_descriptors() -> None:
    """Open closed standard streams to /dev/null, before a socket or file gets one of their descriptors."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # returns the lowest free descriptor


def mend_streams() -> None:
    """Replace closed streams by empty ones, and avoid encoding errors in output."""
    # Their descriptors are open, see `_open_closed_descriptors`.
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


def _give_up_streams() -> None:
    """Prevent the interpreter from flushing broken streams at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


# --- Errors ----------------------------------------------------------------------------------------------------------


def _report(error: BaseException, session: Session, arguments: Sequence[str]) -> int:
    try:
        session.progress.clear()
        return _report_error(error, session.output, arguments)
    except OSError as unwritable:
        return BROKEN_PIPE if isinstance(unwritable, BrokenPipeError) else FAILED
    finally:
        _give_up_streams()


def _report_error(error: BaseException, output: Output, arguments: Sequence[str]) -> int:
    """Report an error and return the exit code."""
    from odfpy.cli.screen.output import Verbosity
    from odfpy.errors import OdfError

    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE  # the reader of the output has closed it
    with suppress(OSError):
        sys.stdout.flush()  # print pending results before the error
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FAILED
    if output.verbosity is Verbosity.DEBUG:
        import traceback

        from odfpy.cli.screen.terminal import put

        put(sys.stderr, "".join(traceback.format_exception(error)))
    # Native code that was interrupted reports a system error.
    if isinstance(error, KeyboardInterrupt) or isinstance(error.__cause__, KeyboardInterrupt):
        interruptions.restore_default()  # report the interruption only once
        output.error(interruptions.MESSAGE)
        return interruptions.INTERRUPTED
    if isinstance(error, OdfError):
        output.error(error.message, error.hint, error.code)
        return error.exit_code
    if isinstance(error, Exception) and hasattr(error, "format_message"):  # an error of the argument parser
        return _report_usage(error, output)
    if isinstance(error, OSError) and error.strerror:  # e.g. the disk is full: not a bug
        what = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        is_nowhere = isinstance(error, FileNotFoundError) and not error.filename and _has_no_folder()
        output.error("The current folder no longer exists" if is_nowhere else what, code=OdfError.code)
        return FAILED
    return _report_bug(error, output, arguments)


def _has_no_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  what Path does, too
    except FileNotFoundError:
        return True
    return False


def _report_usage(error: Any, output: Output) -> int:
    from odfpy.errors import UsageError, nearest

    context = getattr(error, "ctx", None)
    path = context.command_path if context else "odf"
    hint = f"`{path} --help` shows its usage."
    if hasattr(error, "possibilities"):  # an unknown option
        name = error.option_name
        known = {option.lstrip("-"): option for option in error.possibilities or ()}
        # Without the dashes, which make all options look alike.
        close = [known[word] for word in nearest(name.lstrip("-"), known)]
        suggestion = f"Did you mean {close[0]}? " if close else ""
        output.error(f"No such option: {name}", suggestion + hint, UsageError.code)
    else:
        output.error(error.format_message().rstrip("."), hint, UsageError.code)
    return WRONG_USAGE


def _report_bug(error: BaseException, output: Output, arguments: Sequence[str]) -> int:
    from odfpy.errors import InternalError

    code = InternalError.code
    what = f"internal error: {type(error).__name__}: {' '.join(str(error).split())}"
    try:
        log = _write_crash_log(error, arguments)
    except OSError:
        output.error(what, "This is a bug in odfpy. Please report it; -vv prints the details.", code)
    else:
        output.error(what, f"This is a bug in odfpy. Please report it with {log}, which has the details.", code)
    return FAILED


def _write_crash_log(error: BaseException, arguments: Sequence[str]) -> str:
    import platform
    import tempfile
    import traceback

    from odfpy import __version__
    from odfpy.coordinator.diagnosis import without_secrets

    with tempfile.NamedTemporaryFile("w", prefix="odf-crash-", suffix=".log", delete=False, encoding="utf-8") as file:
        file.write(f"odf {__version__}, Python {platform.python_version()}, {platform.platform()}\n")
        file.write(f"arguments: {without_secrets(arguments)}\n\n")
        traceback.print_exception(error, file=file)
    return file.name


if __name__ == "__main__":
    main()
