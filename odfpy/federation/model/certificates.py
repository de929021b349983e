"""Certificates as identities: fingerprints, and the fields that row conditions may name."""

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
    """A certificate.

    Attributes:
        fingerprint: SHA-256 of its DER form, 64 hexadecimal digits: the identity of whoever has the key.
        subject: its subject, as RFC 4514 writes it.
        not_before: from when it is good.
        not_after: until when it is good.
        serial: its number, hexadecimal.
        pem: itself.
    """

    fingerprint: str
    subject: str
    not_before: Timestamp
    not_after: Timestamp
    serial: str
    pem: str

    @classmethod
    def of(cls, pem: str) -> CertificateFacts:
        """A certificate in PEM form.

        Raises:
            InvalidCertificate: it is invalid.
        """
        return facts_of(load_pem(pem))

    @property
    def is_authority(self) -> bool:
        """Return whether it may issue others."""
        from cryptography import x509

        try:
            found = load_pem(self.pem).extensions.get_extension_for_class(x509.BasicConstraints)
        except (x509.ExtensionNotFound, ValueError):
            return False
        return found.value.ca

    def is_good_at(self, time: Timestamp) -> bool:
        """Return whether a time is in its life."""
        return self.not_before <= time < self.not_after


def load_pem(pem: str) -> x509.Certificate:
    """The certificate of a text.

    Raises:
        InvalidCertificate: it is invalid.
    """
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(pem.encode())
    except ValueError as error:
        raise InvalidCertificate("Not a certificate in PEM form", hint=f"It begins with {_BEGIN}.") from error


def facts_of(certificate: x509.Certificate) -> CertificateFacts:
    """Return what there is to say of a certificate."""
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
    """The fingerprint of a certificate in DER form, as TLS has it: SHA-256, 64 hexadecimal digits."""
    return hashlib.sha256(der).hexdigest()


def is_of_server(der: bytes) -> bool:
    """Return whether a certificate is of a server, as that of a relay is: it names hosts, and may be shown by one.

    Args:
        der: the certificate, in DER form.
    """
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        extensions = x509.load_der_x509_certificate(der).extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        if not any(isinstance(one, x509.DNSName | x509.IPAddress) for one in names):
            return False
        purposes = [one.value for one in extensions if isinstance(one.value, x509.ExtendedKeyUsage)]
        return all(ExtendedKeyUsageOID.SERVER_AUTH in one for one in purposes)  # one that names none is for all
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return False


def subject_of(der: bytes) -> str:
    """Return whom a certificate is of, as RFC 4514 writes it.

    Args:
        der: the certificate, in DER form.
    """
    from cryptography import x509

    return x509.load_der_x509_certificate(der).subject.rfc4514_string()


def certificate_attributes(pem: str) -> dict[str, str]:
    """The fields of a certificate that row conditions may name: `subject.CN`, `subject.O`, `issuer.CN` and so on.

    A field that is there several times is left out, since a condition could be about the wrong one.

    Args:
        pem: the certificate.

    Raises:
        InvalidCertificate: it is invalid.
    """
    certificate = load_pem(pem)
    found: dict[str, str] = {}
    for what, name in (("subject", certificate.subject), ("issuer", certificate.issuer)):
        for attribute in name:
            key = f"{what}.{attribute.rfc4514_attribute_name}"
            value = attribute.value if isinstance(attribute.value, str) else attribute.value.hex()
            if len(name.get_attributes_for_oid(attribute.oid)) == 1:
                found[key] = value
    return found


def read_certificates(text: str, folder: Path) -> list[str]:
    """The certificates of a PEM file, each in the form that it always has; or of such a text itself.

    Args:
        text: the path, or the text.
        folder: that the path is relative to.

    Raises:
        InvalidCertificate: there is none.
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
        found = x509.load_pem_x509_certificates(text.encode())
    except ValueError as error:
        raise InvalidCertificate(f"No certificate in PEM form: {where}", hint=f"It begins with {_BEGIN}.") from error
    return [facts_of(one).pem for one in found]
