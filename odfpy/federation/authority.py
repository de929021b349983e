"""A small certificate authority for a web of relays: it issues certificates for relays and users.

Keys use the curve P-256. They never leave the folder they are created in, which only its owner can read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from ipaddress import ip_address
from pathlib import Path
from typing import Final, cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from odfpy.errors import AlreadyExists, OdfError
from odfpy.federation.errors import InvalidCertificate
from odfpy.federation.model.certificates import CertificateFacts, facts_of, load_pem
from odfpy.files import make_folder

CA_DAYS: Final = 3650
RELAY_DAYS: Final = 825
USER_DAYS: Final = 365

FIELDS: Final = {"O": NameOID.ORGANIZATION_NAME, "OU": NameOID.ORGANIZATIONAL_UNIT_NAME, "C": NameOID.COUNTRY_NAME}
"""Optional fields of a subject, besides the name."""

_EARLY: Final = timedelta(minutes=5)
"""Certificates are backdated a little, since clocks differ."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A new certificate, and its key.

    Attributes:
        facts: the certificate.
        key_pem: the key, in PEM form, unencrypted.
    """

    facts: CertificateFacts
    key_pem: str = field(repr=False)

    def write(self, certificate: Path, key: Path) -> None:
        """Write both to new files; only their owner can read the key.

        Raises:
            AlreadyExists: a file exists.
        """
        write_new(key, self.key_pem, mode=0o600)
        write_new(certificate, self.facts.pem, mode=0o644)


class Authority:
    """A certificate authority with its private key.

    Attributes:
        facts: its certificate.
    """

    def __init__(self, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._certificate = certificate
        self._key = key
        self.facts = facts_of(certificate)

    @classmethod
    def new(cls, name: str) -> tuple[Authority, Issued]:
        """Create an authority; returns it with the files to store.

        Args:
            name: name of the web, or of the relay whose users it certifies.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(f"{name} authority", {})
        usage = _usage(signs=False, certifies=True)
        certificate = (
            _builder(subject, subject, key.public_key(), CA_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key), Issued(facts_of(certificate), _key_pem(key))

    @classmethod
    def open(cls, certificate: Path, key: Path) -> Authority:
        """Load the authority from two files.

        Raises:
            InvalidCertificate: they cannot be read, or do not belong to each other.
        """
        own, private = load_pair(certificate, key)
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise InvalidCertificate(f"{key} is not a key of an elliptic curve", hint="`odf relay init` creates one.")
        return cls(own, private)

    def issue(
        self,
        name: str,
        days: int,
        *,
        fields: Mapping[str, str] | None = None,
        hosts: Sequence[str] = (),
    ) -> Issued:
        """Issue a certificate for a user or a relay.

        Args:
            name: common name of the subject.
            days: how long it is valid.
            fields: further fields of the subject: `O`, `OU`, `C`.
            hosts: host names and addresses of a server; a certificate without any is for clients only.

        Raises:
            InvalidCertificate: a field is not allowed in a certificate.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names = [_host(host) for host in hosts] or [x509.UniformResourceIdentifier(f"urn:odf:user:{_urn(name)}")]
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = (
            _builder(_subject(name, fields or {}), self._certificate.subject, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=True, certifies=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(authority_key, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Issued(facts_of(certificate), _key_pem(key))


def load_pair(certificate: Path, key: Path) -> tuple[x509.Certificate, object]:
    """Load a certificate and its key.

    Raises:
        InvalidCertificate: a file cannot be read, or the key belongs to another certificate.
    """
    loaded = load_pem(_read(certificate))
    try:
        private = load_pem_private_key(_read(key).encode(), None)
    except (ValueError, TypeError) as error:
        raise InvalidCertificate(f"{key} is not a key in PEM form without a password") from error
    if _public(private.public_key()) != _public(loaded.public_key()):
        raise InvalidCertificate(f"{key} is not the key of {certificate}", hint="Name a matching pair.")
    return loaded, private


def write_new(path: Path, text: str, *, mode: int) -> None:
    """Write a new file; never overwrite one.

    Args:
        path: path of the file.
        text: content of the file.
        mode: permission bits of the file.

    Raises:
        AlreadyExists: the file exists.
        OdfError: it cannot be written.
    """
    try:
        make_folder(path.parent)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123  a descriptor
            file.write(text)
    except FileExistsError as error:
        raise AlreadyExists(f"The file {path} already exists", hint="Choose another name.") from error
    except OSError as error:
        raise OdfError(f"Cannot write {path}: {error.strerror}") from error


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise InvalidCertificate(f"Cannot read {path}: {error.strerror}") from error


def _public(key: object) -> bytes:
    public_key = cast("ec.EllipticCurvePublicKey", key)
    return public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(timezone.utc).replace(microsecond=0)
    serial = x509.random_serial_number()
    return x509.CertificateBuilder(issuer, subject, key, serial, now - _EARLY, now + timedelta(days=days))


def _subject(name: str, fields: Mapping[str, str]) -> x509.Name:
    try:
        more = [x509.NameAttribute(FIELDS[key], value) for key, value in fields.items()]
        return x509.Name([*more, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    except KeyError as error:
        raise InvalidCertificate(
            f"No field of a subject: {error.args[0]}", hint=f"Give {', '.join(FIELDS)}."
        ) from error
    except ValueError as error:
        raise InvalidCertificate(
            f"A certificate cannot have this subject: {error}", hint="Choose a shorter one."
        ) from error


def _usage(*, signs: bool, certifies: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=certifies,
        crl_sign=certifies,
        encipher_only=False,
        decipher_only=False,
    )


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        pass
    try:
        return x509.DNSName(text)
    except ValueError as error:
        raise InvalidCertificate(f"Not a host: {text!r}", hint="Give names or addresses.") from error


def _urn(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
