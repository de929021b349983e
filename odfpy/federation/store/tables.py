"""The database tables of a relay, as of the newest migration (`odfpy.sharing.store.migrations`)."""

from __future__ import annotations

from odfpy.errors import OdfError
from odfpy.extras import needs_extra
from odfpy.sharing.store.tables import METADATA

with needs_extra("federation", "Relays", OdfError):
    import sqlalchemy as sa

# Times are nanoseconds since the epoch, as in all tables of this database.

OBJECTS = sa.Table(
    "web_objects",
    METADATA,
    sa.Column("kind", sa.String(20), primary_key=True),
    sa.Column("folded", sa.String(1000), primary_key=True),
    sa.Column("spec", sa.JSON, nullable=False),
)

APPLIES = sa.Table(
    "web_applies",
    METADATA,
    sa.Column("revision", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("id", sa.String(36), nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("action", sa.String(50), nullable=False),
    sa.Column("steps", sa.JSON, nullable=False),
    sa.Column("is_recorded", sa.Boolean, nullable=False, index=True),
)

CERTIFICATES = sa.Table(
    "web_certificates",
    METADATA,
    sa.Column("fingerprint", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(20), nullable=False),
    sa.Column("folded", sa.String(255), nullable=False, index=True),
    sa.Column("pem", sa.Text, nullable=False),
    sa.Column("is_declared", sa.Boolean, nullable=False),
    sa.Column("added_at", sa.BigInteger, nullable=False),
)

REVOCATIONS = sa.Table(
    "web_revocations",
    METADATA,
    sa.Column("fingerprint", sa.String(64), primary_key=True),
    sa.Column("revoked_at", sa.BigInteger, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
)

QUERIES = sa.Table(
    "web_queries",
    METADATA,
    sa.Column("id", sa.String(128), primary_key=True),
    sa.Column("expires_at", sa.BigInteger, nullable=False, index=True),
)

TICKETS = sa.Table(
    "web_tickets",
    METADATA,
    sa.Column("id", sa.String(128), primary_key=True),
    sa.Column("expires_at", sa.BigInteger, nullable=False, index=True),
)

RESULTS = sa.Table(
    "web_results",
    METADATA,
    sa.Column("id", sa.String(128), primary_key=True),
    sa.Column("owner", sa.String(64), nullable=False, index=True),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("detail", sa.JSON, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("changed_at", sa.BigInteger, nullable=False),
    sa.Column("expires_at", sa.BigInteger, nullable=False, index=True),
)
