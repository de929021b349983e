"""Retention rules and legal holds: they keep the bytes of archived files, or let them go."""
