"""Identities: an identity is the holder of the key of a certificate that a relay trusts.

Clients of a relay present their certificate in the TLS handshake. Further relays recognize a requester by a token that
the requester signs: a JSON Web Token that contains the certificate (RFC 7515, `x5c`). For requesters that cannot sign
one, the relay that they query vouches; then only what both may see is returned.

    token = credentials.token(query, seconds=60)
    requester = authorities.requester(token)
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odfpy.extras import needs_extra
from odfpy.federation.errors import AuthenticationFailed, InvalidCertificate
from odfpy.federation.model.certificates import certificate_attributes, facts_of

if TYPE_CHECKING:
    from cryptography import x509

with needs_extra("federation", "A web of relays", InvalidCertificate):
    import jwt

AUDIENCE: Final = "odf-web"
"""All relays of a web."""

MAX_TOKEN_LENGTH: Final = 32 * 1024
"""Characters; a chain of certificates has some kilobytes."""

LEEWAY: Final = 30
"""Seconds that clocks of relays may differ."""

MAX_LIFE: Final = 3600
"""Maximum lifetime of a token in seconds."""

_MAX_CHAIN: Final = 5
# Times are compared below, with a clock that tests can replace.
_OPTIONS: Final = {
    "verify_exp": False,
    "verify_iat": False,
    "verify_nbf": False,
}
_WRONG: Final = "The signature of the caller is not valid"


@dataclass(frozen=True, slots=True)
class Identity:
    """The holder of the key of a certificate.

    Attributes:
        fingerprint: SHA-256 of the certificate in DER form, 64 hexadecimal digits.
        attributes: the fields of the certificate that row conditions can use.
        certificate: the certificate in DER form, if the holder has called this relay or signed a token; otherwise None.
    """

    fingerprint: str
    attributes: Mapping[str, str]
    certificate: bytes | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Requester:
    """The party that requests rows, with everyone whose permissions limit what it sees.

    Attributes:
        holder: identity whose key tickets are bound to.
        seen_by: only cells that all of these may see are returned: the holder, and the identities it vouches for.
        query: id of the query that the request belongs to.
    """

    holder: Identity
    seen_by: tuple[Identity, ...]
    query: str


def identity_of(certificate: bytes) -> Identity:
    """Return the identity of a certificate that was verified in a TLS handshake, perhaps long ago.

    Args:
        certificate: the certificate in DER form.

    Raises:
        AuthenticationFailed: it has expired since then.
    """
    from cryptography import x509

    parsed = x509.load_der_x509_certificate(certificate)
    if parsed.not_valid_after_utc.timestamp() < time.time():
        raise AuthenticationFailed("The certificate of the caller has expired", hint="Connect with a new one.")
    return replace(_identity(parsed), certificate=certificate)


def _identity(certificate: x509.Certificate) -> Identity:
    facts = facts_of(certificate)
    return Identity(facts.fingerprint, certificate_attributes(facts.pem))


class Credentials:
    """A certificate and its key, with which a party authenticates itself and signs tokens."""

    def __init__(self, certificates: bytes, key: bytes) -> None:
        """
        Args:
            certificates: certificates in PEM form: the party's own first, then those up to the authority.
            key: the private key, in PEM form, without a password.

        Raises:
            InvalidCertificate: they cannot be read, or do not match.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

        try:
            self._chain = x509.load_pem_x509_certificates(certificates)
            self._key: Any = load_pem_private_key(key, password=None)
        except (ValueError, TypeError) as error:
            raise InvalidCertificate(
                "The certificate or its key cannot be read", hint="Both are PEM files; the key has no password."
            ) from error
        form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        if self._chain[0].public_key().public_bytes(*form) != self._key.public_key().public_bytes(*form):
            raise InvalidCertificate("The key is not that of the certificate", hint="Name matching files.")
        self.certificates = certificates
        self.key = key
        self.fingerprint = facts_of(self._chain[0]).fingerprint
        self._algorithm = _algorithm_of(self._chain[0])

    @classmethod
    def load(cls, certificate: Path, key: Path) -> Credentials:
        """Load credentials from two files.

        Args:
            certificate: PEM file of the certificate, and of those up to the authority.
            key: PEM file of its key.

        Raises:
            InvalidCertificate: they cannot be read, or do not match.
        """
        try:
            return cls(certificate.read_bytes(), key.read_bytes())
        except OSError as error:
            raise InvalidCertificate(f"Cannot read {error.filename}: {error.strerror}") from error

    def token(self, query: str, *, seconds: float, on_behalf_of: bytes | None = None, now: float | None = None) -> str:
        """Sign a token that identifies the requester of a query to relays.

        Args:
            query: id of the query.
            seconds: its lifetime.
            on_behalf_of: certificate in DER form of the party that is vouched for; None for oneself.
            now: seconds since the epoch; the clock's by default.
        """
        began = time.time() if now is None else now
        claims: dict[str, Any] = {"aud": AUDIENCE, "query": query, "iat": int(began)}
        claims["exp"] = int(began + max(1.0, seconds))
        if on_behalf_of is not None:
            claims["for"] = base64.b64encode(on_behalf_of).decode()
        return self.signed(claims)

    def signed(self, claims: Mapping[str, Any]) -> str:
        """Sign claims: returns a JSON Web Token that contains the certificates.

        Args:
            claims: claims with an audience, `aud`, and the time, `iat`.
        """
        from cryptography.hazmat.primitives.serialization import Encoding

        chain = [base64.b64encode(certificate.public_bytes(Encoding.DER)).decode() for certificate in self._chain]
        return jwt.encode(dict(claims), self._key, self._algorithm, headers={"x5c": chain})


class Authorities:
    """The authorities whose certificates are trusted; verifies certificates, tokens and signatures."""

    def __init__(self, certificates: bytes, *, is_revoked: Callable[[str], bool] = lambda _: False) -> None:
        """
        Args:
            certificates: certificates of the authorities, in PEM form.
            is_revoked: returns whether the certificate of a fingerprint is revoked.

        Raises:
            InvalidCertificate: there are none.
        """
        from cryptography import x509
        from cryptography.x509.verification import Store

        try:
            self._store = Store(x509.load_pem_x509_certificates(certificates))
        except ValueError as error:
            raise InvalidCertificate("No certificates of authorities", hint="Name a PEM file.") from error
        self.certificates = certificates
        self._is_revoked = is_revoked

    def requester(self, token: str, *, now: float | None = None) -> Requester:
        """Verify a token, and return its requester.

        Args:
            token: result of `Credentials.token`.
            now: seconds since the epoch; the clock's by default.

        Raises:
            AuthenticationFailed: it is not signed by a trusted certificate, or has expired.
        """
        at = time.time() if now is None else now
        if len(token) > MAX_TOKEN_LENGTH:
            raise AuthenticationFailed(_WRONG)
        holder, claims = self._claims(token, AUDIENCE, ("iat", "exp"), at)
        began, ends, query = claims["iat"], claims["exp"], claims.get("query")
        if not isinstance(query, str) or not (isinstance(began, int) and isinstance(ends, int)):
            raise AuthenticationFailed(_WRONG)
        if not began - LEEWAY <= at < ends + LEEWAY or ends - began > MAX_LIFE:
            raise AuthenticationFailed(
                "The token of the requester has expired, or is not yet valid",
                hint="Check the clocks of both machines.",
            )
        return Requester(holder, (holder, *self._vouched_for(claims, at)), query)

    def signed(self, text: str, audience: str) -> tuple[Identity, Mapping[str, Any]]:
        """Verify signed claims, and return the signer, the signer's certificate and the claims.

        The certificate must have been valid when they were signed: signatures outlive the certificate.

        Args:
            text: result of `Credentials.signed`; the caller must limit the length of untrusted texts.
            audience: required audience of the claims.

        Raises:
            AuthenticationFailed: the signer is not trusted, or the audience is another one.
        """
        try:
            at = jwt.decode(text, options={"verify_signature": False}).get("iat")
        except jwt.PyJWTError as error:
            raise AuthenticationFailed(_WRONG) from error
        if not isinstance(at, int) or not 0 < at < time.time() + LEEWAY:
            raise AuthenticationFailed(_WRONG)
        signer, claims = self._claims(text, audience, ("iat",), at)
        return replace(signer, certificate=_der(_chain_in(text)[0])), claims

    def _claims(
        self, text: str, audience: str, required: Sequence[str], at: float
    ) -> tuple[Identity, Mapping[str, Any]]:
        chain = _chain_in(text)
        self.check(chain, at)
        options: Any = {**_OPTIONS, "require": ["aud", *required]}
        try:
            claims = jwt.decode(
                text,
                chain[0].public_key(),  # type: ignore[arg-type]
                algorithms=[_algorithm_of(chain[0])],
                audience=audience,
                options=options,
            )
        except (jwt.PyJWTError, InvalidCertificate) as error:
            raise AuthenticationFailed(_WRONG) from error
        return _identity(chain[0]), claims

    def _vouched_for(self, claims: Mapping[str, Any], at: float) -> list[Identity]:
        if "for" not in claims:
            return []
        certificate = _certificates([claims["for"]])[0]
        self.check([certificate], at)
        return [_identity(certificate)]

    def check(self, chain: Sequence[x509.Certificate], at: float) -> None:
        """Check that a certificate was issued by a trusted authority, is valid at a time, and not revoked.

        Args:
            chain: the certificate, then those of intermediate authorities, which need not be trusted by themselves.
            at: seconds since the epoch.

        Raises:
            AuthenticationFailed: it is not.
        """
        from cryptography.x509.verification import ExtensionPolicy, PolicyBuilder, VerificationError

        leaf, *between = chain
        verifier = (
            PolicyBuilder()
            .store(self._store)
            .time(datetime.fromtimestamp(at, tz=timezone.utc))
            .extension_policies(ca_policy=ExtensionPolicy.webpki_defaults_ca(), ee_policy=ExtensionPolicy.permit_all())
            .build_client_verifier()
        )
        try:
            verifier.verify(leaf, list(between))
        except (VerificationError, ValueError) as error:
            raise AuthenticationFailed(
                "The certificate of the caller is not of a trusted authority, or has expired"
            ) from error
        if any(self._is_revoked(facts_of(certificate).fingerprint) for certificate in chain):
            raise AuthenticationFailed("The certificate of the caller was revoked", hint="Ask for a new one.")


def _chain_in(token: str) -> list[x509.Certificate]:
    """Return the certificates that a token contains, which are not verified yet."""
    try:
        texts = jwt.get_unverified_header(token).get("x5c")
    except jwt.PyJWTError as error:
        raise AuthenticationFailed(_WRONG) from error
    if not isinstance(texts, list) or not 1 <= len(texts) <= _MAX_CHAIN:
        raise AuthenticationFailed(_WRONG)
    return _certificates(texts)


def _certificates(texts: Sequence[Any]) -> list[x509.Certificate]:
    from cryptography import x509

    try:
        return [x509.load_der_x509_certificate(base64.b64decode(text, validate=True)) for text in texts]
    except (TypeError, ValueError) as error:
        raise AuthenticationFailed(_WRONG) from error


def _der(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)


def _algorithm_of(certificate: x509.Certificate) -> str:
    """Return the one algorithm that a key signs with; a token must not choose another."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    key = certificate.public_key()
    if isinstance(key, ed25519.Ed25519PublicKey):
        return "EdDSA"
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in ("secp256r1", "secp384r1"):
        return "ES256" if key.curve.name == "secp256r1" else "ES384"
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= 2048:
        return "RS256"
    raise InvalidCertificate(
        "The key type of the certificate is not supported",
        hint="Ed25519, P-256, P-384, or RSA of 2048 bits or more.",
    )
