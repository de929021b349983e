"""Migrations of the database. One that was released never changes: there is a new one."""
