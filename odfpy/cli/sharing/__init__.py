"""Commands for sharing with outsiders: shares, recipients, grants."""
