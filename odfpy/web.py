"""The web of relays for programs: `odfpy.web.connect(...)` (ADR 0042)."""

from __future__ import annotations

from odfpy.federation.asking.answer import WebAnswer
from odfpy.federation.client import Web, connect, verify

__all__ = ["Web", "WebAnswer", "connect", "verify"]
