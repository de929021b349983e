"""Ways of a client to say who it is. They are plug-ins: a class, named by a word or by `module:Class`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, ClassVar, Final

import pyarrow.flight as fl

from odfpy.errors import UsageError, did_you_mean
from odfpy.flight.errors import FlightRefused
from odfpy.flight.pool import Headers
from odfpy.flight.tls import Tls

AUTHENTICATOR: Final = "arrow-flight.authenticator.name"
_USER, _PASSWORD, _TOKEN = "flight.auth.user", "flight.auth.password", "flight.auth.token"

Credentials = Mapping[str, str]
"""Credentials of the user who asks, which come with the query: `user` and `password`, or `token`."""


class Authenticator(ABC):
    """A way to say who asks. Values of a class that are equal share what servers have given them.

    A subclass is a frozen dataclass that can be pickled. `headers` is called once for a connection, and again when a
    server no longer takes what it has given.
    """

    NAME: ClassVar[str]

    @classmethod
    @abstractmethod
    def from_options(cls, options: Mapping[str, str], tls: Tls) -> Authenticator:
        """Make one from options of Spark.

        Args:
            options: names in small letters.
            tls: certificates, from the same options.

        Raises:
            UsageError: an option is missing.
        """

    @abstractmethod
    def headers(self, client: Any, credentials: Credentials, timeout: float | None) -> Headers:
        """Return the headers that calls have.

        Args:
            client: pyarrow's client of the location.
            credentials: of the query; empty where none are given.
            timeout: seconds that a call may take.

        Raises:
            FlightRefused: there are no credentials, or the server does not take them.
        """


@dataclass(frozen=True)
class NoAuthentication(Authenticator):
    """Say nothing; with credentials that come with the query, say those."""

    NAME = "none"

    @classmethod
    def from_options(cls, options: Mapping[str, str], tls: Tls) -> Authenticator:
        """Implement `Authenticator`."""
        del options, tls
        return cls()

    def headers(self, client: Any, credentials: Credentials, timeout: float | None) -> Headers:
        """Implement `Authenticator`."""
        return _of_credentials(client, credentials, timeout) if credentials else ()


@dataclass(frozen=True)
class SimpleUserPass(Authenticator):
    """Exchange user and password for a token, by the basic handshake; those of the query come first.

    Attributes:
        user: name.
        password: of the user.
    """

    NAME = "simple-user-pass"
    user: str
    password: str = field(repr=False)

    @classmethod
    def from_options(cls, options: Mapping[str, str], tls: Tls) -> Authenticator:
        """Implement `Authenticator`."""
        del tls
        return cls(_needed(options, _USER, cls.NAME), _needed(options, _PASSWORD, cls.NAME))

    def headers(self, client: Any, credentials: Credentials, timeout: float | None) -> Headers:
        """Implement `Authenticator`."""
        return _of_credentials(client, credentials or {"user": self.user, "password": self.password}, timeout)


@dataclass(frozen=True)
class Bearer(Authenticator):
    """Show a token; that of the query comes first.

    Attributes:
        token: without the word "Bearer".
    """

    NAME = "bearer"
    token: str = field(repr=False)

    @classmethod
    def from_options(cls, options: Mapping[str, str], tls: Tls) -> Authenticator:
        """Implement `Authenticator`."""
        del tls
        return cls(_needed(options, _TOKEN, cls.NAME))

    def headers(self, client: Any, credentials: Credentials, timeout: float | None) -> Headers:
        """Implement `Authenticator`."""
        return _of_credentials(client, credentials or {"token": self.token}, timeout)


@dataclass(frozen=True)
class ClientCertificate(Authenticator):
    """Be known by the certificate of the connection; credentials of the query are said as well."""

    NAME = "mtls"

    @classmethod
    def from_options(cls, options: Mapping[str, str], tls: Tls) -> Authenticator:
        """Implement `Authenticator`."""
        del options
        if tls.certificate is None:
            raise UsageError(
                "The authenticator mtls needs a certificate of the client",
                hint="Set arrow-flight.client-ssl-certificate and arrow-flight.client-ssl-key.",
            )
        return cls()

    def headers(self, client: Any, credentials: Credentials, timeout: float | None) -> Headers:
        """Implement `Authenticator`."""
        return _of_credentials(client, credentials, timeout) if credentials else ()


@dataclass(frozen=True)
class PerUser(Authenticator):
    """Say who has asked the query, and nothing for those who do not tell."""

    NAME = "per-user"

    @classmethod
    def from_options(cls, options: Mapping[str, str], tls: Tls) -> Authenticator:
        """Implement `Authenticator`."""
        del options, tls
        return cls()

    def headers(self, client: Any, credentials: Credentials, timeout: float | None) -> Headers:
        """Implement `Authenticator`."""
        if not credentials:
            raise FlightRefused(
                "The query comes without credentials, and others than its user's are not used",
                hint="Give `user` and `password`, or `token`, with the query (options flight.credential.*).",
            )
        return _of_credentials(client, credentials, timeout)


AUTHENTICATORS: Final[dict[str, type[Authenticator]]] = {
    one.NAME: one for one in (NoAuthentication, SimpleUserPass, Bearer, ClientCertificate, PerUser)
}
"""Authenticators by their names."""


def authenticator_of(options: Mapping[str, str], tls: Tls) -> Authenticator:
    """The authenticator that options name.

    Args:
        options: of Spark, names in small letters.
        tls: certificates, from the same options.

    Raises:
        UsageError: there is none of that name, or it misses an option.
    """
    name = options.get(AUTHENTICATOR, NoAuthentication.NAME)
    kind = AUTHENTICATORS.get(name) or plug_in(name, Authenticator)
    if kind is None:
        hint = did_you_mean(name, AUTHENTICATORS, otherwise=f"One of {', '.join(AUTHENTICATORS)}, or module:Class.")
        raise UsageError(f"There is no authenticator {name!r}", hint=hint)
    return kind.from_options(options, tls)


def plug_in(name: str, kind: type[Any]) -> Any:
    """The class that `module:Class` names, or None for a name of another form.

    Args:
        name: name of the class.
        kind: what it is a subclass of.

    Raises:
        UsageError: there is no such class.
    """
    module, colon, class_name = name.partition(":")
    if not colon:
        return None
    try:
        found = getattr(import_module(module), class_name)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"Cannot load {name}: {error}", hint="Is it installed on the workers, too?") from error
    if not (isinstance(found, type) and issubclass(found, kind)):
        base = kind.__name__
        raise UsageError(f"{name} is not a subclass of {base}", hint=f"Derive it from odfpy.flight.{base}.")
    return found


def _needed(options: Mapping[str, str], name: str, authenticator: str) -> str:
    if name not in options:
        raise UsageError(f"The authenticator {authenticator} needs the option {name}", hint=f'.option("{name}", ...)')
    return options[name]


def _of_credentials(client: Any, credentials: Credentials, timeout: float | None) -> Headers:
    if "token" in credentials:
        return ((b"authorization", b"Bearer " + credentials["token"].encode()),)
    if not {"user", "password"} <= credentials.keys():
        raise FlightRefused(
            f"Credentials have neither a token nor user and password, but {', '.join(sorted(credentials))}",
            hint="Give `user` and `password`, or `token`.",
        )
    options = fl.FlightCallOptions(timeout=timeout)
    name, value = client.authenticate_basic_token(credentials["user"], credentials["password"], options)
    return ((name, value),) if name else ()
