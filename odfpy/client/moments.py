"""Conversion of times and blocks to arguments of queries."""

from __future__ import annotations

from odfpy.errors import InvalidValue
from odfpy.query.dialects import Dialect
from odfpy.query.moments import PointInTime, moment_word


def moment_text(moment: PointInTime, dialect: Dialect) -> str:
    """Return a moment as the argument of `odf_as_at`.

    Raises:
        InvalidValue: the moment is invalid.
    """
    if isinstance(moment, int) and not isinstance(moment, bool):
        if moment < 0:
            raise InvalidValue(f"An offset must be 0 or more, not {moment}")
        return str(moment)
    return dialect.literal(moment_word(moment))
