"""`odf source`: actions of sources on this machine, and their approval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from odfpy.cli.grammar import Form, Name, Names, Yes, command, group, session_of
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.cli.session import Session
    from odfpy.coordinator.ingest.source_actions import KnownSource
    from odfpy.coordinator.requests import PullRequest
    from odfpy.coordinator.storage.results import PullResult

app = group("List sources, and approve those that may run in this workspace.")


@command(app, "odf source list", "odf source list com.example.rates -o json", name="list")
def list_(context: typer.Context, names: Names = None, form: Form = None) -> None:
    """List sources, what each of them does, and whether it is approved."""
    output = session_of(context).output_as(form)
    found = session_of(context).workspace.sources.all(names or ())
    if not output.for_people:
        output.tree([tree_of(one) for one in found])
        return
    if not found:
        output.info("No sources.")
    for one in found:
        output.text("\n".join(lines_of(one)))


@command(app, "odf source trust com.example.rates", "odf source trust com.example.rates --yes")
def trust(
    context: typer.Context,
    name: Name,
    yes: Yes = False,
) -> int:
    """Show what the sources of a dataset do, and approve exactly these."""
    session = session_of(context)
    output, workspace = session.output, session.workspace
    found = workspace.sources.all([name])
    if not found:
        raise UsageError(f"{name} has no source", hint="`odf show` shows its inputs.")
    if not _ask(session, found, yes=yes):
        output.error("not approved")
        return 1
    workspace.sources.trust(name)
    output.info(f"{found[0].handle}: approved")
    return 0


@command(app, "odf source untrust com.example.rates")
def untrust(context: typer.Context, name: Name) -> None:
    """Remove the approval of the sources of a dataset."""
    session = session_of(context)
    was_approved = session.workspace.sources.untrust(name)
    session.output.info(
        f"{name}: its sources are no longer approved here" if was_approved else f"{name}: no source was approved here"
    )


def asking(session: Session, results: Iterable[PullResult], request: PullRequest) -> Iterator[PullResult]:
    """Yield the results of a pull; at the end, ask the user about unapproved sources.

    Args:
        session: a session at a terminal.
        results: results of the pull.
        request: the pull request; repeated for unapproved datasets and failed ones after them.
    """
    from odfpy.coordinator.storage.approvals import SourceNotApproved

    held: list[PullResult] = []
    for result in results:
        if isinstance(result.error, SourceNotApproved) or (held and result.error is not None):
            held.append(result)
        else:
            yield result
    trusted = False
    for result in held:
        if isinstance(result.error, SourceNotApproved):
            session.progress.clear()
            session.output.info(f"{result.error.message}.")
            if _ask(session, session.workspace.sources.all([result.name]), yes=False):
                session.workspace.sources.trust(result.name)
                trusted = True
    if not trusted:
        yield from held
        return
    again = replace(request, refs=tuple(result.name for result in held), recursive=False, as_name=None)
    yield from session.workspace.updates.pull(again, session.progress)


def _ask(session: Session, sources: Iterable[KnownSource], *, yes: bool) -> bool:
    """Show the actions of sources and ask for approval."""
    for source in sources:
        session.output.info("\n".join(lines_of(source)))
    return session.confirm("Approve this source in this workspace?", yes=yes)


def lines_of(source: KnownSource) -> list[str]:
    """Describe a source for people."""
    which = "pull" if source.name is None else f"push source {source.name!r}"
    state = "approved" if source.is_approved else "NOT approved"
    return [f"{source.handle} ({which}): {state}", *(f"  {action.text}" for action in source.actions)]


def tree_of(source: KnownSource) -> dict[str, object]:
    """Return a source as a tree for programs."""
    return {
        "name": str(source.handle),
        "id": str(source.handle.id),
        "source": source.name,
        "approved": source.is_approved,
        "actions": [{"text": action.text, "reachesOut": action.reaches_out} for action in source.actions],
    }
