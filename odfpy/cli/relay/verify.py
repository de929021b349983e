"""`odf web verify`: verify answers of a web that were stored as datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.cli.grammar import Form, session_of
from odfpy.extras import needs_extra

if TYPE_CHECKING:
    from odfpy.cli.screen.output import Output
    from odfpy.federation.evidence.verifying import Verification


def verify(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The dataset of the answer.", metavar="NAME")],
    ca: Annotated[
        str,
        typer.Option(
            "--ca", envvar="ODF_WEB_CA", help="Authorities of the relays and of the requester (PEM).", metavar="FILE"
        ),
    ],
    form: Form = None,
) -> None:
    """Verify a stored answer, offline: who signed which rows, and that the answer follows from them."""
    with needs_extra("federation", "A web of relays"):
        from odfpy.federation.client import verify as verify_answer
    session = session_of(context)
    output = session.output_as(form)
    found = verify_answer(session.workspace, name, ca)
    if output.for_people:
        _show(output, found)
    else:
        output.tree(_tree(found))
    if not found.holds:
        raise typer.Exit(1)


def print_kept(output: Output, found: Verification) -> None:
    """Print the number of stored rows, their signers, and the missing relays of an answer.

    Args:
        output: the output of the command.
        found: result of the verification.
    """
    for one in found.missing:
        output.warn(f"the rows of {one.relay} are missing: {one.why}")
    relays = ", ".join(sorted({one.relay for one in found.signed})) or "nobody"
    output.info(f"Kept {_rows(found.rows)} as {found.name}, signed by {relays}: odf web verify {found.name}")


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _show(output: Output, found: Verification) -> None:
    if found.query:
        who = "an unknown requester" if found.subject is None else f"{found.subject} ({found.requester[:16]})"
        when = "" if found.at is None else f", {_time(found.at)}"
        output.text(f"{_rows(found.rows)}, asked by {who}{when}: {found.sql}")
    if found.signed:
        columns = {
            "Fragment": "fragment",
            "Relay": "relay",
            "Certificate": "subject",
            "Fingerprint": "fingerprint",
            "Rows": "rows",
            "When": "at",
        }
        output.records([{**one, "fingerprint": one["fingerprint"][:16]} for one in _tree(found)["signed"]], columns)
    for missing in found.missing:
        output.text(f"missing: {missing.relay}: {missing.why}")
    for finding in found.findings:
        output.text(f"wrong: {finding}")
    output.text(f"{found.name}: {'valid' if found.holds else 'the answer is not valid'}")


def _tree(found: Verification) -> dict[str, Any]:
    return {
        "name": found.name,
        "holds": found.holds,
        "query": found.query,
        "sql": found.sql,
        "requester": found.requester,
        "subject": found.subject,
        "keptAt": None if found.at is None else _time(found.at),
        "rows": found.rows,
        "signed": [
            {
                "fragment": one.fragment,
                "relay": one.relay,
                "subject": one.subject,
                "fingerprint": one.fingerprint,
                "rows": one.rows,
                "hash": one.hash,
                "at": _time(one.at),
                "sql": one.sql,
            }
            for one in found.signed
        ],
        "missing": [{"relay": one.relay, "why": one.why} for one in found.missing],
        "findings": list(found.findings),
    }


def _time(seconds: int) -> str:
    from odfpy.data.timestamp import Timestamp

    return str(Timestamp.from_millis(seconds * 1000))
