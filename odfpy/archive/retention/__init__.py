"""Retention rules and legal holds, which determine how long the bytes of archived files are kept."""
