"""The state of a relay (`odfpy.federation.store.tables`)."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the tables of relays; those of sharing are unchanged."""
    op.create_table(
        "web_objects",
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("folded", sa.String(1000), nullable=False),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("kind", "folded", name="pk_web_objects"),
    )
    op.create_table(
        "web_applies",
        sa.Column("revision", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("action", sa.String(50), nullable=False),
        sa.Column("steps", sa.JSON, nullable=False),
        sa.Column("is_recorded", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("revision", name="pk_web_applies"),
    )
    op.create_table(
        "web_certificates",
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("folded", sa.String(255), nullable=False),
        sa.Column("pem", sa.Text, nullable=False),
        sa.Column("is_declared", sa.Boolean, nullable=False),
        sa.Column("added_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name="pk_web_certificates"),
    )
    op.create_table(
        "web_revocations",
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("revoked_at", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name="pk_web_revocations"),
    )
    for name in ("web_queries", "web_tickets"):
        op.create_table(
            name,
            sa.Column("id", sa.String(128), nullable=False),
            sa.Column("expires_at", sa.BigInteger, nullable=False),
            sa.PrimaryKeyConstraint("id", name=f"pk_{name}"),
        )
    op.create_table(
        "web_results",
        sa.Column("id", sa.String(128), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_web_results"),
    )
    for table, column in (
        ("web_applies", "is_recorded"),
        ("web_certificates", "folded"),
        ("web_queries", "expires_at"),
        ("web_tickets", "expires_at"),
        ("web_results", "owner"),
        ("web_results", "expires_at"),
    ):
        op.create_index(f"ix_{table}_{column}", table, [column])
