"""Environment of Alembic: it runs the migrations of this folder on the connection that `Database` hands it."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
