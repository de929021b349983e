"""`odf sql --commit` and `odf verify-result`: answers that somebody is bound to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.cli.grammar import Form, command, group, session_of
from odfpy.cli.screen.results import plural
from odfpy.errors import NotFound, OdfError, UsageError
from odfpy.files import replace_file

if TYPE_CHECKING:
    from odfpy.cli.screen.answers import Showing
    from odfpy.cli.screen.output import Output
    from odfpy.cli.session import Session

commands = group("Answers with proofs.")


def commit_answer(session: Session, query: str | None, showing: Showing, file: str, output: Output) -> None:
    """Answer a query, write the answer with a proof to a file, and print its rows.

    Args:
        session: says whose datasets are asked.
        query: the question.
        showing: by which engine, how many rows, and how long it may take.
        file: where to.
        output: where the rows go.

    Raises:
        UsageError: there is no query, or more than one, or no such file can be.
        NotReproducible: of this query there is no proof.
        OdfError: as the engine says; no file is written then.
    """
    from odfpy.coordinator.storage.keys import answer_key
    from odfpy.engine.control import Control
    from odfpy.query.dialects import dialect_named
    from odfpy.query.tables import split_statements
    from odfpy.query.wire.request import MOST_ROWS, Include, QueryRequest
    from odfpy.query.wire.response import ask
    from odfpy.query.wire.verification import CommittedAnswer

    statements = split_statements(query or "")
    if len(statements) != 1:
        raise UsageError("--commit is for the answer to one query", hint='odf sql -c "select ..." --commit FILE')
    if file in ("", "-") or Path(file).is_dir() or not Path(file).parent.is_dir():
        raise UsageError(f"--commit wants a file in a folder that is there, not {file!r}")
    request = QueryRequest.to(
        statements[0],
        engine=dialect_named(showing.engine or "spark").name,
        include=(Include.PROOF, Include.SCHEMA),
        limit=MOST_ROWS if showing.limit is None else showing.limit,
    )
    workspace = session.workspace
    with Control(showing.timeout) as control:
        answer = ask(workspace.queries.service, request, control=control)
    document = CommittedAnswer.parse(answer.tree(answer_key(workspace.root)))
    replace_file(Path(file), (json.dumps(document.tree(), ensure_ascii=False, indent=1) + "\n").encode())
    output.arrow(answer.table)
    output.say(f"{file}: {plural(answer.table.num_rows, 'row')}, signed by {document.proof.verification_method}")


@command(
    commands,
    "odf verify-result answer.json",
    "odf verify-result answer.json --key did:key:z6Mko2nqhQ9wYSTS5Giab2j1aHzGnxHimqwmFeEVY8aNsVnN",
    name="verify-result",
)
def verify_result(
    context: typer.Context,
    file: Annotated[
        str, typer.Argument(help="The answer: a file of `odf sql --commit`, or of a node.", metavar="FILE")
    ],
    key: Annotated[
        str | None,
        typer.Option(help="By whom it must be signed: a key, or the name of one that you trust.", metavar="KEY"),
    ] = None,
    form: Form = None,
) -> None:
    """Check an answer with a proof, whether it is what was signed, and comes out again."""
    from odfpy.coordinator.storage.keys import UserKeys
    from odfpy.query.wire.verification import CommittedAnswer, verify_answer

    session = session_of(context)
    output = session.output_as(form)
    keys = UserKeys()
    try:
        data = Path(file).read_bytes()
    except FileNotFoundError:
        raise NotFound(f"No such file: {file}") from None
    except OSError as error:
        raise OdfError(f"Cannot read {file}: {error.strerror}") from error
    signer = None if key is None else keys.find(key)
    try:
        document = CommittedAnswer.load(data)
        request = verify_answer(session.workspace.queries.service, document, signer)
    except OdfError as error:
        error.message = f"{file}: {error.message}"
        raise
    datasets = [{"id": str(one.id), "name": one.alias, "block": str(one.block_hash)} for one in request.datasets or ()]
    if not output.for_people:
        signed_by = document.proof.verification_method
        output.tree({"file": file, "ok": True, "signer": signed_by, "query": request.query, "datasets": datasets})
        return
    output.text(f"{file}: the answer is as it was signed by {keys.name_of(document.proof.signer)}, and comes out again")
    for dataset in datasets:
        here = str(session.workspace.datasets.handle(dataset["id"]).alias)
        name = dataset["name"] if dataset["name"] == here else f"{dataset['name']} ({here} here)"
        output.text(f"  {name} as of block {dataset['block']}")
