"""Migrations of the database. Released migrations never change; further changes need a new one."""
