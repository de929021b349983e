"""Keys of the user: the signing key, and named keys of other users.

    $XDG_CONFIG_HOME/odf/keys/id_ed25519     the private key, mode 0600, created on first use
    $XDG_CONFIG_HOME/odf/keys/revoked-...    revoked private keys, kept to publish their revocation elsewhere
    $XDG_CONFIG_HOME/odf/trusted-keys.yaml   public keys of other users, each with a name
    $XDG_CONFIG_HOME/odf/revoked-keys.yaml   revoked keys; see `revoked_keys`

These files belong to the user, not to a workspace, so that they are not copied with a workspace.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Final

from odfpy.chain.required_signers import RequiredSigners
from odfpy.chain.revocations import KeyRevocation, KnownRevocations
from odfpy.chain.signatures import SignatureReport
from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.revoked_keys import RevokedKeysFile
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import ActorId, DatasetId, KeyPair
from odfpy.errors import AlreadyExists, InvalidValue, MalformedManifest, NotFound, OdfError, did_you_mean
from odfpy.files import TEMPORARY, configuration_folder, locked_for_change, make_folder, sync_folder
from odfpy.repository.documents import load_document, save_document
from odfpy.settings.sections import ProofsSection
from odfpy.values import dataclass

OWNER: Final = "owner"
ME: Final = "me"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
_MAX_SIZE: Final = 1000


class UnusableKey(OdfError, code="E652"):
    """The signing key cannot be read or created, or has been revoked or has expired."""


class UnknownKey(NotFound, code="E653"):
    """No key is trusted under that name."""


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A public key of another user, with a name chosen by this user."""

    name: str
    key: ActorId


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    key: str


@dataclass(frozen=True, slots=True)
class _Document:
    keys: tuple[_Entry, ...]


class UserKeys:
    """The key of a user, and the keys that the user trusts."""

    def __init__(self, folder: Path | None = None, own: Path | None = None) -> None:
        """
        Args:
            folder: folder of the user's configuration; by default that of the current user.
            own: file of the private key; in that folder by default.
        """
        folder = folder or configuration_folder()
        self._own = own or folder / "keys" / "id_ed25519"
        self._trusted = folder / "trusted-keys.yaml"
        self._revoked = RevokedKeysFile(folder)

    # --- The user's key ---

    def own(self) -> KeyPair:
        """Return the user's key pair; create it if it does not exist.

        Raises:
            UnusableKey: the key pair can be neither read nor created.
        """
        return self.known() or self._make()

    def known(self) -> KeyPair | None:
        """Return the user's key pair, None if it does not exist.

        Raises:
            UnusableKey: the key pair cannot be read, or is readable by other users.
        """
        return _key_in(self._own)

    def pair_of(self, key: ActorId) -> KeyPair | None:
        """Return the key pair of a current or retired key of the user; None for other keys."""
        for file in (self._own, self._put_away(key)):
            pair = _key_in(file)
            if pair is not None and pair.actor == key:
                return pair
        return None

    def put_away(self) -> None:
        """Retire the user's key; a new one is created on next use.

        Raises:
            UnusableKey: the key file cannot be moved.
        """
        pair = self.own()
        try:
            self._own.rename(self._put_away(pair.actor))
        except OSError as error:
            raise UnusableKey(f"Cannot move your key {self._own}: {error.strerror}") from error

    def _put_away(self, key: ActorId) -> Path:
        return self._own.with_name(f"revoked-{str(key).rpartition(':')[2]}")

    def _make(self) -> KeyPair:
        """Create a key pair. If several processes do so at once, the first one wins, and the others use its key."""
        pair, folder = KeyPair.generate(), self._own.parent
        temporary = folder / f"{TEMPORARY}{secrets.token_hex(8)}"
        try:
            make_folder(folder.parent)
            folder.mkdir(mode=0o700, exist_ok=True)
            try:
                descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(pair.private_key.hex().encode("ascii"))
                    file.flush()
                    os.fsync(file.fileno())
                with suppress(FileExistsError):  # another process was faster
                    os.link(temporary, self._own)
            finally:
                temporary.unlink(missing_ok=True)
            sync_folder(folder)
        except OSError as error:
            raise UnusableKey(
                f"Cannot create a signing key in {folder}: {error.strerror}",
                hint="Check the permissions; `odf config set signatures.sign false` turns signatures off.",
            ) from error
        return self.known() or pair

    # --- Revocations ---

    @property
    def revoked(self) -> KnownRevocations:
        """Return the known revoked and expired keys.

        Raises:
            MalformedManifest: the file is damaged; the message names the file.
        """
        return self._revoked.load()

    def learn(self, statements: Iterable[KeyRevocation]) -> None:
        """Store statements of other users about revoked and expired keys.

        Raises:
            OdfError: the statements cannot be stored.
        """
        self._revoked.add(learnt=statements, named=[item.key for item in self.trusted])

    # --- Keys of other users ---

    @cached_property
    def trusted(self) -> tuple[TrustedKey, ...]:
        """Return the trusted keys of other users, sorted by name.

        Raises:
            MalformedManifest: the file is damaged; the message names the file.
        """
        document = load_document(self._trusted, "TrustedKeys", _Document)
        try:
            keys = [TrustedKey(entry.name, ActorId.parse(entry.key)) for entry in document.keys] if document else []
        except InvalidValue as error:
            raise MalformedManifest(
                f"{self._trusted}: {error.message}", hint="Correct the file, or delete it."
            ) from error
        return tuple(sorted(keys, key=lambda item: item.name.lower()))

    def trust(self, name: str, key: ActorId) -> TrustedKey:
        """Trust a key under a name.

        Raises:
            InvalidValue: the name is invalid.
            AlreadyExists: another key has the name.
        """
        if not _NAME.fullmatch(name) or name.lower() in (OWNER, ME):
            hint = f"Letters, digits and . _ @ + - are allowed; {OWNER} and {ME} are reserved."
            raise InvalidValue(f"Not a name for a key: {name!r}", hint=hint)
        item = TrustedKey(name, key)
        with self._changing():
            for known in self.trusted:
                if known.name.lower() == name.lower() and known.key != key:
                    raise AlreadyExists(
                        f"Another key is trusted as {known.name}: {known.key}",
                        hint=f"Choose another name, or first run `odf key untrust {known.name}`.",
                    )
            self._save([*(known for known in self.trusted if known.name.lower() != name.lower()), item])
        return item

    def untrust(self, name: str) -> TrustedKey:
        """Remove a named key.

        Raises:
            UnknownKey: no key has the name; the message has a suggestion.
        """
        with self._changing():
            item = self._named(name)
            self._save([known for known in self.trusted if known != item])
        return item

    def find(self, text: str) -> ActorId:
        """Return the key with a name, or parse a key.

        Raises:
            UnknownKey, InvalidValue: the text is neither a known name nor a key.
        """
        if text.startswith("did:"):
            return ActorId.parse(text)
        return self.own().actor if text.lower() == ME else self._named(text).key

    def name_of(self, key: ActorId, dataset_id: DatasetId | None = None) -> str:
        """Return a display name for a signer: a trusted name, `owner` for a dataset's own key, `me`, or the key."""
        for item in self.trusted:
            if item.key == key:
                return item.name
        if dataset_id is not None and key == ActorId.owner_of(dataset_id):
            return OWNER
        return ME if key == self._me else str(key)

    def words(self, report: SignatureReport, dataset_id: DatasetId) -> str:
        """Summarize a report on signatures in a few words."""
        if not report.signed:
            return "not signed"
        by = ", ".join(dict.fromkeys(self.name_of(signer, dataset_id) for signer in report.signers))
        return f"signed by {by}" + (f", {report.unsigned} of the blocks not signed" if report.unsigned else "")

    @cached_property
    def _me(self) -> ActorId | None:
        try:
            pair = self.known()
        except UnusableKey:
            return None
        return pair.actor if pair else None

    def _named(self, name: str) -> TrustedKey:
        for item in self.trusted:
            if item.name.lower() == name.lower():
                return item
        names = [item.name for item in self.trusted]
        hint = did_you_mean(name, names, otherwise=f"`odf key trust {name} did:key:...` gives a key that name.")
        raise UnknownKey(f"No key is trusted as {name!r}", hint=hint)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Reload the trusted keys, and prevent concurrent changes during the block."""
        with locked_for_change(self._trusted):
            self.__dict__.pop("trusted", None)
            yield

    def _save(self, items: list[TrustedKey]) -> None:
        entries = tuple(_Entry(item.name, str(item.key)) for item in items)
        save_document(self._trusted, "TrustedKeys", _Document(entries))
        self.__dict__.pop("trusted", None)


def _key_in(path: Path) -> KeyPair | None:
    """Return the key pair in a file, None if the file does not exist."""
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            text = file.read(_MAX_SIZE).strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnusableKey(f"Cannot read your key {path}: {error.strerror}") from error
    if mode & 0o077:
        raise UnusableKey(f"Your key {path} can be read by others (mode {mode:o})", hint=f"chmod 600 {path}")
    try:
        return KeyPair(bytes.fromhex(text.decode("ascii")))
    except (ValueError, InvalidValue) as error:
        raise UnusableKey(
            f"Damaged key: {path} does not hold 64 hexadecimal digits",
            hint="Restore it from a backup, or move it away: then a new one is created.",
        ) from error


def required_signers(text: str | None, keys: UserKeys) -> RequiredSigners:
    """Return the required signers of copies, by the setting `signatures.require`; none are required if it is None.

    The user's own key is always accepted. Known revoked keys are included for any setting; newly revoked ones are
    stored through `learn`.

    Raises:
        UnknownKey, InvalidValue: the setting names an unknown key.
    """
    if text is None:
        return RequiredSigners("", frozenset(), owner=False, revoked=keys.revoked, learn=keys.learn)
    names = [name.strip() for name in text.split(",")]
    actors = {keys.find(name) for name in names if name.lower() != OWNER}
    own = keys.known()
    return RequiredSigners(
        " or ".join(names),
        frozenset(actors | ({own.actor} if own else set())),
        owner=any(name.lower() == OWNER for name in names),
        revoked=keys.revoked,
        learn=keys.learn,
    )


def answer_key(root: Path) -> KeyPair:
    """Return the key that signs answers in a workspace: the one of the setting `proofs.key`, or the user's own.

    Raises:
        UnusableKey: the key can be neither read nor created, or has been revoked or has expired, so that nobody would
            accept its signature.
    """
    keys = answer_keys(root)
    pair, now = keys.own(), Timestamp.now()
    for revocation in keys.revoked.everywhere():
        if revocation.key == str(pair.actor) and revocation.has_come(now):
            raise UnusableKey(
                f"No answer is signed with the key {pair.actor}, which {revocation.in_words(None)}",
                hint="`odf key revoke --reason superseded` replaces your key. For a key that"
                " `proofs.key` names, remove its file.",
            )
    return pair


def answer_keys(root: Path) -> UserKeys:
    """Return the keys known in a workspace; its own key is the one that signs answers."""
    named = Config.load(root).section(ProofsSection).key
    return UserKeys(own=None if named is None else root.absolute() / named)
