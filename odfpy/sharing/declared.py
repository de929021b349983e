"""Shares, principals and grants declared in a file, and the steps from the current to the declared state.

kind: Shares
version: 1
shares:
  sales:
    tables:
      eu.orders: {dataset: com.example.orders}
recipients:
  acme: {attributes: {country: DE}}
groups:
  partners: [acme]
grants:
  - {to: partners, path: sales.eu, rows: "country = recipient('country')"}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from odfpy.codec.yaml import load_documents
from odfpy.errors import MalformedManifest
from odfpy.sharing.checked import check_grant
from odfpy.sharing.conditions import check_condition
from odfpy.sharing.model import PrincipalKind, SharedView, SourceKind, TableSource
from odfpy.sharing.names import SharePath, folded
from odfpy.sharing.sharing import Sharing
from odfpy.sharing.tables.contract import ReadableTable

Resolver = Callable[["DeclaredTable"], TableSource]
"""Resolves the data behind a table."""

Opener = Callable[[TableSource], ReadableTable]
"""Opens a table."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DeclaredTable(_Strict):
    """A table of a share: a dataset, or one of the other kinds.

    Attributes:
        dataset: name or id of the dataset behind it.
        parquet: a folder of Parquet files, or the URL of one.
        delta: the folder of a Delta table, or the URL of one.
        iceberg: an Iceberg table, in a catalog or by its metadata file.
        shown: whether to show its current state, or its changelog.
        at: a tag or branch of the dataset.
        comment: human-readable comment.
    """

    dataset: str | None = None
    parquet: str | None = None
    delta: str | None = None
    iceberg: str | None = None
    shown: SharedView = SharedView.CURRENT
    at: str | None = None
    comment: str = ""

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> DeclaredTable:
        given = [kind.value for kind in SourceKind if getattr(self, kind.value) is not None]
        if len(given) != 1:
            raise ValueError(f"name one of dataset, parquet, delta and iceberg, not {' and '.join(given) or 'none'}")
        if self.dataset is None and (self.at is not None or self.shown is not SharedView.CURRENT):
            raise ValueError("shown and at are for datasets")
        return self

    @property
    def source(self) -> tuple[SourceKind, str]:
        """The kind of its source, and the location."""
        return next((kind, place) for kind in SourceKind if (place := getattr(self, kind.value)) is not None)


class DeclaredShare(_Strict):
    """A share.

    Attributes:
        comment: human-readable comment.
        tables: tables by `SCHEMA.TABLE`.
    """

    comment: str = ""
    tables: dict[str, DeclaredTable] = {}


class DeclaredPrincipal(_Strict):
    """A recipient or user, as declared.

    Attributes:
        attributes: attributes that row conditions can use.
    """

    attributes: dict[str, str] = {}


class DeclaredGrant(_Strict):
    """A grant.

    Attributes:
        to: name of a recipient, user or group.
        path: share, schema or table.
        columns: the only columns to show.
        rows: condition on the rows to show.
    """

    to: str
    path: str
    columns: Annotated[list[str], Field(min_length=1)] | None = None
    rows: str | None = None


class Declared(_Strict):
    """The content of a file of declarations.

    Attributes:
        kind: `Shares`.
        version: format version of the file.
        shares: shares by name.
        recipients: recipients by name.
        users: users by name.
        groups: names of the members of each group.
        grants: list of grants.
    """

    kind: Literal["Shares"]
    version: Literal[1]
    shares: dict[str, DeclaredShare | None] = {}
    recipients: dict[str, DeclaredPrincipal | None] = {}
    users: dict[str, DeclaredPrincipal | None] = {}
    groups: dict[str, list[str]] = {}
    grants: list[DeclaredGrant] = []


@dataclass(frozen=True, slots=True)
class Step:
    """One change towards the declared state.

    Attributes:
        sign: `+` adds, `-` removes, `~` changes.
        text: description of the change.
        take: performs the change.
        unfit: tables in which a grant will show nothing, since they lack columns that it names.
    """

    sign: Literal["+", "-", "~"]
    text: str
    take: Callable[[], object]
    unfit: tuple[SharePath, ...] = ()


def load_declared(data: bytes, source: str) -> Declared:
    """Parse a file of declarations.

    Args:
        data: YAML text.
        source: name of the file in messages.

    Raises:
        MalformedManifest: the file is invalid; the message names the position.
    """
    documents = list(load_documents(data.decode("utf-8", "replace"), source))
    if len(documents) != 1:
        raise MalformedManifest(f"{source} has {len(documents)} documents", hint="One file declares all shares.")
    try:
        return Declared.model_validate(documents[0].tree)
    except ValidationError as error:
        found = error.errors()[0]
        place = ".".join(map(str, found["loc"])) or "the document"
        raise MalformedManifest(f"{source}: {place}: {found['msg']}", hint="docs/sharing.md shows the form.") from error


def steps(
    sharing: Sharing, declared: Declared, resolve: Resolver, open_table: Opener | None = None, *, prune: bool
) -> list[Step]:
    """Compute the steps from the current to the declared state, without taking any.

    Args:
        sharing: the current state.
        declared: the declared state.
        resolve: looks up datasets.
        open_table: opens tables, to check that they have the columns of new grants; None to skip that.
        prune: whether to remove objects that are not declared.

    Raises:
        InvalidValue, InvalidCondition: a name or a condition is invalid.
        UsageError: a grant names a column that no table has.
        DatasetNotFound: a dataset does not exist; the message suggests a similar name.
    """
    planned = _Planned(sharing, declared, resolve, open_table)
    found = [*planned.principals(), *planned.shares(), *planned.memberships(), *planned.grants()]
    return found + list(planned.removals()) if prune else found


def undeclared_grants(sharing: Sharing, declared: Declared) -> list[str]:
    """Return existing grants that are not declared, as text: unless pruned, they stay in force.

    Raises:
        InvalidValue: a path is invalid.
    """
    wanted = _wanted_grants(declared)
    return [
        _grant_text(one.principal, one.path, one.columns, one.rows)
        for one in sharing.grants.all()
        if _grant_key(one.principal, one.path, one.columns, one.rows) not in wanted
    ]


class _Planned:
    """Computes the steps, kind by kind."""

    def __init__(self, sharing: Sharing, declared: Declared, resolve: Resolver, open_table: Opener | None) -> None:
        self._sharing = sharing
        self._declared = declared
        self._resolve = resolve
        self._open_table = None if open_table is None else cache(open_table)
        self._people = {folded(principal.name): principal for principal in sharing.principals.all()}
        self._tables = {_key(table.path): table for table in sharing.shares.tables()}
        self._sources = {key: (one.path, one.source) for key, one in self._tables.items()}
        self._shares = {folded(share.name): share for share in sharing.shares.shares()}
        self._grants = {
            _grant_key(grant.principal, grant.path, grant.columns, grant.rows): grant for grant in sharing.grants.all()
        }

    def _wanted_people(self) -> Iterator[tuple[PrincipalKind, str, dict[str, str]]]:
        for kind, people in (
            (PrincipalKind.RECIPIENT, self._declared.recipients),
            (PrincipalKind.USER, self._declared.users),
        ):
            for name, one in people.items():
                yield kind, name, one.attributes if one else {}
        for name in self._declared.groups:
            yield PrincipalKind.GROUP, name, {}

    def principals(self) -> Iterator[Step]:
        principals = self._sharing.principals
        for kind, name, attributes in self._wanted_people():
            known = self._people.get(folded(name))
            if known is None:
                yield Step("+", f"{kind.value} {name}", partial(principals.add, kind, name, attributes))
            elif known.kind is not kind:
                raise MalformedManifest(
                    f"{name} is a {known.kind.value}, and declared as a {kind.value}", hint="Choose another name."
                )
            elif dict(known.attributes) != attributes:
                text = f"{kind.value} {name}: attributes {_shown(attributes)}"
                yield Step("~", text, partial(principals.change, name, attributes=attributes))

    def shares(self) -> Iterator[Step]:
        shares = self._sharing.shares
        for name, one in self._declared.shares.items():
            share = one or DeclaredShare()
            existing = self._shares.get(folded(name))
            if existing is None:
                yield Step("+", f"share {name}", partial(shares.add_share, name, share.comment))
            elif existing.comment != share.comment:
                yield Step("~", f"share {name}: its comment", partial(shares.change_share, name, share.comment))
            for key, wanted in share.tables.items():
                path = SharePath.parse(f"{name}/{key.replace('.', '/')}")
                source = self._resolve(wanted)
                self._sources[_key(path)] = path, source
                known = self._tables.get(_key(path))
                add = partial(shares.add_table, path, source, wanted.comment)
                if known is None:
                    yield Step("+", f"table {path}: {_source(wanted)}", add)
                elif (known.source, known.comment) != (source, wanted.comment):
                    change = partial(shares.change_table, path, source, wanted.comment)
                    yield Step("~", f"table {path}: {_source(wanted)}", change)

    def memberships(self) -> Iterator[Step]:
        principals = self._sharing.principals
        for name, wanted in self._declared.groups.items():
            known = self._people.get(folded(name))
            existing = {folded(member): member for member in principals.members(known.name)} if known else {}
            members = {folded(member): member for member in wanted}
            for key in sorted(members.keys() - existing.keys()):
                yield Step("+", f"{members[key]} in {name}", partial(principals.join, name, members[key]))
            for key in sorted(existing.keys() - members.keys()):
                yield Step("-", f"{existing[key]} in {name}", partial(principals.leave, name, existing[key]))

    def grants(self) -> Iterator[Step]:
        for key, one in _wanted_grants(self._declared).items():
            if one.rows is not None:
                check_condition(one.rows)
            if key not in self._grants:
                path = SharePath.parse(one.path)
                text = _grant_text(one.to, path, key[2], one.rows)
                add = partial(self._sharing.grants.add, one.to, path, columns=one.columns, rows=one.rows)
                yield Step("+", text, add, self._unfit(path, one))

    def _unfit(self, path: SharePath, grant: DeclaredGrant) -> tuple[SharePath, ...]:
        """Return the tables in which a grant will show nothing; `shares` must have run before."""
        if self._open_table is None:
            return ()
        place = _key(path)
        tables = dict(one for key, one in self._sources.items() if key[: len(place)] == place)
        return tuple(check_grant(path, tables, self._open_table, grant.columns, grant.rows))

    def removals(self) -> Iterator[Step]:
        """Return steps that remove what is not declared: grants first, then tables, shares and principals."""
        declared, sharing = self._declared, self._sharing
        wanted = _wanted_grants(declared)
        for key, grant in self._grants.items():
            if key not in wanted:
                text = _grant_text(grant.principal, grant.path, grant.columns, grant.rows)
                yield Step("-", text, partial(sharing.grants.remove, grant.id))
        tables = {
            _key(SharePath.parse(f"{name}/{key.replace('.', '/')}"))
            for name, share in declared.shares.items()
            for key in (share.tables if share else {})
        }
        for place, table in self._tables.items():
            if place not in tables and folded(table.path.share) in map(folded, declared.shares):
                yield Step("-", f"table {table.path}", partial(sharing.shares.remove, table.path))
        for name, known in self._shares.items():
            if name not in map(folded, declared.shares):
                yield Step("-", f"share {known.name}", partial(sharing.shares.remove, SharePath(known.name)))
        people = {folded(name) for _, name, _ in self._wanted_people()}
        for name, person in self._people.items():
            if name not in people:
                text = f"{person.kind.value} {person.name}"
                yield Step("-", text, partial(sharing.principals.remove, person.name))


def _wanted_grants(declared: Declared) -> dict[tuple[Any, ...], DeclaredGrant]:
    """Return the grants in normal form: without duplicate grants or columns."""
    found = {}
    for grant in declared.grants:
        columns = None if grant.columns is None else tuple(dict.fromkeys(grant.columns))
        found[_grant_key(grant.to, SharePath.parse(grant.path), columns, grant.rows)] = grant
    return found


def _key(path: SharePath) -> tuple[str, ...]:
    return tuple(folded(part) for part in (path.share, path.schema, path.table) if part is not None)


def _grant_key(who: str, path: SharePath, columns: tuple[str, ...] | None, rows: str | None) -> tuple[Any, ...]:
    return folded(who), _key(path), columns, rows


def _grant_text(who: str, path: SharePath, columns: tuple[str, ...] | None, rows: str | None) -> str:
    limits = [f"columns {', '.join(columns)}" if columns else "", f"rows {rows}" if rows else ""]
    return f"grant: {who} reads {path}{''.join(f', {limit}' for limit in limits if limit)}"


def _source(table: DeclaredTable) -> str:
    kind, place = table.source
    at = f" at {table.at}" if table.at else ""
    return f"{table.shown.value} of {place}{at}" if kind is SourceKind.DATASET else f"{kind.value} {place}"


def _shown(attributes: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in attributes.items()) or "none"
