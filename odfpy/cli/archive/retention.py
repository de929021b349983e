"""`odf archive hold`, `retention` and `expire`: control how long the bytes of files are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.cli.archive.options import ArchiveName, Who, Why, acting_user, archive_of, local
from odfpy.cli.grammar import Form, command, group, session_of
from odfpy.data.amounts import count_of
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.archive.local import LocalArchive
    from odfpy.cli.screen.output import Columns, Record
    from odfpy.cli.session import Session
    from odfpy.data.timestamp import Timestamp

hold = group("Legal holds: keep files regardless of retention rules.")
retention = group("Retention rules: how long files have to be kept.")

Words = Annotated[
    list[str] | None,
    typer.Option(help="Only files of these types or origins; repeatable, or comma-separated.", metavar="NAME"),
]
OneWhat = Annotated[str | None, typer.Option("--what", help="Only for files of this type.", metavar="WHAT")]
OneWhere = Annotated[str | None, typer.Option("--where", help="Only for files from this origin.", metavar="WHERE")]


def _opened(session: Session, name: str | None) -> LocalArchive:
    return local(archive_of(session, name))


@command(
    hold,
    "odf archive hold add case-17 --what nginx --where web1 --start 2024-01-01 --end 2024-02-01 --why 'court order'",
    "odf archive hold add audit --id 6309e115c2914d0f8622973422626954 --why 'auditors ask'",
)
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the hold, such as a case.", metavar="NAME")],
    why: Why = "",
    what: Words = None,
    where: Words = None,
    start: Annotated[str | None, typer.Option(help="Only files from this time on.", metavar="TIME")] = None,
    end: Annotated[str | None, typer.Option(help="Only files up to this time.", metavar="TIME")] = None,
    work_id: Annotated[str | None, typer.Option(help="Only files of this job.", metavar="ID")] = None,
    ids: Annotated[list[str] | None, typer.Option("--id", help="Only these files.", metavar="ID")] = None,
    who: Who = None,
    archive: ArchiveName = None,
) -> None:
    """Keep files until the hold is lifted; by default, all files of the archive."""
    from odfpy.archive.question import words
    from odfpy.archive.retention.policy import LegalHold
    from odfpy.data.timestamp import Timestamp

    session = session_of(context)
    opened = _opened(session, archive)
    new = LegalHold(
        name=name,
        what=words(what or ()),
        where=words(where or ()),
        start=_time(start),
        end=_time(end),
        work_id=work_id,
        ids=words(ids or ()),
        who=acting_user(who),
        why=why,
        since=Timestamp.now().floor_millis(),
    )
    opened.change_policy(lambda policy: policy.with_hold(new))
    session.output.info(f"{opened.name}: files are held by {name}")


@command(hold, "odf archive hold lift case-17")
def lift(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the hold.", metavar="NAME")],
    archive: ArchiveName = None,
) -> None:
    """Lift a hold; it stays in the history of the archive."""
    session = session_of(context)
    opened = _opened(session, archive)
    opened.change_policy(lambda policy: policy.without_hold(name))
    session.output.info(f"{opened.name}: the hold {name} is lifted")


@command(hold, "odf archive hold list", name="list")
def list_holds(context: typer.Context, archive: ArchiveName = None, form: Form = None) -> None:
    """List the current holds."""
    from odfpy.codec.tree import to_tree

    session = session_of(context)
    output = session.output_as(form)
    holds = _opened(session, archive).policy.holds
    if not holds and output.for_people:
        output.info("No holds.")
        return
    columns: Columns = {"hold": "name", "since": "since", "who": "who", "why": "why", "files": _about}
    output.records([to_tree(one) for one in holds], columns)


def _about(tree: Record) -> str:
    """Describe the files of a hold for people."""
    parts = []
    for name in ("what", "where", "start", "end", "workId", "ids"):
        value = tree.get(name)
        if value:
            parts.append(f"{name} {','.join(value) if isinstance(value, list) else value}")
    return ", ".join(parts) or "all"


@command(
    retention,
    "odf archive retention set 365d --what syslog --why 'policy 12'",
    "odf archive retention set forever --what contract --why 'law'",
    name="set",
)
def set_rule(
    context: typer.Context,
    keep: Annotated[
        str,
        typer.Argument(
            help="How long, counted from the end time of a file: a duration, or forever.", metavar="DURATION"
        ),
    ],
    why: Why = "",
    what: OneWhat = None,
    where: OneWhere = None,
    who: Who = None,
    archive: ArchiveName = None,
) -> None:
    """Set how long files have to be kept; the most specific rule applies."""
    from odfpy.archive.retention.policy import RetentionRule
    from odfpy.data.timestamp import Timestamp

    session = session_of(context)
    opened = _opened(session, archive)
    now = Timestamp.now().floor_millis()
    rule = RetentionRule(keep=keep, what=what, where=where, who=acting_user(who), why=why, since=now)
    opened.change_policy(lambda policy: policy.with_rule(rule))
    session.output.info(f"{opened.name}: {rule}")


@command(retention, "odf archive retention remove --what syslog")
def remove(context: typer.Context, what: OneWhat = None, where: OneWhere = None, archive: ArchiveName = None) -> None:
    """Remove a rule; files without a rule are kept until they are withdrawn."""
    session = session_of(context)
    opened = _opened(session, archive)
    opened.change_policy(lambda policy: policy.without_rule(what, where))
    session.output.info(f"{opened.name}: the rule is removed")


@command(retention, "odf archive retention list", name="list")
def list_rules(context: typer.Context, archive: ArchiveName = None, form: Form = None) -> None:
    """List the current rules."""
    from odfpy.codec.tree import to_tree

    session = session_of(context)
    output = session.output_as(form)
    rules = _opened(session, archive).policy.retention
    if not rules and output.for_people:
        output.info("No retention rules: files are kept until they are withdrawn.")
        return
    columns = {"keep": "keep", "what": "what", "where": "where", "since": "since", "who": "who", "why": "why"}
    output.records([to_tree(rule) for rule in rules], columns)


def expire(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the files.")] = False,
    who: Who = None,
    archive: ArchiveName = None,
    form: Form = None,
) -> None:
    """Record files whose retention has ended as expired; `odf gc` removes their bytes then."""
    from odfpy.archive.expiry import expire as record
    from odfpy.archive.expiry import expired_files
    from odfpy.data.timestamp import Timestamp

    session = session_of(context)
    output = session.output_as(form)
    opened = _opened(session, archive)
    now = Timestamp.now().millis
    if not opened.policy.retention:
        raise UsageError(
            f"{opened.name} has no retention rules, so nothing expires",
            hint="odf archive retention set 365d --what WHAT --why REASON",
        )
    found = list(expired_files(opened, now) if dry_run else record(opened, who=acting_user(who), now=now))
    rows = [{**item.record.to_dict(), "url": opened.url(item.record), "rule": str(item.rule)} for item in found]
    if rows or not output.for_people:
        output.records(rows, {"url": "url", "path": "path", "start": "start_iso", "rule": "rule"})
    done = "has expired" if len(found) == 1 else "have expired"
    output.info(f"{count_of(len(found), 'file')} {'would expire' if dry_run else done}")


def _time(text: str | None) -> Timestamp | None:
    from odfpy.archive.times import parse_time
    from odfpy.data.timestamp import Timestamp

    return None if text is None else Timestamp.from_millis(parse_time(text))
