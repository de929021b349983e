"""Proofs of results for a model, stored until a person verifies them.

Over stdio a proof is a file, by default in `.odf/mcp/proofs`; users check it with `odf verify-result FILE`. A server
keeps the newest proofs in memory, each for its caller; they are available at `/mcp/proofs/HASH`. A dropped proof can be
recreated: the query always has the same answer.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Final, Protocol

from pydantic import BaseModel, Field

from odfpy.agents.limits import MAX_PROOF_LENGTH
from odfpy.errors import NotFound, OdfError
from odfpy.files import make_folder, replace_file
from odfpy.query.wire.commitments import hash_of
from odfpy.query.wire.verification import CommittedAnswer

SCHEME: Final = "odf://proof/"
_LETTERS: Final = 16
_HEX: Final = re.compile(rf"[0-9a-f]{{{_LETTERS}}}")
_MAX_BYTES: Final = 64 * 1024**2


class ProofReference(BaseModel):
    """A stored proof: its location, and the command that verifies it."""

    hash: Annotated[str, Field(description="Cite this beside the number: it identifies the proof.")]
    uri: Annotated[str, Field(description="The resource with the proof.")]
    file: Annotated[str | None, Field(description="The file with the proof, on the user's machine.")]
    signer: Annotated[str, Field(description="The key that signed the answer.")]
    check: Annotated[str, Field(description="The command with which the user verifies the answer.")]


def cited_as(document: CommittedAnswer) -> str:
    """Return the short hash that identifies a proof: the hash of the signed content."""
    from odfpy.codec.tree import to_tree

    return str(hash_of(to_tree(document.commitment)))[-_LETTERS:]


class ProofStore(Protocol):
    """A store of proofs."""

    def keep(self, document: CommittedAnswer, owner: str, url: str | None) -> ProofReference:
        """Store a proof.

        Args:
            document: the proof.
            owner: the caller who may retrieve the proof.
            url: the server's URL as used by the caller, None over stdio.

        Raises:
            OdfError: the proof cannot be stored.
        """

    def find(self, cited: str, owner: str) -> bytes:
        """Return the text of a proof.

        Args:
            cited: hash that identifies the proof.
            owner: the caller.

        Raises:
            NotFound: the proof is not stored, or belongs to another caller.
        """


@dataclass(frozen=True, slots=True)
class ProofFolder:
    """A folder of proofs, one per file, for the local user.

    Attributes:
        folder: the folder.
        workspace: folder of the workspace with the datasets.
    """

    folder: Path
    workspace: Path

    def keep(self, document: CommittedAnswer, owner: str, url: str | None) -> ProofReference:
        """Implement `ProofStore`."""
        del owner, url  # there is only one owner
        cited = cited_as(document)
        file = self.folder / f"{cited}.json"
        make_folder(self.folder)
        try:
            replace_file(file, _text_of(document, indent=1))
        except OSError as error:
            raise OdfError(f"Cannot write {file}: {error.strerror}", hint="Name another folder: --proofs.") from error
        command = shlex.join(["odf", "-w", str(self.workspace), "verify-result", str(file)])
        return _reference(cited, document, command, str(file))

    def find(self, cited: str, owner: str) -> bytes:
        """Implement `ProofStore`."""
        del owner
        try:
            return (self.folder / f"{_checked(cited)}.json").read_bytes()
        except OSError as error:
            raise _not_kept(cited) from error


class ProofMemory:
    """The newest proofs for the callers of a server, in memory."""

    def __init__(self, most: int = _MAX_BYTES) -> None:
        """
        Args:
            most: maximum total size in bytes.
        """
        self._most = most
        self._kept: OrderedDict[tuple[str, str], bytes] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def keep(self, document: CommittedAnswer, owner: str, url: str | None) -> ProofReference:
        """Implement `ProofStore`."""
        cited, text = cited_as(document), _text_of(document)
        if len(text) > MAX_PROOF_LENGTH:  # the rows can be omitted, since their hash is signed
            text = _text_of(replace(document, output=None))
        with self._lock:
            self._size += len(text) - len(self._kept.pop((owner, cited), b""))
            self._kept[owner, cited] = text
            while self._size > self._most:
                self._size -= len(self._kept.popitem(last=False)[1])
        ask = "" if owner == "" else "-H 'Authorization: Bearer TOKEN' "
        command = f"curl -fsS {ask}-o {cited}.json {url}/proofs/{cited} && odf verify-result {cited}.json"
        return _reference(cited, document, command, None)

    def find(self, cited: str, owner: str) -> bytes:
        """Implement `ProofStore`."""
        with self._lock:
            found = self._kept.get((owner, _checked(cited)))
        if found is None:
            raise _not_kept(cited)
        return found


def _reference(cited: str, document: CommittedAnswer, command: str, file: str | None) -> ProofReference:
    signer = str(document.proof.verification_method)
    return ProofReference(hash=cited, uri=f"{SCHEME}{cited}", file=file, signer=signer, check=command)


def _text_of(document: CommittedAnswer, **form: Any) -> bytes:
    return (json.dumps(document.tree(), ensure_ascii=False, **form) + "\n").encode("utf-8", "replace")


def _checked(cited: str) -> str:
    """Return the name of a proof after checking that it is not a path."""
    if not _HEX.fullmatch(cited):
        raise _not_kept(cited[:100])
    return cited


def _not_kept(cited: str) -> NotFound:
    return NotFound(f"There is no proof {cited!r}", hint="Run the query again: it gives the same proof.")
