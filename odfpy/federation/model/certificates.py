"""Certificates as identities: fingerprints, and the fields that row conditions can use."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.data.timestamp import Timestamp
from odfpy.federation.errors import InvalidCertificate

if TYPE_CHECKING:
    from cryptography import x509

_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_MAX_BYTES: Final = 1 << 20
_NANOS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class CertificateFacts:
    """The facts of a certificate that relays use: who it identifies, and when it is valid.

    Attributes:
        fingerprint: SHA-256 of its DER form, 64 hexadecimal digits: the identity of the key's holder.
        subject: its subject in the form of RFC 4514.
        not_before: start of its validity.
        not_after: end of its validity.
        serial: its serial number, hexadecimal.
        pem: the certificate itself, in PEM form.
    """

    fingerprint: str
    subject: str
    not_before: Timestamp
    not_after: Timestamp
    serial: str
    pem: str

    @classmethod
    def of(cls, pem: str) -> CertificateFacts:
        """Parse a certificate in PEM form.

        Raises:
            InvalidCertificate: it is invalid.
        """
        return facts_of(load_pem(pem))

    @property
    def is_authority(self) -> bool:
        """Return whether it may issue other certificates."""
        from cryptography import x509

        try:
            constraints = load_pem(self.pem).extensions.get_extension_for_class(x509.BasicConstraints)
        except (x509.ExtensionNotFound, ValueError):
            return False
        return constraints.value.ca

    def is_good_at(self, time: Timestamp) -> bool:
        """Return whether a time is within its validity."""
        return self.not_before <= time < self.not_after


def load_pem(pem: str) -> x509.Certificate:
    """Parse the certificate in a text.

    Raises:
        InvalidCertificate: it is invalid.
    """
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(pem.encode())
    except ValueError as error:
        raise InvalidCertificate("Not a certificate in PEM form", hint=f"It begins with {_BEGIN}.") from error


def facts_of(certificate: x509.Certificate) -> CertificateFacts:
    """Extract the facts of a certificate."""
    from cryptography.hazmat.primitives.serialization import Encoding

    return CertificateFacts(
        fingerprint=fingerprint_of(certificate.public_bytes(Encoding.DER)),
        subject=certificate.subject.rfc4514_string(),
        not_before=Timestamp(int(certificate.not_valid_before_utc.timestamp()) * _NANOS),
        not_after=Timestamp(int(certificate.not_valid_after_utc.timestamp()) * _NANOS),
        serial=f"{certificate.serial_number:x}",
        pem=certificate.public_bytes(Encoding.PEM).decode(),
    )


def fingerprint_of(der: bytes) -> str:
    """Return the fingerprint of a certificate in DER form, as used in TLS: SHA-256, 64 hexadecimal digits."""
    return hashlib.sha256(der).hexdigest()


def is_of_server(der: bytes) -> bool:
    """Return whether a certificate is a server's, as that of a relay: it names hosts and is allowed for server
    authentication.

    Args:
        der: the certificate, in DER form.
    """
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        extensions = x509.load_der_x509_certificate(der).extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        if not any(isinstance(name, x509.DNSName | x509.IPAddress) for name in names):
            return False
        purposes = [extension.value for extension in extensions if isinstance(extension.value, x509.ExtendedKeyUsage)]
        return all(ExtendedKeyUsageOID.SERVER_AUTH in purpose for purpose in purposes)  # none: for all purposes
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return False


def subject_of(der: bytes) -> str:
    """Return the subject of a certificate, in the form of RFC 4514.

    Args:
        der: the certificate, in DER form.
    """
    from cryptography import x509

    return x509.load_der_x509_certificate(der).subject.rfc4514_string()


def certificate_attributes(pem: str) -> dict[str, str]:
    """Return the fields of a certificate that row conditions can use: `subject.CN`, `subject.O`, `issuer.CN` and so on.

    A field that occurs several times is left out, since it would be ambiguous.

    Args:
        pem: the certificate.

    Raises:
        InvalidCertificate: it is invalid.
    """
    certificate = load_pem(pem)
    attributes: dict[str, str] = {}
    for what, name in (("subject", certificate.subject), ("issuer", certificate.issuer)):
        for attribute in name:
            key = f"{what}.{attribute.rfc4514_attribute_name}"
            value = attribute.value if isinstance(attribute.value, str) else attribute.value.hex()
            if len(name.get_attributes_for_oid(attribute.oid)) == 1:
                attributes[key] = value
    return attributes


def read_certificates(text: str, folder: Path) -> list[str]:
    """Return the certificates of a PEM file, or of such a text itself, each in canonical form.

    Args:
        text: the path, or the text.
        folder: folder that a relative path starts from.

    Raises:
        InvalidCertificate: there is no certificate.
    """
    from cryptography import x509

    where = "the text"
    if not text.startswith(_BEGIN):
        path = folder / text
        where = str(path)
        try:
            if path.stat().st_size > _MAX_BYTES:
                raise InvalidCertificate(f"{path} is too large for a certificate", hint="Name a PEM file.")
            text = path.read_bytes().decode("ascii", "replace")
        except OSError as error:
            raise InvalidCertificate(
                f"Cannot read the certificate {path}: {error.strerror}",
                hint="Paths are relative to the folder of the document.",
            ) from error
    try:
        certificates = x509.load_pem_x509_certificates(text.encode())
    except ValueError as error:
        raise InvalidCertificate(f"No certificate in PEM form: {where}", hint=f"It begins with {_BEGIN}.") from error
    return [facts_of(certificate).pem for certificate in certificates]
