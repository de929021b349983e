"""Identities: whoever holds the key of a certificate that a relay trusts.

Whoever calls a relay shows their certificate in the TLS handshake. To relays further on, a requester is known by a
token of their own signing: a JSON Web Token with the certificate in it (RFC 7515, `x5c`). Who cannot sign one is
vouched for by the relay that they have asked; then only what both may see is shown.

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
"""Seconds for which a token may be good."""

_MAX_CHAIN: Final = 5
# Times are compared below, with a clock that tests can set.
_OPTIONS: Final = {
    "verify_exp": False,
    "verify_iat": False,
    "verify_nbf": False,
}
_WRONG: Final = "The signature of the caller cannot be believed"


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody who holds the key of a certificate.

    Attributes:
        fingerprint: SHA-256 of the certificate in DER form, 64 hexadecimal digits.
        attributes: the fields of the certificate that row conditions may name.
        certificate: itself, in DER form, of somebody who has called this relay or has signed; None of others.
    """

    fingerprint: str
    attributes: Mapping[str, str]
    certificate: bytes | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Requester:
    """Whoever wants to see rows.

    Attributes:
        holder: whose key tickets are bound to.
        seen_by: rows and columns show that all of these may see: the holder, and who the holder vouches for.
        query: id of the query that this is about.
    """

    holder: Identity
    seen_by: tuple[Identity, ...]
    query: str


def identity_of(certificate: bytes) -> Identity:
    """Return who holds the key of a certificate that was checked in a TLS handshake, perhaps long ago.

    Args:
        certificate: in DER form.

    Raises:
        AuthenticationFailed: it has ended since then.
    """
    from cryptography import x509

    found = x509.load_der_x509_certificate(certificate)
    if found.not_valid_after_utc.timestamp() < time.time():
        raise AuthenticationFailed("The certificate of the caller has ended", hint="Connect with a new one.")
    return replace(_identity(found), certificate=certificate)


def _identity(certificate: x509.Certificate) -> Identity:
    facts = facts_of(certificate)
    return Identity(facts.fingerprint, certificate_attributes(facts.pem))


class Credentials:
    """A certificate and its key, with which somebody shows who they are."""

    def __init__(self, certificates: bytes, key: bytes) -> None:
        """
        Args:
            certificates: in PEM form, one's own first, then those up to the authority.
            key: the private key, in PEM form, without a password.

        Raises:
            InvalidCertificate: they cannot be read, or do not go together.
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
            raise InvalidCertificate(
                "The key is not that of the certificate", hint="Name the files that belong together."
            )
        self.certificates = certificates
        self.key = key
        self.fingerprint = facts_of(self._chain[0]).fingerprint
        self._algorithm = _algorithm_of(self._chain[0])

    @classmethod
    def load(cls, certificate: Path, key: Path) -> Credentials:
        """The credentials in two files.

        Args:
            certificate: PEM file of the certificate, and of those up to the authority.
            key: PEM file of its key.

        Raises:
            InvalidCertificate: they cannot be read, or do not go together.
        """
        try:
            return cls(certificate.read_bytes(), key.read_bytes())
        except OSError as error:
            raise InvalidCertificate(f"Cannot read {error.filename}: {error.strerror}") from error

    def token(self, query: str, *, seconds: float, on_behalf_of: bytes | None = None, now: float | None = None) -> str:
        """Sign a token, by which relays know the requester of a query.

        Args:
            query: its id.
            seconds: for how long it is good.
            on_behalf_of: certificate in DER form of somebody who is vouched for; None for oneself.
            now: seconds since 1970; the clock's by default.
        """
        began = time.time() if now is None else now
        claims: dict[str, Any] = {"aud": AUDIENCE, "query": query, "iat": int(began)}
        claims["exp"] = int(began + max(1.0, seconds))
        if on_behalf_of is not None:
            claims["for"] = base64.b64encode(on_behalf_of).decode()
        return self.signed(claims)

    def signed(self, claims: Mapping[str, Any]) -> str:
        """Sign claims: a JSON Web Token with the certificates in it.

        Args:
            claims: with an audience, `aud`, and the time, `iat`.
        """
        from cryptography.hazmat.primitives.serialization import Encoding

        chain = [base64.b64encode(one.public_bytes(Encoding.DER)).decode() for one in self._chain]
        return jwt.encode(dict(claims), self._key, self._algorithm, headers={"x5c": chain})


class Authorities:
    """The authorities whose certificates are trusted."""

    def __init__(self, certificates: bytes, *, is_revoked: Callable[[str], bool] = lambda _: False) -> None:
        """
        Args:
            certificates: of the authorities, in PEM form.
            is_revoked: says of a fingerprint whether it was taken back.

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
        """Return the requester that a token tells of.

        Args:
            token: what `Credentials.token` has made.
            now: seconds since 1970; the clock's by default.

        Raises:
            AuthenticationFailed: it is of nobody who is trusted, or has ended.
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
                "The token of the requester has ended, or its time has not come",
                hint="Is a clock wrong, here or there?",
            )
        return Requester(holder, (holder, *self._vouched_for(claims, at)), query)

    def signed(self, text: str, audience: str) -> tuple[Identity, Mapping[str, Any]]:
        """Return who has signed claims, with their certificate, and the claims.

        The certificate must have been good when they were signed: what has been signed does not end with it.

        Args:
            text: what `Credentials.signed` has made; whoever takes it from others sees to its length.
            audience: that the claims are for.

        Raises:
            AuthenticationFailed: they are of nobody who is trusted, or for others.
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
        """Check that a certificate is of an authority, good at a time, and not revoked.

        Args:
            chain: the certificate, then those of authorities in between, which nobody needs to trust.
            at: seconds since 1970.

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
                "The certificate of the caller is of no authority that is trusted here, or has ended"
            ) from error
        if any(self._is_revoked(facts_of(one).fingerprint) for one in chain):
            raise AuthenticationFailed("The certificate of the caller was revoked", hint="Ask for a new one.")


def _chain_in(token: str) -> list[x509.Certificate]:
    """The certificates that a token shows, which nobody has looked at yet."""
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
        return [x509.load_der_x509_certificate(base64.b64decode(one, validate=True)) for one in texts]
    except (TypeError, ValueError) as error:
        raise AuthenticationFailed(_WRONG) from error


def _der(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)


def _algorithm_of(certificate: x509.Certificate) -> str:
    """The one algorithm that a key signs with; a token must not choose another."""
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

    key = certificate.public_key()
    if isinstance(key, ed25519.Ed25519PublicKey):
        return "EdDSA"
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in ("secp256r1", "secp384r1"):
        return "ES256" if key.curve.name == "secp256r1" else "ES384"
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= 2048:
        return "RS256"
    raise InvalidCertificate(
        "The kind of the certificate's key is not known here",
        hint="Ed25519, P-256, P-384, or RSA of 2048 bits or more.",
    )
