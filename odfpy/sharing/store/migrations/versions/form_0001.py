"""The first version of the schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "principals",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("folded", sa.String(255), nullable=False),
        sa.Column("attributes", sa.JSON, nullable=False),
        sa.Column("password_hash", sa.Text),
        sa.Column("is_admin", sa.Boolean, nullable=False),
        sa.Column("is_disabled", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_principals"),
        sa.UniqueConstraint("folded", name="uq_principals_folded"),
    )
    op.create_table(
        "members",
        sa.Column("group_id", sa.Integer, nullable=False),
        sa.Column("member_id", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("group_id", "member_id", name="pk_members"),
        _reference("members", "group_id", "principals"),
        _reference("members", "member_id", "principals"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("principal_id", sa.Integer, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("hash", name="uq_tokens_hash"),
        _reference("tokens", "principal_id", "principals"),
    )
    op.create_table(
        "activations",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("principal_id", sa.Integer, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("token_lifetime", sa.BigInteger),
        sa.Column("used_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_activations"),
        sa.UniqueConstraint("hash", name="uq_activations_hash"),
        _reference("activations", "principal_id", "principals"),
    )
    op.create_table(
        "shares",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("folded", sa.String(255), nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_shares"),
        sa.UniqueConstraint("folded", name="uq_shares_folded"),
    )
    op.create_table(
        "schemas",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("share_id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("folded", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_schemas"),
        sa.UniqueConstraint("share_id", "folded", name="uq_schemas_share_id_folded"),
        _reference("schemas", "share_id", "shares"),
    )
    op.create_table(
        "shared_tables",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("schema_id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("folded", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.Column("shown", sa.String(10), nullable=False),
        sa.Column("at", sa.String(255)),
        sa.Column("comment", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_shared_tables"),
        sa.UniqueConstraint("schema_id", "folded", name="uq_shared_tables_schema_id_folded"),
        _reference("shared_tables", "schema_id", "schemas"),
    )
    op.create_table(
        "grants",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("principal_id", sa.Integer, nullable=False),
        sa.Column("share_id", sa.String(36), nullable=False),
        sa.Column("schema_id", sa.Integer),
        sa.Column("table_id", sa.String(36)),
        sa.Column("columns", sa.JSON),
        sa.Column("rows", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_grants"),
        _reference("grants", "principal_id", "principals"),
        _reference("grants", "share_id", "shares"),
        _reference("grants", "schema_id", "schemas"),
        _reference("grants", "table_id", "shared_tables"),
    )
    for table, columns in {
        "members": ("member_id",),
        "tokens": ("principal_id",),
        "activations": ("principal_id",),
        "grants": ("principal_id", "share_id", "schema_id", "table_id"),
    }.items():
        for column in columns:
            op.create_index(f"ix_{table}_{column}", table, [column])


def _reference(table: str, column: str, to: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{to}.id"], name=f"fk_{table}_{column}", ondelete="CASCADE")
