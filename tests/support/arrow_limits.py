"""Features missing in the installed pyarrow: older permitted releases lack some layouts of columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from hypothesis import reject

from odfpy.data.slices.parquet_io import UPGRADE, lacks_code
from odfpy.errors import OdfError

CAN_DO_ALL = int(pa.__version__.partition(".")[0]) >= 24


@contextmanager
def as_far_as_arrow_can() -> Iterator[None]:
    """Leave an example out that pyarrow cannot do, of a release that is known to lack something."""
    try:
        yield
    except (pa.ArrowException, OdfError) as error:
        is_a_limit = lacks_code(error) or (isinstance(error, OdfError) and error.hint == UPGRADE)
        if CAN_DO_ALL or not is_a_limit:
            raise
        reject()
