"""Named repositories of a workspace, and the remotes that each dataset is pulled from and pushed to.

.odf/repos/<name>.yaml                    one repository
.odf/datasets/<id>/info/aliases.yaml      pull and push aliases of a dataset
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import RemoteUrl, RepositoryName, is_url, parse_remote_ref
from odfpy.errors import (
    AlreadyExists,
    InvalidValue,
    MalformedManifest,
    OdfError,
    RepositoryNotFound,
    TransferError,
    UsageError,
    did_you_mean,
)
from odfpy.files import locked_for_change
from odfpy.http.url import without_user
from odfpy.repository.documents import load_document, save_document
from odfpy.repository.locations.open import is_path, normalize_url
from odfpy.values import dataclass

AliasKind: TypeAlias = Literal["pull", "push"]


@dataclass(frozen=True, slots=True)
class Repository:
    """A remote repository, with its name in this workspace.

    Attributes:
        name: name of the repository in this workspace.
        url: URL of the repository; a dataset is at `<url>/<name>` or `<url>/<account>/<name>`.
    """

    name: RepositoryName
    url: str

    @property
    def public_url(self) -> str:
        """Return the URL without user and password, for display."""
        return without_user(self.url)


@dataclass(frozen=True, slots=True)
class _RepositoryDocument:
    name: str
    url: str


class RepositoryRegistry:
    """The named repositories of a workspace, one file for each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, name: str, url: str) -> Repository:
        """Add a repository.

        Raises:
            InvalidValue: name or location is invalid, or the URL has a password, which would be stored.
            AlreadyExists: the name is in use.
        """
        repository = Repository(RepositoryName(name), normalize_url(url))
        if repository.url != repository.public_url:  # URLs stored by earlier releases may have one
            raise InvalidValue(
                f"The URL of a repository must not contain user and password: {repository.public_url}",
                hint="odf stores URLs. `odf login URL` stores a token for a server; a pull accepts user and"
                " password in its own URL, and does not store them.",
            )
        known = self._load(repository.name)
        if known is not None:
            raise AlreadyExists(
                f"A repository {str(known.name)!r} already exists: {known.public_url}",
                hint=f"Choose another name, or first run `odf repo delete {known.name}`.",
            )
        save_document(self._path(repository.name), "Repository", _RepositoryDocument(name, repository.url))
        return repository

    def get(self, name: str) -> Repository:
        """Return the repository with a name.

        Raises:
            RepositoryNotFound: the repository does not exist; the message suggests a similar name.
        """
        repository = self._load(RepositoryName(name))
        if repository is None:
            names = [str(known.name) for known in self.list()]
            hint = did_you_mean(name, names, otherwise=f"Add it with `odf repo add {name} URL`.")
            raise RepositoryNotFound(f"No repository is called {name!r}", hint=hint)
        return repository

    def list(self) -> tuple[Repository, ...]:
        """Return all repositories, sorted by name."""
        found = (self._read(path) for path in sorted(self._folder.glob("[!.]*.yaml")))
        return tuple(sorted((item for item in found if item is not None), key=lambda item: item.name))

    def delete(self, name: str) -> Repository:
        """Remove a repository from the registry; its content is not changed.

        Raises:
            RepositoryNotFound: the repository does not exist; the message suggests a similar name.
        """
        repository = self.get(name)
        self._path(repository.name).unlink(missing_ok=True)
        return repository

    def _load(self, name: RepositoryName) -> Repository | None:
        return self._read(self._path(name))

    @staticmethod
    def _read(path: Path) -> Repository | None:
        document = load_document(path, "Repository", _RepositoryDocument)
        try:
            return Repository(RepositoryName(document.name), document.url) if document else None
        except InvalidValue as error:
            raise MalformedManifest(f"{path}: {error.message}", hint=error.hint) from error

    def _path(self, name: RepositoryName) -> Path:
        return self._folder / f"{name.text.lower()}.yaml"


@dataclass(frozen=True, slots=True)
class _AliasesDocument:
    pull: tuple[str, ...] | None = None
    push: tuple[str, ...] | None = None


class Aliases:
    """The remotes that a dataset is pulled from and pushed to, latest first; they are local to the workspace.

    Users and passwords in URLs are not stored, although earlier releases did.
    """

    def __init__(self, path: Path) -> None:
        """
        Args:
            path: path of the file, `info/aliases.yaml` in the dataset's folder; created with the first alias.
        """
        self._path = path

    @classmethod
    def of(cls, folder: Path) -> Aliases:
        """Return the aliases of the dataset in a folder."""
        return cls(folder / "info" / "aliases.yaml")

    def list(self, kind: AliasKind) -> tuple[str, ...]:
        """Return remote references and URLs, latest first."""
        document = self._load()
        return (document.pull if kind == "pull" else document.push) or ()

    def shown(self, kind: AliasKind) -> tuple[str, ...]:
        """Return the aliases for display."""
        return tuple(map(without_user, self.list(kind)))

    def add(self, kind: AliasKind, remote: str) -> str:
        """Store a remote as the latest alias; return its normalized form.

        Raises:
            InvalidValue: the text is not a remote reference, path or URL.
        """
        remote = normalize_remote(remote)
        self._change(kind, lambda known: (remote, *(one for one in known if _normal(one) != remote)))
        return remote

    def kinds_of(self, remote: str) -> tuple[AliasKind, ...]:
        """Return the kinds of aliases that a remote is stored as: pull, push, both or none.

        Raises:
            InvalidValue: the text is not a remote reference, path or URL.
        """
        kinds: tuple[AliasKind, ...] = ("pull", "push")
        return tuple(kind for kind in kinds if normalize_remote(remote) in map(_normal, self.list(kind)))

    def remove(self, kind: AliasKind, remote: str) -> None:
        """Remove an alias.

        Raises:
            UsageError: the remote is not stored.
        """
        remote = normalize_remote(remote)
        if remote not in map(_normal, self.list(kind)):
            hint = did_you_mean(remote, self.shown(kind), otherwise="`odf show` lists them.")
            raise UsageError(f"No {kind} alias {remote}", hint=hint)
        self._change(kind, lambda known: tuple(item for item in known if _normal(item) != remote))

    def _load(self) -> _AliasesDocument:
        return load_document(self._path, "DatasetAliases", _AliasesDocument) or _AliasesDocument()

    def _change(self, kind: AliasKind, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> None:
        known = self.list(kind)
        if change(known) == known:
            return
        with locked_for_change(self._path):  # pushes to several remotes run concurrently
            document, remotes = self._load(), change(self.list(kind))
            changed = replace(document, pull=remotes) if kind == "pull" else replace(document, push=remotes)
            save_document(self._path, "DatasetAliases", changed)


def _normal(remembered: str) -> str:
    """Normalize a remote that an earlier release may have stored in another form."""
    try:
        return normalize_remote(remembered)
    except OdfError:
        return remembered


def normalize_remote(text: str) -> str:
    """Normalize a remote reference: `repository/[account/]name`, or a URL without user.

    Raises:
        InvalidValue: the text is neither; relative paths must begin with `./` or `../`.
    """
    if is_path(text) or is_url(text):
        return without_user(normalize_url(text))
    return str(parse_remote_ref(text))


def resolve_remote(text: str, registry: RepositoryRegistry) -> str:
    """Return the URL of a dataset.

    Args:
        text: `repository/[account/]name`, a URL, or a path that begins with `/`, `./`, `../` or `~`.
        registry: the named repositories.

    Raises:
        InvalidValue: the text is none of these.
        RepositoryNotFound: the repository does not exist; the message suggests a similar name.
        TransferError: the kind of location, or a reference by id, is not supported yet.
    """
    if is_path(text) or is_url(text):
        return normalize_url(text)
    ref = parse_remote_ref(text)
    if isinstance(ref, RemoteUrl):
        return normalize_url(ref.url)
    if ref.repository is None or isinstance(ref.dataset, DatasetId):
        raise TransferError(
            f"A plain repository finds datasets by name, not by id: {text}",
            hint="Write repository/name, or the URL of the dataset.",
        )
    try:
        repository = registry.get(str(ref.repository))
    except RepositoryNotFound as error:
        if Path(text).exists():
            raise RepositoryNotFound(error.message, hint=f"For the folder of that name, write ./{text}") from error
        raise
    return f"{repository.url}/{ref.dataset}"
