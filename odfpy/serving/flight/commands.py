"""Commands and bodies of actions, as far as all Flight SQL servers treat them alike."""

from __future__ import annotations

from typing import Any, Final

from odfpy.serving.flight.errors import NotSupported, ReadOnly, WrongMessage
from odfpy.serving.flight.messages import message, name_of

CANCELLED: Final = 1
"""The result of canceling a query."""

CLOSED: Final = 1
"""The result of closing a session."""

_WRITING: Final = ("BeginTransaction", "EndTransaction", "BeginSavepoint", "EndSavepoint")


def expect(message: Any, name: str) -> Any:
    """Return the message, if it has the expected type.

    Args:
        message: the message.
        name: name of the expected type.

    Raises:
        WrongMessage: it has another type.
    """
    if name_of(message) != name:
        raise WrongMessage(f"A {name} is expected, not a {name_of(message)}")
    return message


def refuse_transaction(request: Any) -> None:
    """Reject requests that are part of a transaction.

    Raises:
        NotSupported: it is part of one.
    """
    if request.HasField("transaction_id") and request.transaction_id:
        raise NotSupported(
            "Transactions are not supported", hint="Only read-only queries are supported, without transactions."
        )


def no_rows(command: Any, hint: str) -> NotSupported | ReadOnly:
    """Return the error for a command that is not a query.

    Args:
        command: a message.
        hint: hint for clients that want to write.
    """
    if name_of(command) == "CommandStatementSubstraitPlan":
        return NotSupported("Substrait plans are not supported", hint="Ask in SQL.")
    return ReadOnly(f"{_words(command)} gives no rows", hint=hint)


def no_writing(command: Any, hint: str) -> ReadOnly:
    """Return the error for a DoPut command that would write.

    Args:
        command: a message.
        hint: hint for clients that want to write.
    """
    return ReadOnly(f"{_words(command)} would change data", hint=hint)


def no_action(name: str) -> NotSupported:
    """Return the error for an unknown action.

    Args:
        name: name of the action.
    """
    hint = (
        "Only read-only queries are supported, without transactions; connect with autocommit."
        if name in _WRITING
        else None
    )
    return NotSupported(f"There is no action {name[:100]!r} here", hint=hint)


def option_bytes(key: str, value: Any) -> bytes:
    """Encode a session option.

    Args:
        key: name of the option.
        value: a message with its value, or with its error.
    """
    return bytes(message("SessionOption", key=key, value=value.SerializeToString()).SerializeToString())


def _words(command: Any) -> str:
    match name_of(command):
        case "CommandStatementIngest":
            return f"Ingestion into {command.table!r}"
        case "CommandStatementUpdate":
            return "An update"
        case "CommandPreparedStatementUpdate":
            return "A prepared statement that is run as an update, as executemany does it,"
    return name_of(command)
