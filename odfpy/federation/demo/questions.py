"""Example queries for the reference web, each in the schema of the relay that it is sent to."""

from __future__ import annotations

from typing import Final

_Q1: Final = """\
SELECT returnflag, linestatus, sum(quantity) AS sum_qty, sum(extendedprice) AS sum_base_price,
  sum(extendedprice * (1 - {discount})) AS sum_disc_price,
  sum(extendedprice * (1 - {discount}) * (1 + {tax})) AS sum_charge,
  avg(quantity) AS avg_qty, avg(extendedprice) AS avg_price, avg({discount}) AS avg_disc, count(*) AS count_order
FROM lineitem WHERE shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY
GROUP BY returnflag, linestatus ORDER BY returnflag, linestatus"""

_Q3: Final = """\
SELECT l.orderkey, sum(l.extendedprice * (1 - {discount})) AS revenue, o.orderdate, o.shippriority
FROM customer AS c JOIN orders AS o ON c.custkey = o.custkey JOIN lineitem AS l ON l.orderkey = o.orderkey
WHERE c.mktsegment = 'BUILDING' AND o.orderdate < DATE '1995-03-15' AND l.shipdate > DATE '1995-03-15'
GROUP BY l.orderkey, o.orderdate, o.shippriority ORDER BY revenue DESC, o.orderdate LIMIT 10"""

FIRST_LINES: Final = "SELECT linenumber, tax_amount FROM lineitem WHERE tax_percent > 3 LIMIT 10"
"""A question to na or na_us."""

FILES: Final = {
    "q1_percent.sql": _Q1.format(discount="discount_percent / 100", tax="tax_percent / 100"),
    "q3_percent.sql": _Q3.format(discount="l.discount_percent / 100"),
    "q1_fractions.sql": _Q1.format(discount="discount", tax="tax"),
    "q3_fractions.sql": _Q3.format(discount="l.discount"),
}
"""Queries 1 and 3 of TPC-H, by name of a file: in percent for na and na_us, in fractions for global."""
