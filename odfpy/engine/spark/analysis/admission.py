"""Admission of queries: every name in a parsed query is checked before Spark analyzes it.

While Spark analyzes a query, it already evaluates parts of it: rows of VALUES, arguments of range(...), schemas and
options of functions, LIMIT. Something that reads a file, reaches the network or runs code would have done so before the
analyzed plan could be checked. So the whole parsed query is checked against allow lists of functions, relations,
operators and expressions: what is not listed is refused. `odfpy.engine.spark.analysis.determinism` checks the analyzed
plan again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

from odfpy.engine.spark.analysis.determinism import place, text_of
from odfpy.engine.spark.analysis.options import call_name, function_name, unfit_options
from odfpy.engine.spark.plan.arguments import UnsuitableArgument
from odfpy.engine.spark.plan.catalyst import Node, children, expressions_of, items, operator_name, parsed_name
from odfpy.engine.spark.plan.failures import HOW_TO_JOIN_VERSIONS, NO_FILES
from odfpy.engine.spark.plan.function_names import FUNCTIONS, REFUSED_NAMES, TABLE_FUNCTIONS
from odfpy.engine.spark.plan.functions import what_instead
from odfpy.engine.spark.plan.operators import QUERY_OPERATORS, is_query
from odfpy.engine.sql.source_text import MAX_LEVELS, too_deep
from odfpy.errors import InvalidQuery, NondeterministicQuery, did_you_mean

if TYPE_CHECKING:
    from odfpy.engine.sql.source_text import SourceText

_NO_PROGRAMS: Final = "Only Spark's built-in functions are available, no user-defined ones."
_A_NAME: Final = "IDENTIFIER(...) takes one name in quotes"
_LEAVES: Final = frozenset(
    """
    Literal CurrentRow UnboundedPreceding UnboundedFollowing UnspecifiedFrame NamePlaceholder UnresolvedCollation
    WindowSpecReference UnresolvedNamedLambdaVariable
    analysis.UnresolvedAttribute analysis.UnresolvedStar analysis.UnresolvedRegex analysis.UnresolvedOrdinal
    analysis.NamedParameter analysis.PosParameter analysis.UnresolvedPipeAggregateOrdinal
    CurrentDate CurrentTime CurrentTimestamp CurrentUser CurrentPath
    """.split()  # noqa: SIM905
)
_EXPRESSIONS: Final = frozenset(
    """
    Alias Cast Collate CaseWhen Coalesce Concat CreateNamedStruct Lower Overlay SemiStructuredExtract
    StringLocate StringTrim StringTrimLeft StringTrimRight Substring TimestampAdd TimestampDiff
    Add Subtract Multiply Divide IntegralDivide Remainder UnaryMinus UnaryPositive
    BitwiseAnd BitwiseNot BitwiseOr BitwiseXor ShiftLeft ShiftRight ShiftRightUnsigned
    And Or Not EqualTo EqualNullSafe GreaterThan GreaterThanOrEqual LessThan LessThanOrEqual In InSubquery
    IsNull IsNotNull IsUnknown$$anon$1 IsNotUnknown$$anon$2 Like ILike RLike LikeAll LikeAny NotLikeAll NotLikeAny
    ScalarSubquery Exists ListQuery LateralSubquery
    SortOrder WindowExpression UnresolvedWindowExpression WindowSpecDefinition SpecifiedWindowFrame
    Cube Rollup GroupingSets LambdaFunction NamedArgumentExpression PipeExpression JsonTable Unnest
    aggregate.AggregateExpression aggregate.AnyValue aggregate.First aggregate.Last
    analysis.MultiAlias analysis.UnresolvedAlias analysis.UnresolvedExtractValue analysis.UnresolvedFunction
    analysis.UnresolvedGenerator analysis.UnresolvedStarExceptOrReplace
    """.split()  # noqa: SIM905
)
"""What Spark's parser makes of a query, besides operators. Functions are calls by name, and checked as such."""

_Refusal = type[InvalidQuery] | type[NondeterministicQuery]


def admit(parsed: Node, source: SourceText, tables: Collection[str], refusal: _Refusal = InvalidQuery) -> None:
    """Refuse a parsed query that contains anything not known to stay within its inputs.

    Args:
        parsed: the parsed query.
        source: its text.
        tables: names of the inputs and of earlier steps.
        refusal: the error class for functions that reach outside.

    Raises:
        InvalidQuery: it is not a query, or uses an unknown name; the message shows the place.
    """
    _Admission(source, frozenset(tables), refusal).look_at(parsed)


class _Admission:
    """One traversal of a parsed query."""

    def __init__(self, source: SourceText, tables: frozenset[str], refusal: _Refusal) -> None:
        self._source = source
        self._tables = tables
        self._refusal = refusal
        self._relations: list[Node] = []
        self._named: set[str] = set()

    def look_at(self, parsed: Node) -> None:
        """Check all parts of the query, in the order of its text."""
        waiting: list[tuple[_Look, Node, int]] = [(self._operator, parsed, 1)]
        while waiting:
            look, node, level = waiting.pop()
            if level > MAX_LEVELS:
                raise too_deep()
            waiting += reversed([(look, below, level + 1) for look, below in look(node)])
        for relation in self._relations:
            self._check_relation(relation)

    # --- Operators ---

    def _operator(self, node: Node) -> list[_Next]:
        """Check an operator, and return its parts."""
        name = operator_name(node)
        if name.endswith("RelationTimeTravel"):
            raise InvalidQuery(f"Inputs have no time travel{self._at(node)}", hint=HOW_TO_JOIN_VERSIONS)
        if name == "analysis.PlanWithUnresolvedIdentifier":
            raise InvalidQuery(f"{_A_NAME}{self._at(node)}", hint=NO_FILES)
        if name == "LimitAll":  # it would also lift Spark's limit on the rows of a recursive query
            raise InvalidQuery(f"LIMIT ALL is not supported{self._at(node)}", hint="Omit it to return all rows.")
        if name not in QUERY_OPERATORS:
            raise InvalidQuery(
                f"Only queries are allowed, not {name.rsplit('.', 1)[-1]}{self._at(node)}",
                hint="Write a SELECT; statements such as SET, CREATE, INSERT or scripts are not run.",
            )
        expressions, below = expressions_of(node), children(node)
        match name:
            case "analysis.UnresolvedRelation":
                self._relations.append(node)
            case "analysis.UnresolvedTableValuedFunction":
                self._check_table_function(node)
            case "WithWindowDefinition":
                expressions = [*expressions, *items(node.windowDefinitions().values().toSeq())]
            case "UnresolvedWith":
                queries = items(node.innerChildren())
                self._named.update(str(query.alias()) for query in queries)
                below = [*queries, *below]
        return [
            *((self._expression, expression) for expression in expressions),
            *((self._operator, child) for child in below),
        ]

    def _check_table_function(self, node: Node) -> None:
        parts = [str(part) for part in items(node.name())]
        name = function_name(parts)
        if name in REFUSED_NAMES:
            raise self._refused(node, REFUSED_NAMES[name])
        if name not in TABLE_FUNCTIONS or node.isStreaming():
            written = ".".join(f"`{part}`" for part in parts)
            raise InvalidQuery(f"Could not resolve {written} to a table-valued function{self._at(node)}", hint=NO_FILES)

    def _check_relation(self, node: Node) -> None:
        """Check that a relation is an input, an earlier step, or a query of WITH."""
        parts = [str(part) for part in items(node.multipartIdentifier())]
        if not node.options().isEmpty() or node.isStreaming():
            raise InvalidQuery(f"Tables have no options{self._at(node)}", hint="Name the table alone.")
        if len(parts) == 1 and parts[0] in self._tables | self._named:
            return
        if len(parts) > 2:  # like a dataset's name, which Spark takes for a catalog's table
            raise InvalidQuery(
                f"`{'.'.join(parts)}` is neither an input nor an earlier step{self._at(node)}", hint=NO_FILES
            )
        written = ".".join(f"`{part}`" for part in parts)
        raise InvalidQuery(f"The table or view {written} cannot be found{self._at(node)}", hint=NO_FILES)

    # --- Expressions ---

    def _expression(self, node: Node) -> list[_Next]:
        """Check an expression, and return its parts."""
        name = parsed_name(node)
        if name in _LEAVES:
            return []
        if name not in _EXPRESSIONS:
            raise self._unknown(node, name)
        below = children(node)
        match name:
            case "analysis.UnresolvedFunction" | "analysis.UnresolvedGenerator":
                self._check_function(node, below)
            case "analysis.UnresolvedStarExceptOrReplace" if node.replacements().isDefined():
                below = items(node.replacements().get())
        children_next: list[_Next] = [(self._expression, child) for child in below]
        return [*children_next, (self._operator, node.plan())] if is_query(name) else children_next

    def _check_function(self, node: Node, arguments: list[Node]) -> None:
        name = call_name(node)
        if name in REFUSED_NAMES:
            raise self._refused(node, REFUSED_NAMES[name])
        if name is None or name not in FUNCTIONS:
            raise self._no_such_function(node)
        unsuitable = unfit_options(name, arguments)
        if unsuitable is not None:
            raise self._unfit(node, unsuitable)

    def _no_such_function(self, node: Node) -> InvalidQuery:
        named = node if parsed_name(node) == "analysis.UnresolvedFunction" else node.name()
        parts = [str(part) for part in items(named.nameParts())]
        suggestion = did_you_mean(parts[-1].lower(), FUNCTIONS)
        return InvalidQuery(
            f"Cannot resolve routine {'.'.join(f'`{part}`' for part in parts)}{self._at(node)}",
            hint=f"{suggestion} {_NO_PROGRAMS}" if suggestion else _NO_PROGRAMS,
        )

    def _unknown(self, node: Node, name: str) -> InvalidQuery:
        if name == "analysis.ExpressionWithUnresolvedIdentifier":
            return InvalidQuery(f"{_A_NAME}{self._at(node)}")
        kind = name.rsplit(".", 1)[-1]
        return InvalidQuery(f"{kind} is not part of a query{self._at(node)}", hint="Write it with other functions.")

    # --- Words ---

    def _refused(self, node: Node, reason: str) -> InvalidQuery | NondeterministicQuery:
        return self._unfit(node, UnsuitableArgument(reason, what_instead(reason)))

    def _unfit(self, node: Node, argument: UnsuitableArgument) -> InvalidQuery | NondeterministicQuery:
        return self._refusal(f"`{text_of(node, self._source)}` {argument.reason}{self._at(node)}", hint=argument.hint)

    def _at(self, node: Node) -> str:
        return place(node, self._source)


_Next = tuple["_Look", Node]
_Look = Callable[[Node], list[_Next]]
