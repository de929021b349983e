"""Tokens of requesters: signed with the key of a certificate, checked by relays that have never seen it."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from odfpy.federation.errors import AuthenticationFailed, InvalidCertificate
from odfpy.federation.relay.requesters import AUDIENCE, MAX_LIFE, Authorities, Credentials, identity_of

NOW = 1_800_000_000.0
KEYS = {
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
    "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
}


@dataclass
class Authority:
    """An authority of a test.

    Attributes:
        certificate: its own.
        key: its key.
    """

    certificate: x509.Certificate
    key: Any

    @classmethod
    def new(cls, name: str = "web") -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        built = _builder(subject, subject, key.public_key()).add_extension(constraints, critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        built = built.add_extension(usage, critical=True).add_extension(identifier, critical=False)
        return cls(built.sign(key, hashes.SHA256()), key)

    def credentials(self, name: str, key: Any = None, *, days: int = 10) -> Credentials:
        """Somebody whose certificate is of this authority."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [x509.NameAttribute(NameOID.COMMON_NAME, name), x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Acme")]
        )
        built = _builder(subject, self.certificate.subject, key.public_key(), days)
        issued = built.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
        ).sign(self.key, hashes.SHA256())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return Credentials(issued.public_bytes(Encoding.PEM), pem)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)


def _builder(subject: x509.Name, issuer: x509.Name, key: Any, days: int = 1000) -> x509.CertificateBuilder:
    began = datetime.fromtimestamp(NOW, tz=timezone.utc) - timedelta(days=1)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(began + timedelta(days=days))
    )


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.new()


@pytest.fixture(scope="module")
def user(authority: Authority) -> Credentials:
    return authority.credentials("ann")


def token(credentials: Credentials, query: str = "q1", seconds: float = 60, **more: Any) -> str:
    return credentials.token(query, seconds=seconds, now=NOW, **more)


@pytest.mark.parametrize("kind", KEYS)
def test_a_token_tells_who_has_signed_it(authority: Authority, kind: str) -> None:
    credentials = authority.credentials("ann", KEYS[kind]())
    found = Authorities(authority.pem).requester(token(credentials), now=NOW)
    assert (found.query, len(found.seen_by)) == ("q1", 1)
    assert found.holder.fingerprint == credentials.fingerprint
    assert (found.holder.attributes["subject.CN"], found.holder.attributes["subject.O"]) == ("ann", "Acme")


def test_a_relay_vouches_for_somebody(authority: Authority, user: Credentials) -> None:
    relay = authority.credentials("na")
    der = x509.load_pem_x509_certificate(user.certificates).public_bytes(Encoding.DER)
    found = Authorities(authority.pem).requester(token(relay, on_behalf_of=der), now=NOW)
    assert found.holder.fingerprint == relay.fingerprint
    assert [one.attributes["subject.CN"] for one in found.seen_by] == ["na", "ann"]
    assert found.seen_by[1] == identity_of(der)


def test_who_is_of_another_authority_is_not_believed_nor_vouched_for(authority: Authority) -> None:
    stranger = Authority.new().credentials("ann")
    with pytest.raises(AuthenticationFailed, match="not of a trusted authority"):
        Authorities(authority.pem).requester(token(stranger), now=NOW)
    der = x509.load_pem_x509_certificate(stranger.certificates).public_bytes(Encoding.DER)
    with pytest.raises(AuthenticationFailed, match="not of a trusted authority"):
        Authorities(authority.pem).requester(token(authority.credentials("na"), on_behalf_of=der), now=NOW)


def test_revoked_and_ended_certificates(authority: Authority, user: Credentials) -> None:
    with pytest.raises(AuthenticationFailed, match="revoked"):
        Authorities(authority.pem, is_revoked=lambda one: one == user.fingerprint).requester(token(user), now=NOW)
    short = authority.credentials("ann", days=2)
    made = short.token("q1", seconds=60, now=NOW + 3 * 86_400)
    with pytest.raises(AuthenticationFailed, match="expired"):
        Authorities(authority.pem).requester(made, now=NOW + 3 * 86_400)


@pytest.mark.parametrize(("later", "is_good"), [(-20, True), (0, True), (85, True), (95, False), (-40, False)])
def test_a_token_is_good_for_a_time(authority: Authority, user: Credentials, later: float, is_good: bool) -> None:
    authorities = Authorities(authority.pem)
    if is_good:
        assert authorities.requester(token(user), now=NOW + later)
    else:
        with pytest.raises(AuthenticationFailed):
            authorities.requester(token(user), now=NOW + later)


def test_no_token_is_good_for_days(authority: Authority, user: Credentials) -> None:
    with pytest.raises(AuthenticationFailed):
        Authorities(authority.pem).requester(token(user, seconds=MAX_LIFE + 10), now=NOW)


def forged(user: Credentials, other: Credentials) -> dict[str, str]:
    """Tokens that somebody else has made."""
    chain = [base64.b64encode(_der(user)).decode()]
    claims = {"aud": AUDIENCE, "query": "q1", "iat": int(NOW), "exp": int(NOW) + 60}
    parts = token(user).split(".")
    changed = json.dumps({**claims, "query": "q2"}).encode()
    return {
        "signed with another key": jwt.encode(claims, other.key, "ES256", headers={"x5c": chain}),
        "not signed": jwt.encode(claims, None, "none", headers={"x5c": chain}),
        "signed with the public key as a secret": _hmac(claims, user, chain),
        "for others": jwt.encode({**claims, "aud": "somebody"}, user.key, "ES256", headers={"x5c": chain}),
        "without an end": jwt.encode({"aud": AUDIENCE, "query": "q1"}, user.key, "ES256", headers={"x5c": chain}),
        "without a query": jwt.encode({**claims, "query": 5}, user.key, "ES256", headers={"x5c": chain}),
        "changed": f"{parts[0]}.{base64.urlsafe_b64encode(changed).decode().rstrip('=')}.{parts[2]}",
        "without a certificate": jwt.encode(claims, user.key, "ES256"),
        "with a certificate that is none": jwt.encode(claims, user.key, "ES256", headers={"x5c": ["AAAA"]}),
        "with many certificates": jwt.encode(claims, user.key, "ES256", headers={"x5c": chain * 6}),
        "no token": "a.b.c",
        "empty": "",
        "long": "a" * 100_000,
    }


def _der(credentials: Credentials) -> bytes:
    return x509.load_pem_x509_certificate(credentials.certificates).public_bytes(Encoding.DER)


def _hmac(claims: dict[str, Any], user: Credentials, chain: list[str]) -> str:
    header = {"alg": "HS256", "typ": "JWT", "x5c": chain}
    pieces = [json.dumps(one).encode() for one in (header, claims)]
    text = ".".join(base64.urlsafe_b64encode(one).decode().rstrip("=") for one in pieces)
    mac = hashes.Hash(hashes.SHA256())
    mac.update(_der(user) + text.encode())
    return f"{text}.{base64.urlsafe_b64encode(mac.finalize()).decode().rstrip('=')}"


def test_what_others_have_made_is_not_believed(authority: Authority, user: Credentials) -> None:
    authorities = Authorities(authority.pem)
    for text in forged(user, authority.credentials("ann")).values():
        with pytest.raises(AuthenticationFailed):
            authorities.requester(text, now=NOW)


def test_credentials_that_are_none(user: Credentials, authority: Authority) -> None:
    with pytest.raises(InvalidCertificate, match="not that of the certificate"):
        Credentials(user.certificates, authority.credentials("bob").key)
    with pytest.raises(InvalidCertificate, match="cannot be read"):
        Credentials(b"nothing", user.key)
    with pytest.raises(InvalidCertificate, match="authorities"):
        Authorities(b"nothing")
