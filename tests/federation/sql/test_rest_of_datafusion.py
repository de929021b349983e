"""What is left of a question for the client means in DataFusion what the question itself means there."""

from __future__ import annotations

import datafusion
import pyarrow as pa
import pytest

from odfpy.federation.sql.split import split

ROWS = pa.table({
    "k": [1, 2, 3, 4],
    "n": pa.array([5, -6, None, 8], pa.int32()),
    "x": [1.5, 2.0 / 3, float("nan"), None],
    "word": ["Abc", None, "7", "cab"],
    "at": pa.array([0, 10**15, None, 1], pa.timestamp("us")),
})  # fmt: skip
QUESTIONS = [
    "SELECT k, round(x, 2) AS a, round(x, 12) AS b, round(x) AS c FROM e",
    "SELECT round(avg(x), 12) AS a, round(sum(CAST(k AS DOUBLE)) / 3, 15) AS b FROM e WHERE k < 3",
    "SELECT round(max(x), 2) AS a, round(1e300 * max(k), 2) AS b FROM e",
    "SELECT k, to_char(at, '%d.%m.%Y %H') AS a FROM e",
    "SELECT to_date('05/06/2024', '%d/%m/%Y') AS a, to_timestamp('2024-01-02 03', '%Y', '%Y-%m-%d %H') AS b FROM e",
    "SELECT k ^ 3 AS a, k ^ 1 | 4 & 6 AS b, 2 * k ^ 5 AS c FROM e",
    "SELECT first_value(word) IGNORE NULLS OVER (ORDER BY k ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS a FROM e",
    "SELECT nth_value(word, 2) RESPECT NULLS OVER (ORDER BY k) AS a FROM e",
    "SELECT TRY_CAST(word AS INT) AS a FROM e",
    "SELECT CAST(x AS FLOAT) AS a, CAST(x AS REAL) AS b, CAST(k AS TINYINT) AS c FROM e",
    "SELECT CAST(k AS INT UNSIGNED) AS a, CAST(k AS BIGINT UNSIGNED) AS b, CAST(k AS TINYINT UNSIGNED) AS c FROM e",
    "SELECT k FROM e WHERE CAST(x AS FLOAT) = CAST(0.6666667 AS FLOAT)",
    "SELECT isnan(x) AS a, signum(k) AS b, to_hex(k) AS c, log10(k * 1000) AS d, log2(k) AS e FROM e",
    "SELECT k FROM e WHERE regexp_like(word, 'A', 'i') ORDER BY k LIMIT 1",
    "SELECT array_sort(make_array(n, 1), 'DESC', 'NULLS LAST') AS a FROM e",
    "SELECT to_hex(count(*)) AS a, to_char(max(at), '%Y') AS b FROM e",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_rest_has_the_rows_and_types_of_the_question(question: str) -> None:
    parts = split(question, {"e": ROWS.schema})
    context = datafusion.SessionContext()
    context.register_record_batches("e", [ROWS.to_batches()])
    for name, fragment in parts.fragments.items():
        columns = ", ".join(f'{_written(one.expression)} AS "{one.name}"' for one in fragment.outputs)
        where = "" if fragment.where is None else f" WHERE {_written(fragment.where)}"
        context.register_view(name, context.sql(f"SELECT {columns} FROM e{where}"))
    wanted, found = (pa.table(context.sql(text)) for text in (question, parts.rest))
    assert (found.schema.names, found.schema.types) == (wanted.schema.names, wanted.schema.types)
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


def _written(expression: object) -> str:
    from odfpy.federation.sql.engines import writer_of

    return writer_of("datafusion").write(expression)  # type: ignore[arg-type]


def test_functions_that_are_kept_as_they_are_let_sources_sum_up() -> None:
    parts = split("SELECT word, to_hex(count(*)) AS n, round(sum(x), 2) AS s FROM e GROUP BY word", {"e": ROWS.schema})
    [fragment] = parts.fragments.values()
    assert fragment.is_grouped
    parts = split("SELECT k, to_char(at, '%Y') AS y FROM e ORDER BY k LIMIT 3", {"e": ROWS.schema})
    [fragment] = parts.fragments.values()
    assert fragment.limit == 3
