"""Whether the server lives."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from odfpy import __version__

router = APIRouter(tags=["server"])


class Health(BaseModel):
    """What a server says of itself."""

    status: str = "ok"
    version: str = __version__


@router.get("/health")
async def health() -> Health:
    """Alive, and of which release."""
    return Health()
