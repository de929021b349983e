"""Authentication methods of a client. They are plug-ins: a class, named by a keyword or as `module:Class`."""

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
"""Credentials of the user of a query, passed with the query: `user` and `password`, or `token`."""


class Authenticator(ABC):
    """An authentication method. Equal instances share the tokens that servers have issued.

    Subclasses are frozen dataclasses that can be pickled. `headers` is called once for a connection, and again when a
    server rejects the previous headers.
    """

    NAME: ClassVar[str]

    @classmethod
    @abstractmethod
    def from_options(cls, options: Mapping[str, str], tls: Tls) -> Authenticator:
        """Create an instance from Spark's options.

        Args:
            options: options with names in lower case.
            tls: certificates, from the same options.

        Raises:
            UsageError: an option is missing.
        """

    @abstractmethod
    def headers(self, client: Any, credentials: Credentials, timeout: float | None) -> Headers:
        """Return the headers for calls.

        Args:
            client: pyarrow's client of the location.
            credentials: credentials of the query; empty if there are none.
            timeout: time limit of a call, in seconds.

        Raises:
            FlightRefused: credentials are missing, or the server rejects them.
        """


@dataclass(frozen=True)
class NoAuthentication(Authenticator):
    """Send no credentials, except those of the query, if any."""

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
    """Exchange user and password for a token, by the basic handshake; credentials of the query take precedence.

    Attributes:
        user: user name.
        password: password of the user.
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
    """Send a bearer token; that of the query takes precedence.

    Attributes:
        token: the token, without the word "Bearer".
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
    """Authenticate by the client certificate of the connection; credentials of the query are sent, too."""

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
    """Send the credentials of the query's user, and nothing without them."""

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
                "The query has no credentials, and per-user authentication requires them",
                hint="Give `user` and `password`, or `token`, with the query (options flight.credential.*).",
            )
        return _of_credentials(client, credentials, timeout)


AUTHENTICATORS: Final[dict[str, type[Authenticator]]] = {
    one.NAME: one for one in (NoAuthentication, SimpleUserPass, Bearer, ClientCertificate, PerUser)
}
"""Authenticators by name."""


def authenticator_of(options: Mapping[str, str], tls: Tls) -> Authenticator:
    """Return the authenticator that options select.

    Args:
        options: Spark's options, with names in lower case.
        tls: certificates, from the same options.

    Raises:
        UsageError: the authenticator does not exist, or lacks an option.
    """
    name = options.get(AUTHENTICATOR, NoAuthentication.NAME)
    kind = AUTHENTICATORS.get(name) or plug_in(name, Authenticator)
    if kind is None:
        hint = did_you_mean(name, AUTHENTICATORS, otherwise=f"One of {', '.join(AUTHENTICATORS)}, or module:Class.")
        raise UsageError(f"There is no authenticator {name!r}", hint=hint)
    return kind.from_options(options, tls)


def plug_in(name: str, kind: type[Any]) -> Any:
    """Return the class named by `module:Class`, None for names of another form.

    Args:
        name: name of the class.
        kind: required base class.

    Raises:
        UsageError: there is no such class.
    """
    module, colon, class_name = name.partition(":")
    if not colon:
        return None
    try:
        found = getattr(import_module(module), class_name)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"Cannot load {name}: {error}", hint="Check that it is installed on the workers, too."
        ) from error
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
