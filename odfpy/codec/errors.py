"""Encoding of errors as values, so that one process can raise an error of another.

The value contains the code of the class, message, hint, and the fields that the class declares in its body. The sender
may be less trusted: a sandboxed process, or a server. So nothing is unpickled and no constructor runs. Only classes of
this release, fields of their declared types, and a limited number of characters are accepted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, ClassVar, Final, Union, get_args, get_origin, get_type_hints

from odfpy.errors import EngineError, OdfError, known_class
from odfpy.values import dataclass

MAX_LENGTH: Final = 1 << 16
"""Maximum characters of a message, of a hint, and of all fields together."""

_MODULES: Final[Mapping[str, str]] = {
    "odfpy.archive.errors": "E840 E841 E842 E843 E844 E845 E846 E847 E848 E850 E851",
    "odfpy.archive.naming.filename_template": "E862",
    "odfpy.archive.naming.translator": "E860 E861",
    "odfpy.archive.queue.bundle": "E864",
    "odfpy.archive.queue.folder": "E866",
    "odfpy.archive.queue.usage": "E865",
    "odfpy.archive.target_folder": "E863",
    "odfpy.automation.errors": "E780 E781 E782 E783",
    "odfpy.automation.notifications.channels": "E790 E792",
    "odfpy.automation.notifications.receivers": "E791",
    "odfpy.chain.links.checks": "E415",
    "odfpy.chain.stores.object_store": "E222",
    "odfpy.chain.required_signers": "E654",
    "odfpy.chain.revocations": "E471 E472 E473",
    "odfpy.chain.rules": "E301 E302 E303 E304 E305 E306 E307 E308 E309 E310 E311 E312 E313 E314 E315 E316 E317 E318 "
    "E319 E320 E321",
    "odfpy.chain.signatures": "E650 E651",
    "odfpy.client.rest": "E750",
    "odfpy.codec.tree": "E203",
    "odfpy.coordinator.branches.rebase": "E656",
    "odfpy.coordinator.ingest.idempotency": "E725",
    "odfpy.coordinator.lineage.graph": "E102 E103",
    "odfpy.coordinator.storage.approvals": "E430",
    "odfpy.coordinator.storage.clock": "E409",
    "odfpy.coordinator.storage.keys": "E652 E653",
    "odfpy.coordinator.storage.references": "E641 E655",
    "odfpy.coordinator.transform.intervals": "E640",
    "odfpy.coordinator.transform.run": "E506",
    "odfpy.engine.spark.process.jvm": "E507",
    "odfpy.flight.errors": "E830 E831 E832 E833 E834 E835 E836",
    "odfpy.http.resume": "E614",
    "odfpy.federation.errors": "E770 E771 E772 E773 E774 E775 E776 E785 E798",
    "odfpy.federation.relay.errors": "E779 E784 E786 E787 E788 E789 E793",
    "odfpy.federation.sql.errors": "E777",
    "odfpy.ingest.fetch.bounds": "E431",
    "odfpy.ingest.fetch.ethereum.node": "E406",
    "odfpy.provenance.errors": "E710 E711 E712",
    "odfpy.query.wire.reproducible": "E724",
    "odfpy.query.wire.commitments": "E720",
    "odfpy.query.wire.verification": "E721 E722 E723 E726",
    "odfpy.repository.transfer.linked": "E670",
    "odfpy.repository.bucket.errors": "E610 E611 E612",
    "odfpy.repository.divergence": "E601",
    "odfpy.repository.events": "E634",
    "odfpy.repository.login": "E632",
    "odfpy.repository.peer_errors": "E620 E621 E622 E623 E624 E625",
    "odfpy.repository.locations.listing": "E613",
    "odfpy.repository.reference_transfer": "E657",
    "odfpy.repository.smart_transfer.pull": "E626",
    "odfpy.repository.smart_transfer.session": "E627 E628",
    "odfpy.repository.transfer.clock": "E661",
    "odfpy.repository.transfer.simple": "E602 E660",
    "odfpy.serving.callers.tokens": "E630",
    "odfpy.serving.flight.errors": "E730 E731 E732 E733 E734 E735 E736",
    "odfpy.serving.http.budget": "E460",
    "odfpy.serving.http.tls": "E631",
    "odfpy.serving.notifications.webhooks": "E633",
    "odfpy.sharing.errors": "E760 E761 E762",
    "odfpy.sharing.store.database": "E763 E766",
    "odfpy.sharing.tables.contract": "E764",
    "odfpy.sharing.recipient": "E765",
}
"""Modules of the classes outside of `odfpy.errors`, by name, since this package does not import packages above it."""

MODULE_OF: Final = {code: module for module, codes in _MODULES.items() for code in codes.split()}
"""The module of each code."""


@dataclass(frozen=True, slots=True)
class RaisedError:
    """An error of ours as a value.

    Attributes:
        kind: name of its class; older workers send no other identification.
        message: what happened and where.
        hint: what to do next.
        code: code of its class.
        fields: declared fields of its class, as a JSON object.
    """

    kind: str
    message: str
    hint: str | None = None
    code: str | None = None
    fields: str | None = None


def as_value(error: OdfError) -> RaisedError:
    """Return an error as a value to send to another process."""
    fields = _fields_as_text(error)
    return RaisedError(type(error).__name__, _cut(error.message), _cut_hint(error.hint), error.code, fields)


def error_of(value: RaisedError, otherwise: type[OdfError] = EngineError) -> OdfError:
    """Return the error for a value from another process.

    Args:
        value: the value, which is untrusted.
        otherwise: class of the error if this release knows neither code nor name.
    """
    kind = error_class(value.code) if value.code else _class_named(value.kind)
    return restore_error(kind or otherwise, value.message, hint=value.hint, fields=value.fields)


def restore_error(
    kind: type[OdfError], message: str, *, hint: str | None = None, fields: str | None = None
) -> OdfError:
    """Return an error of a class without calling its constructor, or of its nearest base class if a field is missing.

    Args:
        kind: the class.
        message: what happened and where.
        hint: what to do next.
        fields: declared fields of the class, as a JSON object.
    """
    given = _parse(fields)
    above = kind
    while (values := _values(above, given)) is None:
        above = above.__bases__[0]
    error: OdfError = above.__new__(above, _cut(message))
    error.__dict__.update(values, message=_cut(message), hint=_cut_hint(hint))
    return error


def error_class(code: str) -> type[OdfError] | None:
    """Return the class with a code, and import its module if needed.

    None if this release has no such class, or cannot import it, since some need extras.
    """
    if known_class(code) is None and code in MODULE_OF:
        try:
            import_module(MODULE_OF[code])
        except ImportError:
            return None
    return known_class(code)


def fields_of_error(kind: type[OdfError]) -> Mapping[str, Any]:
    """Return the types of the fields that a class and its base classes declare."""
    return {name: hint for name, hint in get_type_hints(kind).items() if get_origin(hint) is not ClassVar}


def _class_named(name: str) -> type[OdfError] | None:
    """Return a class of `odfpy.errors` by name, as older workers send it."""
    from odfpy import errors

    found = getattr(errors, name, None)
    return found if isinstance(found, type) and issubclass(found, OdfError) else None


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 3]}..."


def _cut_hint(hint: str | None) -> str | None:
    return None if hint is None else _cut(hint)


# --- Fields ----------------------------------------------------------------------------------------------------------


def _fields_as_text(error: OdfError) -> str | None:
    """Return the fields of an error; None if it has none, or they cannot be encoded: the error is more important."""
    try:
        found = {name: _plain(getattr(error, name)) for name in fields_of_error(type(error))}
        text = json.dumps(found, separators=(",", ":"))
    except (AttributeError, TypeError, ValueError):
        return None
    return text if found and len(text) <= MAX_LENGTH else None


def _plain(value: Any) -> Any:
    """Return a field as plain JSON."""
    if isinstance(value, (tuple, list)):
        return [_plain(part) for part in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    return value


def _parse(fields: str | None) -> Mapping[str, Any]:
    if fields is None or len(fields) > MAX_LENGTH:
        return {}
    try:
        found = json.loads(fields)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _values(kind: type[OdfError], given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the fields of a class; None if one is missing or has another type than declared."""
    try:
        return {name: _read(hint, given[name]) for name, hint in fields_of_error(kind).items()}
    except (KeyError, TypeError):
        return None


def _read(hint: Any, tree: Any) -> Any:
    """Return a value converted to its declared type.

    Raises:
        TypeError: the value is of another type.
    """
    arms = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for arm in arms:
        origin, inner = get_origin(arm), get_args(arm)
        if origin is tuple and isinstance(tree, list):
            return tuple(_read(inner[0], part) for part in tree)
        if origin is dict and isinstance(tree, dict):
            return {key: _read(inner[1], part) for key, part in tree.items()}
        if arm is float and type(tree) in (int, float) and math.isfinite(tree):
            return float(tree)
        if arm in (str, bool, int, NoneType) and type(tree) is arm:
            return tree
    raise TypeError(f"{hint!r} is wanted")
