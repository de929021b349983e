"""An error of each class, with all of its fields, and engine processes that raise them on request.

python -c ... support.engine.raised_errors spark DESCRIPTOR DESCRIPTOR
python -c ... support.engine.raised_errors datafusion MEMORY IDLE
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import odfpy
from odfpy.codec.errors import MODULE_OF, error_class
from odfpy.errors import OdfError

JOBS = "odfpy.ingest.lanes.raising"
_CLASS = re.compile(r"^\s*class (\w+)\(([^)]*)\)", re.MULTILINE)


def error_classes() -> list[type[OdfError]]:
    """Every class of errors in the package, of whichever module; private ones are caught where they are raised."""
    for module in _modules_with_errors():
        import_module(module)

    def below(cls: type[OdfError]) -> Iterator[type[OdfError]]:
        yield cls
        for subclass in cls.__subclasses__():
            yield from below(subclass)

    found = dict.fromkeys(below(OdfError))
    return [cls for cls in found if cls.__module__.startswith("odfpy.") and not cls.__name__.startswith("_")]


def _modules_with_errors() -> list[str]:
    """Return the modules that define classes of errors, by their text: to import the whole package takes seconds."""
    root = Path(odfpy.__path__[0])
    classes: dict[str, list[tuple[str, set[str]]]] = {}
    for path in sorted(root.rglob("*.py")):
        found = [(name, set(re.findall(r"\w+", bases))) for name, bases in _CLASS.findall(path.read_text("utf-8"))]
        if found:
            classes[".".join(("odfpy", *path.relative_to(root).with_suffix("").parts))] = found
    errors: set[str] = set()
    more = {OdfError.__name__}
    while more - errors:
        errors |= more
        more = {name for found in classes.values() for name, bases in found if bases & errors}
    return [
        module.removesuffix(".__init__")
        for module, found in classes.items()
        if any(bases & errors for _, bases in found)
    ]


def made_otherwise() -> dict[str, Callable[[], OdfError]]:
    """Return the constructors of errors with special arguments, by class name."""
    from odfpy.archive.errors import RecordRefused
    from odfpy.codec.tree import TreeError
    from odfpy.errors import FetchInterrupted
    from odfpy.query.wire.commitments import InvalidCommitment
    from odfpy.query.wire.verification import EndedKey, VerificationFailed
    from odfpy.repository.smart_transfer.messages import Internal, PushPhase
    from odfpy.repository.smart_transfer.session import PeerClosed, Refusal
    from odfpy.serving.http.budget import OverBudget

    return {
        "EndedKey": lambda: EndedKey("did:key:z", "was revoked"),
        "FetchInterrupted": lambda: FetchInterrupted("says “later”\n", hint="Wait.", retry_after=2.5),
        "InvalidCommitment": lambda: InvalidCommitment("BadSignature", "it is signed by somebody else"),
        "OverBudget": lambda: OverBudget("too much", hint="Send less.", is_own=True),
        "PeerClosed": lambda: PeerClosed(1011, "no room", hint="Make room."),
        "RecordRefused": lambda: RecordRefused("a.log", ["what is missing", "end is before start"], hint="Say more."),
        "Refusal": lambda: Refusal(Internal(PushPhase.COMPLETE_REQUEST, "no room")),
        "TreeError": lambda: TreeError(("content", 3, "read"), "unknown key", hint="Did you mean `reed`?"),
        "VerificationFailed": lambda: VerificationFailed(
            "OutputMismatch", "other rows", "Ask.", expected="a", actual="b"
        ),
    }


def sample(kind: type[OdfError]) -> OdfError:
    """Return an error of a class."""
    if kind.__init__ is not OdfError.__init__ and (make := made_otherwise().get(kind.__name__)) is not None:
        return make()
    return kind(f"{kind.__name__}: com.example.rates, line 3 \u2028 'ä'", hint=f"Try something else than {kind.code}.")


def contents(error: OdfError) -> tuple[Any, ...]:
    """Return all that there is to an error."""
    return type(error), error.code, error.exit_code, str(error), error.args, vars(error)


def raise_sample(code: str) -> NoReturn:
    """Raise the error of a code, as an operation of an engine does."""
    kind = error_class(code)
    assert kind is not None
    raise sample(kind)


def serve_spark(jobs: int, questions: int) -> int:
    """Serve as the process in the sandbox does, with operations that raise."""
    from odfpy.engine.contract import AnalyzeRequest, JobRequest
    from odfpy.engine.jobs import run_job
    from odfpy.engine.responses import respond
    from odfpy.engine.spark.process import session
    from odfpy.engine.worker.sandboxed_host import serve

    session.request_session = lambda spark: spark  # type: ignore[assignment]
    place = sys.modules[JOBS] = ModuleType(JOBS)
    place.work = lambda _, code: raise_sample(code)  # type: ignore[attr-defined]

    class Host:
        java_pid = None
        uses_cache = False
        timings: dict[str, float] = {}  # noqa: RUF012

        def start(self) -> None:
            if len(sys.argv) > 4:
                raise_sample(sys.argv[4])

        def clean_up(self) -> None:
            pass

        def serve(self, request: Any) -> Any:
            match request:
                case JobRequest():
                    return run_job(None, request)  # type: ignore[arg-type]
                case AnalyzeRequest():
                    return respond(lambda: raise_sample(request.transform.query))

        def end(self) -> None:
            pass

    return serve(Host(), socket.socket(fileno=jobs), socket.socket(fileno=questions))  # type: ignore[arg-type]


def fork_datafusion() -> None:
    """Fork as DataFusion's server does, and raise in the children."""
    from odfpy.engine.datafusion import fork_server, request_handler

    def raising(request: Any, _rows: int) -> NoReturn:
        raise_sample(request.query)

    for code in MODULE_OF:  # here, and not in each child
        error_class(code)
    made_otherwise()
    request_handler._answer = raising
    fork_server.main()


if __name__ == "__main__":
    if sys.argv[1] == "spark":
        raise SystemExit(serve_spark(int(sys.argv[2]), int(sys.argv[3])))
    sys.argv[1:] = sys.argv[2:]
    fork_datafusion()
