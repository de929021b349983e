"""Rows and what is kept of them between pulls: changelogs, groups, sessions, the state's files."""
