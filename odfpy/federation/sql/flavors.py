"""Flavors of SQL: how a text is interpreted, as far as engines differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Flavor:
    r"""The interpretation of a text, as far as engines differ.

    Attributes:
        name: name of its dialect in sqlglot; `datafusion` is defined here, since sqlglot has none.
        is_query: the text belongs to an engine that could run it itself: whatever would have a slightly different
            meaning in a fragment is rejected, and left to that engine.
        fractions_are_doubles: `0.05` is a double, not a decimal.
        whole_division: `7 / 2` is 3.
        zero_fails: a division by zero is an error.
        escapes: `\` is an escape character in LIKE patterns.
        float_bits: bits of the type `FLOAT`, None where the dialect does not define it.
        decimal_digits: extra digits in the scale of a quotient of decimals, None where it depends.
        time_unit: unit of the type `TIMESTAMP`; None where that depends on the session.
        constant_bits: bits of integer constants, where they are that small.
        decimals_beat_doubles: a double next to a decimal becomes `DECIMAL(30, 15)`, except in arithmetic.
    """

    name: str
    is_query: bool = False
    fractions_are_doubles: bool = False
    whole_division: bool = False
    zero_fails: bool = False
    escapes: bool = True
    float_bits: int | None = 32
    decimal_digits: int | None = None
    time_unit: str | None = "us"
    constant_bits: int = 64
    decimals_beat_doubles: bool = False

    @property
    def sqlglot(self) -> Any:
        """Return the sqlglot dialect that parses and writes it; sqlglot is only imported if it is used."""
        if self.name != "datafusion":
            return self.name
        from odfpy.federation.sql.datafusion_dialect import DataFusion

        return DataFusion


PLAIN: Final = Flavor("duckdb")
"""Of transformations."""

CONDITION: Final = Flavor("duckdb", escapes=False)
"""Of the conditions of grants (`odfpy.sharing.conditions`)."""

QUERIES: Final[Mapping[str, Flavor]] = {
    "datafusion": Flavor(
        "datafusion",
        is_query=True,
        fractions_are_doubles=True,
        whole_division=True,
        float_bits=None,
        decimal_digits=4,
        time_unit="ns",
        decimals_beat_doubles=True,
    ),
    "spark": Flavor("spark", is_query=True, zero_fails=True, constant_bits=32, time_unit=None),
}
