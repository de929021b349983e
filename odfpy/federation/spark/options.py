"""Options of Spark's data source: access to a web, and the rows that are requested."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from odfpy.errors import InvalidValue, UsageError, did_you_mean
from odfpy.federation.relay.question import MAX_WAIT
from odfpy.federation.spark.access import Access
from odfpy.flight.options import truth_of

SECONDS: Final = 60.0
"""To wait for the answer."""

READING_SECONDS: Final = 3600.0
"""To read a part."""

_ACCESS: Final = ("relay", "cert", "key", "ca")
_ROWS: Final = ("columns", "filter", "limit")
_TRUTHS: Final = ("require-complete", "single-use")
_KNOWN: Final = (*_ACCESS, "entity", "path", *_ROWS, "query", "timeout", "read-timeout", *_TRUTHS)
_EXAMPLES: Final = {
    "relay": '"grpc+tls://HOST:50051"',
    "cert": '"ann.pem"',
    "key": '"ann.key"',
    "ca": '"ca.pem"',
}


@dataclass(frozen=True)
class WebOptions:
    """The rows of a web that Spark's options request.

    Attributes:
        access: the relay and the credentials.
        entity: name of the entity; None if there is a query.
        columns: names of columns; all if empty.
        filter: a condition in Spark's SQL.
        limit: maximum number of rows from each source.
        query: a query in Spark's SQL over one entity.
        seconds: maximum time to wait for the answer.
        reading_seconds: maximum time to read a part.
        require_complete: whether the missing rows of any relay are an error.
        single_use: whether each ticket can be redeemed only once.
    """

    access: Access
    entity: str | None = None
    columns: tuple[str, ...] = ()
    filter: str | None = None
    limit: int | None = None
    query: str | None = None
    seconds: float = SECONDS
    reading_seconds: float = READING_SECONDS
    require_complete: bool = True
    single_use: bool = False

    @classmethod
    def of(cls, given: Mapping[str, str]) -> WebOptions:
        """Parse options.

        Args:
            given: options; their names are case-insensitive.

        Raises:
            UsageError, InvalidValue: an option is missing, misspelt or wrong; the message names it.
            InvalidCertificate: a file cannot be read, or they do not match.
        """
        options = {name.lower(): value for name, value in given.items()}
        for name in options:
            if name not in _KNOWN:
                known = f"Options are {', '.join(_KNOWN)}."
                raise UsageError(
                    f"The source odf-web has no option {name!r}", hint=did_you_mean(name, _KNOWN, otherwise=known)
                )
        for name in _ACCESS:
            if not options.get(name):
                raise UsageError(f"The option {name} is missing", hint=f'.option("{name}", {_EXAMPLES[name]})')
        entity, query = options.get("entity", options.get("path")), options.get("query")
        _check_what(options, entity, query)
        complete, single_use = (truth_of(options, name, otherwise=name == _TRUTHS[0]) for name in _TRUTHS)
        return cls(
            access=Access.from_files(*(options[name] for name in _ACCESS)),
            entity=entity,
            columns=_columns(options.get("columns", "")),
            filter=options.get("filter"),
            limit=None if "limit" not in options else _number_of_rows(options["limit"]),
            query=query,
            seconds=_seconds(options, "timeout", SECONDS, MAX_WAIT),
            reading_seconds=_seconds(options, "read-timeout", READING_SECONDS, float(1 << 31)),
            require_complete=complete,
            single_use=single_use,
        )


def _check_what(options: Mapping[str, str], entity: str | None, query: str | None) -> None:
    if not entity and not query:
        raise UsageError("The options say neither an entity nor a query", hint='.load("lineitem")')
    if entity and query:
        raise UsageError("The options say an entity and a query", hint="Omit one of them.")
    for name in _ROWS if query else ():
        if name in options:
            raise UsageError(f"The option {name} cannot be combined with a query", hint="Write it into the query.")


def _columns(text: str) -> tuple[str, ...]:
    """Parse comma-separated names, or a JSON list of names that contain commas themselves."""
    if not text.lstrip().startswith("["):
        return tuple(name.strip() for name in text.split(",") if name.strip())
    try:
        return tuple(map(str, json.loads(text)))
    except ValueError as error:
        raise InvalidValue(f"The option columns is not a list: {error}", hint='Write "a,b" or ["a", "b"].') from error


def _number_of_rows(text: str) -> int:
    if not text.isdecimal():
        raise InvalidValue(f"The option limit is {text!r}, not a number of rows")
    return int(text)


def _seconds(options: Mapping[str, str], name: str, otherwise: float, most: float) -> float:
    text = options.get(name)
    if text is None:
        return otherwise
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= most:
        raise InvalidValue(f"The option {name} is {text!r}", hint=f"Write a number of seconds, at most {most:.0f}.")
    return seconds
