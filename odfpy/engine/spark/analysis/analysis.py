"""Parsing and analysis of a transform's queries by Spark, with checks of their names (ADR 0013, "Steps").

Decisions are based on Spark's analyzed plan, never on the text, which is only used to show places in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol, TypeVar

from odfpy.dataset.transform import SqlQueryStep, TransformSql
from odfpy.engine.spark.analysis.admission import admit
from odfpy.engine.spark.analysis.constants import check_constants, check_gaps, check_ranges
from odfpy.engine.spark.analysis.determinism import check_deterministic, check_ordered, check_rows, place
from odfpy.engine.spark.analysis.hints import without_hints
from odfpy.engine.spark.analysis.lateral import without_lateral_rows
from odfpy.engine.spark.plan.arguments import why_unsafe
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, children, items, operator_name, text_range
from odfpy.engine.spark.plan.failures import spark_errors
from odfpy.engine.spark.plan.operators import operators, sort_of_result, with_subqueries
from odfpy.engine.spark.plan.session_windows import with_fences
from odfpy.engine.spark.plan.step import RESERVED_PREFIX, Step
from odfpy.engine.sql.source_text import SourceText, step_texts
from odfpy.errors import InvalidQuery, NondeterministicQuery, UnsupportedQuery

_RELATION: Final = "analysis.UnresolvedRelation"
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class StepVisitor(Protocol[T_co]):
    """A callback that inspects an analyzed step."""

    def __call__(self, step: Step, *, is_last: bool) -> T_co:
        """Return what was found."""
        ...


def each_step(catalyst: Catalyst, transform: TransformSql, inputs: Sequence[str], visit: StepVisitor[T]) -> list[T]:
    """Analyze the steps of a transform one by one; each sees the inputs and the steps before it.

    Args:
        catalyst: a session in which the inputs have been named.
        transform: the queries.
        inputs: names of the inputs.
        visit: inspects an analyzed step; is told whether it is the last one.

    Raises:
        InvalidQuery: a query does not parse, or uses an unknown name; and whatever `visit` raises.
    """
    if transform.temporal_tables:
        raise UnsupportedQuery(
            "Temporal tables are only for derivative datasets: rows of a source have no versions",
            hint="Omit `temporalTables`, and join in a dataset that is derived from this one.",
        )
    steps = transform.steps
    check_aliases(steps, inputs)
    known, visited = list(inputs), []
    for source, step in zip(step_texts(transform), steps, strict=True):
        with spark_errors([source]):
            analyzed = analyzed_step(catalyst, step.alias, source, known)
            visited.append(visit(analyzed, is_last=step is steps[-1]))
            if step is not steps[-1] and step.alias is not None:
                catalyst.name_view(step.alias, analyzed.plan)
                known.append(step.alias)
    return visited


def analyze_query(
    catalyst: Catalyst, source: SourceText, tables: Sequence[str], shown: SourceText | None = None
) -> Node:
    """Return the analyzed plan of one query of any class.

    Args:
        catalyst: a session in which the tables have been named.
        source: the query.
        tables: their names.
        shown: the query as its author wrote it, with the same positions.

    Raises:
        InvalidQuery: it does not parse, is not a query, uses an unknown name, or would run code from elsewhere.
    """
    shown = shown or source
    with spark_errors([shown]):
        text, known = _with_plain_names(catalyst, source.text, tables)
        parsed = catalyst.parse(text)
        admit(parsed, shown, known)
        plan = catalyst.analyze(parsed)
        for operator in with_subqueries(plan):
            for name, node in operator.expressions:
                if (reason := why_unsafe(name, node)) is not None:
                    raise InvalidQuery(f"`{node.prettyName()}` {reason}{place(node, shown)}")
        check_gaps(catalyst, plan, shown)
        return with_fences(catalyst, plan)


def check_aliases(steps: Sequence[SqlQueryStep], inputs: Sequence[str]) -> None:
    """Refuse steps that no later step can name, and steps with the same name."""
    taken = set(inputs)
    if len(taken) < len(inputs):
        raise InvalidQuery("Two inputs have the same alias", hint="Give each input an alias of its own.")
    for number, step in enumerate(steps[:-1], start=1):
        if step.alias is None:
            raise InvalidQuery(f"Step {number} has no alias, so no later step can use it", hint="Only the last may.")
        if step.alias in taken:
            raise InvalidQuery(f"Step {number} has the alias `{step.alias}`, which is already used")
        taken.add(step.alias)


def analyzed_step(catalyst: Catalyst, alias: str | None, source: SourceText, known: Sequence[str]) -> Step:
    """Parse and analyze one step, which may use the tables that are known. Its hints have been processed before.

    Args:
        catalyst: access to Catalyst.
        alias: name of the step, None for the last one.
        source: its text.
        known: names of the inputs and of earlier steps.
    """
    text, tables = _with_plain_names(catalyst, source.text, known)
    parsed = catalyst.parse(without_hints(catalyst, text))
    admit(parsed, source, tables, NondeterministicQuery)
    check_constants(catalyst, parsed, source)
    plan = without_lateral_rows(catalyst, catalyst.analyze(parsed))
    return Step(alias, source, plan, tuple(operators(plan)))


def check_step(catalyst: Catalyst, step: Step, *, is_last: bool) -> None:
    """Refuse a step that is not a function of its inputs, or uses a feature that datasets do not have.

    Args:
        catalyst: the session.
        step: the step.
        is_last: whether its result is that of the transform, whose rows the engine orders itself.

    Raises:
        InvalidQuery, NondeterministicQuery, UnsupportedQuery: the query is at fault.
    """
    check_names(step)
    check_deterministic(catalyst, step.plan, step.source)
    check_ordered(step.plan, step.source)
    check_rows(step.plan, step.source)
    check_ranges(step.plan, step.source)
    check_gaps(catalyst, step.plan, step.source)
    sort = sort_of_result(step.plan) if is_last else None
    if sort is not None:
        raise UnsupportedQuery(
            f"ORDER BY without LIMIT cannot be processed incrementally{place(sort, step.source)}",
            hint="Omit ORDER BY: stored rows have a fixed order, and can be sorted when they are read.",
        )


def check_names(step: Step) -> None:
    """Refuse names reserved for the engine, and the file metadata columns that Spark adds to tables."""
    for operator in step.operators:
        generated = items(operator.node.generatorOutput()) if operator.name == "Generate" else []
        if any(column.name().startswith(RESERVED_PREFIX) for column in generated):
            raise _reserved(operator.node, step)
        for name, node in operator.expressions:
            if name == "Alias" and node.name().startswith(RESERVED_PREFIX):
                raise _reserved(node, step)
            if name == "AttributeReference" and node.metadata().contains("__metadata_col"):
                raise NondeterministicQuery(
                    f"`{node.name()}` depends on how the data is stored in files{place(node, step.source)}"
                )


def _reserved(node: Node, step: Step) -> InvalidQuery:
    return InvalidQuery(f"Names that begin with {RESERVED_PREFIX} are reserved{place(node, step.source)}")


def _parsed_operators(plan: Node) -> Iterator[tuple[str, Node]]:
    yield operator_name(plan), plan
    below = children(plan)
    if operator_name(plan) == "UnresolvedWith":
        below += items(plan.innerChildren())
    for child in below:
        yield from _parsed_operators(child)


def _with_plain_names(catalyst: Catalyst, query: str, known: Sequence[str]) -> tuple[str, set[str]]:
    """Replace dotted names of tables, such as `org.example.trades`, by plain ones; also return all their names.

    To Spark, such a name is a table in a catalog `org`. The dots become underscores, so that positions in the text stay
    the same; the view gets that second name.
    """
    dotted, names = {name for name in known if "." in name and name in query}, set(known)
    if not dotted:
        return query, names
    text = query
    for name, node in _parsed_operators(catalyst.parse(query)):
        written = ".".join(items(node.multipartIdentifier())) if name == _RELATION else ""
        place_in_text = text_range(node)
        if written in dotted and place_in_text is not None and query[slice(*place_in_text)] == written:
            plain = written.replace(".", "_")
            if plain not in known:
                catalyst.name_view(plain, catalyst.plan(catalyst.spark.table(f"`{written}`")))
                names.add(plain)
                text = text[: place_in_text[0]] + plain + text[place_in_text[1] :]
    return text, names
