"""What DataFusion says of a query that is wrong comes with the place, and with what to try."""

from __future__ import annotations

import pyarrow as pa
import pytest

from odfpy.engine.datafusion.failures import datafusion_errors
from odfpy.engine.datafusion.session import name_rows, new_session, rows_in_order, run_query
from odfpy.engine.sql.source_text import SourceText
from odfpy.errors import InvalidQuery

ROWS = pa.RecordBatch.from_pylist(
    [{"id": 1, "side": "SELL", "at": None, "My Col": 3, "many": [1]}],
    pa.schema(
        [
            ("id", pa.int64()),
            ("side", pa.string()),
            ("at", pa.timestamp("ms", "UTC")),
            ("My Col", pa.int32()),
            ("many", pa.list_(pa.int32())),
        ]
    ),
)


def error_of(query: str) -> InvalidQuery:
    context = new_session(deterministic=False)
    name_rows(context, "t", ROWS.schema, [ROWS])

    def plan_with(start: int, end: int, text: str) -> object:
        return run_query(context, query[:start] + text + query[end:]).optimized_logical_plan()

    with pytest.raises(InvalidQuery) as raised, datafusion_errors(SourceText(query), plan_with):
        list(rows_in_order(run_query(context, query)))
    return raised.value


@pytest.mark.parametrize(
    ("marked", "says", "hint"),
    [
        # columns
        ("select [sied] from t", "No field named sied", "Did you mean side"),
        ("select id, [u.sied] from t u", "No field named u.sied", "Did you mean side"),
        ("select [x.id] from t", "No field named x.id", "Did you mean t.id?"),
        ("select 'idd', id from t where [idd] > 1", "No field named idd", "Did you mean id"),
        ('select [t."My Co"] from t', 'No field named t."My Co"', "Did you mean My Col?"),
        ('select * from t where side = ["SELL"]', 'No field named "SELL"', "Texts are written in single quotes"),
        ("select [`no such`] from t", 'No field named "no such"', "There are t.id"),
        ("select [u].* from t", "Invalid qualifier u", "its name or alias"),
        ("select [Side] from t", 'No field named "Side"', "Did you mean side?"),
        ("select [id] from t a join t b on a.id = b.id", "Ambiguous reference", "alias of a table"),
        ("select side, [id] from t group by side", "`t.id` is neither in GROUP BY", "max(...)"),
        ("select [id], id from t", "Two columns of the result are called `t.id`", "with AS"),
        # functions
        ("select [summ](id), sum(id) from t", "There is no function `summ`", "Did you mean sum?"),
        ("select [nothing_like_it](id) from t", "There is no function", "the engine spark"),
        ("select [row_number]() from t", "There is no function", "OVER (ORDER BY"),
        ("select sqrt(id), [sqrt](side) from t", "There is no function `sqrt(Utf8)`", "sqrt(Float64/Float32)"),
        ("select upper(side), [length](id, 3) from t", "`character_length(Int64, Int64)`", "character_length(String)"),
        ("select * from [read_csv]('/etc/passwd')", "no table function `read_csv`", "cannot be read by path"),
        ("select [sum](sum(id)) from t", "cannot be nested", "subquery"),
        # types
        ("select id + 1, side [+] 1 from t", "Utf8 + Int64", "CAST"),
        ("select id = 1, id [=] true from t", "Int64 = Boolean", "CAST"),
        ("select [not] id from t", "NOT", None),
        ("select side [like] 3 from t", "LIKE", "CAST"),
        ("select * from t where [side]", "`t.side` is not a condition, it is Utf8", "comparison"),
        ("select * from t where id = ['abc']", "'abc' to value of Int64", "try_cast"),
        ("select 'abc' as x, cast(['abc'] as int)", "'abc' to value of Int32", "try_cast"),
        ("select [cast](side as int) from t", "'SELL' to value of Int32", "try_cast"),
        ("select * from t where at > ['soon']", "Error parsing timestamp from 'soon'", "2024-03-01T12:00:00Z"),
        ("select to_timestamp(['x'], 'yyyy')", "from 'x' using format", "2024-03-01T12:00:00Z"),
        ("select [count](distinct id, side) from t", "multiple arguments", "one column"),
        ("select id [/] 0 from t", "Divide by zero", "NULLIF"),
        # clauses
        ("select id from t [limit] 'a'", "LIMIT", "whole number"),
        ("select id from t order by [5]", "out of bounds", None),
        ("select id from t [where] sum(id) > 3", "HAVING", None),
        ("select id from t [union] select id, side from t", "different number of columns", "same number of columns"),
        ("select id from t where id in [(select] id, side from t)", "only return one column", "Select one column"),
        # syntax
        ("[s]elct id from t", "Expected: an SQL statement", "Did you mean SELECT?"),
        ("select * [f]orm t", "found: form", "Did you mean FROM?"),
        ("select * from t wher [i]d > 3", "found: id", "Did you mean WHERE?"),
        ("select *\nfrom t\nwhere[ ]", "found: the end", None),
        ("select 'ü', [']abc from t", "Unterminated string literal", None),
    ],
)
def test_what_is_wrong_has_a_place_and_a_hint(marked: str, says: str, hint: str | None) -> None:
    """The place is marked with brackets."""
    error = error_of(marked.replace("[", "").replace("]", "").rstrip())
    assert says in error.message
    *_, line, carets = error.message.splitlines()
    place = marked.rpartition("[")[0].rpartition("\n")[2]
    assert line.strip().startswith(place.strip())
    assert carets.index("^") - 4 == len(place), error.message
    if (width := marked.index("]") - marked.index("[") - 1) > 1:
        assert carets.count("^") == width, error.message
    assert hint is None or hint in str(error.hint), error.hint


def test_a_query_nests_as_deeply_as_programs_write_it_and_no_deeper() -> None:
    context = new_session(deterministic=False)
    name_rows(context, "t", ROWS.schema, [ROWS])
    for begin, end in (("abs(", ")"), ("(", ")"), ("case when true then ", " end")):
        assert run_query(context, "select " + begin * 150 + "id" + end * 150 + " from t") is not None
    for begin in ("abs(", "("):
        error = error_of("select " + begin * 300 + "id" + ")" * 300 + " from t")
        assert error.message == "The query nests too deeply for DataFusion"
        assert "queries of WITH" in str(error.hint)


@pytest.mark.parametrize("late", ["timestamp '9999-12-31'", "date '9999-12-31' > timestamp '2024-01-01'"])
def test_times_that_nanoseconds_cannot_count_have_a_hint(late: str) -> None:
    assert "arrow_cast" in str(error_of(f"select {late} from t").hint)


def test_a_place_that_cannot_be_told_is_not_guessed() -> None:
    """Of two divisions, each of which may have gone wrong with the rows, none is blamed."""
    error = error_of("select id / (id - 1), id / (id - 2) from t where id = 1")
    assert error.message == "Divide by zero error"
    assert "NULLIF" in str(error.hint)
