"""Who asks: nobody, a user with a password, a token, a certificate, or whoever comes with the query."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow.flight as fl
import pytest
from flight.conftest import numbers
from support.servers.certificates import self_signed
from support.servers.plain_flight import Flight, PlainServer, plain_flight

from odfpy.errors import UsageError
from odfpy.flight import (
    Authenticator,
    Bearer,
    ClientCertificate,
    ClientPool,
    FlightService,
    JsonCommands,
    NoAuthentication,
    PerUser,
    Request,
    SimpleUserPass,
    Tls,
)
from odfpy.flight.authenticators import authenticator_of
from odfpy.flight.errors import FlightFailed, FlightRefused, NoLocationLeft

NUMBERS = Request("numbers")


class Handshake(fl.ServerAuthHandler):
    """The basic handshake is answered by the middleware; this lets it pass."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        return None

    def is_valid(self, token: bytes) -> bytes:
        return b""


@dataclass
class Guard(fl.ServerMiddlewareFactory):
    """Knows Ann, and gives her a token for her password, until the token is taken back.

    Attributes:
        tokens: that are valid.
        users: those who have asked for rows.
        handshakes: how many there have been.
    """

    tokens: dict[str, str] = field(default_factory=lambda: {"given": "token"})
    users: list[str] = field(default_factory=list)
    handshakes: int = 0

    def start_call(self, info: Any, headers: dict[str, list[str]]) -> Any:
        scheme, _, value = next(iter(headers.get("authorization", [""]))).partition(" ")
        if scheme == "Basic":
            user, _, password = base64.b64decode(value).decode().partition(":")
            if password != f"of {user}":
                raise fl.FlightUnauthenticatedError("wrong password")
            self.handshakes += 1
            self.tokens[f"{user}-{self.handshakes}"] = user
            return Greeting(f"{user}-{self.handshakes}")
        if value not in self.tokens:
            raise fl.FlightUnauthenticatedError("who are you?")
        if info.method == fl.FlightMethod.DO_GET:
            self.users.append(self.tokens[value])
        return None


@dataclass
class Greeting(fl.ServerMiddleware):
    token: str

    def sending_headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}


@pytest.fixture
def guard() -> Guard:
    return Guard()


@pytest.fixture
def guarded(guard: Guard) -> Iterator[PlainServer]:
    with plain_flight(auth_handler=Handshake(), middleware={"guard": guard}) as server:
        server.flights["numbers"] = Flight([numbers(0, 10)])
        yield server


@pytest.fixture
def service(guarded: PlainServer, pool: ClientPool) -> FlightService:
    return FlightService(guarded.url, JsonCommands(), pool=pool)


def rows(service: FlightService, **credentials: str) -> int:
    return replace(service, credentials=credentials).read(NUMBERS).num_rows


def test_nobody_is_let_in(service: FlightService):
    with pytest.raises(FlightRefused, match=r"does not allow that: who are you\?$") as caught:
        rows(service)
    assert "arrow-flight.authenticator.name" in caught.value.hint


def test_user_and_password_are_exchanged_for_a_token_once(service: FlightService, guard: Guard):
    ann = replace(service, authenticator=SimpleUserPass("ann", "of ann"))
    assert [rows(ann), rows(ann)] == [10, 10]
    assert (guard.users, guard.handshakes) == (["ann", "ann"], 1)
    with pytest.raises(FlightRefused, match="wrong password"):
        rows(replace(service, authenticator=SimpleUserPass("ann", "of bob")))


def test_a_token_that_has_run_out_is_asked_for_again(service: FlightService, guard: Guard):
    ann = replace(service, authenticator=SimpleUserPass("ann", "of ann"))
    plan = ann.plan(NUMBERS)
    guard.tokens.clear()
    assert sum(batch.num_rows for batch in ann.batches(plan, plan.endpoints[0])) == 10
    guard.tokens.clear()
    assert rows(ann) == 10
    assert guard.handshakes == 3


def test_a_token(service: FlightService):
    assert rows(replace(service, authenticator=Bearer("given"))) == 10
    with pytest.raises(FlightRefused):
        rows(replace(service, authenticator=Bearer("stolen")))


@pytest.mark.parametrize(
    "authenticator", [NoAuthentication(), SimpleUserPass("ann", "of ann"), Bearer("given"), PerUser()]
)
def test_credentials_of_the_query_come_first(service: FlightService, guard: Guard, authenticator: Authenticator):
    shared = replace(service, authenticator=authenticator)
    assert rows(shared, user="bob", password="of bob") == 10
    assert rows(shared, token="given") == 10
    assert guard.users == ["bob", "token"]


def test_users_do_not_get_the_tokens_of_others(service: FlightService, guard: Guard):
    shared = replace(service, authenticator=PerUser())
    for user in ("ann", "bob", "ann"):
        assert rows(shared, user=user, password=f"of {user}") == 10
    assert (guard.users, guard.handshakes) == (["ann", "bob", "ann"], 2)
    with pytest.raises(FlightRefused, match="has no credentials"):
        rows(shared)
    with pytest.raises(FlightRefused, match="neither a token nor user and password, but user"):
        rows(shared, user="ann")


def test_passwords_and_tokens_are_not_shown():
    shown = repr(
        FlightService("grpc://h:1", authenticator=SimpleUserPass("ann", "secret"), credentials={"token": "secret"})
    )
    assert "secret" not in shown + repr(Bearer("secret")) + repr(Tls(certificate=b"c", key=b"secret"))


# --- Certificates -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return self_signed(tmp_path_factory.mktemp("certificates"))


def encrypted(certificate: tuple[Path, Path], **options: Any) -> Any:
    pair = tuple(file.read_bytes() for file in certificate)
    return plain_flight(tls_certificates=[pair], **options)


def test_the_certificate_of_the_server_is_checked(certificate: tuple[Path, Path], pool: ClientPool):
    with encrypted(certificate) as server:
        server.flights["numbers"] = Flight([numbers(0, 10)])
        service = FlightService(server.url, JsonCommands(), pool=pool)
        assert rows(replace(service, tls=Tls.from_files(roots=certificate[0]))) == 10
        assert rows(replace(service, tls=Tls(verify=False))) == 10
        with pytest.raises(FlightFailed):
            rows(service)


def test_a_client_is_known_by_its_certificate(certificate: tuple[Path, Path], pool: ClientPool):
    roots = certificate[0].read_bytes()
    with encrypted(certificate, verify_client=True, root_certificates=roots) as server:
        server.flights["numbers"] = Flight([numbers(0, 10)])
        service = FlightService(server.url, JsonCommands(), ClientCertificate(), pool=pool)
        known = Tls.from_files(roots=certificate[0], certificate=certificate[0], key=certificate[1])
        assert rows(replace(service, tls=known)) == 10
        with pytest.raises(FlightFailed):
            rows(replace(service, tls=Tls(roots=roots)))


def test_who_is_asked_in_secret_is_not_asked_elsewhere_openly(
    certificate: tuple[Path, Path], server: PlainServer, pool: ClientPool
):
    with encrypted(certificate) as secret:
        secret.flights["numbers"] = Flight([numbers(0, 10)], locations=[server.url])
        service = FlightService(
            secret.url, JsonCommands(), Bearer("t"), Tls.from_files(roots=certificate[0]), pool=pool
        )
        with pytest.raises(NoLocationLeft, match="it is not encrypted"):
            rows(service)
        assert server.headers == []


def test_certificates_that_cannot_be_used(tmp_path: Path):
    with pytest.raises(UsageError, match="Cannot read the certificate or key"):
        Tls.from_files(roots=tmp_path / "none.pem")
    with pytest.raises(UsageError, match="needs its key"):
        Tls(certificate=b"c")


# --- By name ----------------------------------------------------------------------------------------------------------


class Mine(NoAuthentication):
    """An authenticator of somebody else."""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, NoAuthentication()),
        ({"name": "none"}, NoAuthentication()),
        ({"name": "simple-user-pass", "user": "ann", "password": "p"}, SimpleUserPass("ann", "p")),
        ({"name": "bearer", "token": "t"}, Bearer("t")),
        ({"name": "per-user"}, PerUser()),
        ({"name": f"{__name__}:Mine"}, Mine()),
    ],
)
def test_authenticators_by_name(options: dict[str, str], expected: Authenticator):
    assert named(options) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "barer"}, "There is no authenticator 'barer'"),
        ({"name": "bearer"}, "The authenticator bearer needs the option flight.auth.token"),
        ({"name": "simple-user-pass", "user": "ann"}, "needs the option flight.auth.password"),
        ({"name": "mtls"}, "The authenticator mtls needs a certificate"),
        ({"name": "no_such_module:Mine"}, "Cannot load no_such_module:Mine"),
        ({"name": "pathlib:Path"}, "pathlib:Path is not a subclass of Authenticator"),
    ],
)
def test_authenticators_that_there_are_not(options: dict[str, str], message: str):
    with pytest.raises(UsageError, match=message):
        named(options)


def named(options: dict[str, str]) -> Authenticator:
    names = {name: f"flight.auth.{name}" for name in ("user", "password", "token")}
    names["name"] = "arrow-flight.authenticator.name"
    return authenticator_of({names[name]: value for name, value in options.items()}, Tls())
