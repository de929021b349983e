"""Our errors on their way out of a Spark task, as values: Spark would make text of them."""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.codec.errors import RaisedError, as_value, error_of
from odfpy.errors import OdfError


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of a task.

    Attributes:
        error: what to raise; None if the part it read ends within a record.
    """

    error: RaisedError | None

    @classmethod
    def of(cls, error: OdfError) -> Failure:
        """An error as a value."""
        return cls(as_value(error))

    def raised(self) -> OdfError:
        """The error again."""
        if self.error is None:
            return OdfError("A part of the input ends in the middle of a record")
        return error_of(self.error)
