"""Names, references and patterns of datasets (ODF specification, "Dataset Identity").

Notations and the types that represent them:

    DatasetName   com.example.rates                 like a host name; case is ignored in comparisons
    DatasetAlias  com.example.rates | alice/com.example.rates
    DatasetRef    did:odf:f... | alias              a dataset of this workspace
    RemoteRef     did:odf:f... | repo/did:odf:f... | repo/[account/]name | URL
    pattern       com.example.% | alice/%           `%` matches any run of characters
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import total_ordering
from pathlib import Path
from typing import TypeAlias, TypeVar

from odfpy.dataset.identity import DID_ODF_PREFIX, DatasetId
from odfpy.errors import InvalidValue, UsageError, nearest
from odfpy.values import dataclass

_Given = TypeVar("_Given", bound="str | Path")

_HOSTNAME = r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*(?:\.[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)*"
_HOSTNAME_RE = re.compile(_HOSTNAME)
_PATTERN_RE = re.compile(
    rf"(?:{_HOSTNAME}[.-]?)?(?:%+(?:[.-]?{_HOSTNAME}[.-]?|[.-]))*%+(?:[.-]?{_HOSTNAME})?"  # a name with holes
)
_URL_RE = re.compile(r"[A-Za-z0-9]+(?:\+[A-Za-z0-9]+)*://[^\x00-\x1f\x7f]+")
_MAX_NAME = 200
_NAME_HINT = "Names are letters and digits, joined by single dots or hyphens: com.example.exchange-rates"


def _check_length(text: str, what: str) -> None:
    if len(text) > _MAX_NAME:
        raise InvalidValue(f"Not {what}: {text[:40]!r}... is longer than {_MAX_NAME} characters")


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class _Name:
    """A name in the form of a host name; case is ignored in comparisons."""

    text: str

    def __post_init__(self) -> None:
        _check_length(self.text, self._what())
        if not _HOSTNAME_RE.fullmatch(self.text):
            raise InvalidValue(f"Not {self._what()}: {self.text!r}", hint=_NAME_HINT)

    @classmethod
    def _what(cls) -> str:
        return "a name"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.text.lower() == self.text.lower()

    def __lt__(self, other: _Name) -> bool:
        return self.text.lower() < other.text.lower()

    def __hash__(self) -> int:
        return hash(self.text.lower())

    def __str__(self) -> str:
        return self.text


class DatasetName(_Name):
    """Name of a dataset within an account."""

    __slots__ = ()

    @classmethod
    def _what(cls) -> str:
        return "a dataset name"


class AccountName(_Name):
    """Name of an account."""

    __slots__ = ()

    @classmethod
    def _what(cls) -> str:
        return "an account name"


class RepositoryName(_Name):
    """Local name of a repository."""

    __slots__ = ()

    @classmethod
    def _what(cls) -> str:
        return "a repository name"


@total_ordering
@dataclass(frozen=True, slots=True)
class DatasetAlias:
    """`[account/]name`; aliases without account sort before others of the same name."""

    name: DatasetName
    account: AccountName | None = None

    @classmethod
    def parse(cls, text: str) -> DatasetAlias:
        """Parse `[account/]name`.

        Raises:
            InvalidValue: the text is not an alias.
        """
        account, slash, name = text.rpartition("/")
        return cls(DatasetName(name), AccountName(account) if slash else None)

    def __lt__(self, other: DatasetAlias) -> bool:
        return self._order < other._order

    @property
    def _order(self) -> tuple[str, str]:
        return self.name.text.lower(), "" if self.account is None else self.account.text.lower()

    def __str__(self) -> str:
        return f"{self.account}/{self.name}" if self.account else str(self.name)


DatasetRef: TypeAlias = DatasetId | DatasetAlias


def parse_ref(text: str) -> DatasetRef:
    """Parse a local reference: an id or an alias.

    Raises:
        InvalidValue: the text is neither.
    """
    return DatasetId.parse(text) if text.startswith(DID_ODF_PREFIX) else DatasetAlias.parse(text)


@dataclass(frozen=True, slots=True)
class RemoteRef:
    """A dataset in a named repository.

    Attributes:
        repository: local name of the repository; None for an id in any repository.
        dataset: id or alias of the dataset in the repository.
    """

    repository: RepositoryName | None
    dataset: DatasetRef

    def __str__(self) -> str:
        return f"{self.repository}/{self.dataset}" if self.repository else str(self.dataset)


@dataclass(frozen=True, order=True, slots=True)
class RemoteUrl:
    """A dataset at a URL."""

    url: str

    def __str__(self) -> str:
        return self.url


AnyRemoteRef: TypeAlias = RemoteRef | RemoteUrl


def all_of(given: _Given | Iterable[_Given]) -> tuple[_Given, ...]:
    """Return names or paths as a tuple, whether a program passes one or several.

    Raises:
        UsageError: an item is of another type.
    """
    if isinstance(given, (str, Path)):
        return (given,)
    several = tuple(given) if isinstance(given, Iterable) else (given,)
    for one in several:
        if not isinstance(one, (str, Path)):
            raise UsageError(
                f"Names are strings, and {one!r:.100} is a value of type {type(one).__name__}",
                hint="Pass one string, or a list of strings.",
            )
    return several


def is_url(text: str) -> bool:
    """Return whether the text begins with a URL scheme."""
    return _URL_RE.fullmatch(text) is not None


def parse_remote_ref(text: str) -> AnyRemoteRef:
    """Parse `[repo/]id`, `repo/[account/]name` or a URL.

    Raises:
        InvalidValue: the text has none of these forms.
    """
    if is_url(text):
        return RemoteUrl(text)
    if text.startswith(DID_ODF_PREFIX):
        return RemoteRef(None, DatasetId.parse(text))
    repository, slash, dataset = text.partition("/")
    if not slash:
        raise InvalidValue(
            f"Not a remote reference: {text!r}", hint="Write repository/name, or a URL such as https://host/name"
        )
    return RemoteRef(RepositoryName(repository), parse_ref(dataset))


def is_pattern(text: str) -> bool:
    """Return whether the text has a wildcard; in a URL, `%` is part of an escape."""
    return "%" in text and not is_url(text)


@dataclass(frozen=True, slots=True)
class DatasetPattern:
    """`[account/]name` with `%` in the name for any run of characters; case is ignored."""

    text: str

    def __post_init__(self) -> None:
        account, _, name = self.text.rpartition("/")
        _check_length(name, "a pattern of dataset names")
        if not _PATTERN_RE.fullmatch(name):
            raise InvalidValue(f"Not a pattern of dataset names: {self.text[:80]!r}", hint=_NAME_HINT)
        if account or self.text.startswith("/"):
            AccountName(account)

    def matches(self, dataset: DatasetName | DatasetAlias) -> bool:
        """Return whether the complete name matches, and the account is the same if the pattern has one."""
        account, _, pattern = self.text.rpartition("/")
        alias = dataset if isinstance(dataset, DatasetAlias) else DatasetAlias(dataset)
        if account and alias.account != AccountName(account):
            return False
        return _fits(pattern.lower().split("%"), alias.name.text.lower())

    def __str__(self) -> str:
        return self.text


def matches_search(text: str, alias: DatasetAlias, description: str | None, keywords: Iterable[str]) -> bool:
    """Return whether all words of a text occur in the name, description or keywords of a dataset; case is ignored.

    Args:
        text: the words, in any order; each may be part of a longer word.
        alias: name of the dataset.
        description: its description, None for none.
        keywords: its keywords.
    """
    searched = " ".join((str(alias), description or "", *keywords)).lower()
    return all(word in searched for word in text.lower().split())


_MAX_NEAR = 3
_MIN_LETTERS = 3


def did_you_mean_dataset(name: str, known: Iterable[str], *, otherwise: str | None = None) -> str | None:
    """Return a hint with the datasets that a misspelt or partial name may refer to.

    The last part of a name is the most significant: `flights` and `com.example.flihgts` may both be
    `org.nycflights.flights`.

    Args:
        name: the name that does not exist.
        known: the existing names, as far as the caller may see them.
        otherwise: the hint if no known name is close.
    """
    names, last = list(known), _last_part(name)
    by_last: dict[str, list[str]] = {}
    for one in names:
        by_last.setdefault(_last_part(one), []).append(one)
    near = [one for part in nearest(last, by_last) for one in by_last[part]]
    if near and last != name.lower():
        near = nearest(name, near) or near
    near = near or nearest(name, names)
    if not near and len(name) >= _MIN_LETTERS:
        near = [one for one in names if name.lower() in one.lower()]
    return f"Did you mean {' or '.join(near[:_MAX_NEAR])}?" if near else otherwise


def _last_part(name: str) -> str:
    """Return the part of a name after the last dot or slash, in lower case."""
    return re.split(r"[./]", name)[-1].lower()


def _fits(parts: list[str], text: str) -> bool:
    """Return whether the parts occur in the text in this order, the first at its beginning and the last at its end."""
    first, *middle, last = parts
    if not (text.startswith(first) and text.endswith(last) and len(first) + len(last) <= len(text)):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
