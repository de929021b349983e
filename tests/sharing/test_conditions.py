"""Conditions on rows: what they may be, and that they are the same for everybody but for the attributes."""

from __future__ import annotations

import pytest

from odfpy.sharing.conditions import check_condition, columns_of, condition_sql
from odfpy.sharing.errors import InvalidCondition


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a = 1", '"a" = 1'),
        ("a = 1 -- all of it", '"a" = 1'),
        ("a IN ('x', 'y') OR NOT b LIKE 'z%'", "\"a\" IN ('x', 'y') OR NOT \"b\" LIKE 'z%'"),
        ("lower(a) = recipient('country')", "LOWER(\"a\") = 'D''E'"),
        ("a = recipient('nothing')", '"a" = NULL'),
        ("d >= DATE '2024-01-01'", "\"d\" >= CAST('2024-01-01' AS DATE)"),
        ('"A b" BETWEEN 1 AND 2 + c', '"A b" BETWEEN 1 AND 2 + "c"'),
    ],
)
def test_conditions_of_columns_and_constants(text: str, written: str) -> None:
    assert condition_sql(check_condition(text), {"country": "D'E"}) == written


@pytest.mark.parametrize(
    "text",
    [
        "", "  ", "a = (SELECT 1)", "EXISTS (SELECT 1)", "a IN (SELECT b FROM c)", "random() > 0.5", "a = now()",
        "read_csv('/etc/passwd') = 1", "1 = 1; DROP TABLE x", "a = 1 LIMIT 3", "a = 1 ORDER BY a", "a GROUP BY 1",
        "a UNION SELECT 1", "t.a = 1", "a = ?", "a = $1", "recipient(a) = 1", "recipient('x', 'y') = 1", "a = 1) OR (1 = 1",
        "current_user = 'x'", "CASE WHEN a THEN b END", "a = [1]", "regexp_matches(a, '(x+)+')", "a" * 100_000,
        "(" * 5000 + "a" + ")" * 5000, "getenv('HOME') = 'x'", "a = 1 QUALIFY TRUE", "a = 1 WINDOW w AS ()",
    ],
)  # fmt: skip
def test_nothing_else_is_a_condition(text: str) -> None:
    with pytest.raises(InvalidCondition) as caught:
        check_condition(text)
    assert caught.value.code == "E761"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("(total > 10", "expecting ) near `10`"),
        ("total = = 10", "something is missing near `=`"),
        ("a = 'x", "a quote has no end, perhaps"),
        ("", "something is missing"),
    ],
)
def test_what_the_parser_says_of_a_condition_is_told(text: str, why: str) -> None:
    with pytest.raises(InvalidCondition) as caught:
        check_condition(text)
    assert caught.value.message == f"Not a condition on rows ({why}): {text}"


def test_columns_have_to_be_there() -> None:
    assert columns_of("a = 1 AND B > c") == {"a", "B", "c"}
    check_condition("A = 1", ["a", "b"])
    with pytest.raises(InvalidCondition, match="no column 'regin'") as caught:
        check_condition("regin = 'eu'", ["region", "total"])
    assert caught.value.hint == "Did you mean region?"
