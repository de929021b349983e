"""`odf audit`: the log of accesses."""

from __future__ import annotations

from typing import Annotated

import typer

from odfpy.cli.grammar import Form, command, group, session_of, whole_number

commands = group("Audit log.")


@command(commands, "odf audit", "odf audit --who acme --refused", "odf audit --path sales.eu.orders -n 100")
def audit(
    context: typer.Context,
    who: Annotated[str | None, typer.Option(help="Only accesses of this recipient or user.", metavar="NAME")] = None,
    path: Annotated[str | None, typer.Option(help="Only accesses to this table.", metavar="PATH")] = None,
    refused: Annotated[bool, typer.Option("--refused", help="Only accesses that were refused.")] = False,
    num: Annotated[str, typer.Option("-n", help="Maximum number of entries.", metavar="N")] = "20",
    form: Form = None,
) -> None:
    """Show the audit log of Delta Sharing, newest first."""
    from odfpy.query.dialects import dialect_named
    from odfpy.sharing.audit import accesses, ingest_records

    session = session_of(context)
    literal = dialect_named("datafusion").literal
    conditions = [f"who = {literal(who)}"] if who else []
    conditions += [f"path = {literal(path)}"] if path else []
    conditions += ["NOT granted"] if refused else []
    ingest_records(session.workspace)
    count = whole_number(num, "-n", at_least=1) or 1
    found = list(accesses(session.workspace, num=count, condition=" AND ".join(conditions) or None))
    output = session.output_as(form)
    if not found and output.for_people:
        output.info("No accesses are recorded; a running `odf serve` adds them within `sharing.auditInterval` seconds.")
        return
    for one in found:
        one["at"] = one["at"].isoformat(timespec="seconds").replace("+00:00", "Z")
    columns = {"At": "at", "Who": "who", "What": "action", "Of": "path", "Version": "version", "Granted": "granted"}
    output.records(found, {**columns, "Files": "files", "Bytes": "bytes", "From": "address"})
