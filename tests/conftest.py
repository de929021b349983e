"""Shared test configuration."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).resolve().parent))

# The machine may be busy with other tests: how long an example takes says nothing.
settings.register_profile("odfpy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("odfpy")
