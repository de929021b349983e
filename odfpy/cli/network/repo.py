"""`odf repo`: named locations for exchanging datasets, and remembered locations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.cli.grammar import Form, Name, Yes, command, complete_repositories, group, session_of

if TYPE_CHECKING:
    from odfpy.repository.registry import AliasKind

app = group("Repositories: named locations through which datasets are exchanged.")

RepositoryName = Annotated[str, typer.Argument(help="Its name in this workspace.", metavar="NAME")]

KnownRepository = Annotated[
    str,
    typer.Argument(help="Its name in this workspace.", metavar="NAME", autocompletion=complete_repositories),
]


@command(
    app,
    "odf repo add mirror /srv/mirror",
    "odf repo add public https://example.com/odf",
    "odf repo add lake s3://bucket/odf",
)
def add(
    context: typer.Context,
    name: RepositoryName,
    url: Annotated[
        str,
        typer.Argument(
            help="A path, or a URL: file://, http(s)://, s3://, gs://, az://, odf+http(s)://.", metavar="URL"
        ),
    ],
) -> None:
    """Add a named repository."""
    session = session_of(context)
    repository = session.workspace.remotes.repositories.add(name, url)
    session.output.info(f"Added {repository.name}: {repository.public_url}")


@command(app, "odf repo list", name="list")
def list_(context: typer.Context, form: Form = None) -> None:
    """List the repositories."""
    session = session_of(context)
    output = session.output_as(form)
    found = session.workspace.remotes.repositories.list()
    if not found and output.for_people:
        output.info("No repositories; add one with `odf repo add NAME URL`.")
        return
    output.records([{"name": str(item.name), "url": item.public_url} for item in found], {"Name": "name", "URL": "url"})


@command(app, "odf repo delete mirror --yes")
def delete(context: typer.Context, name: KnownRepository, yes: Yes = False) -> int:
    """Delete the name of a repository; its datasets stay."""
    session = session_of(context)
    registry = session.workspace.remotes.repositories
    repository = registry.get(name)
    if not session.confirm(f"Forget {repository.name} ({repository.public_url})?", yes=yes):
        session.output.error("not forgotten")
        return 1
    registry.delete(name)
    session.output.info(f"Forgot {repository.name}; its datasets stay")
    return 0


@command(app, "odf repo forget com.example.rates mirror/com.example.rates", "odf repo forget rates /srv/rates --pull")
def forget(
    context: typer.Context,
    name: Name,
    repository: Annotated[str, typer.Argument(help="The repository, as `odf show` prints it.", metavar="REPOSITORY")],
    pull: Annotated[bool, typer.Option("--pull", help="Forget only that it is pulled from there.")] = False,
    push: Annotated[bool, typer.Option("--push", help="Forget only that it is pushed there.")] = False,
) -> None:
    """Forget that a dataset is pulled from or pushed to a repository; the copy there stays."""
    session = session_of(context)
    aliases = session.workspace.remotes.aliases(name)
    kinds: tuple[AliasKind, ...] = ("pull", "push")
    wanted = [kind for kind in kinds if pull == push or kind == ("pull" if pull else "push")]
    known = aliases.kinds_of(repository)
    for kind in [kind for kind in wanted if kind in known] or wanted[:1]:  # raises the error that lists alternatives
        aliases.remove(kind, repository)
        session.output.info(f"Forgot that {name} is {'pulled from' if kind == 'pull' else 'pushed to'} {repository}")
