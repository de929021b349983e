"""The definitions that `dagster dev -f definitions.py` loads."""

import os
from datetime import timedelta

from odf_dagster import Odf, odf_definitions

MAX_AGE = {"com.example.rates": timedelta(days=2)}
"""How old the last rows of a dataset may be; the check `is_fresh` of its asset tells."""

odf = Odf(os.environ.get("ODF_WORKSPACE", "."), os.environ.get("ODF_PROGRAM", "odf"))
defs = odf_definitions(odf, {name: age for name, age in MAX_AGE.items() if name in odf.list()})
