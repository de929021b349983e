"""All objects that a relay declares, by name, and the checks across them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from odfpy.errors import InvalidValue, UsageError, did_you_mean
from odfpy.federation.errors import InvalidDocument
from odfpy.federation.model.arrow_types import parse_dtype
from odfpy.federation.model.certificates import CertificateFacts
from odfpy.federation.model.connections import DatasetConnection, FilesConnection
from odfpy.federation.model.documents import (
    DataSource,
    Entity,
    LocalData,
    LocalMapping,
    PeerRelay,
    Permission,
    RemoteMapping,
    Spec,
    User,
)
from odfpy.federation.model.expressions import check_source_sql, is_name, remote_expressions, transformation
from odfpy.federation.model.reading import Declared, ObjectKey
from odfpy.sharing.conditions import check_condition

_Kind = TypeVar("_Kind", bound=Spec)
Path = tuple[str | int, ...]
_DATASET: Final = re.compile(r"[^\s()'\";,]+")


@dataclass(frozen=True)
class RelayObjects:
    """The objects of a relay, indexed by kind and name.

    Attributes:
        objects: objects by kind and case-folded key.
    """

    objects: Mapping[ObjectKey, Spec]

    @classmethod
    def of(cls, specs: Iterable[Spec]) -> RelayObjects:
        """Build the collection from specs."""
        return cls({(spec.KIND, spec.key.lower()): spec for spec in specs})

    @cached_property
    def entities(self) -> Mapping[str, Entity]:
        """Entities by name."""
        return self._of(Entity)

    @cached_property
    def local_data(self) -> Mapping[str, LocalData]:
        """Local data by name."""
        return self._of(LocalData)

    @cached_property
    def local_mappings(self) -> Mapping[str, LocalMapping]:
        """Local mappings by entity."""
        return self._of(LocalMapping)

    @cached_property
    def peers(self) -> Mapping[str, PeerRelay]:
        """Peers by name."""
        return self._of(PeerRelay)

    @cached_property
    def users(self) -> Mapping[str, User]:
        """Users by name."""
        return self._of(User)

    @cached_property
    def remote_mappings(self) -> Mapping[str, Sequence[RemoteMapping]]:
        """Remote mappings by entity."""
        by_entity: dict[str, list[RemoteMapping]] = {}
        for mapping in self._of(RemoteMapping).values():
            by_entity.setdefault(mapping.entity, []).append(mapping)
        return by_entity

    def data_source(self, data: str, source: str) -> DataSource | None:
        """Return a data source; None if no data source has these names."""
        local_data = self.local_data.get(data)
        return None if local_data is None else local_data.source(source)

    def _of(self, kind: type[_Kind]) -> dict[str, _Kind]:
        return {item.key: item for item in self.objects.values() if isinstance(item, kind)}


@dataclass(frozen=True, slots=True)
class _Trouble:
    """An error in an object."""

    spec: Spec
    path: Path
    message: str
    hint: str | None


def check(web: RelayObjects, declared: Iterable[Declared] = ()) -> None:
    """Check every object, and that all references between them resolve.

    Args:
        web: all objects.
        declared: objects of documents, so that messages can name positions.

    Raises:
        InvalidDocument: for the first error; the message says how many others there are.
    """
    troubles = [*_Checks(web).all()]
    if not troubles:
        return
    places = {declaration.key: declaration for declaration in declared}
    first = troubles[0]
    place = places.get((first.spec.KIND, first.spec.key.lower())) or Declared(first.spec, "as it was applied before")
    more = f" ({len(troubles) - 1} more like this)" if len(troubles) > 1 else ""
    raise InvalidDocument(f"{place.at(first.path)}: {first.message}{more}", hint=first.hint)


class _Checks:
    """The checks, one kind of object after the other."""

    def __init__(self, web: RelayObjects) -> None:
        self._web = web

    def all(self) -> Iterator[_Trouble]:
        checks: dict[type[Any], Callable[[Any], Iterator[_Trouble]]] = {
            Entity: self._entity,
            LocalData: self._local_data,
            LocalMapping: self._local_mapping,
            RemoteMapping: self._remote_mapping,
            PeerRelay: self._known,
            User: self._known,
        }
        for item in self._web.objects.values():
            yield from checks[type(item)](item)
        yield from self._certificates()

    def _entity(self, entity: Entity) -> Iterator[_Trouble]:
        yield from _twice(entity, ("information",), [part.name for part in entity.information])
        for at, part in enumerate(entity.information):
            yield from _tried(entity, ("information", at, "arrow_dtype"), partial(parse_dtype, part.arrow_dtype))

    def _local_data(self, data: LocalData) -> Iterator[_Trouble]:
        yield from _twice(data, ("data_sources",), [data_source.name for data_source in data.data_sources])
        for at, source in enumerate(data.data_sources):
            path: Path = ("data_sources", at)
            yield from _twice(data, (*path, "fields"), [field.name for field in source.fields])
            yield from _tried(data, (*path, "source_sql"), partial(_check_source, data, source))
            if source.default_permission is not None:
                yield from _permission(data, (*path, "default_permission"), source.default_permission, source)

    def _local_mapping(self, mapping: LocalMapping) -> Iterator[_Trouble]:
        entity = self._web.entities.get(mapping.entity)
        if entity is None:
            yield _unknown(mapping, ("entity",), "entity", mapping.entity, self._web.entities)
        names = [item.name for item in entity.information] if entity else None
        yield from _twice(mapping, ("mappings",), [f"{item.data}/{item.source}" for item in mapping.mappings])
        for at, part in enumerate(mapping.mappings):
            path: Path = ("mappings", at)
            source = None
            for trouble, data_source in self._source(mapping, path, part.data, part.source):
                source = data_source
                if trouble is not None:
                    yield trouble
            yield from _twice(mapping, (*path, "fields"), [item.information for item in part.fields])
            for number, item in enumerate(part.fields):
                place: Path = (*path, "fields", number)
                yield from _named(mapping, (*place, "information"), "information", item.information, names)
                fields = [field.name for field in source.fields] if source else None
                yield from _named(mapping, (*place, "field"), "field", item.field, fields)
                yield from _transformation(mapping, (*place, "transformation"), item.transformation)

    def _remote_mapping(self, mapping: RemoteMapping) -> Iterator[_Trouble]:
        entity = self._web.entities.get(mapping.entity)
        if entity is None:
            yield _unknown(mapping, ("entity",), "entity", mapping.entity, self._web.entities)
        if mapping.relay not in self._web.peers:
            yield _unknown(mapping, ("relay",), "peer", mapping.relay, self._web.peers)
        given: list[str] | None = None
        try:
            expressions = remote_expressions(mapping.sql, mapping.remote_entity)
        except UsageError as error:
            yield _Trouble(mapping, ("sql",), error.message, error.hint)
        else:
            given = None if expressions is None or "*" in expressions else list(expressions)
        names = [part.name for part in entity.information] if entity else None
        yield from _twice(mapping, ("information",), [part.information for part in mapping.information])
        for at, part in enumerate(mapping.information):
            path: Path = ("information", at)
            yield from _named(mapping, (*path, "information"), "information", part.information, names)
            yield from _named(mapping, (*path, "remote"), "name in sql", part.remote, given)
            yield from _transformation(mapping, (*path, "transformation"), part.transformation)

    def _known(self, who: PeerRelay | User) -> Iterator[_Trouble]:
        for at, permission in enumerate(who.permissions):
            path: Path = ("permissions", at)
            for trouble, source in self._source(who, path, permission.data, permission.source):
                if trouble is not None:
                    yield trouble
                elif source is not None:
                    yield from _permission(who, path, permission, source)

    def _source(
        self, spec: Spec, path: Path, data: str, source: str
    ) -> Iterator[tuple[_Trouble | None, DataSource | None]]:
        """Return the data source of two names, or report the error."""
        local_data = self._web.local_data.get(data)
        if local_data is None:
            yield _unknown(spec, (*path, "data"), "local data", data, self._web.local_data), None
            return
        known_source = local_data.source(source)
        known = [data_source.name for data_source in local_data.data_sources]
        yield (
            (None if known_source else _unknown(spec, (*path, "source"), f"source of {data}", source, known)),
            known_source,
        )

    def _certificates(self) -> Iterator[_Trouble]:
        """Check that no two parties have the same certificate."""
        owners: dict[str, PeerRelay | User] = {}
        known: list[PeerRelay | User] = [*self._web.peers.values(), *self._web.users.values()]
        for holder in known:
            for at, pem in enumerate(holder.certificates):
                owner = owners.setdefault(CertificateFacts.of(pem).fingerprint, holder)
                if owner is not holder:
                    message = f"this certificate is that of {owner.key}, too"
                    yield _Trouble(holder, ("certificates", at), message, "Give each of them one of their own.")


def _check_source(data: LocalData, source: DataSource) -> None:
    connection, text = data.connection, source.source_sql
    if isinstance(connection, DatasetConnection) and _DATASET.fullmatch(text):
        return
    check_source_sql(text, connection.dialect)
    if not isinstance(connection, FilesConnection):
        return
    names = [text] if is_name(text, connection.dialect) else _tables_in(text, connection.dialect)
    for name in names:
        if name.strip('"') not in connection.tables:
            hint = did_you_mean(name, list(connection.tables), otherwise=f"Tables: {', '.join(connection.tables)}.")
            raise InvalidValue(f"The connection has no table {name}", hint=hint)


def _tables_in(text: str, dialect: str) -> list[str]:
    """Return the names of tables in a SELECT, without its own common table expressions."""
    from sqlglot import exp, parse_one

    tree = parse_one(text, dialect=dialect)
    own = {node.alias for node in tree.find_all(exp.CTE)}
    if any(not isinstance(node.this, exp.Identifier) for node in tree.find_all(exp.Table)):
        raise InvalidValue(f"Functions in FROM are not for files: {text}", hint="Name tables of the connection.")
    return [node.name for node in tree.find_all(exp.Table) if node.name not in own]


def _permission(spec: Spec, path: Path, permission: Permission, source: DataSource) -> Iterator[_Trouble]:
    fields = [field.name for field in source.fields]
    if permission.allowed_columns != "*":
        for at, name in enumerate(permission.allowed_columns):
            yield from _named(spec, (*path, "allowed_columns", at), "field", name, fields)
    yield from _tried(spec, (*path, "allowed_rows"), lambda: check_condition(permission.allowed_rows, fields))


def _transformation(spec: Spec, path: Path, text: str | None) -> Iterator[_Trouble]:
    if text is not None:
        yield from _tried(spec, path, lambda: transformation(text))


def _tried(spec: Spec, path: Path, attempt: Callable[[], object]) -> Iterator[_Trouble]:
    try:
        attempt()
    except UsageError as error:
        yield _Trouble(spec, path, error.message, error.hint)


def _named(spec: Spec, path: Path, what: str, name: str, known: Sequence[str] | None) -> Iterator[_Trouble]:
    if known is not None and name not in known:
        yield _unknown(spec, path, what, name, known)


def _unknown(spec: Spec, path: Path, what: str, name: str, known: Iterable[str]) -> _Trouble:
    known_names = list(known)
    otherwise = f"There are: {', '.join(known_names[:20])}." if known_names else f"There is no {what} yet; declare one."
    return _Trouble(spec, path, f"no {what} {name!r}", did_you_mean(name, known_names, otherwise=otherwise))


def _twice(spec: Spec, path: Path, names: Sequence[str]) -> Iterator[_Trouble]:
    seen: set[str] = set()
    for at, name in enumerate(names):
        if name.lower() in seen:
            yield _Trouble(spec, (*path, at), f"{name!r} occurs twice", "Names ignore case.")
        seen.add(name.lower())
