"""Commands for unattended work."""
