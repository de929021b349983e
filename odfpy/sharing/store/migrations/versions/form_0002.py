"""Tokens that came of a password, and end with it."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column; the tokens that there are came of no password."""
    op.add_column("tokens", sa.Column("is_login", sa.Boolean, nullable=False, server_default=sa.false()))
