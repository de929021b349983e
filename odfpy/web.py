"""The web of relays for programs: `odfpy.web.connect(...)` (ADR 0042)."""

from __future__ import annotations

from odfpy.federation.client import Web, WebAnswer, connect

__all__ = ["Web", "WebAnswer", "connect"]
