"""`odf grant`: read permissions."""

from __future__ import annotations

from typing import Annotated

import typer

from odfpy.cli.grammar import Form, command, group, session_of, split_words, whole_number
from odfpy.cli.sharing.opening import empty_tables_warning, sharing_of

app = group("Grants: who may read which columns and rows of shared tables.")

Principal = Annotated[str, typer.Argument(help="Name of a recipient, user or group.", metavar="NAME")]


@command(
    app,
    "odf grant add acme sales",
    "odf grant add acme sales.eu.orders --columns day,total",
    "odf grant add partners sales.eu.orders --rows \"country = recipient('country')\"",
)
def add(
    context: typer.Context,
    name: Principal,
    path: Annotated[str, typer.Argument(help="SHARE, SHARE.SCHEMA or SHARE.SCHEMA.TABLE.", metavar="PATH")],
    columns: Annotated[str | None, typer.Option(help="Only these columns, comma-separated.", metavar="NAMES")] = None,
    rows: Annotated[
        str | None, typer.Option(help="Only rows for which this SQL condition is true.", metavar="CONDITION")
    ] = None,
) -> None:
    """Grant read access to a share, a schema or a table, from the next request on."""
    from odfpy.sharing.checked import check_grant
    from odfpy.sharing.conditions import check_condition
    from odfpy.sharing.names import SharePath
    from odfpy.sharing.tables.opener import TableOpener

    wanted = None if columns is None else split_words(columns)
    where, sharing = SharePath.parse(path), sharing_of(context)
    if rows is not None:
        check_condition(rows)
    workspace = session_of(context).workspace
    opener = TableOpener([workspace.storage], [workspace.queries.service])
    unfit = check_grant(where, sharing.shares.sources(where), opener.open, wanted, rows)
    grant = sharing.grants.add(name, where, columns=wanted, rows=rows)
    limits = [f"columns {', '.join(grant.columns)}" if grant.columns else "", f"rows with {rows}" if rows else ""]
    what = " and ".join(filter(None, limits))
    session_of(context).output.info(f"Grant {grant.id}: {grant.principal} reads {grant.path}{what and f', {what}'}")
    if unfit:
        session_of(context).output.warn(empty_tables_warning(unfit))


@command(app, "odf grant list", "odf grant list acme", name="list")
def list_(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="Only grants of this recipient, user or group.", metavar="NAME")
    ] = None,
    form: Form = None,
) -> None:
    """List the grants."""
    output = session_of(context).output_as(form)
    found = sharing_of(context).grants.all(name)
    if not found and output.for_people:
        output.info("No grants; add one with `odf grant add NAME PATH`.")
        return
    records = [
        {
            "number": one.id,
            "principal": one.principal,
            "path": str(one.path),
            "columns": None if one.columns is None else list(one.columns),
            "rows": one.rows,
        }
        for one in found
    ]
    output.records(records, {"#": "number", "Who": "principal", "On": "path", "Columns": "columns", "Rows": "rows"})


@command(app, "odf grant remove 3")
def remove(
    context: typer.Context,
    number: Annotated[str, typer.Argument(help="Number of the grant, as `odf grant list` shows it.", metavar="N")],
) -> None:
    """Remove a grant, from the next request on; URLs of its files become invalid, too."""
    grant = sharing_of(context).grants.remove(whole_number(number, "N") or 0)
    session_of(context).output.info(f"grant {grant.id} revoked")
