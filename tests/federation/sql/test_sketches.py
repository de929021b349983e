"""Counting different values by sketches: about 1.6 % wrong, the same from every engine and however rows are divided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support.federation.answers import answered, cast_to, run_datafusion, run_duckdb
from support.federation.questions import conditions
from support.federation.questions import quoted as columns_quoted
from support.federation.sketches import ENGINES, estimate_of, sketch_fragment, sketch_in, sketch_of, sketch_sql
from support.federation.worlds import (
    ATTRIBUTES,
    BOOL,
    DATE,
    DOUBLE,
    EXACT,
    INT,
    SMALL,
    TEXT,
    TIME,
    Hop,
    Source,
    Step,
    World,
    worlds,
)

from odfpy.federation.sql.fragment import explained
from odfpy.federation.sql.split import split
from odfpy.sharing.decisions import View, VisiblePart
