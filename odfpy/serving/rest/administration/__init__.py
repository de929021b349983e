"""Administration over REST: shares, principals, grants, access tokens, the audit log, repositories, the machine.

Only admins have access. Every change or preview is recorded in the audit log, permitted or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter

from odfpy.serving.rest.administration import (
    access_tokens,
    audit,
    grants,
    principals,
    profiles,
    repositories,
    shared_tables,
    shares,
    system,
    table_preview,
)

ROUTERS: Sequence[APIRouter] = (
    shares.router,
    shared_tables.router,
    grants.router,
    access_tokens.router,
    audit.router,
    repositories.router,
    system.router,
    principals.router,
    profiles.router,
    table_preview.router,
)
"""All routers below `/platform`. Those whose paths begin with a variable come last."""
