"""How things look: tables, progress, results, charts, and the one way to a terminal."""
