"""Parser of documents: files and folders of YAML, with the position of each key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from odfpy.codec.yaml import load_documents
from odfpy.codec.yaml_trees import Document
from odfpy.errors import OdfError, did_you_mean
from odfpy.federation.errors import InvalidDocument
from odfpy.federation.model.certificates import read_certificates
from odfpy.federation.model.documents import API_VERSION, KINDS, WORDS, LocalData, PeerRelay, Spec, User

_SUFFIXES: Final = (".yaml", ".yml")
_KEYS: Final = ("apiVersion", "kind", "spec")
_MAX_BYTES: Final = 16 << 20
_FORM: Final = "docs/federation.md shows the form of every kind."

ObjectKey = tuple[str, str]
"""Kind and key of an object, the key folded: names ignore case."""


@dataclass(frozen=True, slots=True)
class Declared:
    """An object as declared by a document, with its position for error messages.

    Attributes:
        spec: the object; paths are absolute, certificates are loaded.
        file: the file that declares it.
        document: the document.
    """

    spec: Spec
    file: str
    document: Document | None = field(default=None, compare=False, repr=False)

    @property
    def key(self) -> ObjectKey:
        """Return its key."""
        return key_of(self.spec)

    def at(self, path: Sequence[str | int] = ()) -> str:
        """Return a position in it, for messages: file, line, object and key.

        Args:
            path: path of the key in its spec.
        """
        what = f"{WORDS[self.spec.KIND]} {self.spec.key}"
        where = self.file
        if self.document is not None:
            where += f", line {self.document.line_of(('spec', *path))}"
        return f"{where}: {what}{''.join(f'.{part}' for part in path)}"


def key_of(spec: Spec) -> ObjectKey:
    """Return the kind and case-folded name that identify an object."""
    return spec.KIND, spec.key.lower()


def read_documents(places: Iterable[Path]) -> list[Declared]:
    """Read the documents in files, and in all YAML files below folders.

    Args:
        places: files and folders. Files whose names begin with a dot are skipped.

    Raises:
        InvalidDocument: a document is invalid; the message names file, line and key.
        MalformedManifest: a file is not YAML.
    """
    by_key: dict[ObjectKey, Declared] = {}
    for file in _files(places):
        for declared in _read(file):
            known = by_key.setdefault(declared.key, declared)
            if known is not declared:
                raise InvalidDocument(
                    f"{declared.at()} is declared twice; the other one is in {known.at()}",
                    hint="Remove one of them. Names ignore case.",
                )
    return list(by_key.values())


def _files(places: Iterable[Path]) -> list[Path]:
    files: dict[Path, None] = {}
    for place in places:
        if place.is_dir():
            below = sorted(
                path
                for path in place.rglob("*")
                if path.suffix in _SUFFIXES and not any(p.startswith(".") for p in path.relative_to(place).parts)
            )
            if not below:
                raise InvalidDocument(f"There are no documents in {place}", hint="Documents are files *.yaml.")
            files.update(dict.fromkeys(below))
        else:
            files[place] = None
    return list(files)


def _read(file: Path) -> Iterable[Declared]:
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise InvalidDocument(f"{file} has more than {_MAX_BYTES >> 20} MiB", hint="Divide it.")
        text = file.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise InvalidDocument(f"Cannot read {file}: {error.strerror}", hint="Name a file or folder.") from error
    return [_declared(document, file) for document in load_documents(text, str(file))]


def _declared(document: Document, file: Path) -> Declared:
    tree = document.tree
    if not isinstance(tree, dict):
        raise _wrong(file, document, (), "a document is a mapping of apiVersion, kind and spec")
    for name in tree:
        if name not in _KEYS:
            raise _wrong(file, document, (name,), f"unknown key {name!r}", did_you_mean(name, _KEYS, otherwise=_FORM))
    if tree.get("apiVersion") != API_VERSION:
        raise _wrong(file, document, ("apiVersion",), f"apiVersion is to be {API_VERSION}")
    kind = tree.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        hint = did_you_mean(str(kind), list(KINDS), otherwise=f"Kinds are {', '.join(KINDS)}.")
        raise _wrong(file, document, ("kind",), f"no kind of document: {kind!r}", hint)
    model: type[BaseModel] = KINDS[kind]
    spec = tree.get("spec")
    if not isinstance(spec, dict):
        raise _wrong(file, document, ("spec",), f"{kind} needs a spec, a mapping")
    try:
        document_spec: Any = model.model_validate(spec)
    except ValidationError as error:
        raise _invalid(file, document, kind, spec, error) from error
    return Declared(_resolved(document_spec, file, document), str(file), document)


def _resolved(spec: Spec, file: Path, document: Document) -> Spec:
    """Return the object with absolute paths and loaded certificates."""
    folder = file.parent
    if isinstance(spec, LocalData):
        return spec.resolved(folder)
    if not isinstance(spec, PeerRelay | User):
        return spec
    pems: list[str] = []
    for at, certificate in enumerate(spec.certificates):
        try:
            pems += read_certificates(certificate, folder)
        except OdfError as error:
            raise _wrong(file, document, ("spec", "certificates", at), error.message, error.hint) from error
    return spec.model_copy(update={"certificates": tuple(dict.fromkeys(pems))})


def _invalid(file: Path, document: Document, kind: str, spec: Any, error: ValidationError) -> InvalidDocument:
    # A misspelt key causes two errors: it is unknown, and the correct one is missing.
    first = min(error.errors(), key=lambda problem: problem["type"] != "extra_forbidden")
    path = _place(spec, first["loc"])
    name = spec.get("name", spec.get("entity"))
    what = f"{WORDS[kind]} {name}" if isinstance(name, str) else WORDS[kind]
    message = str(first["msg"]).removeprefix("Value error, ")
    hint: str | None = _FORM
    if first["type"] == "extra_forbidden":
        message = f"unknown key {path[-1]!r}"
        known = [key for key in _known_keys(KINDS[kind], first["loc"][:-1]) if key != path[-1]]  # of all connections
        hint = did_you_mean(str(path[-1]), known, otherwise=_FORM)
    elif first["type"] == "missing":
        message = "is missing"
    elif first["type"] == "union_tag_invalid":
        known = str(first["ctx"]["expected_tags"]).replace("'", "").split(", ")
        message = f"no kind of connection: {first['ctx']['tag']!r}"
        hint = did_you_mean(str(first["ctx"]["tag"]), known, otherwise=f"Kinds are {', '.join(known)}.")
    elif first["type"] == "union_tag_not_found":
        message = "needs a kind"
    where = f"{file}, line {document.line_of(('spec', *path))}"
    return InvalidDocument(f"{where}: {what}{''.join(f'.{part}' for part in path)}: {message}", hint=hint)


def _place(tree: Any, loc: Sequence[str | int]) -> tuple[str | int, ...]:
    """Return the keys of a location that occur in the text; pydantic inserts names of kinds and types."""
    place: list[str | int] = []
    for at, part in enumerate(loc):
        is_last = at == len(loc) - 1
        is_present = (isinstance(tree, Mapping) and part in tree) or (
            isinstance(tree, list) and isinstance(part, int) and part < len(tree)
        )
        if is_present:
            tree = tree[part]
            place.append(part)
        elif is_last and isinstance(tree, Mapping) and not str(part).startswith(("literal[", "tuple[", "function-")):
            place.append(part)
    return tuple(place)


def _known_keys(model: Any, loc: Sequence[str | int]) -> list[str]:
    """Return the keys that are allowed at a location, as far as known: those of the last model in it."""
    from typing import get_args

    current = [model]
    for part in loc:
        following = []
        for candidate in current:
            fields = getattr(candidate, "model_fields", {})
            if part in fields:
                following += _models(fields[part].annotation, get_args)
            elif isinstance(part, int) or part not in fields:
                following.append(candidate)
        tagged = [
            candidate
            for candidate in following
            if part in get_args(getattr(candidate, "__annotations__", {}).get("kind"))
        ]
        current = tagged or following
    return [
        info.alias or name for candidate in current for name, info in getattr(candidate, "model_fields", {}).items()
    ]


def _models(annotation: Any, get_args: Any) -> list[Any]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part, get_args)]


def _wrong(
    file: Path, document: Document, path: tuple[str | int, ...], message: str, hint: str | None = None
) -> InvalidDocument:
    return InvalidDocument(f"{file}, line {document.line_of(path)}: {message}", hint=hint or _FORM)
