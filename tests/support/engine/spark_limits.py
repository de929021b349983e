"""Features missing in the installed Spark: 4.2, which Python 3.10 needs, has fewer functions and casts than 4.3."""

from __future__ import annotations

from importlib.metadata import version

HAS_ALL = tuple(map(int, version("pyspark").split(".")[:2])) >= (4, 3)

NEW_FUNCTIONS = frozenset(
    [
        "collect_union",
        "counter_diff",
        "from_base32",
        "hmac",
        "jaro_winkler_similarity",
        "localtime",
        "timestamp_nanos",
        "to_base32",
        "try_variant_array_append",
        "try_variant_insert",
        "try_variant_set",
        "unix_nanos",
        "variant_array_append",
        "variant_delete",
        "variant_insert",
        "variant_set",
        "variant_strip_nulls",
    ]
)
"""Those of Spark 4.3 that 4.2 does not have."""

LACKING = frozenset() if HAS_ALL else NEW_FUNCTIONS
