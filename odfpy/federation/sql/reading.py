"""Parser of SQL expressions for fragments: whatever is not in the grammar is rejected, by name.

Engines interpret the same text differently; a `Flavor` defines the interpretation.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from odfpy.data.sql_text import TextLimits, check_text
from odfpy.errors import InvalidQuery
from odfpy.federation.sql.casting import cast, common_type
from odfpy.federation.sql.columns import Columns
from odfpy.federation.sql.dates import moved_date
from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import Constant, Expression
from odfpy.federation.sql.flavors import PLAIN, Flavor
from odfpy.federation.sql.grammar import COMPARING, HARMLESS, OPERATORS, OWN, TYPES
from odfpy.federation.sql.operators import NULL, call
from odfpy.federation.sql.types import BOOL, DOUBLE, INT, MAX_DIGITS, TEXT, kind_of, plain

if TYPE_CHECKING:
    from sqlglot import exp

LIMITS: Final = TextLimits(characters=64 << 10, tokens=20_000, depth=1_000)
"""Of the text of one expression."""

FindColumn = Callable[["exp.Column"], Expression]


def read_text(text: object, column: FindColumn, flavor: Flavor = PLAIN) -> Expression:
    """Parse a text as an expression.

    Args:
        text: SQL text.
        column: looks up a column.
        flavor: flavor of the text.

    Raises:
        InvalidFragment: it is not an expression, or contains something outside of the grammar.
    """
    from sqlglot import exp, parse
    from sqlglot.errors import SqlglotError

    if not isinstance(text, str):
        raise InvalidFragment("An expression is a text")
    try:
        check_text(text, LIMITS)
        statements = parse(f"SELECT {text}", dialect=flavor.sqlglot)
    except (SqlglotError, InvalidQuery, RecursionError, ValueError) as error:
        raise InvalidFragment(f"Not an expression: {_short(text)}") from error
    select = statements[0] if len(statements) == 1 else None
    alone = isinstance(select, exp.Select) and len(select.expressions) == 1
    if select is None or not alone or any(value for key, value in select.args.items() if key != "expressions"):
        raise InvalidFragment(f"Not an expression: {_short(text)}")
    return read_tree(select.expressions[0], column, flavor)


def read_tree(tree: Any, column: FindColumn, flavor: Flavor = PLAIN) -> Expression:
    """Convert a sqlglot tree to an expression; see `read_text`."""
    try:
        return _Reader(column, flavor).read(tree)
    except RecursionError as error:
        raise InvalidFragment("An expression is nested too deeply") from error


def named_columns(columns: Columns) -> FindColumn:
    """Return a lookup for columns that are written without a table name.

    Args:
        columns: the available columns.
    """

    def find(node: exp.Column) -> Expression:
        if len(node.parts) != 1:
            raise InvalidFragment("A column has one name here, without that of a table")
        return columns(node.name)

    return find


def _finite(number: float) -> float:
    if not isfinite(number):
        raise ValueError(number)
    return number


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"


class _Reader:
    def __init__(self, column: FindColumn, flavor: Flavor) -> None:
        self._column = column
        self._flavor = flavor

    def read(self, node: Any) -> Expression:
        name = type(node).__name__
        reader = getattr(self, f"_{name.lower()}", None) if name in OWN else None
        if reader is not None:
            self._check(node, OWN[name])
            return reader(node)  # type: ignore[no-any-return]
        if name not in OPERATORS:
            raise InvalidFragment(f"{_short(name.upper())} is not supported: its meaning differs between data sources")
        operator, parts = OPERATORS[name]
        self._check(node, parts)
        parts_of = [node.args.get(part) for part in parts]
        arguments = [self.read(argument) for argument in parts_of if argument is not None]
        if operator in COMPARING:
            arguments = self._compared(arguments)
        expression = call(operator, *arguments)
        return self._as_in_query(operator, arguments, expression) if self._flavor.is_query else expression

    def _as_in_query(self, operator: str, arguments: list[Expression], expression: Expression) -> Expression:
        """Cast the result of an operator to the type that the engine of the query gives it."""
        if operator in ("year", "month", "day", "char_length"):
            return cast(expression, pa.int32())
        if operator in ("add", "sub", "mul", "abs") and expression.dtype == INT:
            return cast(expression, common_type([self._narrow(argument) for argument in arguments]))
        return expression

    def _compared(self, arguments: list[Expression]) -> list[Expression]:
        """Prepare values for a comparison, as the engine of the query compares them.

        Raises:
            InvalidFragment: other engines compare them differently.
        """
        if not self._flavor.is_query:
            return arguments
        kinds = {kind_of(argument.dtype) for argument in arguments}
        if "text" in kinds and kinds & {"int", "decimal", "float"}:
            raise InvalidFragment(
                "Comparing texts with numbers is not supported: its meaning differs between data sources"
            )
        if self._flavor.decimals_beat_doubles and {"decimal", "float"} <= kinds:
            return [
                self._rounded(argument) if kind_of(argument.dtype) == "float" else argument for argument in arguments
            ]
        return arguments

    def _alike(self, values: list[Expression]) -> list[Expression]:
        """Return values of which one is chosen, if every engine agrees on their common type."""
        if {"decimal", "float"} <= {kind_of(value.dtype) for value in values} and self._flavor.is_query:
            raise InvalidFragment(
                "Doubles beside decimal numbers are not supported: their meaning differs between data sources"
            )
        return self._compared(values)

    @staticmethod
    def _rounded(expression: Expression) -> Expression:
        if (
            not isinstance(expression, Constant)
            or not isinstance(expression.value, float)
            or abs(expression.value) >= 10**15
        ):
            raise InvalidFragment(
                "Comparing doubles with decimal numbers is not supported: its meaning differs between data sources"
            )
        return Constant(round(Decimal(repr(expression.value)), 15), pa.decimal128(30, 15))

    def _narrow(self, expression: Expression) -> Expression:
        if not isinstance(expression, Constant) or expression.value is None or self._flavor.constant_bits != 32:
            return expression
        return cast(expression, pa.int32()) if abs(expression.value) < 1 << 31 else expression

    def _check(self, node: Any, parts: tuple[str, ...]) -> None:
        """Reject a node with arguments other than the supported ones."""
        harmless = HARMLESS.get(type(node).__name__, ())
        for key, value in node.args.items():
            if value and key not in parts and key not in harmless:
                raise InvalidFragment(
                    f"{type(node).__name__.upper()} with {key.upper()} is not supported: not every data source has it"
                )

    # --- Leaves ---

    def _column_of(self, node: Any) -> Expression:
        from sqlglot import exp

        if not all(isinstance(part, exp.Identifier) for part in node.parts):
            raise InvalidFragment("* is not supported: not every data source has it")
        return self._column(node)

    def _literal(self, node: Any) -> Expression:
        text = str(node.this)
        if node.is_string:
            if "\0" in text:
                raise InvalidFragment("A text has a character 0")
            return Constant(text, TEXT)
        try:
            if "e" in text.lower() or (self._flavor.fractions_are_doubles and "." in text):
                return Constant(_finite(float(text)), DOUBLE)
            number = Decimal(text)
        except (ValueError, ArithmeticError) as error:
            raise InvalidFragment(f"Not a number: {_short(text)}") from error
        if "." not in text and -(1 << 63) <= int(number) < 1 << 63:
            return Constant(int(number), INT)
        _, digits, exponent = number.as_tuple()
        scale = max(0, -int(exponent))
        if max(len(digits), scale) > MAX_DIGITS:
            raise InvalidFragment(f"A number has more than {MAX_DIGITS} digits: {_short(text)}")
        return Constant(number, pa.decimal128(max(len(digits), scale, 1), scale))

    @staticmethod
    def _boolean(node: Any) -> Expression:
        return Constant(bool(node.this), BOOL)

    @staticmethod
    def _null(_: Any) -> Expression:
        return NULL

    # --- Calls that need special treatment ---

    def _paren(self, node: Any) -> Expression:
        return self.read(node.this)

    def _and(self, node: Any) -> Expression:
        return call("and", *(self.read(operand) for operand in node.flatten()))

    def _or(self, node: Any) -> Expression:
        return call("or", *(self.read(operand) for operand in node.flatten()))

    def _neg(self, node: Any) -> Expression:
        value = self.read(node.this)
        if isinstance(value, Constant) and isinstance(value.value, int | float | Decimal) and value.dtype != BOOL:
            number = value.value.copy_negate() if isinstance(value.value, Decimal) else -value.value
            return Constant(number, value.dtype)
        return call("neg", value)

    def _in(self, node: Any) -> Expression:
        if not node.expressions:
            raise InvalidFragment("IN has a list of constants")
        arguments = [self.read(node.this), *(self.read(expression) for expression in node.expressions)]
        return call("in", *self._compared(arguments))

    def _is(self, node: Any) -> Expression:
        from sqlglot import exp

        value = self.read(node.this)
        if isinstance(node.expression, exp.Null):
            is_null = call("is_null", value)
            return call("not", is_null) if node.args.get("negate") else is_null
        if isinstance(node.expression, exp.Boolean) and not node.args.get("negate"):
            wanted = value if node.expression.this else call("not", value)
            return call("coalesce", wanted, Constant(False, BOOL))
        raise InvalidFragment("IS is NULL, TRUE or FALSE")

    def _like(self, node: Any) -> Expression:
        value, pattern = self.read(node.this), self.read(node.expression)
        if not self._flavor.escapes and isinstance(pattern, Constant) and isinstance(pattern.value, str):
            pattern = Constant(pattern.value.replace("\\", "\\\\"), TEXT)
        return call("like", value, pattern)

    def _case(self, node: Any) -> Expression:
        parts: list[Expression] = []
        for branch in node.args["ifs"]:
            self._check(branch, ("this", "true"))
            condition = self.read(branch.this)
            if node.this is not None:
                condition = call("eq", *self._compared([self.read(node.this), condition]))
            parts += [condition, self.read(branch.args["true"])]
        default = node.args.get("default")
        parts.append(NULL if default is None else self.read(default))
        self._alike([*parts[1:-1:2], parts[-1]])
        return call("case", *parts)

    def _coalesce(self, node: Any) -> Expression:
        arguments = [self.read(node.this), *(self.read(expression) for expression in node.expressions)]
        return call("coalesce", *self._alike(arguments))

    def _substring(self, node: Any) -> Expression:
        parts = [node.args.get(part) for part in ("this", "start", "length")]
        return call("substring", *(self.read(argument) for argument in parts if argument is not None))

    def _extract(self, node: Any) -> Expression:
        part = str(node.this.name).lower()
        if part not in ("year", "month", "day"):
            raise InvalidFragment(f"EXTRACT({_short(part)}) is not supported: its meaning differs between data sources")
        extracted = call(part, self.read(node.expression))
        return self._as_in_query(part, [], extracted) if self._flavor.is_query else extracted

    def _count(self, node: Any) -> Expression:
        from sqlglot import exp

        if isinstance(node.this, exp.Star) and not any(node.this.args.values()):
            return call("count_all")
        return call("count", self.read(node.this))

    # --- Differences between engines ---

    def _add(self, node: Any) -> Expression:
        return self._moved(node, 1)

    def _sub(self, node: Any) -> Expression:
        return self._moved(node, -1)

    def _moved(self, node: Any, sign: int) -> Expression:
        """Return a sum or difference; a constant date and an interval are folded to a date."""
        from sqlglot import exp

        if isinstance(node.expression, exp.Interval) and self._flavor.is_query:
            start = self.read(node.this)
            moved = moved_date(start.value, node.expression, sign) if isinstance(start, Constant) else None
            if moved is None:
                raise InvalidFragment("Intervals are not supported: their meaning differs between data sources")
            return Constant(moved, start.dtype)
        arguments = [self.read(node.this), self.read(node.expression)]
        operator = "add" if sign > 0 else "sub"
        result = call(operator, *arguments)
        return self._as_in_query(operator, arguments, result) if self._flavor.is_query else result

    def _tsordstodate(self, node: Any) -> Expression:
        """Unwrap the call that sqlglot puts around arguments of date functions."""
        value = self.read(node.this)
        if kind_of(value.dtype) not in ("date", "time"):
            raise InvalidFragment("Dates in texts are not supported: their meaning differs between data sources")
        return value

    def _year(self, node: Any) -> Expression:
        extracted = call(node.key, self.read(node.this))
        return self._as_in_query(node.key, [], extracted) if self._flavor.is_query else extracted

    _month = _day = _year

    def _div(self, node: Any) -> Expression:
        left, right = self.read(node.this), self.read(node.expression)
        if not self._flavor.is_query:
            return call("div", left, right)
        kinds = {kind_of(left.dtype), kind_of(right.dtype)}
        zero = not isinstance(right, Constant) or not right.value
        if kinds == {"int"} and self._flavor.whole_division:
            raise InvalidFragment("Dividing whole numbers is not supported: its meaning differs between data sources")
        if self._flavor.zero_fails and zero:
            raise InvalidFragment("Division by zero is not supported: not every data source fails for it")
        if "decimal" in kinds and "float" not in kinds:
            return self._exact_quotient(left, right)
        return call("div", left, right)

    def _exact_quotient(self, left: Expression, right: Expression) -> Expression:
        """Divide a decimal by 10, 100, ...: as a product without rounding, in the engine's type of quotients."""
        digits = self._flavor.decimal_digits
        power = len(str(right.value)) - 1 if isinstance(right, Constant) and type(right.value) is int else 0
        exact = power > 0 and isinstance(right, Constant) and right.value == 10**power
        if digits is None or not exact or power > digits or kind_of(left.dtype) != "decimal":
            raise InvalidFragment("Dividing decimal numbers is not supported: its meaning differs between data sources")
        scale = left.dtype.scale + digits
        precision = min(MAX_DIGITS, left.dtype.precision - left.dtype.scale + scale)
        if scale > MAX_DIGITS or precision - scale < left.dtype.precision - left.dtype.scale:
            raise InvalidFragment("A decimal number has too many digits")
        factor = Constant(Decimal(1).scaleb(-power), pa.decimal128(power, power))
        return cast(call("mul", left, factor), pa.decimal128(precision, scale))

    def _cast(self, node: Any) -> Expression:
        value, dtype = self.read(node.this), self.type_of(node.to)
        converted = cast(value, dtype)
        if self._flavor.is_query and not isinstance(converted, Constant):
            self._check_cast(value.dtype, dtype)
        return converted

    @staticmethod
    def _check_cast(old: pa.DataType, new: pa.DataType) -> None:
        """Reject casts in queries that engines parse or round differently."""
        kinds = (kind_of(old), kind_of(plain(new)))
        text_of = kinds[1] == "text" and kinds[0] in ("int", "date", "text")
        coarser = kinds == ("decimal", "decimal") and old.scale > new.scale
        if coarser or ("text" in kinds and not text_of) or kinds == ("float", "decimal"):
            raise InvalidFragment(f"Casting {old} to {new} is not supported: its meaning differs between data sources")

    def type_of(self, node: Any) -> pa.DataType:
        """Return the target type of a cast."""
        kind = node.this.name if hasattr(node.this, "name") else ""
        sizes = [int(expression.name) for expression in node.expressions if expression.name.isdecimal()]
        if len(sizes) != len(node.expressions) or node.args.get("nested"):
            raise InvalidFragment("This type is not supported: not every data source has it")
        if kind == "DECIMAL":
            precision, scale = (*sizes, 0)[:2] if sizes else (0, 0)
            if 1 <= precision <= MAX_DIGITS and scale <= precision:
                return pa.decimal128(precision, scale)
        elif kind == "FLOAT" and not sizes and self._flavor.float_bits:
            return pa.float32()
        elif kind in ("TIMESTAMP", "TIMESTAMPNTZ") and not sizes and self._flavor.time_unit:
            return pa.timestamp(self._flavor.time_unit)
        elif kind in TYPES and not sizes:
            return TYPES[kind]
        raise InvalidFragment(f"The type {_short(str(kind))} is not supported: not every data source has it")
