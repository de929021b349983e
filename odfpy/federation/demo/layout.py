"""The folder of the reference web: the data and keys of all relays.

web.json                describes the web; written last, so a folder that has it is complete
keys/                   the authority, and certificates and keys of relays and users
questions/              example queries
RELAY/                  the workspace of a relay
RELAY/data, RELAY/web   its tables, and its documents
RELAY/relay.log         the log of its process
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odfpy.coordinator.workspace import Workspace
from odfpy.errors import AlreadyExists, OdfError
from odfpy.federation.applying import prepare, record
from odfpy.federation.authority import RELAY_DAYS, USER_DAYS, Authority
from odfpy.federation.demo.data import MORE_LINES, ROWS, make_tables
from odfpy.federation.demo.documents import ALL_ACCESS, GUEST, write_documents
from odfpy.federation.demo.documents import MORE_LINES as MORE_LINES_FILE
from odfpy.federation.demo.questions import FILES
from odfpy.federation.demo.words import RELAYS
from odfpy.federation.identity import RelayIdentity
from odfpy.federation.store.store import WebStore

HOST: Final = "127.0.0.1"
_HOSTS: Final = (HOST, "localhost")
_MARK: Final = "web.json"
_VERSION: Final = 1
_WHO: Final = "odf relay demo"


@dataclass(frozen=True, slots=True)
class WebFolder:
    """A folder with the reference web.

    Attributes:
        path: the folder.
    """

    path: Path

    @property
    def authorities(self) -> Path:
        """The certificate of the authority."""
        return self.path / "keys" / "ca.pem"

    def certificate(self, name: str) -> Path:
        """Return the certificate of a relay or user; its key is beside it.

        Args:
            name: name of the relay or user.
        """
        return self.path / "keys" / f"{name}.pem"

    def key(self, name: str) -> Path:
        """Return the file of the key that belongs to a certificate."""
        return self.path / "keys" / f"{name}.key"

    def workspace(self, relay: str) -> Path:
        """Return the workspace of a relay.

        Args:
            relay: name of the relay.
        """
        return self.path / relay

    def data(self, relay: str, table: str) -> Path:
        """Return the file of a table of a relay."""
        return self.path / relay / "data" / f"{table}.parquet"

    @property
    def more_lines(self) -> Path:
        """Return the file of the rows that only na_us has."""
        return self.path / "na_us" / "data" / MORE_LINES_FILE

    def question(self, name: str) -> Path:
        """Return the file of an example query.

        Args:
            name: name of the file.
        """
        return self.path / "questions" / name

    def apply(self, relay: str, locations: Mapping[str, str], *, offline: bool = True) -> None:
        """Write the documents of a relay, and apply them.

        Args:
            relay: name of the relay.
            locations: locations of all relays, by name.
            offline: whether the relay that never responds is a peer.

        Raises:
            OdfError: they cannot be applied.
        """
        root = self.workspace(relay)
        write_documents(root / "web", relay, locations, offline=offline)
        workspace = Workspace.open(root)
        store = WebStore.of_workspace(workspace.odf, None)
        try:
            prepared = prepare(store, [root / "web"], workspace.odf, prune=True)
            if prepared.steps:
                store.applies.apply(prepared.steps, based_on=prepared.revision, who=_WHO)
                record(workspace, store, relay)
        finally:
            store.database.close()


def web_folder(path: Path) -> WebFolder:
    """Return the reference web in a folder; create it if there is none.

    Args:
        path: the folder.

    Raises:
        AlreadyExists: the folder has other content.
        OdfError: it cannot be created.
    """
    folder = WebFolder(path.absolute())
    mark = folder.path / _MARK
    try:
        if mark.exists():
            _check(mark)
            return folder
        if folder.path.exists() and any(folder.path.iterdir()):
            raise AlreadyExists(f"{path} has other files", hint="Name a folder that is empty, or not there yet.")
        existed = folder.path.exists()
        try:
            _make(folder)
            mark.write_text(json.dumps({"version": _VERSION}) + "\n", encoding="utf-8")
        except BaseException:
            _remove(folder.path, itself=not existed)
            raise
    except OSError as error:
        raise OdfError(f"Cannot make the web in {path}: {error.strerror}") from error
    return folder


def _check(mark: Path) -> None:
    try:
        version = json.loads(mark.read_text(encoding="utf-8"))["version"]
    except (ValueError, KeyError, TypeError):
        version = None
    if version != _VERSION:
        raise AlreadyExists(
            f"The web in {mark.parent} is of another version of odf", hint="Remove it, or name another folder."
        )


def _make(folder: WebFolder) -> None:
    make_tables(folder.path / "data")
    authority, kept = Authority.new("web")
    kept.write(folder.authorities, folder.key("ca"))
    for name in RELAYS:
        authority.issue(name, RELAY_DAYS, hosts=_HOSTS).write(folder.certificate(name), folder.key(name))
        workspace = Workspace.init(folder.workspace(name))
        RelayIdentity.given(workspace.odf, name, folder.certificate(name), folder.key(name), folder.authorities)
        WebStore.of_workspace(workspace.odf, None).database.close()  # migrated here, so that relays need not
        for table in ROWS:
            folder.data(name, table).parent.mkdir(exist_ok=True)
            shutil.copyfile(folder.path / "data" / f"{table}.parquet", folder.data(name, table))
    folder.more_lines.write_text(MORE_LINES, encoding="utf-8")
    for name, text in FILES.items():
        folder.question(name).parent.mkdir(exist_ok=True)
        folder.question(name).write_text(f"{text}\n", encoding="utf-8")
    for name in (ALL_ACCESS, GUEST):
        authority.issue(name, USER_DAYS).write(folder.certificate(name), folder.key(name))
    shutil.rmtree(folder.path / "data")


def _remove(path: Path, *, itself: bool) -> None:
    """Remove the files of a web that could not be completed."""
    for entry in path.iterdir() if path.exists() else ():
        shutil.rmtree(entry, ignore_errors=True)
    if itself and path.exists():
        path.rmdir()
