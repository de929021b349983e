"""The relay of a workspace: its name, its certificate and key, and the authorities it trusts.

.odf/relay/relay.json      the name, and the paths of the other files
.odf/relay/relay.pem       the certificate of the relay, and relay.key its key
.odf/relay/ca.pem          the trusted authorities, and ca.key the key of the relay's own authority
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509

from odfpy.errors import AlreadyExists, OdfError
from odfpy.federation.authority import RELAY_DAYS, Authority, load_pair, write_new
from odfpy.federation.errors import InvalidCertificate, NoRelay
from odfpy.federation.model.certificates import CertificateFacts, facts_of, read_certificates
from odfpy.files import replace_file
from odfpy.sharing.names import check_name

_HERE: Final = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class RelayIdentity:
    """The identity of a relay, stored in its workspace; used by its servers and commands.

    Attributes:
        name: the name that peers know it by.
        certificate: file of its certificate, for servers and clients.
        key: file of its key.
        authorities: file of the trusted authorities' certificates.
        authority_key: file of the key of its own authority; None where another authority issues certificates.
    """

    name: str
    certificate: Path
    key: Path
    authorities: Path
    authority_key: Path | None

    @classmethod
    def open(cls, odf: Path) -> RelayIdentity:
        """Load the relay of a workspace.

        Args:
            odf: its folder `.odf`.

        Raises:
            NoRelay: the workspace has none.
            OdfError: the file cannot be read.
        """
        path = _file(odf)
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
            key = tree["authorityKey"]
            certificate, own_key, authorities = (
                path.parent / str(tree[name]) for name in ("certificate", "key", "authorities")
            )
            authority_key = None if key is None else path.parent / str(key)
            return cls(str(tree["name"]), certificate, own_key, authorities, authority_key)
        except FileNotFoundError as error:
            raise NoRelay("This workspace has no relay", hint="`odf relay init NAME` creates one.") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OdfError(f"Cannot read {path}: {error}", hint="Restore it, or create the relay again.") from error

    @classmethod
    def make(cls, odf: Path, name: str, hosts: Sequence[str] = ()) -> RelayIdentity:
        """Create the relay of a workspace, with its own authority.

        Args:
            odf: its folder `.odf`.
            name: the name that peers know it by.
            hosts: host names and addresses by which others reach it, in addition to those of this machine.

        Raises:
            AlreadyExists: the workspace has one.
            InvalidValue, InvalidCertificate: the name or a host is invalid.
        """
        folder = _new(odf, name)
        authority, kept = Authority.new(name)
        issued = authority.issue(name, RELAY_DAYS, hosts=list(dict.fromkeys((*_HERE, *hosts))))
        kept.write(folder / "ca.pem", folder / "ca.key")
        issued.write(folder / "relay.pem", folder / "relay.key")
        return cls(name, folder / "relay.pem", folder / "relay.key", folder / "ca.pem", folder / "ca.key").written(odf)

    @classmethod
    def given(cls, odf: Path, name: str, certificate: Path, key: Path, authorities: Path) -> RelayIdentity:
        """Create the relay of a workspace, with a certificate from another authority.

        Args:
            odf: its folder `.odf`.
            name: the name that peers know it by.
            certificate: file of its certificate; the file is not moved or copied.
            key: file of its key.
            authorities: file of the trusted authorities' certificates.

        Raises:
            AlreadyExists: the workspace has one.
            InvalidCertificate: a file is invalid, or the key belongs to another certificate.
        """
        _new(odf, name)
        load_pair(certificate, key)
        read_certificates(str(authorities.absolute()), Path())
        return cls(name, certificate.absolute(), key.absolute(), authorities.absolute(), None).written(odf)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of its certificate, by which others recognize it."""
        return facts_of(self._pair()).fingerprint

    @property
    def expires(self) -> str:
        """Return when its certificate expires."""
        return str(facts_of(self._pair()).not_after)

    @property
    def trusted(self) -> list[str]:
        """Return the certificates of the trusted authorities, in PEM form.

        Raises:
            InvalidCertificate: the file has none.
        """
        return read_certificates(str(self.authorities), Path())

    @property
    def authority(self) -> Authority:
        """Return its own authority.

        Raises:
            InvalidCertificate: another authority issues its certificates.
        """
        if self.authority_key is None:
            raise InvalidCertificate(
                f"The relay {self.name} has no authority of its own",
                hint="Use your own authority to issue the certificate, and name it in a document.",
            )
        return Authority.open(self.authorities, self.authority_key)

    def trust(self, file: Path) -> list[CertificateFacts]:
        """Trust the authorities of a file, in addition to those so far; returns the new ones. A running server notices
        after a restart.

        Args:
            file: PEM file.

        Raises:
            InvalidCertificate: it has no certificates, or one is not that of an authority.
            OdfError: the list of trusted authorities cannot be written.
        """
        if self.authority_key is None:
            raise InvalidCertificate(
                f"The trusted authorities are in {self.authorities}, which was passed to the relay",
                hint="Add it to that file.",
            )
        known = {CertificateFacts.of(facts).fingerprint for facts in self.trusted}
        given = [CertificateFacts.of(certificate) for certificate in read_certificates(str(file.absolute()), Path())]
        for facts in given:
            if not facts.is_authority:
                raise InvalidCertificate(
                    f"{file} has the certificate of {facts.subject}, which is not an authority",
                    hint="Name the ca.pem of the other relay. Its relay.pem belongs in a document, as a peer.",
                )
        new = list({facts.fingerprint: facts for facts in given if facts.fingerprint not in known}.values())
        text = self.authorities.read_text(encoding="ascii").rstrip("\n")
        try:
            replace_file(self.authorities, "\n".join((text, *(facts.pem.rstrip("\n") for facts in new), "")).encode())
        except OSError as error:
            raise OdfError(f"Cannot write {self.authorities}: {error.strerror}") from error
        return new

    def _pair(self) -> x509.Certificate:
        return load_pair(self.certificate, self.key)[0]

    def written(self, odf: Path) -> RelayIdentity:
        """Save it as the relay of a workspace.

        Args:
            odf: folder `.odf` of the workspace.
        """
        path = _file(odf)
        tree = {
            "name": self.name,
            "certificate": _shown(self.certificate, path.parent),
            "key": _shown(self.key, path.parent),
            "authorities": _shown(self.authorities, path.parent),
            "authorityKey": None if self.authority_key is None else _shown(self.authority_key, path.parent),
        }
        write_new(path, json.dumps(tree, indent=2) + "\n", mode=0o600)
        return self


def _file(odf: Path) -> Path:
    return odf / "relay" / "relay.json"


def _new(odf: Path, name: str) -> Path:
    check_name("relay", name)
    if _file(odf).exists():
        raise AlreadyExists("This workspace already has a relay", hint="`odf relay status` shows it.")
    return odf / "relay"


def _shown(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
