"""One module for each version of the database schema, oldest first."""
