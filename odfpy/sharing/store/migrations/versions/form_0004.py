"""The histories of datasets that were served as shared tables (`odfpy.sharing.store.histories`)."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table; versions of datasets served so far begin at 0."""
    op.create_table(
        "served_histories",
        sa.Column("dataset_id", sa.String(255), nullable=False),
        sa.Column("at", sa.String(255), nullable=False),
        sa.Column("head", sa.String(255), nullable=False),
        sa.Column("sequence_number", sa.BigInteger, nullable=False),
        sa.Column("base", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("dataset_id", "at", name="pk_served_histories"),
    )
