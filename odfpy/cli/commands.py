"""All commands by name. Each is imported only when it runs, so that short commands start quickly."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer

from odfpy.cli.grammar import Group
from odfpy.cli.session import Session
from odfpy.errors import UsageError

# Name, module under `odfpy.cli`, summary. A test checks that the summaries match those of the commands.
SECTIONS = {
    "Datasets": {
        "init": ("workspace.system", "Create a workspace."),
        "new": ("datasets.manifests", "Write a commented manifest to start from."),
        "add": ("datasets.manifests", "Create datasets from manifests, in dependency order."),
        "status": (
            "datasets.status",
            "List datasets that need attention: failed, late, diverged, behind or unpushed.",
        ),
        "list": ("datasets.listing", "List the datasets of the workspace."),
        "show": ("datasets.listing", "Show the metadata of a dataset."),
        "log": ("datasets.log", "Show the history of a dataset, newest first."),
        "inspect": ("datasets.inspect", "Inspect a dataset: schema, lineage, source, query."),
        "rename": ("datasets.housekeeping", "Give a dataset another name."),
        "delete": ("datasets.housekeeping", "Delete datasets, with their data."),
    },
    "Ingest": {
        "pull": ("datasets.ingest", "Bring datasets up to date from their sources, inputs or origins."),
        "ingest": ("datasets.ingest", "Ingest files or standard input into a dataset."),
        "source": ("workspace.source", "List sources, and approve those that may run in this workspace."),
    },
    "Archives of files": {
        "archive": ("archive.archive", "Archives of files: stored unchanged, with search by type, origin and time."),
    },
    "Queries": {
        "sql": ("query.sql", "Query datasets with SQL, or start a shell."),
        "tail": ("query.sql", "Print the last rows of a dataset."),
        "export": ("query.export", "Write a dataset, or the answer to a query, to files."),
        "provenance": ("query.provenance", "Show where a row comes from, down to its sources."),
    },
    "Verification and housekeeping": {
        "verify": ("datasets.verify", "Check every hash and every rule, and replay every transform."),
        "verify-result": (
            "query.proofs",
            "Verify a signed query result: check the signature and run the query again.",
        ),
        "reset": ("datasets.housekeeping", "Reset a dataset to a block."),
        "compact": ("datasets.housekeeping", "Merge small data files into fewer, larger ones."),
        "gc": ("datasets.housekeeping", "Delete unreferenced files."),
    },
    "Branches and tags": {
        "tag": ("datasets.branch", "List the tags of a dataset, or tag a block."),
        "branch": ("datasets.branch", "List the branches of a dataset, or create one."),
        "diff": (
            "datasets.diff",
            "Show what a branch would add to a dataset, or compare two versions.",
        ),
        "merge": ("datasets.merge", "Merge a branch, or drop it."),
    },
    "Automation": {
        "schedule": ("automation.schedule", "Schedules: when `odf run` pulls, compacts, verifies and pushes datasets."),
        "run": ("automation.run", "Run the scheduler, until Ctrl-C or SIGTERM."),
        "runs": ("automation.runs", "Show past and current runs of the scheduler, newest first."),
        "notify": (
            "automation.notify",
            "Notifications by webhook or mail, for datasets that fail, recover or are late.",
        ),
    },
    "Repositories and servers": {
        "clone": ("network.transfer", "Copy a dataset into a new workspace."),
        "push": ("network.transfer", "Copy datasets to a repository."),
        "repo": ("network.repo", "Repositories: named locations through which datasets are exchanged."),
        "search": ("network.search", "Search repositories for datasets; without TEXT, list all."),
        "serve": ("network.serve", "Serve the datasets of this workspace over HTTP."),
        "set-visibility": (
            "network.serve",
            "Make datasets of `odf serve` public or private.",
        ),
        "ui": (
            "network.ui",
            "Open the workspace in the browser: start a server on this machine, and sign in.",
        ),
        "mcp": (
            "network.mcp",
            "Serve the workspace to an agent, over standard input and output.",
        ),
        "token": (
            "network.token",
            "Access tokens for the datasets of this workspace in `odf serve`.",
        ),
        "webhook": ("network.webhook", "Webhooks: URLs that `odf serve` calls when a dataset has a new head."),
        "login": ("network.login", "Test a token for a server, and store it in a file that only you can read."),
        "logout": ("network.login", "Delete the stored token for a server; it stays valid there until it is revoked."),
    },
    "Sharing with external users": {
        "share": (
            "sharing.share",
            "Shares: tables that external users may read over the Delta Sharing protocol.",
        ),
        "schema": ("sharing.share", "Schemas of shares: groups of tables."),
        "recipient": (
            "sharing.principals",
            "Recipients: external users who may read shares, their profile files and tokens.",
        ),
        "user": ("sharing.principals", "Users: people of your organization who may read shares."),
        "group": ("sharing.principals", "Groups of users and recipients, for common grants."),
        "grant": ("sharing.grant", "Grants: who may read which columns and rows of shared tables."),
        "audit": ("sharing.audit", "Show the audit log of Delta Sharing, newest first."),
    },
    "Federation": {
        "relay": ("relay.relay", "A relay: answers queries over your data and that of peers."),
        "web": ("relay.web", "A web of relays: one query over the data of all of them."),
    },
    "Keys, settings and help": {
        "key": ("workspace.key", "Keys: your own key, which signs commits, and trusted keys of others."),
        "config": ("workspace.config", "Settings of the workspace, of the user, and of single datasets."),
        "engine": ("workspace.engine", "The Spark engine of the workspace."),
        "system": ("workspace.system", "Information about this installation, and checks."),
        "completion": ("completion", "Print a script for a shell, so that the Tab key completes commands and names."),
        "version": ("workspace.system", "Print the versions of odfpy and of the specification it follows."),
    },
}
COMMANDS = {name: what for section in SECTIONS.values() for name, what in section.items()}
ALSO = {"ls": "list", "rm": "delete", "mv": "rename"}
"""Synonyms from other programs, each for exactly one command."""

INSTEAD = {
    "blame": "`odf provenance NAME OFFSET` shows where a row comes from, `odf log NAME` who committed what.",
    "build": "`odf pull --all` brings all datasets up to date.",
    "cat": "`odf tail NAME` prints the last rows, `odf export NAME --to -` all of them.",
    "checkout": "NAME@BLOCK is the dataset as of a block: `odf tail NAME@BLOCK`. `odf reset` resets to a block.",
    "clean": "`odf gc` deletes unreferenced files.",
    "commit": "`odf pull` and `odf ingest` commit what they ingest.",
    "compile": "`odf add FILE` checks the query of a manifest.",
    "console": "`odf sql` opens a shell, `odf ui` the workspace in the browser.",
    "create": "`odf new NAME` writes a manifest, `odf add FILE` creates its dataset.",
    "debug": "`odf system diagnose` checks the installation.",
    "describe": "`odf show NAME` shows the metadata of a dataset, `odf inspect schema NAME` its columns.",
    "docs": "`odf ui` shows datasets, columns and lineage in the browser.",
    "drop": "`odf delete NAME` deletes a dataset.",
    "fetch": "`odf pull NAME` fetches and commits.",
    "fsck": "`odf verify --all` checks every hash and every rule.",
    "head": "`odf tail NAME` prints the last rows, `odf log NAME -n 1` the head block.",
    "history": "`odf log NAME` shows the history.",
    "import": "`odf ingest NAME FILE` ingests files.",
    "info": "`odf show NAME` shows the metadata of a dataset, `odf system info` the installation.",
    "lineage": "`odf inspect lineage NAME` shows what a dataset is derived from.",
    "load": "`odf ingest NAME FILE` ingests files.",
    "notebook": "In a notebook, `%load_ext odfpy` adds the SQL cells `%%odf`; `import odfpy` works in any.",
    "query": "`odf sql QUERY` runs SQL.",
    "refresh": "`odf pull NAME` brings a dataset up to date.",
    "remote": "`odf repo` manages the repositories.",
    "restore": "NAME@BLOCK is the dataset as of a block: `odf tail NAME@BLOCK`. `odf reset` resets to a block.",
    "revert": "`odf reset NAME BLOCK` drops all blocks after BLOCK. If others have copies, add corrections as rows.",
    "rollback": "`odf reset NAME BLOCK` drops all blocks after BLOCK.",
    "seed": "`odf new NAME --from FILE` writes a manifest for a file, `odf add` and `odf pull` ingest it.",
    "select": "`odf sql QUERY` runs SQL.",
    "stash": "`odf branch NAME BRANCH` creates a branch; until it is merged, its blocks are not in the dataset.",
    "switch": "NAME@BRANCH is a branch of a dataset: `odf tail NAME@BRANCH`.",
    "test": "`odf verify NAME` checks the hashes of a dataset, and recomputes derivatives.",
    "undo": "`odf reset NAME BLOCK` drops all blocks after BLOCK.",
    "update": "`odf pull NAME` brings a dataset up to date.",
    "watch": "`odf ingest NAME --watch FOLDER` ingests files as they arrive, `odf run` pulls at set times.",
}
"""Suggestions for words from other programs that match no single command."""

GROUPS = {
    **dict.fromkeys(
        ("inspect", "source", "repo", "token", "webhook", "key", "config", "engine", "system", "notify", "schedule"),
        "app",
    ),
    "share": "share",
    "archive": "app",
    "relay": "app",
    "web": "app",
    "schema": "schema",
    "recipient": "recipient",
    "user": "user",
    "group": "groups",
    "grant": "app",
}
"""Commands with subcommands, and the name of the group in the module of each."""


class _Root(Group):
    """The root of the command line. It imports commands lazily."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return all names, in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command by name; return None if there is none."""
        del ctx
        cmd_name = ALSO.get(cmd_name, cmd_name)
        return _command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve the command that the arguments begin with, also if it is a synonym from another program.

        Raises:
            UsageError: the command is unknown; the message has a suggestion.
        """
        word = args[0]
        if word in INSTEAD and not ctx.resilient_parsing:
            raise UsageError(f"No such command: {word}", hint=INSTEAD[word])
        return super().resolve_command(ctx, [ALSO.get(word, word), *args[1:]])

    def summaries(self, ctx: Any) -> list[tuple[str, str]]:
        """Return the commands with their summaries, without importing them."""
        del ctx
        return [(name, what) for name, (_, what) in COMMANDS.items()]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in the help, section by section."""
        del ctx
        longest = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(longest), what) for name, (_, what) in commands.items()])


@cache
def _command(name: str) -> Any:
    """Return a command. Cached, since programs and tests may run many commands in one process."""
    module = import_module(f"odfpy.cli.{COMMANDS[name][0]}")
    if name in GROUPS:
        return typer.main.get_group(getattr(module, GROUPS[name]))
    return typer.main.get_group(module.commands).commands.get(name)


app = typer.Typer(
    name="odf",
    cls=_Root,
    help="A verifiable, append-only data ledger: git for data that keeps flowing.",
    epilog="odf init my-data\nodf add -r snapshots/\nodf pull --all\nodf help pull\nodf help E402",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,  # the completion of odfpy is faster, see `completion`
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from odfpy import __version__

        sys.stdout.write(f"odf {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    workspace: Annotated[
        str | None, typer.Option("--workspace", "-w", help="Folder of the workspace.", metavar="PATH")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors and the requested data.")] = False,
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, help="Print more; twice for tracebacks.", show_default=False)
    ] = 0,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Declare the options of the whole program; `grammar` passes them to the session."""


@cache
def _root() -> Any:
    """Return the root command. Cached."""
    return typer.main.get_command(app)


def execute(arguments: Sequence[str], session: Session) -> int:
    """Run one command and return its exit code.

    Raises:
        OdfError: the command failed.
        Exception: an error of the argument parser: the arguments are invalid.
    """
    root = _root()
    if shell := os.environ.get("_ODF_COMPLETE"):  # a shell asks for completions
        from odfpy.cli.completion import answer

        session.output.text(answer(root, shell, arguments).rstrip("\n"))
        return 0
    if arguments[:1] == ["help"]:
        from odfpy.codec.explain import as_text, explanation, is_code

        if len(arguments) > 1 and is_code(arguments[1]):
            session.output.text(as_text(explanation(arguments[1])))
            return 0
        arguments = [*arguments[1:], "--help"]
    # Typer's own `main` would catch interruptions and broken pipes.
    try:
        with root.make_context("odf", list(arguments), obj=session) as context:
            result = root.invoke(context)
    except typer.Exit as exit_:
        return exit_.exit_code
    return result if isinstance(result, int) else 0
