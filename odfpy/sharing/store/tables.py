"""The tables of the database after the newest migration; a test compares both."""

from __future__ import annotations

import sqlalchemy as sa

_CONVENTION = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
METADATA = sa.MetaData(naming_convention=_CONVENTION)


def _parent(name: str, to: str) -> sa.Column[int]:
    return sa.Column(name, sa.ForeignKey(f"{to}.id", ondelete="CASCADE"), nullable=False, index=True)


# Times are nanoseconds since 1970, as everywhere in odfpy: both databases sort and compare them alike.

PRINCIPALS = sa.Table(
    "principals",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("folded", sa.String(255), nullable=False, unique=True),
    sa.Column("attributes", sa.JSON, nullable=False),
    sa.Column("password_hash", sa.Text),
    sa.Column("is_admin", sa.Boolean, nullable=False),
    sa.Column("is_disabled", sa.Boolean, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
)

MEMBERS = sa.Table(
    "members",
    METADATA,
    sa.Column("group_id", sa.ForeignKey("principals.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("member_id", sa.ForeignKey("principals.id", ondelete="CASCADE"), primary_key=True, index=True),
)

TOKENS = sa.Table(
    "tokens",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    _parent("principal_id", "principals"),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("expires_at", sa.BigInteger),
    sa.Column("revoked_at", sa.BigInteger),
    sa.Column("is_login", sa.Boolean, nullable=False, server_default=sa.false()),
)

ACTIVATIONS = sa.Table(
    "activations",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    _parent("principal_id", "principals"),
    sa.Column("hash", sa.String(64), nullable=False, unique=True),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("expires_at", sa.BigInteger, nullable=False),
    sa.Column("token_lifetime", sa.BigInteger),
    sa.Column("used_at", sa.BigInteger),
)

SHARES = sa.Table(
    "shares",
    METADATA,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("folded", sa.String(255), nullable=False, unique=True),
    sa.Column("comment", sa.Text, nullable=False),
)

SCHEMAS = sa.Table(
    "schemas",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("share_id", sa.ForeignKey("shares.id", ondelete="CASCADE"), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("folded", sa.String(255), nullable=False),
    sa.UniqueConstraint("share_id", "folded"),
)

SHARED_TABLES = sa.Table(
    "shared_tables",
    METADATA,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("schema_id", sa.ForeignKey("schemas.id", ondelete="CASCADE"), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("folded", sa.String(255), nullable=False),
    sa.Column("kind", sa.String(10), nullable=False),
    sa.Column("location", sa.Text, nullable=False),
    sa.Column("shown", sa.String(10), nullable=False),
    sa.Column("at", sa.String(255)),
    sa.Column("comment", sa.Text, nullable=False),
    sa.UniqueConstraint("schema_id", "folded"),
)

GRANTS = sa.Table(
    "grants",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    _parent("principal_id", "principals"),
    sa.Column("share_id", sa.ForeignKey("shares.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("schema_id", sa.ForeignKey("schemas.id", ondelete="CASCADE"), index=True),
    sa.Column("table_id", sa.ForeignKey("shared_tables.id", ondelete="CASCADE"), index=True),
    sa.Column("columns", sa.JSON(none_as_null=True)),
    sa.Column("rows", sa.Text),
    sa.Column("created_at", sa.BigInteger, nullable=False),
)

SERVED_HISTORIES = sa.Table(
    "served_histories",
    METADATA,
    sa.Column("dataset_id", sa.String(255), primary_key=True),
    sa.Column("at", sa.String(255), primary_key=True),
    sa.Column("head", sa.String(255), nullable=False),
    sa.Column("sequence_number", sa.BigInteger, nullable=False),
    sa.Column("base", sa.BigInteger, nullable=False),
)
