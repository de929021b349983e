"""The database of sharing: SQLite in the workspace by default, PostgreSQL by URL (`sharing.database`)."""
