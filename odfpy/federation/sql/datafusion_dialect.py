"""DataFusion's SQL for sqlglot, which knows it only as PostgreSQL's: what both write alike, and mean differently.

What is left of a query for the client is written from the tree that its text was parsed to. Written as for PostgreSQL,
`round(x, 2)` would become a decimal, `a ^ b` a power, `to_char(t, '%Y')` the text `YYYY`, and `IGNORE NULLS` nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from sqlglot import TokenType, exp
from sqlglot.dialects.postgres import Postgres

_AS_WRITTEN: Final = frozenset(
    ("ARRAY_SORT", "ISNAN", "LOG10", "LOG2", "REGEXP_LIKE", "SIGNUM", "TO_CHAR", "TO_DATE", "TO_HEX", "TO_TIMESTAMP",
     "UUID")
)  # fmt: skip
"""Functions that sqlglot would write for PostgreSQL by other names, with other formats, or without some arguments."""


def is_known(node: Any) -> bool:
    """Return whether a node calls a function that is kept as it is written, and known to be scalar.

    Args:
        node: a node of sqlglot.
    """
    return isinstance(node, exp.Anonymous) and str(node.this).upper() in _AS_WRITTEN


def _unchanged(name: str) -> Callable[..., Any]:
    """Return a builder of a call as it is written."""

    def build(args: list[Any], dialect: Any = None) -> Any:
        del dialect
        return exp.Anonymous(this=name, expressions=args)

    return build


class DataFusion(Postgres):
    """DataFusion's SQL."""

    class Tokenizer(Postgres.Tokenizer):
        KEYWORDS: ClassVar[Any] = {**Postgres.Tokenizer.KEYWORDS, "FLOAT": TokenType.FLOAT}

    class Parser(Postgres.Parser):  # type: ignore[misc,valid-type]
        FUNCTIONS: ClassVar[Any] = {
            **Postgres.Parser.FUNCTIONS,
            **{name: _unchanged(name) for name in _AS_WRITTEN},
        }
        EXPONENT: ClassVar[Any] = {}  # `^` is the exclusive or of bits

    class Generator(Postgres.Generator):  # type: ignore[misc,valid-type]
        TYPE_MAPPING: ClassVar[Any] = {
            **Postgres.Generator.TYPE_MAPPING,
            exp.DType.TINYINT: "TINYINT",
            exp.DType.UTINYINT: "TINYINT UNSIGNED",
            exp.DType.USMALLINT: "SMALLINT UNSIGNED",
            exp.DType.UINT: "INT UNSIGNED",
            exp.DType.UBIGINT: "BIGINT UNSIGNED",
        }
        TRANSFORMS: ClassVar[Any] = {
            **{
                kind: transform
                for kind, transform in Postgres.Generator.TRANSFORMS.items()
                if kind not in (exp.BitwiseXor, exp.TryCast)
            },
            exp.Round: lambda self, node: self.func("ROUND", node.this, node.args.get("decimals")),
        }

        def bitwisexor_sql(self, expression: exp.BitwiseXor) -> str:
            return str(self.binary(expression, "^"))

        def ignorenulls_sql(self, expression: exp.IgnoreNulls) -> str:
            return f"{self.sql(expression, 'this')} IGNORE NULLS"

        def respectnulls_sql(self, expression: exp.RespectNulls) -> str:
            return f"{self.sql(expression, 'this')} RESPECT NULLS"
