"""What a transform's queries are: parsed and analyzed by Spark, checked, classified (design: "Steps").

Everything is decided on Spark's analyzed plan, never on the text. The text is looked at only to show places in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from odfpy.dataset.transform import SqlQueryStep, TransformSql
from odfpy.engine.source_text import SourceText, step_texts
from odfpy.engine.spark.arguments import why_unsafe
from odfpy.engine.spark.catalyst import Catalyst, Node, children, items, operator_name, text_range
from odfpy.engine.spark.classes import CLASSES
from odfpy.engine.spark.classes.base import RESERVED_PREFIX, QueryClass, Step
from odfpy.engine.spark.determinism import check_deterministic, check_ordered, place
from odfpy.engine.spark.failures import HOW_TO_JOIN_VERSIONS, spark_errors
from odfpy.engine.spark.hints import without_hints
from odfpy.engine.spark.operators import QUERY_OPERATORS, obstacle, operators, with_subqueries
from odfpy.errors import InvalidQuery, NondeterministicQuery, UnsupportedQuery

_RELATION: Final = "analysis.UnresolvedRelation"
Looked = TypeVar("Looked")


@dataclass(frozen=True, slots=True)
class ClassifiedStep:
    """A step, its class, and why it is of that class; without a class it is not row by row."""

    step: Step
    query_class: QueryClass | None
    reason: str


def classify_transform(catalyst: Catalyst, transform: TransformSql, inputs: Sequence[str]) -> list[ClassifiedStep]:
    """Analyze all steps of a transform; each sees the inputs and the steps before it.

    Args:
        catalyst: a session in which the inputs have been named.
        transform: the queries.
        inputs: names of the inputs.

    Raises:
        InvalidQuery: a query does not parse, or names what is not there.
        NondeterministicQuery: a query's result would not be a function of its inputs.
    """
    return each_step(catalyst, transform, inputs, lambda step: _classify(catalyst, step))


def each_step(
    catalyst: Catalyst, transform: TransformSql, inputs: Sequence[str], look: Callable[[Step], Looked]
) -> list[Looked]:
    """Analyze the steps of a transform one by one; each sees the inputs and the steps before it.

    Args:
        catalyst: a session in which the inputs have been named.
        transform: the queries.
        inputs: names of the inputs.
        look: what is to be found out about an analyzed step.

    Raises:
        InvalidQuery: a query does not parse, or names what is not there; and whatever `look` raises.
    """
    if transform.temporal_tables:
        raise UnsupportedQuery(
            "Temporal tables are for derivative datasets: rows that are read have no versions yet",
            hint="Leave `temporalTables` out, and join in a dataset that is derived from this one.",
        )
    steps = transform.steps
    check_aliases(steps, inputs)
    known, found = list(inputs), []
    for source, step in zip(step_texts(transform), steps, strict=True):
        with spark_errors([source]):
            analyzed = analyzed_step(catalyst, step.alias, source, known)
            found.append(look(analyzed))
            if step is not steps[-1] and step.alias is not None:
                catalyst.name_view(step.alias, analyzed.plan)
                known.append(step.alias)
    return found


def analyze_query(
    catalyst: Catalyst, source: SourceText, tables: Sequence[str], shown: SourceText | None = None
) -> Node:
    """The analyzed plan of one query of any class.

    Args:
        catalyst: a session in which the tables have been named.
        source: the query.
        tables: their names.
        shown: the query as its author wrote it, with the same places.

    Raises:
        InvalidQuery: it does not parse, is no query, names what is not there, or would run code from elsewhere.
    """
    shown = shown or source
    with spark_errors([shown]):
        parsed = catalyst.parse(_with_plain_names(catalyst, source.text, tables))
        _check_is_query(parsed, shown)
        plan = catalyst.analyze(parsed)
        for operator in with_subqueries(plan):
            for name, node in operator.expressions:
                if (reason := why_unsafe(name, node)) is not None:
                    raise InvalidQuery(f"`{node.prettyName()}` {reason}{place(node, shown)}")
        return plan


def check_aliases(steps: Sequence[SqlQueryStep], inputs: Sequence[str]) -> None:
    """Refuse steps that no later one can name, or two of one name."""
    taken = set(inputs)
    if len(taken) < len(inputs):
        raise InvalidQuery("Two inputs have the same alias", hint="Give each input an alias of its own.")
    for number, step in enumerate(steps[:-1], start=1):
        if step.alias is None:
            raise InvalidQuery(
                f"Step {number} has no alias, so that no later step can use it", hint="Only the last may."
            )
        if step.alias in taken:
            raise InvalidQuery(f"Step {number} has the alias `{step.alias}`, which is taken already")
        taken.add(step.alias)


def analyzed_step(catalyst: Catalyst, alias: str | None, source: SourceText, known: Sequence[str]) -> Step:
    """One step, parsed and analyzed; what it may name are the tables that are known. Hints have been looked at."""
    parsed = catalyst.parse(without_hints(catalyst, _with_plain_names(catalyst, source.text, known)))
    _check_is_query(parsed, source)
    plan = catalyst.analyze(parsed)
    return Step(alias, source, plan, tuple(operators(plan)))


def _classify(catalyst: Catalyst, step: Step) -> ClassifiedStep:
    check_names(step)
    check_deterministic(catalyst, step.plan, step.source)
    check_ordered(with_subqueries(step.plan), step.source)
    for query_class in CLASSES:
        reason = query_class.classify(step)
        if reason is not None:
            return ClassifiedStep(step, query_class, reason)
    found = [what for operator in with_subqueries(step.plan) if (what := obstacle(operator)) is not None]
    for what in found:
        if not what.deterministic:
            message = f"{what.what} does not give the same rows every time{place(what.node, step.source)}"
            raise NondeterministicQuery(message, hint=what.hint)
    return ClassifiedStep(step, None, found[0].what)


def check_names(step: Step) -> None:
    """Refuse names that are the engine's own, and the file metadata that Spark shows beside a table's columns."""
    for operator in step.operators:
        made = items(operator.node.generatorOutput()) if operator.name == "Generate" else []
        if any(column.name().startswith(RESERVED_PREFIX) for column in made):
            raise _reserved(operator.node, step)
        for name, node in operator.expressions:
            if name == "Alias" and node.name().startswith(RESERVED_PREFIX):
                raise _reserved(node, step)
            if name == "AttributeReference" and node.metadata().contains("__metadata_col"):
                raise NondeterministicQuery(
                    f"`{node.name()}` depends on how the data lies in files{place(node, step.source)}"
                )


def _reserved(node: Node, step: Step) -> InvalidQuery:
    return InvalidQuery(f"Names that begin with {RESERVED_PREFIX} are reserved{place(node, step.source)}")


def _check_is_query(parsed: Node, source: SourceText) -> None:
    for name, node in _parsed_operators(parsed):
        if name.endswith("RelationTimeTravel"):
            raise InvalidQuery(f"Inputs have no time travel{place(node, source)}", hint=HOW_TO_JOIN_VERSIONS)
        if name not in QUERY_OPERATORS:
            what = name.rsplit(".", 1)[-1]
            raise InvalidQuery(
                f"Only queries are allowed, and {what} is none{place(node, source)}",
                hint="Write a SELECT; statements such as SET, CREATE, INSERT or scripts are not run.",
            )


def _parsed_operators(plan: Node) -> Iterator[tuple[str, Node]]:
    yield operator_name(plan), plan
    below = children(plan)
    if operator_name(plan) == "UnresolvedWith":
        below += items(plan.innerChildren())
    for child in below:
        yield from _parsed_operators(child)


def _with_plain_names(catalyst: Catalyst, query: str, known: Sequence[str]) -> str:
    """The query with names such as `org.example.trades`, written without quotes, as names of tables.

    To Spark they are tables in a catalog `org`. The dots become underscores, so that all places in the text stay
    where they are; the view gets that second name.
    """
    dotted = {name for name in known if "." in name and name in query}
    if not dotted:
        return query
    text = query
    for name, node in _parsed_operators(catalyst.parse(query)):
        written = ".".join(items(node.multipartIdentifier())) if name == _RELATION else ""
        place_in_text = text_range(node)
        if written in dotted and place_in_text is not None and query[slice(*place_in_text)] == written:
            plain = written.replace(".", "_")
            if plain not in known:
                catalyst.name_view(plain, catalyst.plan(catalyst.spark.table(f"`{written}`")))
                text = text[: place_in_text[0]] + plain + text[place_in_text[1] :]
    return text
