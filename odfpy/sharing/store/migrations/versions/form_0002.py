"""Tokens that were issued for a password, and expire with it."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column; existing tokens were not issued for a password."""
    op.add_column("tokens", sa.Column("is_login", sa.Boolean, nullable=False, server_default=sa.false()))
