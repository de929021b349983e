"""Steps of an apply: from the current objects of a relay to the declared ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from odfpy.federation.model.certificates import CertificateFacts
from odfpy.federation.model.documents import KINDS, WORDS, Spec, tree_of
from odfpy.federation.model.reading import Declared, ObjectKey, key_of
from odfpy.federation.model.relay_objects import RelayObjects, check

_MAX_DIFFERENCES: Final = 10
_MAX_LENGTH: Final = 80


@dataclass(frozen=True, slots=True)
class Step:
    """One change of an object.

    Attributes:
        sign: `+` adds, `-` removes, `~` changes.
        text: description of the change.
        key: key of the object.
        spec: the object after the change; None if it is removed.
    """

    sign: Literal["+", "-", "~"]
    text: str
    key: ObjectKey
    spec: Spec | None

    def __str__(self) -> str:
        return f"{self.sign} {self.text}"


def plan(known: RelayObjects, declared: Sequence[Declared], *, prune: bool) -> list[Step]:
    """Compute the steps from the current to the declared objects, and validate the result.

    Args:
        known: the current objects.
        declared: the declared objects.
        prune: whether objects that are not declared are removed.

    Raises:
        InvalidDocument: something is invalid; the message names the position.
    """
    wanted = {item.key: item.spec for item in declared}
    check(RelayObjects(wanted if prune else {**known.objects, **wanted}), declared)
    gone = [item for item in known.objects if item not in wanted] if prune else []
    order = {kind: number for number, kind in enumerate(KINDS)}
    ordered = sorted(wanted.items(), key=lambda item: order[item[0][0]])
    steps = [step for key, spec in ordered for step in _towards(known.objects.get(key), spec)]
    gone.sort(key=lambda item: order[item[0]], reverse=True)
    return steps + [removal(known.objects[key]) for key in gone]


def addition(spec: Spec) -> Step:
    """Return the step that adds an object."""
    return Step("+", _title(spec), key_of(spec), spec)


def removal(spec: Spec) -> Step:
    """Return the step that removes an object."""
    return Step("-", _title(spec), key_of(spec), None)


def _towards(before: Spec | None, spec: Spec) -> Iterator[Step]:
    if before is None:
        yield addition(spec)
    elif before != spec:
        differences = list(_differences(_shown(before), _shown(spec)))
        more = f", and {len(differences) - _MAX_DIFFERENCES} more" if len(differences) > _MAX_DIFFERENCES else ""
        yield Step("~", f"{_title(spec)}: {', '.join(differences[:_MAX_DIFFERENCES])}{more}", key_of(spec), spec)


def _title(spec: Spec) -> str:
    return f"{WORDS[spec.KIND]} {spec.key}"


def _shown(spec: Spec) -> Any:
    """Return the tree in the form of diffs: lists of named things are keyed by name, certificates are fingerprints."""
    return _keyed(tree_of(spec))


def _keyed(tree: Any, name: str = "") -> Any:
    if isinstance(tree, Mapping):
        return {key: _keyed(value, key) for key, value in tree.items()}
    if not isinstance(tree, list):
        return tree
    if name == "certificates":
        return {CertificateFacts.of(pem).fingerprint[:16]: "" for pem in tree}
    if tree and all(isinstance(item, Mapping) for item in tree):
        keys = [_identity(item) for item in tree]
        if len(set(keys)) == len(keys):
            return {key: _keyed(item) for key, item in zip(keys, tree, strict=True)}
    return {str(at): _keyed(item) for at, item in enumerate(tree)} if _is_nested(tree) else tree


def _identity(tree: Mapping[str, Any]) -> str:
    if "data" in tree:
        return "/".join(str(tree[name]) for name in ("data", "source", "allowed_rows") if name in tree)
    return str(tree.get("name", tree.get("information", "")))


def _is_nested(trees: Iterable[Any]) -> bool:
    return any(isinstance(tree, Mapping | list) for tree in trees)


def _differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys((*before, *after)):
            place = f"{path}.{key}" if path else str(key)
            if key not in after:
                yield f"{place} goes"
            elif key not in before:
                yield f"{place} is new"
            else:
                yield from _differences(before[key], after[key], place)
        if list(before) != list(after) and before.keys() == after.keys():
            yield f"{path or 'its keys'} in another order"
    elif before != after:
        yield f"{path} {_brief(before)} -> {_brief(after)}"


def _brief(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}..."
