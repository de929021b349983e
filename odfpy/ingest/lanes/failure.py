"""Errors returned by a Spark task, as values: Spark would convert them to text."""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.codec.errors import RaisedError, as_value, error_of
from odfpy.errors import OdfError


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of a task.

    Attributes:
        error: the error to raise; None if the part ends within a record.
    """

    error: RaisedError | None

    @classmethod
    def of(cls, error: OdfError) -> Failure:
        """Return an error as a value."""
        return cls(as_value(error))

    def raised(self) -> OdfError:
        """Return the error again."""
        if self.error is None:
            return OdfError("A part of the input ends in the middle of a record")
        return error_of(self.error)
