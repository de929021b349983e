"""`odf sql --commit` and `odf verify-result`: signed, verifiable query results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.cli.grammar import Form, command, group, session_of
from odfpy.data.amounts import count_of
from odfpy.errors import NotFound, OdfError, UsageError, WorkspaceNotFound
from odfpy.files import replace_file

if TYPE_CHECKING:
    from odfpy.cli.screen.answers import DisplayOptions
    from odfpy.cli.screen.output import Output
    from odfpy.cli.session import Session
    from odfpy.dataset.identity import ActorId
    from odfpy.sharing.statements import Statement

commands = group("Answers with proofs.")


def commit_answer(session: Session, query: str | None, showing: DisplayOptions, file: str, output: Output) -> None:
    """Run a query, write the result with a proof to a file, and print its rows.

    Args:
        session: session of the workspace to query.
        query: the query.
        showing: the engine, the row limit, and the timeout.
        file: target file.
        output: the output for the rows.

    Raises:
        UsageError: there is no query, more than one, or the file name is invalid.
        NotReproducible: the query cannot have a proof.
        OdfError: raised by the engine; no file is written then.
    """
    from odfpy.coordinator.storage.keys import answer_key
    from odfpy.engine.cancellation import CancellationToken
    from odfpy.query.dialects import dialect_named
    from odfpy.query.tables import split_statements
    from odfpy.query.wire.request import MAX_ROWS, Include, QueryRequest
    from odfpy.query.wire.response import ask
    from odfpy.query.wire.verification import CommittedAnswer

    dialect = dialect_named(showing.engine or "spark")
    statements = split_statements(query or "", dialect)
    if len(statements) != 1:
        raise UsageError("--commit is for the answer to one query", hint='odf sql -c "select ..." --commit FILE')
    if file in ("", "-") or Path(file).is_dir() or not Path(file).parent.is_dir():
        raise UsageError(f"--commit must be a file in an existing folder, not {file!r}")
    request = QueryRequest.to(
        statements[0],
        engine=dialect.name,
        include=(Include.PROOF, Include.SCHEMA),
        limit=MAX_ROWS if showing.limit is None else showing.limit,
    )
    workspace = session.workspace
    with CancellationToken(showing.timeout) as control:
        answer = ask(workspace.queries.service, request, control=control)
    document = CommittedAnswer.parse(answer.tree(answer_key(workspace.root)))
    replace_file(Path(file), (json.dumps(document.tree(), ensure_ascii=False, indent=1) + "\n").encode())
    output.arrow(answer.table)
    output.info(f"{file}: {count_of(answer.table.num_rows, 'row')}, signed by {document.proof.verification_method}")


@command(
    commands,
    "odf verify-result answer.json",
    "odf verify-result answer.json --key did:key:z6Mko2nqhQ9wYSTS5Giab2j1aHzGnxHimqwmFeEVY8aNsVnN",
    "odf verify-result acme.share#sales.eu.orders --rows orders.parquet",
    name="verify-result",
)
def verify_result(
    context: typer.Context,
    file: Annotated[
        str,
        typer.Argument(
            help="The answer: a file of `odf sql --commit` or of a node, or a shared table: PROFILE#SHARE.SCHEMA.TABLE",
            metavar="FILE",
        ),
    ],
    key: Annotated[
        str | None,
        typer.Option(help="Required signer: a key, or the name of one that you trust.", metavar="KEY"),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(help="Rows that you have read from a shared table: a Parquet file or folder.", metavar="FILE"),
    ] = None,
    version: Annotated[
        int | None, typer.Option(help="Version of the shared table, the newest by default.", metavar="N", min=0)
    ] = None,
    save: Annotated[str | None, typer.Option(help="Save the proof of the server to a file.", metavar="FILE")] = None,
    form: Form = None,
) -> None:
    """Verify a signed query result: check the signature and run the query again."""
    from odfpy.coordinator.storage.keys import UserKeys
    from odfpy.query.wire.verification import CommittedAnswer, verify_answer
    from odfpy.sharing.recipient import SharedTableUrl
    from odfpy.sharing.statements import Statement

    session = session_of(context)
    output = session.output_as(form)
    keys = UserKeys()
    signer = None if key is None else keys.find(key)
    shared = SharedTableUrl.parse(file)
    if shared is None and (version is not None or save is not None):
        raise UsageError("--version and --save are for shared tables", hint="Write PROFILE#SHARE.SCHEMA.TABLE.")
    data = _read(file) if shared is None else shared.proof(version)
    try:
        document = CommittedAnswer.load(data)
        statement = Statement.of(document)
        if statement is not None:
            if save is not None:
                replace_file(Path(save), data)
            _verify_statement(session, file, statement, signer, rows, output)
            return
        if rows is not None:
            raise UsageError("--rows is for shared tables; this is an answer to a query, which has its rows")
        request = verify_answer(session.workspace.queries.service, document, signer, revoked=keys.revoked)
    except OdfError as error:
        error.message = f"{file}: {error.message}"
        raise
    datasets = [{"id": str(one.id), "name": one.alias, "block": str(one.block_hash)} for one in request.datasets or ()]
    if not output.for_people:
        signed_by = document.proof.verification_method
        output.tree({"file": file, "ok": True, "signer": signed_by, "query": request.query, "datasets": datasets})
        return
    output.text(
        f"{file}: the answer was signed by {keys.name_of(document.proof.signer)}, and the query gives the same answer"
    )
    for dataset in datasets:
        here = str(session.workspace.datasets.handle(dataset["id"]).alias)
        name = dataset["name"] if dataset["name"] == here else f"{dataset['name']} ({here} here)"
        output.text(f"  {name} as of block {dataset['block']}")


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except FileNotFoundError:
        raise NotFound(f"No such file: {file}") from None
    except OSError as error:
        raise OdfError(f"Cannot read {file}: {error.strerror}") from error


def _verify_statement(
    session: Session, file: str, statement: Statement, signer: ActorId | None, rows: str | None, output: Output
) -> None:
    """Check a statement about a shared table, and print the findings.

    Args:
        session: session of the command; its workspace may have the dataset, but recipients have no workspace.
        file: name of the statement, for messages.
        statement: the statement.
        signer: required signer; None accepts any.
        rows: file of the received rows, None for none.
        output: the output of the command.
    """
    from odfpy.coordinator.storage.keys import UserKeys

    keys = UserKeys()
    try:
        service = session.workspace.queries.service
    except WorkspaceNotFound:
        service = None
    is_here = statement.check(
        service, revoked=keys.revoked, signer=signer, arrived=None if rows is None else Path(rows)
    )
    table, proof, count = statement.table, statement.document.proof, statement.rows.num_rows
    bound = table.dataset
    if not output.for_people:
        found = {"file": file, "ok": True, "signer": proof.verification_method, "table": table.shared_table}
        found |= {"recipient": table.recipient, "version": table.version, "timestamp": table.timestamp, "rows": count}
        found |= {"dataset": None if bound is None else {"id": str(bound.id), "block": str(bound.block_hash)}}
        output.tree(found | {"comparedRows": rows, "comparedDataset": is_here})
        return
    what = f"version {table.version} of {table.shared_table} for {table.recipient}, {count_of(count, 'row')}"
    output.text(f"{file}: {what}, signed by {keys.name_of(proof.signer)}")
    if rows is not None:
        output.text(f"  {rows} matches the signed rows")
    if bound is None:
        output.text("  it names no block: the recipient reads a part of the table, or it is not a dataset")
    else:
        state = "gives the same rows" if is_here else "is not in this workspace: its rows were not compared"
        output.text(f"  {bound.id} as of block {bound.block_hash} {state}")
