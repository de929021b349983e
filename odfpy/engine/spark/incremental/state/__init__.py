"""State between pulls: changelogs, partial aggregates, sessions, arrangements, and the files of checkpoints."""
