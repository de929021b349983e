"""One module for each form of the database, the oldest first."""
