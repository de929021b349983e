"""`odf share` and `odf schema`: shared tables and their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from odfpy.cli.grammar import Form, command, complete_names, group, session_of
from odfpy.cli.sharing.opening import empty_tables_warning, read_file, sharing_of
from odfpy.data.amounts import count_of
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.sharing.model import SharedTable, TableSource

share = group("Shares: tables that external users may read over the Delta Sharing protocol.")
schema = group("Schemas of shares: groups of tables.")

Path = Annotated[str, typer.Argument(help="SHARE, SHARE.SCHEMA or SHARE.SCHEMA.TABLE.", metavar="PATH")]
Comment = Annotated[str, typer.Option(help="Description for recipients.", metavar="TEXT")]

_SHOWN: Final = 5


@command(
    share,
    "odf share add sales",
    "odf share add sales.eu.orders com.example.orders",
    "odf share add sales.eu.log com.example.orders --changelog",
    "odf share add sales.eu.customers --delta /data/customers",
    "odf share add sales.eu.clicks --parquet s3://lake/clicks",
)
def add(
    context: typer.Context,
    path: Path,
    dataset: Annotated[
        str | None,
        typer.Argument(help="For a table: the dataset behind it.", metavar="DATASET", autocompletion=complete_names),
    ] = None,
    changelog: Annotated[
        bool, typer.Option("--changelog", help="Share all changes instead of the current state.")
    ] = False,
    at: Annotated[
        str | None, typer.Option(help="Share the dataset as it is at a tag or branch.", metavar="NAME")
    ] = None,
    parquet: Annotated[
        str | None,
        typer.Option(help="For a table: the folder of Parquet files behind it, or its URL.", metavar="FOLDER"),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(help="For a table: the folder of the Delta table behind it, or its URL.", metavar="FOLDER"),
    ] = None,
    iceberg: Annotated[
        str | None,
        typer.Option(
            help="For a table: the Iceberg table behind it, a metadata file or CATALOG:NAMESPACE.TABLE.",
            metavar="TABLE",
        ),
    ] = None,
    comment: Comment = "",
) -> None:
    """Add a share, a schema or a table. Reading it needs a grant."""
    from odfpy.sharing.names import SharePath

    where, sharing = SharePath.parse(path), sharing_of(context)
    given = {"parquet": parquet, "delta": delta, "iceberg": iceberg}
    files = {kind: place for kind, place in given.items() if place is not None}
    behind = len(files) + (dataset is not None)
    if behind != (where.table is not None):
        wants = (
            ", which needs one underlying dataset, folder or table" if where.table else ", which has no data of its own"
        )
        raise UsageError(
            f"{path} is a {where.what}{wants}",
            hint="A table is `odf share add SHARE.SCHEMA.TABLE DATASET`, or with --parquet, --delta or --iceberg.",
        )
    if files and (changelog or at is not None):
        raise UsageError("--changelog and --at are for datasets", hint="Omit them.")
    if where.table is not None:
        source = _source(context, dataset, at, changelog=changelog) if dataset is not None else _files_source(files)
        sharing.shares.add_table(where, source, comment)
    elif where.schema is not None:
        sharing.shares.add_schema(where)
    else:
        sharing.shares.add_share(path, comment)
    session_of(context).output.info(f"Added the {where.what} {where}; `odf grant add` grants access to it")


@command(share, "odf share list", name="list")
def list_(context: typer.Context, form: Form = None) -> None:
    """List the shares and their numbers of tables."""
    sharing, output = sharing_of(context), session_of(context).output_as(form)
    found, tables = sharing.shares.shares(), sharing.shares.tables()
    if not found and output.for_people:
        output.info("No shares; add one with `odf share add NAME`.")
        return
    counts = {one.id: sum(table.share_id == one.id for table in tables) for one in found}
    records = [{"name": one.name, "tables": counts[one.id], "comment": one.comment, "id": one.id} for one in found]
    output.records(records, {"Share": "name", "Tables": "tables", "Comment": "comment"})


@command(share, "odf share show sales")
def show(
    context: typer.Context,
    path: Annotated[str, typer.Argument(help="SHARE or SHARE.SCHEMA.", metavar="PATH")],
    form: Form = None,
) -> None:
    """Show the tables of a share, and their underlying data."""
    from odfpy.sharing.names import SharePath

    tables = sharing_of(context).shares.tables(SharePath.parse(path))
    output = session_of(context).output_as(form)
    if not tables and output.for_people:
        output.info(f"No tables in {path}; add one with `odf share add SHARE.SCHEMA.TABLE DATASET`.")
        return
    records = [{"table": str(table.path), "id": table.id, **_behind(context, table)} for table in tables]
    output.records(records, {"Table": "table", "Of": "source", "Shows": "shown", "At": "at", "Comment": "comment"})


@command(share, "odf share remove sales.eu.orders", "odf share remove sales")
def remove(context: typer.Context, path: Path) -> None:
    """Remove a share, a schema or a table with its grants, from the next request on. The data stays."""
    from odfpy.sharing.names import SharePath

    where = SharePath.parse(path)
    sharing_of(context).shares.remove(where)
    session_of(context).output.info(f"Removed the {where.what} {where}")


@command(share, "odf share apply -f shares.yaml --dry-run", "odf share apply -f shares.yaml --prune")
def apply(
    context: typer.Context,
    file: Annotated[str, typer.Option("--file", "-f", help="File that declares shares; - for standard input.")],
    prune: Annotated[bool, typer.Option("--prune", help="Also remove what the file does not declare.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the difference.")] = False,
) -> None:
    """Apply the shares, recipients, groups and grants that a file declares."""
    from odfpy.sharing.checked import shared_files
    from odfpy.sharing.declared import DeclaredTable, load_declared, steps, undeclared_grants
    from odfpy.sharing.model import SourceKind
    from odfpy.sharing.tables.opener import TableOpener, shared_dataset

    session = session_of(context)

    def resolve(table: DeclaredTable) -> TableSource:
        kind, place = table.source
        if kind is SourceKind.DATASET:
            return shared_dataset(session.workspace.storage.get(place), table.shown, table.at)
        return shared_files(kind, place)

    declared = load_declared(read_file(file), file)
    sharing = sharing_of(context)
    opener = TableOpener([session.workspace.storage], [session.workspace.queries.service])
    found = steps(sharing, declared, resolve, opener.open, prune=prune)
    undeclared = [] if prune else undeclared_grants(sharing, declared)
    for step in found:
        if not dry_run:
            step.take()
        session.output.text(f"{step.sign} {step.text}")
        if step.unfit:
            session.output.warn(empty_tables_warning(step.unfit))
    if undeclared:
        session.output.warn(_stay_in_force(undeclared))
    if not found:
        session.output.info(f"Everything is as {file} declares it")
    elif dry_run:
        session.output.info(f"{count_of(len(found), 'change')}; nothing was changed")


@command(schema, "odf schema add sales.eu", name="add")
def add_schema(context: typer.Context, path: Path) -> None:
    """Add an empty schema; `odf share add` of a table adds its schema automatically."""
    from odfpy.sharing.names import SharePath

    where = SharePath.parse(path)
    sharing_of(context).shares.add_schema(where)
    session_of(context).output.info(f"Added the schema {where}")


@command(schema, "odf schema list sales", name="list")
def list_schemas(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the share.", metavar="SHARE")],
    form: Form = None,
) -> None:
    """List the schemas of a share."""
    names = sharing_of(context).shares.schemas(name)
    session_of(context).output_as(form).records([{"name": one} for one in names], {"Schema": "name"})


@command(schema, "odf schema remove sales.eu", name="remove")
def remove_schema(context: typer.Context, path: Path) -> None:
    """Remove a schema with its tables and their grants. The data stays."""
    from odfpy.sharing.names import SharePath

    where = SharePath.parse(path)
    if where.what != "schema":
        raise UsageError(f"{path} is a {where.what}, not a schema", hint="Write SHARE.SCHEMA.")
    sharing_of(context).shares.remove(where)
    session_of(context).output.info(f"Removed the schema {where}")


def _stay_in_force(grants: list[str]) -> str:
    count = len(grants)
    more = f"; and {count - _SHOWN} more" if count > _SHOWN else ""
    what = f"{count_of(count, 'grant')} that the file does not declare {'stays' if count == 1 else 'stay'} in force"
    return f"{what}: {'; '.join(grants[:_SHOWN])}{more}. --prune removes {'it' if count == 1 else 'them'}"


def _source(context: typer.Context, dataset: str, at: str | None, *, changelog: bool) -> TableSource:
    from odfpy.sharing.model import SharedView
    from odfpy.sharing.tables.opener import shared_dataset

    found = session_of(context).workspace.storage.get(dataset)
    return shared_dataset(found, SharedView.CHANGELOG if changelog else SharedView.CURRENT, at)


def _files_source(files: dict[str, str]) -> TableSource:
    from odfpy.sharing.checked import shared_files
    from odfpy.sharing.model import SourceKind

    kind, location = next(iter(files.items()))
    return shared_files(SourceKind.parse(kind), location)


def _behind(context: typer.Context, table: SharedTable) -> dict[str, str | None]:
    from odfpy.errors import OdfError
    from odfpy.sharing.model import SourceKind

    source = table.source
    name = source.location
    if source.kind is SourceKind.DATASET:
        try:
            name = str(session_of(context).workspace.storage.get(name).handle)
        except OdfError:
            name = f"{name} (no longer here)"
    return {
        "source": name,
        "kind": source.kind.value,
        "shown": source.shown.value if source.kind is SourceKind.DATASET else None,
        "at": source.at,
        "comment": table.comment,
    }
